"""What an engine is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from scipy.special import expit, softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Engine", "Probabilities"]


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

    @classmethod
    def of_logits(cls, gate: NDArray[np.float32], partial: NDArray[np.float32], kinds: NDArray[np.float32]) -> Self:
        """Turn logits into probabilities, in float64 whatever the engine's arithmetic was.

        Args:
            gate: *Shape:* `(n, 2)`.
            partial: *Shape:* `(n,)`.
            kinds: *Shape:* `(n, n_categories)`.
        """
        return cls(
            refusal=softmax(np.asarray(gate, np.float64), axis=-1)[:, 1],
            partial=expit(np.asarray(partial, np.float64)),
            kinds=softmax(np.asarray(kinds, np.float64), axis=-1),
        )


class Engine(Protocol):
    """Run padded batches."""

    @property
    def name(self) -> str:
        """Return the name that manifests and reports use: engine, arithmetic and device."""
        ...

    @property
    def n_categories(self) -> int:
        """Return the width of the category head."""
        ...

    @property
    def n_streams(self) -> int:
        """Return how many batches it runs at once: as many threads may call `run`."""
        ...

    @property
    def batch_tokens(self) -> int:
        """Return how many tokens, padding included, a batch has at most: as many as it runs best."""
        ...

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Judge a batch; both arrays are of *shape* `(batch, tokens)`."""
        ...
