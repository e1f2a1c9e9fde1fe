"""Say what to do where the reply stands within an object or a list: no column that is named reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.data.chats import TAKE_THE_TEXT
from demur.data.column_names import folded, is_in_words, is_named_as_reply
from demur.data.likeness import is_answered_chat, is_conversation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["generated_within", "holds_a_reply", "kept_messages", "nested_reply"]

# What APIs, engines and tools that evaluate put what came out into.
_GENERATED = frozenset(
    {
        *("completion", "completions", "generations", "model_outputs", "output", "outputs"),
        *("predictions", "response", "responses", "resps", "samples"),
    }
)
# Under these, other things stand as well: what a question offers, how people answered it, figures.
_WRAPPERS = _GENERATED | {
    *("answer", "answers", "body", "candidates", "choices", "content", "message", "response_body", "result", "results"),
}

# Under which names a text is what a model said.
_SAID = frozenset({"completion", "content", "generated_text", "message", "output_text", "response", "text"})
_DEEPEST = 6


def holds_a_reply(fields: Mapping[str, object]) -> bool:
    """Tell whether a column of what came out holds words of a model within: its figures and labels are none."""
    return any(_is_wrapper(name) and _says_something(value) for name, value in fields.items())


def generated_within(fields: Mapping[str, object], taken: Collection[str]) -> str | None:
    """Name a column, of those that are not taken, that holds what a model wrote within; None where there is none."""
    return next(
        (
            name
            for name, value in fields.items()
            if name not in taken and folded(name) in _GENERATED and _says_something(value)
        ),
        None,
    )


def kept_messages(fields: Mapping[str, object]) -> str:
    """Return a sentence on the column that holds a conversation under a name of its own; "" where none does."""
    name = next((name for name, value in fields.items() if is_answered_chat(value)), None)
    if name is None:
        return ""
    return f". {name!r} holds messages: give --field messages={name} (fields={{'messages': {name!r}}})"


def _is_wrapper(name: str) -> bool:
    return folded(name) in _WRAPPERS or is_named_as_reply(name)


def _says_something(value: object, depth: int = 0) -> bool:
    if depth > _DEEPEST:
        return False
    if is_conversation(value):
        # A reply as an API gives it is a message itself; what ends with the user is a request that was kept.
        return is_answered_chat(value)
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
    nested = [
        name
        for name, value in fields.items()
        if (name in given or _is_wrapper(name))
        and isinstance(value, dict | list)
        and value
        and (not is_conversation(value) or is_answered_chat(value))
    ]
    if not nested:
        return ""
    what = "an object" if isinstance(fields[nested[0]], dict) else "a list"
    return (
        f". {nested[0]!r} is {what}, and a column is taken as a whole: where the reply stands within it, "
        f"{TAKE_THE_TEXT}"
    )
