"""Bring what can be audited, a named source or conversations in memory, behind one door."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from demur.conversation import Conversation
from demur.data.reading import read_conversations
from demur.data.shapes import parse_text
from demur.data.sources import STANDARD_INPUT, BrokenRow, Source, open_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from demur.data.shapes import Layout, Turns

__all__ = ["Input", "Item", "ReadingOptions", "chunks", "open_input"]

Item = Conversation | BrokenRow


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """Say how a source is read.

    Attributes:
        limit: How many rows to read; None for all.
        layout: Name of the layout; None to find it for each file.
        fields: Columns by part, where they are not the usual ones.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.
    """

    limit: int | None = None
    layout: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    turns: Turns = "last"


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

    def fingerprint(self) -> str | None:
        """Return what changes when the content does; None where it can only be read once."""
        ...

    def items(self) -> Iterator[Item]:
        """Yield conversations, and in their place the rows that give none."""
        ...


def open_input(source: str | Path | Source | Iterable[Conversation | str], options: ReadingOptions) -> Input:
    """Open what the caller gave as data.

    Raises:
        SourceError: A named source cannot be opened.
    """
    if isinstance(source, (str, Path)):
        return _FromSource(open_source(str(source)), options)
    if isinstance(source, Source):
        return _FromSource(source, options)
    return _FromMemory(source, options)


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


class _FromSource:
    """Read a source row by row."""

    def __init__(self, source: Source, options: ReadingOptions) -> None:
        self._source = source
        self._options = options
        self._rows = 0
        self.layouts: dict[str, int] = {}

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def fraction_read(self) -> float | None:
        limit = self._options.limit
        of_limit = 0.0 if not limit else self._rows / limit
        of_source = self._source.fraction_read
        return None if of_source is None and not limit else max(of_limit, of_source if of_source is not None else 0.0)

    def fingerprint(self) -> str | None:
        return None if self._source.name == STANDARD_INPUT else self._source.fingerprint()

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

    def _on_layout(self, _: str, layout: Layout) -> None:
        self.layouts[str(layout)] = self.layouts.get(str(layout), 0) + 1


class _FromMemory:
    """Go through conversations that the caller holds."""

    name = "conversations in memory"

    def __init__(self, conversations: Iterable[Conversation | str], options: ReadingOptions) -> None:
        self._conversations = conversations
        self._limit = options.limit
        self._read = 0
        self.layouts: dict[str, int] = {}

    @property
    def fraction_read(self) -> float | None:
        if not isinstance(self._conversations, Sequence):
            return None
        total = len(self._conversations) if self._limit is None else min(self._limit, len(self._conversations))
        return self._read / total if total else 1.0

    def fingerprint(self) -> str | None:
        if not isinstance(self._conversations, Sequence):
            return None
        digest = hashlib.sha256()
        for conversation in self._conversations:
            digest.update(repr(conversation).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()

    def items(self) -> Iterator[Item]:
        for position, given in enumerate(itertools.islice(self._conversations, self._limit)):
            self._read = position + 1
            yield _placed(parse_text(given) if isinstance(given, str) else given, position)


def _placed(conversation: Conversation, position: int) -> Conversation:
    """Give a conversation that was built by hand, and so says it is row 0, its position."""
    is_unplaced = conversation.row_id == 0 and conversation.side is None and conversation.turn == 0
    return replace(conversation, row_id=position) if is_unplaced else conversation
