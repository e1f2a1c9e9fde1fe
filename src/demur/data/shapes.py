"""Recognise how a row lays a conversation out, and turn rows into conversations.

A layout is a shape of `columns.SHAPES` with its parts bound to the columns of a file.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from demur.conversation import Conversation
from demur.data.chats import TAKE_THE_TEXT
from demur.data.column_names import folded, is_named_as_reply, spelling
from demur.data.columns import CHATS, REFERENCE, SHAPES, listed, reply_column, rivals, several_replies
from demur.data.json_text import decode_json
from demur.data.judged import check_turns, judged
from demur.data.likeness import is_nothing, is_open_chat
from demur.data.messages import CONTENT_KEYS, ROLE_KEYS, as_message_list, has_message_keys, is_message, is_speaker
from demur.data.nested import generated_within, kept_messages, nested_reply
from demur.data.rows import BrokenRow
from demur.data.transcripts import is_answered_hh, read_marked, read_transcript, unread_mark
from demur.errors import LayoutError, RowError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demur.data.columns import Shape
    from demur.data.judged import Turns
    from demur.data.rows import Row

__all__ = ["LAYOUT_NAMES", "Layout", "detect", "named", "parse_text", "require_parts"]

_SPEAKERS = frozenset({"author", "sender", "speaker", "type"})
# Of others, such as a question and its answer, a model may be asked to write some.
_OF_ROWS = frozenset({"openai", "sharegpt", "preference"})
LAYOUT_NAMES = tuple(dict.fromkeys(shape.name for shape in SHAPES))


@dataclass(frozen=True, slots=True)
class Layout:
    """Read rows of one layout.

    Attributes:
        name: The name that `--format` takes.
        columns: The column of each part; of a named layout that has not met a row, only those that were given.
        shape: What reads the parts; None before a named layout has met a row.
    """

    name: str
    columns: Mapping[str, str]
    shape: Shape | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """Return name and columns as the user is shown them: `openai: messages=conversation`."""
        return f"{self.name}: {' '.join(f'{part}={column}' for part, column in self.columns.items())}"

    def bound(self, fields: Mapping[str, object]) -> Layout:
        """Return this layout with its parts bound to columns.

        Raises:
            LayoutError: A part that it needs has no column.
        """
        if self.shape is not None:
            return self
        layout = _found(fields, self.columns, self.name)
        if layout is None:
            raise LayoutError(_misfit(fields, self.columns, self.name))
        return layout

    @property
    def is_bare(self) -> bool:
        """Tell whether a layout that was found knows of replies only, and of no column for what they answer."""
        return self.name == "reply" or (self.name == "preference" and "prompt" not in self.columns)

    def is_empty_in(self, fields: Mapping[str, object]) -> bool:
        """Tell whether a row holds nothing for any part that is needed: it may be of another table that was merged."""
        return self.shape is not None and all(is_nothing(fields.get(self.columns[part])) for part in self.shape.needs)

    def for_row(self, row: Row, overrides: Mapping[str, str] = {}) -> Layout:
        """Return a further row's layout: its own where it has what a bare reply answers, or the reply to an open chat.

        Args:
            row: A row of the file whose first row has this layout.
            overrides: Columns by part, as for `detect`.

        Raises:
            RowError: This layout is bare, and `detect` refuses the row.
        """
        if is_open_chat(row.fields.get(self.columns.get("messages", ""))):
            with contextlib.suppress(LayoutError):
                own = detect(row.fields, overrides)
                return self if own.is_empty_in(row.fields) else own
        if not self.is_bare:
            return self
        try:
            own = detect(row.fields, overrides)
        except LayoutError as error:
            raise RowError(str(error), where=row.where, reason="unknown_layout") from error
        return self if own.is_bare else own

    def conversations(self, row: Row, *, turns: Turns = "last") -> tuple[Conversation, ...]:
        """Read the conversations of one row as `replies` does, and take nothing else in their place.

        Raises:
            RowError: The row has no assistant turn, a null in place of a judged reply, or cannot be read.
            LayoutError: As `replies`.
            ValueError: As `replies`.
        """
        found = self.replies(row, turns=turns)
        lost = next((one.error for one in found if isinstance(one, BrokenRow)), None)
        if lost is not None:
            raise lost
        return tuple(one for one in found if isinstance(one, Conversation))

    def replies(self, row: Row, *, turns: Turns = "last") -> tuple[Conversation | BrokenRow, ...]:
        """Read one row: a conversation for each reply that is judged, a `BrokenRow` in place of one that is not there.

        Args:
            row: Where to read.
            turns: Whether the last assistant turn is judged, or `all` of them, each with what stands before it.

        Raises:
            RowError: The row cannot be read.
            LayoutError: The layout was named, and the columns do not fit it.
            ValueError: `turns` is neither `last` nor `all`.
        """
        check_turns(turns)
        layout = self.bound(row.fields)
        if layout.shape is None:
            message = f"layout {self.name!r} is bound to no shape; make layouts with detect() or named()"
            raise LayoutError(message)
        missing = [layout.columns[part] for part in layout.shape.needs if layout.columns[part] not in row.fields]
        if missing:
            has = f"has {listed(row.fields)}" if row.fields else "is empty"
            message = f"no column {missing[0]!r}; the row {has}{nested_reply(row.fields)}"
            raise RowError(message, where=row.where)
        columns = layout.shape.completed(layout.columns, row.fields)
        values = {part: row.fields[name] for part, name in columns.items() if name in row.fields}
        spoken = layout.shape.read(values, row.where)
        # A side of a pair has its reply in its own column.
        beside = {} if self.name == "preference" else row.fields
        return tuple(
            BrokenRow(row.position, heard, row.file, row.line, side, turn)
            if isinstance(heard, RowError)
            else Conversation(heard, row.position, side, turn, reasoning, row.file, row.line)
            for side, messages in spoken
            for turn, heard, reasoning in judged(messages, row.where, turns, beside)
        )


def detect(fields: Mapping[str, object], overrides: Mapping[str, str] = {}) -> Layout:
    """Find the layout that a row's columns and values fit.

    Args:
        fields: The row.
        overrides: Columns by part, as `--field part=column` gives them.

    Raises:
        LayoutError: No layout fits, the row is a single message, or a transcript of a template that is not read; or an
            `answer`, mostly the reference, stands beside several replies.
    """
    layout = _found(fields, overrides, None)
    if layout is not None and not overrides and layout.is_empty_in(fields):
        layout = _of_filled(fields) or layout
    spelt = {folded(name): value for name, value in fields.items() if isinstance(name, str)}
    # A column that may hold a whole text holds one turn here, or the name of the conversation that it belongs to.
    if not overrides and has_message_keys(spelt) and (layout is None or _is_told_as_text(layout, spelt)):
        raise LayoutError(_one_message_a_row(fields))
    if layout is None:
        raise LayoutError(_misfit(fields, overrides, None))
    if layout.name == "reply":
        _check_no_transcript(layout, fields)
        is_text = "text" in {*layout.columns, *map(folded, layout.columns.values())}
        if not overrides and is_text and _has_speaker(fields):
            raise LayoutError(_one_message_a_row(fields))
    if not overrides:
        _check_one_reply(layout, fields)
    return layout


def named(name: str, overrides: Mapping[str, str] = {}) -> Layout:
    """Return the layout of that name, which binds its columns when it meets its first row.

    Raises:
        LayoutError: There is no such layout, or it has no such part.
    """
    require_parts(overrides, name)
    return Layout(name, dict(overrides))


def require_parts(given: Mapping[str, str], name: str | None = None) -> None:
    """Refuse columns for parts that no layout has, or not the named one.

    Raises:
        LayoutError: There is such a part, or no such layout.
    """
    parts = dict.fromkeys(part for shape in _shapes(name) for part in shape.parts)
    unknown = [part for part in given if part not in parts]
    if unknown:
        what = "a conversation" if name is None else f"the layout {name!r}"
        message = f"{what} has no part {unknown[0]!r}; name a column for one of {', '.join(parts)}"
        raise LayoutError(message)


def parse_text(text: str, *, where: str = "text") -> Conversation:
    """Read a plain string: turns where it begins with a role token or is an hh transcript, else a bare reply.

    Args:
        text: What to read.
        where: What messages call it.

    Raises:
        RowError: The text has turns, but none of the assistant's; or it is a transcript of a template that is not read.
    """
    if not is_answered_hh(text) and (mark := unread_mark(text)) is not None:
        message = (
            f"begins as a transcript with {mark!r}; give its turns as messages, as <|user|>…<|assistant|>…, or as a "
            "demur.Conversation"
        )
        raise RowError(message, where=where, reason="unknown_layout")
    if _is_row(text):
        message = "is a row as JSON; give it decoded, as json.loads(text), or, if it is a reply, as {'response': text}"
        raise RowError(message, where=where, reason="unknown_layout")
    # A bare reply may begin with "Human:", and then nobody answers.
    read = read_transcript if is_answered_hh(text) else read_marked
    ((turn, heard, reasoning),) = judged(read(text, where), where, "last", {})
    if isinstance(heard, RowError):
        raise heard
    return Conversation(heard, turn=turn, reasoning=reasoning)


def _is_row(text: str) -> bool:
    """Tell whether a text is the JSON of a row, which hardly a model wrote: messages, a pair, a prompt and a reply."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    if all(map(is_message, as_message_list(text) or [None])):
        return True
    with contextlib.suppress(ValueError, RecursionError, LayoutError):
        fields = decode_json(text)
        if isinstance(fields, dict):
            return detect(fields).name in _OF_ROWS or fields.keys() >= {"prompt", "response"}
    return False


