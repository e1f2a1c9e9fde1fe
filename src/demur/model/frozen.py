"""Judge by what an encoder knows before any training: logistic regressions on its frozen [CLS]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from demur.data.rendering import windowed
from demur.model.runtime import Probabilities, length_batches, padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from transformers import BertModel

    from demur.model.encoders import Encoder
    from demur.model.targets import Example

__all__ = ["FrozenEngine"]

_TOKENS_AT_ONCE = 4_096
_MAX_ITERATIONS = 5_000


class FrozenEngine:
    """Run a frozen encoder, and three logistic regressions on [CLS]: gate, partial, kinds."""

    # One batch at a time: torch shares a batch among its threads.
    n_streams = 1
    batch_tokens = 2_048

    def __init__(self, encoder: BertModel, gate: _Logistic, partial: _Logistic, kinds: _Logistic) -> None:
        """Take an encoder and what was fitted on it; `fit` is the usual door."""
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        network: nn.Module = encoder
        self._encoder = network.to(self._device).eval()
        self._gate, self._partial, self._kinds = gate, partial, kinds

    @classmethod
    def fit(cls, encoder: Encoder, rows: Sequence[Example], *, n_categories: int, max_tokens: int) -> Self:
        """Fit on training examples: soft targets at their likelier side, a row's weight as its weight."""
        network, unfitted = encoder.network(), _Logistic.constant
        engine = cls(network, unfitted(2), unfitted(2), unfitted(n_categories))
        tokens = windowed([row.text for row in rows], tokenizer=encoder.tokenizer(), max_tokens=max_tokens)
        hidden = np.empty((len(rows), network.config.hidden_size))
        for batch in length_batches([len(ids) for ids in tokens], budget=_TOKENS_AT_ONCE):
            hidden[batch] = engine.hidden(*padded([tokens[i] for i in batch]))
        weight = np.array([row.weight for row in rows])
        refuses = np.array([row.is_refusal for row in rows], dtype=np.int64)
        extent = np.array([row.partial for row in rows])
        of_extent = ~np.isnan(extent)
        of_kind = np.array([row.kinds is not None for row in rows])
        kinds = np.array([int(np.argmax(row.kinds)) for row in rows if row.kinds is not None], dtype=np.int64)
        kind_weight = weight * np.array([row.kind_weight for row in rows])
        engine._gate = _Logistic.fit(hidden, refuses, weight, 2)
        engine._partial = _Logistic.fit(hidden[of_extent], extent[of_extent].astype(np.int64), weight[of_extent], 2)
        engine._kinds = _Logistic.fit(hidden[of_kind], kinds, kind_weight[of_kind], n_categories)
        return engine

    @property
    def name(self) -> str:
        """Return the engine and its arithmetic."""
        return f"frozen-fp32-{self._device}"

    @property
    def n_categories(self) -> int:
        """Return the width of the category head."""
        return self._kinds.width

    def hidden(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return [CLS] of a batch, *shape* `(batch, width)`; both arrays are of *shape* `(batch, tokens)`."""
        with torch.inference_mode():
            ids, mask = (torch.from_numpy(array).to(self._device) for array in (input_ids, attention_mask))
            found = self._encoder(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
            return np.asarray(found.double().cpu().numpy(), dtype=np.float64)

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Judge a batch; both arrays are of *shape* `(batch, tokens)`."""
        hidden = self.hidden(input_ids, attention_mask)
        return Probabilities(
            refusal=self._gate(hidden)[:, 1], partial=self._partial(hidden)[:, 1], kinds=self._kinds(hidden)
        )


@dataclass(frozen=True, slots=True)
class _Logistic:
    """Give class probabilities of a fixed width, also where training met only some of the classes, or none."""

    width: int
    classes: NDArray[np.int64]
    model: Any = None

    @classmethod
    def constant(cls, width: int) -> Self:
        return cls(width, np.zeros(1, dtype=np.int64))

    @classmethod
    def fit(
        cls, hidden: NDArray[np.float64], target: NDArray[np.int64], weight: NDArray[np.float64], width: int
    ) -> Self:
        classes = np.unique(target)
        if len(classes) < 2:  # noqa: PLR2004  # a regression needs two classes
            return cls(width, classes) if len(classes) else cls.constant(width)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_MAX_ITERATIONS))
        return cls(width, classes, model.fit(hidden, target, logisticregression__sample_weight=weight))

    def __call__(self, hidden: NDArray[np.float64]) -> NDArray[np.float64]:
        probabilities = np.zeros((len(hidden), self.width))
        probabilities[:, self.classes] = 1.0 if self.model is None else self.model.predict_proba(hidden)
        return probabilities
