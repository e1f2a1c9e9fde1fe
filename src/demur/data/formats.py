"""Read the bytes of one file as records: JSON Lines and JSON here, tables in `tables`."""

from __future__ import annotations

import contextlib
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from demur.data.api_objects import unwrapped
from demur.data.json_text import decode_json
from demur.data.messages import ROLE_KEYS, is_message
from demur.data.packing import PACKINGS, packed_as
from demur.data.rows import NOT_UTF8, BrokenRow, Record, Row
from demur.data.shapes import detect
from demur.errors import LayoutError, RowError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from demur.data.shapes import Layout

__all__ = ["Opened", "json_document", "json_lines"]

_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# What says that a list of messages holds several conversations.
_GROUP_KEYS = frozenset(
    {
        "conversation_id",
        "chat_id",
        "dialog_id",
        "dialogue_id",
        "session_id",
        "thread_id",
        "message_tree_id",
        "parent_id",
    }
)


@dataclass(frozen=True, slots=True)
class Opened:
    """Keep one file while it is read.

    Attributes:
        file: The name that messages use.
        stream: Its bytes, unpacked.
        share: Says which share of the file, from 0 to 1, was consumed.
    """

    file: str
    stream: BinaryIO
    share: Callable[[], float]


def json_lines(opened: Opened) -> Iterator[Record]:
    """Read one JSON object, or one JSON string, a line; blank lines are passed over."""
    yield from _line_records(_lines(opened), opened)


def json_document(opened: Opened) -> Iterator[Record]:
    """Read a JSON array of objects, an object that holds one such list, one chat, or JSON Lines under a `.json` name.

    An object that is a conversation itself is the row: the lists beside it are its annotations, passages or tools.
    An array or object is loaded whole, since a JSON document cannot be cut; JSON Lines are streamed.
    """
    lines = _lines(opened)
    ahead = _first_filled(lines, 2)
    head = [line.strip() for _, line in ahead if line.strip()]
    if len(head) > 1 and not head[0].startswith(b"[") and any(_is_record(line) for line in head):
        yield from _line_records(itertools.chain(ahead, lines), opened)
        return
    if not head:
        return
    document = _document(b"".join(line for _, line in itertools.chain(ahead, lines)), opened.file)
    if isinstance(document, dict):
        document = unwrapped(document)
    items, rows = _items(document, opened.file), _Rows()
    for number, item in enumerate(items, start=1):
        is_whole = isinstance(document, dict) and item is document
        yield Record(number, rows.fields(item, f"{opened.file}:{number}"), number / len(items), is_whole)


def _lines(opened: Opened) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(opened.stream, start=1):
        if number == 1 and line.startswith(_UTF16_BOMS):
            message = f"{opened.file}: encoded as UTF-16; save it as UTF-8"
            raise SourceError(message)
        packing = packed_as(line) if number == 1 else None
        if packing is not None:
            # Label files and standard input are read as they come, whatever their names.
            is_named_so = opened.file.lower().endswith(tuple(PACKINGS)) or "." not in opened.file
            how = "unpack it first" if is_named_so else "unpack it, or end a source's name as what it is, as in .gz"
            message = f"{opened.file}: packed as {packing}; {how}"
            raise SourceError(message)
        yield number, line.removeprefix(_BOM) if number == 1 else line


def _first_filled(lines: Iterator[tuple[int, bytes]], n_filled: int) -> list[tuple[int, bytes]]:
    """Take lines until so many of them are not blank."""
    taken: list[tuple[int, bytes]] = []
    n_missing = n_filled
    for line in lines:
        taken.append(line)
        n_missing -= bool(line[1].strip())
        if not n_missing:
            break
    return taken


def _line_records(lines: Iterable[tuple[int, bytes]], opened: Opened) -> Iterator[Record]:
    rows = _Rows()
    for number, line in lines:
        if line.strip():
            yield Record(number, _line_value(line, f"{opened.file}:{number}", rows), opened.share())


def _line_value(line: bytes, where: str, rows: _Rows) -> Mapping[str, object] | RowError:
    try:
        # The end of the line would be a second line of JSON to an error, with columns of its own.
        return rows.fields(decode_json(line.decode().rstrip("\r\n")), where)
    except UnicodeDecodeError as error:
        message = f"not UTF-8 (byte 0x{line[error.start]:02x} at {error.start}); save as UTF-8"
        return RowError(message, where=where, reason=NOT_UTF8)
    except json.JSONDecodeError as error:
        is_array = where.endswith(":1") and line.lstrip().startswith(b"[")
        instead = ", or call a file that is one array .json" if is_array else ""
        return RowError(f"{_not_json(error)}; write one object a line{instead}", where=where)
    except (ValueError, RecursionError) as error:
        return RowError(f"JSON that cannot be read ({error}); write one object a line", where=where)


