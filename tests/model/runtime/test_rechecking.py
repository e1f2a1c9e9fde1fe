"""Hold the second reading to what is in doubt, and to that alone."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from demur.model.runtime import Probabilities, judged, unchecked
from demur.model.runtime.rechecking import EnginePair
from demur.verdict import Thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Told:
    """Answer with the numbers given for each text, which its first token names."""

    n_streams = 2
    batch_tokens = 800

    def __init__(self, name: str, refusal: list[float], kinds: list[list[float]]) -> None:
        """Keep them, and remember what was asked."""
        self.name = name
        self.n_categories = len(kinds[0])
        self.asked: list[tuple[list[int], int]] = []
        self._refusal, self._kinds = np.array(refusal), np.array(kinds)

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Answer."""
        del attention_mask
        places = input_ids[:, 0]
        self.asked.append((places.tolist(), input_ids.shape[1]))
        return Probabilities(self._refusal[places], self._refusal[places] / 2, self._kinds[places])


def texts(*lengths: int) -> list[list[int]]:
    """Make a text of each length, which begins with its number."""
    return [[number] * length for number, length in enumerate(lengths)]


SURE, TORN = [0.9, 0.05, 0.05], [0.41, 0.39, 0.2]


def test_only_what_is_in_doubt_is_read_again() -> None:
    """Near the threshold of .5, .3 in log-odds, are .43 and .57; between two kinds only those that may refuse are."""
    quick = Told("quick", [0.1, 0.45, 0.9, 0.9, 0.1], [SURE, SURE, SURE, TORN, TORN])
    careful = Told("careful", [0.0, 0.6, 0.0, 0.8, 0.0], [SURE, TORN, TORN, SURE, SURE])
    engine = EnginePair(quick, lambda: careful, thresholds=Thresholds(0.5, 0.8), margin=0.3)
    found = judged(texts(3, 4, 9, 5, 3), engine)
    assert careful.asked == [([1, 3], 5)]  # no wider than the longer of the two
    assert found.refusal.tolist() == [0.1, 0.6, 0.9, 0.8, 0.1]
    assert found.partial.tolist() == [0.05, 0.3, 0.45, 0.4, 0.05]
    assert found.kinds.tolist() == [SURE, TORN, SURE, SURE, TORN]
    assert (engine.name, engine.n_categories) == ("quick", 3)


def test_doubt_lies_around_the_threshold_given() -> None:
    """At .2, .25 is near and .5 is not."""
    quick = Told("quick", [0.25, 0.5], [SURE] * 2)
    careful = Told("careful", [0.15, 0.15], [SURE] * 2)
    found = judged(texts(2, 2), EnginePair(quick, lambda: careful, thresholds=Thresholds(0.2, 0.8), margin=0.3))
    assert found.refusal.tolist() == [0.15, 0.5]


def test_doubt_lies_around_every_threshold_that_may_decide() -> None:
    """At .5 and .25, .55 and .27 are near, .37 is not."""
    quick = Told("quick", [0.27, 0.37, 0.55], [SURE] * 3)
    careful = Told("careful", [0.2, 0.2, 0.4], [SURE] * 3)
    engine = EnginePair(quick, lambda: careful, thresholds=Thresholds(0.5, 0.8), margin=0.3, others=[0.25])
    found = judged(texts(2, 2, 2), engine)
    assert found.refusal.tolist() == [0.2, 0.37, 0.4]


def test_a_refusal_that_may_be_one_in_part_is_in_doubt() -> None:
    """Half of .9, .45, is near .44; what does not refuse at the threshold in use has no extent to doubt."""
    quick = Told("quick", [0.9, 0.37], [SURE, TORN])
    careful = Told("careful", [0.8, 0.2], [SURE] * 2)
    engine = EnginePair(quick, lambda: careful, thresholds=Thresholds(0.5, 0.44), margin=0.3, others=[0.25])
    found = judged(texts(2, 2), engine)
    assert found.partial.tolist() == [0.4, 0.185]
    assert careful.asked == [([0], 2)]


