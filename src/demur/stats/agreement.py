"""Measure how far annotators agree, beyond what chance alone would give.

Every coefficient is a formula over weighted patterns of answers, so that one and the same formula gives the figure and
all of its resamples at once. With r the answers of an item, n_c those of class c, and δ the distance of two answers
(for classes: 1 where they differ), the disagreement of an item is d = Σ_cv n_c n_v δ_cv / r(r-1), over the items of two
answers or more. No item needs as many answers as another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from demur.stats.answers import MISSING, counted
from demur.stats.resampling import Estimate, divide, mean_defined

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from demur.stats.answers import Answers, Codes
    from demur.stats.resampling import Flags, Floats

__all__ = [
    "COEFFICIENTS",
    "Coefficient",
    "Pair",
    "agreement",
    "explained",
    "nominal_alpha",
    "pair_agreement",
    "pairwise",
    "set_agreement",
    "uncommon",
]

COEFFICIENTS = ("agreement", "cohen", "fleiss", "alpha", "ac1")
"""The figures of `agreement`, in order."""

_NO_TWO = "no item has two answers"
_NO_PAIR = "no item was answered by both"
_ONE_CLASS = "the answers that are compared are all of one class, so that chance alone agrees always"
_NO_KAPPA = "no two annotators have a kappa: what both answered is of one class"


@dataclass(frozen=True, slots=True)
class Coefficient:
    """Keep a figure with its interval, and why there is none.

    Attributes:
        name: Which figure.
        estimate: The figure, its 95 % bootstrap interval over items, and the number of items that it rests on: those
            with two answers or more. There is no interval where no two answers differ: what was never met cannot be
            drawn; nor, beyond chance, where too few clusters have an `uncommon` answer.
        undefined: Why the figure is nan; None where it is not.
    """

    name: str
    estimate: Estimate
    undefined: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Keep how far two annotators agree on the items that both answered.

    Attributes:
        first: Place of the one among the annotators.
        second: Place of the other, which is higher.
        agreement: Share of equal answers.
        kappa: Cohen's kappa (1960): (p_o - p_e) / (1 - p_e), p_e = Σ_c of the product of both annotators' shares of c.
    """

    first: int
    second: int
    agreement: Coefficient
    kappa: Coefficient


def agreement(answers: Answers, *, number: int, seed: int) -> tuple[Coefficient, ...]:
    """Measure the agreement of all annotators on classes of which none is nearer to another.

    - `agreement`: 1 - mean d: the share of pairs of answers that are equal, each item counting once.
    - `cohen`: mean of Cohen's kappa over the pairs of annotators for which it is defined (Light 1971); of two
      annotators, Cohen's kappa.
    - `fleiss`: 1 - mean d / (1 - Σ_c π_c²), with π_c the mean share n_c / r over all items that have an answer. That is
      Fleiss' kappa (1971) where all items have equally many answers, and Gwet's generalisation of it (2014, Handbook
      of Inter-Rater Reliability, 4th ed., ch. 2) where they do not.
    - `alpha`: 1 - D_o / D_e (Krippendorff 2011), D_o = Σ r d / n and D_e = Σ_cv n_c n_v δ_cv / n(n-1), with n_c and n
      over the answers of items that have two.
    - `ac1`: 1 - mean d / (1 - Σ_c π_c (1 - π_c) / (q - 1)) with q classes (Gwet 2008), which stays high where one class
      is rare and everybody agrees that it is.

    Args:
        answers: What was answered; `q` counts its classes, whether or not they were used.
        number: Draws of items behind each interval.
        seed: Of those draws.
    """
    formula = _classes(answers)

    def figures(weights: Floats) -> Floats:
        kappas = pairwise(weights, answers.codes, len(answers.classes))[1]
        observed, *others = formula(weights)
        return np.stack([observed, mean_defined(kappas), *others], axis=1)

    return _measured(COEFFICIENTS, figures, answers, number, seed)


