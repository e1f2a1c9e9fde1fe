"""Lay out the coefficients of an agreement as tables of text, for whatever renders them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demur.data.annotated import ANNOTATOR_KINDS
from demur.report.tables import Table
from demur.stats.agreement import COEFFICIENTS
from demur.stats.numbers import count, decimal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from demur.stats.agreement import Coefficient
    from demur.studies.agreement import Agreement

__all__ = [
    "KAPPA",
    "PANELS",
    "QUESTIONS",
    "figure_cell",
    "one_against_rest_table",
    "overall_table",
    "sets_table",
    "source_tables",
    "with_reasons",
]

QUESTIONS = {
    "gate": "Refuses or not",
    "outcome": "In full, in part or not",
    "group": "Group of a refusal",
    "kind": "Main kind of a refusal",
}
PANELS = {"human": "people", "llm": "language models"}
KAPPA = "Cohen's \N{GREEK SMALL LETTER KAPPA}"

_ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
_HEADS = ("Agreement", KAPPA, "Fleiss' \N{GREEK SMALL LETTER KAPPA}", f"Krippendorff's {_ALPHA}", "Gwet's AC1")
_SET_FIGURES = ("similarity_masi", "alpha_masi", "similarity_jaccard", "alpha_jaccard")
_SET_HEADS = ("MASI similarity", f"{_ALPHA}, MASI", "Jaccard similarity", f"{_ALPHA}, Jaccard")


def overall_table(found: Agreement) -> Table:
    """Return the coefficients of each question, over everybody, and over people and language models apart."""
    picked = [
        (name, who, _picked(found, question, part, of, COEFFICIENTS))
        for question, name in QUESTIONS.items()
        for part, of, who in _sorts()
    ]
    rows = tuple((name, who, *_cells(figures)) for name, who, figures in picked if figures)
    caption = with_reasons("Agreement, with 95% intervals", (one for *_, figures in picked for one in figures))
    return Table(caption, ("Question", "Annotators", "Replies", *_HEADS), rows, n_text=2)


def sets_table(found: Agreement) -> Table:
    """Return the agreement on all kinds of a refusal, which may be several; no rows where nobody named one."""
    parts = [*_sorts(), *(("source", name, name) for name in _sources(found))]
    picked = [(who, _picked(found, "kinds", part, of, _SET_FIGURES)) for part, of, who in parts]
    picked = [(who, figures) for who, figures in picked if figures and (figures[0].estimate.n or who == "all")]
    rows = tuple((who, *_cells(figures)) for who, figures in picked)
    caption = with_reasons("All kinds of a refusal, as sets", (one for _, figures in picked for one in figures))
    return Table(caption, ("Annotators or source", "Replies", *_SET_HEADS), rows)


def source_tables(found: Agreement) -> tuple[Table, ...]:
    """Return the coefficients by source, one table for each question; none where there is one source.

    A source of which no reply has two answers has nothing to say here.
    """
    tables = []
    for question, name in QUESTIONS.items():
        picked = [(source, _picked(found, question, "source", source, COEFFICIENTS)) for source in _sources(found)]
        picked = [(source, figures) for source, figures in picked if figures and figures[0].estimate.n]
        rows = tuple((source, *_cells(figures)) for source, figures in picked)
        caption = with_reasons(f"{name}, by source", (one for _, figures in picked for one in figures))
        tables += [Table(caption, ("Source", "Replies", *_HEADS), rows)] if rows else []
    return tuple(tables)


def one_against_rest_table(found: Agreement) -> Table:
    """Return the coefficients of each group and kind against all other replies; no rows where nobody named one."""
    names = {("is_group", group.key): group.name for group in found.taxonomy.groups}
    names |= {("is_kind", kind.key): kind.name for kind in found.taxonomy}
    picked = [
        (name, found.named[question][of], _picked(found, question, question.removeprefix("is_"), of, COEFFICIENTS))
        for (question, of), name in names.items()
        if found.named[question].get(of)
    ]
    rows = tuple((name, count(named), *_cells(figures)) for name, named, figures in picked)
    caption = "Each group and kind against all other replies"
    caption = with_reasons(caption, (one for *_, figures in picked for one in figures))
    return Table(caption, ("Refusal of", "Named in", "Replies", *_HEADS), rows)


def figure_cell(coefficient: Coefficient) -> str:
    """Write a figure with its interval, or that there is none.

    Example:
        >>> from demur.stats.agreement import Coefficient
        >>> from demur.stats.resampling import Estimate
        >>> figure_cell(Coefficient("ac1", Estimate(0.9536, 0.9366, 0.9706, 100)))
        '0.954 (0.937 to 0.971)'
    """
    value, low, high = coefficient.estimate.value, coefficient.estimate.low, coefficient.estimate.high
    if math.isnan(value):
        return "undefined"
    return decimal(value) if math.isnan(low) else f"{decimal(value)} ({decimal(low)} to {decimal(high)})"


def with_reasons(caption: str, coefficients: Iterable[Coefficient]) -> str:
    """Add to a caption why figures of its table are undefined, where any is."""
    reasons = dict.fromkeys(one.undefined for one in coefficients if one.undefined is not None)
    return f"{caption} (undefined where {'; or where '.join(reasons)})" if reasons else caption


def _sorts() -> list[tuple[str, str, str]]:
    """Return the parts that are told by who answered: part, which, and what it is called."""
    return [("all", "", "all"), *(("annotators", kind, PANELS[kind]) for kind in ANNOTATOR_KINDS)]


def _sources(found: Agreement) -> list[str]:
    return list(dict.fromkeys(one.of for one in found.figures if one.part == "source"))


def _picked(found: Agreement, question: str, part: str, of: str, names: Sequence[str]) -> list[Coefficient]:
    """Return some coefficients of one part in order; none where the question was not asked of it."""
    asked = {
        one.coefficient.name: one.coefficient
        for one in found.figures
        if (one.question, one.part, one.of) == (question, part, of)
    }
    return [asked[name] for name in names if name in asked]


def _cells(figures: Sequence[Coefficient]) -> tuple[str, ...]:
    return count(figures[0].estimate.n), *(figure_cell(one) for one in figures)
