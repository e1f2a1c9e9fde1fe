"""A study of agreement asks each question of the right answers, and hides nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import demur
from demur.data.annotated import take_annotated
from demur.errors import OutputError, SourceError
from demur.studies.annotation import agree
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from demur.studies.agreement import Agreement

TAXONOMY = Taxonomy.load()
READINGS = Path(__file__).parents[2] / "synth" / "readings"
PEOPLE, MODELS = (("ada", "human"), ("bo", "human")), (("m_1", "llm"), ("m_2", "llm"), ("m_3", "llm"))


def row(name: str, *said: str, source: str = "here", who: tuple[tuple[str, str], ...] = PEOPLE) -> dict[str, Any]:
    """Write a row: `full privacy skill_level` is a verdict with its labels, `-` an annotator that said nothing."""
    annotations = [
        {"annotator": name, "kind": kind, "verdict": words.split()[0], "labels": words.split()[1:]}
        for (name, kind), words in zip(who, said, strict=True)
        if words != "-"
    ]
    messages = [{"role": "user", "content": f"Q {name}"}, {"role": "assistant", "content": f"A {name}"}]
    return {"id": name, "source": source, "messages": messages, "annotations": annotations}


def studied(*rows: dict[str, Any], **options: int) -> Agreement:
    """Study rows with few draws."""
    return agree(take_annotated(rows, TAXONOMY), TAXONOMY, **{"resamples": 20, **options})


TWO = (
    row("1", "full privacy", "full privacy"),
    row("2", "full privacy", "partial privacy skill_level"),
    row("3", "full privacy", "full nsfw_content", source="there"),
    row("4", "full privacy", "none", source="there"),
    row("5", "none", "none", source="there"),
    row("6", "none", "-"),
)


def test_each_question_is_asked_of_those_who_can_answer_it() -> None:
    """Five replies with two verdicts, four of which agree that they refuse or not; three with two kinds."""
    found = studied(*TWO)
    gate, outcome = found.figure("gate", "agreement").estimate, found.figure("outcome", "agreement").estimate
    assert gate.value == pytest.approx(4 / 5)
    assert gate.n == 5
    assert outcome.value == pytest.approx(3 / 5)
    assert outcome.n == 5
    kind, group = found.figure("kind", "agreement").estimate, found.figure("group", "agreement").estimate
    assert kind.value == pytest.approx(2 / 3)
    assert kind.n == 3
    assert (group.value, group.n) == (1.0, 3)


def test_label_sets_are_compared_by_both_distances() -> None:
    """Equal, {privacy} in {privacy, skill_level}, disjoint: Jaccard (1 + 1/2 + 0)/3, MASI (1 + 1/2 · 2/3 + 0)/3."""
    found = studied(*TWO)
    assert found.figure("kinds", "similarity_jaccard").estimate.value == pytest.approx(1.5 / 3)
    assert found.figure("kinds", "similarity_masi").estimate.value == pytest.approx((1 + 1 / 3) / 3)
    # Jaccard: D_o = (0 + .5 + 1) / 3 = .5; of the values a×4, b={a,s}, c: D_e = 2 (4·.5 + 4·1 + 1) / (6 · 5) = 14/30
    assert found.figure("kinds", "alpha_jaccard").estimate.value == pytest.approx(1 - 0.5 / (14 / 30))


def test_one_kind_is_set_against_all_other_replies() -> None:
    """Privacy against the rest, `none` among it: 1 and 2 agree, 3 and 4 differ, 5 agrees."""
    found = studied(*TWO)
    privacy = found.figure("is_kind", "agreement", part="kind", of="privacy").estimate
    assert privacy.value == pytest.approx(3 / 5)
    assert privacy.n == 5
    assert found.figure("is_group", "agreement", part="group", of="should_not").estimate.value == pytest.approx(4 / 5)
    assert found.named["is_kind"]["privacy"] == 4
    assert found.figure("is_kind", "alpha", part="kind", of="unknowable").undefined is not None


def test_sources_are_measured_apart() -> None:
    """Two sources: here two of two agree on the gate, there two of three."""
    found = studied(*TWO)
    assert found.figure("gate", "agreement", part="source", of="here").estimate.value == 1.0
    assert found.figure("gate", "agreement", part="source", of="there").estimate.value == pytest.approx(2 / 3)
    assert "source" not in set(studied(*TWO[:2]).table()["part"])


def test_people_and_language_models_are_measured_apart() -> None:
    """Two people agree on all, models with nobody; over all, they are mixed, and each is named as what it is."""
    who = (*PEOPLE, *MODELS[:2])
    rows = row("1", "full", "full", "none", "full", who=who), row("2", "none", "none", "full", "none", who=who)
    found = studied(*rows)
    assert found.who == "2 human and 2 LLM annotators"
    assert found.figure("gate", "agreement", part="annotators", of="human").estimate.value == 1.0
    assert found.figure("gate", "agreement", part="annotators", of="llm").estimate.value == 0.0
    assert found.figure("gate", "agreement").estimate.value == 0.5
    assert [one.panel for one in found.ceilings if one.question == "gate"] == ["human", "llm"]
    people = found.ceilings[0]
    # Against people, m_1 is never right and m_2 always.
    assert [one.agreement.estimate.value for one in people.standings] == [1.0, 1.0, 0.0, 1.0]
    assert people.mean.estimate.value == 1.0
    assert list(found.matrix().columns) == ["ada (human)", "bo (human)", "m_1 (LLM)", "m_2 (LLM)"]


def test_without_kinds_nothing_is_said_of_them() -> None:
    """The questions are left out, and it is said why."""
    found = studied(row("1", "full", "full"), row("2", "none", "full"))
    assert set(found.table()["question"]) == {"gate", "outcome"}
    assert found.left_out["kind"] == "no annotator names the kind of any refusal"


def test_one_annotator_only_agrees_with_nobody() -> None:
    """Every figure is nan with its reason, the study runs to its end, and shows so."""
    found = studied(*(row(str(n), "full privacy", who=PEOPLE[:1]) for n in range(3)))
    assert found.who == "1 human annotator"
    over_all = found.table().query("part == 'all'")
    assert over_all["value"].isna().all()
    assert set(over_all["undefined"]) == {"no item has two answers"}
    assert found.between == ()
    assert repr(found) == "<Agreement of 1 human annotator on 3 replies: alpha of the gate undefined>"
    assert "<td>no item has two answers</td>" in found._repr_html_()
    assert "nan" not in found._repr_html_().lower()


def test_answers_that_meet_are_counted_once_a_reply() -> None:
    """Three annotators: full and none meet on two replies, of four that have either."""
    found = studied(
        row("1", "full", "none", "none", who=MODELS),
        row("2", "full", "full", "none", who=MODELS),
        row("3", "full", "full", "full", who=MODELS),
        row("4", "none", "none", "none", who=MODELS),
    )
    (one,) = found.confused
    assert (one.question, one.first, one.second, one.both, one.either) == ("outcome", "full", "none", 2, 4)


def test_not_to_refuse_is_confused_with_kinds_too() -> None:
    """Reply 3: privacy and nsfw_content; reply 4: privacy and none."""
    kinds = {(one.first, one.second): one.both for one in studied(*TWO).confused if one.question == "kind"}
    assert kinds == {("privacy", "nsfw_content"): 1, ("privacy", "none"): 1}


def test_the_most_disputed_replies_come_first() -> None:
    """Refuses or not (1), another kind (1), one kind more and in part (the larger of 2/3 by MASI and 1/2)."""
    found = studied(*TWO)
    assert [(one.id, round(one.disagreement, 3)) for one in found.disputed] == [("3", 1.0), ("4", 1.0), ("2", 0.667)]
    assert found.n_disputed == 3
    assert (found.disputed[0].request, found.disputed[0].reply) == ("Q 3", "A 3")
    assert [one.id for one in studied(*TWO, discuss=1).disputed] == ["3"]


def test_another_main_kind_of_the_same_set_is_a_difference() -> None:
    """A third, less than any difference of sets; beside "in part" a half; what stands behind the main kind is free."""
    found = studied(
        row("1", "full privacy skill_level", "full skill_level privacy"),
        row("2", "full privacy skill_level", "partial skill_level privacy"),
        row("3", "full privacy skill_level unknowable", "full privacy unknowable skill_level"),
        row("4", "full privacy", "full privacy skill_level"),
    )
    disagreements = [(one.id, round(one.disagreement, 3)) for one in found.disputed]
    assert disagreements == [("4", 0.667), ("2", 0.5), ("1", 0.333)]
    assert found.n_disputed == 3
    assert found.figure("kind", "agreement").estimate.value == 0.5


def test_of_equal_disputes_the_surer_comes_first() -> None:
    """Who is sure and contradicted is worth asking."""
    rows = [row("1", "full", "none"), row("2", "full", "none")]
    for sure, one in zip((1, 3), rows, strict=True):
        for annotation in one["annotations"]:
            annotation["sure"] = sure
    assert [one.id for one in studied(*rows).disputed] == ["2", "1"]


def test_the_consensus_is_that_of_more_than_half() -> None:
    """A kind is agreed only where it is agreed that the reply refuses; a tie is nobody's."""
    found = studied(
        row("1", "full privacy", "full privacy", "none", who=MODELS),
        row("2", "full privacy", "none", "none", who=MODELS),
        row("3", "full privacy", "partial nsfw_content", "-", who=MODELS),
        row("4", "full", "none", "-", who=MODELS),
    ).to_frame()
    assert [None if value != value else value for value in found["gate_majority"]] == [  # noqa: PLR0124  # nan
        "refusal", "none", "refusal", None,
    ]  # fmt: skip
    assert found["outcome_majority"].notna().tolist() == [True, True, False, False]
    assert found["kind_majority"].tolist()[0] == "privacy"
    assert found["kind_majority"].isna().tolist() == [False, True, True, True]


