"""Read a source as conversations: each file in the layout that its rows show, or in the one that was named."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from demur.conversation import Conversation
from demur.data.columns import judged_column, reply_column
from demur.data.doubts import prompt_doubt, reply_doubt
from demur.data.judged import check_turns
from demur.data.likeness import is_nothing
from demur.data.rows import NOT_UTF8, BrokenRow
from demur.data.shapes import detect, named
from demur.errors import LayoutError, RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from demur.data.judged import Turns
    from demur.data.rows import Row
    from demur.data.shapes import Layout
    from demur.data.sources import Source

__all__ = ["read_conversations", "read_row", "until_understood", "warn_of_doubt"]

_LOG = logging.getLogger(__name__)
# Of a source, and of each of its files, of which so many rows fit no layout, none of the others is expected to.
_HOPELESS_ROWS = 100
# Why a row may have nothing to judge where its file's layout looks for it, and yet have it elsewhere.
_NOTHING_THERE = frozenset({"null_content", "no_assistant_turn"})


def read_conversations(
    source: Source,
    *,
    layout: str | None = None,
    fields: Mapping[str, str] = {},
    turns: Turns = "last",
    limit: int | None = None,
    on_layout: Callable[[str, Layout], None] | None = None,
) -> Iterator[Conversation | BrokenRow]:
    """Yield the conversations of a source in order; what a row or a reply of it lacks arrives as a `BrokenRow`.

    A row that gives no reply in its file's layout is read in its own, if it has one. Rows that fit no layout are
    broken, with the reason `unknown_layout`, wherever they stand; a file among others that is a single JSON object, a
    setting rather than data, is left out with a warning.

    Args:
        source: What to read.
        layout: Name of the layout, or None to find it for each file.
        fields: Columns by part, as `--field part=column` gives them.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.
        limit: How many rows to read.
        on_layout: Told each file and the layout that it is read in, before its first conversation.

    Raises:
        LayoutError: There is no layout of that name; or no row fits one, neither among the first hundred nor among the
            first hundred of another file.
        SourceError: The source cannot be read.
        ValueError: `turns` is neither `last` nor `all`.
    """
    check_turns(turns)
    reading = _Reading(None if layout is None else named(layout, fields), fields, on_layout)
    return reading.conversations(source, turns, limit)


def read_row(
    row: Row, layout: Layout, *, turns: Turns, fields: Mapping[str, str], is_named: bool
) -> tuple[Conversation | BrokenRow, ...]:
    """Read a row in its file's layout; where that finds no reply, in the row's own, for files are merged of several.

    Args:
        row: Where to read.
        layout: What the file's first row showed, or what was named.
        turns: Whether the last assistant turn is judged, or `all` of them.
        fields: Columns by part, as they were given.
        is_named: Whether the layout was named, and no other is to be tried.

    Raises:
        RowError: The row cannot be read.
    """
    if not is_named:
        layout = layout.for_row(row, fields)
    try:
        found = layout.replies(row, turns=turns)
    except RowError as error:
        found = (BrokenRow(row.position, error, row.file, row.line),)
    reasons = {one.error.reason for one in found if isinstance(one, BrokenRow)}
    is_read = any(isinstance(one, Conversation) for one in found) and not layout.is_empty_in(row.fields)
    if is_named or is_read or not reasons <= {*_NOTHING_THERE, "unreadable_row"}:
        return found
    try:
        own = detect(row.fields, fields)
    except LayoutError:
        return found
    # Any text beside a null may be a bare reply, and a title or a comment as well; so may a text in place of a
    # conversation, such as "N/A". What only leaves out a column that cannot be read reads less than is there.
    is_any_text = reasons <= _NOTHING_THERE or judged_column(own.columns) in layout.columns.values()
    if own.columns.items() <= layout.columns.items() or (own.name == "reply" and is_any_text):
        return found
    # Beside a reply that is there and cannot be read, another is mostly the reference.
    taken = reply_column(layout.columns)
    if not is_nothing(row.fields.get(taken or "")) and reply_column(own.columns) not in (None, taken):
        return found
    return own.replies(row, turns=turns)


def warn_of_doubt(layout: Layout, row: Row, fields: Mapping[str, str], told: set[str], *, is_named: bool) -> None:
    """Say, once, where another column may be the reply, or what a bare one answers, and nobody said which one is.

    Args:
        layout: What the row is read in.
        row: The first row of a file.
        fields: Columns by part, as they were given.
        told: What was said before; what is said now is added.
        is_named: Whether the layout was named: a bare reply is meant to be one.
    """
    doubts = [
        None if {"response", "output"} & fields.keys() else reply_doubt(layout, row.fields),
        None if is_named or {"prompt", "text"} & fields.keys() else prompt_doubt(layout, row.fields),
    ]
    for doubt in doubts:
        if doubt is not None and doubt not in told:
            told.add(doubt)
            _LOG.warning("%s: %s", row.where, doubt)


def until_understood(
    items: Iterator[Conversation | BrokenRow],
    misfit: Callable[[], LayoutError | None],
    may_yet_fit: Callable[[], bool],
) -> list[Conversation | BrokenRow]:
    """Hold back what comes before the first conversation, for where none comes, it is one error and no broken rows.

    Args:
        items: What is read; consumed as far as it is held back.
        misfit: Says why rows so far fit no layout; None where one did, or none was tried.
        may_yet_fit: Says, after a hundred items, whether any of those to come fit a layout.

    Raises:
        LayoutError: No row fits a layout, as far as can be seen.
    """
    held: list[Conversation | BrokenRow] = []
    for item in items:
        held.append(item)
        if not isinstance(item, BrokenRow):
            return held
        if len(held) == _HOPELESS_ROWS:
            break
    why = misfit()
    if why is not None and (len(held) < _HOPELESS_ROWS or not may_yet_fit()):
        raise why
    return held


@dataclass(slots=True)
class _Reading:
    """Keep the layout of the file that is being read."""

    named: Layout | None
    overrides: Mapping[str, str]
    on_layout: Callable[[str, Layout], None] | None
    file: str | None = field(default=None, init=False)
    layout: Layout | None = field(default=None, init=False)
    misfit: LayoutError | None = field(default=None, init=False)
    told: set[str] = field(default_factory=set, init=False)

    def conversations(self, source: Source, turns: Turns, limit: int | None) -> Iterator[Conversation | BrokenRow]:
        items = self._items(source, turns, limit)
        yield from until_understood(
            items,
            lambda: self.misfit if self.layout is None else None,
            lambda: any(self._fits(row) for row in source.heads(_HOPELESS_ROWS)),
        )
        yield from items

    def _fits(self, row: Row) -> bool:
        try:
            self._found(row.fields)
        except LayoutError:
            return False
        return True

    def _items(self, source: Source, turns: Turns, limit: int | None) -> Iterator[Conversation | BrokenRow]:
        for row in source.rows(limit=limit, is_row=self._is_row):
            if isinstance(row, BrokenRow):
                self._warn_of_encoding(row)
                yield row
                continue
            try:
                yield from self._row_replies(row, turns)
            except RowError as error:
                yield BrokenRow(row.position, error, row.file, row.line)

    def _warn_of_encoding(self, row: BrokenRow) -> None:
        """Say of a file in another encoding what to do: exactly its rows with letters beyond a to z are lost."""
        if row.error.reason == NOT_UTF8 and row.file is not None and row.file not in self.told:
            self.told.add(row.file)
            _LOG.warning("%s. This and other such rows of the file are unscored", row.error)

    def _row_replies(self, row: Row, turns: Turns) -> tuple[Conversation | BrokenRow, ...]:
        layout = self._file_layout(row)
        return read_row(row, layout, turns=turns, fields=self.overrides, is_named=self.named is not None)

    def _file_layout(self, row: Row) -> Layout:
        if self.layout is not None and self.file == row.file:
            return self.layout
        try:
            layout = self._found(row.fields)
        except LayoutError as error:
            if self.misfit is None:
                self.misfit = LayoutError(f"{row.where}: {error}")
            raise RowError(str(error), where=row.where, reason="unknown_layout") from error
        self.file, self.layout = row.file, layout
        if self.on_layout is not None:
            self.on_layout(row.file, layout)
        warn_of_doubt(layout, row, self.overrides, self.told, is_named=self.named is not None)
        return layout

    def _found(self, fields: Mapping[str, object]) -> Layout:
        return detect(fields, self.overrides) if self.named is None else self.named.bound(fields)

    def _is_row(self, fields: Mapping[str, object], file: str) -> bool:
        """Tell a row from a `config.json` or `dataset_info.json` that lies beside the data."""
        try:
            self._found(fields)
        except LayoutError:
            _LOG.warning("%s is left out: it is a single JSON object that fits no layout", file)
            return False
        return True
