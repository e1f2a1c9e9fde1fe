"""Draw accuracy over cost, and how labelers stand to the annotators, as figures of their own."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from demur.report.figures import canvas, label
from demur.report.leaderboard_tables import ANNOTATOR, QUESTION_NAMES
from demur.studies.leaderboard import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from demur.stats.resampling import Estimate
    from demur.studies.leaderboard import Entry, Leaderboard, Question

__all__ = ["band_plot", "frontier_plot"]

# The hues of the plots of audits: a contrast of 3 : 1 against white and against near-black alike.
_BLUE, _RUST, _GREY = "#4b80b4", "#c0614a", "#858b95"
_HEIGHT = 3.4
_MARGIN_HEIGHT, _LINE_HEIGHT = 0.9, 0.3
_ABOVE, _BELOW = 0.03, 0.06


def frontier_plot(found: Leaderboard) -> Figure:
    """Draw F1 of the gate and accuracy of the kinds over the cost of a million rows, with the frontier of the first.

    The annotators of the panel, whose cost nobody knows, are a band from the lowest to the highest of them.
    """
    figure, panels = canvas(_HEIGHT, panels=2)
    costs = [one.pace.usd_per_million for one in found.entries if not math.isnan(one.pace.usd_per_million)]
    least = min([cost for cost in costs if cost > 0], default=1.0)
    for axes, title, value in (
        (panels[0], "gate, F1", _f1),
        (panels[1], "main kind of refusals, accuracy", _kinds),
    ):
        _draw_band(axes, found, value)
        # Nothing costs less than nothing: what is free stands at the left, before the logarithm begins.
        axes.set_xscale("symlog", linthresh=least, linscale=0.5)
        for entry in found.entries:
            _point(axes, entry, value)
        axes.set_xlim(-0.35 * least, max([least, *costs]) * 30)
        axes.set_title(title, fontsize=9.5, loc="left")
        axes.set_xlabel("USD for a million rows", fontsize=9.5)
        axes.xaxis.set_major_formatter(lambda cost, _: f"{cost:,g}")
        _fit(axes, [value(entry) for entry in found.entries])
    if found.has_frontier_line:
        line = [found[name] for name in found.frontier]
        ends = [one.pace.usd_per_million for one in line], [one.gate.f1.value for one in line]
        panels[0].plot(*ends, color=_BLUE, linewidth=1.2, drawstyle="steps-post", alpha=0.7)
    return figure


def band_plot(found: Leaderboard) -> Figure:
    """Draw the difference of each labeler to the median annotator, with its interval, one panel for each question."""
    shown = [entry for entry in found.entries if any(band.found.compared for band in entry.bands)]
    figure, panels = canvas(_MARGIN_HEIGHT + _LINE_HEIGHT * max(2, len(shown)), panels=len(QUESTIONS))
    for place, (axes, question) in enumerate(zip(panels, QUESTIONS, strict=True)):
        for row, entry in enumerate(shown):
            _difference(axes, row, entry, question)
        axes.axvline(0, color=axes.xaxis.label.get_color(), linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        names = [label(entry.name) for entry in shown] if place == 0 else [""] * len(shown)
        axes.set_yticks(range(len(shown)), names)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_title(QUESTION_NAMES[question], fontsize=9.5, loc="left")
    figure.supxlabel(f"share of right answers, minus that of the median {ANNOTATOR[found.panel_kind]}", fontsize=9.5)
    return figure


def _difference(axes: Axes, row: int, entry: Entry, question: Question) -> None:
    median, hue = entry.band(question).found.median, _hue(entry)
    if math.isnan(median.value):
        return
    axes.plot([median.low, median.high], [row, row], color=hue, linewidth=1.6, alpha=0.7, solid_capstyle="round")
    axes.plot([median.value], [row], "o", color=hue, markersize=6)


def _draw_band(axes: Axes, found: Leaderboard, value: Callable[[Entry], Estimate]) -> None:
    members = {str(member) for member in found.panel}
    shares = [value(entry).value for entry in found.entries if entry.name in members]
    known = [share for share in shares if not math.isnan(share)]
    if known:
        axes.axhspan(min(known), max(known), color=_GREY, alpha=0.22, linewidth=0)
        axes.axhline(statistics.median(known), color=_GREY, linewidth=1.2)


def _point(axes: Axes, entry: Entry, value: Callable[[Entry], Estimate]) -> None:
    cost, estimate = entry.pace.usd_per_million, value(entry)
    if math.isnan(cost) or math.isnan(estimate.value):
        return
    axes.plot([cost, cost], [estimate.low, estimate.high], color=_hue(entry), linewidth=1.6, alpha=0.7)
    axes.plot([cost], [estimate.value], "o", color=_hue(entry), markersize=6)
    axes.annotate(
        label(entry.name), (cost, estimate.value), xytext=(7, 0), textcoords="offset points", va="center", fontsize=9
    )


def _fit(axes: Axes, shown: list[Estimate]) -> None:
    """Leave room around what is drawn, whiskers among it."""
    ends = [end for one in shown for end in (one.value, one.low, one.high) if not math.isnan(end)]
    if ends:
        # A point at zero stands whole above the edge, as one at 1 does below the other.
        axes.set_ylim(max(-_ABOVE, min(ends) - _BELOW), min(1.0 + _ABOVE, max(ends) + _ABOVE))


def _f1(entry: Entry) -> Estimate:
    return entry.gate.f1


def _kinds(entry: Entry) -> Estimate:
    return entry.head.accuracy


def _hue(entry: Entry) -> str:
    return _RUST if entry.sort == "local" else _BLUE if entry.sort == "judge" else _GREY
