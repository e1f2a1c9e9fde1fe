"""Read what the caller holds in memory as a file of the same rows would be read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.conversation import Conversation
from demur.data.api_objects import unwrapped
from demur.data.files import is_supported
from demur.data.hub import HUB_PREFIX
from demur.data.intake import as_conversations, how_held, is_frame, plain, plain_fields, records
from demur.data.likeness import is_conversation
from demur.data.reading import read_row, warn_of_doubt
from demur.data.rows import BrokenRow, Row
from demur.data.shapes import detect, named
from demur.errors import LayoutError, RowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.data.judged import Turns
    from demur.data.shapes import Layout

__all__ = ["MEMORY", "RowReader", "rows_of"]

MEMORY = "conversations in memory"
"""What reports and messages call data that has no name."""

# Longer texts are no names on any system: a reply is not taken apart for its ending.
_LONGEST_NAME = 4_096
# An open file can be iterated over, and so can a row: by its lines, and by its keys.
_NOT_SEVERAL = (Mapping, Conversation, str, bytes, io.IOBase)
_ACCEPTED = "demur.Conversation, strings, or rows such as {'prompt': …, 'response': …}"


def rows_of(data: object) -> Iterable[object]:
    """Return the rows of data in memory; of a pandas frame, its records.

    Raises:
        TypeError: The data are a single row, or nothing that holds rows.
    """
    if is_frame(data):
        return records(data)
    if isinstance(data, _NOT_SEVERAL) or not isinstance(data, Iterable) or how_held(data):
        message = (
            f"an audit of one {type(data).__name__}; give the name of a source, a pandas DataFrame, "
            f"or several of {_ACCEPTED}{_how_else(data)}"
        )
        raise TypeError(message)
    return data


def _how_else(data: object) -> str:
    """Say, for the end of an error, how the rows are given that an object is or has."""
    if isinstance(data, io.IOBase):
        return "; of a file, give the name"
    if how := how_held(data):
        return f"; {how}"
    if isinstance(data, Mapping):
        if any(hasattr(value, "column_names") for value in data.values()):
            return f"; of a DatasetDict, give one of its parts: {', '.join(map(str, data))}"
        if _is_of_columns(data):
            return "; of columns, give pandas.DataFrame(data)"
    return "; put a single one into a list" if isinstance(data, _NOT_SEVERAL) else ""


def _is_of_columns(data: Mapping[Any, object]) -> bool:
    """Tell whether several lists of one length stand under names; a list of messages is one cell of a row."""
    lengths = [len(value) for value in data.values() if isinstance(value, list | tuple) and not is_conversation(value)]
    return len(lengths) == len(data) > 1 and len(set(lengths)) == 1


def _require_no_name(position: int, given: str | os.PathLike[Any]) -> None:
    """Refuse names of sources, which would be judged as replies."""
    if isinstance(given, os.PathLike) or _is_name(given):
        message = (
            f"{MEMORY}:{position + 1}: {os.fsdecode(given)!r} is the name of a source; give one name, a folder or a "
            "pattern such as 'data/*.jsonl' in place of a list, and a reply that looks like a name as {'response': …}"
        )
        raise TypeError(message)


def _is_name(text: str) -> bool:
    """Tell whether it names a file that is here, or looks like the name of one, or of a data set on the hub."""
    if len(text) >= _LONGEST_NAME:
        return False
    if not any(map(str.isspace, text)):
        return text.startswith(HUB_PREFIX) or is_supported(Path(text))
    # `Path.is_file` raises where a part of the name is longer than a file system takes, as in a reply.
    return is_supported(Path(text)) and os.path.isfile(text)  # noqa: PTH113


@dataclass(slots=True)
class RowReader:
    """Read rows one after the other, each in the layout of the first that fits one, or in its own.

    Attributes:
        name: Name of the layout; None to find it.
        fields: Columns by part, where they are not the usual ones.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.
        on_layout: Told what is read, and the layout that it is read in, before its first conversation.
        misfit: Why the first row fits no layout, or not the named one; None where a row does, or none was met.

    Raises:
        LayoutError: There is no layout of that name.
    """

    name: str | None
    fields: Mapping[str, str]
    turns: Turns
    on_layout: Callable[[str, Layout], None] | None
    misfit: LayoutError | None = field(default=None, init=False)
    _layout: Layout | None = field(default=None, init=False)
    _of_row_0: set[tuple[str | None, int]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Refuse a layout that there is none of, even where no row comes to ask for it."""
        if self.name is not None:
            named(self.name, self.fields)

    def read(self, position: int, given: object) -> tuple[Conversation | BrokenRow, ...]:
        """Read one item; what a row or a reply of it lacks arrives as a `BrokenRow`, and so does a missing value.

        Raises:
            TypeError: It is neither conversation nor string nor row.
            ValueError: It is one more of row 0 that has its side and turn: nobody knows which pair it is of.
        """
        try:
            if isinstance(given, Conversation):
                return tuple(self._placed(one, position) for one in as_conversations([given]))
            if isinstance(given, Mapping):
                return self._row_replies(_row(position, given))
            if isinstance(given, list | tuple) and is_conversation(plain(given)):
                return self._row_replies(_row(position, {"messages": given}))
            if isinstance(given, str | os.PathLike):
                _require_no_name(position, given)
            if isinstance(given, str):
                return self._text_conversations(position, given)
            if plain(given) is None:
                return named("reply").replies(_row(position, {"response": None}), turns=self.turns)
        except RowError as error:
            where = f"{MEMORY}:{position + 1}"
            moved = RowError(error.message, where=where, reason=error.reason)
            return (BrokenRow(position, moved, MEMORY, position + 1),)
        message = f"{MEMORY}:{position + 1}: met {type(given).__name__}; give {_ACCEPTED}"
        raise TypeError(message)

    def _placed(self, conversation: Conversation, position: int) -> Conversation:
        """Give a conversation that was built by hand, and so says it is row 0, its position; one of no file its place.

        Row 0 of a source has each side and turn once: the first of each is taken at its word.
        """
        place = conversation.side, conversation.turn
        is_again = conversation.row_id == 0 and place in self._of_row_0
        if is_again and conversation.side is not None:
            message = (
                f"{MEMORY}:{position + 1}: a further {conversation.side!r} reply of row 0; give both sides of a pair "
                "their own row_id, as in Conversation(…, row_id=1, side='chosen')"
            )
            raise ValueError(message)
        if conversation.row_id == 0:
            self._of_row_0.add(place)
        is_unplaced = conversation.row_id == 0 and (is_again or place == (None, 0))
        placed = replace(conversation, row_id=position) if is_unplaced else conversation
        return placed if placed.file is not None else replace(placed, file=MEMORY, line=position + 1)

    def _row_replies(self, row: Row) -> tuple[Conversation | BrokenRow, ...]:
        layout = self._first_layout(row) if self._layout is None else self._layout
        return read_row(row, layout, turns=self.turns, fields=self.fields, is_named=self.name is not None)

    def _first_layout(self, row: Row) -> Layout:
        try:
            found = detect(row.fields, self.fields) if self.name is None else named(self.name, self.fields)
            self._layout = found.bound(row.fields)
        except LayoutError as error:
            if self.misfit is None:
                self.misfit = LayoutError(f"{row.where}: {error}")
            raise RowError(str(error), where=row.where, reason="unknown_layout") from error
        self.misfit = None
        if self.on_layout is not None:
            self.on_layout(MEMORY, self._layout)
        warn_of_doubt(self._layout, row, self.fields, set(), is_named=self.name is not None)
        return self._layout

    def _text_conversations(self, position: int, text: str) -> tuple[Conversation | BrokenRow, ...]:
        """Read a string: as a row with nothing but `text` where a layout is named, as `label` reads it otherwise."""
        if self.name is None and self.turns == "last":
            said = as_conversations([text])
            return tuple(replace(one, row_id=position, file=MEMORY, line=position + 1) for one in said)
        row = _row(position, {"text": text})
        if self.name is not None:
            return self._row_replies(row)
        return named("role_tokens").replies(row, turns=self.turns)


def _row(position: int, given: Mapping[Any, object]) -> Row:
    return Row(position, unwrapped(plain_fields(given)), MEMORY, position + 1)
