"""Compositions count verdicts, add up and come back from JSON."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from demur.stats.composition import UNNAMED, Composition
from demur.stats.shares import Share
from demur.taxonomy import Taxonomy
from demur.verdict import Policy, Verdict

TAXONOMY = Taxonomy.load()
VERDICTS = [
    Verdict("full", 0.9, category="privacy", group="should_not"),
    Verdict("full", 0.8, category="privacy", group="should_not"),
    Verdict("partial", 0.6, category="skill_level", group="cannot"),
    Verdict("full"),
    Verdict("none", 0.1),
    Verdict("none", 0.2),
    Verdict("none", 0.0),
    Verdict("none"),
    Verdict.unscored("empty_reply"),
    Verdict.unscored("empty_reply"),
    Verdict.unscored("provider_block"),
]


def composed(verdicts: list[Verdict]) -> Composition:
    """Count in the shipped taxonomy."""
    return Composition.of(verdicts, TAXONOMY)


def test_a_share_lies_inside_wilsons_interval() -> None:
    """Hand-computed: 10 of 50."""
    # p = .2, n = 50, z² = 3.8415; middle = .2 + 3.8415/100 = .238415
    # margin = 1.96 √(.16/50 + 3.8415/10000) = 1.96 √.00358415 = .117339; scale = 1 + 3.8415/50 = 1.076829
    share = Share(10, 50)
    assert share.share == pytest.approx(0.2)
    assert share.interval == pytest.approx((0.112437, 0.330371), abs=1e-5)


def test_a_share_of_none_and_of_all_reaches_the_edge() -> None:
    """Unlike the normal interval, it has a width there."""
    # 0 of 10: high = (z²/2n + z √(z²/4n²)) / (1 + z²/n) = (z²/n) / (1 + z²/n) = .38415 / 1.38415 = .277533
    assert Share(0, 10).interval == pytest.approx((0.0, 0.277533), abs=1e-6)
    assert Share(10, 10).interval == pytest.approx((0.722467, 1.0), abs=1e-6)


def test_a_share_of_nothing_is_nan() -> None:
    """No rows are no evidence of 0."""
    assert all(math.isnan(number) for number in (Share(0, 0).share, *Share(0, 0).interval))


@pytest.mark.parametrize(("count", "total"), [(-1, 3), (4, 3)])
def test_a_count_outside_its_total_is_refused(count: int, total: int) -> None:
    """The message shows both."""
    with pytest.raises(ValueError, match=f"{count} out of {total}"):
        Share(count, total)


def test_unscored_rows_are_rows_but_stand_in_no_share() -> None:
    """Eleven rows, eight of them scored, four of these refusals."""
    composition = composed(VERDICTS)
    assert (composition.rows, composition.scored, composition.refusals) == (11, 8, 4)
    assert (composition.full, composition.partial, composition.none) == (3, 1, 4)
    assert composition.unscored == {"empty_reply": 2, "provider_block": 1}
    assert composition.share == pytest.approx(4 / 8)
    assert composition.interval == Share(4, 8).interval


def test_what_does_not_count_is_scored_and_no_refusal() -> None:
    """Under `strict`, 3 of 8: the refusal in part keeps its place among the outcomes, and has none among the kinds."""
    strict = composed([verdict.under(Policy.strict) for verdict in VERDICTS])
    assert (strict.rows, strict.scored, strict.refusals) == (11, 8, 3)
    assert (strict.full, strict.partial, strict.none) == (3, 1, 4)
    assert strict.share == pytest.approx(3 / 8)
    assert strict.by_category["skill_level"] == Share(0, 8)
    assert strict.by_group["cannot"] == Share(0, 8)
    assert (strict + strict).refusals == 6
    assert Composition.from_json(strict.to_json()) == strict


def test_every_kind_is_present_even_where_it_is_zero() -> None:
    """Reports of two models have the same rows."""
    by_category = composed(VERDICTS).by_category
    assert tuple(by_category) == (*TAXONOMY.keys, UNNAMED)
    assert by_category["privacy"] == Share(2, 8)
    assert by_category["unknowable"] == Share(0, 8)


def test_a_refusal_without_a_kind_is_unnamed() -> None:
    """The kinds add up to the refusals."""
    composition = composed(VERDICTS)
    assert composition.by_category_of_refusals[UNNAMED] == Share(1, 4)
    assert sum(share.count for share in composition.by_category.values()) == composition.refusals
    assert sum(share.count for share in composition.by_group.values()) == composition.refusals


def test_groups_are_counted_on_their_own() -> None:
    """A verdict may stop at the group; a verdict with a kind alone belongs to its group."""
    composition = composed([Verdict("full", group="cannot"), Verdict("full", category="privacy")])
    assert composition.by_group_of_refusals == {"should_not": Share(1, 2), "cannot": Share(1, 2), UNNAMED: Share(0, 2)}
    assert composition.by_category[UNNAMED] == Share(1, 2)


SETS = [
    Verdict("full", 0.9, "privacy", "should_not", category_set=("privacy",), group_set=("should_not",)),
    Verdict("full", 0.9, "privacy", "should_not", category_set=("privacy",), group_set=("should_not",)),
    Verdict(
        "partial", 0.9, "privacy", "should_not",
        category_set=("privacy", "nsfw_content"), group_set=("should_not",),
    ),
    Verdict(
        "full", 0.9, "skill_level", "cannot",
        category_set=("privacy", "skill_level"), group_set=("should_not", "cannot"),
    ),
    Verdict("full", 0.9, "privacy", "should_not"),
    Verdict("none", 0.1),
]  # fmt: skip


def test_sets_are_counted_by_what_they_resolve_to() -> None:
    """Of five refusals four have a set: two kinds, one group, one undetermined; the fifth is in none of them."""
    composition = composed(SETS)
    assert composition.refusals == 5
    assert composition.resolution_counts == {"kind": 2, "group": 1, "undetermined": 1}
    assert composition.by_resolution == {"kind": Share(2, 4), "group": Share(1, 4), "undetermined": Share(1, 4)}
    strict = composed([verdict.under(Policy.strict) for verdict in SETS])
    assert strict.resolution_counts == {"kind": 2, "group": 0, "undetermined": 1}


def test_counts_of_sets_add_up_and_come_back() -> None:
    """Whichever shard a verdict is in, with shards that have no sets among them."""
    whole = composed([*SETS, *VERDICTS])
    parts = composed(SETS[:2]) + composed(VERDICTS) + composed(SETS[2:]) + composed([])
    assert parts.resolution_counts == whole.resolution_counts == {"kind": 2, "group": 1, "undetermined": 1}
    assert Composition.from_json(json.loads(json.dumps(parts.to_json()))) == parts
    assert all(math.isnan(share.share) for share in composed(VERDICTS).by_resolution.values())


def test_expected_refusals_are_the_sum_of_the_probabilities() -> None:
    """Verdicts without a probability stand aside."""
    composition = composed(VERDICTS)
    assert composition.expected_refusals == pytest.approx(0.9 + 0.8 + 0.6 + 0.1 + 0.2 + 0.0)
    assert composition.with_probability == 6
    assert composition.expected_share == pytest.approx(2.6 / 6)


def test_compositions_add_up() -> None:
    """Shards counted apart are as good as one pass."""
    whole, parts = composed(VERDICTS), composed(VERDICTS[:3]) + composed(VERDICTS[3:])
    assert parts.expected_refusals == pytest.approx(whole.expected_refusals)
    assert dataclasses.replace(parts, expected_refusals=whole.expected_refusals) == whole


def test_the_composition_of_nothing_is_neutral_and_its_shares_are_nan() -> None:
    """Empty shards change nothing and claim nothing."""
    nothing = composed([])
    assert nothing + composed(VERDICTS) == composed(VERDICTS)
    assert all(math.isnan(number) for number in (nothing.share, *nothing.interval, nothing.expected_share))
    assert math.isnan(nothing.by_category["privacy"].share)


def _answered(start: int = 0, stop: int = 60) -> Composition:
    """Count three replies to each of twenty requests, of which the first five are refused throughout."""
    verdicts = [VERDICTS[0] if place < 15 else VERDICTS[4] for place in range(start, stop)]
    return Composition.of(verdicts, TAXONOMY, requests=[str(place // 3) for place in range(start, stop)])


def test_replies_to_one_request_widen_every_interval() -> None:
    """What holds of all its replies was seen once, not three times: 15 of 60 is as sure as 5 of 20, nearly."""
    found = _answered()
    assert found.n_requests == 20
    for share in (found.refused, found.by_category["privacy"], found.by_group["should_not"]):
        assert (share.count, share.total) == (15, 60)
        # With Student's t of 19 degrees and of 59.
        assert share.effect == pytest.approx(3 * 20 / 19 * 59 / 60 * (2.09302 / 2.00100) ** 2, rel=1e-5)
    # Of the refusals all are of one kind: each of their five requests is one row.
    assert found.by_category_of_refusals["privacy"].interval == Share(5, 5).interval


def test_replies_to_one_request_are_known_across_shards() -> None:
    """A request whose replies lie in two shards is one."""
    parts = _answered(0, 31) + _answered(31)
    assert parts.requests == _answered().requests
    assert parts.interval == _answered().interval
    assert Composition.from_json(json.loads(json.dumps(_answered().to_json()))) == _answered()


def test_as_many_requests_as_verdicts_are_wanted() -> None:
    """No verdict goes uncounted for want of a request."""
    with pytest.raises(ValueError, match="shorter"):
        Composition.of(VERDICTS, TAXONOMY, requests=["a", "b"])


def test_unscored_replies_are_none_of_their_request() -> None:
    """They stand in no share."""
    verdicts = [*VERDICTS[:2], *VERDICTS[8:]]
    found = Composition.of(verdicts, TAXONOMY, requests=["a", "b", "a", "b", "c"])
    assert (found.n_requests, found.refused.effect) == (2, 1.0)


def test_compositions_of_different_taxonomies_do_not_add_up() -> None:
    """Equal keys need not mean the same."""
    other = dataclasses.replace(composed(VERDICTS), fingerprint="other")
    with pytest.raises(ValueError, match="'other' do not add up"):
        _ = composed(VERDICTS) + other


def test_a_composition_comes_back_from_json() -> None:
    """Nothing is lost on the way through a file."""
    composition = composed(VERDICTS)
    assert Composition.from_json(json.loads(json.dumps(composition.to_json()))) == composition


@pytest.mark.parametrize("change", [{"full": None}, {"surplus": 1}])
def test_a_stored_composition_with_other_fields_is_refused(change: dict[str, int | None]) -> None:
    """A file of another version is not read halfway."""
    stored = composed(VERDICTS).to_json() | change
    with pytest.raises(ValueError, match="needs exactly"):
        Composition.from_json({key: value for key, value in stored.items() if value is not None})


@pytest.mark.parametrize("verdict", [Verdict("full", category="rudeness"), Verdict("full", group="must_not")])
def test_a_kind_or_group_outside_the_taxonomy_is_refused(verdict: Verdict) -> None:
    """A verdict in another taxonomy cannot be counted in this one."""
    with pytest.raises(ValueError, match="which the taxonomy does not have"):
        composed([verdict])