def _not_json(error: json.JSONDecodeError) -> str:
    """Say what JSON is damaged by; of some things it says itself where they are "at"."""
    return f"not JSON ({error.msg.removesuffix(' at')} at column {error.colno})"


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(decode_json(line.decode()), dict | str)
    except (ValueError, RecursionError):
        return False


def _document(content: bytes, file: str) -> object:
    try:
        return decode_json(content.decode())
    except UnicodeDecodeError as error:
        message = f"{file}: not UTF-8 (byte 0x{content[error.start]:02x} at {error.start}); save it as UTF-8"
        raise SourceError(message) from error
    except json.JSONDecodeError as error:
        message = (
            f"{file}:{error.lineno}: {_not_json(error)}; "
            "give an array of objects, an object that holds one, or one object a line"
        )
        raise SourceError(message) from error
    except (ValueError, RecursionError) as error:
        message = f"{file}: JSON that cannot be read ({error})"
        raise SourceError(message) from error


def _items(document: object, file: str) -> list[object]:
    """Find the rows of a whole document."""
    if isinstance(document, list):
        return [{"messages": document}] if _is_conversation(document) else document
    if isinstance(document, str):
        return [document]
    if not isinstance(document, dict):
        message = f"{file}: holds {document!r}; give an array of objects or one object a line"
        raise SourceError(message)
    # As for files, what begins with `_` is no data: `datasets` lists the parts of a data set under `_data_files`.
    tables = {key: value for key, value in document.items() if _is_table(value) and not key.startswith("_")}
    layout = _layout_as_row(document, file) if tables else None
    if layout is not None and layout.name != "reply":
        return [document]
    if len(tables) > 1:
        # Logs of evaluations keep figures beside their samples: one list of conversations among others is the data.
        said = [table for table in tables.values() if _is_of_conversations(table)]
        if len(said) == 1 and layout is None:
            return list(said[0])
        message = f"{file}: holds several lists of objects ({', '.join(map(str, tables))}); give each its own file"
        raise SourceError(message)
    if layout is not None:
        # A text alone may be a reply, or a word on the data.
        column, table = next(iter(layout.columns.values())), next(iter(tables))
        message = (
            f"{file}: holds a text under {column!r} and a list of objects under {table!r}; keep the one that is to be "
            "judged, or write the object on one line of a .jsonl file if it is the row"
        )
        raise SourceError(message)
    if not tables and _is_by_columns(document):
        message = f"{file}: holds its rows by columns ({', '.join(map(str, document))}); write it with orient='records'"
        raise SourceError(message)
    return list(next(iter(tables.values()))) if tables else [document]


def _is_by_columns(document: Mapping[str, object]) -> bool:
    """Tell whether each column is an object of its rows by number, as pandas writes JSON unless told otherwise."""
    columns = list(document.values())
    rows = [list(column) for column in columns if isinstance(column, dict)]
    return len(rows) == len(columns) > 0 and all(each == rows[0] and each and each[0].isdigit() for each in rows)


def _layout_as_row(document: Mapping[str, object], file: str) -> Layout | None:
    """Return the layout in which a document says something itself, or None where it does not."""
    try:
        layout = detect(document)
        replies = layout.replies(Row(0, document, file, 1))
    except (LayoutError, RowError):
        return None
    return None if all(isinstance(one, BrokenRow) for one in replies) else layout


def _is_conversation(items: list[object]) -> bool:
    return bool(items) and all(
        is_message(item) and isinstance(item, dict) and not _GROUP_KEYS & item.keys() for item in items
    )


def _is_of_conversations(table: Sequence[object]) -> bool:
    """Tell whether the first row of a list fits a layout that has a request or turns; a text alone may be anything."""
    with contextlib.suppress(LayoutError):
        return isinstance(table[0], dict) and detect(unwrapped(table[0])).name != "reply"
    return False


def _is_table(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        # A list of turns inside an object is the object's conversation, not a table of rows.
        and all(isinstance(item, dict) and item.keys().isdisjoint(ROLE_KEYS) for item in value)
    )


@dataclass(slots=True)
class _Rows:
    """Take the items of a file for rows: an object as it is, a string as the only text of its row.

    Among objects a string is none: it would be judged as a reply, and mostly is a remark, or half of a row.
    """

    has_objects: bool = False

    def fields(self, item: object, where: str) -> Mapping[str, object] | RowError:
        if isinstance(item, dict):
            self.has_objects = True
            return item
        if isinstance(item, list) and _is_conversation(item):
            self.has_objects = True
            return {"messages": item}
        if isinstance(item, str) and not self.has_objects:
            return {"text": item}
        met = "a text among objects" if isinstance(item, str) else type(item).__name__
        return RowError(f"a row is {met}; write a JSON object with named fields", where=where)
