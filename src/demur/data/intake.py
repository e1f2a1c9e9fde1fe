"""Take what a caller holds in memory: conversations, plain strings and rows become conversations, as files do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

from demur.conversation import Conversation, Turn
from demur.data.api_objects import unwrapped
from demur.data.likeness import is_conversation
from demur.data.reasoning import set_reasoning_apart
from demur.data.rows import Row
from demur.data.shapes import detect, parse_text
from demur.errors import LayoutError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd

__all__ = ["as_conversations", "how_held", "is_frame", "plain", "plain_fields", "records"]

_PLACE = "items"
# The types of `pandas.NA` and `pandas.NaT`, by name: pandas is not imported where nobody else did.
_MISSING = frozenset({"NAType", "NaTType"})


def is_frame(data: object) -> TypeGuard[pd.DataFrame]:
    """Tell whether the data are a pandas frame, without importing pandas where nobody else did."""
    return all(hasattr(data, name) for name in ("to_dict", "notna", "columns"))


def how_held(data: object) -> str | None:
    """Say how the rows of a table of another library are given, by what it has; None where it is none."""
    if hasattr(data, "to_dicts"):
        return "of a polars DataFrame, give data.to_dicts()"
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        return "of a polars LazyFrame, give data.collect().to_dicts()"
    if hasattr(data, "read_all") and hasattr(data, "schema"):
        return "of a reader of Arrow, give data.read_all().to_pylist()"
    return "of a table or column of Arrow, give data.to_pylist()" if hasattr(data, "to_pylist") else None


def records(frame: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a frame; a missing cell is None, as files have it.

    Raises:
        LayoutError: Two of its columns have one name.
    """
    if repeated := frame.columns[frame.columns.duplicated()].tolist():
        message = f"the frame names {repeated[0]!r} twice; give each column a name of its own, or drop one"
        raise LayoutError(message)
    whole = frame.astype(object).where(frame.notna(), None)
    return [plain_fields(row) for row in whole.to_dict(orient="records")]


def as_conversations(items: Iterable[Conversation | str | Mapping[str, Any]]) -> Iterator[Conversation]:
    """Yield the conversations that the items are, in order; thinking at the beginning of a reply is set apart.

    A string is read by `parse_text`, and a dict as a row of a file: one that holds a preference pair gives both sides,
    one after the other. Both know their place among the items as `row_id`; a conversation keeps its own. The items of a
    pandas frame are its rows.

    Raises:
        TypeError: A single conversation, string or dict is given in place of several, which is said at the call; or an
            item is of another type.
        RowError: A string or dict has no reply to judge.
        LayoutError: A dict fits no layout, or two columns of a frame have one name.
    """
    if is_frame(items):
        return _conversations(iter(records(items)))
    if how := how_held(items):
        message = f"Demur takes several conversations; met {type(items).__name__}, {how}"
        raise TypeError(message)
    if isinstance(items, str | bytes | Conversation | Mapping):
        message = f"Demur takes several conversations; put a single one into a list (met one {type(items).__name__})"
        raise TypeError(message)
    return _conversations(iter(items))


def plain_fields(fields: Mapping[Any, object]) -> dict[str, object]:
    """Return a row as JSON has it."""
    return {str(name): plain(value) for name, value in fields.items()}


def plain(value: object) -> object:
    """Return a value as JSON has it: frames that were read from Parquet hold arrays where files have lists.

    What pandas puts for a missing value, nan among it, is None, as in `records`.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if type(value).__name__ in _MISSING or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return plain_fields(value) if isinstance(value, Mapping) else value


def _conversations(items: Iterator[object]) -> Iterator[Conversation]:
    for place, item in enumerate(items):
        if isinstance(item, Conversation):
            yield _without_thinking(item)
        elif isinstance(item, str):
            yield replace(parse_text(item, where=f"{_PLACE}:{place + 1}"), row_id=place)
        elif isinstance(item, Mapping):
            yield from _row_conversations(Row(place, unwrapped(plain_fields(item)), _PLACE, place + 1))
        elif isinstance(item, list | tuple) and is_conversation(plain(item)):
            yield from _row_conversations(Row(place, {"messages": plain(item)}, _PLACE, place + 1))
        else:
            raise _no_conversation(item, f"{_PLACE}:{place + 1}")


def _no_conversation(item: object, where: str) -> TypeError:
    if plain(item) is None:
        return TypeError(f"{where} is missing ({item!r}); drop it, or use demur.audit, which counts it")
    return TypeError(
        f"{where}: a conversation is {type(item).__name__}; give a demur.Conversation, a string, or a dict such as "
        "{'messages': […]}"
    )


def _without_thinking(conversation: Conversation) -> Conversation:
    """Set the reply's thinking apart, unless that was done when the conversation was made."""
    if conversation.reasoning is not None:
        return conversation
    reply, reasoning = set_reasoning_apart(conversation.reply)
    if reply == conversation.reply:
        return conversation
    turns = (*conversation.context, Turn("assistant", reply))
    return replace(conversation, turns=turns, reasoning=reasoning)


def _row_conversations(row: Row) -> tuple[Conversation, ...]:
    try:
        layout = detect(row.fields)
    except LayoutError as error:
        message = f"{row.where}: {error}"
        raise LayoutError(message) from error
    return layout.conversations(row)
