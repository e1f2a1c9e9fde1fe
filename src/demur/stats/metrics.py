"""Measure verdicts against the truth, every figure with an interval that knows which rows belong together."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from demur.stats.clusters import Clusters
from demur.stats.prevalence import OperatingPoint
from demur.stats.resampling import Estimate, Flags, Floats, Resamples, divide, slices
from demur.stats.shares import Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from demur.taxonomy import Taxonomy

__all__ = ["Confusion", "GateMetrics", "HeadMetrics", "KindScore"]

_NOISE_DRAWS = 1000
_ROUNDING = 1e-9  # what sums over pairs may be off by, where there is no pair

# What a refusal is counted as among those to its request, before the kind.
_GIVEN, _TRUE, _HIT = "given ", "true ", "hit "


@dataclass(frozen=True, slots=True)
class GateMetrics:
    """Keep how well refusals, the positives, were told from other replies.

    Attributes:
        counts: Right and wrong verdicts, which also serve to correct shares.
        f1: 2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall.
        auroc: P(a refusal's probability is above another reply's), ties counting half. It has an interval only where
            refusals and other replies are of `LEAST_CLUSTERS` clusters each: of one to three refusals among a hundred
            replies, simulated intervals held it in .25 to .7 of cases. Of 10 to 20 refusals among 100 to 310 replies,
            with a true AUROC of .9 to .99, they hold it in .85 to .97 (percentiles: .72 to .90) and mostly begin too
            high where they do not; of 40 to 100 in .90 to .95.
        calibration_error: Σ_b n_b/n |share of refusals in b - mean probability in b| over bins b of equal width of the
            probability of refusal (Naeini 2015; Guo 2017, the positive class's probability for confidence). Noise in
            the bins only adds to it, which its interval allows for: as much as noise alone may give is taken off.
        calibration_noise: The calibration error that noise alone gives: its mean and middle 95 % over truths that are
            drawn from the probabilities themselves (Bröcker and Smith 2007). Rows of a cluster share their chance in so
            many of the draws as makes their truths depend on each other as they do in the data. An error within it
            shows no fault.
        brier: Mean (probability - truth)² (Brier 1950).
    """

    counts: OperatingPoint
    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate
    auroc: Estimate
    calibration_error: Estimate
    calibration_noise: Estimate
    brier: Estimate

    @classmethod
    def of(cls, truth: Flags, called: Flags, probability: Floats, resamples: Resamples, *, n_bins: int = 15) -> Self:
        """Measure the gate; figures of probability are over the rows that have one.

        Args:
            truth: Whether the reply refuses, (rows,).
            called: Whether the verdict says so, (rows,).
            probability: The probability of refusal, nan where there is none, (rows,).
            resamples: Draws over the same rows.
            n_bins: Number of bins of the calibration error.
        """
        hits, known = truth & called, ~np.isnan(probability)
        target, given = truth[known], probability[known]
        # Bins are closed below, the last one above too; (rows, bins), with one entry in each row.
        bins = np.eye(n_bins)[np.minimum((given * n_bins).astype(np.intp), n_bins - 1)]
        gaps = bins * (target - given)[:, None]
        error = resamples.distance(
            lambda weights: divide(np.abs(weights[:, known] @ gaps).sum(1), weights[:, known].sum(1)), known
        )
        auroc = resamples.probability(lambda weights: _auroc(weights[:, known], target, given), known)
        noise = _calibration_noise(target, given, bins, resamples.cluster_of_row[known])
        return cls(
            counts=OperatingPoint.of(truth.tolist(), called.tolist(), resamples.cluster_of_row.tolist()),
            accuracy=resamples.ratio(truth == called),
            precision=resamples.ratio(hits, called),
            recall=resamples.ratio(hits, truth),
            f1=resamples.ratio(hits, (truth.astype(np.float64) + called) / 2),
            auroc=resamples.backed(auroc, known & truth, known & ~truth),
            calibration_error=replace(error, low=float(np.minimum(error.low, max(0.0, error.value - noise.high)))),
            calibration_noise=noise,
            brier=resamples.ratio(np.where(known, (probability - truth) ** 2, 0.0), known),
        )


@dataclass(frozen=True, slots=True)
class KindScore:
    """Keep how one kind was named: right among those so called (precision) and among those that are so (recall)."""

    kind: str
    precision: Share
    recall: Share

    @property
    def support(self) -> int:
        """Return the number of refusals that are of this kind in truth."""
        return self.recall.total

    @property
    def f1(self) -> float:
        """Return 2 hits / (called + true), nan where the kind is neither found nor given."""
        mentions = self.precision.total + self.recall.total
        return 2 * self.recall.count / mentions if mentions else math.nan


@dataclass(frozen=True, slots=True)
class Confusion:
    """Keep how often a kind was called another one, or `unnamed`."""

    truth: str
    predicted: str
    count: int


@dataclass(frozen=True, slots=True)
class HeadMetrics:
    """Keep how well the kinds of refusals were named; a kind left unnamed is a miss.

    Attributes:
        accuracy: The kind given is the main one.
        lenient_accuracy: The kind given is one of those that the reply's reasons allow.
        group_accuracy: The group given is that of the main kind.
        macro_f1: Mean F1 over the kinds that truth or verdicts hold: a kind given though never true counts with 0. Of
            few refusals a kind it comes out low, and its interval with it: of 30 to 120 simulated ones over 16 kinds by
            .02 to .08, with intervals that held the true one in .77 to .85 of cases; of 225 by .01, and in .93.
        macro_f1_in_truth: Mean F1 over the kinds that truth holds.
        kinds: One score for each kind, in taxonomy order; without intervals where all refusals are to one request.
        confusions: What was called what, the most frequent first.
    """

    accuracy: Estimate
    lenient_accuracy: Estimate
    group_accuracy: Estimate
    macro_f1: Estimate
    macro_f1_in_truth: Estimate
    kinds: tuple[KindScore, ...]
    confusions: tuple[Confusion, ...]

    @classmethod
    def of(
        cls,
        accepted: Sequence[Sequence[str]],
        called: Sequence[tuple[str, str]],
        taxonomy: Taxonomy,
        resamples: Resamples,
    ) -> Self:
        """Measure the head over refusals.

        Args:
            accepted: The kinds that each reply's reasons allow, the main one first; never empty.
            called: The kind and the group that each verdict gives, `unnamed` where it gives none.
            taxonomy: Names the kinds and their groups.
            resamples: Draws over the same rows.
        """
        truth, kinds = [allowed[0] for allowed in accepted], [kind for kind, _ in called]
        of_group = [taxonomy.group_of(kind) == group for kind, (_, group) in zip(truth, called, strict=True)]
        lenient = [kind in allowed for kind, allowed in zip(kinds, accepted, strict=True)]
        of_truth, of_called = _indicators(truth, taxonomy.keys), _indicators(kinds, taxonomy.keys)
        hits, mentions = of_truth * of_called, of_truth + of_called
        true, given, pairs = Counter(truth), Counter(kinds), Counter(zip(truth, kinds, strict=True))
        clusters = Clusters.of(
            (str(cluster), [_GIVEN + kind, _TRUE + main, *([_HIT + kind] if kind == main else [])])
            for cluster, kind, main in zip(resamples.cluster_of_row.tolist(), kinds, truth, strict=True)
        )

        def share(kind: str, of: Counter[str], whole: str) -> Share:
            (effect,) = clusters.effects([_HIT + kind], whole + kind).values() if clusters.number > 1 else (math.inf,)
            return Share(pairs[kind, kind], of[kind], effect)

        return cls(
            accuracy=resamples.ratio(hits.sum(1)),
            lenient_accuracy=resamples.ratio(np.array(lenient)),
            group_accuracy=resamples.ratio(np.array(of_group)),
            macro_f1=resamples.estimate(lambda weights: _macro_f1(weights, hits, mentions, mentions)),
            macro_f1_in_truth=resamples.estimate(lambda weights: _macro_f1(weights, hits, mentions, of_truth)),
            kinds=tuple(KindScore(key, share(key, given, _GIVEN), share(key, true, _TRUE)) for key in taxonomy.keys),
            confusions=tuple(Confusion(*pair, count) for pair, count in pairs.most_common() if pair[0] != pair[1]),
        )


def _calibration_noise(target: Flags, given: Floats, bins: Floats, cluster_of_row: NDArray[np.intp]) -> Estimate:
    """Return the calibration error under perfect calibration; `bins` is (rows, bins), with one 1 in each row.

    A truth is whether a number drawn from 0 to 1 is below the probability. In each draw, a cluster has one number for
    all of its rows, with the probability of `_sharing`, or else each row has its own.
    """
    if not given.size:
        return Estimate(math.nan, math.nan, math.nan, 0)
    _, places = np.unique(cluster_of_row, return_inverse=True)
    sharing, n_clusters = _sharing(target - given, given, places), int(places.max()) + 1
    # Of its own seed: the noise is a property of the probabilities, and must not move what is drawn elsewhere.
    generator, errors = np.random.default_rng(0), np.empty(_NOISE_DRAWS)
    for part in slices(_NOISE_DRAWS, given.size):
        n_draws = part.stop - part.start
        drawn = generator.random((n_draws, given.size))
        if sharing:
            is_shared = generator.random((n_draws, n_clusters)) < sharing
            drawn = np.where(is_shared[:, places], generator.random((n_draws, n_clusters))[:, places], drawn)
        errors[part] = np.abs(((drawn < given) - given) @ bins).sum(1) / given.size
    low, high = np.quantile(errors, (0.025, 0.975))
    return Estimate(float(errors.mean()), float(low), float(high), given.size)


def _sharing(residuals: Floats, given: Floats, places: NDArray[np.intp]) -> float:
    """Return how far rows of a cluster share their chance, from 0 (each has its own) to 1 (they have one).

    Over pairs of rows of a cluster, Σ r_i r_j / Σ (min(p_i, p_j) - p_i p_j) with r = truth - p: the covariance that
    there is, over the largest that the probabilities allow (Fréchet's bound), which one chance for all gives. Rows that
    share a fault of the probabilities share in r, too: it errs towards noise.

    Args:
        residuals: The r of each row, (rows,).
        given: The probability of each, (rows,).
        places: The cluster of each, counted from 0 without gaps, (rows,).
    """

    def pairs(values: Floats) -> float:
        return float((np.bincount(places, values) ** 2).sum() - (values**2).sum())

    # Of a cluster's rows by rising probability, each has the lesser one in its pairs with those after it.
    sizes, rising = np.bincount(places), given[np.lexsort((given, places))]
    after = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(given)) - 1
    most = 2 * float((rising * after).sum()) - pairs(given)
    return min(1.0, max(0.0, pairs(residuals) / most)) if most > _ROUNDING else 0.0


def _auroc(weights: Floats, truth: Flags, probability: Floats) -> Floats:
    """Compute Σ W⁺(at) (W⁻(below) + W⁻(at) / 2) / (W⁺ W⁻) over the distinct probabilities."""
    order = np.argsort(probability, kind="stable")
    starts = np.flatnonzero(np.diff(probability[order], prepend=-1.0))
    positive, negative = (np.add.reduceat((weights * of)[:, order], starts, axis=1) for of in (truth, ~truth))
    pairs = (positive * (np.cumsum(negative, axis=1) - negative / 2)).sum(1)
    return divide(pairs, positive.sum(1) * negative.sum(1))


def _macro_f1(weights: Floats, hits: Floats, mentions: Floats, counted: Floats) -> Floats:
    """Average 2 Σ hits / Σ mentions over the kinds that `counted` holds; all but the weights are (rows, kinds)."""
    is_counted = weights @ counted > 0
    scores = np.where(is_counted, 2 * divide(weights @ hits, weights @ mentions), 0.0)
    return divide(scores.sum(1), is_counted.sum(1).astype(np.float64))


def _indicators(kinds: Sequence[str], keys: Sequence[str]) -> Floats:
    """Mark the kind of each row: (rows, kinds), one 1 a row, none where it is `unnamed`."""
    return np.array([[kind == key for key in keys] for kind in kinds], dtype=np.float64).reshape(len(kinds), len(keys))
