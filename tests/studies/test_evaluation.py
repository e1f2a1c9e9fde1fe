"""An evaluation measures any labeler against known replies, and hides nothing."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from demur.conversation import Conversation, Turn
from demur.data.labelled import Labelled
from demur.labelers.keywords import KeywordLabeler
from demur.report.evaluation import evaluation_markdown, evaluation_text
from demur.report.markdown import escaped
from demur.report.plots import risk_coverage_plot
from demur.stats.conformal import CategorySets
from demur.stats.metrics import Confusion
from demur.stats.shares import Share
from demur.studies.evaluation import Evaluation, evaluate
from demur.taxonomy import Taxonomy
from demur.verdict import Policy, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TAXONOMY = Taxonomy.load()


@dataclass(frozen=True, slots=True)
class Scripted:
    """Give verdicts that were written down before."""

    verdicts: tuple[Verdict, ...]
    name: str = "scripted"

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Read the conversations and give the script."""
        assert all(isinstance(conversation, Conversation) for conversation in conversations)
        return iter(self.verdicts)


def known(outcome: Literal["full", "partial", "none"], *labels: str, request: str = "q") -> Labelled:
    """Build a row whose truth is known."""
    return Labelled(Conversation.of(request, "a"), "id", "test", outcome, outcome != "none", labels)


def refused(kind: str | None, outcome: Literal["full", "partial"] = "full", p: float = 0.9) -> Verdict:
    """Build a verdict without probabilities of kinds."""
    return Verdict(outcome, p, category=kind, group=None if kind is None else TAXONOMY.group_of(kind))


def with_mass(verdict: Verdict, **mass: float) -> Verdict:
    """Add probabilities of kinds."""
    return replace(verdict, category_probabilities=tuple(mass.get(key, 0.0) for key in TAXONOMY.keys))


ROWS = [
    known("full", "privacy", request="1"),
    known("full", "privacy", "nsfw_content", request="2"),
    known("partial", "skill_level", request="3"),
    known("none", request="4"),
    known("none", request="5"),
    known("full", "unknowable", request="6"),
]
VERDICTS = (
    refused("privacy"),
    refused("nsfw_content"),
    Verdict("none", 0.4),
    Verdict("none", 0.1),
    refused("privacy", "partial", 0.6),
    Verdict.unscored("empty_reply"),
)


def evaluated(rows: list[Labelled] = ROWS, verdicts: tuple[Verdict, ...] = VERDICTS) -> Evaluation:
    """Evaluate with few resamples."""
    return evaluate(Scripted(verdicts), rows, TAXONOMY, resamples=50)


def test_unscored_verdicts_are_shown_and_stand_in_no_figure() -> None:
    """The sixth row is counted by its reason, and neither as a refusal nor as none."""
    evaluation = evaluated()
    assert (evaluation.rows, evaluation.scored, evaluation.unscored) == (6, 5, {"empty_reply": 1})
    assert (evaluation.gate.accuracy.n, evaluation.head.accuracy.n) == (5, 3)


def test_the_gate_is_over_all_scored_rows() -> None:
    """Two hits, one miss (partial), one pass, one false alarm: 3 of 5."""
    assert evaluated().gate.accuracy.value == pytest.approx(3 / 5)


def test_full_against_none_leaves_partial_refusals_out() -> None:
    """Without the miss on a partial refusal: 3 of 4."""
    accuracy = evaluated().full_against_none.accuracy
    assert (accuracy.value, accuracy.n) == (0.75, 4)


