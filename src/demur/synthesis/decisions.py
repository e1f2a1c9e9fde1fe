"""Hold what became of each attempt at a planned row, and count it: planned = kept + rejected + given up + pending."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from demur.conversation import Conversation, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from demur.synthesis.plan import Cell

__all__ = ["Accounts", "Decision", "Fate", "account"]

Fate = Literal["kept", "rejected", "given_up"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Say what became of one attempt.

    Attributes:
        id: The planned row.
        attempt: From 1.
        fate: `rejected` where a row came and failed a check; `given_up` where none came, or nobody judged it.
        reason: Why it does not count; None exactly where it is kept.
        detail: What was met.
        conversation: What was written; None where it cannot be read.
        judged: What the judge said; None where it was not asked, or said nothing.
    """

    id: str
    attempt: int
    fate: Fate
    reason: str | None = None
    detail: str = ""
    conversation: Conversation | None = None
    judged: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for `json.dumps`."""
        turns = () if self.conversation is None else self.conversation.turns
        return {
            "id": self.id,
            "attempt": self.attempt,
            "fate": self.fate,
            "reason": self.reason,
            "detail": self.detail,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns] or None,
            "judged": self.judged,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read back what `to_json` gave.

        Raises:
            ValueError: Something is missing, or is not what it should be.
        """
        try:
            messages = stored["messages"]
            turns = None if messages is None else tuple(Turn(each["role"], each["content"]) for each in messages)
            talk = None if turns is None else Conversation(turns)
            return cls(
                id=stored["id"],
                attempt=stored["attempt"],
                fate=stored["fate"],
                reason=stored["reason"],
                detail=stored["detail"],
                conversation=talk,
                judged=stored["judged"],
            )
        except (KeyError, TypeError) as error:
            message = f"{error!r}; a line holds one decision, as it was written"
            raise ValueError(message) from error


@dataclass(frozen=True, slots=True)
class Accounts:
    """Count what became of planned rows.

    Attributes:
        planned: Rows of the plan.
        kept: Those that count.
        rejected: Those whose last attempt was rejected.
        given_up: Those whose last attempt brought nothing to judge, or nobody judged.
        pending: Those that have attempts left; none once a run came to its end.
        attempts: Attempts decided, by fate.
        reasons: Attempts that were not kept, by reason.
        tried: Attempts decided of each pending row that had some, by its id.

    Raises:
        ValueError: The sums do not hold.
    """

    planned: int
    kept: int
    rejected: int
    given_up: int
    pending: int
    attempts: Mapping[str, int]
    reasons: Mapping[str, int]
    tried: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Hold every planned row to one fate, and every attempt that failed to one reason."""
        failed = sum(n for fate, n in self.attempts.items() if fate != "kept")
        is_whole = self.planned == self.kept + self.rejected + self.given_up + self.pending
        if not is_whole or failed != sum(self.reasons.values()) or self.attempts.get("kept", 0) != self.kept:
            message = f"{self!r}: planned rows are kept, rejected, given up or pending, each once"
            raise ValueError(message)

    def to_json(self) -> dict[str, Any]:
        """Return the counts, ready for `json.dumps`; their order does not tell in which one decisions were made."""
        names = ("planned", "kept", "rejected", "given_up", "pending")
        return {
            **{name: getattr(self, name) for name in names},
            "attempts": dict(sorted(self.attempts.items())),
            "reasons": dict(sorted(self.reasons.items())),
        }


def account(cells: Sequence[Cell], decisions: Iterable[Decision], *, attempts: int) -> Accounts:
    """Count what became of some planned rows; decisions on others are passed over.

    Args:
        cells: The planned rows.
        decisions: One of an attempt, in any order: an attempt that was given up may be made again after later ones.
        attempts: How many a row has at most.
    """
    ids = {cell.id for cell in cells}
    ours = [decision for decision in decisions if decision.id in ids]
    by_row: dict[str, dict[int, Decision]] = {}
    for decision in ours:
        by_row.setdefault(decision.id, {})[decision.attempt] = decision
    ends = {name: _end(made, attempts) for name, made in by_row.items()}
    fates = Counter(end.fate for end in ends.values() if end is not None)
    return Accounts(
        planned=len(cells),
        kept=fates["kept"],
        rejected=fates["rejected"],
        given_up=fates["given_up"],
        pending=len(cells) - fates.total(),
        attempts=Counter(decision.fate for decision in ours),
        reasons=Counter(decision.reason for decision in ours if decision.reason is not None),
        tried={name: len(by_row[name]) for name, end in ends.items() if end is None},
    )


def _end(made: Mapping[int, Decision], attempts: int) -> Decision | None:
    """Return what settles a row, given its decisions by attempt: that it is kept, or the last of all its attempts."""
    kept = next((decision for decision in made.values() if decision.fate == "kept"), None)
    return made[max(made)] if kept is None and len(made) >= attempts else kept
