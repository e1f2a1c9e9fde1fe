"""Open what the user names as data, and stream its rows.

A source is a file, a folder, a pattern, standard input (`-`), a hub data set (`hf://…`) or the bundled `example`. It is
a sequence of parts; positions count over all of them, and memory does not grow with the rows, but for a JSON document
(an array, an object that holds one), which is loaded whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.resources
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demur.data.api_objects import unwrapped
from demur.data.files import FilePart, find_files, find_in_folder, printable
from demur.data.formats import Opened, json_document
from demur.data.hub import HUB_PREFIX, HubPart
from demur.data.rows import BrokenRow, Part, Record, Row
from demur.errors import RowError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    # Told the fields of a JSON object that is a whole file, and the file's name.
    IsRow = Callable[[Mapping[str, object], str], bool]

__all__ = ["EXAMPLE", "STANDARD_INPUT", "BrokenRow", "Row", "Source", "open_source"]

EXAMPLE = "example"
STANDARD_INPUT = "-"
# What the example's replies truly are: an answer key beside the data, not data.
_EXAMPLE_LABELS = "labels.jsonl"
# A file of which so many rows are broken and none is good is no data file: better one error than ten thousand.
_HOPELESS_ROWS = 100


class Source:
    """Stream the rows of one or several parts, in order, and know how far it has come."""

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        """Keep what is read, and under which name."""
        self.name = printable(name)
        self._parts = tuple(parts)
        self._bytes_read = 0.0

    @property
    def files(self) -> list[Path]:
        """Return the files that it reads, but for what does not lie in a file here."""
        return [part.path for part in self._parts if isinstance(part, FilePart)]

    @property
    def is_local(self) -> bool:
        """Tell whether it consists of files here alone, which can be read again and cost nothing to fetch."""
        return len(self.files) == len(self._parts)

    @property
    def fraction_read(self) -> float | None:
        """Return the share of the bytes consumed so far, from 0 to 1, or None where the size is not known."""
        sizes = [part.size for part in self._parts]
        known = [size for size in sizes if size is not None]
        return self._bytes_read / sum(known) if len(known) == len(sizes) else None

    def rows(self, *, limit: int | None = None, is_row: IsRow | None = None) -> Iterator[Row | BrokenRow]:
        """Yield at most `limit` rows from the beginning; a row that cannot be read arrives as a `BrokenRow`.

        Args:
            limit: How many rows to read.
            is_row: Told fields and name of each file that is a single JSON object and lies among others; says whether
                it is a row, and no setting that belongs to the data.

        Raises:
            SourceError: The source holds no row, or no row that can be read because its parts are damaged. One damaged
                part among others is a broken row with the reason `damaged_file`, after what could be read of it.
        """
        position = -1
        for position, (part, record) in enumerate(itertools.islice(self._records(is_row), limit)):
            if isinstance(record.value, RowError):
                yield BrokenRow(position, record.value, part.name, record.line)
            else:
                yield Row(position, unwrapped(record.value), part.name, record.line)
        if position < 0 and limit != 0:
            message = f"{self.name!r} holds no rows; give a source with at least one"
            raise SourceError(message)

    def heads(self, n_rows: int) -> Iterator[Row]:
        """Yield those of the first rows of each part that can be read; of a single part, which is read anyway, none."""
        for part in self._parts if len(self._parts) > 1 else ():
            with contextlib.suppress(SourceError):
                for record in itertools.islice(part.records(), n_rows):
                    if not isinstance(record.value, RowError):
                        yield Row(0, unwrapped(record.value), part.name, record.line)

    def fingerprint(self) -> str | None:
        """Return what the content is known by: a sha256 over its parts' names, sizes and contents.

        None for standard input, which can be read only once, and where a hub does not tell the revision.
        """
        identities = [part.identity() for part in self._parts]
        known = [identity for identity in identities if identity is not None]
        if len(known) < len(identities):
            return None
        # Names of files are bytes, and hold surrogates where these are no UTF-8.
        return hashlib.sha256("\n".join(known).encode("utf-8", "surrogatepass")).hexdigest()

    def _records(self, is_row: IsRow | None) -> Iterator[tuple[Part, Record]]:
        self._bytes_read = bytes_before = 0.0
        is_only = len(self._parts) == 1
        damage: SourceError | None = None
        is_any_read = False
        for part in self._parts:
            size, line = part.size if part.size is not None else 0, 0
            try:
                for record in _readable(part, is_only=is_only):
                    line = record.line
                    self._bytes_read = bytes_before + record.share * size
                    is_any_read = is_any_read or not isinstance(record.value, RowError)
                    if is_row is None or is_only or _is_row(record, part, is_row):
                        yield part, record
            except SourceError as error:
                if is_only:
                    raise
                damage = error if damage is None else damage
                yield part, Record(line + 1, _of_part(error, part), 1.0)
            bytes_before += size
        self._bytes_read = bytes_before
        if damage is not None and not is_any_read:
            raise damage


@dataclass(frozen=True, slots=True)
class _StandardInput:
    """Read JSON Lines or a JSON document from standard input."""

    name: str = "stdin"
    size: None = None

    def records(self) -> Iterator[Record]:
        yield from json_document(Opened(self.name, sys.stdin.buffer, lambda: 0.0))

    def identity(self) -> None:
        return


def open_source(spec: str) -> Source:
    """Open a file, a folder, a glob pattern, `-`, `hf://owner/name[:config][/split]`, or `example`.

    Raises:
        SourceError: There is no such thing, it cannot be read, or it holds nothing; or the name is empty.
    """
    if not spec.strip():
        # To the system, nothing is this folder: a variable of a script that is not set would audit all that lies there.
        message = "the name of the source is empty; give a file, or . for all files in this folder"
        raise SourceError(message)
    if spec == STANDARD_INPUT:
        return Source(spec, [_StandardInput()])
    if spec.startswith(HUB_PREFIX):
        part = HubPart.open(spec)
        return Source(part.name, [part])
    if spec == EXAMPLE and not Path(spec).exists():
        return Source(spec, find_in_folder(_example(), shown=EXAMPLE, except_for=(_EXAMPLE_LABELS,)))
    try:
        return Source(spec, find_files(spec))
    except SourceError as error:
        if not _is_stream(spec):
            raise
        message = (
            f"{spec!r} is a pipe or a device, and no file; give - and pipe it in, as in: zcat rows.gz | demur audit -"
        )
        raise SourceError(message) from error


def _is_stream(spec: str) -> bool:
    """Tell whether it is what a shell makes of `<(…)`, or the like; what cannot even be looked at is not."""
    with contextlib.suppress(OSError, ValueError):
        return Path(spec).is_fifo() or Path(spec).is_char_device()
    return False


def _is_row(record: Record, part: Part, is_row: IsRow) -> bool:
    if not record.is_whole_document or isinstance(record.value, RowError):
        return True
    return is_row(unwrapped(record.value), part.name)


def _example() -> Path:
    return Path(str(importlib.resources.files("demur") / EXAMPLE))


def _readable(part: Part, *, is_only: bool) -> Iterator[Record]:
    """Pass the records on, unless the part begins with so many broken ones that it is no data at all."""
    records = part.records()
    broken: list[RowError] = []
    held: list[Record] = []
    for record in records:
        held.append(record)
        if not isinstance(record.value, RowError):
            break
        broken.append(record.value)
        if len(broken) == _HOPELESS_ROWS:
            raise _hopeless(part, broken)
    else:
        if is_only and broken:
            raise _hopeless(part, broken)
    yield from held
    yield from records


def _of_part(error: SourceError, part: Part) -> RowError:
    """Return the error of a damaged part as that of one row, its place apart."""
    rest = str(error).removeprefix(f"{part.name}:")
    line, _, message = rest.partition(": ")
    if line.isdigit():
        return RowError(message, where=f"{part.name}:{line}", reason="damaged_file")
    return RowError(rest.strip(), where=part.name, reason="damaged_file")


def _hopeless(part: Part, broken: Sequence[RowError]) -> SourceError:
    return SourceError(f"{part.name}: none of its first {len(broken)} rows can be read; the first: {broken[0]}")