def test_reliability_is_estimated_where_it_can_be() -> None:
    """Of three annotators, the one that often stands alone is the least reliable; of two, nothing is known."""
    rows = [row(str(n), *("full full none" if n % 3 == 0 else "none none none").split(), who=MODELS) for n in range(12)]
    rows += [row(f"+{n}", "full", "full", "full", who=MODELS) for n in range(6)]
    found = studied(*rows)
    gate = next(one for one in found.reliabilities if one.question == "gate")
    assert gate.expected[2] < gate.expected[0] == pytest.approx(1.0, abs=1e-6)
    assert found.to_frame()["gate_estimated"].tolist()[0] == "refusal"
    two = studied(*TWO)
    assert all("of two that differ, either may be wrong" in str(one.undefined) for one in two.reliabilities)
    assert two.to_frame()["gate_estimated"].isna().all()


def test_estimates_that_do_not_settle_are_none() -> None:
    """Four who are right little more often than chance: nothing tells who errs, and nothing is claimed."""
    who, generator = (*MODELS, ("m_4", "llm")), np.random.default_rng(0)
    truth = generator.random(200) < 0.5
    said = [["full" if is_so == (generator.random() < 0.55) else "none" for _ in who] for is_so in truth]
    found = studied(*(row(str(n), *words, who=who) for n, words in enumerate(said)))
    gate = next(one for one in found.reliabilities if one.question == "gate")
    assert "do not settle" in str(gate.undefined)
    assert gate.expected == ()
    assert found.to_frame()["gate_estimated"].isna().all()


