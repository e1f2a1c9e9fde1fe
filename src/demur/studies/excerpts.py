"""Cut texts short enough to show and safe to write anywhere, and know where a sentence of theirs has gone."""

from __future__ import annotations

import re

__all__ = ["excerpt", "excerpt_around", "printable"]

_GAP = " … "
_HEAD_SHARE = 0.7
# A word that the cut goes through is left out, unless it is no word but a wall of characters.
_LAST_WORD = re.compile(r"\s+\S{0,20}$")
_FIRST_WORD = re.compile(r"^\S{0,20}\s+")
# Among them what turns the direction of the text around it; marks of single letters (U+200E, U+200F) turn nothing else.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_Range = tuple[int, int]


def excerpt(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: the middle is left out, and what no file can hold is replaced.

    Example:
        >>> excerpt("I'm sorry, but I cannot help you with that one.", 30)
        "I'm sorry, but I … one."
    """
    return _GAP.join(printable(text[start:end]) for start, end in _ends(text, *_bounds(text), limit))


def excerpt_around(text: str, limit: int, span: _Range) -> tuple[str, _Range | None]:
    """Return an excerpt that shows a span of the text, and where it stands in the excerpt.

    It is the plain excerpt where that shows the whole span. Else the span stands in the middle, with what is left of
    beginning and end around it; a span of more than half of the limit loses its own middle. There is no place for a
    span that lies outside of the text.

    Example:
        >>> excerpt_around("One. Two. Three. I can't do that. Four. Five. Six.", 34, (17, 33))
        ("One. … I can't do that. … Six.", (7, 23))
    """
    start, stop = _bounds(text)
    first, last = max(span[0], start), min(span[1], stop)
    ranges = _ends(text, start, stop, limit)
    if first >= last:
        return excerpt(text, limit), None
    if not any(begin <= first and last <= end for begin, end in ranges):
        ranges = _around(text, (start, stop), (first, last), limit)
    return _joined(text, ranges, (first, last))


def _bounds(text: str) -> _Range:
    """Return where the text begins and ends without the white space around it."""
    start = len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def _ends(text: str, start: int, stop: int, limit: int) -> list[_Range]:
    """Return what is kept of `text[start:stop]`: all of it, or its beginning and its end."""
    if stop - start <= limit:
        return [(start, stop)]
    n_head = int((limit - len(_GAP)) * _HEAD_SHARE)
    n_tail = limit - len(_GAP) - n_head
    return [(start, _head_end(text, start, n_head)), (_tail_start(text, stop, n_tail), stop)]


def _around(text: str, bounds: _Range, span: _Range, limit: int) -> list[_Range]:
    """Return what is kept of the text so that the span is shown: beginning, span, end."""
    (start, stop), (first, last) = bounds, span
    kept = _ends(text, first, last, limit // 2)
    room = max(limit - sum(end - begin for begin, end in kept) - (len(kept) + 1) * len(_GAP), 0)
    n_head = int(room * _HEAD_SHARE)
    n_tail = room - n_head
    head = first if first - start <= n_head else _head_end(text, start, n_head)
    tail = last if stop - last <= n_tail else _tail_start(text, stop, n_tail)
    return [one for one in ((start, head), *kept, (tail, stop)) if one[0] < one[1]]


def _head_end(text: str, start: int, length: int) -> int:
    word = _LAST_WORD.search(text[start : start + length])
    return start + (length if word is None else word.start())


def _tail_start(text: str, stop: int, length: int) -> int:
    word = _FIRST_WORD.match(text[stop - length : stop])
    return stop - length + (0 if word is None else word.end())


def _joined(text: str, ranges: list[_Range], span: _Range) -> tuple[str, _Range]:
    """Join ranges, with a gap where something is left out, and follow the ends of the span."""
    joined, place = "", [0, 0]
    reached = ranges[0][0]
    for begin, end in ranges:
        joined += _GAP if begin > reached else ""
        for side, offset in enumerate(span):
            if begin <= offset <= end and (side == 1 or offset < end):
                place[side] = len(joined) + len(printable(text[begin:offset]))
        joined += printable(text[begin:end])
        reached = end
    return joined, (place[0], place[1])


def printable(text: str) -> str:
    """Return a text without what cannot be written as UTF-8, or may steer the terminal that shows it."""
    written = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", written)
