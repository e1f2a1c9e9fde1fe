"""Plots: drawn from any audit, without touching the global state of matplotlib."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from demur.report import plots
from demur.report.svg import inline_svg
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from demur.studies.findings import Audit

ALL = [plots.composition_plot, plots.groups_plot, plots.probability_plot, plots.sides_plot]


def _taxonomy(n_categories: int, n_groups: int) -> Taxonomy:
    document = asdict(Taxonomy.load())
    groups = [{"key": f"g{number}", "name": f"Group ${number}$", "definition": "G."} for number in range(n_groups)]
    categories = [
        {"key": f"k{number}", "name": f"Kind <{number}> & $x_$", "group": f"g{number % n_groups}", "definition": "K."}
        for number in range(n_categories)
    ]
    changed = {"groups": groups, "categories": categories, "hard_cases": []}
    return Taxonomy.from_mapping({**document, **changed}, where="test")


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize(("n_categories", "n_groups"), [(2, 1), (16, 2), (100, 12)])
def test_any_taxonomy_can_be_drawn(
    draw: Callable[[Audit], Figure],
    n_categories: int,
    n_groups: int,
    paired_audit: Callable[[Taxonomy], Audit],
) -> None:
    """Two categories or a hundred, one group or twelve, with names that look like markup."""
    found = paired_audit(_taxonomy(n_categories, n_groups))
    drawing = inline_svg(partial(draw, found), title='a "title"', salt="x")
    assert ET.fromstring(drawing).attrib["aria-label"] == 'a "title"'  # noqa: S314  # the drawing is ours


@pytest.mark.parametrize("draw", ALL)
def test_nothing_can_be_drawn(draw: Callable[[Audit], Figure], empty_audit: Audit) -> None:
    """An audit of nothing gives an empty plot and no warning."""
    ET.fromstring(inline_svg(partial(draw, empty_audit), title="empty", salt="x"))  # noqa: S314  # the drawing is ours


def test_bars_are_as_long_as_the_shares(full_audit: Audit) -> None:
    """One bar for each category, in the order of the table."""
    axes = plots.composition_plot(full_audit).axes[0]
    keys = plots.category_order(full_audit)
    shares = full_audit.by_category
    bars = [patch.get_width() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert bars == pytest.approx([shares[key].share for key in keys])
    assert [label.get_text() for label in axes.get_yticklabels()] == [full_audit.category_name(key) for key in keys]


def test_bars_have_their_groups_colour_and_their_interval(full_audit: Audit) -> None:
    """The whiskers are Wilson's intervals."""
    axes = plots.composition_plot(full_audit).axes[0]
    keys = plots.category_order(full_audit)
    colors = plots.group_colors(full_audit)
    expected = [colors[full_audit.taxonomy.group_of(key)] for key in keys]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == expected
    (whiskers,) = (drawn for drawn in axes.collections if isinstance(drawn, LineCollection))
    ends = [np.asarray(segment)[:, 0].tolist() for segment in whiskers.get_segments()]
    assert ends == [pytest.approx(list(full_audit.by_category[key].interval)) for key in keys]


def test_categories_stand_in_their_groups(full_audit: Audit) -> None:
    """The order goes through one group after the other, each by falling count."""
    keys = plots.category_order(full_audit)
    groups = [full_audit.taxonomy.group_of(key) for key in keys]
    assert len([1 for before, after in pairwise(groups) if before != after]) == 1
    counts = [full_audit.by_category[key].count for key in keys if full_audit.taxonomy.group_of(key) == groups[0]]
    assert counts == sorted(counts, reverse=True)


def test_the_global_settings_of_matplotlib_stay(full_audit: Audit) -> None:
    """Neither the backend nor a setting is another one afterwards."""
    before = {key: value for key, value in mpl.rcParams.items() if key != "backend"}
    backend = mpl.rcParams._get("backend")
    inline_svg(partial(plots.composition_plot, full_audit), title="t", salt="x")
    assert {key: value for key, value in mpl.rcParams.items() if key != "backend"} == before
    assert mpl.rcParams._get("backend") == backend


def test_ink_is_the_pages(full_audit: Audit) -> None:
    """Text and lines take the colour of the page, so that they are seen in light and in dark."""
    drawing = inline_svg(partial(plots.composition_plot, full_audit), title="t", salt="x")
    assert "currentColor" in drawing
    assert "var(--faint)" in drawing
    assert "#000000" not in drawing
