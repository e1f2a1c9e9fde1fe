"""Write numbers as people read them: no more digits than the data carry, and `n/a` where there is no number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.stats.shares import Interval

__all__ = ["NOT_AVAILABLE", "count", "decimal", "of_splits", "percent", "percent_range", "probability", "with_noun"]

NOT_AVAILABLE = "n/a"

# A percentage gets this many decimals where half its interval is at least so wide; beyond the last, three.
_DECIMALS_BY_MARGIN = ((0.05, 0), (0.002, 1), (0.0002, 2))
_MAX_DECIMALS = 3
_PLAIN_DECIMALS = 1
_EXACT_DECIMALS = 9


def count(number: int) -> str:
    """Write a whole number with its thousands apart.

    Example:
        >>> count(1234567)
        '1,234,567'
    """
    return f"{number:,}"


def with_noun(number: int, noun: str, plural: str | None = None) -> str:
    """Write a whole number with what it counts.

    Example:
        >>> with_noun(1, "reply", "replies"), with_noun(1200, "row")
        ('1 reply', '1,200 rows')
    """
    return f"{count(number)} {noun if number == 1 else plural if plural is not None else f'{noun}s'}"


def of_splits(counts: Mapping[str, int]) -> str:
    """Write how many rows there are of which split.

    Example:
        >>> of_splits({"test": 30, "train": 1})
        "30 rows of split 'test', 1 row of split 'train'"
    """
    return ", ".join(f"{with_noun(number, 'row')} of split {name!r}" for name, number in counts.items())


def percent(share: float, interval: Interval | None = None) -> str:
    """Write a share as a percentage, with the decimals that its interval allows, or one where there is no interval.

    A share that is not 0 never reads as 0, and one that is not 1 never as 100.

    Example:
        >>> percent(0.17222), percent(0.00001), percent(float("nan"))
        ('17.2%', '<0.1%', 'n/a')
    """
    if math.isnan(share):
        return NOT_AVAILABLE
    return f"{share * 100:.0f}%" if share in (0, 1) else f"{_digits(share, _decimals(interval))}%"


def percent_range(interval: Interval) -> str:
    """Write an interval of shares as percentages, with the same decimals at both ends, and each as `percent` has it.

    Example:
        >>> from demur.stats.shares import Interval
        >>> percent_range(Interval(0.1367, 0.2146)).encode("ascii", "replace").decode()
        '13.7?21.5%'
    """
    low, high = interval
    if math.isnan(low) or math.isnan(high):
        return NOT_AVAILABLE
    decimals = _decimals(interval)
    return f"{_digits(low, decimals)}–{_digits(high, decimals)}%"  # a range takes the en dash


def _digits(share: float, decimals: int) -> str:
    return _rounded(share * 100, decimals, whole=100)


def decimal(value: float, decimals: int = 3, *, signed: bool = False) -> str:
    """Write a figure with so many decimals, and never as 0, 1 or -1 where it is none of these.

    Example:
        >>> decimal(0.9536), decimal(0.9996), decimal(-0.0004, signed=True), decimal(float("nan"))
        ('0.954', '>0.999', '>-0.001', 'n/a')
    """
    if math.isnan(value):
        return NOT_AVAILABLE
    return _rounded(value, decimals, whole=1, sign="+" if signed else "")


def _rounded(value: float, decimals: int, *, whole: int, sign: str = "") -> str:
    """Round a number, and say on which side of the next one it lies where it would read as 0 or as all but is not."""
    # What lies so near to a whole number is one, but for rounding and least probabilities; zero below 0 is zero.
    value = round(value, _EXACT_DECIMALS) + 0.0
    text = f"{value:{sign}.{decimals}f}"
    rounded, step = float(text), 10.0**-decimals
    if value == rounded or abs(rounded) not in (0, whole):
        return text
    if value > rounded:
        return f"<{rounded + step:{sign}.{decimals}f}"
    return f">{rounded - step:{sign}.{decimals}f}"


def probability(value: float) -> str:
    """Write a probability with two decimals, and never as 0 or 1 where it is neither.

    Example:
        >>> probability(0.5), probability(0.9999), probability(0.0001), probability(float("nan"))
        ('0.50', '>0.99', '<0.01', 'n/a')
    """
    return decimal(value, 2)


def _decimals(interval: Interval | None) -> int:
    if interval is None or math.isnan(interval[0]):
        return _PLAIN_DECIMALS
    margin = (interval[1] - interval[0]) / 2
    return next((decimals for least, decimals in _DECIMALS_BY_MARGIN if margin >= least), _MAX_DECIMALS)
