"""Hold the form that engines run to the network that was trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from transformers import BertConfig, BertModel

from demur.model.network import RefusalNetwork
from demur.model.runtime.lean import LeanNetwork

if TYPE_CHECKING:
    from demur.model.weights import Weights


def network(n_layers: int) -> RefusalNetwork:
    """Return an untrained network of width 16."""
    config = BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=n_layers, num_attention_heads=2, intermediate_size=24
    )
    whole = RefusalNetwork(BertModel(config, add_pooling_layer=False), 5).eval()
    # They begin as zeros, with which one that is left out would not be missed; trained ones reach as far as this.
    for layer in (*whole.encoder.encoder.layer,):
        for part in (layer.attention.self.query, layer.attention.self.key, layer.attention.self.value):
            torch.nn.init.normal_(part.bias, std=2.0)
    return whole


def batch(vocabulary: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return four texts of 3 to 30 tokens, padded."""
    lengths = torch.tensor([30, 3, 17, 9])
    mask = (torch.arange(30)[None] < lengths[:, None]).long()
    return torch.randint(5, vocabulary, (4, 30), generator=torch.Generator().manual_seed(0)) * mask, mask


@pytest.mark.parametrize("n_layers", [1, 2, 5])
def test_the_lean_form_says_what_the_network_says(n_layers: int) -> None:
    """All logits, to 1e-5, also where the only layer is the last one."""
    whole = network(n_layers)
    with torch.inference_mode():
        expected, found = whole(*batch(40)), LeanNetwork(whole)(*batch(40))
    for logits, name in zip(found, ("gate", "partial", "kinds"), strict=True):
        torch.testing.assert_close(logits, getattr(expected, name), atol=1e-5, rtol=1e-5)


def test_trained_weights_survive_it(loaded_weights: Weights) -> None:
    """The gate's log-odds of trained weights reach far, and agree all the same."""
    vocabulary = loaded_weights.tokenizer.get_vocab_size()
    with torch.inference_mode():
        expected = loaded_weights.network(*batch(vocabulary))
        gate, _, _ = LeanNetwork(loaded_weights.network)(*batch(vocabulary))
    torch.testing.assert_close(gate, expected.gate, atol=1e-4, rtol=1e-4)


def test_the_last_layer_runs_for_one_token_a_text() -> None:
    """Its feed-forward part sees 4 rows of one token where the others see 30."""
    shapes = []
    lean = LeanNetwork(network(2))
    for layer in (*lean.layers, lean.last):
        layer.intermediate.register_forward_pre_hook(lambda _, given: shapes.append(tuple(given[0].shape)))
    with torch.inference_mode():
        lean(*batch(40))
    assert shapes == [(4, 30, 16), (4, 1, 16)]
