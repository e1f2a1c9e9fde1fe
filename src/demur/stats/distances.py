"""Say how far two sets of labels lie apart, from 0 (equal) to 1 (nothing in common)."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.stats.resampling import Floats

__all__ = ["SetDistance", "distances", "jaccard", "masi"]

SetDistance = Callable[[AbstractSet[str], AbstractSet[str]], float]

_SUBSET, _OVERLAP = 2 / 3, 1 / 3


def jaccard(first: AbstractSet[str], second: AbstractSet[str]) -> float:
    """Return 1 - |A ∩ B| / |A ∪ B| (Jaccard 1912); two empty sets are equal.

    Example:
        >>> jaccard({"a", "b"}, {"b", "c", "d"})
        0.75
    """
    return 1 - _shared(first, second)


def masi(first: AbstractSet[str], second: AbstractSet[str]) -> float:
    """Return 1 - J M, with J as in `jaccard` and M for how the sets lie to each other (Passonneau 2006, LREC).

    M is 1 for equal sets, 2/3 where one holds the other, 1/3 where each has something of its own, 0 for disjoint ones.

    Example:
        >>> masi({"a", "b"}, {"b", "c", "d"}) == 1 - 1 / 4 * 1 / 3
        True
    """
    if first == second:
        return 0.0
    return 1 - _shared(first, second) * (_SUBSET if first < second or second < first else _OVERLAP)


def distances(values: Sequence[AbstractSet[str]], distance: SetDistance) -> Floats:
    """Return the distance of each two of the values, (values, values)."""
    return np.array([[distance(one, other) for other in values] for one in values]).reshape(len(values), len(values))


def _shared(first: AbstractSet[str], second: AbstractSet[str]) -> float:
    union = first | second
    return len(first & second) / len(union) if union else 1.0
