"""Draw what audits and evaluations found, as figures of their own: no global state of matplotlib is touched."""

from __future__ import annotations

import colorsys
import math
from typing import TYPE_CHECKING

from demur.stats.composition import UNNAMED
from demur.stats.numbers import count, percent
from demur.studies.tally import BINS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from demur.stats.shares import Share
    from demur.studies.evaluation import Evaluation
    from demur.studies.findings import Audit

__all__ = [
    "category_order",
    "composition_plot",
    "group_colors",
    "groups_plot",
    "probability_plot",
    "risk_coverage_plot",
    "side_order",
    "sides_plot",
]

_BAR_HEIGHT = 0.29
_MARGIN_HEIGHT = 0.75
# Hues that keep a contrast of 3 : 1 against white and against near-black alike.
_GROUP_HUES = ("#c0614a", "#4b80b4")
_UNNAMED_HUE = "#858b95"
_SIDE_HUES = ("#3f8f7b", "#9a6fb0", "#b3833a", "#5f7f9f")
_LINEAR_UP_TO = 40


def composition_plot(audit: Audit) -> Figure:
    """Draw the share of scored replies that refuse for each category, in the groups' colours, with 95 % intervals."""
    keys, by_category = category_order(audit), audit.by_category
    shares = [by_category[key] for key in keys]
    figure, axes = _canvas(len(keys))
    _bars(axes, [audit.category_name(key) for key in keys], shares, [_group(audit, key) for key in keys], audit)
    return figure


def groups_plot(audit: Audit) -> Figure:
    """Draw the share of scored replies that refuse for each group, with 95 % intervals."""
    shares = {key: share for key, share in audit.by_group.items() if key != UNNAMED or share.count}
    names = {group.key: group.name for group in audit.taxonomy.groups}
    figure, axes = _canvas(len(shares))
    _bars(axes, [names.get(key, "Unnamed kind") for key in shares], list(shares.values()), list(shares), audit)
    return figure


def probability_plot(audit: Audit) -> Figure:
    """Draw how many scored replies have which probability of refusal, with the threshold."""
    counts = audit.tally.probabilities
    figure, axes = _canvas(5)
    edges = [position / BINS for position in range(BINS)]
    line = 1.0 if audit.threshold is None else audit.threshold
    hues = [_GROUP_HUES[0] if edge + 0.5 / BINS >= line else _GROUP_HUES[1] for edge in edges]
    axes.bar(edges, counts, width=0.86 / BINS, align="edge", color=hues, linewidth=0)
    # Most replies are near 0 or near 1: on a linear scale, those between could not be seen.
    is_log = max(counts) > _LINEAR_UP_TO
    if is_log:
        axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0, top=max(1.0, max(counts) * (2.5 if is_log else 1.2)))
    axes.yaxis.set_major_formatter(lambda value, _: count(round(value)))
    axes.set(xlim=(0, 1), xlabel="probability of refusal", ylabel="replies, log scale" if is_log else "replies")
    if audit.threshold is not None:
        axes.axvline(line, color=axes.xaxis.label.get_color(), linewidth=1, linestyle=(0, (4, 3)))
        side = "right" if line > 0.5 else "left"  # noqa: PLR2004  # the label goes where there is room
        place = f" threshold {line:g} "
        axes.text(line, 0.97, place, transform=axes.get_xaxis_transform(), ha=side, va="top", fontsize=9)
    axes.grid(visible=False, axis="x")
    return figure


def sides_plot(audit: Audit) -> Figure:
    """Draw the share of refusals for each category and side, one point and 95 % interval a side."""
    sides = audit.tally.sides
    keys = side_order(audit)
    figure, axes = _canvas(len(keys) + 1, per_bar=_BAR_HEIGHT * (0.5 + 0.4 * len(sides)))
    for number, (side, composition) in enumerate(sides.items()):
        by_category = composition.by_category
        shares = [composition.refused, *(by_category[key] for key in keys)]
        offset = (number - (len(sides) - 1) / 2) * 0.56 / max(1, len(sides))
        _points(axes, shares, offset=offset, hue=_SIDE_HUES[number % len(_SIDE_HUES)], label=side)
    _label_rows(axes, ["All refusals", *(audit.category_name(key) for key in keys)])
    if sides:
        figure.legend(loc="outside upper left", frameon=False, ncols=len(sides), fontsize=9.5, handletextpad=0.2)
    return figure


