"""Paired comparisons, against worked examples and a second computation."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest

from demur.stats.paired import McNemar, against_rivals, f1_difference, holm, mcnemar
from demur.stats.resampling import Resamples


def flags(*counts: tuple[bool, bool, int]) -> tuple[np.ndarray, np.ndarray]:
    """Write out pairs of right and wrong answers with how often each stands."""
    pairs = [(first, second) for first, second, times in counts for _ in range(times)]
    first, second = np.array(pairs, dtype=np.bool_).T
    return first, second


def draws(n: int, number: int = 200) -> Resamples:
    """Draw items, each its own cluster."""
    return Resamples.of(range(n), number=number, generator=np.random.default_rng(0))


def test_the_exact_test_is_that_of_a_fair_coin() -> None:
    """Of 8 that one alone got right, 7 are the first's: 2 · (C(8,0) + C(8,1)) / 2^8 = 18/256."""
    found = mcnemar(*flags((True, True, 20), (True, False, 7), (False, True, 1), (False, False, 3)))
    assert (found.only_first, found.only_second) == (7, 1)
    assert found.p_value == pytest.approx(18 / 256, abs=1e-15)
    assert found.adjusted == found.p_value


def test_the_exact_test_of_agresti_on_prime_ministers() -> None:
    """Agresti (2002, Categorical Data Analysis, table 10.1): 150 and 86 changed their minds."""
    found = mcnemar(*flags((True, True, 794), (True, False, 150), (False, True, 86), (False, False, 570)))
    expected = 2 * sum(comb(236, k) for k in range(87)) / 2**236
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    assert found.p_value < 1e-4


def test_who_never_differs_has_no_test() -> None:
    """No discordant item: p is 1, in both directions."""
    assert mcnemar(*flags((True, True, 5), (False, False, 2))) == McNemar(0, 0, 1.0, 1.0)
    assert mcnemar(np.empty(0, np.bool_), np.empty(0, np.bool_)).p_value == 1.0


def test_the_test_is_the_same_both_ways_round() -> None:
    """Two-sided: who is first does not matter, whatever the counts."""
    for one, other in ((3, 9), (0, 4), (12, 12), (1, 1)):
        first, second = flags((True, False, one), (False, True, other))
        assert mcnemar(first, second).p_value == pytest.approx(mcnemar(second, first).p_value)
        assert mcnemar(first, second).p_value == pytest.approx(binomtest(one, one + other).pvalue)


def test_holm_corrects_for_the_number_of_tests() -> None:
    """Of .01, .04, .03 (Holm 1979): 3 · .01, then 2 · .03, then .04, which may not be below what stands before it."""
    tests = [McNemar(0, 0, p, p) for p in (0.01, 0.04, 0.03)]
    assert [one.adjusted for one in holm(tests)] == pytest.approx([0.03, 0.06, 0.06])
    assert [one.adjusted for one in holm([McNemar(0, 0, p, p) for p in (0.6, 0.9)])] == pytest.approx([1.0, 1.0])
    assert holm([]) == ()


