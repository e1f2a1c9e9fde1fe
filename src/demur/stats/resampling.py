"""Draw rows again and again, so that every figure has an interval that knows which rows belong together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from demur.stats.shares import Z_95

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

__all__ = [
    "LEAST_CLUSTERS",
    "Estimate",
    "Flags",
    "Floats",
    "Resamples",
    "divide",
    "mean_defined",
    "require_draws",
    "slices",
]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Statistic = Callable[[Floats], Floats]
"""Takes row weights, (resamples, rows), and gives the figure under each, (resamples,); nan where it is undefined."""

LEAST_CLUSTERS = 10
"""The fewest clusters that an interval is given from.

Percentiles of a bootstrap are too narrow for few clusters. In simulations of shares of .7 and .9, with one row, 1 to 5
rows and 100 dependent rows a cluster, intervals from 3 clusters held the true share in 68 to 99 of 100 cases, from 5 in
78 to 99, from 10 in 85 to 99, and from 20 in 89 to 99.
"""

_CELLS_AT_ONCE = 4_000_000  # of resamples by rows, or by clusters: 32 MB
# Resamples of one figure differ by so much where the same sum is added up in another order.
_ROUNDING = 1e-9
_NO_INTERVAL = (math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Keep a figure, its 95 % interval, and the number `n` of rows that it rests on; nan where it is undefined."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Resamples:
    """Keep draws of whole clusters with replacement (Davison and Hinkley 1997, 3.8): rows of a prompt depend on it.

    Attributes:
        cluster_of_row: Which cluster each row belongs to, (rows,).
        draws: How often each cluster was drawn, (resamples, clusters); all figures over the rows share them. They take
            two bytes each, up to 65,535 clusters: 80 MB for a thousand resamples of 40,000.
        times: How often each row stands in the data, (rows,): once, unless equal rows are told once with their number.
        members: Of rows that are told by their sort, what sort and cluster each has, (members, 2); None of others.
    """

    cluster_of_row: NDArray[np.intp]
    draws: NDArray[np.uint16] | NDArray[np.int32]
    times: NDArray[np.int64]
    members: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, clusters: Sequence[Hashable], *, number: int, generator: np.random.Generator) -> Self:
        """Draw as many clusters as there are, `number` times; `clusters` names each row's."""
        places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
        of_row = np.array([places[cluster] for cluster in clusters], dtype=np.intp)
        return cls(of_row, _drawn(np.ones(len(places), np.int64), number, generator), np.ones(len(of_row), np.int64))

    @classmethod
    def of_counts(cls, times: NDArray[np.int64], *, number: int, generator: np.random.Generator) -> Self:
        """Draw as many rows as there are, each on its own, `number` times, where row i stands `times[i]` times.

        Equal rows cannot be told apart, so that drawing rows is drawing counts of each sort of row: the same draws in
        distribution, at a cost that does not grow with the data.
        """
        return cls(np.arange(len(times)), _drawn(times, number, generator), times)

    @classmethod
    def of_sorts(
        cls,
        sorts: NDArray[np.int64],
        clusters: NDArray[np.int64],
        *,
        number: int,
        generator: np.random.Generator,
    ) -> Self:
        """Draw whole clusters, `number` times, of rows that are told by their sort alone; there is one at least.

        Args:
            sorts: The sort of each row, (rows,): whole numbers from 0 on, each of which some row is of.
            clusters: What names the cluster of each, (rows,).
            number: How many draws.
            generator: Draws.
        """
        _, of_row = np.unique(clusters, return_inverse=True)
        drawn = _drawn(np.ones(int(of_row.max()) + 1, np.int64), number, generator)
        times, members = np.bincount(sorts), np.unique(np.stack([sorts, of_row], axis=1), axis=0)
        if drawn.shape[1] < LEAST_CLUSTERS:
            return cls(np.arange(len(times)), np.empty((0, len(times)), np.int32), times, members)
        # Rows of a sort stand beside each other, and are added up.
        order, starts = np.argsort(sorts, kind="stable"), np.cumsum(times) - times
        draws = np.empty((number, len(times)), np.int32)
        for part in slices(number, len(sorts)):
            draws[part] = np.add.reduceat(drawn[part][:, of_row[order]], starts, axis=1, dtype=np.int32)
        return cls(np.arange(len(times)), draws, times, members)

    def estimate(self, statistic: Statistic, on: Flags | None = None) -> Estimate:
        """Give a figure with its percentile interval; `on` says which rows it rests on, (rows,), all without it.

        Resamples in which the figure is undefined are left out. There is no interval where these rows are of fewer than
        `LEAST_CLUSTERS`, nor where both of its ends are the same, so that most resamples give one figure: what was
        never met cannot be drawn, and is not thereby impossible.
        """
        (estimate,) = self.estimates(lambda weights: statistic(weights)[:, None], on)
        return estimate

    def estimates(self, statistic: Statistic, on: Flags | None = None) -> tuple[Estimate, ...]:
        """Give several figures as `estimate` does.

        Args:
            statistic: Gives the figures, (resamples, figures).
            on: Which rows they rest on, (rows,), or each of them, (rows, figures); all without it.
        """
        values = statistic(self.times[None].astype(np.float64))[0]
        rows = np.ones(len(self.times), np.bool_) if on is None else on
        columns = rows.T if rows.ndim > 1 else [rows] * len(values)
        return tuple(
            self._estimate(float(value), _interval(figures), column)
            for value, figures, column in zip(
                values, self._figures_drawn(statistic, len(values)).T, columns, strict=True
            )
        )

    def probability(self, statistic: Statistic, on: Flags) -> Estimate:
        """Give a probability A that is no mean of rows, as AUROC is, with an interval on the scale of its logit.

        expit(logit A ± 1.96 s / (A (1 - A))), with s the standard deviation of A over the resamples, by the delta
        method (Pepe 2003; Qin and Hotilovac 2008): percentiles of what lies near 1 begin too high. There is none where
        `estimate` gives none, and so none of an A of 0 or 1, which no resample changes.
        """
        value, figures = self._figure(statistic)
        low, high = _interval(figures)
        if not math.isnan(low):
            logit, margin = math.log(value / (1 - value)), Z_95 * float(np.nanstd(figures)) / (value * (1 - value))
            low, high = (1 / (1 + math.exp(-end)) for end in (logit - margin, logit + margin))
        return self._estimate(value, (low, high), on)

    def distance(self, statistic: Statistic, on: Flags) -> Estimate:
        """Give a sum of distances, with a percentile interval that knows that chance raises it.

        The distances of a sample are larger than those of all there is, and those of a resample larger again, by as
        much: the interval is moved down by twice what resamples add on average, not below 0, and holds the figure.
        """
        value, figures = self._figure(statistic)
        low, high = _interval(figures)
        if not math.isnan(low):
            added = 2 * (float(np.nanmean(figures)) - value)
            low, high = min(value, max(0.0, low - added)), max(value, high - added)
        return self._estimate(value, (low, high), on)

    def ratio(self, part: Floats | Flags, whole: Floats | Flags | None = None) -> Estimate:
        """Give Σ part / Σ whole over the rows where whole is not 0, the mean of part without one; both (rows,)."""
        above = np.asarray(part, dtype=np.float64)
        below = np.ones_like(above) if whole is None else np.asarray(whole, dtype=np.float64)
        return self.estimate(lambda weights: divide(weights @ above, weights @ below), below != 0)

    def backed(self, estimate: Estimate, *rows: Flags) -> Estimate:
        """Take the interval from a figure where any rows that it needs, (rows,) each, are of too few clusters."""
        is_backed = all(self._n_clusters(each) >= LEAST_CLUSTERS for each in rows)
        return estimate if is_backed else replace(estimate, low=math.nan, high=math.nan)

    def _figure(self, statistic: Statistic) -> tuple[float, Floats]:
        """Return a figure, and what it is under each draw, (resamples,)."""
        figures = self._figures_drawn(lambda weights: statistic(weights)[:, None], 1)[:, 0]
        return float(statistic(self.times[None].astype(np.float64))[0]), figures

    def _estimate(self, value: float, interval: tuple[float, float], on: Flags) -> Estimate:
        """Give a figure with its interval, where the rows that it rests on back one."""
        return self.backed(Estimate(value, *interval, int(self.times[on].sum())), on)

    def _n_clusters(self, on: Flags) -> int:
        """Count the clusters of some rows, (rows,)."""
        if self.members is not None:
            sorts, clusters = self.members.T
            return len(np.unique(clusters[on[sorts]]))
        # Rows that stand alone may stand several times; of a cluster's rows, the first one stands for it.
        _, firsts = np.unique(self.cluster_of_row[on], return_index=True)
        return int(self.times[on][firsts].sum())

    def _figures_drawn(self, statistic: Statistic, n_figures: int) -> Floats:
        """Return the figures under each draw, (resamples, figures); under none where there are too few clusters."""
        # Of rows that stand alone a draw holds as many rows; of others, as many clusters.
        n_clusters = int(self.draws[0].sum()) if len(self.draws) else 0
        if n_clusters < LEAST_CLUSTERS:
            return np.empty((0, n_figures))
        parts = (self.draws[part] for part in slices(len(self.draws), len(self.cluster_of_row)))
        return np.concatenate([statistic(part[:, self.cluster_of_row].astype(np.float64)) for part in parts])


