"""Bring what can be audited, a named source or conversations in memory, behind one door."""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeGuard

from demur.conversation import Conversation
from demur.data.files import is_supported
from demur.data.intake import plain
from demur.data.reading import read_conversations, until_understood
from demur.data.sources import BrokenRow, Source, open_source
from demur.errors import SourceError
from demur.studies.memory import MEMORY, RowReader, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from demur.data.judged import Turns
    from demur.data.shapes import Layout

__all__ = ["Input", "Item", "OnLayout", "ReadingOptions", "chunks", "open_input", "rows_up_to"]

Item = Conversation | BrokenRow
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

OnLayout = Callable[[str, str], None]
"""Told a file, and the layout that it is read in (`openai: messages=messages`), before its first reply is judged."""


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """Say how a source is read.

    Attributes:
        limit: How many rows to read; None for all.
        layout: Name of the layout; None to find it for each file.
        fields: Columns by part, where they are not the usual ones.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.

    Raises:
        ValueError: The limit is less than 1.
    """

    limit: int | None = None
    layout: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    turns: Turns = "last"

    def __post_init__(self) -> None:
        """Refuse what is no number of rows, and write one of NumPy's as Python's: it goes into the manifest."""
        if self.limit is None:
            return
        if isinstance(self.limit, bool) or not isinstance(self.limit, SupportsIndex) or self.limit < 1:
            message = f"limit {self.limit!r}; give a number of rows from 1 on, or None for all"
            raise ValueError(message)
        object.__setattr__(self, "limit", operator.index(self.limit))


class Input(Protocol):
    """Give items in order, and know what they are called and how many of them have gone by."""

    @property
    def name(self) -> str:
        """Return what reports call the data."""
        ...

    @property
    def fraction_read(self) -> float | None:
        """Return the share that was read, from 0 to 1; None where it cannot be known."""
        ...

    @property
    def layouts(self) -> Mapping[str, int]:
        """Return the number of files met so far by the layout that they are read in."""
        ...

    @property
    def files(self) -> Sequence[Path]:
        """Return the files of the user's that are read: no result may be written there."""
        ...

    def fingerprint(self) -> str | None:
        """Return what changes when the content does; None where it can only be read once, or nothing tells."""
        ...

    def items(self) -> Iterator[Item]:
        """Yield conversations, and in their place the rows that give none."""
        ...


def open_input(
    source: str | Path | Source | Iterable[Conversation | str | Mapping[str, Any]] | pd.DataFrame,
    options: ReadingOptions,
    on_layout: OnLayout | None = None,
) -> Input:
    """Open what the caller gave as data.

    Raises:
        SourceError: A named source cannot be opened.
        LayoutError: There is no layout of the name that the options give.
        TypeError: It is neither the name of a source nor several conversations.
    """
    if isinstance(source, str | os.PathLike):
        return _FromSource(_opened(os.fsdecode(source)), options, on_layout)
    if isinstance(source, Source):
        return _FromSource(source, options, on_layout)
    return _FromMemory(rows_of(source), options, on_layout)


def _opened(name: str) -> Source:
    """Open a named source; of a reply that is taken for a name, say how it is given."""
    try:
        return open_source(name)
    except SourceError as error:
        # A file may have blanks in its name, and then mostly has an ending too.
        if name.strip() and any(map(str.isspace, name)) and not is_supported(Path(name)):
            message = f"{error}; a single reply goes into a list, as in demur.audit([reply])"
            raise SourceError(message) from error
        raise


def rows_up_to(source: str, most: int) -> int | None:
    """Count a source's rows, and stop at `most`; None where they can be read only once, or come from afar.

    Raises:
        SourceError: The source cannot be read, or holds no row.
    """
    opened = open_source(source)
    return sum(1 for _ in opened.rows(limit=most)) if opened.is_local else None


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut a stream into lists of `size` items or a few more: what one row gives, a pair for example, stays together."""
    chunk: list[Item] = []
    for item in items:
        if len(chunk) >= size and _row(item) != _row(chunk[-1]):
            yield chunk
            chunk = []
        chunk.append(item)
    if chunk:
        yield chunk


def _row(item: Item) -> int:
    return item.position if isinstance(item, BrokenRow) else item.row_id


class _Layouts:
    """Count the files of each layout, and tell the caller of each as it is met."""

    def __init__(self, tell: OnLayout | None) -> None:
        self._tell = tell
        self.layouts: dict[str, int] = {}

    def _on_layout(self, file: str, layout: Layout) -> None:
        self.layouts[str(layout)] = self.layouts.get(str(layout), 0) + 1
        if self._tell is not None:
            self._tell(file, str(layout))


class _FromSource(_Layouts):
    """Read a source row by row."""

    def __init__(self, source: Source, options: ReadingOptions, tell: OnLayout | None) -> None:
        super().__init__(tell)
        self._source = source
        self._options = options
        self._rows = 0

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def fraction_read(self) -> float | None:
        limit = self._options.limit
        of_limit = 0.0 if not limit else self._rows / limit
        of_source = self._source.fraction_read
        return None if of_source is None and not limit else max(of_limit, of_source if of_source is not None else 0.0)

    @property
    def files(self) -> Sequence[Path]:
        return self._source.files

    def fingerprint(self) -> str | None:
        return self._source.fingerprint()

    def items(self) -> Iterator[Item]:
        options = self._options
        self.layouts.clear()
        for item in read_conversations(
            self._source,
            layout=options.layout,
            fields=options.fields,
            turns=options.turns,
            limit=options.limit,
            on_layout=self._on_layout,
        ):
            self._rows = _row(item) + 1
            yield item


class _FromMemory(_Layouts):
    """Go through what the caller holds: conversations, strings, rows."""

    name = MEMORY
    files: Sequence[Path] = ()

    def __init__(self, rows: Iterable[object], options: ReadingOptions, tell: OnLayout | None) -> None:
        super().__init__(tell)
        self._rows = rows
        self._limit = options.limit
        self._read = 0
        self._reader = RowReader(options.layout, options.fields, options.turns, self._on_layout)

    @property
    def fraction_read(self) -> float | None:
        if not _is_repeatable(self._rows):
            return None
        total = len(self._rows) if self._limit is None else min(self._limit, len(self._rows))
        return self._read / total if total else 1.0

    def fingerprint(self) -> str | None:
        if not _is_repeatable(self._rows):
            return None
        digest = hashlib.sha256()
        for row in self._rows:
            digest.update(_told(row).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()

    def items(self) -> Iterator[Item]:
        items = self._items()
        # As in files: where no row ever fits, that is one error and no broken rows.
        yield from until_understood(items, lambda: self._reader.misfit, lambda: False)
        yield from items

    def _items(self) -> Iterator[Item]:
        for position, given in enumerate(itertools.islice(self._rows, self._limit)):
            self._read = position + 1
            yield from self._reader.read(position, given)


def _is_repeatable(rows: Iterable[object]) -> TypeGuard[Collection[object]]:
    """Tell whether rows can be gone through again, in the same order: lists, arrays, `datasets.Dataset`."""
    return hasattr(rows, "__getitem__") and isinstance(rows, Collection)


def _told(row: object) -> str:
    """Write a row, as it is read, so that the same content is the same text in every process."""
    return json.dumps(plain(row), default=lambda value: _ADDRESS.sub("", repr(value)))
