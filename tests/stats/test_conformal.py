"""Sets of kinds hold the true kind as often as is stated, whatever the model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demur.kinds import kind_set
from demur.stats.conformal import CategorySets
from demur.taxonomy import Taxonomy

TAXONOMY = Taxonomy.load()


def simulated(n: int, generator: np.random.Generator, *, decimals: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw true kinds, (n,), and the probabilities of a model that is much too sure of itself, (n, kinds)."""
    logits = generator.normal(size=(n, len(TAXONOMY)))
    truth = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    sure = np.exp(3 * logits)
    return truth, np.round(sure / sure.sum(1, keepdims=True), decimals)


@pytest.mark.parametrize(("coverage", "n"), [(0.9, 30), (0.8, 30), (0.95, 60), (0.5, 10)])
def test_exchangeable_refusals_are_covered_as_stated(coverage: float, n: int) -> None:
    """Over draws of n + 1 rows, the last is covered with probability r / (n + 1), r = ceil((n + 1) coverage)."""
    generator, trials = np.random.default_rng(5), 3_000
    n_covered = 0
    for _ in range(trials):
        truth, probabilities = simulated(n + 1, generator, decimals=12)
        scores = probabilities[np.arange(n + 1), truth]
        n_covered += scores[n] >= CategorySets.of(scores[:n].tolist(), coverage).least
    exact = math.ceil((n + 1) * coverage) / (n + 1)
    # Four standard deviations of a binomial share.
    assert n_covered / trials == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / trials))


@pytest.mark.parametrize("decimals", [12, 1])
def test_the_sets_of_verdicts_are_covered_at_least_as_stated(decimals: int) -> None:
    """With the main kind in each of them, and where many probabilities are equal: never less than .8."""
    generator, trials, n = np.random.default_rng(6), 1_500, 25
    n_covered = 0
    for _ in range(trials):
        truth, probabilities = simulated(n + 1, generator, decimals=decimals)
        scores = probabilities[np.arange(n), truth[:n]].tolist()
        held, _ = kind_set(probabilities[n].tolist(), TAXONOMY, least=CategorySets.of(scores, 0.8).least)
        n_covered += TAXONOMY.keys[truth[n]] in held
    assert n_covered / trials >= 0.8 - 4 * math.sqrt(0.8 * 0.2 / trials)


def test_the_least_probability_is_that_of_the_rank() -> None:
    """Hand-computed: n = 9 at .9 has r = ceil(10 × .9) = 9, the smallest of nine; n = 10 has r = 10, n = 19 r = 18."""
    scores = [number / 100 for number in range(1, 20)]
    assert CategorySets.of(scores[:9], 0.9).least == 0.01
    assert CategorySets.of(scores[:10], 0.9).least == 0.01
    assert CategorySets.of(scores, 0.9).least == 0.02
    assert CategorySets.of(scores[::-1], 0.5).least == 0.1  # r = 10 of 19, the one in the middle


def test_equal_scores_are_all_inside() -> None:
    """Ties only make sets larger: at r = 3 of 4, three scores of .4 are the rank, and the kinds at .4 are in."""
    assert CategorySets.of([0.4, 0.4, 0.4, 0.1], 0.6).least == 0.4
    assert CategorySets.of([0.4, 0.4, 0.4, 0.4], 0.6).least == 0.4


@pytest.mark.parametrize(("coverage", "needed"), [(0.9, 9), (0.95, 19), (0.5, 1), (0.999, 999)])
def test_of_too_few_refusals_nothing_but_all_kinds_follows(coverage: float, needed: int) -> None:
    """One less than c / (1 - c), and the quantile is infinite: every kind is in the set, and it says so."""
    enough, too_few = CategorySets.of([0.5] * needed, coverage), CategorySets.of([0.5] * (needed - 1), coverage)
    assert (enough.has_enough, enough.least, enough.needed) == (True, 0.5, needed)
    assert (too_few.has_enough, too_few.least, too_few.needed) == (False, 0.0, needed)
    assert set(kind_set([1.0] + [0.0] * 15, TAXONOMY, least=too_few.least)[0]) == set(TAXONOMY.keys)


def test_the_coverage_is_the_decimal_that_was_given() -> None:
    """In doubles 100 × .55 is 55.00000000000001, whose ceiling is 56."""
    assert CategorySets.of([number / 100 for number in range(1, 100)], 0.55).least == 0.45  # the 55th largest of 99


@pytest.mark.parametrize("coverage", [0.49, 0.9991, 1.0, 0.0, -1.0, math.nan])
def test_a_coverage_that_cannot_be_stated_is_refused(coverage: float) -> None:
    """The message shows it, and what would be right."""
    with pytest.raises(ValueError, match=r"coverage .*; give a number from 0.5 to 0.999"):
        CategorySets.of([0.5] * 100, coverage)
