"""Sum what the heads get wrong into one number to train on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from demur.model.network import Logits
    from demur.model.settings import TrainingSettings
    from demur.model.targets import Example
    from demur.taxonomy import Taxonomy

__all__ = ["Loss"]

_TINY = 1e-6


class Loss:
    """Sum the losses of gate, partial, kinds and groups, each averaged over the rows whose target is known."""

    def __init__(self, taxonomy: Taxonomy, settings: TrainingSettings) -> None:
        """Take the groups from the taxonomy and the weights from the settings."""
        self._settings = settings
        groups = [group.key for group in taxonomy.groups]
        members = [[float(taxonomy.group_of(key) == group) for key in taxonomy.keys] for group in groups]
        self._members = torch.tensor(members)

    def __call__(self, logits: Logits, batch: Sequence[Example], *, is_bare: NDArray[np.bool_]) -> Tensor:
        """Return the scalar loss of a batch.

        Args:
            logits: Of the batch.
            batch: The examples, in the same order.
            is_bare: Rows whose context was left out, which hides what kind they are of. *Shape:* `(batch,)`.
        """
        device = logits.gate.device
        weight = torch.tensor([example.weight for example in batch], device=device)
        refusal = torch.tensor([example.refusal for example in batch], device=device)
        log_odds = (logits.gate[:, 1] - logits.gate[:, 0]).float()
        loss = _mean(nn.functional.binary_cross_entropy_with_logits(log_odds, refusal, reduction="none"), weight)
        partial = torch.tensor([example.partial for example in batch], device=device)
        is_known = ~partial.isnan()
        if is_known.any():
            losses = nn.functional.binary_cross_entropy_with_logits(
                logits.partial.float()[is_known], partial[is_known], reduction="none"
            )
            loss = loss + self._settings.partial_weight * _mean(losses, weight[is_known])
        rows = [i for i, example in enumerate(batch) if example.kinds is not None and not is_bare[i]]
        if rows:
            target = torch.tensor([batch[i].kinds for i in rows], device=device)
            kind_weight = torch.tensor([batch[i].kind_weight for i in rows], device=device)
            loss = loss + self._kinds(logits.kinds[rows].float(), target, weight[rows], kind_weight)
        return loss

    def _kinds(self, logits: Tensor, target: Tensor, weight: Tensor, kind_weight: Tensor) -> Tensor:
        """Return the cross-entropy of the kinds plus that of their groups; log P(group) = logsumexp of its members."""
        smoothing = self._settings.kind_smoothing
        target = (1 - smoothing) * target + smoothing / target.shape[-1]
        scores = logits.log_softmax(-1)
        members = self._members.to(logits.device)
        by_group = torch.stack([scores.masked_fill(row == 0, -torch.inf).logsumexp(-1) for row in members], dim=-1)
        kinds = -(target * scores).sum(-1)
        groups = -(target @ members.T * by_group).sum(-1)
        # Rows that hardly refuse count little also where no other row of the batch has a kind.
        share = (kind_weight * weight).sum() / weight.sum().clamp_min(_TINY)
        weight = weight * kind_weight
        return (_mean(kinds, weight) + self._settings.group_weight * _mean(groups, weight)) * share.clamp_max(1.0)


def _mean(losses: Tensor, weight: Tensor) -> Tensor:
    return (losses * weight).sum() / weight.sum().clamp_min(_TINY)
