"""Find what annotators say together, and how far each of them can be relied on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from demur.stats.agreement import Coefficient, explained, pairwise, uncommon
from demur.stats.answers import MISSING, counted
from demur.stats.resampling import mean_defined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.stats.answers import Answers, Codes
    from demur.stats.resampling import Flags, Floats, Resamples

__all__ = ["DawidSkene", "Standing", "against_rest", "dawid_skene", "majority", "mean_standing", "why_no_dawid_skene"]

_LEAST = 1e-10  # a probability of 0 could never be taken back by what is seen later
_CONVERGED = 1e-9
_LEAST_MET = 0.5  # expected items of a class: fewer round to none
_NO_REST = "no item was answered by this annotator and by a majority of the rest"


@dataclass(frozen=True, slots=True)
class Standing:
    """Keep how one annotator stands against the majority of the rest.

    Attributes:
        annotator: Its place among the annotators.
        agreement: Share of its answers that the majority of the rest gives, over the items where there is one.
        kappa: Cohen's kappa with that majority.
        without_majority: Items that it answered and on which the rest has no majority (ties among them): in no figure.
        alone: Items that it answered and none of the rest.
    """

    annotator: int
    agreement: Coefficient
    kappa: Coefficient
    without_majority: int
    alone: int


@dataclass(frozen=True, slots=True, eq=False)
class DawidSkene:
    """Keep the estimates of Dawid and Skene (1979, Applied Statistics 28:20-28): true classes and errors, together.

    Every item has one true class, drawn with the shares of the classes; each annotator, independently of the others
    given that class, answers v where c is true with probability e(c, v). What several annotators get wrong for the
    same reason is taken for the truth.

    Attributes:
        shares: Of the true classes, (classes,).
        errors: P(annotator answers | true class), (annotators, true classes, answers); nan for a class that nothing it
            answered is expected to be of (less than half an item): nothing shows how it answers there.
        posterior: P(true class | all answers), (patterns, classes).
        reliability: Expected share of each annotator's answers that are right, (annotators,); nan without answers. Its
            own answers have a say in what is right, so that it is high where few others answered.
        is_converged: Whether no posterior moved any more.
    """

    shares: Floats
    errors: Floats
    posterior: Floats
    reliability: Floats
    is_converged: bool


def majority(counts: Floats) -> Codes:
    """Return the class that more than half of the answers name, or `MISSING`; counts are (patterns, classes)."""
    top = counts.argmax(axis=1)
    is_majority = 2 * counts.max(axis=1) > counts.sum(axis=1)
    return np.where(is_majority, top, MISSING)


def against_rest(answers: Answers, panel: Sequence[int], *, number: int, seed: int) -> tuple[Standing, ...]:
    """Set each annotator against the majority of the others of a panel.

    Args:
        answers: What was answered.
        panel: Places of the annotators whose majority counts; nobody is part of the rest of itself.
        number: Draws of items behind each interval.
        seed: Of those draws.
    """
    resamples = answers.resamples(number, seed)
    return tuple(_standing(answers, panel, place, resamples) for place in range(answers.codes.shape[1]))


def mean_standing(answers: Answers, panel: Sequence[int], *, number: int, seed: int) -> Coefficient:
    """Return the mean agreement of the panel's members with the majority of the rest of it: a ceiling for others.

    The mean is over the members that can be compared; the interval is over items, and not over other members.
    """
    codes = [_with_rest(answers, panel, place)[0] for place in panel]

    def mean(weights: Floats) -> Floats:
        shares = [pairwise(weights, each, len(answers.classes))[0] for each in codes]
        return mean_defined(np.concatenate(shares, axis=1))

    compared = [(each != MISSING).all(axis=1) for each in codes]
    is_compared = np.any(compared, axis=0) if compared else np.zeros(len(answers.times), np.bool_)
    share = answers.resamples(number, seed).estimate(mean, is_compared)
    return explained("agreement", share, share, _NO_REST)


def why_no_dawid_skene(answers: Answers) -> str | None:
    """Say why errors and truth cannot be told apart; None where they can.

    Two annotators who differ may each be the one that errs: it takes three answers to an item to say (Kruskal 1977).
    """
    if not answers.items or (answers.counts.sum(1) < 3).all():  # noqa: PLR2004  # as the docstring says
        return "no item has three answers: of two that differ, either may be wrong"
    if (answers.counts.sum(0) > 0).sum() == 1:
        return "all answers are of one class"
    return None


def dawid_skene(answers: Answers, *, iterations: int = 1000) -> DawidSkene:
    """Estimate true classes and errors by expectation maximisation, from the shares of the votes on.

    Args:
        answers: What was answered; `why_no_dawid_skene` says whether the result would mean anything.
        iterations: How many at most; it ends where no posterior moves by more than 1e-9.
    """
    n_classes = len(answers.classes)
    # (annotators, patterns, answers): one 1 where there is an answer, all 0 where there is none.
    said = np.stack([code == answers.codes.T for code in range(n_classes)], axis=2).astype(np.float64)
    counts, times = answers.counts, answers.times.astype(np.float64)
    posterior, is_converged = counts / counts.sum(1, keepdims=True), False
    shares, errors = _maximised(posterior, said, times)
    for _ in range(iterations):
        before, posterior = posterior, _expected(shares, errors, said)
        shares, errors = _maximised(posterior, said, times)
        if is_converged := bool(np.abs(posterior - before).max() < _CONVERGED):
            break
    right, given = ((said * factor * times[:, None]).sum((1, 2)) for factor in (posterior, 1.0))
    reliability = np.divide(right, given, out=np.full_like(right, np.nan), where=given > 0)
    # Items that an annotator answered, by the class they are expected to be of, (annotators, classes).
    met = np.einsum("pc,ap->ac", posterior * times[:, None], said.sum(2))
    errors = np.where(met[:, :, None] >= _LEAST_MET, errors, np.nan)
    return DawidSkene(shares, errors, posterior, reliability, is_converged)


def _standing(answers: Answers, panel: Sequence[int], place: int, resamples: Resamples) -> Standing:
    codes, is_asked = _with_rest(answers, panel, place)
    is_answered, is_compared = codes[:, 0] != MISSING, (codes != MISSING).all(axis=1)
    share, kappa = resamples.estimates(
        lambda weights: np.concatenate(pairwise(weights, codes, len(answers.classes)), axis=1), is_compared
    )
    kappa = resamples.backed(kappa, uncommon(codes, answers.times * is_compared))
    return Standing(
        annotator=place,
        agreement=explained("agreement", share, share, _NO_REST),
        kappa=explained("cohen", share, kappa, _NO_REST),
        without_majority=int(answers.times[is_answered & is_asked & ~is_compared].sum()),
        alone=int(answers.times[is_answered & ~is_asked].sum()),
    )


def _expected(shares: Floats, errors: Floats, said: Floats) -> Floats:
    """Return P(true class | answers), (patterns, classes), in logarithms: products of many factors underflow."""
    logs = np.log(np.maximum(shares, _LEAST)) + np.einsum("acv,apv->pc", np.log(errors), said)
    scaled = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True), dtype=np.float64)


def _maximised(posterior: Floats, said: Floats, times: Floats) -> tuple[Floats, Floats]:
    """Return the shares of the classes, and each annotator's errors, given what is thought to be true."""
    weighted = posterior * times[:, None]
    errors = np.maximum(np.einsum("pc,apv->acv", weighted, said), _LEAST)
    return weighted.sum(0) / times.sum(), errors / errors.sum(axis=2, keepdims=True)


def _with_rest(answers: Answers, panel: Sequence[int], place: int) -> tuple[Codes, Flags]:
    """Return an annotator's answers beside the majority of the rest, (patterns, 2), and where the rest answered."""
    rest = [other for other in panel if other != place]
    counts = counted(answers.codes[:, rest], len(answers.classes))
    return np.stack([answers.codes[:, place], majority(counts)], axis=1), counts.sum(1) > 0
