"""Turn figures into SVG that belongs to the page: its ink is the page's, in light and in dark."""

from __future__ import annotations

import html
import io
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.figure import Figure

__all__ = ["inline_svg"]

# Colours that no plot uses of itself: each stands for a variable of the page's style sheet.
_INK, _FAINT = "#010203", "#040506"
_PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'<svg[^>]*?viewBox="(?P<box>[^"]+)"[^>]*>', re.DOTALL)


def inline_svg(draw: Callable[[], Figure], *, title: str, salt: str) -> str:
    """Draw, and return one `<svg>` element for a page.

    Args:
        draw: Makes the figure; called while colours stand for the page's.
        title: What the figure shows, for those who do not see it.
        salt: Keeps the identifiers of two figures on a page apart; the same figure gives the same bytes.
    """
    with _page_ink(salt):
        figure = draw()
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = _METADATA.sub("", _PROLOGUE.sub("", buffer.getvalue()))
    text = text.replace(_INK, "currentColor").replace(_FAINT, "var(--faint)")
    alt = html.escape(title, quote=True)
    return _SIZE.sub(
        lambda found: (
            f'<svg role="img" aria-label="{alt}" viewBox="{found["box"]}" '
            'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        ),
        text,
        count=1,
    )


@contextmanager
def _page_ink(salt: str) -> Iterator[None]:
    import matplotlib as mpl

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.edgecolor": _FAINT,
        "grid.color": _FAINT,
    }
    with mpl.rc_context(settings):
        yield
