"""Lay a leaderboard out as tables of text, for whatever renders them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demur.report.tables import Table
from demur.stats.numbers import NOT_AVAILABLE, count, decimal, percent
from demur.studies.leaderboard import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.stats.resampling import Estimate
    from demur.studies.leaderboard import Band, Entry, Leaderboard, Question, Versus

__all__ = [
    "ANNOTATOR",
    "QUESTION_NAMES",
    "SORTS",
    "agreement_table",
    "band_table",
    "main_table",
    "pace_table",
    "short_table",
    "tables",
    "versus_tables",
]

SORTS = {"local": "program", "judge": "LLM judge", "human": "person", "llm": "LLM annotator"}
ANNOTATOR = {"human": "person", "llm": "LLM annotator"}
QUESTION_NAMES: dict[Question, str] = {"gate": "refuses or not", "kind": "main kind"}

_KAPPA, _ALPHA = "\N{GREEK SMALL LETTER KAPPA}", "\N{GREEK SMALL LETTER ALPHA}"
_LEAST_P = 0.001
_SMALL_SECONDS, _TINY_SECONDS = 1.0, 1e-4


def tables(found: Leaderboard) -> tuple[Table, ...]:
    """Return all tables that have rows, the leaderboard first."""
    every = (
        main_table(found), band_table(found), *versus_tables(found), agreement_table(found), pace_table(found)
    )  # fmt: skip
    return tuple(table for table in every if table.rows)


def main_table(found: Leaderboard) -> Table:
    """Return the leaderboard: each labeler with its main figures."""
    head = (
        "Labeler", "What it is", "Replies read", "Unscored", "Measured on", "Precision", "Recall", "F1", "Kinds",
        "Group", "Macro-F1", _KAPPA, _ALPHA, f"Against the median {ANNOTATOR[found.panel_kind]}", "Calibration error",
        "Rows/s", "Latency", "USD a million rows",
    )  # fmt: skip
    rows = tuple((entry.name, SORTS[entry.sort], *_main(found, entry)) for entry in found.entries)
    return Table("Leaderboard, by F1 of the gate", head, rows, n_text=2)


def short_table(found: Leaderboard) -> Table:
    """Return what fits a terminal."""
    head = ("Labeler", "Read", "F1", "Kinds", f"Against the median {ANNOTATOR[found.panel_kind]}", "USD/million")
    rows = tuple(
        (entry.name, _read(found, entry), figure(entry.gate.f1), figure(entry.head.accuracy),
         standing(entry.band("gate")), _dollars(entry.pace.usd_per_million))
        for entry in found.entries
    )  # fmt: skip
    return Table("Leaderboard, by F1 of the gate, with 95% intervals", head, rows)


def band_table(found: Leaderboard) -> Table:
    """Return where each labeler stands among the annotators."""
    who = ANNOTATOR[found.panel_kind]
    head = [name for question in QUESTIONS for name in _band_head(question, who)]
    rows = tuple(
        (entry.name, *(cell for question in QUESTIONS for cell in _band_cells(entry.band(question))))
        for entry in found.entries
        if any(band.found.compared for band in entry.bands)
    )
    caption = f"Against the median {who}: share of right answers, minus that of the median, on the same replies"
    return Table(caption, ("Labeler", *head), rows)


def versus_tables(found: Leaderboard) -> Iterator[Table]:
    """Return how each labeler stands to the reference, one table for each question."""
    for question in QUESTIONS:
        is_gate = question == "gate"
        heads = ("Replies", "Difference", *(("Difference in F1",) if is_gate else ()))
        tests = ("Only it is right", "Only the reference is", "McNemar's p", "Holm's p")
        rows = tuple(
            (entry.name, *_versus_cells(one))
            for entry in found.entries
            for one in entry.versus
            if one.question == question and one.difference.n
        )
        yield Table(f"Against {found.reference}: {QUESTION_NAMES[question]}", ("Labeler", *heads, *tests), rows)


def agreement_table(found: Leaderboard) -> Table:
    """Return the agreement with the consensus, and the figures of probabilities."""
    head = (
        "Labeler",
        _KAPPA,
        _ALPHA,
        f"{_KAPPA} of kinds",
        f"{_ALPHA} of kinds",
        "AUROC",
        "Calibration error",
        "By noise",
    )
    names = ("kappa", "alpha", "kind_kappa", "kind_alpha", "auroc", "calibration_error", "calibration_noise")
    rows = tuple((entry.name, *(figure(entry.figures[name]) for name in names)) for entry in found.entries)
    return Table("Agreement with the consensus, and probabilities", head, rows)


def pace_table(found: Leaderboard) -> Table:
    """Return speed and cost."""
    head = ("Labeler", "Cost rests on", "Rows/s", "Latency of one reply", "USD a million rows", "On the frontier")
    rows = tuple(
        (entry.name, entry.pace.basis, _rate(entry.pace.rows_per_second), _seconds(entry.pace.latency_seconds),
         _dollars(entry.pace.usd_per_million), "yes" if entry.name in found.frontier else "no")
        for entry in found.entries
        if not (math.isnan(entry.pace.usd_per_million) and math.isnan(entry.pace.rows_per_second))
    )  # fmt: skip
    return Table("Speed and cost", head, rows, n_text=2)


def figure(estimate: Estimate, *, signed: bool = False) -> str:
    """Write a figure with its interval."""
    value = decimal(estimate.value, signed=signed)
    if math.isnan(estimate.value) or math.isnan(estimate.low):
        return value
    return f"{value} ({decimal(estimate.low, signed=signed)} to {decimal(estimate.high, signed=signed)})"


def standing(band: Band) -> str:
    """Write how a labeler stands to the median annotator."""
    if not band.found.compared:
        return NOT_AVAILABLE
    return f"{figure(band.found.median, signed=True)}, {band.standing}"


def _main(found: Leaderboard, entry: Entry) -> tuple[str, ...]:
    gate, head, pace = entry.gate, entry.head, entry.pace
    return (
        _read(found, entry),
        percent(entry.unscored_share),
        count(gate.accuracy.n),
        *(_plain(one) for one in (gate.precision, gate.recall)),
        figure(gate.f1),
        figure(head.accuracy),
        *(_plain(one) for one in (head.group_accuracy, head.macro_f1, entry.kappa, entry.alpha)),
        standing(entry.band("gate")),
        _plain(gate.calibration_error),
        _rate(pace.rows_per_second),
        _seconds(pace.latency_seconds),
        _dollars(pace.usd_per_million),
    )


def _read(found: Leaderboard, entry: Entry) -> str:
    return f"{count(entry.read)} of {count(found.rows)}"


def _band_head(question: Question, who: str) -> tuple[str, ...]:
    name = QUESTION_NAMES[question]
    return (f"{name[0].upper()}{name[1:]}", "Standing", "Mean over them", f"Better than, of each {who}", "Replies")


def _band_cells(band: Band) -> tuple[str, ...]:
    found = band.found
    if not found.compared:
        return (NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE, NOT_AVAILABLE, "0")
    beaten = f"{found.beaten} of {found.compared}"
    mean = figure(found.mean, signed=True)
    return (figure(found.median, signed=True), band.standing, mean, beaten, count(found.median.n))


def _versus_cells(one: Versus) -> tuple[str, ...]:
    f1 = () if one.f1_difference is None else (figure(one.f1_difference, signed=True),)
    test = one.test
    counts = (count(test.only_first), count(test.only_second))
    return (
        count(one.difference.n), figure(one.difference, signed=True), *f1, *counts, _p(test.p_value), _p(test.adjusted)
    )  # fmt: skip


def _plain(estimate: Estimate) -> str:
    return decimal(estimate.value)


def _p(value: float) -> str:
    return f"<{_LEAST_P}" if value < _LEAST_P else decimal(value)


def _rate(value: float) -> str:
    return NOT_AVAILABLE if math.isnan(value) else f"{value:,.1f}"


def _seconds(value: float) -> str:
    if math.isnan(value):
        return NOT_AVAILABLE
    if 0 < value < _TINY_SECONDS:
        return f"{value * 1e6:.3g} µs"
    return f"{value:.2f} s" if value >= _SMALL_SECONDS else f"{value * 1000:.1f} ms"


def _dollars(value: float) -> str:
    """Write an amount in cents from one USD on, and below in three digits: what is cheap never reads as free."""
    if math.isnan(value):
        return NOT_AVAILABLE
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
