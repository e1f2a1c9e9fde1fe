"""Keep single replies in excerpt, for whoever wants to read some."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from demur.studies.excerpts import excerpt, excerpt_around
from demur.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.conversation import Conversation
    from demur.errors import RowError
    from demur.verdict import Outcome, Verdict

__all__ = ["BrokenSample", "Example"]

_REQUEST_CHARACTERS = 280
_REPLY_CHARACTERS = 480
_PLACE = 200
_NUMBERS = ("refusal_probability", "category_probability")


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
        evidence: The sentence that carries the refusal, as a span of the excerpt `reply`; None where there is none.
        where: Excerpt of `file:line`; None where the row came from no file.
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
    evidence: Evidence | None = None
    where: str | None = None

    @property
    def probability(self) -> float:
        """Return P(the reply refuses and is of its kind), or that it refuses where nothing is known of the kind's."""
        of_kind = 1.0 if math.isnan(self.category_probability) else self.category_probability
        return self.refusal_probability * of_kind

    @classmethod
    def of(cls, conversation: Conversation, verdict: Verdict, category_probability: float) -> Self:
        """Cut the excerpts of one judged conversation; that of the reply shows the evidence."""
        reply, evidence = _with_evidence(conversation.reply, verdict.evidence)
        return cls(
            row_id=conversation.row_id,
            side=conversation.side,
            turn=conversation.turn,
            request=excerpt(conversation.request, _REQUEST_CHARACTERS),
            reply=reply,
            outcome=verdict.outcome,
            category=verdict.category,
            refusal_probability=verdict.refusal_probability,
            category_probability=category_probability,
            evidence=evidence,
            where=None if conversation.file is None else excerpt(f"{conversation.file}:{conversation.line}", _PLACE),
        )

    def to_json(self) -> dict[str, object]:
        """Return what JSON can hold: nan, which JSON lacks, as null."""
        return {key: None if key in _NUMBERS and math.isnan(value) else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        read: dict[str, Any] = {key: math.nan if key in _NUMBERS and data[key] is None else data[key] for key in data}
        stored = data["evidence"]
        return cls(**{**read, "evidence": None if stored is None else Evidence(**stored)})


def _with_evidence(reply: str, evidence: Evidence | None) -> tuple[str, Evidence | None]:
    """Return the excerpt of a reply and the evidence as a span of it."""
    if evidence is None:
        return excerpt(reply, _REPLY_CHARACTERS), None
    text, place = excerpt_around(reply, _REPLY_CHARACTERS, (evidence.start, evidence.end))
    return text, None if place is None else Evidence(*place, evidence.score)


@dataclass(frozen=True, slots=True)
class BrokenSample:
    """Keep where a row could not be read, and why."""

    where: str
    message: str
    reason: str

    @classmethod
    def of(cls, error: RowError) -> Self:
        """Keep what the error says, in excerpt."""
        return cls(excerpt(error.where, _PLACE), excerpt(error.message, 300), excerpt(error.reason, 80))