def test_full_against_none_leaves_partial_refusals_out_under_strict_too() -> None:
    """Three rows of each outcome, all partial ones called full, and a row of one bit: 7 of 10, and 7 of 7 here."""
    outcomes: tuple[Literal["full", "partial", "none"], ...] = ("full", "partial", "none")
    rows = [known(outcomes[n % 3], request=str(n)) for n in range(9)] + [replace(ROWS[3], outcome=None)]
    verdicts = (*[refused(None), refused(None), Verdict("none", 0.1)] * 3, Verdict("none", 0.1))
    found = evaluate(Scripted(verdicts), rows, TAXONOMY, policy="strict", resamples=5)
    assert (found.gate.accuracy.value, found.gate.accuracy.n) == (7 / 10, 10)
    assert (found.full_against_none.accuracy.value, found.full_against_none.accuracy.n) == (1.0, 7)


def test_full_against_none_is_nan_where_no_extent_is_known() -> None:
    """Replies that do not refuse, alone, would give a gate without hits an accuracy of 1."""
    refusal = replace(known("full"), outcome=None)
    found = evaluated([refusal, known("none", request="r")], (Verdict("none", 0.1), Verdict("none", 0.1)))
    assert found.gate.accuracy.value == 0.5
    assert math.isnan(found.full_against_none.accuracy.value)


def test_a_refusal_of_unknown_extent_is_not_one_in_full() -> None:
    """Of three rows, one may be partial for all that is known: it counts for the gate, and not here."""
    rows = [replace(ROWS[0], outcome=None), *ROWS[1:2], *ROWS[3:4]]
    evaluation = evaluated(rows, (VERDICTS[0], VERDICTS[1], VERDICTS[3]))
    assert (evaluation.gate.accuracy.n, evaluation.full_against_none.accuracy.n) == (3, 2)


def test_rows_of_unknown_truth_stand_out() -> None:
    """A row may be known as a refusal without its outcome, or not at all."""
    rows = [replace(ROWS[0], outcome=None), replace(ROWS[0], outcome=None, is_refusal=None)]
    evaluation = evaluated(rows, VERDICTS[:2])
    assert evaluation.gate.accuracy.n == 1
    assert sum(sum(row.values()) for row in evaluation.outcomes.values()) == 0


