"""Each coefficient is what the literature and a second library say it is, with answers missing and with none at all."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from demur.stats.agreement import COEFFICIENTS, Coefficient, agreement, pair_agreement, set_agreement, uncommon
from demur.stats.answers import MISSING, Answers, Codes
from demur.stats.distances import distances, jaccard, masi

if TYPE_CHECKING:
    from demur.stats.distances import SetDistance

_ = MISSING

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", C: four observers, twelve units, missing data. Gwet's
# handbook and his package irrCAC work the same ratings as `cac.raw4raters`.
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]

# Fleiss 1971, table 1: how many of six psychiatrists gave each of five diagnoses to each of thirty patients.
DIAGNOSES = [
    "00060", "03003", "01401", "00006", "03030", "20400", "00402", "20310", "20040", "00006",
    "10050", "11040", "03300", "10050", "02031", "00501", "30012", "51000", "02040", "10203",
    "00006", "01050", "02013", "20040", "10041", "05010", "40002", "02040", "10500", "00006",
]  # fmt: skip


def coded(observers: list[list[int]]) -> Codes:
    """Turn observers by units, from 1, into items by annotators, from 0."""
    ratings = np.array(observers).T
    return np.where(ratings == MISSING, MISSING, ratings - 1)


def measured(codes: Codes, n_classes: int, **options: int) -> dict[str, Coefficient]:
    """Measure with few draws."""
    settings = {"number": 50, "seed": 0, **options}
    return {one.name: one for one in agreement(Answers.of(range(n_classes), codes), **settings)}


def values(codes: Codes, n_classes: int) -> dict[str, float]:
    """Return the figures alone."""
    return {name: one.estimate.value for name, one in measured(codes, n_classes).items()}


def random_codes(seed: int, items: int = 40, annotators: int = 4, n_classes: int = 3) -> Codes:
    """Draw answers that often agree and are sometimes missing."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, n_classes, (items, 1))
    noise = generator.integers(0, n_classes, (items, annotators))
    codes = np.where(generator.random(noise.shape) < 0.6, truth, noise)
    return np.where(generator.random(codes.shape) < 0.25, MISSING, codes)


def library_alpha(codes: Codes, n_classes: int) -> float:
    """Ask the package `krippendorff`."""
    ratings = np.where(codes == MISSING, np.nan, codes.astype(float)).T
    return float(krippendorff.alpha(ratings, level_of_measurement="nominal", value_domain=range(n_classes)))


def test_alpha_is_that_of_krippendorffs_example() -> None:
    """0.743 in the paper, and 113/152 by its formula."""
    # Coincidences off the diagonal: 6/3 of unit 2 (2 3 2 2), 12/3 of unit 6 (1 2 3 4) and 6/3 of unit 8 (1 1 2 1) are 8
    # of 40. The values of two or more: 9, 13, 10, 5 and 3 of each, so that Σ n_c n_v = 40² - (81+169+100+25+9) = 1216.
    expected = 1 - Fraction(8, 40) / Fraction(1216, 40 * 39)
    assert expected == Fraction(113, 152)
    assert values(coded(FOUR_OBSERVERS), 5)["alpha"] == pytest.approx(float(expected), abs=1e-9)


def test_missing_answers_are_read_as_gwet_reads_them() -> None:
    """Gwet gives Fleiss' kappa 0.76117 and AC1 0.77544 for the same ratings; here they are as fractions."""
    # Of eleven units with two ratings, d is 1/2 for (2 3 2 2) and (1 1 2 1), 1 for (1 2 3 4), and 0 for the rest.
    observed = 1 - Fraction(1, 2) * Fraction(2, 11) - Fraction(1, 11)
    # Mean shares over twelve units: of class 1, units 1 and 11 whole, 6 by a quarter, 8 by three quarters; and so on.
    shares = [
        Fraction(1 + 1, 12) + Fraction(1, 48) + Fraction(3, 48),
        Fraction(1 + 1, 12) + Fraction(3, 48) + Fraction(1, 48) + Fraction(1, 48),
        Fraction(1 + 1 + 1, 12) + Fraction(1, 48) + Fraction(1, 48),
        Fraction(1, 12) + Fraction(1, 48),
        Fraction(1, 12),
    ]
    assert sum(shares) == 1
    square = sum(share**2 for share in shares)
    fleiss = (observed - square) / (1 - square)
    chance = (1 - square) / (5 - 1)
    ac1 = (observed - chance) / (1 - chance)
    found = values(coded(FOUR_OBSERVERS), 5)
    assert found["agreement"] == pytest.approx(float(observed), abs=1e-9)
    assert found["fleiss"] == pytest.approx(float(fleiss), abs=1e-9)
    assert found["ac1"] == pytest.approx(float(ac1), abs=1e-9)
    assert (found["fleiss"], found["ac1"]) == pytest.approx((0.76117, 0.77544), abs=5e-6)


