"""Measure a network on rows that it was not fitted to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from demur.data.rendering import MAX_TOKENS, windowed
from demur.model.runtime import length_batches, padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from demur.model.network import RefusalNetwork
    from demur.model.targets import Example

__all__ = ["Validation", "gate_f1", "held_out_logits", "kind_accuracy"]

_EVALUATION_TOKENS = 4_096


@dataclass(frozen=True, slots=True)
class Validation:
    """Keep how an epoch did on the held-out rows.

    Attributes:
        epoch: Epochs done.
        training_loss: Mean loss of the epoch's steps.
        gate_f1: F1 of *refusal* at probability 1/2.
        kind_accuracy: Share of refusals with a known kind whose most probable kind is the target's.
    """

    epoch: int
    training_loss: float
    gate_f1: float
    kind_accuracy: float

    @property
    def score(self) -> float:
        """Return what epochs are chosen by: the mean of both figures, or the one that is known; nan if neither is."""
        known = [figure for figure in (self.gate_f1, self.kind_accuracy) if not math.isnan(figure)]
        return sum(known) / len(known) if known else math.nan


def held_out_logits(
    network: RefusalNetwork, rows: Sequence[Example], *, tokenizer: Tokenizer
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the gate's log-odds `(n,)`, those of *partial* `(n,)`, and the kinds' logits `(n, n_categories)`.

    Computed in fp32, however the network was trained.
    """
    tokens = windowed([row.text for row in rows], tokenizer=tokenizer, max_tokens=MAX_TOKENS)
    gate, partial = np.empty(len(rows)), np.empty(len(rows))
    kinds = np.empty((len(rows), network.kinds.classifier.out_features))
    device = next(network.parameters()).device
    network.eval()
    with torch.inference_mode():
        for batch in length_batches([len(ids) for ids in tokens], budget=_EVALUATION_TOKENS):
            ids, mask = (torch.from_numpy(array).to(device) for array in padded([tokens[i] for i in batch]))
            logits = network(ids, mask)
            gate[batch] = (logits.gate[:, 1] - logits.gate[:, 0]).cpu().numpy()
            partial[batch], kinds[batch] = logits.partial.cpu().numpy(), logits.kinds.cpu().numpy()
    return gate, partial, kinds


def gate_f1(log_odds: NDArray[np.float64], rows: Sequence[Example]) -> float:
    """Return F1 of *refusal* at probability 1/2; nan where nothing refuses and nothing was flagged."""
    truth = np.array([row.is_refusal for row in rows])
    hits = int(((log_odds > 0) & truth).sum())
    wrong = int(((log_odds > 0) != truth).sum())
    return 2 * hits / (2 * hits + wrong) if hits + wrong else float("nan")


def kind_accuracy(logits: NDArray[np.float64], rows: Sequence[Example]) -> float:
    """Return the share of known kinds that the most probable kind names; nan where no kind is known."""
    known = [i for i, row in enumerate(rows) if row.kinds is not None]
    if not known:
        return float("nan")
    truth = np.array([rows[i].kinds for i in known]).argmax(-1)
    return float((logits[known].argmax(-1) == truth).mean())
