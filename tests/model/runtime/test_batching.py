"""Hold batching to its budget, and what a text is told to itself alone, not to its neighbours in the batch."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from demur.model.runtime import Probabilities, TorchEngine, infer, judged, length_batches, padded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from demur.model.weights import Weights


class Counting:
    """Answer with the number of real tokens of each row, and keep the shapes that were asked for."""

    name = "counting"
    n_categories = 2
    n_streams = 1
    batch_tokens = 2_048

    def __init__(self) -> None:
        """Start with nothing asked."""
        self.shapes: list[tuple[int, ...]] = []
        self.last: list[int] = []

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Count."""
        self.shapes.append(input_ids.shape)
        counts = attention_mask.sum(axis=1).astype(np.float64)
        self.last = [int(row[int(count) - 1]) for row, count in zip(input_ids, counts, strict=True)]
        return Probabilities(counts, -counts, np.stack([counts, 2 * counts], axis=1))


def test_batches_hold_the_budget_and_every_index_once() -> None:
    """Over 200 seeded lists: texts times the longest of them stays within the budget, or the text is alone."""
    rng = random.Random(0)
    for _ in range(200):
        lengths = [rng.randint(1, 600) for _ in range(rng.randint(0, 60))]
        budget = rng.choice([64, 512, 2_048])
        batches = list(length_batches(lengths, budget=budget))
        assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or max(lengths[index] for index in batch) * len(batch) <= budget


def test_texts_are_batched_by_length() -> None:
    """96, 16, 80, 32 within 160: 16 and 32 make 2 · 32; with 80 it would be 3 · 80 = 240; 80 and 96 make 192."""
    assert list(length_batches([96, 16, 80, 32], budget=160)) == [[1, 3], [2], [0]]


def test_texts_count_as_the_next_multiple_of_16() -> None:
    """Of lengths 17 to 20, two fit into 64 as of 32, though three of 17 would."""
    assert list(length_batches([20, 18, 17, 19], budget=64)) == [[2, 1], [3, 0]]


def test_padding_is_zero_and_masked() -> None:
    """A text of one token beside one of three gets two zeros."""
    ids, mask = padded([[5], [6, 7, 8]])
    assert ids.tolist() == [[5, 0, 0], [6, 7, 8]]
    assert mask.tolist() == [[1, 0, 0], [1, 1, 1]]


def test_answers_come_in_the_order_of_the_texts(loaded_weights: Weights) -> None:
    """Text i has (7 i mod 40) + 1 words of one token, plus [CLS] and [SEP]."""
    lengths = [7 * i % 40 + 1 for i in range(100)]
    engine = Counting()
    texts = [" ".join(["sorry"] * length) for length in lengths]
    found = infer(texts, tokenizer=loaded_weights.tokenizer, engine=engine, max_tokens=512)
    assert found.refusal.tolist() == [length + 2 for length in lengths]
    assert found.partial.tolist() == [-length - 2 for length in lengths]
    assert found.kinds.tolist() == [[length + 2, 2 * (length + 2)] for length in lengths]
    assert len(engine.shapes) > 1
    assert all(rows * width <= 2_048 for rows, width in engine.shapes)


def test_no_text_is_no_answer(loaded_weights: Weights) -> None:
    """The engine is not asked; the arrays are empty, with the head's width."""
    engine = Counting()
    found = infer([], tokenizer=loaded_weights.tokenizer, engine=engine, max_tokens=512)
    assert (found.refusal.shape, found.kinds.shape, engine.shapes) == ((0,), (0, 2), [])


def test_a_text_beyond_the_window_loses_its_end_but_not_its_separator(loaded_weights: Weights) -> None:
    """1,000 words become 512 tokens, the last of them [SEP]."""
    engine = Counting()
    tokenizer = loaded_weights.tokenizer
    found = infer(["sorry " * 1_000], tokenizer=tokenizer, engine=engine, max_tokens=512)
    assert found.refusal.tolist() == [512]
    assert engine.last == [tokenizer.token_to_id("[SEP]")]


def test_padding_changes_no_probability(loaded_weights: Weights) -> None:
    """Each text alone, without padding, is told what it is told in a batch, to 1e-5."""
    rng = random.Random(1)
    texts = ["<|assistant|>" + "sorry i cannot help " * rng.randint(1, 30) for _ in range(24)]
    engine = TorchEngine(loaded_weights.network)
    tokenizer = loaded_weights.tokenizer
    together = infer(texts, tokenizer=tokenizer, engine=engine, max_tokens=512)
    for i, text in enumerate(texts):
        alone = infer([text], tokenizer=tokenizer, engine=engine, max_tokens=512)
        np.testing.assert_allclose(together.refusal[i], alone.refusal[0], atol=1e-5)
        np.testing.assert_allclose(together.partial[i], alone.partial[0], atol=1e-5)
        np.testing.assert_allclose(together.kinds[i], alone.kinds[0], atol=1e-5)


def test_the_engine_answers_with_probabilities(loaded_weights: Weights) -> None:
    """Each between 0 and 1, the kinds summing to 1, one for each category of the taxonomy."""
    engine = TorchEngine(loaded_weights.network)
    found = infer(["sorry", "sure, here is"], tokenizer=loaded_weights.tokenizer, engine=engine, max_tokens=512)
    for array in (found.refusal, found.partial, found.kinds):
        assert ((array >= 0) & (array <= 1)).all()
    np.testing.assert_allclose(found.kinds.sum(axis=1), 1.0)
    assert found.kinds.shape == (2, len(loaded_weights.taxonomy)) == (2, engine.n_categories)
    assert engine.name.startswith("torch-fp32-")


@pytest.mark.parametrize("max_tokens", [3, 8])
def test_the_window_may_be_small(loaded_weights: Weights, max_tokens: int) -> None:
    """A text of ten words is cut to the window, whatever it is."""
    engine = Counting()
    found = infer(["no " * 10], tokenizer=loaded_weights.tokenizer, engine=engine, max_tokens=max_tokens)
    assert found.refusal.tolist() == [max_tokens]


class Meeting(Counting):
    """Answer a batch only when another thread has asked for one too."""

    n_streams = 2
    batch_tokens = 1_000

    def __init__(self) -> None:
        """Wait for two."""
        super().__init__()
        self._barrier = threading.Barrier(2, timeout=10)

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Meet, and count."""
        self._barrier.wait()
        return super().run(input_ids, attention_mask)


def test_an_engine_of_two_streams_is_asked_by_two_threads_at_once() -> None:
    """Each batch waits for another: were they run in turns, the wait would break. The answers are in order."""
    lengths = [5, 900, 7, 1_100, 900, 6]
    found = judged([[1] * length for length in lengths], Meeting())
    assert found.refusal.tolist() == lengths


class Failing(Counting):
    """Fail on the first batch."""

    n_streams = 2
    batch_tokens = 1

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Fail once, then count."""
        if input_ids.shape[1] == 1:
            message = "broken"
            raise RuntimeError(message)
        return super().run(input_ids, attention_mask)


def test_after_a_failure_no_further_batch_begins() -> None:
    """Of 400 batches of one text, those that were under way when the first failed are answered at most."""
    engine = Failing()
    with pytest.raises(RuntimeError, match="broken"):
        judged([[1] * (1 + (i > 0)) for i in range(400)], engine)
    assert len(engine.shapes) < 399
