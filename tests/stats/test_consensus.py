"""What annotators say together, how each stands to the rest, and what Dawid and Skene make of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demur.stats.answers import MISSING, Answers, Codes
from demur.stats.consensus import (
    against_rest,
    dawid_skene,
    majority,
    mean_standing,
    why_no_dawid_skene,
)

_ = MISSING


def answered(*items: list[int], n_classes: int = 2) -> Answers:
    """Gather answers, one list an item."""
    return Answers.of(range(n_classes), np.array(items))


def noisy(seed: int, reliability: tuple[float, ...], items: int = 300, n_classes: int = 3) -> tuple[Codes, Codes]:
    """Draw true classes, and annotators that say them so often, any class else, and sometimes nothing."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, n_classes, (items, 1))
    shape = items, len(reliability)
    codes = np.where(generator.random(shape) < np.array(reliability), truth, generator.integers(0, n_classes, shape))
    return truth[:, 0], np.where(generator.random(shape) < 0.2, MISSING, codes)


def test_a_majority_is_more_than_half() -> None:
    """2 of 3, and 1 of 1; neither 2 of 4, nor the most frequent of 2 + 1 + 1, nor nothing."""
    counts = np.array([[2, 1, 0], [1, 0, 0], [2, 2, 0], [2, 1, 1], [0, 0, 0]], dtype=float)
    assert majority(counts).tolist() == [0, 0, MISSING, MISSING, MISSING]


def test_an_annotator_stands_against_the_majority_of_the_rest() -> None:
    """Annotator 0 of four: two replies as the rest, one against it, one tie, one alone, one not answered."""
    answers = answered([0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, _], [0, 0, 1, _], [1, _, _, _], [_, 1, 0, 1])
    standing = against_rest(answers, range(4), number=20, seed=0)[0]
    assert (standing.agreement.estimate.n, standing.without_majority, standing.alone) == (3, 1, 1)
    assert standing.agreement.estimate.value == pytest.approx(2 / 3)
    # It says 0 1 0, the rest 0 1 1: p_o = 2/3, p_e = 2/3 · 1/3 + 1/3 · 2/3 = 4/9, kappa = (6/9 - 4/9) / (5/9)
    assert standing.kappa.estimate.value == pytest.approx(2 / 5)


def test_an_annotator_out_of_the_panel_meets_all_of_it() -> None:
    """Annotator 2 is no member: it meets both members, who meet each other."""
    answers = answered([0, 0, 1], [1, 1, 1], [0, 1, 1])
    member, _other, stranger = against_rest(answers, [0, 1], number=20, seed=0)
    assert member.agreement.estimate.value == pytest.approx(2 / 3)
    assert member.agreement.estimate.n == 3
    assert (stranger.agreement.estimate.value, stranger.agreement.estimate.n) == (0.5, 2)
    assert stranger.without_majority == 1


def test_an_annotator_without_a_rest_stands_nowhere() -> None:
    """One annotator only: a figure would be made of nothing."""
    (standing,) = against_rest(answered([0], [1]), [0], number=20, seed=0)
    assert math.isnan(standing.agreement.estimate.value)
    assert "majority of the rest" in str(standing.agreement.undefined)
    assert standing.alone == 2
    assert math.isnan(mean_standing(answered([0], [1]), [0], number=20, seed=0).estimate.value)


def test_the_ceiling_is_the_mean_of_the_members() -> None:
    """Its interval holds it, and rests on the items that any of them was compared on."""
    _truth, codes = noisy(0, (0.9, 0.7, 0.6))
    answers = Answers.of(range(3), codes)
    standings = against_rest(answers, range(3), number=200, seed=0)
    mean = mean_standing(answers, range(3), number=200, seed=0).estimate
    assert mean.value == pytest.approx(np.mean([one.agreement.estimate.value for one in standings]))
    assert mean.low < mean.value < mean.high
    assert mean.n <= answers.items


