"""Keep the squares of many counts in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Sketch"]

_BUCKETS = 1_024


@dataclass(frozen=True, slots=True)
class Sketch:
    """Keep counts of any number of clusters in sums over buckets; two add up with `+`, in whatever order.

    Each cluster has a bucket and a sign, both by its hash, and its counts are added to the bucket under that sign. What
    is linear in the counts is linear in the sums, and the squares of the sums add up to those of the counts, the
    products of clusters that share a bucket being as often positive as negative (Alon, Matias and Szegedy 1999; with
    buckets, Charikar, Chen and Farach-Colton 2002; its variance, Thorup and Zhang 2004: 2 / buckets of the square at
    most, however unequal the clusters are).

    Attributes:
        totals: How many rows count as what.
        signed: Of what is counted, the sum of each bucket.
    """

    totals: Mapping[str, int]
    signed: Mapping[str, tuple[int, ...]]

    RELATIVE_ERROR: ClassVar[float] = (2 / _BUCKETS) ** 0.5
    """Standard error of a sum of squares, relative to it, at most."""

    @classmethod
    def of(cls, counts: Mapping[str, Mapping[str, int]]) -> Self:
        """Take counts by the hash of their cluster, in hex, of which the last digits choose bucket and sign."""
        totals: dict[str, int] = {}
        signed: dict[str, list[int]] = {}
        for digest, one in counts.items():
            rest, bucket = divmod(int(digest, 16), _BUCKETS)
            sign = 1 - 2 * (rest % 2)
            for name, count in one.items():
                totals[name] = totals.get(name, 0) + count
                signed.setdefault(name, [0] * _BUCKETS)[bucket] += sign * count
        return cls(totals, {name: tuple(sums) for name, sums in signed.items()})

    def __add__(self, other: Self) -> Self:
        """Add the sums of both."""
        totals, signed = dict(self.totals), dict(self.signed)
        for name, theirs in other.signed.items():
            totals[name] = totals.get(name, 0) + other.totals[name]
            ours = signed.get(name)
            signed[name] = theirs if ours is None else tuple(map(add, ours, theirs))
        return type(self)(totals, signed)

    def signed_of(self, name: str) -> Sequence[int]:
        """Return the sums of what is counted under a name, one a bucket; of what is not, zeros."""
        return self.signed.get(name, (0,) * _BUCKETS)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what `dataclasses.asdict` gave."""
        return cls(stored["totals"], {name: tuple(sums) for name, sums in stored["signed"].items()})
