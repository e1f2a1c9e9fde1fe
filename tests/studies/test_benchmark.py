"""A benchmark measures everybody on the same rows, and nobody against its own word."""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score, f1_score

import demur
from demur.data.annotated import take_annotated
from demur.data.intake import as_conversations
from demur.errors import BudgetError, DemurError, EndpointError, LabelerError, SourceError
from demur.labelers.judge import Judge
from demur.labelers.keywords import KeywordLabeler
from demur.studies.benchmark import benchmark
from demur.studies.panel import Panel
from demur.taxonomy import Taxonomy
from demur.verdict import Policy, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.studies.leaderboard import Leaderboard

TAXONOMY = Taxonomy.load()
MODELS = ("m_1", "m_2", "m_3")
# What three annotators say of eight replies, and what a program says: a kind stands for a full refusal of it.
SAID = {
    "1": ("privacy", "privacy", "privacy", "privacy"),
    "2": ("privacy", "privacy", "skill_level", "skill_level"),
    "3": ("none", "none", "none", "privacy"),
    "4": ("none", "none", "none", "none"),
    "5": ("privacy", "none", "privacy", "none"),
    "6": ("unknowable", "unknowable", "unknowable", "unscored"),
    "7": ("-", "none", "none", "none"),
    "8": ("-", "-", "privacy", "privacy"),
}


