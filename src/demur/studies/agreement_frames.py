"""Lay an agreement out as pandas frames, which notebooks show and JSON takes."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from demur.data.annotated import Annotator
    from demur.stats.agreement import Coefficient
    from demur.studies.agreement_figures import Between, Ceiling, Consensus, Figure, Reliability
    from demur.studies.disputes import Confused, Disputed

__all__ = [
    "between_frame",
    "ceilings_frame",
    "confused_frame",
    "consensus_frame",
    "disputed_frame",
    "figures_frame",
    "matrix_frame",
    "reliabilities_frame",
]

_BETWEEN = ("cohen", "agreement")
_COEFFICIENT = ("coefficient", "value", "low", "high", "n", "undefined")


def figures_frame(figures: Sequence[Figure]) -> pd.DataFrame:
    """Return one row for each figure."""
    rows = [{"question": one.question, "part": one.part, "of": one.of, **_cells(one.coefficient)} for one in figures]
    return _frame(rows, "question", "part", "of", *_COEFFICIENT)


def between_frame(between: Sequence[Between]) -> pd.DataFrame:
    """Return two rows, agreement and Cohen's kappa, for each two annotators and question."""
    rows = [
        {"question": one.question, "first": str(one.first), "second": str(one.second), **_cells(coefficient)}
        for one in between
        for coefficient in (one.agreement, one.kappa)
    ]
    return _frame(rows, "question", "first", "second", *_COEFFICIENT)


def matrix_frame(annotators: Sequence[Annotator], between: Sequence[Between], question: str, name: str) -> pd.DataFrame:
    """Return one figure of each two annotators, (annotators, annotators); nan where it is undefined.

    Raises:
        KeyError: There is no such figure, or none of that question.
    """
    import pandas as pd

    questions = dict.fromkeys(one.question for one in between)
    if name not in _BETWEEN:
        message = f"no figure {name!r} of two annotators; there are {', '.join(map(repr, _BETWEEN))}"
        raise KeyError(message)
    if between and question not in questions:
        message = f"no figures of two annotators for {question!r}; there are {', '.join(map(repr, questions))}"
        raise KeyError(message)
    names = [str(annotator) for annotator in annotators]
    square = pd.DataFrame(math.nan, index=names, columns=names)
    for one in between:
        if one.question == question:
            value = (one.kappa if name == "cohen" else one.agreement).estimate.value
            square.loc[str(one.first), str(one.second)] = value
            square.loc[str(one.second), str(one.first)] = value
    return square


def ceilings_frame(annotators: Sequence[Annotator], ceilings: Sequence[Ceiling]) -> pd.DataFrame:
    """Return two rows, agreement and Cohen's kappa, for each question, panel and annotator, and the panel's mean."""
    rows: list[dict[str, Any]] = []
    for each in ceilings:
        asked = {"question": each.question, "panel": each.panel}
        for one in each.standings:
            left_out = {"without_majority": one.without_majority, "alone": one.alone}
            who = str(annotators[one.annotator])
            rows += [{**asked, "annotator": who, **_cells(it), **left_out} for it in (one.agreement, one.kappa)]
        rows.append({**asked, "annotator": "mean of the panel", **_cells(each.mean)})
    counts = ["without_majority", "alone"]
    found = _frame(rows, "question", "panel", "annotator", *_COEFFICIENT, *counts)
    # Of objects: the mean has no such counts, and a column of floats, which can hold a gap, would make them 3.0.
    found[counts] = found[counts].astype("Int64").astype(object).where(found[counts].notna(), None)
    return found


def reliabilities_frame(annotators: Sequence[Annotator], reliabilities: Sequence[Reliability]) -> pd.DataFrame:
    """Return one row for each question, annotator and class; the expected share of right answers stands at class ''."""
    rows: list[dict[str, Any]] = []
    for one in reliabilities:
        for annotator, expected, hits in zip(annotators, one.expected, one.hits, strict=False):
            asked = {"question": one.question, "annotator": str(annotator)}
            rows.append({**asked, "class": "", "reliability": expected})
            rows += [{**asked, "class": name, "reliability": hit} for name, hit in hits.items()]
    return _frame(rows, "question", "annotator", "class", "reliability")


def confused_frame(confused: Sequence[Confused]) -> pd.DataFrame:
    """Return one row for each two answers that were given to the same replies."""
    names = ("question", "first", "second", "both", "either", "share")
    return _frame([{name: getattr(one, name) for name in names} for one in confused], *names)


def disputed_frame(disputed: Sequence[Disputed]) -> pd.DataFrame:
    """Return one row for each disputed reply and annotator, with what that annotator said."""
    names = ("id", "source", "where", "disagreement", "request", "reply")
    rows = [
        {
            **{name: getattr(one, name) for name in names},
            "annotator": str(said.annotator),
            "verdict": said.outcome,
            "labels": ", ".join(said.labels),
            "sure": math.nan if said.sure is None else said.sure,
        }
        for one in disputed
        for said in one.said
    ]
    return _frame(rows, *names, "annotator", "verdict", "labels", "sure")


def consensus_frame(items: Sequence[str], consensus: Mapping[str, Sequence[Consensus]]) -> pd.DataFrame:
    """Return one row for each reply, with majority, estimate and its probability of each question."""
    import pandas as pd

    columns = {
        f"{question}_{name}": [getattr(one, name) for one in found]
        for question, found in consensus.items()
        for name in ("majority", "estimated", "probability")
    }
    return pd.DataFrame(columns, index=pd.Index(items, name="id"))


def _cells(coefficient: Coefficient) -> dict[str, Any]:
    return dict(
        zip(_COEFFICIENT, (coefficient.name, *astuple(coefficient.estimate), coefficient.undefined), strict=True)
    )


def _frame(rows: list[dict[str, Any]], *columns: str) -> pd.DataFrame:
    """Return a frame that has its columns even where it has no row."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))
