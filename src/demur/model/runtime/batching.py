"""Run texts through an engine: tokenised in bulk, sorted by length, batched by a budget of tokens."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from demur.data.rendering import windowed
from demur.model.runtime.answers import Probabilities
from demur.model.runtime.rechecking import EnginePair, unchecked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from demur.model.runtime.answers import Engine
    from demur.model.runtime.rechecking import AnyEngine

__all__ = ["TOKENS_STEP", "infer", "judged", "length_batches", "padded"]

# The width of OpenVINO's kernels for attention.
TOKENS_STEP = 16


def infer(texts: Sequence[str], *, tokenizer: Tokenizer, engine: AnyEngine, max_tokens: int) -> Probabilities:
    """Judge texts and return their probabilities in input order; a text beyond the window loses its end."""
    return judged(windowed(texts, tokenizer=tokenizer, max_tokens=max_tokens), engine)


def judged(tokens: Sequence[Sequence[int]], engine: AnyEngine) -> Probabilities:
    """Judge tokenised texts and return their probabilities in input order.

    Args:
        tokens: Ids of each text, special tokens included.
        engine: Runs the batches, several at once where it can; of a pair, the careful one what is in doubt, too.
    """
    found = _read(tokens, unchecked(engine))
    if isinstance(engine, EnginePair):
        doubtful = engine.doubtful(found)
        if doubtful.size:  # opening the careful engine takes a second
            again = _read([tokens[i] for i in doubtful], engine.careful)
            found.refusal[doubtful], found.partial[doubtful] = again.refusal, again.partial
            found.kinds[doubtful] = again.kinds
    return found


def _read(tokens: Sequence[Sequence[int]], engine: Engine) -> Probabilities:
    refusal, partial = np.empty(len(tokens)), np.empty(len(tokens))
    kinds = np.empty((len(tokens), engine.n_categories))
    batches = list(length_batches([len(ids) for ids in tokens], budget=engine.batch_tokens))
    for batch, answer in zip(batches, _answers(engine, tokens, batches), strict=True):
        refusal[batch], partial[batch], kinds[batch] = answer.refusal, answer.partial, answer.kinds
    return Probabilities(refusal, partial, kinds)


def _answers(
    engine: Engine, tokens: Sequence[Sequence[int]], batches: Sequence[Sequence[int]]
) -> Iterator[Probabilities]:
    """Run the batches and yield the answers in their order."""

    def run(batch: Sequence[int]) -> Probabilities:
        return engine.run(*padded([tokens[i] for i in batch]))

    if engine.n_streams == 1:
        yield from map(run, batches)
        return
    # The engines let go of Python's lock while they compute.
    pool = ThreadPoolExecutor(engine.n_streams)
    try:
        yield from pool.map(run, batches)
    finally:
        # After Ctrl-C no batch begins any more.
        pool.shutdown(cancel_futures=True)


def length_batches(lengths: Sequence[int], *, budget: int) -> Iterator[list[int]]:
    """Yield the indices of texts, sorted by length, in batches of at most `budget` padded tokens, or of one text.

    A text counts as the next multiple of 16 tokens, so that batches come in few shapes: OpenVINO makes kernels for each
    of them, and reads 3 % more texts a second.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Sorted: this text is the longest of its batch, and sets the padding.
        width = lengths[index] + -lengths[index] % TOKENS_STEP
        if batch and width * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def padded(tokens: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pad token ids with 0, [PAD] in every BERT vocabulary, to the longest; return ids and mask, each `(n, tokens)`."""
    width = max(len(ids) for ids in tokens)
    input_ids = np.zeros((len(tokens), width), dtype=np.int64)
    attention_mask = np.zeros_like(input_ids)
    for row, ids in enumerate(tokens):
        input_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = 1
    return input_ids, attention_mask
