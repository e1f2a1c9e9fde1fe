"""Hold the first look to what it may settle: nothing that may refuse, and only where that saves reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from pydantic import ValidationError

from demur.model.first_look import FirstLook, fit_first_look, judged_in_looks
from demur.model.runtime import Probabilities
from demur.model.runtime.rechecking import EnginePair
from demur.verdict import Thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRST = FirstLook(64, 0.1)
ANSWER, REFUSAL = 7, 9


class Reader:
    """Say that a text refuses where a certain token stands in it, and remember how much was read."""

    name = "reader"
    n_categories = 2
    n_streams = 1
    batch_tokens = 2_048

    def __init__(self) -> None:
        """Begin with nothing read."""
        self.n_read = 0

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Find the token in each row."""
        self.n_read += int(attention_mask.sum())
        refusal = np.where((input_ids == REFUSAL).any(1), 0.9, 0.05)
        return Probabilities(refusal, refusal / 2, np.stack([refusal, 1 - refusal], axis=1))


def test_only_clear_answers_are_settled() -> None:
    """An answer with no first look, one with, a refusal that shows at once, and one that comes late."""
    early = [ANSWER] * 10 + [REFUSAL] + [ANSWER] * 189
    tokens = [[ANSWER] * 127, [ANSWER] * 128, early, [ANSWER] * 199 + [REFUSAL]]
    shortened = {place: tokens[place][:64] for place in (1, 2, 3)}
    engine = Reader()
    found = judged_in_looks(tokens, shortened, engine, FIRST)
    assert found.refusal.tolist() == [0.05, 0.05, 0.9, 0.05]  # what comes late is what a first look can miss
    assert found.partial.tolist() == [0.025, 0.025, 0.45, 0.025]
    assert found.kinds[:, 0].tolist() == found.refusal.tolist()
    assert engine.n_read == 127 + 3 * 64 + 200  # the one without, three first looks, and the early refusal in full


def test_a_first_look_is_never_read_again() -> None:
    """Of a pair of engines the quick one looks; what it reads in full, the careful one reads too, where in doubt."""
    quick, careful = Reader(), Reader()
    pair = EnginePair(quick, lambda: careful, thresholds=Thresholds(0.9, 0.45), margin=0.25)
    tokens = [[REFUSAL] * 128, [ANSWER] * 128]
    judged_in_looks(tokens, {place: tokens[place][:64] for place in (0, 1)}, pair, FIRST)
    assert (quick.n_read, careful.n_read) == (2 * 64 + 128, 128)


def test_nothing_to_look_at_twice_is_read_once() -> None:
    """No first look, and no text at all."""
    engine = Reader()
    found = judged_in_looks([[ANSWER] * 64, [REFUSAL]], {}, engine, FIRST)
    assert (found.refusal.tolist(), engine.n_read) == ([0.05, 0.9], 65)
    assert judged_in_looks([], {}, engine, FIRST).kinds.shape == (0, 2)


@pytest.mark.parametrize(("n_tokens", "is_worth"), [(64, False), (127, False), (128, True), (512, True)])
def test_texts_of_two_windows_get_a_first_look(n_tokens: int, is_worth: bool) -> None:
    """A look in vain at a shorter one would cost more than half of its reading."""
    assert FIRST.is_worth(n_tokens) is is_worth


def fitted(lengths: list[int], refusal: list[float], looks: dict[int, list[float]], n: int = 20) -> FirstLook | None:
    """Fit from lists, every text of which stands there 20 times: with fewer refusals there is no fit."""
    by_window = {window: np.array(first * n) for window, first in looks.items()}
    return fit_first_look(np.array(lengths * n), np.array(refusal * n), by_window)


def test_the_threshold_keeps_its_distance_from_every_refusal() -> None:
    """Three quarters of the least first probability, .08, among what may count: the one at .3 counts under `broad`."""
    first = fitted([300] * 4, [0.9, 0.3, 0.01, 0.02], {96: [0.5, 0.08, 0.01, 0.03]})
    assert first == FirstLook(96, 0.06)


def test_few_refusals_say_too_little() -> None:
    """Nineteen long ones are too few, twenty are enough."""
    rows = ([300] * 2, [0.9, 0.01], {96: [0.5, 0.01]})
    assert fitted(*rows, n=19) is None
    assert fitted(*rows, n=20) == FirstLook(96, 0.1)


def test_short_refusals_do_not_bind_the_threshold() -> None:
    """A text of less than two windows is never looked at twice."""
    assert fitted([191, 300, 300], [0.9, 0.9, 0.01], {96: [0.0, 0.6, 0.01]}) == FirstLook(96, 0.1)


def test_the_window_that_reads_least_is_taken() -> None:
    """Of two answers of 400 tokens, 64 tokens settle one, and 160 settle both: 2 · 64 + 400 = 528 against 320."""
    first = fitted([400] * 3, [0.9, 0.01, 0.01], {64: [0.2, 0.01, 0.3], 160: [0.4, 0.02, 0.04]})
    assert first == FirstLook(160, 0.1)


@pytest.mark.parametrize(
    ("lengths", "looks"),
    [
        ([400, 110], {96: [0.5, 0.4]}),  # not settled: a look in vain
        ([90, 400], {96: [0.5, 0.001]}),  # no longer text refuses
        ([400, 400], {96: [0.0, 0.0]}),  # nothing is certain enough
    ],
)
def test_no_first_look_where_it_does_not_pay_or_nothing_says_when(
    lengths: list[int], looks: dict[int, list[float]]
) -> None:
    """A refusal and an answer."""
    assert fitted(lengths, [0.9, 0.01], looks) is None


@pytest.mark.parametrize(("tokens", "below"), [(63, 0.1), (512, 0.1), (96, 0.0), (96, 1.0)])
def test_a_first_look_that_makes_no_sense_is_refused(tokens: int, below: float) -> None:
    """Too small for request and reply, as large as the second, settling nothing, settling everything."""
    with pytest.raises(ValidationError):
        FirstLook(tokens, below)