def test_fleiss_kappa_is_that_of_fleiss() -> None:
    """0.430 in the paper: mean agreement 5/9, and shares 26, 26, 30, 55, 43 of 180."""
    codes = np.array([[place for place, n in enumerate(row) for _ in range(int(n))] for row in DIAGNOSES])
    shares = [Fraction(n, 180) for n in (26, 26, 30, 55, 43)]
    assert np.bincount(codes.ravel()).tolist() == [26, 26, 30, 55, 43]
    chance = sum(share**2 for share in shares)
    expected = (Fraction(5, 9) - chance) / (1 - chance)
    assert round(float(expected), 3) == 0.430
    assert values(codes, 5)["fleiss"] == pytest.approx(float(expected), abs=1e-9)


def test_two_annotators_agree_as_in_gwets_table() -> None:
    """Two abstractors on pregnancies: kappa 0.7964094, AC1 0.8493305, alpha 0.7972585 in his vignette."""
    table = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]
    codes = np.array([(i, j) for i in range(3) for j in range(3) for _ in range(table[i][j])])
    found = values(codes, 3)
    shares = [Fraction(n, 200) for n in (26, 51, 123)]
    chance = sum(share * (1 - share) for share in shares) / 2
    assert found["ac1"] == pytest.approx(float((Fraction(89, 100) - chance) / (1 - chance)), abs=1e-9)
    chance = Fraction(13 * 13 + 27 * 24 + 60 * 63, 100 * 100)
    assert found["cohen"] == pytest.approx(float((Fraction(89, 100) - chance) / (1 - chance)), abs=1e-9)
    assert (found["cohen"], found["ac1"]) == pytest.approx((0.7964094, 0.8493305), abs=5e-8)


