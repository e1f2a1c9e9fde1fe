"""Render a leaderboard as one HTML page that needs nothing else: no script, no request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from demur.report import leaderboard_words as words
from demur.report.html import page
from demur.report.leaderboard_plots import band_plot, frontier_plot
from demur.report.leaderboard_tables import ANNOTATOR, tables
from demur.report.svg import inline_svg

if TYPE_CHECKING:
    from markupsafe import Markup

    from demur.studies.leaderboard import Leaderboard

__all__ = ["render_leaderboard"]


def render_leaderboard(found: Leaderboard) -> str:
    """Render the page; whatever the data hold stands in it as text, never as markup."""
    first, *others = tables(found)
    return page("leaderboard.html.j2").render(
        found=found,
        opening=(words.headline(found), *words.notes(found)),
        first=first,
        others=others,
        plots=_plots(found),
        methods=words.METHODS,
    )


def _plots(found: Leaderboard) -> list[tuple[Markup, str]]:
    """Draw what there is something to draw of, each with its caption."""
    from markupsafe import Markup

    wanted = [(frontier_plot, words.plot_caption(found))] if found.has_costs else []
    if any(band.found.compared for entry in found.entries for band in entry.bands):
        who = ANNOTATOR[found.panel_kind]
        wanted.append((band_plot, f"Each labeler against the median {who} on the same replies, with 95% intervals."))
    # The names of labelers are in them as text, which matplotlib escapes.
    return [
        (Markup(inline_svg(partial(draw, found), title=caption, salt=f"leaderboard-{place}")), caption)  # noqa: S704
        for place, (draw, caption) in enumerate(wanted)
    ]
