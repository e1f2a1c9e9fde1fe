"""Read the bytes of one file as records: CSV, TSV and Parquet."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import logging
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from demur.data.rows import NOT_UTF8, Record
from demur.errors import RowError, SourceError

if TYPE_CHECKING:
    from _csv import Reader
    from collections.abc import Iterator, Mapping, Sequence

    from demur.data.formats import Opened

__all__ = ["comma_separated", "parquet", "tab_separated"]

_LOG = logging.getLogger(__name__)
# More characters than any reply has: what a quote that is never closed swallows lies in memory up to here.
_LARGEST_CELL = 1 << 24
# What a line may consist of that holds nothing: programs write empty rows of a sheet as separators alone.
_NOTHING = " \t\r\n,;"
_NUL = "a NUL byte"
# What programs write for a missing value, and models hardly ever say; `None` they do.
_MISSING = frozenset({"nan", "NaN", "<NA>", "NULL"})
# As they come where bytes that are no UTF-8 do as surrogates.
_UTF16_BOMS = ("\udcff\udcfe", "\udcfe\udcff")
# Few enough that rows of some MB each still fit, many enough that the cost of a batch does not show.
_BATCH_ROWS = 256
_BUFFER_BYTES = 1 << 20
# Parquet does not check its strings (UnicodeDecodeError, which is a ValueError), and has dates that Python has not.
_UNREADABLE = (ValueError, OverflowError)


def comma_separated(opened: Opened) -> Iterator[Record]:
    """Read a CSV with a header; where the header has no comma, semicolons or tabs separate."""
    yield from _delimited(opened, (",", ";", "\t"))


def tab_separated(opened: Opened) -> Iterator[Record]:
    """Read a TSV with a header."""
    yield from _delimited(opened, ("\t",))


def parquet(opened: Opened) -> Iterator[Record]:
    """Read a Parquet file by batches of rows."""
    # Buffering ahead, the default, holds a whole row group, which may be the whole file: measured, 90 MB against 33 MB
    # for a group of 180,000 replies.
    file = pq.ParquetFile(opened.stream, buffer_size=_BUFFER_BYTES, pre_buffer=False)
    _refuse_twins(file.schema_arrow.names, opened.file)
    n_rows = file.metadata.num_rows
    number = itertools.count(1)
    # Arrow would take all cores there are, whatever number of them the user has given.
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
        plain, mixed = _plain_columns(batch)
        for value, line in zip(_batch_values(plain), number, strict=False):
            read = _with_texts(value, mixed) if mixed and not isinstance(value, Exception) else value
            yield Record(line, _or_error(read, f"{opened.file}:{line}"), line / n_rows)


def _plain_columns(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[str]]:
    """Return the batch with bytes that are UTF-8 as texts, and times in no zone: Python may not know the one named.

    The columns named beside it hold bytes that are no UTF-8, and are left as they were.
    """
    mixed = []
    for index, field in enumerate(batch.schema):
        kind = _plain_type(field.type)
        if kind != field.type:
            try:
                batch = batch.set_column(index, field.name, batch.column(index).cast(kind))
            except pa.ArrowException:
                mixed.append(field.name)
    return batch, mixed


def _with_texts(fields: Mapping[str, object], mixed: Sequence[str]) -> Mapping[str, object]:
    return {**fields, **{name: _as_text(fields[name]) for name in mixed}}


def _as_text(value: object) -> object:
    """Return bytes that are UTF-8 as a text, in lists and objects, too; pictures are bytes, and stay what they are."""
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    if isinstance(value, dict):
        return {name: _as_text(each) for name, each in value.items()}
    return value


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_binary(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.large_string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    return kind


def _batch_values(batch: pa.RecordBatch) -> list[Mapping[str, object] | Exception]:
    try:
        return list(batch.to_pylist())
    except _UNREADABLE:
        # Find the rows that are damaged, and keep the others.
        return [_row_value(batch.slice(index, 1)) for index in range(batch.num_rows)]


def _row_value(row: pa.RecordBatch) -> Mapping[str, object] | Exception:
    try:
        fields: Mapping[str, object] = row.to_pylist()[0]
    except _UNREADABLE as error:
        return error
    return fields


def _or_error(value: Mapping[str, object] | Exception, where: str) -> Mapping[str, object] | RowError:
    if isinstance(value, UnicodeDecodeError):
        message = f"a text is not UTF-8 ({value.reason}); write strings as UTF-8"
        return RowError(message, where=where, reason=NOT_UTF8)
    if isinstance(value, Exception):
        message = (
            f"a value cannot be read ({value}); write dates of the years 1 to 9999 in UTC, or leave their column out"
        )
        return RowError(message, where=where)
    return value


def _delimited(opened: Opened, delimiters: Sequence[str]) -> Iterator[Record]:
    with _decoded(opened.stream) as text:
        n_blank, first = _first_filled(text)
        if first.startswith(_UTF16_BOMS):
            message = f"{opened.file}: encoded as UTF-16; save it as UTF-8, in Excel as CSV UTF-8"
            raise SourceError(message)
        delimiter = next((mark for mark in delimiters if mark in first), delimiters[0])
        # Without `strict`, a quote that is never closed swallows the rest of the file without a word.
        reader = csv.reader(itertools.chain((first,), text), delimiter=delimiter, strict=True)
        header = _header(reader, f"{opened.file}:{n_blank + 1}")
        if header:
            yield from _table_records(reader, header, opened, n_blank, delimiter)


def _first_filled(text: io.TextIOWrapper) -> tuple[int, str]:
    """Read the lines up to the first that holds anything; return the number of those before it, and it."""
    for n_blank, line in enumerate(text):
        if line.strip(_NOTHING):
            return n_blank, line
    return 0, ""


@contextlib.contextmanager
def _decoded(stream: BinaryIO) -> Iterator[io.TextIOWrapper]:
    # Bytes that are no UTF-8 come as surrogates, so that one bad cell costs its row and not the file.
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        # The stream is closed by whoever opened it.
        text.detach()


def _table_records(
    reader: Reader, header: Sequence[str], opened: Opened, n_above: int, delimiter: str
) -> Iterator[Record]:
    n_taken_in = 0
    while True:
        line = n_above + reader.line_num + 1
        where = f"{opened.file}:{line}"
        damage: str | None = None
        cells: list[str] = []
        try:
            cells = _next_cells(reader)
        except StopIteration:
            break
        except csv.Error as error:
            damage = f"not a row of cells ({error}); check the quotes"
        # Raw text with tabs is mostly not quoted: a quote that begins a cell, and one far below, would make it a row.
        if delimiter == "\t" and any("\t" in cell and "\n" in cell for cell in cells):
            damage = "a cell begins with a quote and holds tabs and lines; quote every cell, or none"
        if damage is not None:
            # Which of the further lines begins a row is not known: taken for rows, pieces of a cell would be judged.
            n_further = n_above + reader.line_num - line
            if n_further > 0:
                damage += f": one that is open took in the lines up to {line + n_further:,}"
            n_taken_in += n_further
            yield Record(line, RowError(damage, where=where), opened.share())
        elif cells:
            yield Record(line, _cell_fields(header, cells, where), opened.share())
    if n_taken_in:
        _LOG.warning(
            "%s: open quotes took in further lines, which are not counted as rows: %s of them; check the quotes",
            opened.file,
            f"{n_taken_in:,}",
        )


def _next_cells(reader: Reader) -> list[str]:
    """Read one row with room for large cells, and give the process its own limit back: it is global to `csv`."""
    limit = csv.field_size_limit(_LARGEST_CELL)
    try:
        return next(reader)
    finally:
        csv.field_size_limit(limit)


def _header(reader: Reader, where: str) -> list[str]:
    try:
        header = _next_cells(reader)
    except StopIteration:
        return []
    except csv.Error as error:
        message = f"{where}: the header is not a row of cells ({error}); the first line names the columns"
        raise SourceError(message) from error
    damage = _damage(header)
    if damage is not None:
        message = f"{where}: the header holds {damage}; the first line names the columns, as UTF-8, in Excel CSV UTF-8"
        raise SourceError(message)
    _refuse_twins(header, where)
    return header


def _refuse_twins(names: Sequence[str], where: str) -> None:
    twice = sorted(name for name, n_columns in Counter(names).items() if name and n_columns > 1)
    if twice:
        message = f"{where}: the header names {twice[0]!r} twice; give each column its own name"
        raise SourceError(message)


def _cell_fields(header: Sequence[str], cells: Sequence[str], where: str) -> Mapping[str, object] | RowError:
    damage = _damage(cells)
    if damage == _NUL:
        return RowError(f"the row holds {damage}; save as UTF-8 text", where=where)
    if damage is not None:
        message = f"the row holds {damage}; save the file as UTF-8, in Excel as CSV UTF-8"
        return RowError(message, where=where, reason=NOT_UTF8)
    if len(cells) != len(header):
        message = f"{len(cells)} cells, {len(header)} in the header; quote cells that hold the separator or a newline"
        return RowError(message, where=where)
    return {name: None if cell in _MISSING else cell for name, cell in zip(header, cells, strict=True)}


def _damage(cells: Sequence[str]) -> str | None:
    joined = "".join(cells)
    if "\0" in joined:
        return _NUL
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        return f"bytes that are not UTF-8 (0x{ord(joined[error.start]) - 0xDC00:02x})"
    return None
