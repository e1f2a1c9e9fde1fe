"""Render an agreement as one HTML page that needs nothing else: no script, no request."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from demur.report import agreement_plots as plots
from demur.report import agreement_words as words
from demur.report.agreement import opening, sections
from demur.report.html import page
from demur.report.svg import inline_svg
from demur.studies.writing import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from markupsafe import Markup
    from matplotlib.figure import Figure

    from demur.studies.agreement import Agreement

__all__ = ["render_agreement", "write_agreement"]

# Of more annotators, a heat map has cells too small to see.
_MOST_DRAWN = 60


def write_agreement(found: Agreement, path: Path) -> None:
    """Write the page, whole or not at all.

    Raises:
        OutputError: The place cannot be written.
    """
    with writing(path) as temporary:
        temporary.write_text(render_agreement(found), encoding="utf-8")


def render_agreement(found: Agreement) -> str:
    """Render the page; whatever the data hold stands in it as text, never as markup."""
    drawn: dict[str, list[tuple[Markup, str]]] = defaultdict(list)
    for section, draw, caption in _wanted(found):
        salt = f"{section}-{len(drawn[section])}"
        drawn[section].append((_drawing(draw, caption, salt), caption))
    return page("agreement.html.j2").render(
        found=found, opening=opening(found), sections=sections(found), plots=drawn, methods=words.METHODS
    )


def _wanted(found: Agreement) -> Iterator[tuple[str, Callable[[], Figure], str]]:
    """Yield what there is something to draw of: section, drawing, caption."""
    # Of two annotators there is one figure, which a map does not make clearer.
    if 2 < len(found.annotators) <= _MOST_DRAWN:  # noqa: PLR2004
        for question, asked in (("gate", "whether a reply refuses"), ("kind", "the main kind of a refusal")):
            if any(one.question == question for one in found.between):
                caption = f"Cohen's kappa of each two annotators on {asked}; blank where it is undefined."
                yield "pairs", partial(plots.pairs_plot, found, question), caption
    if any(one.question == "kind" for one in found.confused):
        caption = "How often two answers meet on a reply, of the replies that have either; blank where they never do."
        yield "confused", partial(plots.confusion_plot, found), caption


def _drawing(draw: Callable[[], Figure], title: str, salt: str) -> Markup:
    from markupsafe import Markup

    # The names of annotators are in it as text, which matplotlib escapes.
    return Markup(inline_svg(draw, title=title, salt=salt))  # noqa: S704