def test_the_careful_engine_is_opened_once_and_only_when_it_is_needed() -> None:
    """Saturated gates are in no doubt."""
    opened: list[Told] = []

    def open_careful() -> Told:
        opened.append(Told("careful", [0.9, 0.9, 0.9], [SURE] * 3))
        return opened[-1]

    engine = EnginePair(
        Told("quick", [0.0, 1.0, 0.5], [SURE] * 3), open_careful, thresholds=Thresholds(0.5, 0.8), margin=0.3
    )
    with np.errstate(all="raise"):
        assert judged(texts(2, 2), engine).refusal.tolist() == [0.0, 1.0]
    assert opened == []
    judged(texts(2, 2, 2), engine)
    judged(texts(2, 2, 2), engine)
    assert len(opened) == 1


@pytest.mark.parametrize(("refusal", "expected"), [(0.9, 0.9), (0.5, 0.7)])
def test_a_single_kind_is_never_in_doubt(refusal: float, expected: float) -> None:
    """The gate may be."""
    careful = Told("careful", [0.7], [[1.0]])
    engine = EnginePair(Told("quick", [refusal], [[1.0]]), lambda: careful, thresholds=Thresholds(0.5, 0.8), margin=0.3)
    assert judged(texts(2), engine).refusal.tolist() == [expected]


def test_what_is_in_doubt_is_gathered_from_all_batches() -> None:
    """Two texts of different batches of the quick engine share one of the careful engine."""
    quick = Told("quick", [0.5, 0.9, 0.5], [SURE] * 3)
    careful = Told("careful", [0.4, 0.0, 0.6], [SURE] * 3)
    engine = EnginePair(quick, lambda: careful, thresholds=Thresholds(0.5, 0.8), margin=0.3)
    found = judged(texts(300, 400, 400), engine)
    assert sorted(quick.asked) == [([0, 1], 400), ([2], 400)]
    assert careful.asked == [([0, 2], 400)]
    assert found.refusal.tolist() == [0.4, 0.9, 0.6]


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_at_the_ends_a_saturated_gate_is_in_no_doubt(threshold: float) -> None:
    """Whose log-odds and the threshold's are infinite alike; the kind of what refuses may be."""
    quick, careful = Told("quick", [threshold], [SURE]), Told("careful", [0.5], [SURE])
    pair = EnginePair(quick, lambda: careful, thresholds=Thresholds(threshold, 0.8), margin=0.3)
    with np.errstate(divide="ignore"):
        assert judged(texts(2), pair).refusal.tolist() == [threshold]
    torn = EnginePair(Told("quick", [1.0], [TORN]), lambda: careful, thresholds=Thresholds(1.0, 0.8), margin=0.3)
    assert judged(texts(2), torn).kinds.tolist() == [SURE]


def test_a_pair_can_be_sent_to_other_machines() -> None:
    """As Ray sends it; the careful engine is opened there, if not here."""
    open_careful = partial(Told, "careful", [0.6], [SURE])
    pair = EnginePair(Told("quick", [0.5], [SURE]), open_careful, thresholds=Thresholds(0.5, 0.8), margin=0.3)
    sent = pickle.loads(pickle.dumps(pair))  # noqa: S301  # our own
    assert judged(texts(2), sent).refusal.tolist() == [0.6]


def test_the_quick_engine_alone_reads_once() -> None:
    """And what is no pair is its own."""
    quick, careful = Told("quick", [0.5], [SURE]), Told("careful", [0.6], [SURE])
    engine = EnginePair(quick, lambda: careful, thresholds=Thresholds(0.5, 0.8), margin=0.3)
    assert judged(texts(2), unchecked(engine)).refusal.tolist() == [0.5]
    assert unchecked(quick) is quick
    assert careful.asked == []
