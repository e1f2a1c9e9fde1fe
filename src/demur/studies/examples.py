"""Keep single replies in excerpt: short enough to show, and safe to write anywhere."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.conversation import Conversation
    from demur.errors import RowError
    from demur.verdict import Outcome, Verdict

__all__ = ["BrokenSample", "Example", "excerpt"]

_REQUEST_CHARACTERS = 280
_REPLY_CHARACTERS = 480
_HEAD_SHARE = 0.7
_NUMBERS = ("refusal_probability", "category_probability")
# A word that the cut goes through is left out, unless it is no word but a wall of characters.
_LAST_WORD = re.compile(r"\s+\S{0,20}$")
_FIRST_WORD = re.compile(r"^\S{0,20}\s+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def excerpt(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: the middle is left out, and what no file can hold is replaced.

    Example:
        >>> excerpt("I'm sorry, but I cannot help you with that one.", 30)
        "I'm sorry, but I … one."
    """
    stripped = text.strip()
    if len(stripped) > limit:
        head = int((limit - 3) * _HEAD_SHARE)
        tail = limit - 3 - head
        stripped = f"{_LAST_WORD.sub('', stripped[:head])} … {_FIRST_WORD.sub('', stripped[len(stripped) - tail :])}"
    # Lone surrogates cannot be written as UTF-8, and control characters may steer the terminal that shows them.
    printable = stripped.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n")
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", printable)


@dataclass(frozen=True, slots=True)
class Example:
    """Keep one judged reply in excerpt.

    Attributes:
        row_id: Position of the row in the source.
        side: `chosen` or `rejected`, or None.
        turn: Index of the reply among the assistant turns of its row.
        request: Excerpt of the last user turn before the reply.
        reply: Excerpt of the reply.
        outcome: `full`, `partial` or `none`.
        category: The main kind, or None.
        refusal_probability: P(the reply refuses); nan where the labeler has none.
        category_probability: P(the main kind | the reply refuses); nan where the labeler has none.
    """

    row_id: int
    side: str | None
    turn: int
    request: str
    reply: str
    outcome: Outcome
    category: str | None
    refusal_probability: float
    category_probability: float

    @property
    def probability(self) -> float:
        """Return P(the reply refuses and is of its kind); nan where the labeler has none."""
        return self.refusal_probability * self.category_probability

    @classmethod
    def of(cls, conversation: Conversation, verdict: Verdict, category_probability: float) -> Self:
        """Cut the excerpts of one judged conversation."""
        return cls(
            row_id=conversation.row_id,
            side=conversation.side,
            turn=conversation.turn,
            request=excerpt(conversation.request, _REQUEST_CHARACTERS),
            reply=excerpt(conversation.reply, _REPLY_CHARACTERS),
            outcome=verdict.outcome,
            category=verdict.category,
            refusal_probability=verdict.refusal_probability,
            category_probability=category_probability,
        )

    def to_json(self) -> dict[str, object]:
        """Return what JSON can hold: nan, which JSON lacks, as null."""
        return {key: None if key in _NUMBERS and math.isnan(value) else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        read: dict[str, Any] = {key: math.nan if key in _NUMBERS and data[key] is None else data[key] for key in data}
        return cls(**read)


@dataclass(frozen=True, slots=True)
class BrokenSample:
    """Keep where a row could not be read, and why."""

    where: str
    message: str
    reason: str

    @classmethod
    def of(cls, error: RowError) -> Self:
        """Keep what the error says, in excerpt."""
        return cls(excerpt(error.where, 200), excerpt(error.message, 300), excerpt(error.reason, 80))