@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_the_library(seed: int) -> None:
    """With answers missing at random."""
    codes = random_codes(seed)
    assert values(codes, 3)["alpha"] == pytest.approx(library_alpha(codes, 3), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_fleiss_kappa_follows_from_alpha_where_nothing_is_missing(seed: int) -> None:
    """1 - alpha = (1 - kappa) (n - 1) / n with n answers in all (Krippendorff 2004): the library's alpha gives it."""
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 3, (30, 4))
    expected = 1 - (1 - library_alpha(codes, 3)) * 120 / 119
    assert values(codes, 3)["fleiss"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_cohens_kappa_is_that_of_scikit_learn(seed: int) -> None:
    """Of each two annotators on what both answered, and their mean over all pairs."""
    codes = random_codes(seed)
    found = pair_agreement(Answers.of(range(3), codes), number=20, seed=0)
    kappas = []
    for pair, (first, second) in zip(found, combinations(range(4), 2), strict=True):
        both = (codes[:, first] != MISSING) & (codes[:, second] != MISSING)
        one, other = codes[both, first], codes[both, second]
        kappas.append(cohen_kappa_score(one, other))
        assert (pair.first, pair.second) == (first, second)
        assert pair.kappa.estimate.value == pytest.approx(kappas[-1], abs=1e-9)
        assert pair.agreement.estimate.value == pytest.approx(float((one == other).mean()), abs=1e-9)
        assert pair.kappa.estimate.n == both.sum()
    assert values(codes, 3)["cohen"] == pytest.approx(float(np.mean(kappas)), abs=1e-9)


@pytest.mark.parametrize("distance", [masi, jaccard])
def test_alpha_of_sets_is_that_of_the_library(distance: SetDistance) -> None:
    """With the same distance between the same sets, and answers missing."""
    sets = [frozenset(one) for one in ("a", "b", "ab", "bc", "abc")]
    codes = random_codes(3, n_classes=5)
    apart = distances(sets, distance)

    def between(one: Any, other: Any, **_options: Any) -> Any:
        return apart[one.astype(int), other.astype(int)]

    ratings = np.where(codes == MISSING, np.nan, codes.astype(float)).T
    level: Any = between  # the library's type names arguments that it passes by place
    expected = krippendorff.alpha(ratings, level_of_measurement=level, value_domain=range(5))
    found = set_agreement(Answers.of(sets, codes), apart, number=20, seed=0)
    assert found[1].estimate.value == pytest.approx(float(expected), abs=1e-9)


def test_mean_similarity_is_one_minus_the_mean_distance() -> None:
    """Two items: {a} and {a, b} lie 1/2 apart by Jaccard, {b} and {b} not at all."""
    sets = [frozenset("a"), frozenset("ab"), frozenset("b")]
    answers = Answers.of(sets, np.array([[0, 1], [2, 2]]))
    similarity, _alpha = set_agreement(answers, distances(sets, jaccard), number=20, seed=0)
    assert similarity.estimate.value == pytest.approx(0.75)


def test_agreement_on_one_class_leaves_kappa_undefined() -> None:
    """Nothing but `none`: all agree, chance alone would too, and only AC1 has something to say."""
    found = measured(np.zeros((8, 3), dtype=np.int64), 2)
    assert (found["agreement"].estimate.value, found["ac1"].estimate.value) == (1.0, 1.0)
    for name in ("cohen", "fleiss", "alpha"):
        assert math.isnan(found[name].estimate.value)
        assert "of one class" in str(found[name].undefined)
    (pair, *_others) = pair_agreement(Answers.of(range(2), np.zeros((8, 3), dtype=np.int64)), number=9, seed=0)
    assert math.isnan(pair.kappa.estimate.value)
    assert "of one class" in str(pair.kappa.undefined)


def test_a_pair_that_met_one_class_has_no_kappa_though_all_together_met_two() -> None:
    """Annotators 0 and 1 share an item of class 0, 1 and 2 one of class 1: no pair has a kappa, alpha is 1."""
    found = measured(np.array([[0, 0, _], [_, 1, 1]]), 2)
    assert found["cohen"].undefined == "no two annotators have a kappa: what both answered is of one class"
    assert found["alpha"].estimate.value == 1.0


@pytest.mark.parametrize("codes", [[[0], [1]], [[0, _], [_, 1]], np.empty((0, 2))], ids=["one", "apart", "nothing"])
def test_without_two_answers_to_an_item_nothing_is_defined(codes: object) -> None:
    """One annotator only, annotators that never meet, and no items at all."""
    found = measured(np.array(codes, dtype=np.int64), 2)
    assert all(math.isnan(one.estimate.value) for one in found.values())
    assert {one.undefined for one in found.values()} == {"no item has two answers"}
    assert {one.estimate.n for one in found.values()} == {0}


def test_a_pair_that_never_met_says_so() -> None:
    """Two annotators of different items."""
    (pair,) = pair_agreement(Answers.of(range(2), np.array([[0, _], [_, 1]])), number=9, seed=0)
    assert pair.agreement.undefined == pair.kappa.undefined == "no item was answered by both"


def test_an_item_of_one_answer_leaves_agreement_and_alpha_alone() -> None:
    """It has nothing to be compared with; Fleiss' kappa and AC1 read the shares of classes off it too."""
    codes = coded(FOUR_OBSERVERS)
    without, whole = values(codes[:-1], 5), values(codes, 5)
    assert (without["agreement"], without["alpha"]) == (whole["agreement"], whole["alpha"])
    assert without["ac1"] != whole["ac1"]
    assert measured(codes, 5)["alpha"].estimate.n == 11


def test_order_and_repetition_do_not_matter() -> None:
    """Items and annotators in any order; of all items twice, agreement, kappa and AC1 stay as they are."""
    codes = random_codes(1)
    shuffled = np.random.default_rng(0).permutation(codes)[:, [2, 0, 3, 1]]
    assert values(shuffled, 3) == pytest.approx(values(codes, 3))
    twice = values(np.concatenate([codes, codes]), 3)
    for name in ("agreement", "cohen", "fleiss", "ac1"):
        assert twice[name] == pytest.approx(values(codes, 3)[name])


def test_intervals_are_quantiles_over_repeated_items() -> None:
    """Each draw is the figure of the items so often repeated: the library says the same of each."""
    codes = random_codes(2)
    answers = Answers.of(range(3), codes)
    draws = answers.resamples(30, 7)
    alphas = [library_alpha(np.repeat(answers.codes, times, axis=0), 3) for times in draws.draws]
    found = dict(zip(COEFFICIENTS, agreement(answers, number=30, seed=7), strict=True))["alpha"].estimate
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(alphas, (0.025, 0.975))), abs=1e-9)
    assert {int(times.sum()) for times in draws.draws} == {len(codes) - int((codes == MISSING).all(axis=1).sum())}


