"""Clusters know how much their rows depend on each other, whatever part of them is kept."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pytest

from demur.stats import clusters
from demur.stats.clusters import Clusters
from demur.stats.shares import Share

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = [
    ("a", ["row", "hit"]),
    ("a", ["row", "hit"]),
    ("b", ["row"]),
    ("b", ["row"]),
    ("c", ["row", "hit"]),
    ("c", ["row"]),
]


def test_the_effect_is_that_of_a_ratio_over_clusters() -> None:
    """Hand-computed: p = 3/6, Σ(a - p b)² = 1 + 1 + 0, K / (K - 1) = 3/2: 1.5 · 2/36 / (.25 / 5) = 5/3."""
    assert Clusters.of(ROWS).effects(["hit"], "row") == {"hit": pytest.approx(5 / 3)}


def test_rows_that_stand_alone_are_independent() -> None:
    """Whatever they are, and however few."""
    rows = [(str(place), ["row", "hit"] if place < 3 else ["row"]) for place in range(10)]
    assert Clusters.of(rows).effects(["hit"], "row") == {"hit": 1.0}


def test_rows_that_agree_in_full_say_as_much_as_their_clusters() -> None:
    """50 of 100 clusters of four: four, but for the corrections K / (K - 1) and (n - 1) / n."""
    rows = [(str(place // 4), ["row", "hit"] if place < 200 else ["row"]) for place in range(400)]
    assert Clusters.of(rows).effects(["hit"], "row")["hit"] == pytest.approx(4 * 100 / 99 * 399 / 400)


def test_clusters_that_differ_less_than_chance_do_not_narrow_the_interval() -> None:
    """One hit in every pair has no variance between clusters; rows are taken as independent all the same."""
    rows = [(str(place // 2), ["row", "hit"][: 1 + place % 2]) for place in range(40)]
    assert Clusters.of(rows).effects(["hit"], "row") == {"hit": 1.0}


def test_where_nothing_varies_each_cluster_is_one_row() -> None:
    """0 of 6 rows in 3 clusters, and 6 of 6: nothing shows how far rows agree."""
    assert Clusters.of(ROWS).effects(["never", "row"], "row") == {"never": 2.0, "row": 2.0}


def test_a_single_cluster_says_nothing_of_others() -> None:
    """Nor do none at all."""
    assert Clusters.of(ROWS[:2]).effects(["hit"], "row") == {"hit": 1.0}
    assert Clusters().effects(["hit"], "row") == {"hit": 1.0}


def test_clusters_without_any_of_the_whole_do_not_count() -> None:
    """Of the hits, those in `a` and `c`: 3 rows in 2 clusters, none of them a miss."""
    assert Clusters.of(ROWS).effects(["miss"], "hit") == {"miss": 1.5}


def test_parts_add_up_to_the_whole_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where not all clusters are kept: those that are have all of their rows."""
    monkeypatch.setattr(clusters, "SAMPLE", 20)
    rows = [(str(place % 97), ["row", "hit"] if place % 5 == 0 else ["row"]) for place in range(500)]
    whole = Clusters.of(rows)
    parts = [Clusters.of(rows[start : start + 60]) for start in range(0, 500, 60)]
    assert sum(parts, Clusters()) == sum(reversed(parts), Clusters()) == whole
    assert (len(whole.counts), whole.is_whole) == (20, False)
    # 500 rows on 97 names: five or six each.
    assert {counts["row"] for counts in whole.counts.values()} <= {5, 6}


def test_the_number_of_clusters_is_known_or_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact where all are kept; with 400 of 5,000 the standard error is 5 %."""
    rows = [(str(place), ["row"]) for place in range(5000)]
    monkeypatch.setattr(clusters, "SAMPLE", 400)
    assert Clusters.of(rows[:300]).number == 300
    assert Clusters.of(rows).number == pytest.approx(5000, rel=0.2)


def test_it_goes_through_json_without_loss() -> None:
    """As a tally stores it."""
    found = Clusters.of(ROWS)
    assert Clusters.from_json(json.loads(json.dumps(asdict(found)))) == found


def test_a_name_may_hold_what_json_escapes_leave_behind() -> None:
    """A lone surrogate is text too."""
    assert Clusters.of([("\ud800", ["row"])]).number == 1


def _clustered(generator: np.random.Generator) -> Sequence[tuple[str, list[str]]]:
    """Draw 150 requests, each with its own rate of refusal around .3, and one to ten replies each."""
    rates = generator.beta(0.6, 1.4, 150)
    sizes = generator.integers(1, 11, 150)
    return [
        (str(place), ["row", "hit"] if generator.random() < rate else ["row"])
        for place, (rate, size) in enumerate(zip(rates, sizes, strict=True))
        for _ in range(size)
    ]


def test_the_interval_covers_the_share_of_all_requests_as_often_as_it_says() -> None:
    """About 95 of 100; one that takes replies for independent, far fewer."""
    generator, covered, naive = np.random.default_rng(11), 0, 0
    for _ in range(300):
        rows = _clustered(generator)
        hits, effect = sum(len(marks) == 2 for _, marks in rows), Clusters.of(rows).effects(["hit"], "row")["hit"]
        low, high = Share(hits, len(rows), effect).interval
        covered += low <= 0.3 <= high
        low, high = Share(hits, len(rows)).interval
        naive += low <= 0.3 <= high
    # The standard error of a coverage of .95 over 300 repeats is .013.
    assert 0.91 <= covered / 300 <= 0.99
    assert naive / 300 < 0.8


def test_an_effect_widens_the_interval_as_fewer_rows_would() -> None:
    """40 of 200 at an effect of 4 is 10 of 50, not in its share but in its interval."""
    assert Share(40, 200, 4.0).interval == pytest.approx(Share(10, 50).interval)
    assert Share(200, 200, 4.0).interval.high == 1.0


@pytest.mark.parametrize("effect", [0.5, math.nan])
def test_an_effect_that_would_narrow_it_is_refused(effect: float) -> None:
    """It is a mistake, not a finding."""
    with pytest.raises(ValueError, match="design effect"):
        Share(1, 2, effect)
