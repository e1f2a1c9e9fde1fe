"""Measure answers that may be held back: the surest ones first, and sets in place of single kinds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from demur.kinds import resolution_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from demur.stats.conformal import CategorySets
    from demur.stats.resampling import Estimate, Flags, Floats, Resamples
    from demur.taxonomy import Taxonomy

__all__ = ["CurvePoint", "RiskCoverage", "Selected", "SetMetrics"]

_COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.5)
_MOST_POINTS = 100
# A product of doubles lies this close to the whole number that it stands for.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Selected:
    """Keep the accuracy of the surest answers, so many of all that their share is at least `coverage`."""

    coverage: float
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Keep what follows from answering at a confidence and above.

    Attributes:
        confidence: The least confidence that is answered at.
        coverage: Share of rows that are answered.
        risk: Share of wrong answers among these.
    """

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Keep what is won by answering only where the confidence is high (Geifman and El-Yaniv 2017).

    Rows of equal confidence come in no order: of these, errors are counted as the mean over all orders.

    Attributes:
        area: Mean over i = 1 … n of the share of errors among the i surest rows, the area under the risk-coverage
            curve (Geifman, Uziel and El-Yaniv 2019); 0 is perfect, the share of all errors is what a confidence
            without sense gives.
        selected: Accuracy at some coverages.
        points: The curve, by falling confidence: one point for each different confidence, 100 of them at most.
    """

    area: Estimate
    selected: tuple[Selected, ...]
    points: tuple[CurvePoint, ...]

    @classmethod
    def of(cls, is_right: Flags, confidence: Floats, resamples: Resamples) -> Self:
        """Measure the rows that have a confidence.

        Args:
            is_right: Whether the answer is right, (rows,).
            confidence: How sure it is, in any unit; nan where nobody says, (rows,).
            resamples: Draws over the same rows.
        """
        ladder = _Ladder.of(is_right, confidence)
        return cls(
            area=resamples.estimate(lambda weights: ladder.climbed(weights).area(), ~np.isnan(confidence)),
            selected=tuple(_selected(ladder, share, resamples) for share in _COVERAGES),
            points=ladder.points(),
        )


def _selected(ladder: _Ladder, coverage: float, resamples: Resamples) -> Selected:
    wanted = math.ceil(len(ladder.rows) * coverage - _ROUNDING)
    is_answered = np.zeros(len(resamples.times), np.bool_)
    is_answered[ladder.down_to(wanted)] = True
    accuracy = resamples.estimate(lambda weights: ladder.climbed(weights).accuracy(coverage), is_answered)
    return Selected(coverage, replace(accuracy, n=wanted))


@dataclass(frozen=True, slots=True, eq=False)
class _Ladder:
    """Keep rows by falling confidence; rows of equal confidence stand on one step.

    Attributes:
        rows: Indices of the rows that have a confidence, the surest first, (known,).
        starts: Where in `rows` each step begins, (steps,).
        is_wrong: Whether the answer is wrong, in the order of `rows`, (known,).
        confidence: Of each step, (steps,).
    """

    rows: NDArray[np.intp]
    starts: NDArray[np.intp]
    is_wrong: Flags
    confidence: Floats

    @classmethod
    def of(cls, is_right: Flags, confidence: Floats) -> Self:
        known = np.flatnonzero(~np.isnan(confidence))
        rows = known[np.argsort(-confidence[known], kind="stable")]
        falling = confidence[rows]
        starts = np.flatnonzero(np.diff(falling, prepend=math.inf))
        return cls(rows, starts, ~is_right[rows], falling[starts])

    def down_to(self, number: int) -> NDArray[np.intp]:
        """Return so many of the surest rows, and all on the step of the last one: these come in no order."""
        ends = np.append(self.starts, len(self.rows))
        return self.rows[: ends[np.searchsorted(ends, number)]]

    def climbed(self, weights: Floats) -> _Climbed:
        """Add up rows and errors step by step; weights are whole numbers, (resamples, rows)."""
        of_rows = weights[:, self.rows]
        counts = np.add.reduceat(of_rows, self.starts, axis=1)
        return _Climbed(counts, np.add.reduceat(of_rows * self.is_wrong, self.starts, axis=1))

    def points(self) -> tuple[CurvePoint, ...]:
        counts, errors = np.diff(self.starts, append=len(self.rows)), np.add.reduceat(self.is_wrong * 1.0, self.starts)
        coverage, risk = np.cumsum(counts) / max(1, len(self.rows)), np.cumsum(errors) / np.cumsum(counts)
        kept = np.unique(np.linspace(0, len(counts) - 1, min(len(counts), _MOST_POINTS)).round().astype(np.intp))
        return tuple(CurvePoint(float(self.confidence[i]), float(coverage[i]), float(risk[i])) for i in kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Climbed:
    """Keep the rows and the errors of each step, both (resamples, steps)."""

    counts: Floats
    errors: Floats

    def area(self) -> Floats:
        """Compute (1/n) Σ_i E(i)/i, (resamples,), E(i) being the expected errors among the i surest rows.

        On a step from a to b rows with errors at rate r, E(i) = E(a) + (i - a) r, so that Σ E(i)/i over it is
        (E(a) - a r) (H(b) - H(a)) + (b - a) r with the harmonic numbers H.
        """
        after, total = np.cumsum(self.counts, axis=1), self.counts.sum(1)
        before, met = after - self.counts, np.cumsum(self.errors, axis=1) - self.errors
        harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, total.max(initial=0) + 1))])
        spread = harmonic[after.astype(np.intp)] - harmonic[before.astype(np.intp)]
        parts = (met - before * self._rates()) * spread + self.errors
        return _divided(parts.sum(1), total, otherwise=math.nan)

    def accuracy(self, coverage: float) -> Floats:
        """Compute 1 - E(m)/m with m = ceil(coverage n), (resamples,)."""
        after, total = np.cumsum(self.counts, axis=1), self.counts.sum(1)
        if not after.shape[1]:
            return np.full_like(total, math.nan)
        wanted = np.ceil(total * coverage - _ROUNDING)
        step = np.argmax(after >= wanted[:, None], axis=1)[:, None]

        def at_step(values: Floats) -> Floats:
            return np.take_along_axis(values, step, axis=1)[:, 0]

        inside = wanted - at_step(after - self.counts)
        met = at_step(np.cumsum(self.errors, axis=1) - self.errors) + inside * at_step(self._rates())
        return 1.0 - _divided(met, wanted, otherwise=math.nan)

    def _rates(self) -> Floats:
        return _divided(self.errors, self.counts, otherwise=0.0)


def _divided(part: Floats, whole: Floats, *, otherwise: float) -> Floats:
    found: Floats = np.divide(part, whole, out=np.full_like(whole, otherwise), where=whole > 0)
    return found


@dataclass(frozen=True, slots=True)
class SetMetrics:
    """Keep how sets of kinds did on refusals whose main kind is known.

    Attributes:
        stated: What was stated, and on how many refusals it stands.
        coverage: The set holds the main kind.
        size: Mean number of kinds in a set.
        kind: Sets of one kind.
        group: Sets of several kinds of one group.
        undetermined: Sets of kinds of several groups.
        kind_accuracy: Of the sets of one kind, those that name the main one.
        group_accuracy: Of the sets that stop at a group, those that name the group of the main kind.
    """

    stated: CategorySets
    coverage: Estimate
    size: Estimate
    kind: Estimate
    group: Estimate
    undetermined: Estimate
    kind_accuracy: Estimate
    group_accuracy: Estimate

    @classmethod
    def of(
        cls,
        truth: Sequence[str],
        sets: Sequence[Sequence[str]],
        taxonomy: Taxonomy,
        resamples: Resamples,
        stated: CategorySets,
    ) -> Self:
        """Measure sets, none of them empty.

        Args:
            truth: The main kind of each refusal.
            sets: The kinds that each may be.
            taxonomy: Names the kinds and their groups.
            resamples: Draws over the same rows.
            stated: What the sets were made by.
        """
        groups = [tuple(dict.fromkeys(taxonomy.group_of(kind) for kind in held)) for held in sets]
        found = np.array([resolution_of(*of_one) for of_one in zip(sets, groups, strict=True)], dtype=np.str_)
        holds = np.array([kind in held for kind, held in zip(truth, sets, strict=True)], dtype=np.bool_)
        of_group = [taxonomy.group_of(kind) == of_one[0] for kind, of_one in zip(truth, groups, strict=True)]
        is_kind, is_group = found == "kind", found == "group"
        return cls(
            stated=stated,
            coverage=resamples.ratio(holds),
            size=resamples.ratio(np.array([len(held) for held in sets], dtype=np.float64)),
            kind=resamples.ratio(is_kind),
            group=resamples.ratio(is_group),
            undetermined=resamples.ratio(found == "undetermined"),
            kind_accuracy=resamples.ratio(holds & is_kind, is_kind),
            group_accuracy=resamples.ratio(np.array(of_group, dtype=np.bool_) & is_group, is_group),
        )
