"""List the layouts: which parts each has, the columns that they go by, and what their values look like.

To add a layout, add a shape to `SHAPES`, and its reading to `chats`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from demur.data import chats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from demur.data.chats import Spoken, Values

__all__ = ["SHAPES", "Column", "Shape"]

_CHATS = ("messages", "conversation", "conversations", "chat", "dialog", "dialogue")
_TEXTS = ("text", "transcript", "conversation", "dialogue", "dialog", "chat", "messages", "content")
_PROMPTS = ("prompt", "question", "query", "instruction", "request", "user_prompt", "user", "input")
_RESPONSES = (
    "response",
    "answer",
    "completion",
    "output",
    "reply",
    "generation",
    "generated_text",
    "model_output",
    "model_response",
    "assistant",
)


@dataclass(frozen=True, slots=True)
class Column:
    """Say which columns a part goes by, the likeliest first, and what its value looks like."""

    names: tuple[str, ...]
    fits: Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Shape:
    """Say what a layout needs and takes, and how it is read.

    Attributes:
        name: What `--format` calls it; several shapes of one name are tried in order.
        needs: The parts that must be there.
        read: Turns the values of these parts into what was said.
        takes: The parts that may be there.
    """

    name: str
    needs: Mapping[str, Column]
    read: Callable[[Values, str], list[Spoken]]
    takes: Mapping[str, Column] = field(default_factory=dict)

    @property
    def parts(self) -> Mapping[str, Column]:
        """Return all parts, those that it needs first."""
        return {**self.needs, **self.takes}

    def bind(self, fields: Mapping[str, object], given: Mapping[str, str], *, by_value: bool) -> dict[str, str] | None:
        """Find a column for each part, or return None where one that is needed has none.

        Args:
            fields: The row whose columns are looked at.
            given: Columns by part that are taken before all others.
            by_value: Whether a column's value must look like the part, too.
        """
        if not given.keys() <= self.parts.keys():
            return None
        found: dict[str, str] = {}
        for part, column in self.parts.items():
            names = (given[part],) if part in given else column.names
            fitting = [name for name in names if name in fields and (not by_value or column.fits(fields[name]))]
            if fitting:
                # A number may be what was said, but a text beside it is likelier: the number may be a score.
                found[part] = next((name for name in fitting if not chats.is_number(fields[name])), fitting[0])
            elif part in self.needs:
                return None
        return found


_SIDE = {"side": Column(("side",), chats.is_side)}
_SYSTEM = {"system": Column(("system", "system_prompt"), chats.is_textual)}
_PROMPT = Column(_PROMPTS, chats.is_textual)
_RESPONSE = Column(_RESPONSES, chats.is_textual)
_TEXT_RESPONSE = Column((*_RESPONSES, "text"), chats.is_textual)

# In the order of detection: what is marked most clearly comes first, the bare reply last.
SHAPES = (
    Shape(
        "preference",
        {"chosen": Column(("chosen",), chats.is_textual), "rejected": Column(("rejected",), chats.is_textual)},
        chats.read_preference,
        {"prompt": _PROMPT, **_SYSTEM},
    ),
    Shape(
        "prompt_response",
        {"prompt": Column(_CHATS, chats.is_open_chat), "response": _RESPONSE},
        chats.read_pair,
        {**_SYSTEM, **_SIDE},
    ),
    Shape("openai", {"messages": Column(_CHATS, chats.is_chat)}, chats.read_chat, _SIDE),
    Shape("sharegpt", {"messages": Column(("conversations", *_CHATS), chats.is_sharegpt)}, chats.read_chat, _SIDE),
    Shape("hh", {"text": Column(_TEXTS, chats.is_hh_text)}, chats.read_text, _SIDE),
    Shape("role_tokens", {"text": Column(_TEXTS, chats.is_marked_text)}, chats.read_text, _SIDE),
    Shape(
        "alpaca",
        {
            "instruction": Column(("instruction",), chats.is_textual),
            "output": Column(("output", "response"), chats.is_textual),
        },
        chats.read_alpaca,
        {"input": Column(("input", "context"), chats.is_textual), **_SYSTEM, **_SIDE},
    ),
    Shape("prompt_response", {"prompt": _PROMPT, "response": _TEXT_RESPONSE}, chats.read_pair, {**_SYSTEM, **_SIDE}),
    # A number is a bare reply only where there is no text to be one.
    Shape("reply", {"response": Column(_TEXT_RESPONSE.names, chats.is_textual_but_no_number)}, chats.read_reply, _SIDE),
    Shape("reply", {"text": Column(_TEXTS, chats.is_textual_but_no_number)}, chats.read_text, _SIDE),
    Shape("reply", {"response": _TEXT_RESPONSE}, chats.read_reply, _SIDE),
    Shape("reply", {"text": Column(_TEXTS, chats.is_textual)}, chats.read_text, _SIDE),
    # A first row that holds nothing is its own error, and does not hide the layout of those that follow.
    Shape("openai", {"messages": Column(("messages",), chats.is_nothing)}, chats.read_chat, _SIDE),
)