def _shapes(name: str | None) -> Sequence[Shape]:
    shapes = [shape for shape in SHAPES if name in (None, shape.name)]
    if not shapes:
        message = f"no layout {name!r}; use one of {', '.join(LAYOUT_NAMES)}"
        raise LayoutError(message)
    return shapes


def _check_given(fields: Mapping[str, object], given: Mapping[str, str], name: str | None) -> None:
    require_parts(given, name)
    absent = [column for column in given.values() if spelling(column, fields) is None]
    if absent:
        message = f"no column {absent[0]!r}; the columns are {listed(fields)}"
        raise LayoutError(message)


# Rows of a file mostly have the same columns: what their names rule out need not be looked at row by row.
@lru_cache(maxsize=64)
def _shapes_for(columns: frozenset[str], given: frozenset[str], name: str | None) -> Sequence[tuple[Shape, Shape]]:
    """Return the shapes that rows with these columns may have, each with itself narrowed to the columns."""
    narrowed = ((shape, shape.narrowed(columns, given)) for shape in _shapes(name))
    return [(shape, found) for shape, found in narrowed if found is not None]


def _found(fields: Mapping[str, object], given: Mapping[str, str], name: str | None) -> Layout | None:
    if given:
        _check_given(fields, given, name)
    shapes = _shapes_for(frozenset(fields), frozenset(given), name)
    # A layout that is named is taken at its word: where the values do not look like it, its reader says what is wrong.
    for by_value in (True,) if name is None else (True, False):
        for shape, narrowed in shapes:
            columns = narrowed.bind(fields, given, by_value=by_value)
            if columns is not None:
                return Layout(shape.name, columns, shape.fixed(given))
    return None


