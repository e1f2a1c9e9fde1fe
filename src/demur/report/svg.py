"""Turn figures into SVG that belongs to the page: its ink is the page's, in light and in dark."""

from __future__ import annotations

import html
import io
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from matplotlib.figure import Figure

__all__ = ["inline_svg", "write_svg"]

# Colours that no plot uses of itself: each stands for a variable of the page's style sheet.
_INK, _FAINT = "#010203", "#040506"
_PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_GROUP_ID = re.compile(r'(?<=<g) id="[^"]*"')
_SIZE = re.compile(r'<svg[^>]*?viewBox="(?P<box>[^"]+)"[^>]*>', re.DOTALL)


def inline_svg(draw: Callable[[], Figure], *, title: str, salt: str) -> str:
    """Draw, and return one `<svg>` element for a page.

    Args:
        draw: Makes the figure; called while colours stand for the page's.
        title: What the figure shows, for those who do not see it.
        salt: Keeps the identifiers of two figures on a page apart; the same figure gives the same bytes.
    """
    with _text_as_text(), _page_ink(salt):
        figure = draw()
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    # Groups are numbered alike in every figure, and nothing refers to them.
    text = _GROUP_ID.sub("", _METADATA.sub("", _PROLOGUE.sub("", buffer.getvalue())))
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


def write_svg(figure: Figure, path: Path) -> None:
    """Write a figure to a file of its own, with its text as text, which can be searched and read aloud."""
    with _text_as_text():
        figure.savefig(path, format="svg", metadata={"Date": None})


@contextmanager
def _text_as_text() -> Iterator[None]:
    """Leave the shapes of letters to the reader's fonts; what ours lack is then no news."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


@contextmanager
def _page_ink(salt: str) -> Iterator[None]:
    import matplotlib as mpl

    settings: dict[Any, Any] = {
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
