"""Hold smoothing to what it may not change, and to what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from demur.model.runtime.lean import LeanNetwork
from demur.model.runtime.smoothing import smoothed

if TYPE_CHECKING:
    from demur.model.weights import Weights

TOKENS = [[2, *range(5, 40), 3], [2, 9, 9, 3], [2, *range(20, 100), 3]]


def unevenness(lean: nn.Module, ids: list[int]) -> dict[str, float]:
    """Return, for each product of the first layer, the reach of the farthest input channel over that of the middle."""
    found = {}

    def watch(name: str) -> Any:
        def hook(_: nn.Module, given: tuple[torch.Tensor]) -> None:
            channels = given[0].abs().flatten(0, -2).amax(0)
            found[name] = float(channels.max() / channels.median())

        return hook

    for name, linear in lean.named_modules():
        if isinstance(linear, nn.Linear) and name.startswith("layers.0."):
            linear.register_forward_pre_hook(watch(name.removesuffix(".linear")))
    with torch.inference_mode():
        lean(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))
    return found


def test_a_smoothed_network_says_the_same(loaded_weights: Weights) -> None:
    """To 1e-4, on texts that it was smoothed on and on another."""
    lean, smooth = LeanNetwork(loaded_weights.network), smoothed(loaded_weights.network, TOKENS)
    for ids in (*TOKENS, [2, *range(60, 90), 3]):
        given = torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long)
        with torch.inference_mode():
            for expected, found in zip(lean(*given), smooth(*given), strict=True):
                torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_the_network_is_left_as_it_is(loaded_weights: Weights) -> None:
    """Bit by bit."""
    before = {name: tensor.clone() for name, tensor in loaded_weights.network.state_dict().items()}
    smoothed(loaded_weights.network, TOKENS)
    after = loaded_weights.network.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_channels_that_reach_far_are_brought_in(loaded_weights: Weights) -> None:
    """The inputs of every product of the first layer are more even than before."""
    after = unevenness(smoothed(loaded_weights.network, TOKENS), TOKENS[2])
    before = unevenness(LeanNetwork(loaded_weights.network), TOKENS[2])
    assert len(after) == len(before) == 4
    assert all(after[name] < before[name] for name in after), (after, before)
