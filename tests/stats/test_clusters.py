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

    from demur.stats.shares import Interval

ROWS = [
    ("a", ["row", "hit"]),
    ("a", ["row", "hit"]),
    ("b", ["row"]),
    ("b", ["row"]),
    ("c", ["row", "hit"]),
    ("c", ["row"]),
]


def test_the_effect_is_that_of_a_ratio_over_clusters() -> None:
    """Hand-computed: p = 3/6, Σ(a - p b)² = 1 + 1 + 0, K / (K - 1) = 3/2: 1.5 · 2/36 / (.25 / 5) = 5/3.

    Three clusters know it as badly as the quantiles of Student's t say, 4.3027 for 2 degrees and 2.5706 for 5.
    """
    assert Clusters.of(ROWS).effects(["hit"], "row") == {"hit": pytest.approx(5 / 3 * (4.3027 / 2.5706) ** 2, rel=1e-4)}


def test_rows_that_stand_alone_are_independent() -> None:
    """Whatever they are, and however few."""
    rows = [(str(place), ["row", "hit"] if place < 3 else ["row"]) for place in range(10)]
    assert Clusters.of(rows).effects(["hit"], "row") == {"hit": 1.0}


def test_rows_that_agree_in_full_say_as_much_as_their_clusters() -> None:
    """50 of 100 clusters of four: four, but for the corrections K / (K - 1), (n - 1) / n and those of Student's t."""
    rows = [(str(place // 4), ["row", "hit"] if place < 200 else ["row"]) for place in range(400)]
    expected = 4 * 100 / 99 * 399 / 400 * (1.98422 / 1.96593) ** 2
    assert Clusters.of(rows).effects(["hit"], "row")["hit"] == pytest.approx(expected, rel=1e-5)


def test_clusters_that_differ_less_than_chance_do_not_narrow_the_interval() -> None:
    """One hit in every pair has no variance between clusters; rows are taken as independent all the same."""
    rows = [(str(place // 2), ["row", "hit"][: 1 + place % 2]) for place in range(40)]
    assert Clusters.of(rows).effects(["hit"], "row") == {"hit": 1.0}


def test_where_nothing_varies_each_cluster_is_one_row() -> None:
    """0 of 6 rows in 3 clusters, and 6 of 6: nothing shows how far rows agree."""
    assert Clusters.of(ROWS).effects(["never", "row"], "row") == {"never": 2.0, "row": 2.0}


def test_hits_of_one_cluster_show_little_of_how_far_rows_agree() -> None:
    """Hand-computed: one of 16 in 4 clusters, u = 3.8415 / 7.8415 = .48989: 16/4 · (1 - .0625 / .48989)² = 3.0445.

    The variance of the four alone would give 1, and 2.23 with the quantiles of Student's t.
    """
    rows = [(str(place // 4), ["row", "hit"] if place == 0 else ["row"]) for place in range(16)]
    assert Clusters.of(rows).effects(["hit"], "row") == {"hit": pytest.approx(3.0445, abs=1e-4)}


def test_what_was_met_once_may_be_as_frequent_as_what_was_never_met() -> None:
    """The interval of one to ten hits in one of 100 requests of ten replies ends no lower; likewise of misses."""

    def interval(n_hits: int, base: int) -> Interval:
        counts = {str(place): {"row": 10, "hit": base} for place in range(100)}
        counts["0"]["hit"] += n_hits
        return Share(100 * base + n_hits, 1000, Clusters(counts).effects(["hit"], "row")["hit"]).interval

    never, always = interval(0, 0), interval(0, 10)
    assert never.high == pytest.approx(3.841459 / 103.841459)
    for number in (1, 2, 3, 10):
        assert interval(number, 0).high >= never.high - 1e-12
        assert interval(-number, 10).low <= always.low + 1e-12


def test_a_single_cluster_says_nothing_of_others() -> None:
    """Nor do none at all."""
    assert Clusters.of(ROWS[:2]).effects(["hit"], "row") == {"hit": 1.0}
    assert Clusters().effects(["hit"], "row") == {"hit": 1.0}


def test_clusters_without_any_of_the_whole_do_not_count() -> None:
    """Of the hits, those in `a` and `c`: 3 rows, none of them a miss, in 2 clusters that are worth 9/5 equal ones."""
    assert Clusters.of([*ROWS, ("d", ["row", "hit"])]).effects(["miss"], "hit") == {"miss": pytest.approx(4 / (16 / 6))}


def test_all_of_the_whole_in_one_cluster_is_one_row() -> None:
    """Three refusals of one request among three say what one does."""
    rows = [("a", ["row", "hit", "kind"]), ("a", ["row", "hit"]), ("a", ["row", "hit", "kind"]), ("b", ["row"])]
    assert Clusters.of(rows).effects(["kind", "never"], "hit") == {"kind": 3.0, "never": 3.0}


def test_parts_add_up_to_the_whole_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where not all clusters are kept: those that are have all of their rows."""
    monkeypatch.setattr(clusters, "SAMPLE", 20)
    rows = [(str(place % 97), ["row", "hit"] if place % 5 == 0 else ["row"]) for place in range(500)]
    whole = Clusters.of(rows)
    parts = [Clusters.of(rows[start : start + 60]) for start in range(0, 500, 60)]
    assert sum(parts, Clusters()) == sum(reversed(parts), Clusters()) == whole
    assert (len(whole.counts), whole.is_whole) == (20, False)
    assert whole.sketch is not None
    assert whole.sketch.totals == {"row": 500, "hit": 100}
    # 500 rows on 97 names: five or six each.
    assert {counts["row"] for counts in whole.counts.values()} <= {5, 6}


@pytest.mark.parametrize("sizes", [[3] * 600, [600 // (1 + place) for place in range(600)], [400] + [1] * 900])
def test_a_sketch_knows_the_effect_however_unequal_clusters_are(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int]
) -> None:
    """To some four per cent; a sample of 100 would mostly miss the one cluster that decides it."""
    generator = np.random.default_rng(3)
    rows = [
        (str(place), ["row", "hit"] if generator.random() < rate else ["row"])
        for place, (size, rate) in enumerate(zip(sizes, generator.beta(0.6, 1.4, len(sizes)), strict=True))
        for _ in range(size)
    ]
    exact = Clusters.of(rows).effects(["hit", "never"], "row")
    monkeypatch.setattr(clusters, "SAMPLE", 100)
    found = sum((Clusters.of(rows[start : start + 150]) for start in range(0, len(rows), 150)), Clusters())
    assert not found.is_whole
    assert found.effects(["hit", "never"], "row") == pytest.approx(exact, rel=0.2)


def test_one_large_cluster_beside_many_single_ones_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is in no sample, no reply counts as standing alone then."""
    monkeypatch.setattr(clusters, "SAMPLE", 50)
    singles = [(str(place), ["row"]) for place in range(2000)]
    assert Clusters.of(singles).are_single("row")
    assert Clusters.of(singles).effects(["row"], "row") == {"row": 1.0}
    found = Clusters.of([*singles, *[("template", ["row"])] * 500])
    assert max(one["row"] for one in found.counts.values()) == 1
    assert not found.are_single("row")
    assert found.effects(["hit"], "row")["hit"] > 50


def test_the_number_of_clusters_is_known_or_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact where all are kept; with 400 of 5,000 the standard error is 5 %."""
    rows = [(str(place), ["row"]) for place in range(5000)]
    monkeypatch.setattr(clusters, "SAMPLE", 400)
    assert Clusters.of(rows[:300]).number == 300
    assert Clusters.of(rows).number == pytest.approx(5000, rel=0.2)


def test_it_goes_through_json_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a tally stores it."""
    found = Clusters.of(ROWS)
    assert Clusters.from_json(json.loads(json.dumps(asdict(found)))) == found
    monkeypatch.setattr(clusters, "SAMPLE", 2)
    found = Clusters.of(ROWS)
    assert found.sketch is not None
    assert Clusters.from_json(json.loads(json.dumps(asdict(found)))) == found


def test_a_name_may_hold_what_json_escapes_leave_behind() -> None:
    """A lone surrogate is text too."""
    assert Clusters.of([("\ud800", ["row"])]).number == 1


def _clustered(generator: np.random.Generator, sizes: Sequence[int], share: float = 0.3) -> Clusters:
    """Draw requests of so many replies, each request with its own rate of refusal around the share.

    Rates of parameters a and b make replies of a request correlate by 1 / (a + b + 1).
    """
    rates = generator.beta(2 * share, 2 * (1 - share), len(sizes))
    hits = generator.binomial(sizes, rates)
    return Clusters(
        {
            str(place): {"row": size, "hit": hit}
            for place, (size, hit) in enumerate(zip(sizes, hits.tolist(), strict=True))
        }
    )


@pytest.mark.parametrize(
    "sizes",
    [[100, 100], [100, 100, 100], [50] * 5, list(range(1, 11)) * 15, [400, *[1] * 200]],
    ids=["two requests", "three", "five", "150 of one to ten", "one large and 200 single ones"],
)
def test_the_interval_covers_the_share_of_all_requests_as_often_as_it_says(sizes: list[int]) -> None:
    """About 95 of 100 or more; one that takes replies for independent, far fewer."""
    generator, covered, naive = np.random.default_rng(11), 0, 0
    for _ in range(300):
        found = _clustered(generator, sizes)
        hits = sum(one["hit"] for one in found.counts.values())
        low, high = Share(hits, sum(sizes), found.effects(["hit"], "row")["hit"]).interval
        covered += low <= 0.3 <= high
        low, high = Share(hits, sum(sizes)).interval
        naive += low <= 0.3 <= high
    # The standard error of a coverage of .95 over 300 repeats is .013.
    assert covered / 300 >= 0.91
    assert naive / 300 < 0.8


@pytest.mark.parametrize("sizes", [[50] * 20, [10] * 100], ids=["20 requests", "100"])
def test_the_interval_covers_a_rare_share_as_often_as_it_says(sizes: list[int]) -> None:
    """Of 1 %, where its hits lie in one to three requests; without a floor, in .80 and .77 of them."""
    generator, covered, met = np.random.default_rng(7), 0, 0
    while met < 300:
        found = _clustered(generator, sizes, 0.01)
        hits = sum(one["hit"] for one in found.counts.values())
        if 0 < sum(one["hit"] > 0 for one in found.counts.values()) <= 3:
            low, high = Share(hits, sum(sizes), found.effects(["hit"], "row")["hit"]).interval
            covered, met = covered + (low <= 0.01 <= high), met + 1
    assert covered / met >= 0.91


def test_an_effect_widens_the_interval_as_fewer_rows_would() -> None:
    """40 of 200 at an effect of 4 is 10 of 50, not in its share but in its interval."""
    assert Share(40, 200, 4.0).interval == pytest.approx(Share(10, 50).interval)
    assert Share(200, 200, 4.0).interval.high == 1.0


@pytest.mark.parametrize("effect", [0.5, math.nan])
def test_an_effect_that_would_narrow_it_is_refused(effect: float) -> None:
    """It is a mistake, not a finding."""
    with pytest.raises(ValueError, match="design effect"):
        Share(1, 2, effect)