@pytest.mark.filterwarnings("ignore")  # crowd-kit calls pandas in ways that pandas gives up
def test_dawid_and_skene_are_those_of_crowd_kit() -> None:
    """Shares, errors and posteriors, after equally many iterations."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    _truth, codes = noisy(0, (0.9, 0.8, 0.7, 0.4, 0.6), items=120)
    answers = Answers.of(range(3), codes)
    found = dawid_skene(answers, iterations=15)
    said = [(item, who, codes[item, who]) for item, who in np.argwhere(codes != MISSING)]
    theirs = DawidSkene(n_iter=15, tol=-1).fit(pd.DataFrame(said, columns=["task", "worker", "label"]))
    assert theirs.priors_ is not None
    assert theirs.errors_ is not None
    assert theirs.probas_ is not None
    assert found.shares == pytest.approx(theirs.priors_.sort_index().to_numpy(), abs=1e-6)
    errors = theirs.errors_.sort_index()[[0, 1, 2]].to_numpy().reshape(5, 3, 3)  # worker, answer, truth
    assert found.errors == pytest.approx(errors.transpose(0, 2, 1), abs=1e-6)
    posteriors = theirs.probas_.sort_index()[[0, 1, 2]]
    ours = found.posterior[answers.pattern_of_item[posteriors.index.to_numpy()]]
    assert ours == pytest.approx(posteriors.to_numpy(), abs=1e-6)


def test_dawid_and_skene_find_who_is_reliable() -> None:
    """Of simulated annotators, the expected share of right answers is near the true one, and truth is found."""
    truth, codes = noisy(5, (0.95, 0.85, 0.75, 0.3, 0.8, 0.9), items=2000)
    answers = Answers.of(range(3), codes)
    found = dawid_skene(answers)
    assert found.is_converged
    for who in range(codes.shape[1]):
        answered_by = codes[:, who] != MISSING
        right = float((codes[answered_by, who] == truth[answered_by]).mean())
        assert found.reliability[who] == pytest.approx(right, abs=0.03)
    estimated = found.posterior[answers.pattern_of_item].argmax(axis=1)
    of_votes = answers.counts[answers.pattern_of_item].argmax(axis=1)
    assert (estimated == truth).mean() > (of_votes == truth).mean()


def test_an_annotator_that_said_nothing_has_no_reliability() -> None:
    """A column without answers is nan, and disturbs nobody."""
    _truth, codes = noisy(1, (0.9, 0.8, 0.9))
    silent = np.concatenate([codes, np.full((len(codes), 1), MISSING)], axis=1)
    found = dawid_skene(Answers.of(range(3), silent))
    assert math.isnan(found.reliability[3])
    assert found.reliability[:3] == pytest.approx(dawid_skene(Answers.of(range(3), codes)).reliability)


def test_of_a_class_that_an_annotator_never_met_nothing_is_said() -> None:
    """Annotator 3 answered only where 0 is true, and class 2 never occurs: both rows would be invented."""
    items = [[0, 0, 0, 0]] * 30 + [[1, 1, 1, _]] * 28 + [[0, 0, 1, 0], [1, 1, 0, _]]
    found = dawid_skene(answered(*items, n_classes=3))
    hits = np.diagonal(found.errors, axis1=1, axis2=2)
    assert np.isnan(hits).tolist() == [[False, False, True]] * 3 + [[False, True, True]]
    assert found.errors[3, 0] == pytest.approx([1, 0, 0], abs=1e-6)
    assert np.isnan(found.errors[3, 1]).all()
    assert hits[2, :2] == pytest.approx([30 / 31, 28 / 29], abs=1e-3)
    assert not np.isnan(found.reliability).any()


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([[0, 1], [1, 1]], "no item has three answers"),
        ([[0, 0, _], [_, 1, 0]], "no item has three answers"),
        ([[1, 1, 1], [1, 1, 1]], "one class"),
        ([[_, _, _]], "no item has three answers"),
        ([[0, 0, 0], [0, 1, 1]], None),
    ],
)
def test_it_is_said_where_truth_and_error_cannot_be_told_apart(items: list[list[int]], expected: str | None) -> None:
    """Of two that differ, either may be wrong."""
    why = why_no_dawid_skene(answered(*items))
    assert why is None if expected is None else expected in str(why)


def test_a_kappa_with_the_rest_has_an_interval_where_its_rarer_class_was_met_enough() -> None:
    """Of a hundred replies, nine or ten that anybody calls 1, two of which the annotator misses."""
    for named, is_given in ((9, False), (10, True)):
        items = [[1, 1, 1] if place < named else [0, 0, 0] for place in range(100)]
        items[0][0] = items[1][0] = 0
        standing = against_rest(answered(*items), range(3), number=400, seed=0)[0]
        assert not math.isnan(standing.agreement.estimate.low)
        assert math.isnan(standing.kappa.estimate.low) is not is_given