def test_the_difference_in_f1_is_that_of_both_figures() -> None:
    """First: TP 3, called 4, true 4, F1 6/8; second: TP 2, called 3, true 4, F1 4/7; twice. Its interval by a loop."""
    truth = np.array([1, 1, 1, 1, 0, 0] * 2, dtype=np.bool_)
    first = np.array([1, 1, 1, 0, 1, 0] * 2, dtype=np.bool_)
    second = np.array([1, 0, 1, 0, 1, 0] * 2, dtype=np.bool_)
    resamples = draws(12)
    found = f1_difference(truth, first, second, resamples)
    assert found.value == pytest.approx(6 / 8 - 4 / 7)
    drawn = []
    for counts in resamples.draws:
        rows = np.repeat(np.arange(12), counts)
        figures = [
            2 * (truth & called)[rows].sum() / (truth[rows].sum() + called[rows].sum())
            if truth[rows].sum() + called[rows].sum()
            else math.nan
            for called in (first, second)
        ]
        drawn.append(figures[0] - figures[1])
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.parametrize(("n_true", "n_second", "is_given"), [(3, 0, False), (10, 0, True), (3, 7, False)])
def test_a_difference_in_f1_has_no_interval_where_an_f1_has_none(n_true: int, n_second: int, *, is_given: bool) -> None:
    """Of 100 replies 3 or 10 refuse, and the second calls 7 others so: 97 that nobody calls a refusal say nothing."""
    truth, others = np.arange(100) < n_true, np.arange(100) >= 100 - n_second
    first, second = truth & (np.arange(100) % 2 == 0), (np.arange(100) == 0) | others
    found = f1_difference(truth, first, second, draws(100))
    assert found.n == n_true + n_second
    assert (math.isnan(found.low), math.isnan(found.high)) == (not is_given, not is_given)


def test_rivals_are_met_on_their_own_items_and_the_median_stands_between_them() -> None:
    """Three rivals: 3/4 against 1/4, 2/4 against 2/4, 0/2 against 1/2: differences .5, 0 and -.5, median 0."""
    compared = np.array([[1, 0, 0]] * 4 + [[0, 1, 0]] * 4 + [[0, 0, 1]] * 2, dtype=np.bool_)
    ours, theirs = np.ones((10, 3), dtype=np.bool_), np.ones((10, 3), dtype=np.bool_)
    ours[:4, 0], theirs[:4, 0] = [1, 1, 1, 0], [0, 0, 1, 0]
    ours[4:8, 1], theirs[4:8, 1] = [1, 0, 1, 0], [0, 1, 0, 1]
    ours[8:, 2], theirs[8:, 2] = [0, 0], [1, 0]
    found = against_rivals(ours, theirs, compared, draws(10))
    assert [one.value for one in found.differences] == pytest.approx([0.5, 0.0, -0.5])
    assert [one.n for one in found.differences] == [4, 4, 2]
    assert found.shares == pytest.approx((0.75, 0.5, 0.0))
    assert found.rival_shares == pytest.approx((0.25, 0.5, 0.5))
    assert (found.median.value, found.median.n) == (0.0, 10)
    assert found.mean.value == pytest.approx(0.0)
    assert (found.beaten, found.compared) == (1, 3)


def test_the_interval_of_the_median_is_that_of_a_second_computation() -> None:
    """Random flags; each resample by hand with numpy's own median, rivals who were not drawn left out."""
    generator = np.random.default_rng(3)
    compared = generator.random((30, 4)) < 0.4
    ours, theirs = generator.random((30, 4)) < 0.8, generator.random((30, 4)) < 0.6
    resamples = draws(30, 300)
    both = against_rivals(ours, theirs, compared, resamples)
    drawn = []
    for counts in resamples.draws:
        rows = np.repeat(np.arange(30), counts)
        gaps = []
        for rival in range(4):
            used = rows[compared[rows, rival]]
            if used.size:
                gaps.append(ours[used, rival].mean() - theirs[used, rival].mean())
        drawn.append((np.median(gaps), np.mean(gaps)))
    for place, found in enumerate((both.median, both.mean)):
        expected = np.quantile([each[place] for each in drawn], (0.025, 0.975))
        assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_without_rivals_there_is_no_median() -> None:
    """Neither where there is nobody, nor where nobody shares an item."""
    nobody = np.empty((3, 0), dtype=np.bool_)
    found = against_rivals(nobody, nobody, nobody, draws(3))
    assert (found.differences, found.compared) == ((), 0)
    assert math.isnan(found.median.value)
    apart = against_rivals(*(np.ones((3, 2), np.bool_),) * 2, np.zeros((3, 2), np.bool_), draws(3))
    assert math.isnan(apart.median.value)
    assert apart.compared == 0
