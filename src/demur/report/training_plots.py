"""Draw how a training went, and what an ablation found, as figures of their own."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from demur.errors import WeightsError
from demur.report.figures import canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from demur.model.weights import Manifest
    from demur.studies.ablation import Line

__all__ = ["ablation_plot", "training_plot"]

# The hues of the plots of audits: a contrast of 3 : 1 against white and against near-black alike.
_BLUE, _RUST = "#4b80b4", "#c0614a"
_EPOCHS_HEIGHT = 2.6
_MARGIN_HEIGHT, _LINE_HEIGHT = 0.8, 0.42
_TITLE_CHARACTERS = 30
# Dots of seeds keep a little below their line's, so that a spread of almost nothing hides none of them.
_SEED_OFFSET = 0.2


def training_plot(manifest: Manifest) -> Figure:
    """Draw the history of a training: the loss on its own rows, and the scores on held-out ones, over the epochs.

    Raises:
        WeightsError: The weights have no history of their own: they are an average.
    """
    history = manifest.training.get("history")
    if history is None:
        message = "these weights were not trained but averaged, and have no history; plot the weights they are made of"
        raise WeightsError(message)
    epochs = [each["epoch"] for each in history]
    figure, (losses, scores) = canvas(_EPOCHS_HEIGHT, panels=2)
    losses.plot(epochs, [each["training_loss"] for each in history], "o-", color=_BLUE)
    losses.set_title("mean loss, training rows", fontsize=9.5, loc="left")
    for name, label, hue in (("gate_f1", "gate, F1", _BLUE), ("kind_accuracy", "kinds, accuracy", _RUST)):
        scores.plot(epochs, [each[name] for each in history], "o-", color=hue, label=label, clip_on=False)
    scores.set_title("score, held-out rows", fontsize=9.5, loc="left")
    scores.set_ylim(0, 1)
    scores.legend(loc="best", frameon=False, fontsize=9.5)
    for axes in (losses, scores):
        axes.set_xticks(epochs)
        axes.set_xlabel("epoch", fontsize=9.5)
    return figure


def ablation_plot(lines: Sequence[Line], columns: Sequence[str] | None = None) -> Figure:
    """Draw variants against each other: a dot at each mean, its spread over the seeds, and below it the seeds.

    A dashed line goes through the mean of the first variant. A figure that is undefined is left out.

    Args:
        lines: At least one, all with the same columns.
        columns: Which of them to draw, one panel each; None for all.
    """
    drawn = list(lines[0].figures) if columns is None else list(columns)
    titles = [textwrap.fill(line.title, _TITLE_CHARACTERS).replace("$", r"\$") for line in lines]
    n_rows = sum(title.count("\n") + 1 for title in titles)
    figure, panels = canvas(_MARGIN_HEIGHT + _LINE_HEIGHT * max(2, n_rows), panels=len(drawn))
    for place, (axes, column) in enumerate(zip(panels, drawn, strict=True)):
        _dots(axes, lines, column)
        axes.set_title(column.replace("$", r"\$"), fontsize=9.5, loc="left")
        axes.set_yticks(range(len(lines)), titles if place == 0 else [""] * len(lines))
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
    return figure


def _dots(axes: Axes, lines: Sequence[Line], column: str) -> None:
    """Draw one panel: whiskers of one standard deviation to both sides of the mean."""
    for row, line in enumerate(lines):
        mean, spread = line.mean(column), line.spread(column)
        if not math.isnan(spread):
            ends = [mean - spread, mean + spread]
            axes.plot(ends, [row, row], color=_BLUE, linewidth=1.6, alpha=0.7, solid_capstyle="round")
        seeds = line.figures[column]
        axes.plot(seeds, [row + _SEED_OFFSET] * len(seeds), "o", color=_BLUE, markersize=3, alpha=0.5)
        axes.plot([mean], [row], "o", color=_BLUE, markersize=6.5)
    if not math.isnan(first := lines[0].mean(column)):
        axes.axvline(first, color=axes.xaxis.label.get_color(), linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
