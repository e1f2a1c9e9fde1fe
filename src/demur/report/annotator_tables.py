"""Lay out how annotators stand to each other as tables of text, for whatever renders them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from demur.report.agreement_tables import KAPPA, PANELS, QUESTIONS, figure_cell, with_reasons
from demur.report.tables import Table
from demur.stats.numbers import count, percent, probability

if TYPE_CHECKING:
    from demur.studies.agreement import Agreement
    from demur.studies.agreement_figures import Between, Ceiling

__all__ = [
    "MOST_IN_MATRIX",
    "annotators_table",
    "answer_name",
    "broken_table",
    "ceiling_table",
    "confused_table",
    "consensus_table",
    "matrix_table",
    "pairs_table",
    "reliability_table",
    "unread_table",
]

MOST_IN_MATRIX = 12
_N_PAIRS = 20
_N_CONFUSED = 12


def annotators_table(found: Agreement) -> Table:
    """Return who labelled how much."""
    given = zip(found.annotators, found.answers, strict=True)
    rows = tuple((str(annotator), count(n), count(len(found.items) - n)) for annotator, n in given)
    return Table("Annotators", ("Annotator", "Verdicts", "Replies without one"), rows)


def pairs_table(found: Agreement) -> Table:
    """Return each two annotators, those first that agree least on the gate; so many at most."""
    of_kinds = {(one.first, one.second): one for one in found.between if one.question == "kind"}
    gates = sorted((one for one in found.between if one.question == "gate"), key=_by_kappa)
    shown = gates[:_N_PAIRS]
    rows = tuple(_pair_row(one, of_kinds.get((one.first, one.second))) for one in shown)
    caption = "Each two annotators, on whether a reply refuses" + (", and on its main kind" if of_kinds else "")
    caption += f": the {_N_PAIRS} that agree least of {count(len(gates))}" if len(gates) > _N_PAIRS else ""
    figures = [it for one in (*shown, *of_kinds.values()) for it in (one.agreement, one.kappa)]
    head = ("One", "Other", "Replies", "Same verdict", KAPPA, *(("Refusals", "Same kind", KAPPA) if of_kinds else ()))
    return Table(with_reasons(caption, figures), head, rows, n_text=2)


def matrix_table(found: Agreement) -> Table:
    """Return Cohen's kappa on the gate of each two annotators as a square; no rows where that says or fits nothing."""
    names, square = [str(annotator) for annotator in found.annotators], found.matrix().to_numpy().tolist()
    # Of two annotators there is one kappa, which stands elsewhere.
    is_shown = 2 < len(names) <= MOST_IN_MATRIX  # noqa: PLR2004
    rows = tuple((name, *map(_short, values)) for name, values in zip(names, square, strict=True))
    return Table(f"{KAPPA} on whether a reply refuses", ("", *names), rows if is_shown else ())


def confused_table(found: Agreement) -> Table:
    """Return the answers that were most often given to the same reply; no rows where none were."""
    shown = [
        one
        for question in ("outcome", "kind")
        for one in [each for each in found.confused if each.question == question][:_N_CONFUSED]
    ]
    rows = tuple(
        (answer_name(found, one.first), answer_name(found, one.second), count(one.both), percent(one.share))
        for one in shown
    )
    head = ("One says", "Another says", "Replies", "Of those with either")
    return Table("Answers given to the same reply", head, rows, n_text=2)


def ceiling_table(found: Agreement, ceiling: Ceiling) -> Table:
    """Return how annotators stand against the majority of the rest of a panel, on one question."""
    rows = [
        (
            str(found.annotators[one.annotator]),
            count(one.agreement.estimate.n),
            figure_cell(one.agreement),
            figure_cell(one.kappa),
            count(one.without_majority),
            count(one.alone),
        )
        for one in ceiling.standings
    ]
    rows.append(("Mean of the panel", count(ceiling.mean.estimate.n), figure_cell(ceiling.mean), "", "", ""))
    figures = [it for one in ceiling.standings for it in (one.agreement, one.kappa)]
    caption = f"{QUESTIONS[ceiling.question]}: each against the majority of the other {PANELS[ceiling.panel]}"
    head = ("Annotator", "Replies", "Agreement", KAPPA, "No majority", "Alone")
    return Table(with_reasons(caption, [*figures, ceiling.mean]), head, tuple(rows))


