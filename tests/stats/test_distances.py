"""Sets of labels lie as far apart as Passonneau and Jaccard say."""

from __future__ import annotations

import numpy as np
import pytest

from demur.stats.distances import distances, jaccard, masi


@pytest.mark.parametrize(
    ("first", "second", "by_jaccard", "monotonicity"),
    [
        ("ab", "ab", 1, 1),
        ("a", "ab", 1 / 2, 2 / 3),
        ("abc", "a", 1 / 3, 2 / 3),
        ("ab", "bc", 1 / 3, 1 / 3),
        ("abc", "bcd", 2 / 4, 1 / 3),
        ("a", "b", 0, 0),
        ("", "", 1, 1),
        ("", "a", 0, 0),
    ],
)
def test_masi_is_jaccard_by_monotonicity(first: str, second: str, by_jaccard: float, monotonicity: float) -> None:
    """Passonneau 2006: 1 for equal sets, 2/3 for a subset, 1/3 for an overlap, 0 for nothing in common."""
    one, other = set(first), set(second)
    assert jaccard(one, other) == pytest.approx(1 - by_jaccard, abs=1e-12)
    assert masi(one, other) == pytest.approx(1 - by_jaccard * monotonicity, abs=1e-12)
    assert (masi(one, other), jaccard(one, other)) == (masi(other, one), jaccard(other, one))


def test_distances_are_laid_out_as_a_square() -> None:
    """Symmetric, with nothing on the diagonal; of no sets there is an empty one."""
    square = distances([frozenset("a"), frozenset("ab"), frozenset("c")], masi)
    assert square == pytest.approx(np.array([[0, 2 / 3, 1], [2 / 3, 0, 1], [1, 1, 0]]))
    assert distances([], masi).shape == (0, 0)