def set_agreement(answers: Answers, distance: Floats, *, number: int, seed: int) -> tuple[Coefficient, Coefficient]:
    """Measure the agreement on values that may lie near each other: mean similarity, 1 - mean d, and `alpha`.

    Args:
        answers: What was answered.
        distance: Of each two classes, from 0 to 1, (classes, classes).
        number: Draws of items behind each interval.
        seed: Of those draws.
    """
    counts = answers.counts

    def figures(weights: Floats) -> Floats:
        return np.stack([1 - _observed(weights, counts, distance), _alpha(weights, counts, distance)], axis=1)

    similarity, alpha = _measured(("similarity", "alpha"), figures, answers, number, seed)
    return similarity, alpha


def pair_agreement(answers: Answers, *, number: int, seed: int) -> tuple[Pair, ...]:
    """Measure each two annotators against each other, in the order of `pairwise`."""
    places = _pairs(answers.codes.shape[1])
    if not places:
        return ()
    both = np.stack([(answers.codes[:, list(place)] != MISSING).all(axis=1) for place in places], axis=1)
    resamples = answers.resamples(number, seed)
    figures = resamples.estimates(
        lambda weights: np.concatenate(pairwise(weights, answers.codes, len(answers.classes)), axis=1),
        np.concatenate([both, both], axis=1),
    )
    shares, kappas = figures[: len(places)], figures[len(places) :]
    rare = (
        uncommon(answers.codes[:, list(place)], answers.times * is_both)
        for place, is_both in zip(places, both.T, strict=True)
    )
    return tuple(
        Pair(
            *place,
            explained("agreement", share, share, _NO_PAIR),
            explained("cohen", share, resamples.backed(kappa, one), _NO_PAIR),
        )
        for place, share, kappa, one in zip(places, shares, kappas, rare, strict=True)
    )


def pairwise(weights: Floats, codes: Codes, n_classes: int) -> tuple[Floats, Floats]:
    """Compute shares of equal answers and Cohen's kappa for each two annotators, both (resamples, pairs).

    Pairs are (0, 1), (0, 2), …, (1, 2), …; nan where nothing was answered by both, or where chance alone agrees always.

    Args:
        weights: How often each pattern stands, (resamples, patterns).
        codes: The answers, (patterns, annotators).
        n_classes: How many classes there are.
    """
    found = [_against_later(weights, codes, place, n_classes) for place in range(codes.shape[1] - 1)]
    nothing = np.empty((len(weights), 0))
    shares, kappas = zip(*found, strict=True) if found else ((nothing,), (nothing,))
    return np.concatenate(shares, axis=1), np.concatenate(kappas, axis=1)


def _against_later(weights: Floats, codes: Codes, place: int, n_classes: int) -> tuple[Floats, Floats]:
    """Compute one annotator's pairs with those after it; only patterns that it answered have a say."""
    answered = codes[:, place] != MISSING
    weights, ours, theirs = weights[:, answered], codes[answered, place, None], codes[answered, place + 1 :]
    both = theirs != MISSING
    n = weights @ both
    shape = len(weights), theirs.shape[1]
    chance = np.zeros(shape)
    for code in range(n_classes):
        chance += (weights @ (both & (ours == code))) * (weights @ (theirs == code))
    observed, chance = divide(weights @ (both & (ours == theirs)), n), divide(chance, n * n)
    return observed, divide(observed - chance, 1 - chance)


def nominal_alpha(weights: Floats, codes: Codes, n_classes: int) -> Floats:
    """Compute Krippendorff's alpha over classes of which none is nearer to another, (resamples,).

    Args:
        weights: How often each item stands, (resamples, items).
        codes: The answers, (items, annotators).
        n_classes: How many classes there are.
    """
    return _alpha(weights, counted(codes, n_classes), 1 - np.eye(n_classes))


