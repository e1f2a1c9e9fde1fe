"""Write an evaluation out: as Markdown for a document, as plain text for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demur.report.markdown import escaped, markdown_table
from demur.report.tables import Table
from demur.report.text import plain, text_table
from demur.stats.numbers import NOT_AVAILABLE, decimal, of_splits, with_noun
from demur.stats.resampling import LEAST_CLUSTERS
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demur.stats.metrics import GateMetrics, HeadMetrics
    from demur.stats.resampling import Estimate
    from demur.stats.selective import RiskCoverage, SetMetrics
    from demur.stats.shares import Share
    from demur.studies.evaluation import Evaluation

__all__ = ["evaluation_markdown", "evaluation_text"]

Row = tuple[str, ...]

_FIGURE_HEAD = ("figure", "value", "95 % interval", "n")
_N_CONFUSIONS = 10
# Of fewer refusals a kind, in simulations, intervals of macro-F1 held it in less than nine of ten cases.
_FEW_A_KIND = 10
_POLICIES = {
    Policy.strict: " Policy strict: refusals in part count as none, and there is no probability of refusing in full.",
    Policy.standard: "",
    Policy.broad: " Policy broad, against the labels of standard: safe answers that it counts stand here as errors.",
}


def evaluation_markdown(evaluation: Evaluation) -> str:
    """Render an evaluation as a Markdown section, with one table for each question."""
    title, summary = f"## Evaluation of {escaped(evaluation.labeler)}", escaped(_summary(evaluation))
    return "\n\n".join([title, summary, *map(markdown_table, _tables(evaluation))]) + "\n"


def evaluation_text(evaluation: Evaluation) -> str:
    """Render an evaluation as plain text in aligned columns."""
    title, summary = f"Evaluation of {plain(evaluation.labeler)}", plain(_summary(evaluation))
    return "\n\n".join([title, summary, *map(text_table, _tables(evaluation))]) + "\n"


def _summary(evaluation: Evaluation) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in evaluation.unscored.items())
    unscored = f"{evaluation.rows - evaluation.scored} unscored" + (f" ({reasons})" if reasons else "")
    unknown = evaluation.without_truth
    without_truth = (
        f" No label says of {with_noun(unknown, 'scored row')} whether the reply refuses: in no figure, either."
        if unknown
        else ""
    )
    others = f" Left out: {of_splits(evaluation.other_splits)}." if evaluation.other_splits else ""
    return (
        f"{evaluation.rows} rows on {evaluation.clusters} different requests: {evaluation.scored} scored, {unscored}. "
        f"Unscored rows are in no figure.{without_truth}{others} Intervals resample whole requests; there is none from "
        f"fewer than {LEAST_CLUSTERS} (for AUROC: on either side), nor where most draws give the same figure."
        f"{_of_kinds(evaluation.head)} Beside the calibration error by noise stands what noise gives in 95 of 100 cases"
        f".{_POLICIES[evaluation.policy]}"
    )


def _of_kinds(head: HeadMetrics) -> str:
    """Say what holds for the figures of kinds alone; empty where there are none."""
    if not head.accuracy.n:
        return ""
    n_kinds = sum(1 for kind in head.kinds if kind.support or kind.precision.total)
    few = (
        " Macro F1 tends to come out low, and its interval to miss the true one, with so few refusals a kind: "
        f"{head.accuracy.n} of {with_noun(n_kinds, 'kind')}."
        if head.accuracy.n < _FEW_A_KIND * n_kinds
        else ""
    )
    return (
        " Those of precision and recall of each kind are score intervals with a design effect, from two requests on."
        f"{few}"
    )


def _tables(evaluation: Evaluation) -> Iterator[Table]:
    yield _figures("Gate", _gate_rows(evaluation.gate))
    yield _figures("Gate, full against none", _gate_rows(evaluation.full_against_none))
    given = tuple(evaluation.outcomes)
    counts = tuple((true, *(str(row[each]) for each in given)) for true, row in evaluation.outcomes.items())
    yield Table("Outcomes (rows: truth, columns: verdict)", ("", *given), counts)
    if evaluation.families:
        families = (_figure(name, accuracy) for name, accuracy in evaluation.families.items())
        yield _figures("Accuracy of the gate by family", families)
    yield _figures("Gate, the surest answers alone", _curve_rows(evaluation.gate_curve))
    if evaluation.head.accuracy.n:
        yield from _kind_tables(evaluation)


def _kind_tables(evaluation: Evaluation) -> Iterator[Table]:
    """Yield the tables about kinds, which data without agreed kinds do not have."""
    head = evaluation.head
    yield _figures("Kinds of refusals", [*_head_rows(head), _figure("end to end", evaluation.end_to_end)])
    yield _figures("Kinds, the surest answers alone", _curve_rows(evaluation.kind_curve))
    if evaluation.sets is not None:
        yield _figures("Sets of kinds", _set_rows(evaluation.sets))
    yield Table("Each kind", ("kind", "precision", "recall", "F1", "support"), _kind_rows(head))
    confusions = tuple((each.truth, each.predicted, str(each.count)) for each in head.confusions[:_N_CONFUSIONS])
    yield Table("Most frequent confusions", ("truth", "verdict", "count"), confusions, n_text=2)


def _figures(caption: str, rows: Iterable[Row]) -> Table:
    return Table(caption, _FIGURE_HEAD, tuple(rows))


def _gate_rows(gate: GateMetrics) -> list[Row]:
    return [
        _figure("accuracy", gate.accuracy),
        _figure("precision", gate.precision),
        _figure("recall", gate.recall),
        _figure("F1", gate.f1),
        _figure("AUROC", gate.auroc),
        _figure("calibration error", gate.calibration_error),
        _figure("calibration error by noise alone", gate.calibration_noise),
        _figure("Brier score", gate.brier),
    ]


def _head_rows(head: HeadMetrics) -> list[Row]:
    return [
        _figure("accuracy", head.accuracy),
        _figure("accuracy, any allowed kind", head.lenient_accuracy),
        _figure("group accuracy", head.group_accuracy),
        _figure("macro F1", head.macro_f1),
        _figure("macro F1, kinds in truth", head.macro_f1_in_truth),
    ]


def _curve_rows(curve: RiskCoverage) -> list[Row]:
    accuracies = [_figure(f"accuracy at {each.coverage:.0%} coverage", each.accuracy) for each in curve.selected]
    return [*accuracies, _figure("area under the risk-coverage curve", curve.area)]


def _set_rows(sets: SetMetrics) -> list[Row]:
    stated = sets.stated
    basis = "held-out refusals" if stated.has_enough else f"too few refusals, {stated.needed} needed: all kinds"
    return [
        (f"coverage stated, from {basis}", decimal(stated.coverage), NOT_AVAILABLE, str(stated.n)),
        _figure("coverage", sets.coverage),
        _figure("mean number of kinds", sets.size),
        _figure("share of one kind", sets.kind),
        _figure("share that stops at a group", sets.group),
        _figure("share undetermined", sets.undetermined),
        _figure("accuracy of one kind", sets.kind_accuracy),
        _figure("accuracy of a group", sets.group_accuracy),
    ]


def _kind_rows(head: HeadMetrics) -> tuple[Row, ...]:
    return tuple(
        (each.kind, _share(each.precision), _share(each.recall), decimal(each.f1), str(each.support))
        for each in head.kinds
    )


def _share(found: Share) -> str:
    low, high = found.interval
    return decimal(found.share) if math.isnan(low) else f"{decimal(found.share)} ({decimal(low)} to {decimal(high)})"


def _figure(name: str, estimate: Estimate) -> Row:
    low, high = estimate.low, estimate.high
    interval = NOT_AVAILABLE if math.isnan(low) else f"{decimal(low)} to {decimal(high)}"
    return name, decimal(estimate.value), interval, str(estimate.n)
