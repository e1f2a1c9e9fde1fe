"""Move the range of activations into the weights, so that both fit int8 better (Xiao et al. 2022, SmoothQuant).

NNCF can do it too. Done here, it serves ONNX Runtime as well, and on 122 real conversations it left two thirds of the
error that NNCF's left: 0.049 against 0.072 in the gate's log-odds, with the layers after GELU not quantised.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from demur.model.runtime.batching import length_batches, padded
from demur.model.runtime.lean import LeanNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from demur.model.network import RefusalNetwork

__all__ = ["smoothed"]

# How much of the range is moved: 0.6 leaves twice the error of 0.75 and 0.85, which differ little.
_SHARE = 0.85
_BUDGET = 1_024
_LEAST = 1e-5


class _Smoothed(nn.Module):
    """Compute y = (W · s) (x / s) + b, which is W x + b."""

    def __init__(self, linear: nn.Linear, scale: Tensor) -> None:
        super().__init__()
        self.inverse = nn.Parameter(1 / scale)
        self.linear = linear
        self.linear.weight.mul_(scale)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.linear(inputs * self.inverse)  # type: ignore[no-any-return]  # nn.Module returns Any


@torch.no_grad()
def smoothed(network: RefusalNetwork, tokens: Sequence[Sequence[int]]) -> LeanNetwork:
    """Return a network on the CPU that computes the same, all but its last layer smoothed.

    Each input channel x of a layer is divided, and its weights W multiplied, by s = max|x|^α / max|W|^(1-α).

    Args:
        network: Left as it is.
        tokens: Tokenised texts on which the ranges of activations are found.
    """
    lean = copy.deepcopy(LeanNetwork(network)).cpu()
    linears = {name: module for name, module in lean.layers.named_modules() if isinstance(module, nn.Linear)}
    ranges = _ranges(lean, linears, tokens)
    for name, linear in linears.items():
        parent, _, child = name.rpartition(".")
        weight = linear.weight.abs().amax(0).clamp_min(_LEAST)
        scale = ranges[name].clamp_min(_LEAST) ** _SHARE / weight ** (1 - _SHARE)
        setattr(lean.layers.get_submodule(parent), child, _Smoothed(linear, scale))
    return lean


def _ranges(lean: LeanNetwork, linears: Mapping[str, nn.Linear], tokens: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """Return how far the inputs of each linear layer reach, by channel; padding counts too, and reaches no further."""
    found: dict[str, Tensor] = {}

    def watching(name: str) -> Callable[[nn.Module, tuple[Tensor]], None]:
        def watch(_: nn.Module, given: tuple[Tensor]) -> None:
            reach = given[0].abs().flatten(0, -2).amax(0)
            found[name] = torch.maximum(found[name], reach) if name in found else reach

        return watch

    hooks = [module.register_forward_pre_hook(watching(name)) for name, module in linears.items()]
    for batch in length_batches([len(ids) for ids in tokens], budget=_BUDGET):
        lean(*(torch.from_numpy(array) for array in padded([tokens[i] for i in batch])))
    for hook in hooks:
        hook.remove()
    return found
