"""Keep how many of how many, and know the share with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

__all__ = ["Z_95", "Interval", "Share"]

Z_95 = NormalDist().inv_cdf(0.975)
"""The standard normal quantile of every 95 % interval here."""


class Interval(NamedTuple):
    """Keep the two ends of a 95 % interval; both nan where there is none."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Share:
    """Keep how many of how many, and know the share with its interval.

    Attributes:
        count: How many.
        total: Of how many.
        effect: Design effect (Kish 1965): how many of these rows say as much as an independent one, 1 at least; it is
            infinite, and there is no interval, where all of them together say nothing of others.
    """

    count: int
    total: int
    effect: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a part that is larger than the whole, or negative, and an effect that would narrow the interval."""
        if not 0 <= self.count <= self.total:
            message = f"a share of {self.count!r} out of {self.total!r}; give a count from 0 to the total"
            raise ValueError(message)
        if not self.effect >= 1:
            message = f"a design effect of {self.effect!r}; give 1, of independent rows, or more"
            raise ValueError(message)

    @property
    def share(self) -> float:
        """Return count / total; nan where the total is 0."""
        return self.count / self.total if self.total else math.nan

    @property
    def interval(self) -> Interval:
        """Return the 95 % score interval of Wilson (1927, JASA 22:209-212); nan where the total is 0.

        With p = count / total, n = total / effect (as Korn and Graubard 1998 do) and z = 1.96:
        (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n).
        """
        n, p = self.total / self.effect, self.share
        if not n:
            return Interval(math.nan, math.nan)
        middle = p + Z_95**2 / (2 * n)
        margin = Z_95 * math.sqrt(p * (1 - p) / n + Z_95**2 / (4 * n**2))
        scale = 1 + Z_95**2 / n
        # At the edges the closed form is exact (0, or 1); floating point leaves it 1e-17 off.
        low = 0.0 if self.count == 0 else (middle - margin) / scale
        return Interval(low, 1.0 if self.count == self.total else (middle + margin) / scale)
