"""Run texts through an engine: tokenised in bulk, sorted by length, batched by a budget of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from demur.model.network import RefusalNetwork

__all__ = ["Engine", "Probabilities", "TorchEngine", "infer", "length_batches", "padded"]

# Padded tokens a batch: enough rows to share a pass over the weights, few enough to pad little.
_TOKEN_BUDGET = 2_048


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Keep what the heads say of texts.

    Attributes:
        refusal: P(the reply refuses). *Shape:* `(n,)`.
        partial: P(partial | refuses). *Shape:* `(n,)`.
        kinds: P(kind | refuses), rows summing to 1. *Shape:* `(n, n_categories)`.
    """

    refusal: NDArray[np.float64]
    partial: NDArray[np.float64]
    kinds: NDArray[np.float64]


class Engine(Protocol):
    """Run one padded batch."""

    @property
    def name(self) -> str:
        """Return the name that manifests and reports use."""
        ...

    @property
    def n_categories(self) -> int:
        """Return the width of the category head."""
        ...

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Judge a batch; both arrays are of *shape* `(batch, tokens)`."""
        ...


class TorchEngine:
    """Run the network in torch, in fp32 on the CPU or on the first CUDA device."""

    def __init__(self, network: RefusalNetwork) -> None:
        """Take a network that is calibrated and ready to judge."""
        import torch

        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._network = network.to(self._device).eval()

    @property
    def name(self) -> str:
        """Return the engine and its arithmetic."""
        return f"torch-fp32-{self._device}"

    @property
    def n_categories(self) -> int:
        """Return the width of the category head."""
        return self._network.kinds.classifier.out_features

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Judge a batch; both arrays are of *shape* `(batch, tokens)`."""
        import torch

        with torch.inference_mode():
            ids, mask = (torch.from_numpy(array).to(self._device) for array in (input_ids, attention_mask))
            logits = self._network(ids, mask)
            return Probabilities(
                refusal=logits.gate.double().softmax(-1)[:, 1].cpu().numpy(),
                partial=logits.partial.double().sigmoid().cpu().numpy(),
                kinds=logits.kinds.double().softmax(-1).cpu().numpy(),
            )


def infer(texts: Sequence[str], *, tokenizer: Tokenizer, engine: Engine, max_tokens: int) -> Probabilities:
    """Judge texts and return their probabilities in input order; a text beyond the window loses its end."""
    encodings = tokenizer.encode_batch(list(texts))
    tokens = [_windowed(encoding.ids, max_tokens) for encoding in encodings]
    refusal, partial = np.empty(len(texts)), np.empty(len(texts))
    kinds = np.empty((len(texts), engine.n_categories))
    for batch in length_batches([len(ids) for ids in tokens], budget=_TOKEN_BUDGET):
        answer = engine.run(*padded([tokens[i] for i in batch]))
        refusal[batch], partial[batch], kinds[batch] = answer.refusal, answer.partial, answer.kinds
    return Probabilities(refusal, partial, kinds)


def _windowed(ids: list[int], max_tokens: int) -> list[int]:
    # The last id is [SEP], which closes the window too.
    return ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], ids[-1]]


def length_batches(lengths: Sequence[int], *, budget: int) -> Iterator[list[int]]:
    """Yield the indices of texts, sorted by length, in batches of at most `budget` padded tokens, or of one text."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Sorted: this text is the longest of its batch, and sets the padding.
        if batch and lengths[index] * (len(batch) + 1) > budget:
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