def risk_coverage_plot(evaluation: Evaluation) -> Figure:
    """Draw the share of wrong answers among the surest ones, for gate and kinds, over the share that is answered."""
    figure, axes = _canvas(9)
    for label, curve, hue in (
        ("gate", evaluation.gate_curve, _GROUP_HUES[1]),
        ("kinds of refusals", evaluation.kind_curve, _GROUP_HUES[0]),
    ):
        shares = [point.coverage for point in curve.points]
        axes.plot(shares, [point.risk for point in curve.points], color=hue, linewidth=1.8, label=label)
    axes.set(xlim=(0, 1), ylim=(0, None), xlabel="answered, the surest first", ylabel="wrong among these")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value * 100:g}%")
    figure.legend(loc="outside upper left", frameon=False, ncols=2, fontsize=9.5)
    return figure


def category_order(audit: Audit) -> list[str]:
    """Return the categories by falling count in falling groups; `unnamed` last, and only where it was met."""
    shares, groups = audit.by_category, audit.by_group
    order = [key for key in shares if key != UNNAMED]
    place = {group.key: number for number, group in enumerate(audit.taxonomy.groups)}

    def rank(key: str) -> tuple[int, int, int]:
        group = audit.taxonomy.group_of(key)
        return -groups[group].count, place[group], -shares[key].count

    return sorted(order, key=rank) + ([UNNAMED] if shares[UNNAMED].count else [])


def side_order(audit: Audit) -> list[str]:
    """Return the categories that are met on any side, in the order of all."""
    sides = audit.tally.sides.values()
    return [key for key in category_order(audit) if any(one.category_counts[key] for one in sides)]


def group_colors(audit: Audit) -> dict[str, str]:
    """Return a colour for each group, and grey for refusals of none."""
    keys = [group.key for group in audit.taxonomy.groups]
    hues: Sequence[str] = _GROUP_HUES
    if len(keys) > len(_GROUP_HUES):
        circle = [colorsys.hls_to_rgb(place / len(keys), 0.5, 0.4) for place in range(len(keys))]
        hues = ["#" + "".join(f"{round(255 * part):02x}" for part in color) for color in circle]
    return {**dict(zip(keys, hues, strict=False)), UNNAMED: _UNNAMED_HUE}


def _canvas(rows: int, *, per_bar: float = _BAR_HEIGHT) -> tuple[Figure, Axes]:
    from demur.report.figures import canvas

    figure, (axes,) = canvas(_MARGIN_HEIGHT + per_bar * max(2, rows))
    return figure, axes


def _bars(axes: Axes, labels: Sequence[str], shares: Sequence[Share], groups: Sequence[str], audit: Audit) -> None:
    """Draw one horizontal bar a share, first on top, in its group's colour, with its interval and its count."""
    ends = [tuple(map(_number, (share.interval.low, share.share, share.interval.high))) for share in shares]
    whiskers = [[share - low for low, share, _ in ends], [high - share for _, share, high in ends]]
    colors = group_colors(audit)
    axes.barh(
        range(len(ends)),
        [share for _, share, _ in ends],
        height=0.66,
        color=[colors[group] for group in groups],
        linewidth=0,
        xerr=whiskers,
        error_kw={"ecolor": axes.xaxis.label.get_color(), "elinewidth": 1, "alpha": 0.75},
    )
    _write_counts(axes, shares, [high for _, _, high in ends])
    _label_rows(axes, labels)


def _write_counts(axes: Axes, shares: Sequence[Share], ends: Sequence[float]) -> None:
    """Write count and share of each bar behind the end of its interval."""
    for row, (share, end) in enumerate(zip(shares, ends, strict=True)):
        text = f"{count(share.count)}  ·  {percent(share.share, share.interval)}"
        axes.annotate(text, (end, row), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)
    widest = max(ends, default=0.0)
    # A fifth of the width holds the longest count beside the longest whisker.
    axes.set_xlim(0, (widest if widest > 0 else 1.0) * 1.25)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 1])


def _points(axes: Axes, shares: Sequence[Share], *, offset: float, hue: str, label: str) -> None:
    rows = [row + offset for row in range(len(shares))]
    for row, share in zip(rows, shares, strict=True):
        low, high = (_number(end) for end in share.interval)
        axes.plot([low, high], [row, row], color=hue, linewidth=1.6, alpha=0.7, solid_capstyle="round")
    values = [_number(share.share) for share in shares]
    # A share of 0 sits on the axis: clipped, half of its point would be missing.
    axes.plot(values, rows, "o", color=hue, markersize=5.5, label=label, clip_on=False, zorder=3)


def _label_rows(axes: Axes, labels: Sequence[str]) -> None:
    from demur.report.figures import label

    axes.set_yticks(range(len(labels)), [label(name) for name in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:g}%")
    axes.set_xlabel("of scored replies", fontsize=9.5)


def _group(audit: Audit, key: str) -> str:
    return UNNAMED if key == UNNAMED else audit.taxonomy.group_of(key)


def _number(value: float) -> float:
    """Return a number that can be drawn: what is unknown has no length."""
    return 0.0 if math.isnan(value) else value