def require_draws(resamples: int, seed: int) -> None:
    """Refuse a number of draws that gives no interval, and a seed that no generator takes.

    Raises:
        ValueError: There are no draws, or the seed is below 0.
    """
    if resamples < 1:
        message = f"resamples {resamples!r}; give a number of draws from 1 on"
        raise ValueError(message)
    if seed < 0:
        message = f"seed {seed!r}; give a whole number from 0 on"
        raise ValueError(message)


def slices(number: int, width: int) -> Iterator[slice]:
    """Yield slices of so many draws, each so wide, that bound the memory that a slice of numbers takes."""
    step = max(1, _CELLS_AT_ONCE // max(1, width))
    for start in range(0, number, step):
        yield slice(start, min(start + step, number))


def divide(part: Floats, whole: Floats) -> Floats:
    """Divide, with nan where the whole is not positive."""
    return np.divide(part, whole, out=np.full_like(whole, math.nan), where=whole > 0)


def mean_defined(figures: Floats) -> Floats:
    """Average over those figures, (resamples, figures), that are defined; nan where none is."""
    is_defined = ~np.isnan(figures)
    return divide(np.where(is_defined, figures, 0.0).sum(1), is_defined.sum(1).astype(np.float64))


def _drawn(
    times: NDArray[np.int64], number: int, generator: np.random.Generator
) -> NDArray[np.uint16] | NDArray[np.int32]:
    """Draw in slices, which are what one draw of all would be, into numbers as small as hold any of them."""
    n = int(times.sum())
    draws = np.empty((number, len(times)), np.uint16 if n <= np.iinfo(np.uint16).max else np.int32)
    for part in slices(number if n else 0, len(times)):
        draws[part] = generator.multinomial(n, times / n, size=part.stop - part.start)
    return draws


def _interval(figure: Floats) -> tuple[float, float]:
    defined = figure[~np.isnan(figure)]
    if not defined.size:
        return _NO_INTERVAL
    low, high = np.quantile(defined, (0.025, 0.975))
    return (float(low), float(high)) if high - low > _ROUNDING else _NO_INTERVAL
