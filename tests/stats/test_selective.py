"""Answers that may be held back are measured by what is left of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demur.stats.conformal import CategorySets
from demur.stats.resampling import Flags, Floats, Resamples
from demur.stats.selective import CurvePoint, RiskCoverage, SetMetrics
from demur.taxonomy import Taxonomy

TAXONOMY = Taxonomy.load()
STATED = CategorySets(0.9, 100, 0.1)


def resamples(rows: int, clusters: int | None = None) -> Resamples:
    """Draw from a fixed seed; rows stand alone unless they share clusters."""
    names = [row % (rows if clusters is None else clusters) for row in range(rows)]
    return Resamples.of(names, number=100, generator=np.random.default_rng(3))


def curve(is_right: list[bool], confidence: list[float]) -> RiskCoverage:
    """Measure rows that each stand alone."""
    arrays = np.array(is_right, dtype=bool), np.array(confidence, dtype=float)
    return RiskCoverage.of(*arrays, resamples(len(is_right)))


def accuracies(found: RiskCoverage) -> dict[float, float]:
    """Return the accuracies by coverage."""
    return {one.coverage: one.accuracy.value for one in found.selected}


def test_the_curve_is_that_computed_by_hand() -> None:
    """Five rows by falling confidence: right, wrong, right, right, wrong."""
    found = curve([True, True, False, False, True], [0.6, 0.9, 0.8, 0.5, 0.7])
    # errors among the i surest: 0, 1, 1, 1, 2
    assert [point.risk for point in found.points] == pytest.approx([0, 1 / 2, 1 / 3, 1 / 4, 2 / 5])
    assert [point.coverage for point in found.points] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert [point.confidence for point in found.points] == [0.9, 0.8, 0.7, 0.6, 0.5]
    assert found.area.value == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4 + 2 / 5) / 5)
    # ceil(5 × 1), ceil(4.75) and ceil(4.5) are 5 rows, ceil(4) are 4, ceil(2.5) are 3
    assert accuracies(found) == pytest.approx({1.0: 3 / 5, 0.95: 3 / 5, 0.9: 3 / 5, 0.8: 3 / 4, 0.5: 2 / 3})
    assert [one.accuracy.n for one in found.selected] == [5, 5, 5, 4, 3]


def test_rows_of_equal_confidence_count_as_the_mean_of_their_orders() -> None:
    """One error in two equal rows is half an error in the first: risks 1/2 and 1/2, however the rows come."""
    for is_right in ([True, False], [False, True]):
        found = curve(is_right, [0.7, 0.7])
        assert found.area.value == pytest.approx(1 / 2)
        assert accuracies(found)[0.5] == pytest.approx(1 / 2)
        assert found.points == (CurvePoint(0.7, 1.0, 0.5),)


def test_whether_equal_rows_have_an_interval_does_not_hang_on_their_order() -> None:
    """Of a hundred, sixty of one request and forty of twelve others: the surest fifty may be of any of the thirteen."""
    clusters, is_right = np.array([0] * 60 + [1 + place % 12 for place in range(40)]), np.arange(100) % 5 > 0
    for order in (np.arange(100), np.arange(100)[::-1]):
        draws = Resamples.of(clusters[order].tolist(), number=100, generator=np.random.default_rng(0))
        half = RiskCoverage.of(is_right[order], np.ones(100), draws).selected[-1]
        assert (half.coverage, half.accuracy.n, math.isnan(half.accuracy.low)) == (0.5, 50, False)


def test_ties_agree_with_an_average_over_orders() -> None:
    """Twelve rows on three steps, against the mean of 4,000 random orders of the equal ones."""
    generator = np.random.default_rng(2)
    is_right, confidence = generator.random(12) < 0.6, np.repeat([0.9, 0.7, 0.5], 4)
    areas, halves = [], []
    for _ in range(4_000):
        order = np.lexsort((generator.random(12), -confidence))
        errors = np.cumsum(~is_right[order])
        areas.append(np.mean(errors / np.arange(1, 13)))
        halves.append(1 - errors[5] / 6)
    found = curve(is_right.tolist(), confidence.tolist())
    assert found.area.value == pytest.approx(np.mean(areas), abs=0.01)
    assert accuracies(found)[0.5] == pytest.approx(np.mean(halves), abs=0.01)


def naive(is_right: Flags, confidence: Floats) -> float:
    """Compute the area row by row, where no two rows are equally sure but for copies, which are equally right."""
    errors = np.cumsum(~is_right[np.argsort(-confidence, kind="stable")])
    return float(np.mean(errors / np.arange(1, len(errors) + 1)))


def test_a_resample_is_the_figure_with_rows_repeated() -> None:
    """Weights are repetitions: each drawn area is that of the rows so repeated."""
    generator = np.random.default_rng(4)
    is_right, confidence = generator.random(60) < 0.8, generator.random(60)
    draws = resamples(60, clusters=20)
    repeated = [draw[draws.cluster_of_row] for draw in draws.draws]
    expected = [naive(np.repeat(is_right, weights), np.repeat(confidence, weights)) for weights in repeated]
    area = RiskCoverage.of(is_right, confidence, draws).area
    assert (area.low, area.high) == pytest.approx(tuple(np.quantile(expected, (0.025, 0.975))))


def test_a_confidence_that_knows_its_errors_is_better_than_one_that_does_not() -> None:
    """All errors last, or first: 1/4 of the rows are wrong in both."""
    ladder = [1 - row / 8 for row in range(8)]
    best = curve([True] * 6 + [False] * 2, ladder)
    worst = curve([False] * 2 + [True] * 6, ladder)
    assert best.area.value < 0.25 < worst.area.value
    assert (accuracies(best)[0.5], accuracies(worst)[0.5]) == (1.0, 0.5)
    assert accuracies(best)[1.0] == accuracies(worst)[1.0] == 0.75


def test_rows_without_a_confidence_stand_out() -> None:
    """They are neither answered nor counted."""
    found = curve([True, False, False], [0.9, math.nan, 0.5])
    assert (found.area.n, accuracies(found)[1.0]) == (2, 0.5)


def test_no_rows_have_no_curve() -> None:
    """Empty input claims nothing."""
    for found in (curve([], []), curve([True, False], [math.nan, math.nan])):
        assert math.isnan(found.area.value)
        assert all(math.isnan(value) for value in accuracies(found).values())
        assert found.points == ()


@pytest.mark.parametrize(("rows", "points"), [(100, 100), (101, 100), (5_000, 100)])
def test_the_points_are_no_more_than_a_hundred(rows: int, points: int) -> None:
    """The first and the last of the curve among them."""
    found = curve([row % 7 > 0 for row in range(rows)], [1 - row / rows for row in range(rows)])
    assert len(found.points) == points
    assert (found.points[0].confidence, found.points[-1].coverage) == (1.0, 1.0)
    assert found.points[-1].risk == pytest.approx(1 - accuracies(found)[1.0])


def test_sets_are_measured_by_what_they_hold_and_what_they_resolve_to() -> None:
    """Five sets: a right kind, a wrong kind, a right group, an undetermined one that holds the truth, and one not."""
    truth = ["privacy", "privacy", "privacy", "skill_level", "skill_level"]
    sets = [
        ("privacy",),
        ("skill_level",),
        ("nsfw_content", "chain_of_command"),
        ("privacy", "skill_level"),
        ("privacy", "unknowable", "nsfw_content"),
    ]
    found = SetMetrics.of(truth, sets, TAXONOMY, resamples(5), STATED)
    assert found.stated is STATED
    assert found.coverage.value == 2 / 5
    assert found.size.value == pytest.approx((1 + 1 + 2 + 2 + 3) / 5)
    assert (found.kind.value, found.group.value, found.undetermined.value) == (2 / 5, 1 / 5, 2 / 5)
    assert (found.kind_accuracy.value, found.kind_accuracy.n) == (1 / 2, 2)
    assert (found.group_accuracy.value, found.group_accuracy.n) == (1.0, 1)


def test_no_sets_have_no_figures() -> None:
    """Nan, and no error."""
    found = SetMetrics.of([], [], TAXONOMY, resamples(0), STATED)
    figures = (found.coverage, found.size, found.kind, found.undetermined, found.kind_accuracy, found.group_accuracy)
    assert all(math.isnan(figure.value) for figure in figures)
