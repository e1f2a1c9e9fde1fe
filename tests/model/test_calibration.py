"""Hold calibration to known truth on seeded simulations, and to changing nothing where it cannot know."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, softmax

from demur.model.calibration import fit_further, fit_platt, fit_temperature, fit_threshold


def test_slope_and_intercept_are_recovered() -> None:
    """20,000 rows drawn from P = σ(1.8 z - 0.6): the standard errors are about .03 and .02."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=20_000) * 2
    slope, intercept = fit_platt(z, rng.random(20_000) < expit(1.8 * z - 0.6))
    assert slope == pytest.approx(1.8, abs=0.1)
    assert intercept == pytest.approx(-0.6, abs=0.07)


def test_calibrated_rows_are_left_nearly_alone() -> None:
    """P = σ(z) already: slope 1, intercept 0, within sampling error."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=20_000) * 2
    slope, intercept = fit_platt(z, rng.random(20_000) < expit(z))
    assert slope == pytest.approx(1.0, abs=0.06)
    assert intercept == pytest.approx(0.0, abs=0.06)


def test_one_score_for_all_gives_the_smoothed_base_rate() -> None:
    """With z = 0 only the intercept counts: 30 of 40 true, mean target (30 · 31/32 + 10 · 1/12) / 40 = .747396."""
    _, intercept = fit_platt(np.zeros(40), np.arange(40) < 30)
    target = (30 * 31 / 32 + 10 / 12) / 40
    assert intercept == pytest.approx(math.log(target / (1 - target)), abs=1e-3)


def test_separable_rows_keep_a_finite_slope() -> None:
    """Maximum likelihood alone would run to infinity; Platt's targets, 51/52 and 1/52, stop at σ(ln 51) = 51/52."""
    is_positive = np.arange(100) < 50
    slope, intercept = fit_platt(np.where(is_positive, 1.0, -1.0), is_positive)
    assert slope == pytest.approx(math.log(51), abs=1e-2)
    assert intercept == pytest.approx(0.0, abs=1e-2)


def test_a_ranking_is_never_turned_around() -> None:
    """Scores that are worse than chance get a slope near zero, not a negative one."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=2_000)
    slope, _ = fit_platt(z, rng.random(2_000) < expit(-2 * z))
    assert 0 <= slope < 0.01


@pytest.mark.parametrize(
    ("n", "n_positive"), [(0, 0), (29, 14), (100, 0), (100, 100)], ids=["none", "few", "no positive", "no negative"]
)
def test_too_little_to_go_by_changes_nothing(n: int, n_positive: int) -> None:
    """Slope 1 and intercept 0."""
    assert fit_platt(np.linspace(-1, 1, n), np.arange(n) < n_positive) == (1.0, 0.0)


def test_temperature_is_recovered() -> None:
    """20,000 rows of four classes drawn from softmax(z / 2.5)."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(20_000, 4)) * 5
    chances = softmax(logits / 2.5, axis=1).cumsum(axis=1)
    truth = (rng.random((20_000, 1)) > chances).sum(axis=1)
    assert fit_temperature(logits, truth) == pytest.approx(2.5, abs=0.1)


def test_separable_rows_keep_a_temperature_that_they_bear_out() -> None:
    """40 rows of four classes without an error, each logit 8 above the others: P = 41/42 at 8 / T = ln(41 · 3)."""
    truth = np.arange(40) % 4
    found = fit_temperature(8 * np.eye(4)[truth], truth)
    assert found == pytest.approx(8 / math.log(41 * 3), abs=1e-3)


def test_temperature_stays_between_a_fifth_and_five() -> None:
    """Logits that hardly differ would be sharpened to ln 123 of difference, and useless ones flatten for ever."""
    truth = np.arange(40) % 4
    perfect = np.eye(4)[truth]
    assert fit_temperature(perfect / 10, truth) == pytest.approx(0.2, abs=1e-3)
    assert fit_temperature(perfect * 20, (truth + 1) % 4) == pytest.approx(5.0, abs=1e-2)


def test_smoothing_hardly_moves_the_temperature_of_rows_with_errors() -> None:
    """378 rows, 18 % of them on the wrong side: far less than the standard error of the temperature, 10 %."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=378) * 4
    logits = np.stack([np.zeros_like(z), z], axis=1)
    truth = (rng.random(378) < expit(z / 1.5)).astype(np.int64)

    def loss(temperature: float) -> float:
        return float(np.logaddexp(0, -(2 * truth - 1) * z / temperature).mean())

    plain = min(np.arange(1.0, 2.5, 0.001), key=loss)
    assert 1 < fit_temperature(logits, truth) / plain < 1.03


def test_temperature_of_one_class_is_one() -> None:
    """However sure the logits are: nothing says how sure they would be of another."""
    logits = np.stack([np.zeros(100), np.linspace(-1, 5, 100)], axis=1)
    assert fit_temperature(logits, np.ones(100, dtype=np.int64)) == 1.0


def test_temperature_of_too_few_rows_is_one() -> None:
    """29 rows, and none at all."""
    assert fit_temperature(np.zeros((29, 4)), np.zeros(29, dtype=np.int64)) == 1.0
    assert fit_temperature(np.zeros((0, 4)), np.zeros(0, dtype=np.int64)) == 1.0


def test_the_threshold_of_further_kinds_parts_named_from_unnamed() -> None:
    """Second kinds are named at .25 and never at .155: the first threshold on the grid between them is .16."""
    probabilities = np.array([[0.595, 0.25, 0.155]] * 40 + [[0.69, 0.155, 0.155]] * 40)
    is_named = np.array([[True, True, False]] * 40 + [[True, False, False]] * 40)
    assert fit_further(probabilities, is_named, default=0.3) == 0.16


def test_the_most_probable_kind_is_no_further_kind() -> None:
    """100 rows name their most probable kind alone: no second kind to fit by, so the default stands."""
    probabilities = np.tile([0.9, 0.1], (100, 1))
    assert fit_further(probabilities, np.tile([True, False], (100, 1)), default=0.37) == 0.37


def test_few_second_kinds_leave_the_default() -> None:
    """9 second kinds, or no row."""
    probabilities = np.tile([0.6, 0.4], (9, 1))
    assert fit_further(probabilities, np.ones((9, 2), dtype=bool), default=0.3) == 0.3
    assert fit_further(np.zeros((0, 2)), np.zeros((0, 2), dtype=bool), default=0.3) == 0.3


def test_a_threshold_parts_positive_from_negative_rows() -> None:
    """Positives lie at .3, negatives at .1: the first threshold on the grid above .1 has an F1 of 1."""
    probabilities = np.array([0.3] * 12 + [0.1] * 50)
    is_positive = np.array([True] * 12 + [False] * 50)
    assert fit_threshold(probabilities, is_positive, default=0.5) == 0.11


def test_nine_positive_rows_are_too_few_for_a_threshold() -> None:
    """The default stands."""
    assert fit_threshold(np.full(9, 0.2), np.ones(9, dtype=bool), default=0.5) == 0.5
