"""Numbers as people read them."""

from __future__ import annotations

import math
import re

import pytest

from demur.stats.numbers import count, decimal, percent, percent_range, probability, with_noun
from demur.stats.shares import Interval, Share


@pytest.mark.parametrize(
    ("share", "interval", "text"),
    [
        (0.17222, None, "17.2%"),
        (0.4, Interval(0.2, 0.6), "40%"),
        (0.17222, Interval(0.1367, 0.2146), "17.2%"),
        (0.17222, Interval(0.1717, 0.1727), "17.22%"),
        (0.172222, Interval(0.17221, 0.17223), "17.222%"),
        (0.0, None, "0%"),
        (1.0, Interval(0.9, 1.0), "100%"),
        (0.00001, None, "<0.1%"),
        (0.99999, None, ">99.9%"),
        (math.nan, None, "n/a"),
        (0.5, Interval(math.nan, math.nan), "50.0%"),
    ],
)
def test_percentages_carry_the_digits_that_the_interval_allows(
    share: float, interval: Interval | None, text: str
) -> None:
    """A margin of 20 points leaves no decimal, one of .05 points two; and no share is rounded to nothing or all."""
    assert percent(share, interval) == text


def test_a_range_writes_both_ends_alike() -> None:
    """13.67 to 21.46 points have a margin of 3.9: one decimal; unknown ends are no range."""
    assert percent_range(Interval(0.1367, 0.2146)) == "13.7\u201321.5%"
    assert percent_range(Share(0, 0).interval) == "n/a"


def test_an_end_that_is_not_0_or_1_never_reads_as_such() -> None:
    """As shares do: ends of .00001 and .0004 points with three decimals, and one of 99.98 points with one."""
    assert percent_range(Interval(1e-7, 4e-6)) == "<0.001\u2013<0.001%"
    assert percent_range(Interval(0.994, 0.9998)) == "99.4\u2013>99.9%"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (1.0, "1.00"), (0.996, ">0.99"), (0.004, "<0.01"), (0.505, "0.51"), (math.nan, "n/a")],
)
def test_probabilities_are_never_rounded_to_certainty(value: float, text: str) -> None:
    """.996 is not 1, and .004 is not 0."""
    assert probability(value) == text


@pytest.mark.parametrize("total", [3, 200, 2_000, 5_000])
@pytest.mark.parametrize("effect", [1.0, 2.0, 8.0, 20.0])
@pytest.mark.parametrize("k", [1, 2, -2, -1])
def test_no_share_of_some_and_not_all_reads_as_nothing_or_all(total: int, effect: float, k: int) -> None:
    """1 of 200 at an effect of 8 has no decimal: half a point rounds to the even 0, and 99.5 points to 100."""
    share = Share(k % total, total, effect)
    for text in (percent(share.share, share.interval), percent(share.share)):
        assert not re.fullmatch(r"(0|100)(\.0+)?%", text)


def test_half_a_step_is_on_the_side_that_it_lies_on() -> None:
    """Neither 0 nor 100, whichever way halves are rounded."""
    assert percent(1 / 200, Interval(0.0, 0.2)) == "<1%"
    assert percent(199 / 200, Interval(0.8, 1.0)) == ">99%"


@pytest.mark.parametrize(
    ("value", "plain", "signed"),
    [
        (0.0, "0.000", "+0.000"),
        (-0.0, "0.000", "+0.000"),
        (0.0004, "<0.001", "<+0.001"),
        (-0.0004, ">-0.001", ">-0.001"),
        (0.0005001, "0.001", "+0.001"),
        (0.9536, "0.954", "+0.954"),
        (0.9996, ">0.999", ">+0.999"),
        (1.0, "1.000", "+1.000"),
        (1.0004, "<1.001", "<+1.001"),
        (-0.9996, "<-0.999", "<-0.999"),
        (-1.0, "-1.000", "-1.000"),
        (0.1 + 0.2 - 0.3, "0.000", "+0.000"),  # 5.6e-17, of rounding alone
        (0.1 * 3 + 0.7, "1.000", "+1.000"),
        (math.nan, "n/a", "n/a"),
    ],
)
def test_a_figure_that_is_not_0_or_1_never_reads_as_such(value: float, plain: str, signed: str) -> None:
    """Nor as -1, and the rounding of doubles is no difference."""
    assert (decimal(value), decimal(value, signed=True)) == (plain, signed)


def test_counts_have_their_thousands_apart() -> None:
    """1234567 is hard to read; one of a thing takes the singular."""
    assert count(1_234_567) == "1,234,567"
    assert [with_noun(n, "reply", "replies") for n in (0, 1, 2)] == ["0 replies", "1 reply", "2 replies"]
    assert with_noun(2, "row") == "2 rows"
