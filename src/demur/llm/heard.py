"""Count what was heard of a model, answers out of the cache among it: what an answer costs, and how long it takes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from demur.llm.exchange import Answer, Failure, Usage

__all__ = ["Heard"]


@dataclass(slots=True)
class Heard:
    """Count the answers that a client gave; unlike what was spent, those that cost nothing any more are among them.

    Attributes:
        answers: Number of answers.
        counted: Those among them that came with a count of tokens.
        usage: Their tokens.
        seconds: How long each of those took that somebody waited for, whenever that was.
    """

    answers: int = 0
    counted: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: array[float] = field(default_factory=lambda: array("d"))

    def add(self, reply: Answer | Failure) -> None:
        """Count a reply; a failure is no answer."""
        if isinstance(reply, Failure):
            return
        self.answers += 1
        if reply.usage is not None:
            self.counted += 1
            self.usage += reply.usage
        if reply.seconds is not None:
            self.seconds.append(reply.seconds)