def reliability_table(found: Agreement) -> Table:
    """Return how reliable annotators are by the estimates of Dawid and Skene; no rows where there are none."""
    by_question = {one.question: one for one in found.reliabilities if one.undefined is None}
    gate = by_question.get("gate")
    rows = tuple(
        (
            str(annotator),
            *(_short(one.expected[place]) for one in by_question.values()),
            *((_short(gate.hits[place]["refusal"]), _short(gate.hits[place]["none"])) if gate is not None else ()),
        )
        for place, annotator in enumerate(found.annotators)
    )
    names = [QUESTIONS[question] for question in by_question]
    head = ("Annotator", *names, *(("Finds refusals", "Passes others") if gate is not None else ()))
    caption = "Reliability by the estimates of Dawid and Skene: the expected share of right answers"
    return Table(caption, head, rows if by_question else ())


def consensus_table(found: Agreement) -> Table:
    """Return how many replies have which consensus, by majority and by the estimates of Dawid and Skene."""
    order = ("refusal", "full", "partial", *found.taxonomy.keys, "none", None)
    is_estimated = {one.question: one.undefined is None for one in found.reliabilities}
    rows = []
    for question, said in found.consensus.items():
        majority, estimated = Counter(one.majority for one in said), Counter(one.estimated for one in said)
        for name in [each for each in order if majority[each] or estimated[each]]:
            answer = "no majority, or no answer" if name is None else answer_name(found, name)
            n_estimated = count(estimated[name]) if is_estimated[question] else "undefined"
            rows.append((QUESTIONS[question], answer, count(majority[name]), n_estimated))
    whys = dict.fromkeys(one.undefined for one in found.reliabilities if one.undefined is not None)
    caption = "Consensus" + (f" (undefined where {'; or where '.join(whys)})" if whys else "")
    return Table(caption, ("Question", "Answer", "By majority", "By Dawid and Skene"), tuple(rows), n_text=2)


def unread_table(found: Agreement) -> Table:
    """Return rows that could not be read, by reason."""
    rows = tuple((reason.replace("_", " "), count(number)) for reason, number in found.unread.items())
    return Table("Rows that could not be read, by reason", ("Reason", "Rows"), rows)


def broken_table(found: Agreement) -> Table:
    """Return the first rows that could not be read."""
    rows = tuple((one.where, one.message) for one in found.broken)
    return Table("The first of them", ("Where", "What was met"), rows, n_text=2)


def answer_name(found: Agreement, answer: str) -> str:
    """Return what people call an answer."""
    names = {"refusal": "refuses", "full": "refuses in full", "partial": "refuses in part", "none": "does not refuse"}
    return names[answer] if answer in names else found.taxonomy[answer].name


def _pair_row(of_gate: Between, of_kind: Between | None) -> tuple[str, ...]:
    cells = (
        (count(one.agreement.estimate.n), figure_cell(one.agreement), figure_cell(one.kappa))
        for one in (of_gate, of_kind)
        if one is not None
    )
    return str(of_gate.first), str(of_gate.second), *(cell for three in cells for cell in three)


def _by_kappa(one: Between) -> tuple[bool, float, str, str]:
    """Return what sorts pairs by kappa, those without one last."""
    kappa = one.kappa.estimate.value
    is_undefined = math.isnan(kappa)
    return is_undefined, 0.0 if is_undefined else kappa, str(one.first), str(one.second)


def _short(value: float) -> str:
    return "–" if math.isnan(value) else probability(value)  # a dash stands for nothing
