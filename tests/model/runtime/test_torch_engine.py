"""Hold torch in bf16 to torch in fp32, and the network that both share to what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from demur.model.runtime import TorchEngine, judged, torch_engine

if TYPE_CHECKING:
    from demur.model.weights import Weights

TOKENS = [[2, *range(5, 5 + length), 3] for length in (3, 40, 11)]


def test_bf16_is_near_fp32_and_is_not_fp32(loaded_weights: Weights) -> None:
    """Within 0.05 of each probability; were they equal, nothing would be in bf16."""
    exact = judged(TOKENS, TorchEngine(loaded_weights.network))
    found = judged(TOKENS, TorchEngine(loaded_weights.network, is_bf16=True))
    np.testing.assert_allclose(found.refusal, exact.refusal, atol=0.05)
    assert not np.array_equal(found.kinds, exact.kinds)


def test_bf16_leaves_the_network_as_it_is(loaded_weights: Weights) -> None:
    """Its tensors are fp32 before and after, and fp32 gives the same bits again."""
    before = judged(TOKENS, TorchEngine(loaded_weights.network))
    TorchEngine(loaded_weights.network, is_bf16=True)
    assert {parameter.dtype for parameter in loaded_weights.network.parameters()} == {torch.float32}
    np.testing.assert_array_equal(judged(TOKENS, TorchEngine(loaded_weights.network)).refusal, before.refusal)


@pytest.mark.parametrize("is_bf16", [False, True])
def test_another_device_leaves_the_network_where_it_is(
    loaded_weights: Weights, monkeypatch: pytest.MonkeyPatch, *, is_bf16: bool
) -> None:
    """The engine has tensors of its own there; torch's meta device stands for a GPU."""
    monkeypatch.setattr(torch_engine, "_device", lambda: "meta")
    assert TorchEngine(loaded_weights.network, is_bf16=is_bf16).name.endswith("-meta")
    assert {parameter.device.type for parameter in loaded_weights.network.parameters()} == {"cpu"}


@pytest.mark.parametrize(("is_bf16", "name"), [(False, "torch-fp32-"), (True, "torch-bf16-")])
def test_the_name_says_the_arithmetic(loaded_weights: Weights, name: str, *, is_bf16: bool) -> None:
    """It stands in manifests."""
    assert TorchEngine(loaded_weights.network, is_bf16=is_bf16).name.startswith(name)


def test_threads_are_set_where_they_are_given(loaded_weights: Weights) -> None:
    """None leaves them."""
    before = torch.get_num_threads()
    try:
        TorchEngine(loaded_weights.network, n_threads=3)
        assert torch.get_num_threads() == 3
        TorchEngine(loaded_weights.network)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