def test_a_matrix_of_what_there_is_not_is_refused() -> None:
    """A wrong name gives no other figure."""
    found = studied(*TWO)
    with pytest.raises(KeyError, match="no figure 'kappa' of two annotators; there are 'cohen', 'agreement'"):
        found.matrix(name="kappa")
    with pytest.raises(KeyError, match="no figures of two annotators for 'gat'; there are 'gate'"):
        found.matrix("gat")


def test_replies_without_a_request_stand_alone() -> None:
    """They are not replies to one request."""
    bare = [{**each, "messages": each["messages"][1:]} for each in TWO]
    assert studied(*bare).requests == len(TWO)


def test_what_could_not_be_read_is_counted_by_reason() -> None:
    """Two bad rows, in no figure."""
    found = studied(*TWO, {"id": "x"}, row("y", "full privcy", "none"))
    assert found.unread == {"no_annotations": 1, "unreadable_row": 1}
    assert [one.where for one in found.broken] == ["items:7", "items:8"]
    assert len(found.items) == 6


def test_everything_goes_into_json() -> None:
    """Without NaN, which JSON lacks, and with the reasons."""
    stored = json.loads(json.dumps(studied(*TWO).to_json(), allow_nan=False))
    assert [one["kind"] for one in stored["annotators"]] == ["human", "human"]
    figures = {(one["question"], one["part"], one["of"], one["coefficient"]): one for one in stored["figures"]}
    assert figures["gate", "all", "", "agreement"]["value"] == pytest.approx(4 / 5)
    undefined = figures["is_kind", "kind", "unknowable", "alpha"]
    assert undefined["value"] is None
    assert "one class" in undefined["undefined"]
    assert {"pairs", "ceilings", "reliabilities", "confusions", "disputed", "consensus"} <= stored.keys()
    counts = {one["annotator"]: (one["without_majority"], one["alone"]) for one in stored["ceilings"]}
    assert counts.pop("mean of the panel") == (None, None)
    assert {type(each) for one in counts.values() for each in one} == {int}


