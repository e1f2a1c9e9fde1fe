"""Figures are what they say, and their intervals know which rows belong together."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, f1_score, roc_auc_score

from demur.stats.composition import UNNAMED
from demur.stats.metrics import Confusion, GateMetrics, HeadMetrics
from demur.stats.prevalence import OperatingPoint
from demur.stats.resampling import LEAST_CLUSTERS, Estimate, Flags, Floats, Resamples
from demur.stats.shares import Share
from demur.taxonomy import Taxonomy

TAXONOMY = Taxonomy.load()


def resamples(clusters: list[int], number: int = 200) -> Resamples:
    """Draw from a fixed seed."""
    return Resamples.of(clusters, number=number, generator=np.random.default_rng(3))


def gate(truth: list[bool], called: list[bool], probability: list[float]) -> GateMetrics:
    """Measure rows that each stand alone."""
    arrays = np.array(truth, dtype=bool), np.array(called, dtype=bool), np.array(probability, dtype=float)
    return GateMetrics.of(*arrays, resamples(list(range(len(truth)))))


def head(truth: list[str], called: list[str]) -> HeadMetrics:
    """Measure kinds whose rows each stand alone; a name with a bar lists what else is allowed."""
    groups = [UNNAMED if kind == UNNAMED else TAXONOMY.group_of(kind) for kind in called]
    accepted = [kinds.split("|") for kinds in truth]
    return HeadMetrics.of(accepted, list(zip(called, groups, strict=True)), TAXONOMY, resamples([*range(len(truth))]))


def sample(n: int) -> tuple[Flags, Flags, Floats]:
    """Draw a truth with a labeler that is often right; probabilities are rounded, so that there are ties."""
    generator = np.random.default_rng(11)
    truth = generator.random(n) < 0.4
    probability = np.round(0.3 * truth + 0.7 * generator.random(n), 2)
    return truth, probability > 0.5, probability


def test_the_gate_counts_what_it_gets_right_and_wrong() -> None:
    """Five rows: two hits, one miss, one false alarm, one pass."""
    truth, called = [True, True, True, False, False], [True, True, False, True, False]
    metrics = gate(truth, called, [0.9, 0.8, 0.4, 0.6, 0.1])
    assert metrics.counts == OperatingPoint(2, 1, 1, 1)
    assert metrics.accuracy.value == pytest.approx(3 / 5)
    assert metrics.precision.value == pytest.approx(2 / 3)
    assert metrics.recall.value == pytest.approx(2 / 3)
    assert metrics.f1.value == pytest.approx(4 / 6)  # 2 TP / (2 TP + FP + FN) = 4 / (4 + 1 + 1)


def test_auroc_counts_the_pairs_in_order() -> None:
    """Of six pairs of a refusal and another reply, five are in order."""
    # refusals .9 .8 .4, others .6 .1: only .4 < .6 is out of order
    assert gate([True] * 3 + [False] * 2, [True] * 5, [0.9, 0.8, 0.4, 0.6, 0.1]).auroc.value == pytest.approx(5 / 6)


def test_ties_count_half_in_auroc() -> None:
    """A constant probability tells nothing apart."""
    assert gate([True, False, True, False], [True] * 4, [0.5] * 4).auroc.value == 0.5


def test_brier_is_the_mean_squared_error() -> None:
    """(.1² + .2² + .6² + .6² + .1²) / 5 = .78 / 5 = .156."""
    metrics = gate([True] * 3 + [False] * 2, [True] * 5, [0.9, 0.8, 0.4, 0.6, 0.1])
    assert metrics.brier.value == pytest.approx(0.156)


def test_the_calibration_error_weighs_the_gap_of_each_bin() -> None:
    """Two bins are in use: [.4, .467) with three rows, and the last one with a single row at 1."""
    # bin 6: mean probability .4, refusals 1/3, gap .066667, weight 3/4; bin 14: 1 against 0, gap 1, weight 1/4
    metrics = gate([True, False, False, False], [True] * 4, [0.4, 0.4, 0.4, 1.0])
    assert metrics.calibration_error.value == pytest.approx(0.75 * (0.4 - 1 / 3) + 0.25)


def test_gaps_of_one_bin_cancel() -> None:
    """A bin is judged as a whole: .47 and .53 are .5 on average, and one of two refuses."""
    assert gate([True, False], [True] * 2, [0.47, 0.53]).calibration_error.value == pytest.approx(0.0)


def test_noise_alone_gives_a_calibration_error_that_falls_with_the_rows() -> None:
    """One bin of n rows at one half: E|K - n/2| / n with K binomial is .25 for n = 2, and 0.0252 for n = 250."""
    few = gate([True, False], [True] * 2, [0.5, 0.5]).calibration_noise
    assert few.value == pytest.approx(0.25, abs=0.02)  # K is 0, 1, 2 with weights 1/4, 1/2, 1/4: .5 * .5
    assert (few.low, few.high, few.n) == (0.0, 0.5, 2)
    many = gate([True, False] * 125, [True] * 250, [0.5] * 250).calibration_noise
    assert many.value == pytest.approx(math.sqrt(2 / (math.pi * 250)) / 2, abs=0.002)  # mean of a folded normal


def test_probabilities_without_doubt_leave_no_noise() -> None:
    """Where nothing is left to chance, every calibration error is a fault."""
    assert gate([True, False], [True, False], [1.0, 0.0]).calibration_noise.value == 0.0


def test_a_calibrated_gate_lies_within_its_noise_and_a_bold_one_does_not() -> None:
    """Truths drawn from the probabilities, and the same truths with probabilities driven to the ends."""
    generator = np.random.default_rng(5)
    probability = generator.random(2000)
    truth = generator.random(2000) < probability
    fair = gate(list(truth), [True] * 2000, list(probability))
    assert fair.calibration_noise.low <= fair.calibration_error.value <= fair.calibration_noise.high
    bold = gate(list(truth), [True] * 2000, list(np.round(probability)))
    assert bold.calibration_error.value > bold.calibration_noise.high


def test_the_noise_knows_that_rows_of_a_request_share_their_chance() -> None:
    """60 requests of 5 rows, calibrated, with one chance a request: above the noise as rarely as is said of it."""
    generator, requests = np.random.default_rng(2), np.repeat(np.arange(60), 5)
    above = {"together": 0, "alone": 0}
    for _ in range(60):
        probability = np.repeat(generator.beta(0.5, 0.5, 60), 5)
        truth = np.repeat(generator.random(60), 5) < probability
        for name, clusters in (("together", requests.tolist()), ("alone", list(range(300)))):
            found = GateMetrics.of(truth, probability > 0.5, probability, resamples(clusters, 2))
            above[name] += found.calibration_error.value > found.calibration_noise.high
    assert above["together"] <= 6
    assert above["alone"] >= 50


def test_rows_of_a_request_that_depend_on_nothing_leave_the_noise_as_it_is() -> None:
    """To share a request is not to share a chance."""
    generator = np.random.default_rng(4)
    probability = generator.random(500)
    truth = generator.random(500) < probability
    together, alone = (
        GateMetrics.of(truth, truth, probability, resamples(clusters, 2)).calibration_noise
        for clusters in ([row // 5 for row in range(500)], list(range(500)))
    )
    assert together.high == pytest.approx(alone.high, rel=0.15)
    assert together.value == pytest.approx(alone.value, rel=0.15)


def test_the_noise_is_drawn_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows that stand alone, it does not show."""
    truth, called, probability = sample(60)
    whole = gate(list(truth), list(called), list(probability)).calibration_noise
    monkeypatch.setattr("demur.stats.resampling._CELLS_AT_ONCE", 500)
    assert gate(list(truth), list(called), list(probability)).calibration_noise == whole