class Scripted:
    """Say of each reply what the table says; the budget, or the way to the endpoint, may end before a row."""

    def __init__(
        self,
        name: str = "program",
        ends_before: str | None = None,
        probability: float = math.nan,
        end: type[DemurError] = BudgetError,
    ) -> None:
        """Take a name, and what else there is to play."""
        self.name, self._ends_before, self._probability, self._end = name, ends_before, probability, end
        self._is_over = False

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Yield the last column."""
        for conversation in conversations:
            row = conversation.reply.removeprefix("A ")
            self._is_over |= row == self._ends_before
            if self._is_over:
                message = "that is all"
                raise self._end(message)
            yield self._verdict(SAID[row][3])

    def _verdict(self, said: str) -> Verdict:
        if said == "unscored":
            return Verdict.unscored("judge_answer_empty")
        if said == "none":
            return Verdict("none", 1 - self._probability)
        return Verdict("full", self._probability, category=said, group=TAXONOMY.group_of(said))


def annotation(name: str, said: str, kind: str = "llm") -> dict[str, Any]:
    """Write one annotation."""
    labels = [] if said == "none" else [said]
    return {"annotator": name, "kind": kind, "verdict": "none" if said == "none" else "full", "labels": labels}


def rows(kind: str = "llm") -> list[dict[str, Any]]:
    """Write the table as rows of a file."""
    return [
        {
            "id": row,
            "messages": [{"role": "user", "content": f"Q {row}"}, {"role": "assistant", "content": f"A {row}"}],
            "annotations": [
                annotation(name, word, kind) for name, word in zip(MODELS, said[:3], strict=True) if word != "-"
            ],
        }
        for row, said in SAID.items()
    ]


def measured(*labelers: Any, **options: Any) -> Leaderboard:
    """Measure labelers on the table with few draws."""
    return demur.benchmark(rows(), labelers or (Scripted(), "annotators"), **{"resamples": 50, **options})


def test_the_consensus_leaves_out_whoever_is_measured() -> None:
    """All: row 5 refuses by 2 of 3; without m_1, m_2 and m_3 differ there, and of row 8 m_3 says enough."""
    panel = Panel.of(take_annotated(rows(), TAXONOMY).rows, TAXONOMY)
    assert panel.consensus().gate.tolist() == [0, 0, 1, 1, 0, 0, 1, 0]
    assert panel.consensus([0]).gate.tolist() == [0, 0, 1, 1, -1, 0, 1, 0]
    assert panel.consensus([2]).gate.tolist() == [0, 0, 1, 1, -1, 0, 1, -1]
    assert panel.consensus([None]).gate.tolist() == panel.consensus().gate.tolist()
    privacy, unknowable = (TAXONOMY.keys.index(key) for key in ("privacy", "unknowable"))
    assert panel.consensus().kind.tolist() == [privacy, privacy, -1, -1, privacy, unknowable, -1, privacy]
    assert panel.consensus([0]).kind.tolist() == [privacy, -1, -1, -1, -1, unknowable, -1, privacy]
    assert panel.consensus([0, 1, 2]).gate.tolist() == [-1] * 8


def test_a_program_is_measured_against_the_whole_panel() -> None:
    """Truth R R N N R R N R; it says R R R N N - N R: TP 3, FP 1, FN 1 and TN 2 of the seven that it judged."""
    entry = measured()["program"]
    counts = entry.gate.counts
    found = counts.true_positives, counts.false_positives, counts.false_negatives, counts.true_negatives
    assert found == (3, 1, 1, 2)
    assert entry.gate.precision.value == entry.gate.recall.value == entry.gate.f1.value == 0.75
    assert (entry.read, entry.unscored, entry.unscored_share) == (8, {"judge_answer_empty": 1}, 1 / 8)
    # Kinds: of the refusals 1, 2, 5 and 8 it gets 1 and 8; 2 is of another kind, 5 is missed.
    assert (entry.head.accuracy.value, entry.head.accuracy.n) == (0.5, 4)
    truth, said = [0, 0, 1, 1, 0, 1, 0], [0, 0, 0, 1, 1, 1, 0]
    assert entry.kappa.value == pytest.approx(cohen_kappa_score(truth, said), abs=1e-12)
    # Alpha of two: D_o = 2/7; 14 values, 8 R and 6 N: D_e = 2·8·6 / (14·13).
    assert entry.alpha.value == pytest.approx(1 - (2 / 7) / (96 / 182))


def test_an_annotator_is_measured_against_the_others_on_what_it_read() -> None:
    """m_1: six rows read, on row 5 the others differ: right on all five; m_3 read all eight and has six to meet."""
    found = measured()
    first, third = found["m_1 (LLM)"], found["m_3 (LLM)"]
    assert (first.read, first.gate.accuracy.n, first.gate.accuracy.value) == (6, 5, 1.0)
    assert (third.read, third.gate.accuracy.n, third.gate.accuracy.value) == (8, 6, 1.0)
    # m_3 calls row 2 skill_level, where both others say privacy.
    assert third.head.accuracy.value == pytest.approx(2 / 3)
    assert third.head.accuracy.n == 3
    assert (first.sort, found["program"].sort) == ("llm", "local")


def test_the_place_among_annotators_is_that_of_a_second_computation() -> None:
    """Each annotator and the program, on the rows that both read, against the rest; by plain loops."""
    band = measured()["program"].band("gate")
    refuses = {"none": 1, "-": -1, "unscored": -1}
    table = np.array([[refuses.get(word, 0) for word in said] for said in SAID.values()])
    gaps = []
    for rival in range(3):
        ours = theirs = n = 0
        for line in table:
            rest = [answer for place, answer in enumerate(line[:3]) if place != rival and answer != -1]
            top = max(set(rest), key=rest.count) if rest else -1
            if top == -1 or 2 * rest.count(top) <= len(rest) or line[rival] == -1 or line[3] == -1:
                continue
            ours, theirs, n = ours + (line[3] == top), theirs + (line[rival] == top), n + 1
        gaps.append((ours - theirs) / n)
    assert [one.value for one in band.found.differences] == pytest.approx(gaps)
    assert band.found.median.value == pytest.approx(np.median(gaps))
    assert [rival.name for rival in band.rivals] == list(MODELS)


def test_an_annotator_does_not_meet_itself_and_neither_has_a_say() -> None:
    """m_1 against m_2: only m_3 is left; on row 5 it sides with m_1, everywhere else all three agree on the gate."""
    band = measured()["m_1 (LLM)"].band("gate")
    assert [rival.name for rival in band.rivals] == ["m_2", "m_3"]
    against_second = band.found.differences[0]
    assert against_second.value == pytest.approx(1 / 6)
    assert against_second.n == 6


def test_who_is_compared_with_the_reference_shares_rows_with_it() -> None:
    """Against m_3, of rows 1-5 and 7 with a consensus of the others: both right but for 3; McNemar by the library."""
    found = measured(reference="m_3 (LLM)")
    gate = found["program"].versus[0]
    assert gate.difference.value == pytest.approx(-1 / 5)
    assert gate.difference.n == 5
    assert (gate.test.only_first, gate.test.only_second) == (0, 1)
    assert gate.test.p_value == binomtest(0, 1).pvalue == 1.0
    assert found["m_3 (LLM)"].versus == ()
    truth, ours, theirs = [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]
    assert gate.f1_difference is not None
    assert gate.f1_difference.value == pytest.approx(f1_score(truth, ours) - f1_score(truth, theirs))


def test_people_make_the_consensus_where_there_are_any() -> None:
    """Models in the same file are then measured against people, and are no part of the panel; unless asked for."""
    both = [
        {**one, "annotations": [*one["annotations"], annotation("ada", "none", "human")]} for one in rows()
    ]  # fmt: skip
    found = demur.benchmark(both, ["annotators"], resamples=5)
    assert [str(member) for member in found.panel] == ["ada (human)"]
    assert found["m_1 (LLM)"].gate.counts.false_positives == 4
    assert found["m_1 (LLM)"].band("gate").standing == "not compared"
    assert found["ada (human)"].gate.accuracy.n == 0
    asked = demur.benchmark(both, ["annotators"], panel="llm", resamples=5)
    assert [member.name for member in asked.panel] == list(MODELS)
    with pytest.raises(SourceError, match="no annotator of kind 'human'"):
        demur.benchmark(rows(), ["keywords"], panel="human")


def test_probabilities_are_calibrated_only_where_there_are_some() -> None:
    """Who only decides has none to be off; .9 and .1 can be: the mean of |truth - p| over the two bins."""
    assert math.isnan(measured(Scripted())["program"].gate.calibration_error.value)
    found = measured(Scripted(probability=0.9))["program"].gate.calibration_error
    # Seven rows: four are given .9 and three of them refuse, three are given .1 and one of them refuses.
    assert found.value == pytest.approx((abs(3 - 4 * 0.9) + abs(1 - 3 * 0.1)) / 7)


@pytest.mark.parametrize("end", [BudgetError, EndpointError])
def test_who_comes_to_an_end_is_measured_on_what_it_has(end: type[DemurError]) -> None:
    """Rows that it did not come to are not read, and it is said why; what the others did is not lost."""
    entries = measured(Scripted(ends_before="5", end=end), Scripted("other"))
    entry = entries["program"]
    assert (entry.read, entry.gate.accuracy.n, entry.stopped) == (4, 4, "that is all")
    assert sum(entry.unscored.values()) == 0
    assert entries["other"].stopped is None


def test_an_endpoint_that_never_answers_is_an_error() -> None:
    """A wrong key or name is to be put right."""
    with pytest.raises(EndpointError, match="that is all"):
        measured(Scripted(ends_before="1", end=EndpointError))


def test_cost_comes_from_the_hour_of_the_machine_or_is_stated() -> None:
    """Neither is known where nobody says it, and what is not known is not on the frontier; nothing may be said, too."""
    costs = {"m_1 (LLM)": 90.0, "m_2 (LLM)": 95.0}
    unknown = measured(Scripted(), "annotators", usd_per_million=costs)
    assert math.isnan(unknown["program"].pace.usd_per_million)
    assert unknown["program"].pace.basis == "not known"
    assert unknown["program"].pace.rows_per_second > 0
    assert unknown.frontier == ("m_1 (LLM)",)
    assert not measured(Scripted()).has_costs
    found = measured(Scripted(), "annotators", usd_per_hour=0.0, usd_per_million=costs)
    assert found["program"].pace.usd_per_million == 0.0
    assert (found.has_frontier_line, unknown.has_frontier_line) == (True, False)
    assert found["m_1 (LLM)"].pace.usd_per_million == 90.0
    assert math.isnan(found["m_3 (LLM)"].pace.usd_per_million)
    assert found.frontier == ("program", "m_1 (LLM)")
    priced = measured(Scripted(), usd_per_hour=3.6)["program"].pace
    assert priced.usd_per_million == pytest.approx(3.6 / 3600 / priced.rows_per_second * 1e6)


def test_names_are_checked_before_anything_is_labelled() -> None:
    """Two of one name, an unknown reference, an unknown cost, nobody at all."""
    with pytest.raises(LabelerError, match="two labelers of the name 'program'"):
        measured(Scripted(), Scripted())
    with pytest.raises(LabelerError, match="no labeler 'nobody'; there are program"):
        measured(Scripted(), reference="nobody")
    with pytest.raises(LabelerError, match="no labeler 'm_9'"):
        measured(Scripted(), usd_per_million={"m_9": 1.0})
    with pytest.raises(LabelerError, match="no labeler; give at least one"):
        benchmark(take_annotated(rows(), TAXONOMY), [], TAXONOMY)
    with pytest.raises(SourceError, match="no row has `messages`"):
        demur.benchmark([{"id": "1", "annotations": [annotation("m_1", "none")]}], ["keywords"])


def test_a_labeler_of_another_policy_is_met_before_anything_is_labelled() -> None:
    """Whoever stands before it in the list has not been asked, and so not been paid."""
    first, broad = Scripted("first"), Scripted("broad")
    asked: list[str] = []
    broad.policy = Policy.broad  # type: ignore[attr-defined]  # as classifiers have one
    with pytest.raises(ValueError, match="'broad' decides under 'broad'"):
        measured(first, broad, on_verdict=lambda name, *_: asked.append(name))
    assert not asked


class Rude(Scripted):
    """Give a kind that nobody knows."""

    def _verdict(self, said: str) -> Verdict:
        return Verdict("full", category="rudeness") if said == "privacy" else super()._verdict(said)


def test_a_kind_outside_the_taxonomy_is_named_with_who_gave_it() -> None:
    """And those that there are."""
    with pytest.raises(LabelerError, match=r"'program' gave the kind 'rudeness'; the taxonomy '.+' has .*privacy"):
        measured(Rude())


class Echo(Judge):
    """Say, as a judge, what the first annotator said, who is the same model."""

    def label(self, conversations: Iterable[Conversation | str | Mapping[str, Any]]) -> Iterator[Verdict]:
        """Yield the first column."""
        for conversation in as_conversations(conversations):
            said = SAID[conversation.reply.removeprefix("A ")][0]
            is_none, is_read = said == "none", said != "-"
            kind = None if is_none else said
            yield Verdict("none" if is_none else "full", category=kind) if is_read else Verdict.unscored("no_answer")


def test_a_judge_has_no_say_in_what_it_is_measured_against(tmp_path: Path) -> None:
    """Its model is one of the panel by its name: it fares as the model on record does, and does not meet itself."""
    judge = Echo.at("m_1", base_url="http://127.0.0.1:9", cache=tmp_path / "c.sqlite", taxonomy=TAXONOMY)
    found = measured(judge, "annotators")
    asked, recorded = found["judge:m_1"], found["m_1 (LLM)"]
    assert asked.sort == "judge"
    # As tuples, where one nan is equal to itself: Python 3.13 compares the fields of dataclasses one by one.
    assert astuple(asked.gate.f1) == astuple(recorded.gate.f1)
    assert [str(one) for one in asked.band("gate").rivals] == ["m_2 (LLM)", "m_3 (LLM)"]
    judge.client.close()


class Never(Scripted):
    """Say of no reply that it refuses."""

    def _verdict(self, said: str) -> Verdict:
        return super()._verdict("none" if said else said)


def test_a_difference_that_no_draw_changes_has_no_interval() -> None:
    """Always wrong where all others are right is no draw away from anything, and not `not told apart`."""
    given = [{**row, "annotations": [annotation(name, "privacy") for name in MODELS]} for row in rows()]
    found = demur.benchmark(given, [Never()], resamples=50)
    assert found["program"].band("gate").found.median.value == -1.0
    assert found["program"].band("gate").standing == "no interval"


class Silent(Scripted):
    """Judge nothing."""

    def _verdict(self, said: str) -> Verdict:
        return Verdict.unscored(f"judge_answer_empty{said[:0]}")


def test_who_has_no_row_in_common_is_no_test_to_correct_for() -> None:
    """Of seven rows, three are right in the program alone and one in the other: 2 · (1 + 4) / 16, of one test."""
    entries = [Scripted(), Never("never"), Silent("silent")]
    found = measured(*entries, reference="program")
    never, silent = (found[name].versus[0] for name in ("never", "silent"))
    assert (never.test.only_first, never.test.only_second) == (1, 3)
    assert (never.test.p_value, never.test.adjusted) == pytest.approx((5 / 8, 5 / 8))
    assert (silent.difference.n, silent.test.p_value, silent.test.adjusted) == (0, 1.0, 1.0)


def test_everything_is_kept_as_json_and_as_frames() -> None:
    """No nan in it, one row a labeler, one line for each annotator that is met."""
    found = measured()
    stored = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert {entry["name"] for entry in stored["entries"]} == {"program", *(f"{name} (LLM)" for name in MODELS)}
    frame = found.to_frame()
    assert frame.loc["program", "f1"] == 0.75
    assert len(found.band_table()) == 2 * (3 + 3 * 2)
    assert "program" in found._repr_html_()
    with pytest.raises(KeyError, match="no labeler 'x'"):
        found["x"]
    assert [found[name] for name in found] == list(found.entries)
    assert ("program" in found, "x" in found, len(found)) == (True, False, len(MODELS) + 1)


def test_one_labeler_need_not_stand_in_a_list() -> None:
    """Nor need its name."""
    for labeler in (KeywordLabeler(), "keywords"):
        board = demur.benchmark(rows(), labeler, resamples=2)
        assert [entry.name for entry in board.entries] == ["keywords"]


def test_recorded_labelers_open_from_a_file_that_knows_only_ids(tmp_path: Path) -> None:
    """The texts are those of the rows; who said nothing on them is an error."""
    path = tmp_path / "judge.jsonl"
    path.write_text(json.dumps({"id": "1", "annotations": [annotation("judge", "privacy")]}) + "\n", encoding="utf-8")
    entry = measured(f"recorded:{path}")["judge (LLM)"]
    assert (entry.read, entry.gate.accuracy.value, entry.gate.accuracy.n) == (1, 1.0, 1)
    path.write_text(json.dumps({"id": "x", "annotations": [annotation("judge", "privacy")]}) + "\n", encoding="utf-8")
    with pytest.raises(SourceError, match="nobody in it labelled any of the 8 replies"):
        measured(f"recorded:{path}")


def test_the_gold_rows_give_a_leaderboard(shared_data: Path) -> None:
    """Ten language models and the keyword list; every model stands between the others, and the list below them."""
    found = demur.benchmark(shared_data / "annotated" / "gold.jsonl", ["keywords", "annotators"], resamples=20)
    assert len(found.entries) == 11
    assert found.panel_kind == "llm"
    assert found.entries[-1].name == "keywords"
    assert found["keywords"].band("gate").standing == "worse"


def test_a_frame_is_measured_as_its_rows(tmp_path: Path) -> None:
    """With one file of texts, given as such."""
    given = rows()
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"id": one["id"], "messages": one["messages"]}) + "\n" for one in given))
    bare = [{name: value for name, value in one.items() if name != "messages"} for one in given]
    expected = demur.benchmark(given, ["keywords"], resamples=5)
    for source, where in ((pd.DataFrame(given), None), (pd.DataFrame(bare), str(texts)), (bare, texts)):
        found = demur.benchmark(source, ["keywords"], texts=where, resamples=5)
        assert repr(found["keywords"].gate) == repr(expected["keywords"].gate)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resamples": 0}, "resamples 0; give a number of draws"),
        ({"seed": -1}, "seed -1; give a whole number"),
        ({"usd_per_hour": -1}, "usd_per_hour is -1; give an amount of USD from 0 on"),
        ({"usd_per_hour": math.nan}, "usd_per_hour is nan; give an amount of USD from 0 on"),
        ({"usd_per_million": {"keywords": -2.0}}, "usd_per_million of 'keywords' is -2.0; give an amount of USD"),
        ({"usd_per_million": {"keywords": math.inf}}, "usd_per_million of 'keywords' is inf; give an amount of USD"),
        ({"annotator_kind": "robot"}, "annotator_kind 'robot'; give one of human, llm"),
    ],
)
def test_what_the_command_line_refuses_is_refused_in_python(options: dict[str, Any], said: str) -> None:
    """A price below nothing would stand on the frontier."""
    with pytest.raises(ValueError, match=said):
        demur.benchmark(rows(), ["keywords"], **options)