def test_precision_and_recall_of_a_kind_have_intervals_that_know_the_requests() -> None:
    """Four replies to each of ten requests, five named rightly throughout: a recall of 20 of 40 as sure as of 10."""
    rows = [known("full", "privacy", request=str(place // 4)) for place in range(40)]
    verdicts = tuple(refused("privacy" if place < 20 else "unknowable") for place in range(40))
    evaluation = evaluated(rows, verdicts)
    (privacy,) = (kind for kind in evaluation.head.kinds if kind.kind == "privacy")
    assert (privacy.recall.count, privacy.recall.total) == (20, 40)
    # With Student's t of 9 degrees and of 39.
    assert privacy.recall.effect == pytest.approx(4 * 10 / 9 * 39 / 40 * (2.26216 / 2.02269) ** 2, rel=1e-5)
    assert privacy.precision.interval == Share(5, 5).interval
    stored = json.loads(json.dumps(evaluation.to_json()))["head"]["kinds"]
    (of_privacy,) = (kind for kind in stored if kind["kind"] == "privacy")
    assert of_privacy["recall_interval"] == list(privacy.recall.interval)
    assert "0.500 (0.2" in evaluation_text(evaluation)


def test_refusals_to_one_request_have_figures_and_no_intervals_anywhere() -> None:
    """Neither in the text, where the share stands alone, nor in JSON, which lacks what is infinite."""
    rows = [known("full", "privacy") for _ in range(40)]
    evaluation = evaluated(rows, (refused("privacy"),) * 38 + (refused("unknowable"),) * 2)
    lines = [line.split() for line in evaluation_text(evaluation).splitlines()]
    assert ["privacy", "1.000", "0.950", "0.974", "40"] in lines
    stored = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))["head"]["kinds"]
    assert {tuple(kind["recall_interval"]) for kind in stored} == {(None, None)}


def test_the_summary_says_which_intervals_are_others() -> None:
    """Those of kinds, where there are kinds; the range of noise; and of few refusals a kind, that macro-F1 is low."""
    few, many = (evaluation_text(evaluated([known("full", "privacy")] * n, (refused("privacy"),) * n)) for n in (9, 10))
    assert "score intervals with a design effect" in few
    assert "so few refusals a kind: 9 of 1 kind." in few
    assert "so few refusals" not in many
    without = evaluation_text(evaluated([ROWS[3]], (VERDICTS[3],)))
    assert "score intervals" not in without
    assert "what noise gives in 95 of 100 cases" in without


def test_outcomes_are_crossed() -> None:
    """Truth in rows, verdicts in columns."""
    assert evaluated().outcomes == {
        "full": {"full": 2, "partial": 0, "none": 0},
        "partial": {"full": 0, "partial": 0, "none": 1},
        "none": {"full": 0, "partial": 1, "none": 1},
    }


def test_the_head_is_measured_on_refusals_in_truth() -> None:
    """Right, right but second, and unnamed because it was missed: 1 of 3, 2 of 3 leniently."""
    head = evaluated().head
    assert head.accuracy.value == pytest.approx(1 / 3)
    assert head.lenient_accuracy.value == pytest.approx(2 / 3)
    assert head.group_accuracy.value == pytest.approx(2 / 3)
    assert Confusion("skill_level", "unnamed", 1) in head.confusions


def test_probabilities_name_the_kind_whatever_the_gate_says() -> None:
    """The head's own quality does not depend on the gate's."""
    missed = with_mass(Verdict("none", 0.4), privacy=0.4, nsfw_content=0.3, skill_level=0.3)
    evaluation = evaluated([ROWS[0]], (missed,))
    assert evaluation.head.accuracy.value == 1.0
    assert evaluation.end_to_end.value == 0.0


def test_refusals_without_an_agreed_kind_are_no_truth_for_the_head() -> None:
    """Neither rows without labels nor rows that readers name differently."""
    rows = [known("full"), replace(ROWS[0], is_agreed=False), ROWS[0]]
    evaluation = evaluated(rows, (refused("privacy"),) * 3)
    assert (evaluation.head.accuracy.n, evaluation.end_to_end.n, evaluation.gate.accuracy.n) == (1, 1, 3)


def test_end_to_end_wants_gate_and_kind_right() -> None:
    """Of five rows, the first and the fourth."""
    end_to_end = evaluated().end_to_end
    assert (end_to_end.value, end_to_end.n) == (0.4, 5)


def test_end_to_end_is_nan_where_no_kind_is_known() -> None:
    """It would be the specificity alone."""
    assert math.isnan(evaluated([ROWS[3]], (VERDICTS[3],)).end_to_end.value)


def test_each_family_of_cases_has_its_accuracy() -> None:
    """Two of three right in one family, one of one in the other; rows without a family are in neither."""
    rows = [
        replace(known("full", request="0"), family="terse"),
        replace(known("none", request="1"), family="terse"),
        replace(known("none", request="2"), family="terse"),
        replace(known("none", request="3"), family="emoji"),
        known("none", request="4"),
    ]
    found = evaluated(rows, (refused(None), refused(None), Verdict("none", 0.1), Verdict("none", 0.1), refused(None)))
    assert {name: (each.value, each.n) for name, each in found.families.items()} == {
        "terse": (pytest.approx(2 / 3), 3),
        "emoji": (1.0, 1),
    }


def test_rows_of_one_request_are_one_cluster() -> None:
    """Case and spacing make no new request; replies without a request stand alone."""
    rows = [known("none", request=request) for request in ("How are  you?", "how are\nYOU?", "", "")]
    evaluation = evaluated(rows, (Verdict("none", 0.1),) * 4)
    assert evaluation.clusters == 3


def test_turns_of_one_chat_are_one_cluster() -> None:
    """However else its later requests read; and chats that end alike are as many as begin otherwise."""
    opened = [(Turn("user", f"Tell me of {thing}."), Turn("assistant", "Well ...")) for thing in ("bees", "bats")]
    rows = [
        replace(known("none"), conversation=Conversation((*before, Turn("user", ask), Turn("assistant", "Fine."))))
        for before in opened
        for ask in ("Go on.", "And then?", "More!")
    ]
    assert evaluated(rows, (Verdict("none", 0.1),) * 6).clusters == 2


def test_the_same_seed_gives_the_same_evaluation() -> None:
    """Intervals come from a generator of their own."""
    assert evaluated().to_json() == evaluated().to_json()


def test_no_rows_give_nan_and_no_error() -> None:
    """Empty input claims nothing."""
    evaluation = evaluated([], ())
    figures = (
        evaluation.gate.accuracy,
        evaluation.full_against_none.f1,
        evaluation.head.macro_f1,
        evaluation.end_to_end,
    )
    assert all(math.isnan(figure.value) for figure in figures)


def test_a_labeler_that_loses_a_row_is_refused() -> None:
    """Verdicts are matched to rows by place."""
    n = len(ROWS)
    with pytest.raises(ValueError, match=f"labeler '.*' gave {n - 1} verdicts for {n} rows"):
        evaluated(ROWS, VERDICTS[:-1])


def test_an_evaluation_becomes_json_without_nan() -> None:
    """An undefined figure is null; derived figures of each kind are there."""
    stored = json.loads(json.dumps(evaluated().to_json(), allow_nan=False))
    kinds = {kind["kind"]: kind for kind in stored["head"]["kinds"]}
    assert stored["labeler"] == "scripted"
    assert stored["gate"]["accuracy"]["value"] == pytest.approx(3 / 5)
    assert kinds["privacy"] | {"f1": 0} == kinds["privacy"] | {"f1": 0, "precision": 1.0, "recall": 0.5, "support": 2}
    assert kinds["unknowable"]["f1"] is None


@pytest.mark.parametrize("render", [evaluation_markdown, evaluation_text])
def test_a_rendered_evaluation_shows_every_figure(render: object) -> None:
    """Nothing is left to look up elsewhere; what is undefined is said to be."""
    assert callable(render)
    text = render(evaluated())
    for words in ("scripted", "5 scored, 1 unscored (empty", "AUROC", "end to end", "privacy", "unnamed"):
        assert words in text
    assert "nan" not in text.lower().split()


def test_data_without_kinds_have_no_tables_of_kinds() -> None:
    """Sixteen rows of dashes say nothing."""
    text = evaluation_text(evaluated([ROWS[3]], (VERDICTS[3],)))
    assert "Gate:\n" in text
    assert "Each kind" not in text


def test_markdown_tables_are_tables() -> None:
    """Each row of a table has the cells of its header."""
    lines = evaluation_markdown(evaluated()).splitlines()
    widths = [line.count("|") for line in lines if line.startswith(("| figure", "| accuracy"))]
    assert set(widths) == {5}
    assert "| accuracy | 0.600 |" in "\n".join(lines)


def test_what_the_data_hold_is_shown_as_it_is() -> None:
    """A family with a pipe keeps its row, markup is none, and nothing steers the terminal."""
    names = ("a|b", "x\ny <b>", "\x1b[31mred")
    rows = [replace(row, family=names[place % 3]) for place, row in enumerate(ROWS)]
    found = evaluate(Scripted(VERDICTS, name="`<i>` \x1b[31m"), rows, TAXONOMY, resamples=5)
    text, markdown = evaluation_text(found), evaluation_markdown(found)
    assert "\x1b" not in text + markdown
    assert "\nx y <b> " in text
    assert all(f"\n| {name} | " in markdown for name in (r"a\|b", r"x y \<b\>"))
    assert markdown.startswith(r"## Evaluation of \`\<i\>\` ")


def test_text_columns_are_aligned() -> None:
    """The values of a table end in the same column."""
    lines = [
        line for line in evaluation_text(evaluated()).splitlines() if line.startswith(("precision", "Brier score"))
    ]
    assert len({line.index("0.") for line in lines}) == 1


def test_rows_without_a_word_of_truth_are_counted_and_named() -> None:
    """Two of five scored rows: the figures of the gate rest on three, and that is said."""
    rows = [replace(row, outcome=None, is_refusal=None) if index < 2 else row for index, row in enumerate(ROWS)]
    found = evaluate(Scripted(VERDICTS), rows, TAXONOMY, resamples=20)
    assert (found.scored, found.without_truth, found.gate.accuracy.n) == (5, 2, 3)
    assert found.to_json()["without_truth"] == 2
    said = "No label says of 2 scored rows whether the reply refuses: in no figure, either."
    assert said in evaluation_text(found)
    assert escaped(said) in evaluation_markdown(found)
    assert "no label says" not in evaluation_text(evaluated())
    one_bit = replace(ROWS[0], outcome=None)
    verdicts = (refused("privacy"), Verdict("none", 0.1))
    strict = evaluate(Scripted(verdicts), [one_bit, ROWS[3]], TAXONOMY, policy="strict", resamples=20)
    assert (strict.scored, strict.without_truth) == (2, 1)


@dataclass(frozen=True)
class Lowered(Scripted):
    """Say that the script is one of a lower threshold."""

    policy: Policy = Policy.broad


@pytest.mark.parametrize(("policy", "right"), [("strict", 5), ("standard", 3), ("broad", 3)])
def test_truth_and_verdicts_are_counted_under_the_same_policy(policy: str, right: int) -> None:
    """Five scored rows: the partial one, missed, and the partial verdict on an answer, are right under `strict`."""
    # standard: truth + + + - -, verdicts + + - - +, 3 of 5; strict: truth + + - - -, verdicts + + - - -, 5 of 5.
    labeler = Lowered(VERDICTS) if policy == "broad" else Scripted(VERDICTS)
    evaluation = evaluate(labeler, ROWS, TAXONOMY, policy=policy, resamples=20)
    assert evaluation.gate.accuracy.value == right / 5
    assert evaluation.policy is Policy(policy)


def test_strict_leaves_out_what_is_not_known_and_what_nobody_gives() -> None:
    """A row of one bit may refuse in part: 2 of 3 rows are measured; P(refuses) is no P(refuses in full)."""
    one_bit = replace(ROWS[0], outcome=None, labels=())
    rows, verdicts = [one_bit, ROWS[0], ROWS[3]], (refused("privacy"), refused("privacy"), Verdict("none", 0.1))
    strict = evaluate(Scripted(verdicts), rows, TAXONOMY, policy="strict", resamples=20)
    assert (strict.gate.accuracy.n, strict.gate.accuracy.value) == (2, 1.0)
    assert math.isnan(strict.gate.auroc.value)
    assert math.isnan(strict.gate.calibration_error.value)
    standard = evaluate(Scripted(verdicts), rows, TAXONOMY, resamples=20)
    assert (standard.gate.accuracy.n, standard.gate.auroc.value) == (3, 1.0)


def test_a_policy_that_is_not_the_usual_one_is_named_in_the_report() -> None:
    """With what it does to the figures; the usual one needs no word. Programs always read it."""
    for policy in Policy:
        labeler = Lowered(VERDICTS) if policy is Policy.broad else Scripted(VERDICTS)
        evaluation = evaluate(labeler, ROWS, TAXONOMY, policy=policy, resamples=20)
        assert (f"Policy {policy}" in evaluation_text(evaluation)) is (policy is not Policy.standard)
        assert json.loads(json.dumps(evaluation.to_json()))["policy"] == policy.value


STATED = CategorySets(0.9, 40, 0.2)


@dataclass(frozen=True, slots=True)
class Stating(Scripted):
    """State a coverage of sets."""

    category_sets: CategorySets | None = STATED


NAMED = (
    with_mass(refused("privacy", p=0.95), privacy=0.9, nsfw_content=0.1),
    with_mass(refused("nsfw_content", p=0.9), privacy=0.4, nsfw_content=0.6),
    with_mass(Verdict("none", 0.4), privacy=0.6, skill_level=0.4),
    Verdict("none", 0.1),
    refused("privacy", "partial", 0.6),
    with_mass(refused("privacy", p=0.7), privacy=0.8, unknowable=0.1, skill_level=0.1),
)


def test_sets_are_measured_on_refusals_in_truth() -> None:
    """Four, one of them missed by the gate; from .2 on: a right kind, a right group, both groups, a wrong kind."""
    found = evaluate(Stating(NAMED), ROWS, TAXONOMY, resamples=20).sets
    assert found is not None
    assert found.stated == STATED
    assert (found.coverage.value, found.coverage.n, found.size.value) == (3 / 4, 4, (1 + 2 + 2 + 1) / 4)
    assert (found.kind.value, found.group.value, found.undetermined.value) == (1 / 2, 1 / 4, 1 / 4)
    assert (found.kind_accuracy.value, found.group_accuracy.value) == (1 / 2, 1.0)


@pytest.mark.parametrize(
    ("labeler", "rows"),
    [(Scripted(NAMED), ROWS), (Stating(NAMED, category_sets=None), ROWS), (Stating(VERDICTS), ROWS)],
    ids=["states nothing", "states None", "has no probabilities"],
)
def test_without_sets_there_is_nothing_to_measure(labeler: Scripted, rows: list[Labelled]) -> None:
    """And nothing is shown."""
    evaluation = evaluate(labeler, rows, TAXONOMY, resamples=20)
    assert evaluation.sets is None
    assert json.loads(json.dumps(evaluation.to_json()))["sets"] is None
    assert "Sets of kinds" not in evaluation_text(evaluation)


def test_curves_go_by_the_confidence_of_gate_and_kinds() -> None:
    """By hand, the surest first."""
    evaluation = evaluate(Stating(NAMED), ROWS, TAXONOMY, resamples=20)
    # Gate: .95 right; .9 twice, right; .7 right; .6 twice (a miss at p = .4, an alarm at .6), both wrong.
    gate = [(point.confidence, point.coverage, point.risk) for point in evaluation.gate_curve.points]
    assert gate == [(0.95, 1 / 6, 0.0), (0.9, 3 / 6, 0.0), (0.7, 4 / 6, 0.0), (0.6, 1.0, pytest.approx(2 / 6))]
    # Ranks 5 and 6 hold one of two errors on average, and both: (0 + 0 + 0 + 0 + 1/5 + 2/6) / 6.
    assert evaluation.gate_curve.area.value == pytest.approx((1 / 5 + 2 / 6) / 6)
    # Kinds: .9 right; .8 wrong; .6 twice, nsfw_content and privacy, both wrong as main kinds.
    kinds = [(point.confidence, point.risk) for point in evaluation.kind_curve.points]
    assert kinds == [(0.9, 0.0), (0.8, 1 / 2), (0.6, 3 / 4)]
    assert [(each.coverage, each.accuracy.value) for each in evaluation.kind_curve.selected] == [
        (1.0, 1 / 4), (0.95, 1 / 4), (0.9, 1 / 4), (0.8, 1 / 4), (0.5, 1 / 2),
    ]  # fmt: skip


def test_the_gate_is_sure_of_its_verdict_and_not_of_the_likelier_answer() -> None:
    """From .9 on it refuses: at .85 it says `none` and is wrong, and least sure of all four, not surer than at .2."""
    rows = [
        known("full", request="1"),
        known("full", request="2"),
        known("none", request="3"),
        known("none", request="4"),
    ]
    verdicts = (refused(None, p=0.95), Verdict("none", 0.85), Verdict("none", 0.2), Verdict("none", 0.1))
    curve = evaluated(rows, verdicts).gate_curve
    assert [(round(one.confidence, 9), one.coverage, one.risk) for one in curve.points] == [
        (0.95, 1 / 4, 0.0), (0.9, 2 / 4, 0.0), (0.8, 3 / 4, 0.0), (0.15, 1.0, 1 / 4),
    ]  # fmt: skip
    # From .25 on, as under `broad`: at .3 it refuses, and is less sure than at .2, where it does not.
    found = evaluated(rows[2:], (refused(None, p=0.3), Verdict("none", 0.2))).gate_curve
    assert [(one.confidence, one.risk) for one in found.points] == [(0.8, 0.0), (0.3, 1 / 2)]


def test_curves_rest_on_probabilities_that_there_are() -> None:
    """Under `strict` nobody gives the gate's; a labeler of names alone gives none of kinds."""
    strict = evaluate(Scripted(NAMED), ROWS, TAXONOMY, policy="strict", resamples=20)
    assert (strict.gate_curve.area.n, strict.gate_curve.points) == (0, ())
    assert evaluated().kind_curve.points == ()


def test_the_decisions_of_a_phrase_list_are_not_measured_as_probabilities() -> None:
    """Two of two replies right; no AUROC, no calibration error, no Brier score, no curve."""
    said = ((True, "I can't help with that."), (False, "Whisk the eggs."))
    rows = [replace(ROWS[0 if truth else 3], conversation=Conversation.of("Q", reply)) for truth, reply in said]
    found = evaluate(KeywordLabeler(TAXONOMY), rows, TAXONOMY, resamples=5)
    gate = found.gate
    assert (gate.accuracy.value, gate.accuracy.n) == (1.0, 2)
    assert [each.n for each in (gate.auroc, gate.calibration_error, gate.calibration_noise, gate.brier)] == [0] * 4
    assert (found.gate_curve.area.n, found.gate_curve.points) == (0, ())


@pytest.mark.parametrize("render", [evaluation_markdown, evaluation_text])
def test_a_rendered_evaluation_shows_what_may_be_held_back(render: object) -> None:
    """Accuracies by coverage for gate and kinds, areas, and the sets with what is stated."""
    assert callable(render)
    text = render(evaluate(Stating(NAMED), ROWS, TAXONOMY, resamples=20))
    assert text.count("accuracy at 95% coverage") == 2
    assert text.count("area under the risk-coverage curve") == 2
    (stated,) = [line for line in text.splitlines() if "coverage stated, from held-out refusals" in line]
    assert stated.replace("|", " ").split()[-3:] == ["0.900", "n/a", "40"]
    assert "share undetermined" in text


def test_too_few_refusals_to_state_a_coverage_are_said_to_be_so() -> None:
    """Eight where nine are needed: every set is all 16 kinds."""
    few = Stating(NAMED, category_sets=CategorySets.of([0.5] * 8, 0.9))
    evaluation = evaluate(few, ROWS, TAXONOMY, resamples=20)
    assert evaluation.sets is not None
    assert (evaluation.sets.coverage.value, evaluation.sets.size.value) == (1.0, 16.0)
    assert "coverage stated, from too few refusals, 9 needed: all kinds" in evaluation_text(evaluation)


def test_a_risk_coverage_plot_has_a_line_for_gate_and_kinds() -> None:
    """Drawn through the points of the curves; nothing known is an empty plot."""
    evaluation = evaluate(Stating(NAMED), ROWS, TAXONOMY, resamples=20)
    lines = risk_coverage_plot(evaluation).axes[0].lines
    assert [line.get_label() for line in lines] == ["gate", "kinds of refusals"]
    assert np.asarray(lines[1].get_xdata()).tolist() == [1 / 4, 2 / 4, 1.0]
    assert np.asarray(lines[1].get_ydata()).tolist() == [0.0, 1 / 2, 3 / 4]
    risk_coverage_plot(evaluated([], ())).savefig(io.BytesIO())