def _of_filled(fields: Mapping[str, object]) -> Layout | None:
    """Return the layout of the columns that hold something, but no bare reply: any text may be one, a title as well."""
    own = _found({name: value for name, value in fields.items() if not is_nothing(value)}, {}, None)
    return None if own is None or own.name == "reply" else own


def _is_told_as_text(layout: Layout, fields: Mapping[str, object]) -> bool:
    if layout.name != "reply":
        return False
    # A column `text` is a reply's usual name: it is a turn only beside the role of a speaker.
    return "text" in layout.columns or (folded(layout.columns["response"]) == "text" and is_message(fields))


def _has_speaker(fields: Mapping[str, object]) -> bool:
    """Tell whether a column says who spoke under another name than a role's: then others of the rows are the user's."""
    return any(
        isinstance(name, str) and folded(name) in _SPEAKERS and is_speaker(fields[name], "user", "assistant")
        for name in fields
    )


def _one_message_a_row(fields: Mapping[str, object]) -> str:
    text = next(
        (name for name, value in fields.items() if folded(name) in CONTENT_KEYS and isinstance(value, str)), None
    )
    message = (
        f"the columns {listed(fields)} hold one message a row; group them under `messages`, one conversation a row"
    )
    if text is None:
        return message
    return (
        f"{message}. Only where every row is a reply, and none the user's, give --field text={text} "
        f"(fields={{'text': {text!r}}})"
    )