def test_notebooks_show_a_table_and_what_the_data_say_as_text() -> None:
    """No markup out of the data."""
    found = demur.agree([row("1", "full", "none", who=(("<b>ada</b>", "human"), ("bo", "human")))], resamples=5)
    assert "<table" in found._repr_html_()
    assert "<b>" not in found._repr_html_()
    assert found.pair_table()["first"].tolist()[0] == "<b>ada</b> (human)"


def test_a_figure_that_is_not_there_is_said_to_be_missing() -> None:
    """With what lists those that are."""
    with pytest.raises(KeyError, match="lists all figures"):
        studied(*TWO).figure("gate", "pi")


@pytest.mark.parametrize(("name", "bit", "kind"), [("unsure", "97.3%", "96.4%"), ("unsure_2", "97.1%", "94.9%")])
def test_the_readings_of_unsure_replies_agree_as_their_readme_says(name: str, bit: str, kind: str) -> None:
    """On refusal or not, and on the main kind of those that both call refusals."""
    found = demur.agree(READINGS / f"{name}.jsonl", resamples=2)
    assert f"{found.figure('gate', 'agreement').estimate.value:.1%}" == bit
    assert f"{found.figure('kind', 'agreement').estimate.value:.1%}" == kind
    assert found.requests is None
    assert found.disputed[0].reply is None


def test_the_people_of_xstest_agree_as_counted_by_hand(shared_data: Path) -> None:
    """1,294 replies: 635 none and 629 refusals alike, 25 and 5 where one of them differs."""
    found = demur.agree(shared_data / "human" / "xstest.jsonl", resamples=50)
    observed = (635 + 629) / 1294
    chance = ((635 + 25) * (635 + 5) + (629 + 5) * (629 + 25)) / 1294**2
    kappa = found.figure("gate", "cohen").estimate
    assert kappa.value == pytest.approx((observed - chance) / (1 - chance), abs=1e-9)
    assert kappa.low < kappa.value < kappa.high
    assert found.who == "2 human annotators"
    # In full, in part, none: 510, 94 and 635 alike.
    assert found.figure("outcome", "agreement").estimate.value == pytest.approx((510 + 94 + 635) / 1294, abs=1e-9)


@pytest.mark.slow
def test_the_gold_rows_give_a_complete_report(shared_data: Path) -> None:
    """Ten LLM annotators, all questions, every pair, estimates of all; named as LLM annotators everywhere."""
    found = demur.agree(shared_data / "annotated" / "gold.jsonl", resamples=20)
    assert found.who == "10 LLM annotators"
    assert set(found.table()["question"]) == {"gate", "outcome", "group", "kind", "kinds", "is_group", "is_kind"}
    assert len(found.between) == 4 * 45
    assert all(one.undefined is None for one in found.reliabilities)
    assert not found.table().query("part == 'all'")["value"].isna().any()
    assert all(str(annotator).endswith("(LLM)") for annotator in found.annotators)
    consensus = found.to_frame()
    assert not math.isnan(consensus["gate_probability"].min())


def test_files_rows_and_nothing_else_can_be_measured(tmp_path: Path) -> None:
    """One row is as good as several; numbers are no rows, and of no rows it is said what a row needs."""
    given = row("1", "full", "none")
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(given) + "\n", encoding="utf-8")
    figures = [demur.agree(source, resamples=5).figures for source in (str(path), [path], given, [given])]
    assert len({repr(one) for one in figures}) == 1
    with pytest.raises(TypeError, match="in files or in rows with `annotations`; met int"):
        demur.agree([1])  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="items: no row with annotations"):
        demur.agree([])
    with pytest.raises(TypeError, match="in files or in rows with `annotations`; met int"):
        demur.agree(5)  # type: ignore[arg-type]
    with pytest.raises(
        SourceError, match="items: no row of split 'foo' with annotations; there are rows of 'dev'; give --split dev"
    ):
        demur.agree([{**given, "split": "dev"}], split="foo")


