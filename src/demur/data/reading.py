"""Read a source as conversations: each file in the layout that its rows show, or in the one that was named."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from demur.data.rows import BrokenRow, Row
from demur.data.shapes import check_turns, detect, named
from demur.errors import LayoutError, RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from demur.conversation import Conversation
    from demur.data.shapes import Layout, Turns
    from demur.data.sources import Source

__all__ = ["read_conversations"]

_LOG = logging.getLogger(__name__)


def read_conversations(
    source: Source,
    *,
    layout: str | None = None,
    fields: Mapping[str, str] = {},
    turns: Turns = "last",
    limit: int | None = None,
    on_layout: Callable[[str, Layout], None] | None = None,
) -> Iterator[Conversation | BrokenRow]:
    """Yield the conversations of a source in order; a row that gives none arrives as a `BrokenRow`.

    A row that does not fit its file's layout is read in its own, if it has one. A file after the first whose rows fit
    no layout gives broken rows with the reason `unknown_layout`; one among others that is a single JSON object, a
    setting rather than data, is left out with a warning.

    Args:
        source: What to read.
        layout: Name of the layout, or None to find it for each file.
        fields: Columns by part, as `--field part=column` gives them.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.
        limit: How many rows to read.
        on_layout: Told each file and the layout that it is read in, before its first conversation.

    Raises:
        LayoutError: There is no layout of that name, or the first row that can be read fits none.
        SourceError: The source cannot be read.
        ValueError: `turns` is neither `last` nor `all`.
    """
    check_turns(turns)
    reading = _Reading(None if layout is None else named(layout, fields), fields, on_layout)
    return reading.conversations(source, turns, limit)


@dataclass(slots=True)
class _Reading:
    """Keep the layout of the file that is being read."""

    named: Layout | None
    overrides: Mapping[str, str]
    on_layout: Callable[[str, Layout], None] | None
    file: str | None = field(default=None, init=False)
    layout: Layout | None = field(default=None, init=False)

    def conversations(self, source: Source, turns: Turns, limit: int | None) -> Iterator[Conversation | BrokenRow]:
        for row in source.rows(limit=limit, is_row=self._is_row):
            if isinstance(row, BrokenRow):
                yield row
                continue
            try:
                yield from self._row_conversations(row, turns)
            except RowError as error:
                yield BrokenRow(row.position, error)

    def _row_conversations(self, row: Row, turns: Turns) -> tuple[Conversation, ...]:
        layout = self._file_layout(row)
        if self.named is None:
            layout = layout.for_row(row, self.overrides)
        try:
            return layout.conversations(row, turns=turns)
        except RowError as error:
            own = self._own_layout(row) if error.reason == "unreadable_row" else None
            if own is None or own == layout:
                raise
            return own.conversations(row, turns=turns)

    def _file_layout(self, row: Row) -> Layout:
        if self.layout is not None and self.file == row.file:
            return self.layout
        try:
            layout = self._found(row.fields)
        except LayoutError as error:
            if self.layout is None:
                message = f"{row.where}: {error}"
                raise LayoutError(message) from error
            raise RowError(str(error), where=row.where, reason="unknown_layout") from error
        self.file, self.layout = row.file, layout
        if self.on_layout is not None:
            self.on_layout(row.file, layout)
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

    def _own_layout(self, row: Row) -> Layout | None:
        try:
            return detect(row.fields, self.overrides) if self.named is None else None
        except LayoutError:
            return None