def test_the_gate_agrees_with_scikit_learn() -> None:
    """One weighted formula serves figure and resamples; scikit-learn is its oracle."""
    truth, called, probability = sample(500)
    metrics = GateMetrics.of(truth, called, probability, resamples(list(range(500))))
    assert metrics.f1.value == pytest.approx(f1_score(truth, called))
    assert metrics.auroc.value == pytest.approx(roc_auc_score(truth, probability))
    assert metrics.brier.value == pytest.approx(brier_score_loss(truth, probability))


def test_a_resample_is_the_figure_with_rows_repeated() -> None:
    """Weights are repetitions: each drawn AUROC equals scikit-learn's on the rows so repeated."""
    truth, called, probability = sample(60)
    draws = resamples([row // 3 for row in range(60)], number=5)
    metrics = GateMetrics.of(truth, called, probability, draws)
    expected = []
    for draw in draws.draws:
        weights = draw[draws.cluster_of_row]
        expected.append(roc_auc_score(np.repeat(truth, weights), np.repeat(probability, weights)))
    value = roc_auc_score(truth, probability)
    margin = 1.959964 * np.std(expected) / (value * (1 - value))
    assert (metrics.auroc.low, metrics.auroc.high) == pytest.approx(
        tuple(expit(logit(value) + np.array([-margin, margin])))
    )


def test_the_interval_of_a_high_auroc_is_not_short_below() -> None:
    """12 refusals and 100 others, by two normal curves: percentiles hold an AUROC of .97 in four of five cases."""
    generator, truth, held = np.random.default_rng(1), np.arange(112) < 12, 0
    for _ in range(200):
        probability = norm.cdf(generator.normal(size=112) + truth * norm.ppf(0.97) * math.sqrt(2))
        draws = Resamples.of(range(112), number=200, generator=generator)
        auroc = GateMetrics.of(truth, truth, probability, draws).auroc
        held += auroc.value == 1 or auroc.low <= 0.97 <= auroc.high
    assert held / 200 > 0.9


@pytest.mark.parametrize("sign", [1, -1])
def test_an_auroc_without_an_error_has_no_interval(sign: int) -> None:
    """20 of 20 above all others, or below: that no pair in disorder was met does not make it certain."""
    probability = [0.5 + sign * 0.01 * (20 - row) / 2 for row in range(41) if row != 20]
    auroc = gate([True] * 20 + [False] * 20, [True] * 40, probability).auroc
    assert auroc.value == (1.0 if sign > 0 else 0.0)
    assert (math.isnan(auroc.low), math.isnan(auroc.high)) == (True, True)


@pytest.mark.parametrize(("refusals", "others", "is_given"), [(9, 91, False), (91, 9, False), (10, 90, True)])
def test_auroc_has_an_interval_where_both_sides_are_of_enough_clusters(
    refusals: int, others: int, *, is_given: bool
) -> None:
    """Pairs of nine refusals, however many other replies they meet, show nine refusals."""
    probability = np.random.default_rng(5).random(refusals + others).round(3)
    auroc = gate([True] * refusals + [False] * others, [True] * 100, probability.tolist()).auroc
    assert auroc.n == 100
    assert (math.isnan(auroc.low), math.isnan(auroc.high)) == (not is_given, not is_given)


def test_rows_without_a_probability_stand_out_of_its_figures_alone() -> None:
    """A judge that gives no probability still has an accuracy."""
    metrics = gate([True, False, True], [True, False, False], [0.9, 0.1, math.nan])
    assert (metrics.accuracy.n, metrics.auroc.n, metrics.brier.n, metrics.calibration_noise.n) == (3, 2, 2, 2)
    assert metrics.auroc.value == 1.0
    nothing = gate([True, False], [True, False], [math.nan, math.nan])
    assert nothing.accuracy.value == 1.0
    assert math.isnan(nothing.auroc.value)
    assert math.isnan(nothing.calibration_error.value)


def test_figures_over_nothing_are_nan() -> None:
    """Nothing called a refusal has no precision; no rows have no figure at all."""
    metrics = gate([True, False], [False, False], [0.1, 0.1])
    assert math.isnan(metrics.precision.value)
    assert metrics.precision.n == 0
    empty = gate([], [], [])
    assert all(math.isnan(figure.value) for figure in (empty.accuracy, empty.f1, empty.auroc, empty.brier))
    assert math.isnan(head([], []).macro_f1.value)


def test_rows_of_one_cluster_come_and_go_together() -> None:
    """Copies of a row are no new evidence: the interval does not narrow."""
    truth, called, probability = sample(80)
    alone = GateMetrics.of(truth, called, probability, resamples(list(range(80)), 1000)).accuracy
    ten = np.repeat(np.arange(80), 10)
    together = GateMetrics.of(truth[ten], called[ten], probability[ten], resamples(ten.tolist(), 1000)).accuracy
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


def test_the_interval_of_a_share_is_about_the_binomial_one() -> None:
    """200 independent rows, 140 right: .7 ± 1.96 √(.21 / 200) = .7 ± .0635."""
    flags = np.array([True] * 140 + [False] * 60)
    estimate = resamples(list(range(200)), 4000).ratio(flags)
    assert estimate.value == pytest.approx(0.7)
    assert (estimate.low, estimate.high) == pytest.approx((0.6365, 0.7635), abs=0.01)


@pytest.mark.parametrize(("clusters", "is_given"), [(1, False), (2, False), (9, False), (10, True), (50, True)])
def test_few_clusters_have_no_interval(clusters: int, is_given: bool) -> None:
    """One request says nothing of how figures vary over requests, and a few of them too little."""
    flags = np.array([True, False, True] * clusters)
    flags[:3] = False  # or else all clusters are alike
    found = resamples(np.repeat(np.arange(clusters), 3).tolist()).ratio(flags)
    assert found.value == pytest.approx(2 / 3 * (clusters - 1) / clusters)
    assert (math.isnan(found.low), math.isnan(found.high)) == (not is_given, not is_given)


def test_the_clusters_that_a_figure_rests_on_have_to_be_enough() -> None:
    """A hundred requests, 27 rows that refuse in nine or in ten of them: recall rests on these alone."""
    clusters = np.arange(100).tolist() + [0, 1, 2, 3, 4, 5, 6, 7, 8] * 2
    found = np.arange(118) % 2 == 0
    for refused, is_given in ((9, False), (10, True)):
        recall = resamples(clusters).ratio(found & (np.array(clusters) < refused), np.array(clusters) < refused)
        assert math.isnan(recall.low) is not is_given


def test_intervals_from_the_least_clusters_on_hold_most_true_shares_and_from_fewer_do_not() -> None:
    """Requests of 100 replies, with shares of mean .7: ten requests hold it in more than .85 of cases, five do not."""
    generator = np.random.default_rng(0)
    held = {5: 0, LEAST_CLUSTERS: 0}
    for k in held:
        for _ in range(400):
            counts = generator.binomial(100, generator.beta(1.4, 0.6, k)) / 100
            drawn = generator.multinomial(k, np.full(k, 1 / k), 300) @ counts / k
            low, high = np.quantile(drawn, (0.025, 0.975))
            held[k] += low <= 0.7 <= high
    assert held[LEAST_CLUSTERS] / 400 > 0.85 > held[5] / 400


def test_a_figure_that_no_resample_changes_has_no_interval() -> None:
    """Twelve of twelve right: that no error was met does not make it certain that there is none."""
    estimate = resamples([*range(12)]).ratio(np.array([True] * 12))
    assert (estimate.value, estimate.n) == (1.0, 12)
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


def test_a_figure_that_few_resamples_change_has_no_interval() -> None:
    """A row drawn more than four times is rare (1 in 270): both ends would be 0, as if that were certain."""
    draws = resamples([*range(40)], 2000)

    def figure(weights: Floats) -> Floats:
        return np.maximum(weights[:, 0] - 4, 0.0)

    drawn = figure(draws.draws.astype(np.float64))
    assert drawn.max() > 0
    assert np.quantile(drawn, 0.975) == 0
    estimate = draws.estimate(figure)
    assert estimate.value == 0.0
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


def test_an_interval_is_not_made_of_rounding() -> None:
    """All gaps are .1: sums of them in other orders differ in the sixteenth digit, and in nothing else."""
    metrics = gate([True] * 30, [True] * 30, [0.9] * 30)
    assert metrics.calibration_error.value == pytest.approx(0.1)
    assert math.isnan(metrics.calibration_error.low)


def test_draws_in_slices_are_those_of_one_piece_and_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes each, and the same however they are cut."""
    whole = resamples([*range(50)]).draws
    assert whole.dtype == np.uint16
    assert np.array_equal(whole, np.random.default_rng(3).multinomial(50, [1 / 50] * 50, size=200))
    monkeypatch.setattr("demur.stats.resampling._CELLS_AT_ONCE", 120)
    assert np.array_equal(resamples([*range(50)]).draws, whole)


def test_rows_that_stand_many_times_are_drawn_in_numbers_that_hold_them() -> None:
    """Of 100,000 rows of two sorts, more than 65,535 may be of one."""
    draws = Resamples.of_counts(np.array([90_000, 10_000]), number=20, generator=np.random.default_rng(0)).draws
    assert (draws.sum(1) == 100_000).all()
    assert draws[:, 0].min() > 65_535


def test_the_same_seed_gives_the_same_interval_however_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by parts of the draws; the parts do not show."""
    flags = np.array([True] * 30 + [False] * 20)
    whole = resamples(list(range(50))).ratio(flags)
    monkeypatch.setattr("demur.stats.resampling._CELLS_AT_ONCE", 120)
    assert resamples(list(range(50))).ratio(flags) == whole


def test_the_head_scores_each_kind() -> None:
    """Privacy is called three times and true three times, twice both."""
    truth = ["privacy", "privacy", "privacy", "skill_level", "unknowable"]
    called = ["privacy", "privacy", "skill_level", "skill_level", "privacy"]
    metrics = head(truth, called)
    privacy = next(kind for kind in metrics.kinds if kind.kind == "privacy")
    assert (privacy.precision, privacy.recall, privacy.support) == (Share(2, 3), Share(2, 3), 3)
    assert privacy.f1 == pytest.approx(4 / 6)
    assert metrics.accuracy.value == pytest.approx(3 / 5)
    # F1: privacy 2·2/6 = .6667, skill_level 2·1/3 = .6667, unknowable 0
    assert metrics.macro_f1.value == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert math.isnan(next(kind for kind in metrics.kinds if kind.kind == "nsfw_content").f1)


def test_macro_f1_counts_a_kind_that_is_called_though_never_true() -> None:
    """It is a mistake of its own; the variant over kinds in truth forgives it."""
    metrics = head(["privacy", "privacy"], ["privacy", "skill_level"])
    # privacy 2·1/3 = .6667; skill_level 0
    assert metrics.macro_f1.value == pytest.approx(1 / 3)
    assert metrics.macro_f1_in_truth.value == pytest.approx(2 / 3)


def test_macro_f1_agrees_with_scikit_learn() -> None:
    """Over the kinds in truth or verdict, as scikit-learn has it."""
    generator = np.random.default_rng(5)
    truth = [TAXONOMY.keys[place] for place in generator.integers(0, 12, 300)]
    called = [kind if generator.random() < 0.6 else TAXONOMY.keys[generator.integers(0, 16)] for kind in truth]
    assert head(truth, called).macro_f1.value == pytest.approx(f1_score(truth, called, average="macro"))


@pytest.mark.parametrize(("n_requests", "is_given"), [(1, False), (2, True)])
def test_a_kind_has_no_interval_where_all_refusals_are_to_one_request(n_requests: int, *, is_given: bool) -> None:
    """Forty replies to one request, 38 named rightly: they say nothing of another one."""
    called = [("privacy", TAXONOMY.group_of("privacy"))] * 38 + [(UNNAMED, UNNAMED)] * 2
    metrics = HeadMetrics.of([["privacy"]] * 40, called, TAXONOMY, resamples([row % n_requests for row in range(40)]))
    recall = next(kind.recall for kind in metrics.kinds if kind.kind == "privacy")
    assert recall.share == 38 / 40
    assert math.isnan(recall.interval.low) is not is_given


def test_a_wrong_kind_of_the_right_group_is_half_a_success() -> None:
    """One wrong kind of the group, one of the other group, one unnamed, one right."""
    metrics = head(["privacy"] * 4, ["nsfw_content", "skill_level", UNNAMED, "privacy"])
    assert metrics.accuracy.value == pytest.approx(1 / 4)
    assert metrics.group_accuracy.value == pytest.approx(2 / 4)


def test_lenient_accuracy_takes_any_reason_that_the_reply_gives() -> None:
    """The main kind is the first one."""
    metrics = head(["privacy|nsfw_content", "privacy"], ["nsfw_content", "nsfw_content"])
    assert (metrics.accuracy.value, metrics.lenient_accuracy.value) == (0.0, 0.5)


def test_confusions_stand_most_frequent_first_and_without_the_right_ones() -> None:
    """An unnamed kind is a confusion, too."""
    metrics = head(["privacy"] * 4, ["skill_level", "skill_level", UNNAMED, "privacy"])
    assert metrics.confusions == (Confusion("privacy", "skill_level", 2), Confusion("privacy", UNNAMED, 1))


def test_an_estimate_is_four_numbers() -> None:
    """Value, both ends, and the rows behind them."""
    assert astuple(Estimate(0.5, 0.4, 0.6, 10)) == (0.5, 0.4, 0.6, 10)


def test_the_interval_of_a_calibration_error_knows_that_noise_adds_to_it() -> None:
    """Of calibrated probabilities it reaches down to 0, and it holds the error wherever it lies."""
    generator, covers, holds, reaches = np.random.default_rng(5), 0, 0, 0
    # By bins of a fifteenth, the mean of |p^1.5 - p| for p even between 0 and 1: ∫ p - p^1.5 = 1/2 - 2/5.
    for _ in range(60):
        probability = generator.random(200)
        resamples = Resamples.of(range(200), number=200, generator=generator)
        for power, true in ((1.0, 0.0), (1.5, 0.1)):
            truth = generator.random(200) < probability**power
            error = GateMetrics.of(truth, probability >= 0.5, probability, resamples).calibration_error
            holds += error.low <= error.value <= error.high
            covers += error.low <= true <= error.high
            reaches += power == 1.0 and error.low == 0.0
    assert holds == 120
    # Plain percentiles cover 0 never, and .1 in half of the cases.
    assert covers >= 104
    assert reaches >= 54
