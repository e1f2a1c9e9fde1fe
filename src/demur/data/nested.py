"""Say what to do where the reply stands within an object or a list: no column that is named reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.data.chats import TAKE_THE_TEXT, is_conversation
from demur.data.column_names import is_in_words

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["holds_a_reply", "nested_reply"]

# What APIs, engines and tools that evaluate put what came out into.
_WRAPPERS = frozenset(
    {
        *("answers", "body", "candidates", "choices", "completion", "completions", "generations", "output", "outputs"),
        *("response", "responses", "resps", "result", "results"),
    }
)

# Under which names a text is what a model said.
_SAID = frozenset({"completion", "content", "generated_text", "message", "output_text", "response", "text"})
_DEEPEST = 6


def holds_a_reply(fields: Mapping[str, object]) -> bool:
    """Tell whether a column of what came out holds words of a model within: its figures and labels are none."""
    return any(name in _WRAPPERS and _says_something(value) for name, value in fields.items())


def _says_something(value: object, depth: int = 0) -> bool:
    if depth > _DEEPEST or is_conversation(value):
        return False
    if isinstance(value, dict):
        return any(
            (name in _SAID and is_in_words(said)) or (not isinstance(said, str) and _says_something(said, depth + 1))
            for name, said in value.items()
        )
    return isinstance(value, list) and any(is_in_words(each) or _says_something(each, depth + 1) for each in value)


def nested_reply(fields: Mapping[str, object], given: Collection[str] = ()) -> str:
    """Return a sentence on the column that seems to hold the reply within, for the end of an error; "" where none does.

    Args:
        fields: The row.
        given: Columns that were named, one of which may be meant.
    """
    names = {*given, *_WRAPPERS}
    nested = [
        name
        for name, value in fields.items()
        if name in names and isinstance(value, dict | list) and value and not is_conversation(value)
    ]
    if not nested:
        return ""
    what = "an object" if isinstance(fields[nested[0]], dict) else "a list"
    return (
        f". {nested[0]!r} is {what}, and a column is taken as a whole: where the reply stands within it, "
        f"{TAKE_THE_TEXT}"
    )
