"""Hold what a source gives: rows, broken rows, and the records that a file's reader makes of its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from demur.errors import RowError

__all__ = ["NOT_UTF8", "BrokenRow", "Part", "Record", "Row"]

NOT_UTF8 = "not_utf8"
"""The reason of rows in another encoding: of a file in one, exactly those with letters beyond a to z are lost."""


@dataclass(frozen=True, slots=True)
class Row:
    """Keep the fields of one row and the place that they came from.

    Attributes:
        position: Index of the row in its source, from 0, over all files and with broken rows counted.
        fields: The row by column name.
        file: The file as the user would name it.
        line: First line of the row, from 1; the number of the row where a file has no lines (Parquet, JSON array, hub).
    """

    position: int
    fields: Mapping[str, object]
    file: str
    line: int

    @property
    def where(self) -> str:
        """Return the place as messages write it."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """Keep the place of a row, or of one reply of it, that cannot be read, and why: it is counted, never dropped.

    Attributes:
        position: Index of the row in its source, from 0.
        error: What was met, where, and under which reason it is counted.
        file: The file, as of `Row`; None where the row came from none.
        line: As of `Row`.
        side: The side of a preference pair that the reply is; None where the whole row is broken, or is no pair.
        turn: Index of the reply among the assistant's turns; 0 where the whole row is broken.
    """

    position: int
    error: RowError
    file: str | None = None
    line: int | None = None
    side: str | None = None
    turn: int = 0


class Record(NamedTuple):
    """Keep one row as its file's reader sees it.

    Attributes:
        line: Its first line or its number in the file, from 1.
        value: Its fields, or why there are none.
        share: Share of the file that was consumed when it was made, from 0 to 1.
        is_whole_document: Whether the file is this one JSON object, which may be a setting as well as a row.
    """

    line: int
    value: Mapping[str, object] | RowError
    share: float
    is_whole_document: bool = False


class Part(Protocol):
    """Give the records of one file, of standard input, or of one split of a hub data set."""

    @property
    def name(self) -> str:
        """Return the name that rows and messages use."""
        ...

    @property
    def size(self) -> int | None:
        """Return the number of bytes, or None where it is not known."""
        ...

    def records(self) -> Iterator[Record]:
        """Yield the records in order."""
        ...

    def identity(self) -> str | None:
        """Return a text that changes when the content does; None where nothing says whether it does."""
        ...