@pytest.mark.parametrize("is_list", [False, True])
def test_texts_are_one_path_or_several(tmp_path: Path, is_list: bool) -> None:
    """A file or a folder, as a text or a path; one text is no list of letters, of which `/` is a folder."""
    given = row("1", "full", "none")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.jsonl").write_text(json.dumps({"id": "1", "messages": given.pop("messages")}), encoding="utf-8")
    for texts in (folder, str(folder), folder / "a.jsonl", str(folder / "a.jsonl")):
        found = demur.agree([given], texts=[texts] if is_list else texts, resamples=2)
        assert found.disputed[0].reply == "A 1"
    assert demur.agree([given], resamples=2).disputed[0].reply is None


def test_the_home_folder_may_be_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In files, texts, the page, and the file of a recorded labeler."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "a.jsonl").write_text(json.dumps(row("1", "full", "none")) + "\n", encoding="utf-8")
    demur.agree("~/a.jsonl", texts="~/a.jsonl", html="~/page.html", resamples=5)
    assert (tmp_path / "page.html").is_file()
    board = demur.benchmark("~/a.jsonl", ["recorded:~/a.jsonl"], out="~/board", resamples=5)
    assert len(board.entries) == 2
    assert (tmp_path / "board" / "leaderboard.html").is_file()


@pytest.mark.parametrize("given", [{"seed": None}, {"resamples": 1e3}, {"discuss": True}], ids=str)
def test_what_is_no_whole_number_is_refused(given: dict[str, Any]) -> None:
    """By its name, before anything is read."""
    [(name, number)] = given.items()
    with pytest.raises(TypeError, match=f"{name} {number!r}; give a whole number"):
        demur.agree([row("1", "full", "none")], **given)


def test_texts_are_files_and_nothing_else() -> None:
    """Messages themselves stand in the rows."""
    with pytest.raises(TypeError, match="texts of dict; give JSONL files that hold messages by id, or folders"):
        demur.agree([row("1", "full", "none")], texts=[{"id": "1"}])  # type: ignore[list-item]


def test_a_frame_is_its_rows() -> None:
    """As written and as read from Parquet, where lists are arrays; a missing cell is a field that is not there."""
    rows = [row("1", "full privacy", "full privacy"), row("2", "full", "none"), row("3", "none", "none")]
    del rows[2]["messages"]
    frame = pd.DataFrame(rows)
    arrays = frame.assign(annotations=frame["annotations"].map(lambda said: np.array(said, dtype=object)))
    expected = demur.agree(rows, resamples=5)
    for given in (frame, arrays):
        found = demur.agree(given, resamples=5)
        assert repr(found.figures) == repr(expected.figures)
        assert (found.items, found.unread, found.disputed) == (expected.items, {}, expected.disputed)
    with pytest.raises(TypeError, match="met DataFrame; give paths, or dicts, or one pandas frame"):
        demur.agree([frame])  # type: ignore[arg-type]


def test_a_page_replaces_another_file_only_where_that_is_asked_for(tmp_path: Path) -> None:
    """It is refused before anything is read; what stands there stays."""
    page = tmp_path / "page.html"
    page.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="there already"):
        demur.agree(tmp_path / "missing.jsonl", html=page)
    assert page.read_text(encoding="utf-8") == "mine"
    demur.agree([row("1", "full", "none")], html=page, overwrite=True, resamples=2)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resamples": 0}, "resamples 0; give a number of draws from 1 on"),
        ({"resamples": -5}, "resamples -5; give a number of draws from 1 on"),
        ({"seed": -1}, "seed -1; give a whole number from 0 on"),
        ({"discuss": -1}, "discuss -1; give a number of replies from 0 on"),
        ({"annotator_kind": "robot"}, "annotator_kind 'robot'; give one of human, llm"),
        ({"annotator_kind": "robot", "crosswalk": "coconot"}, "annotator_kind 'robot'; give one of human, llm"),
    ],
)
def test_what_the_command_line_refuses_is_refused_in_python(options: dict[str, Any], said: str) -> None:
    """No draws would give no interval, and one reply less than none would be all but one."""
    with pytest.raises(ValueError, match=said):
        demur.agree([row("1", "full", "none")], **options)
