"""Know how much replies to one request depend on each other, in memory that does not grow with the data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["SAMPLE", "Clusters"]

SAMPLE = 4_096
"""Clusters that are kept: enough to know a design effect to some five per cent."""

_KEY_BYTES = 8


@dataclass(frozen=True, slots=True)
class Clusters:
    """Keep what was counted in each of a sample of clusters; two add up with `+`.

    The sample is of those whose hashes are the smallest (KMV, Bar-Yossef et al. 2002). So it is the same in whatever
    order and in however many parts the rows come, each cluster in it has all of its rows, and the place of the last
    hash tells how many there are in all.

    Attributes:
        counts: By hash of the cluster's name, `SAMPLE` at most: how many of its rows are what.
        is_whole: Whether no cluster was left out.
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_whole: bool = True

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Iterable[str]]]) -> Self:
        """Count rows, each given as the name of its cluster and what it counts as; of none, the neutral element."""
        counts: dict[str, Counter[str]] = {}
        for name, marks in rows:
            digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).hexdigest()
            counts.setdefault(digest, Counter()).update(marks)
        return cls._sampled(counts, is_whole=True)

    def __add__(self, other: Self) -> Self:
        """Add the counts of both."""
        counts = dict(self.counts)
        for digest, theirs in other.counts.items():
            counts[digest] = Counter(counts.get(digest, {})) + Counter(theirs)
        return self._sampled(counts, is_whole=self.is_whole and other.is_whole)

    @classmethod
    def _sampled(cls, counts: Mapping[str, Mapping[str, int]], *, is_whole: bool) -> Self:
        kept = nsmallest(SAMPLE, counts)
        return cls({digest: dict(counts[digest]) for digest in kept}, is_whole and len(kept) == len(counts))

    @property
    def number(self) -> int:
        """Return how many clusters there are; estimated, to some two per cent, where not all were kept.

        With the k-th smallest of the hashes at u between 0 and 1: (k - 1) / u.
        """
        if self.is_whole:
            return len(self.counts)
        last = (int(max(self.counts), 16) + 1) / 256.0**_KEY_BYTES
        return round((len(self.counts) - 1) / last)

    def has_several(self, name: str) -> bool:
        """Tell whether any cluster of the sample has several rows that count as this."""
        return any(one.get(name, 0) > 1 for one in self.counts.values())

    def effects(self, parts: Iterable[str], whole: str) -> dict[str, float]:
        """Return the design effect of each share part / whole, all named as the rows count.

        With a and b of them in each of K clusters, n = Σb and p = Σa / n, the variance of a ratio by linearisation
        (Cochran 1977, 6.11) over that of n independent rows (Kish 1965):

            D = K / (K - 1) · Σ(a - p b)² / n² / (p (1 - p) / (n - 1))

        The n rows say as much as n / D independent ones. D is never below 1, for an interval is not to be narrower than
        independent rows would have it. Where p is 0 or 1 nothing shows how far the rows of a cluster agree, and each
        cluster counts as one row: D = n / K. A single cluster says nothing of others: D is 1, and the share is that of
        its own rows.
        """
        members = [one for one in self.counts.values() if one.get(whole)]
        sizes = [one[whole] for one in members]
        k, total, squares = len(members), sum(sizes), sum(size * size for size in sizes)
        sums, own, cross = Counter[str](), Counter[str](), Counter[str]()
        for one, size in zip(members, sizes, strict=True):
            for name, count in one.items():
                sums[name] += count
                own[name] += count * count
                cross[name] += count * size
        found = {}
        for part in parts:
            p = sums[part] / total if total else 0.0
            if k <= 1 or k == total:
                found[part] = 1.0
            elif sums[part] in (0, total):
                found[part] = total / k
            else:
                between = own[part] - 2 * p * cross[part] + p * p * squares
                found[part] = max(1.0, k / (k - 1) * between / total**2 / (p * (1 - p) / (total - 1)))
        return found

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what `dataclasses.asdict` gave."""
        return cls(stored["counts"], stored["is_whole"])
