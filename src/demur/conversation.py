"""Hold a conversation whose last turn is the assistant reply under judgement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

__all__ = ["ROLES", "SIDES", "Conversation", "Role", "Turn"]

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = get_args(Role)
SIDES = ("chosen", "rejected")
"""What the replies of a preference pair are called."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Keep one message: who spoke, and what.

    Raises:
        ValueError: Nobody is called so.
        TypeError: What was said is no text.
    """

    role: Role
    content: str

    def __post_init__(self) -> None:
        """Refuse what no reader gives: clients hold None where a reply is a refusal or a tool call."""
        if self.role not in ROLES:
            message = f"a turn's role is {self.role!r}; use one of {', '.join(ROLES)}"
            raise ValueError(message)
        if not isinstance(self.content, str):
            message = (
                f"the content of the turn of the {self.role} is {self.content!r}; give a text, '' where it is empty"
            )
            raise TypeError(message)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Keep the turns up to and including the assistant reply that is judged.

    Attributes:
        turns: The context, oldest first, and last the judged reply, whose role is always `assistant`.
        row_id: Position of the row in its source, from 0. An audit takes both sides of one row for a pair, so those
            that are built by hand need one; conversations without a side get their place among the others.
        side: `chosen` or `rejected` for a reply out of a preference pair, else None.
        turn: Index of the judged reply among the assistant turns of its row, from 0.
        reasoning: The reply's own thinking (`<think>…</think>` and relatives), set apart and never judged.
        file: The file that the row came from, as the user would name it; None where it came from none. It is no part of
            what is said: conversations that differ in file or line alone are equal.
        line: First line of the row in that file, from 1; its number where a file has no lines (Parquet, JSON array).

    Raises:
        TypeError: The turns are none: messages as rows have them, for example, or a text.
        ValueError: There is no turn, the last one is not the assistant's, or a side has another name.
    """

    turns: tuple[Turn, ...]
    row_id: int = 0
    side: str | None = None
    turn: int = 0
    reasoning: str | None = None
    file: str | None = field(default=None, compare=False, repr=False)
    line: int | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a conversation that has nothing to judge, and a side that no pair would be counted by."""
        object.__setattr__(self, "turns", _turns(self.turns))
        if not self.turns:
            message = "a conversation has no turns; it needs at least the assistant reply to judge"
            raise ValueError(message)
        if self.turns[-1].role != "assistant":
            message = f"the last turn's role is {self.turns[-1].role!r}; it must be 'assistant', the reply to judge"
            raise ValueError(message)
        if self.side is not None and self.side not in SIDES:
            message = f"a conversation's side is {self.side!r}; use one of {', '.join(SIDES)}, or None"
            raise ValueError(message)

    @property
    def reply(self) -> str:
        """Return the text that is judged."""
        return self.turns[-1].content

    @property
    def context(self) -> tuple[Turn, ...]:
        """Return the turns before the judged reply."""
        return self.turns[:-1]

    @property
    def request(self) -> str:
        """Return the last user turn before the reply, or an empty string where there is none."""
        return next((turn.content for turn in reversed(self.context) if turn.role == "user"), "")

    @classmethod
    def of(cls, request: str, reply: str, *, system: str | None = None) -> Self:
        """Build the plainest conversation: a request and its reply, under a system prompt if one is given."""
        opening = () if system is None else (Turn("system", system),)
        return cls((*opening, Turn("user", request), Turn("assistant", reply)))


def _turns(given: object) -> tuple[Turn, ...]:
    """Return turns in a tuple, which can be hashed: texts are known again by it."""
    turns: tuple[Any, ...] = tuple(given) if isinstance(given, Iterable) else (given,)
    if isinstance(given, Turn) or not all(isinstance(turn, Turn) for turn in turns):
        met = ", ".join(sorted({type(turn).__name__ for turn in turns}))
        message = (
            f"a conversation of {met}; give it demur.Turn(role, content) for each message, in a tuple, or a row "
            "{'messages': […]} in its place"
        )
        raise TypeError(message)
    return turns