def _check_one_reply(layout: Layout, fields: Mapping[str, object]) -> None:
    """Refuse to take a reference for the reply only because several replies, or an object of them, stand beside it."""
    taken = reply_column(layout.columns)
    if taken is None or folded(taken) != REFERENCE:
        return
    if (within := generated_within(fields, layout.columns.values())) is not None:
        message = (
            f"{taken!r} is mostly the reference, and {within!r} holds words of a model within; of that, "
            f"{TAKE_THE_TEXT}; or say what is judged, as in --field response={taken} (fields={{'response': {taken!r}}})"
        )
        raise LayoutError(message)
    replies = [column for column in rivals(layout.columns, fields) if is_named_as_reply(column)]
    if len(replies) > 1:
        message = (
            f"the columns {listed(replies)} may each be the reply, and {taken!r} is mostly the reference; say which "
            f"one is judged, as in --field response={replies[0]} (fields={{'response': {replies[0]!r}}})"
        )
        raise LayoutError(message)


def _check_no_transcript(layout: Layout, fields: Mapping[str, object]) -> None:
    column = next(iter(layout.columns.values()))
    value = fields[column]
    mark = unread_mark(value) if isinstance(value, str) else None
    if mark is not None:
        message = (
            f"{column} begins as a transcript with {mark!r}; split it into `messages`, or give --format reply "
            "(layout='reply') if it is a reply"
        )
        raise LayoutError(message)


def _misfit(fields: Mapping[str, object], given: Mapping[str, str], name: str | None) -> str:
    met = listed([f"{column} ({type(value).__name__})" for column, value in fields.items()])
    chosen = f", with {', '.join(f'{part}={column}' for part, column in given.items())}," if given else ""
    needs = dict.fromkeys(f"{shape.name} ({', '.join(shape.needs)})" for shape in _shapes(name))
    what = "no layout" if name is None else f"not the layout {name!r}"
    return (
        f"the columns {met}{chosen} fit {what}; a layout needs columns for its parts: {'; '.join(needs)}: "
        "rename them, or say which is which, as in --field prompt=COLUMN --field response=COLUMN "
        f"(fields={{'prompt': COLUMN, 'response': COLUMN}}){nested_reply(fields, given.values())}"
        f"{several_replies(fields, given)}{kept_messages(fields)}{_of_nobody(fields)}"
    )


def _of_nobody(fields: Mapping[str, object]) -> str:
    """Say which keys messages have where none says who spoke."""
    for name, value in fields.items():
        first = value[0] if isinstance(value, list) and value else None
        if folded(name) in CHATS and isinstance(first, dict) and first.keys().isdisjoint(ROLE_KEYS):
            keys = ", ".join(map(str, first))
            return f". What {name!r} lists has {keys}, and neither role nor from: give {{role, content}}"
    return ""
