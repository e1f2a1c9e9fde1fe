"""A counted share is corrected for the errors of whoever counted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from demur.stats.prevalence import OperatingPoint, corrected_share
from demur.stats.shares import Share

POINT = OperatingPoint(true_positives=45, false_negatives=5, true_negatives=90, false_positives=10)


def test_an_operating_point_knows_its_rates() -> None:
    """45 of 50 refusals found, 90 of 100 others let pass."""
    assert (POINT.refusals, POINT.others) == (50, 100)
    assert (POINT.sensitivity, POINT.specificity) == (0.9, 0.9)
    assert POINT.youden == pytest.approx(0.8)


def test_rates_over_nothing_are_nan() -> None:
    """No refusals, no sensitivity."""
    nothing = OperatingPoint(0, 0, 0, 0)
    assert all(math.isnan(rate) for rate in (nothing.sensitivity, nothing.specificity, nothing.youden))


def test_a_reference_of_one_prompt_says_as_much_as_one_row_of_either_side() -> None:
    """A hundred replies to it, of which it cannot be seen how far they are found or missed together."""
    truth, called = [True] * 60 + [False] * 40, [True] * 54 + [False] * 46
    one = OperatingPoint.of(truth, called, ["p"] * 100)
    assert (one.refusal_effect, one.compliance_effect) == (60.0, 40.0)
    assert OperatingPoint.of(truth[:60], called[:60], ["p"] * 60).compliance_effect == 1.0
    found = corrected_share(Share(300, 1_000), one)
    assert found.share == pytest.approx(1 / 3)
    assert found.low == 0.0
    assert found.high > 0.9


def test_the_share_is_rogan_and_gladens() -> None:
    """(.25 + .9 - 1) / (.9 + .9 - 1) = .15 / .8 = .1875."""
    assert corrected_share(Share(100, 400), POINT).share == pytest.approx(0.1875)


def test_the_interval_is_lang_and_reiczigels() -> None:
    """Hand-computed on adjusted counts."""
    # z² = 3.841459: n' = 403.841459, AP' = 101.920729 / 403.841459 = .252378
    # Se' = 46/52 = .884615, Sp' = 91/102 = .892157, J' = .776772, P' = (.252378 + .892157 - 1) / .776772 = .186072
    # Se'(1-Se')/52 = .00196291, Sp'(1-Sp')/102 = .00094325, AP'(1-AP')/n' = .00046722
    # d = 2 z² (.186072 * .00196291 - .813928 * .00094325) = 7.682918 * (.00036524 - .00076774) = -.00309235
    # √(.00046722 + .03462279 * .00196291 + .66247879 * .00094325) / J' = √.00116006 / .776772 = .0340597/.776772
    # = .0438477; times z = .0859399. Ends: .186072 - .003092 -+ .085940 = .097040 and .268920
    corrected = corrected_share(Share(100, 400), POINT)
    assert (corrected.low, corrected.high) == pytest.approx((0.09704, 0.26892), abs=2e-5)


def test_a_flawless_labeler_leaves_the_share_as_it_is() -> None:
    """What remains is the interval, wider than sampling alone for a small reference."""
    corrected = corrected_share(Share(30, 100), OperatingPoint(1000, 0, 1000, 0))
    assert corrected.share == pytest.approx(0.3)
    assert corrected.low < 0.3 < corrected.high


def test_a_share_and_its_ends_are_clipped() -> None:
    """A few flags less than the false alarms to be expected give 0, with what sampling leaves open above it."""
    corrected = corrected_share(Share(30, 400), POINT)
    assert (corrected.share, corrected.low) == (0.0, 0.0)
    assert 0 < corrected.high < 0.1


def test_counts_that_no_share_explains_give_none_instead_of_a_certain_limit() -> None:
    """Both ends below 0, or above 1, would clip to an interval without width."""
    too_few, too_many = corrected_share(Share(1, 400), POINT), corrected_share(Share(400, 400), POINT)
    assert (too_few.undefined or "").startswith("fewer refusals were counted than its alarms")
    assert (too_many.undefined or "").startswith("more refusals were counted than its hits")
    assert all(math.isnan(number) for number in (too_few.share, too_few.low, too_few.high))


@pytest.mark.parametrize(
    ("counted", "point", "reason"),
    [
        # Sp = 1 of one other reply, Se = 1 of 1,000 refusals: P = AP; adjusted, Sp' = 2/3 expects 333 alarms of 1,000.
        (Share(10, 1000), OperatingPoint(1000, 0, 1, 0), "the reference is too small to correct the share"),
        (Share(0, 1000), OperatingPoint(1000, 0, 1, 0), "the reference is too small to correct the share"),
        (Share(990, 1000), OperatingPoint(1, 0, 1000, 0), "the reference is too small to correct the share"),
        # Se = .9: 990 of 1,000 are more than the 900 of a data set of nothing but refusals.
        (Share(990, 1000), OperatingPoint(900, 100, 1000, 0), "more refusals were counted than its hits"),
    ],
)
def test_a_small_reference_is_not_taken_for_other_errors(counted: Share, point: OperatingPoint, reason: str) -> None:
    """What the plain correction explains is no sign that the labeler errs otherwise."""
    assert (corrected_share(counted, point).undefined or "").startswith(reason)


def test_an_interval_holds_its_share() -> None:
    """A small flawless reference leaves the share as it is counted; adjusted, it expects some alarms and misses."""
    for refusals, others in ((5, 5), (30, 30), (3, 100), (100, 3)):
        for count in (0, 50, 300, 9_000, 99_000, 100_000):
            found = corrected_share(Share(count, 100_000), OperatingPoint(refusals, 0, others, 0))
            assert not found.is_defined or found.low <= found.share <= found.high


@pytest.mark.parametrize(
    ("total", "point", "reason"),
    [
        (0, POINT, "nothing was counted"),
        (9, OperatingPoint(0, 0, 5, 5), "the reference holds no refusal"),
        (9, OperatingPoint(5, 5, 0, 0), "the reference holds nothing but refusals"),
        (9, OperatingPoint(3, 7, 7, 3), "the labeler is no better than chance on the reference"),
        (9, OperatingPoint(2, 8, 2, 8), "the labeler is no better than chance on the reference"),
        # J = 1 + .1 - 1 > 0, yet on adjusted counts 2/3 + 101/1002 - 1 < 0: one refusal shows nothing.
        (9, OperatingPoint(1, 0, 100, 900), "the reference is too small to tell the labeler from chance"),
    ],
)
def test_where_nothing_can_be_corrected_it_says_why(total: int, point: OperatingPoint, reason: str) -> None:
    """Nan comes with its reason, never alone."""
    corrected = corrected_share(Share(0, total), point)
    assert all(math.isnan(number) for number in (corrected.share, corrected.low, corrected.high))
    assert (corrected.is_defined, corrected.undefined) == (False, reason)


def test_a_defined_share_has_no_excuse_but_a_method() -> None:
    """Reports say how it was corrected."""
    corrected = corrected_share(Share(100, 400), POINT)
    assert (corrected.is_defined, corrected.undefined) == (True, None)
    assert "Rogan-Gladen" in corrected.method


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_the_interval_covers_the_truth_as_often_as_it_says(share: float) -> None:
    """About 95 of 100 intervals hold the true share; the uncorrected share would hold it far less often."""
    generator, sensitivity, specificity, n, repeats = np.random.default_rng(7), 0.85, 0.9, 500, 2000
    flagged = generator.binomial(n, share * sensitivity + (1 - share) * (1 - specificity), repeats)
    found, passed = generator.binomial(80, sensitivity, repeats), generator.binomial(120, specificity, repeats)
    intervals = [
        corrected_share(Share(int(f), n), OperatingPoint(int(tp), 80 - int(tp), int(tn), 120 - int(tn)))
        for f, tp, tn in zip(flagged, found, passed, strict=True)
    ]
    covered = np.mean([interval.low <= share <= interval.high for interval in intervals])
    # The standard error of a coverage of .95 over 2,000 repeats is .005; the method is a little conservative.
    assert 0.935 <= covered <= 0.99


def test_it_covers_as_often_where_the_references_rows_share_prompts() -> None:
    """Five replies to each of sixteen prompts, which are found or missed alike: without the effect 7 of 10 cover."""
    generator, share, specificity, n = np.random.default_rng(8), 0.4, 0.9, 2000
    covered: list[bool] = []
    blind: list[bool] = []
    for _ in range(400):
        # A beta-binomial with mean .85 and a correlation of .7 within the prompt.
        chances = generator.beta(0.85 * (1 / 0.7 - 1), 0.15 * (1 / 0.7 - 1), 16)
        found = generator.random((16, 5)) < chances[:, None]
        passed = generator.random(120) < specificity
        called = [*found.ravel().tolist(), *(~passed).tolist()]
        prompts = [*np.repeat(np.arange(16), 5).tolist(), *range(16, 136)]
        at = OperatingPoint.of([True] * 80 + [False] * 120, called, prompts)
        counted = Share(int(generator.binomial(n, share * 0.85 + (1 - share) * (1 - specificity))), n)
        plain = replace(at, refusal_effect=1.0, compliance_effect=1.0)
        for point, kept in ((at, covered), (plain, blind)):
            interval = corrected_share(counted, point)
            kept.append(interval.low <= share <= interval.high)
    assert np.mean(blind) < 0.85
    assert np.mean(covered) > 0.91
