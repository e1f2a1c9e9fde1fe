"""Draw who agrees with whom, and which answers are given for one another, as heat maps of figures of their own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from demur.report.annotator_tables import answer_name
from demur.stats.numbers import probability

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from demur.studies.agreement import Agreement

__all__ = ["confusion_plot", "pairs_plot"]

_CELL = 0.42
_MARGIN = 2.4
_LEAST_WIDTH = 5.0
# Up to here, each cell has room for its number, which says more than a scale of colours.
_MOST_WRITTEN = 20
_NUMBERS: dict[str, Any] = {"fmt": "", "annot_kws": {"fontsize": 8}, "cbar": False}


def pairs_plot(found: Agreement, question: str = "gate", name: str = "cohen") -> Figure:
    """Draw a figure of each two annotators; empty where it is undefined.

    Args:
        found: What was measured.
        question: `gate`, `outcome`, `group` or `kind`.
        name: `cohen` for Cohen's kappa, or `agreement`.
    """
    square = found.matrix(question, name)
    label = "Cohen's \N{GREEK SMALL LETTER KAPPA}" if name == "cohen" else "share of equal answers"
    values = [value for row in square.to_numpy().tolist() for value in row if not math.isnan(value)]
    # From nothing beyond chance to all alike; below chance, the scale goes on.
    return _heat_map(square, label, lowest=min([0.0, *values]))


def confusion_plot(found: Agreement, question: str = "kind") -> Figure:
    """Draw how often two answers meet on a reply, of the replies that have either of them.

    Args:
        found: What was measured.
        question: `kind`, where not to refuse is one more answer, or `outcome`.
    """
    import pandas as pd

    met = [one for one in found.confused if one.question == question]
    order = ("full", "partial", *found.taxonomy.keys, "none")
    keys = [key for key in order if any(key in (one.first, one.second) for one in met)]
    names = [answer_name(found, key) for key in keys]
    square = pd.DataFrame(math.nan, index=names, columns=names)
    for one in met:
        first, second = answer_name(found, one.first), answer_name(found, one.second)
        square.loc[first, second] = square.loc[second, first] = one.share
    return _heat_map(square, "share of replies with either that have both", highest=None)


def _heat_map(square: pd.DataFrame, title: str, *, lowest: float = 0.0, highest: float | None = 1.0) -> Figure:
    import seaborn as sns

    from demur.report.figures import NotebookFigure, label

    side, is_written = _CELL * len(square) + _MARGIN, len(square) <= _MOST_WRITTEN
    figure = NotebookFigure(figsize=(max(_LEAST_WIDTH, side), side), layout="constrained")
    axes = figure.add_subplot()
    names = [label(str(name)) for name in square.columns]
    sns.heatmap(
        square,
        xticklabels=names,
        yticklabels=names,
        vmin=lowest,
        vmax=highest,
        cmap=sns.light_palette("#4b80b4", as_cmap=True),
        square=True,
        ax=axes,
        **(
            {"annot": square.map(probability), **_NUMBERS}
            if is_written
            else {"cbar_kws": {"label": title, "shrink": 0.7}}
        ),
    )
    axes.set_title(title, fontsize=9.5)
    axes.set_xticks(axes.get_xticks(), names, rotation=40, ha="right")
    axes.set_yticks(axes.get_yticks(), names, rotation=0)
    axes.tick_params(length=0, labelsize=9)
    return figure
