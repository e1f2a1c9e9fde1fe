"""One encoder, a gate and a category head on it, one forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import BertModel

__all__ = [
    "GATE_LABELS",
    "Logits",
    "LowRankLinear",
    "PooledHead",
    "RefusalNetwork",
    "add_low_rank",
]

GATE_LABELS = ("Non-refusal", "Refusal")


@dataclass(frozen=True, slots=True)
class Logits:
    """Keep what the heads say of a batch, before any softmax.

    Attributes:
        gate: *Shape:* `(batch, 2)`, in the order of `GATE_LABELS`.
        partial: *Shape:* `(batch,)`, log-odds that a refusal is partial, given that the reply refuses.
        kinds: *Shape:* `(batch, n_categories)`, in taxonomy order, given that the reply refuses.
    """

    gate: Tensor
    partial: Tensor
    kinds: Tensor


class PooledHead(nn.Module):
    """Classify from [CLS] as `BertForSequenceClassification` does: dense, tanh, dropout, linear.

    The shape is the standard one so that the head exports as a standard checkpoint with nothing lost.
    """

    def __init__(self, width: int, n_labels: int, *, dropout: float = 0.1) -> None:
        """Set the head up with the encoder's width and the number of labels."""
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.classifier = nn.Linear(width, n_labels)
        self.dropout = nn.Dropout(dropout)

    def pooled(self, hidden: Tensor) -> Tensor:
        """Map [CLS], *shape* `(batch, width)`, to the pooled vector of the same shape."""
        return self.dropout(torch.tanh(self.dense(hidden)))  # type: ignore[no-any-return]  # nn.Module returns Any

    def forward(self, hidden: Tensor) -> Tensor:
        """Map [CLS], *shape* `(batch, width)`, to logits, *shape* `(batch, n_labels)`."""
        return self.classifier(self.pooled(hidden))  # type: ignore[no-any-return]  # nn.Module returns Any


class RefusalNetwork(nn.Module):
    """Judge texts: refusal or not, partial or full, and of which kind.

    The gate is a standard two-label head. *Partial* is a second linear layer on the gate's pooled vector and gives
    P(partial | refusal), so that P(full) + P(partial) is the gate's own probability, and the gate still exports alone.
    """

    def __init__(self, encoder: BertModel, n_categories: int) -> None:
        """Put fresh heads on an encoder without a pooling layer of its own."""
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self.gate = PooledHead(width, len(GATE_LABELS))
        self.partial = nn.Linear(width, 1)
        self.kinds = PooledHead(width, n_categories)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Logits:
        """Run one pass.

        Args:
            input_ids: *Shape:* `(batch, tokens)`.
            attention_mask: *Shape:* `(batch, tokens)`, 1 for text and 0 for padding.
        """
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state[:, 0]
        pooled = self.gate.pooled(hidden)
        return Logits(self.gate.classifier(pooled), self.partial(pooled).squeeze(-1), self.kinds(hidden))

    def trained(self) -> dict[str, Tensor]:
        """Return what training changes, by name: low-rank factors, or whole layers, of the encoder, and the heads.

        The encoder's are halved to 16 bits, which is what the weights file keeps; the heads stay whole.
        """
        return {
            name: (parameter.detach().half() if name.startswith("encoder.") else parameter.detach()).contiguous()
            for name, parameter in self.named_parameters()
            if parameter.requires_grad
        }

    @torch.no_grad()
    def load_trained(self, tensors: dict[str, Tensor], *, scale: float) -> None:
        """Put trained tensors in place, low-rank factors merged: W ← W + s · B A.

        Raises:
            KeyError: A tensor's name is not in the network, or a head's tensor or half of a factor pair is missing.
            RuntimeError: A tensor has another shape.
        """
        parameters = dict(self.named_parameters())
        heads = {name for name in parameters if not name.startswith("encoder.")}
        halves = {_other_half(name) for name in tensors if name.endswith((".up", ".down"))}
        if absent := (heads | halves) - tensors.keys():
            raise KeyError(min(absent))
        for name, tensor in tensors.items():
            if name.endswith(".up"):
                layer = name.removesuffix(".up")
                delta = tensor.float() @ tensors[f"{layer}.down"].float()
                _require_shape(delta, parameters[f"{layer}.weight"], name)
                parameters[f"{layer}.weight"].add_(delta, alpha=scale)
            elif not name.endswith(".down"):
                _require_shape(tensor, parameters[name], name)
                parameters[name].copy_(tensor)

    @torch.no_grad()
    def fold_calibration(self, *, gate: float, partial: tuple[float, float], kinds: float) -> None:
        """Write calibration into the last linear layers, so that engines and exports are calibrated as they are.

        Args:
            gate: Temperature of the gate's logits (Guo et al. 2017).
            partial: Slope and intercept of the log-odds of *partial* (Platt 1999).
            kinds: Temperature of the kinds' logits.
        """
        for head, temperature in ((self.gate, gate), (self.kinds, kinds)):
            head.classifier.weight.div_(temperature)
            head.classifier.bias.div_(temperature)
        slope, intercept = partial
        self.partial.weight.mul_(slope)
        self.partial.bias.mul_(slope).add_(intercept)


def _other_half(name: str) -> str:
    layer, _, half = name.rpartition(".")
    return f"{layer}.{'down' if half == 'up' else 'up'}"


def _require_shape(tensor: Tensor, parameter: Tensor, name: str) -> None:
    # copy_ and add_ broadcast: a tensor of another shape must not pass as one that fits.
    if parameter.shape != tensor.shape:
        message = f"{name} is of shape {tuple(tensor.shape)} where {tuple(parameter.shape)} belongs"
        raise RuntimeError(message)


class LowRankLinear(nn.Module):
    """Add a trainable low-rank update to a frozen linear layer: y = W x + b + s · B A x (Hu et al. 2021, LoRA)."""

    def __init__(self, base: nn.Linear, rank: int, *, scale: float, dropout: float = 0.0) -> None:
        """Wrap a layer; B starts at zero, so that the wrapped layer starts out as it was.

        Args:
            base: The layer.
            rank: Rows of A and columns of B.
            scale: The factor s.
            dropout: Share of the update's inputs that training leaves out.
        """
        super().__init__()
        self.base = base.requires_grad_(requires_grad=False)
        self.scale = scale
        self.dropout = nn.Dropout(dropout)
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=5**0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map `(…, in_features)` to `(…, out_features)`."""
        update = nn.functional.linear(nn.functional.linear(self.dropout(inputs), self.down), self.up)
        return self.base(inputs) + self.scale * update  # type: ignore[no-any-return]  # nn.Module returns Any


def add_low_rank(encoder: nn.Module, rank: int, *, scale: float = 2.0, dropout: float = 0.0) -> None:
    """Freeze the encoder and wrap each of its linear layers in place."""
    encoder.requires_grad_(requires_grad=False)
    for name, module in list(encoder.named_modules()):
        if isinstance(module, nn.Linear):
            parent, _, child = name.rpartition(".")
            setattr(encoder.get_submodule(parent), child, LowRankLinear(module, rank, scale=scale, dropout=dropout))