def uncommon(codes: Codes, times: NDArray[np.int64]) -> Flags:
    """Mark patterns with any answer that is not the commonest one, (patterns,): agreement beyond chance rests on these.

    Where nearly all answers are of one class, the others decide every figure that allows for chance. In simulations of
    one kind that one to three of 379 replies were said to be of, intervals of alpha held it in .59 of cases.

    Args:
        codes: The answers, (patterns, annotators).
        times: How many items are answered so, 0 where they do not count, (patterns,).
    """
    is_met = (codes != MISSING) & (times > 0)[:, None]
    met = np.bincount(codes[is_met], np.broadcast_to(times[:, None], codes.shape)[is_met], minlength=1)
    return np.asarray((is_met & (codes != met.argmax())).any(axis=1))


def _classes(answers: Answers) -> Callable[[Floats], tuple[Floats, ...]]:
    """Return the formula of agreement, Fleiss' kappa, alpha and AC1 over weights."""
    counts, q = answers.counts, len(answers.classes)
    distance = 1 - np.eye(q)
    shares = counts / counts.sum(1, keepdims=True)

    def figures(weights: Floats) -> tuple[Floats, ...]:
        observed = _observed(weights, counts, distance)
        share = divide(weights @ shares, np.broadcast_to(weights.sum(1, keepdims=True), (len(weights), q)).copy())
        # Σ π (1 - π) = 1 - Σ π²: by chance two answers differ so often.
        differing = 1 - (share**2).sum(1)
        fleiss, ac1 = 1 - divide(observed, differing), 1 - divide(observed, 1 - differing / (q - 1))
        return 1 - observed, fleiss, _alpha(weights, counts, distance), ac1

    return figures


def _observed(weights: Floats, counts: Floats, distance: Floats) -> Floats:
    """Return the mean d over items, (resamples,)."""
    has_two, apart = _item_distances(counts, distance)
    return divide(weights @ apart, weights @ has_two)


def _alpha(weights: Floats, counts: Floats, distance: Floats) -> Floats:
    has_two, apart = _item_distances(counts, distance)
    answers = counts.sum(1)
    totals = weights @ (counts * has_two[:, None])
    n = totals.sum(1)
    expected = divide(((totals @ distance) * totals).sum(1), n * (n - 1))
    return 1 - divide(divide(weights @ (answers * apart), n), expected)


def _item_distances(counts: Floats, distance: Floats) -> tuple[Flags, Floats]:
    """Return which patterns have two answers, and the d of each; 0 where there is none, both (patterns,)."""
    answers = counts.sum(1)
    has_two = answers > 1
    apart = ((counts @ distance) * counts).sum(1) / np.where(has_two, answers * (answers - 1), 1.0)
    return has_two, np.where(has_two, apart, 0.0)


def _measured(
    names: tuple[str, ...], figures: Callable[[Floats], Floats], answers: Answers, number: int, seed: int
) -> tuple[Coefficient, ...]:
    """Give each figure with its interval: first the share of equal answers, then those that allow for chance."""
    has_two, resamples = answers.counts.sum(1) > 1, answers.resamples(number, seed)
    share, *others = resamples.estimates(figures, has_two)
    rare = uncommon(answers.codes, answers.times * has_two)
    found = (share, *(resamples.backed(one, rare) for one in others))
    # Any two annotators may have met one class only, though all of them together met more.
    whys = [_NO_KAPPA if name == "cohen" else _ONE_CLASS for name in names]
    return tuple(explained(name, share, one, _NO_TWO, why) for name, one, why in zip(names, found, whys, strict=True))


def explained(name: str, share: Estimate, estimate: Estimate, nothing: str, why: str = _ONE_CLASS) -> Coefficient:
    """Take the interval away where all answers are equal, and say why a figure is nan.

    Args:
        name: Of the figure.
        share: The share of equal answers.
        estimate: The figure.
        nothing: Why there is none where it rests on no item.
        why: Why there is none where it does.
    """
    if share.value == 1.0:
        estimate = replace(estimate, low=math.nan, high=math.nan)
    if not math.isnan(estimate.value):
        return Coefficient(name, estimate)
    return Coefficient(name, estimate, nothing if estimate.n == 0 else why)


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(first, second) for first in range(n) for second in range(first + 1, n)]
