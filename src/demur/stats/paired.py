"""Compare two labelers on the same items, and one with several others: what differs, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from demur.stats.resampling import divide, mean_defined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.stats.resampling import Estimate, Flags, Floats, Resamples

__all__ = ["McNemar", "Rivals", "against_rivals", "f1_difference", "holm", "mcnemar"]


@dataclass(frozen=True, slots=True)
class McNemar:
    """Keep McNemar's exact test (1947): of the items that one of two got right, is either of them more often the one?

    Attributes:
        only_first: Items that the first alone got right.
        only_second: Items that the second alone got right.
        p_value: Two-sided, of the binomial distribution with 1/2; 1 where there is no such item. It takes items for
            independent, as an interval over clusters does not.
        adjusted: The same after Holm's correction for the comparisons that `holm` was given; as `p_value` where it
            stands alone.
    """

    only_first: int
    only_second: int
    p_value: float
    adjusted: float


@dataclass(frozen=True, slots=True)
class Rivals:
    """Keep how one labeler stands to several others, each compared on the items of its own.

    Attributes:
        differences: Share of right answers minus that of each rival, with intervals; nan where there is no such item.
        median: The median of these: above 0, the labeler is better than the median rival. Its interval is over
            clusters, and not over other rivals. nan where nobody can be compared.
        mean: Their mean, which moves where a median of few values stays where it is.
        shares: The labeler's share of right answers on each rival's items, (rivals,).
        rival_shares: Each rival's own, (rivals,).
    """

    differences: tuple[Estimate, ...]
    median: Estimate
    mean: Estimate
    shares: tuple[float, ...]
    rival_shares: tuple[float, ...]

    @property
    def compared(self) -> int:
        """Return the number of rivals that have an item in common with the labeler."""
        return sum(one.n > 0 for one in self.differences)

    @property
    def beaten(self) -> int:
        """Return the number of rivals that the labeler is better than; to be level beats nobody."""
        return sum(one.value > 0 for one in self.differences)


def mcnemar(first: Flags, second: Flags) -> McNemar:
    """Test whether two labelers are right equally often.

    Args:
        first: Where the first is right, (items,).
        second: Where the second is, (items,).
    """
    from scipy.stats import binomtest

    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    differing = only_first + only_second
    p_value = float(binomtest(only_first, differing, 0.5).pvalue) if differing else 1.0
    return McNemar(only_first, only_second, p_value, p_value)


def holm(tests: Sequence[McNemar]) -> tuple[McNemar, ...]:
    """Correct tests that are made together: p_(i) becomes max over j <= i of min(1, (m - j + 1) p_(j)) (Holm 1979)."""
    p_values = np.array([test.p_value for test in tests])
    order = np.argsort(p_values, kind="stable")
    scaled = np.maximum.accumulate(np.minimum(1.0, p_values[order] * np.arange(len(tests), 0, -1)))
    adjusted = np.empty(len(tests))
    adjusted[order] = scaled
    return tuple(replace(test, adjusted=float(value)) for test, value in zip(tests, adjusted, strict=True))


def f1_difference(truth: Flags, first: Flags, second: Flags, resamples: Resamples) -> Estimate:
    """Return how much higher the first one's F1, 2 TP / (called + true), is than the second's.

    It rests on items that refuse or that either says to, and has an interval where each F1 rests on enough clusters.

    Args:
        truth: Whether the reply refuses, (items,).
        first: Whether the first says so, (items,).
        second: Whether the second says so, (items,).
        resamples: Draws over the same items.
    """

    def figure(weights: Floats) -> Floats:
        ours, theirs = (
            divide(weights @ (2.0 * (truth & called)), weights @ (truth.astype(np.float64) + called))
            for called in (first, second)
        )
        return ours - theirs

    ours, theirs = truth | first, truth | second
    return resamples.backed(resamples.estimate(figure, ours | theirs), ours, theirs)


def against_rivals(ours: Flags, theirs: Flags, is_compared: Flags, resamples: Resamples) -> Rivals:
    """Set a labeler against rivals, each on the items that both answered, and against the median of them.

    Args:
        ours: Where the labeler is right, by what each rival is measured with, (items, rivals).
        theirs: Where each rival is right, (items, rivals).
        is_compared: Which items count for which rival, (items, rivals).
        resamples: Draws over the items.
    """
    right, rival = (np.where(is_compared, flags, 0.0) for flags in (ours, theirs))
    n = is_compared.sum(0)

    def differences(weights: Floats) -> Floats:
        return divide(weights @ (right - rival), weights @ is_compared)

    def middles(weights: Floats) -> Floats:
        each = differences(weights)
        return np.stack([_median(each), mean_defined(each)], axis=1)

    median, mean = resamples.estimates(middles, np.asarray(is_compared.any(axis=1), np.bool_))
    shares, rival_shares = (divide(flags.sum(0), n.astype(np.float64)) for flags in (right, rival))
    return Rivals(
        differences=resamples.estimates(differences, is_compared) if len(n) else (),
        median=median,
        mean=mean,
        shares=tuple(shares.tolist()),
        rival_shares=tuple(rival_shares.tolist()),
    )


def _median(figures: Floats) -> Floats:
    """Return the median of those figures, (resamples, figures), that are defined; nan where none is."""
    medians = np.full(len(figures), np.nan)
    is_defined = ~np.isnan(figures).all(axis=1)
    medians[is_defined] = np.nanmedian(figures[is_defined], axis=1)
    return medians
