"""Say what a run may spend, and count what it has spent."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from demur.llm.exchange import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Budget", "Spending"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Say what a run may spend at most, runs that it goes on with included.

    Attributes:
        max_cost: In USD; None for no limit. No request is sent that could go beyond it, however long its answer.
        max_rows: Answers that may be paid for; None for no limit.

    Raises:
        ValueError: A limit is negative or no number.
    """

    max_cost: float | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        for name, value in (("max_cost", self.max_cost), ("max_rows", self.max_rows)):
            if value is not None and not value >= 0:
                message = f"{name}={value!r} is no limit; give a number from 0 on, or leave it out"
                raise ValueError(message)

    def has_room(self, n_answers: int, spent: float, most: float) -> bool:
        """Tell whether another request fits, by what is paid for and set aside, and by what it may cost at most."""
        if self.max_rows is not None and n_answers >= self.max_rows:
            return False
        # What is not known (nan) leaves no room.
        return self.max_cost is None or spent + most <= self.max_cost

    def room(self, spent: Spending, costs: Iterable[tuple[float, float]]) -> int:
        """Count the requests that there is room for, one after the other.

        Args:
            spent: What was spent before.
            costs: For each request what it is taken to cost, and what it may cost at most, in USD.
        """
        paid, n = spent.cost + spent.uncounted_cost, 0
        for cost, most in costs:
            if not self.has_room(spent.answers + n, paid, most):
                break
            paid, n = paid + cost, n + 1
        return n


@dataclass(frozen=True, slots=True)
class Spending:
    """Count what was asked and paid; two counts add up with `+`.

    Attributes:
        answers: Answers that are paid for. One that did not come in time is among them: it may be billed.
        unusable: Those among them that said nothing that could be used, or did not come in time.
        failures: Requests that the provider did not answer, which nothing is paid for.
        reused: Requests that the cache answered, for nothing.
        uncounted: Answers that came without a count of their tokens, or did not come in time.
        usage: Tokens of the answers that came with a count.
        cost: What these cost, in USD; nan where a price is not known.
        uncounted_cost: What the answers without a count may have cost at most, in USD; nan where that is not known.
    """

    answers: int = 0
    unusable: int = 0
    failures: int = 0
    reused: int = 0
    uncounted: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0
    uncounted_cost: float = 0.0

    def __add__(self, other: Self) -> Self:
        """Add two counts."""
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    @property
    def is_cost_known(self) -> bool:
        """Tell whether everything that was paid for had a price."""
        return not math.isnan(self.cost)

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for `json.dumps`; an unknown cost is null."""
        names = ("prompt_tokens", "cached_tokens", "written_tokens", "completion_tokens")
        tokens: Mapping[str, int] = dict(zip(names, astuple(self.usage), strict=True))
        return {
            "answers": self.answers,
            "unusable": self.unusable,
            "failures": self.failures,
            "reused": self.reused,
            "uncounted": self.uncounted,
            **tokens,
            "cost_usd": self.cost if self.is_cost_known else None,
            "uncounted_cost_usd": None if math.isnan(self.uncounted_cost) else self.uncounted_cost,
        }
