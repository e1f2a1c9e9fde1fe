"""State how often a set of kinds holds the true one, and find the sets that keep the statement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DEFAULT_COVERAGE", "CategorySets", "Coverage", "require_coverage"]

Coverage = float | Literal["auto"] | None
"""What sets are asked for: a coverage; `auto`, `DEFAULT_COVERAGE` where it can be stated; None for no sets."""

DEFAULT_COVERAGE = 0.9
"""Coverage that is stated where nobody asks for another one."""

# Below one half a set would more often be wrong than right; beyond 0.999 it takes more refusals than people label.
_LEAST, _MOST = 0.5, 0.999


@dataclass(frozen=True, slots=True)
class CategorySets:
    """Know the sets of split conformal prediction: {k: P(k) >= least}.

    Least ambiguous sets with bounded error levels (Sadinle, Lei and Wasserman 2019, JASA 114:223-234), calibrated on
    split-off rows (Papadopoulos et al. 2002). With s_1 … s_n the probabilities that the model gave to the true kinds of
    n refusals which it was neither trained nor calibrated on, `least` is the r-th largest of them, r = ceil((n + 1)
    coverage). For one further refusal that is exchangeable with these, P(true kind in the set) >= coverage, whatever
    the model: on average over draws of both, and not for each kind or each sort of reply. For r > n nothing less than
    all kinds keeps that, and `least` is 0: such a set is right, and says nothing.

    Attributes:
        coverage: The stated share of refusals whose set holds the true main kind.
        n: Refusals that it was calibrated on.
        least: Probability from which a kind is in the set, from 0 to 1.
    """

    coverage: float
    n: int
    least: float

    @classmethod
    def of(cls, scores: Sequence[float], coverage: float) -> Self:
        """Calibrate.

        Args:
            scores: The probabilities of the true main kinds of held-out refusals, in any order.
            coverage: The share to state.

        Raises:
            ValueError: The coverage is not within [0.5, 0.999].
        """
        require_coverage(coverage)
        n, rank = len(scores), _rank(len(scores), coverage)
        return cls(float(coverage), n, sorted(scores, reverse=True)[rank - 1] if rank <= n else 0.0)

    @property
    def has_enough(self) -> bool:
        """Tell whether the refusals were enough to state the coverage of anything but all kinds."""
        return _rank(self.n, self.coverage) <= self.n

    @property
    def needed(self) -> int:
        """Return the least n for which sets may be less than all kinds, (n + 1) coverage <= n."""
        exact = _exact(self.coverage)
        return math.ceil(exact / (1 - exact))


def require_coverage(coverage: float) -> None:
    """Refuse a coverage that cannot sensibly be stated.

    Raises:
        ValueError: It is not within [0.5, 0.999].
    """
    if not _LEAST <= coverage <= _MOST:
        message = f"coverage {coverage!r}; give a number from {_LEAST} to {_MOST}"
        raise ValueError(message)


def _rank(n: int, coverage: float) -> int:
    return math.ceil((n + 1) * _exact(coverage))


def _exact(coverage: float) -> Fraction:
    """Return the decimal that was meant: of doubles, 100 × 0.55 exceeds 55, and would be one rank off."""
    return Fraction(str(float(coverage)))
