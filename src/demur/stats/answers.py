"""Hold who answered what to one question, and tell equal items once: agreement sees patterns, not items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from demur.stats.resampling import Resamples

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from demur.stats.resampling import Floats

__all__ = ["MISSING", "Answers", "Codes", "counted"]

Codes = NDArray[np.int64]
MISSING = -1
"""Stands for an answer that was not given."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Keep the answers of some annotators to one question, as patterns of answers with the number of their items.

    Attributes:
        classes: What could be answered, in order.
        codes: Place among the classes of each annotator's answer, or `MISSING`, (patterns, annotators). Every pattern
            has at least one answer; no two are equal.
        times: How many items are answered so, (patterns,).
        pattern_of_item: Which pattern each item has, or `MISSING` where nobody answered, (items,).
        cluster_of_item: Which cluster each item is of, counted from 0, (items,): those of one depend on each other.
    """

    classes: tuple[Hashable, ...]
    codes: Codes
    times: NDArray[np.int64]
    pattern_of_item: NDArray[np.int64]
    cluster_of_item: NDArray[np.int64]

    @classmethod
    def of(cls, classes: Sequence[Hashable], codes: Codes, cluster_of_item: NDArray[np.int64] | None = None) -> Self:
        """Gather equal items; `codes` is (items, annotators), and without clusters each item stands alone."""
        is_answered = (codes != MISSING).any(axis=1)
        answered = codes[is_answered]
        # Without annotators or answers, numpy has no rows to compare.
        patterns, places, times = (
            np.unique(answered, axis=0, return_inverse=True, return_counts=True)
            if answered.size
            else (answered, np.empty(0, np.int64), np.empty(0, np.int64))
        )
        of_item = np.full(len(codes), MISSING, dtype=np.int64)
        of_item[is_answered] = places.reshape(-1)
        clusters = np.arange(len(codes)) if cluster_of_item is None else cluster_of_item
        return cls(tuple(classes), patterns, times.astype(np.int64), of_item, clusters)

    @property
    def counts(self) -> Floats:
        """Return how many annotators gave each class, (patterns, classes)."""
        return counted(self.codes, len(self.classes))

    @property
    def items(self) -> int:
        """Return the number of items that somebody answered."""
        return int(self.times.sum())

    def resamples(self, number: int, seed: int) -> Resamples:
        """Draw clusters of items with replacement, `number` times: the same answers and seed give the same draws."""
        generator, is_answered = np.random.default_rng(seed), self.pattern_of_item != MISSING
        clusters, patterns = self.cluster_of_item[is_answered], self.pattern_of_item[is_answered]
        if len(np.unique(clusters)) == len(clusters):
            return Resamples.of_counts(self.times, number=number, generator=generator)
        return Resamples.of_sorts(patterns, clusters, number=number, generator=generator)


def counted(codes: Codes, n_classes: int) -> Floats:
    """Count the answers of each class, (patterns, classes), in codes of (patterns, annotators)."""
    return np.stack([(codes == code).sum(axis=1) for code in range(n_classes)], axis=1).astype(np.float64)