def test_the_interval_of_agreement_is_that_of_a_share() -> None:
    """90 of 100 pairs agree: .9 ± 1.96 √(.9 · .1 / 100) = .841 to .959."""
    codes = np.array([[0, 0]] * 60 + [[1, 1]] * 30 + [[0, 1]] * 10)
    share = measured(codes, 2, number=4000)["agreement"].estimate
    assert (share.value, share.n) == (0.9, 100)
    assert (share.low, share.high) == pytest.approx((0.841, 0.959), abs=0.01)


def test_the_same_seed_gives_the_same_intervals_in_any_order_of_items() -> None:
    """Patterns stand in an order of their own; another seed draws others."""
    codes = random_codes(4)
    assert measured(codes[::-1], 3) == measured(codes, 3)
    assert measured(codes, 3, seed=1) != measured(codes, 3)


def test_where_all_answers_are_equal_there_is_no_interval() -> None:
    """Twenty draws of agreement would be twenty times 1: an interval of no width would claim to be sure."""
    found = measured(np.array([[0, 0]] * 5 + [[1, 1]] * 5), 2)
    assert {one.estimate.value for one in found.values()} == {1.0}
    assert all(math.isnan(one.estimate.low) and math.isnan(one.estimate.high) for one in found.values())


def test_equal_items_are_told_once() -> None:
    """A thousand items of two patterns cost as two; an item without answers is none."""
    answers = Answers.of(range(2), np.array([[0, 1], [1, 1]] * 500 + [[_, _]]))
    assert (len(answers.codes), answers.items, answers.times.tolist()) == (2, 1000, [500, 500])
    assert answers.pattern_of_item.tolist() == [0, 1] * 500 + [MISSING]


def test_items_of_a_cluster_are_drawn_together() -> None:
    """Ten equal answers to each of 60 requests say as much as 60 answers, and not as 600."""
    each = np.where(np.random.default_rng(4).random((60, 1)) < 0.8, [[0, 0]], [[0, 1]])
    widths = []
    for codes, clusters in (
        (each, None),
        (each.repeat(10, axis=0), np.repeat(np.arange(60), 10)),
        (each.repeat(10, axis=0), None),
    ):
        found = dict(
            zip(COEFFICIENTS, agreement(Answers.of(range(2), codes, clusters), number=800, seed=1), strict=True)
        )
        widths.append(found["agreement"].estimate.high - found["agreement"].estimate.low)
    assert widths[1] == pytest.approx(widths[0], rel=0.15)
    assert widths[2] < 0.5 * widths[1]


def test_too_few_clusters_give_no_interval() -> None:
    """However many items they have."""
    codes = np.array([[0, 0], [0, 1]]).repeat(50, axis=0)
    answers = Answers.of(range(2), codes, np.arange(100) % 9)
    assert all(math.isnan(one.estimate.low) for one in agreement(answers, number=20, seed=0))


@pytest.mark.parametrize(("named", "is_given"), [(3, False), (9, False), (10, True)])
def test_beyond_chance_there_is_an_interval_where_the_rarer_class_was_met_enough(named: int, *, is_given: bool) -> None:
    """Of 379 replies, a kind that one of two or both name in so many: raw agreement rests on all, alpha on these."""
    codes = np.zeros((379, 2), np.int64)
    codes[:named] = np.array([[1, 1], [1, 0], [0, 1]])[np.arange(named) % 3]
    found = measured(codes, 2, number=400)
    assert not math.isnan(found["agreement"].estimate.low)
    for name in ("cohen", "fleiss", "alpha", "ac1"):
        assert found[name].estimate.n == 379
        assert math.isnan(found[name].estimate.low) is not is_given
    (pair,) = pair_agreement(Answers.of(range(2), codes), number=400, seed=0)
    assert not math.isnan(pair.agreement.estimate.low)
    assert math.isnan(pair.kappa.estimate.low) is not is_given


def test_the_commonest_answer_is_that_of_the_items_that_count() -> None:
    """Of 5 + 1 + 3 items, class 1 has 12 of 13 answers; of 1 + 3 others, class 2 has six of eight."""
    codes = np.array([[1, _], [0, 1], [1, 1], [2, 2]])
    assert uncommon(codes, np.array([5, 1, 3, 0])).tolist() == [False, True, False, False]
    assert uncommon(codes, np.array([0, 1, 0, 3])).tolist() == [False, True, False, False]
    assert uncommon(codes, np.zeros(4, np.int64)).tolist() == [False] * 4
