"""Hold the network to its shapes, its adapters to algebra, and calibration to where it is folded in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from demur.model.encoders import Encoder
from demur.model.network import GATE_LABELS, LowRankLinear, RefusalNetwork, add_low_rank

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from demur.model.network import Logits

N_KINDS = 5


@pytest.fixture
def network(tiny_encoder: Path) -> RefusalNetwork:
    """Build an untrained network of five kinds on the tiny encoder."""
    torch.manual_seed(1)
    return RefusalNetwork(Encoder.find(str(tiny_encoder)).network(), N_KINDS).eval()


@pytest.fixture
def adapted(network: RefusalNetwork) -> RefusalNetwork:
    """Wrap the network's encoder, with updates that are not zero."""
    add_low_rank(network.encoder, 3, scale=2.0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith(".up"):
                parameter.normal_(std=0.05)
    return network.eval()


def judged(network: RefusalNetwork) -> Logits:
    """Judge two texts of seven tokens, the second padded by two."""
    ids = torch.tensor([[2, 60, 61, 62, 63, 64, 3], [2, 70, 71, 72, 3, 0, 0]])
    with torch.inference_mode():
        return network(ids, (ids > 0).long())  # type: ignore[no-any-return]  # nn.Module returns Any


def heads(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Leave the encoder's tensors out."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith("encoder.")}


def test_each_head_has_its_shape(network: RefusalNetwork) -> None:
    """Two texts: two gate labels each, one log-odds of partial, five kinds."""
    logits = judged(network)
    assert logits.gate.shape == (2, len(GATE_LABELS))
    assert logits.partial.shape == (2,)
    assert logits.kinds.shape == (2, N_KINDS)


def test_partial_reads_what_the_gate_pools(network: RefusalNetwork) -> None:
    """With the gate's dense layer at zero, tanh(0) = 0 is pooled, and partial is its bias alone."""
    with torch.no_grad():
        network.gate.dense.weight.zero_()
        network.gate.dense.bias.zero_()
    expected = network.partial.bias.expand(2)
    torch.testing.assert_close(judged(network).partial, expected.detach())


def test_a_layer_starts_out_as_it_was_before_it_was_wrapped() -> None:
    """B starts at zero, so W x + s · B A x = W x."""
    layer, inputs = nn.Linear(6, 4), torch.randn(3, 6)
    assert torch.equal(LowRankLinear(layer, 2, scale=2.0)(inputs), layer(inputs))


def test_the_update_is_scale_times_up_times_down() -> None:
    """S · B A = 2 · [[1], [3]] [[5, 7]] = [[10, 14], [30, 42]], whose rows add up to 24 and 72."""
    layer = LowRankLinear(nn.Linear(2, 2), 1, scale=2.0)
    with torch.no_grad():
        layer.up.copy_(torch.tensor([[1.0], [3.0]]))
        layer.down.copy_(torch.tensor([[5.0, 7.0]]))
    inputs = torch.tensor([1.0, 1.0])
    torch.testing.assert_close(layer(inputs) - layer.base(inputs), torch.tensor([24.0, 72.0]))


def test_wrapping_frees_the_factors_and_the_heads_alone(network: RefusalNetwork) -> None:
    """Six linear layers in each of two transformer layers: 12 pairs of factors; the encoder itself stays frozen."""
    before = judged(network)
    add_low_rank(network.encoder, 3)
    free = [name for name, parameter in network.named_parameters() if parameter.requires_grad]
    of_encoder = [name for name in free if name.startswith("encoder.")]
    assert len(of_encoder) == 24
    assert all(name.endswith((".up", ".down")) for name in of_encoder)
    assert len(free) - len(of_encoder) == 10
    assert torch.equal(judged(network.eval()).gate, before.gate)


def test_trained_tensors_put_a_fresh_network_where_the_trained_one_was(
    adapted: RefusalNetwork, tiny_encoder: Path
) -> None:
    """Adapters are kept in 16 bits, so logits agree to about 1e-2; heads are kept whole, so they agree exactly."""
    tensors = adapted.trained()
    assert {tensor.dtype for name, tensor in tensors.items() if name.startswith("encoder.")} == {torch.float16}
    assert {tensor.dtype for tensor in heads(tensors).values()} == {torch.float32}
    fresh = RefusalNetwork(Encoder.find(str(tiny_encoder)).network(), N_KINDS).eval()
    fresh.load_trained(tensors, scale=2.0)
    torch.testing.assert_close(judged(fresh).kinds, judged(adapted).kinds, atol=1e-2, rtol=0)
    for name, tensor in heads(dict(fresh.named_parameters())).items():
        assert torch.equal(tensor, tensors[name])


def test_whole_layers_are_kept_where_nothing_was_wrapped(network: RefusalNetwork, tiny_encoder: Path) -> None:
    """Rank 0: what is free of the encoder is in `trained` under its plain name, and is put back as it is."""
    network.encoder.embeddings.requires_grad_(requires_grad=False)
    tensors = network.trained()
    name = "encoder.encoder.layer.0.attention.self.query.weight"
    assert name in tensors
    assert not any(name.startswith("encoder.embeddings") for name in tensors)
    fresh = RefusalNetwork(Encoder.find(str(tiny_encoder)).network(), N_KINDS)
    fresh.load_trained({**tensors, name: torch.ones_like(tensors[name])}, scale=2.0)
    assert torch.equal(dict(fresh.named_parameters())[name], torch.ones(32, 32))


def test_a_missing_head_tensor_is_named(network: RefusalNetwork) -> None:
    """A head that stays at its random start would guess."""
    tensors = heads(network.trained())
    del tensors["partial.bias"]
    with pytest.raises(KeyError, match=r"partial\.bias"):
        network.load_trained(tensors, scale=2.0)


@pytest.mark.parametrize(("half", "other"), [("up", "down"), ("down", "up")])
def test_half_of_a_factor_pair_is_no_update(adapted: RefusalNetwork, tiny_encoder: Path, half: str, other: str) -> None:
    """B without A, or A without B, says nothing of W."""
    layer = "encoder.encoder.layer.0.attention.self.query"
    tensors = adapted.trained()
    tensors = {**heads(tensors), f"{layer}.{half}": tensors[f"{layer}.{half}"]}
    fresh = RefusalNetwork(Encoder.find(str(tiny_encoder)).network(), N_KINDS)
    with pytest.raises(KeyError, match=rf"query\.{other}"):
        fresh.load_trained(tensors, scale=2.0)


def test_an_unknown_tensor_is_named(network: RefusalNetwork) -> None:
    """It belongs to some other network."""
    with pytest.raises(KeyError, match="mystery"):
        network.load_trained({**heads(network.trained()), "mystery": torch.zeros(1)}, scale=2.0)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("kinds.classifier.bias", (1,)), ("gate.classifier.weight", (1, 32)), ("partial.weight", (2, 32))],
)
def test_a_head_tensor_of_another_shape_is_an_error(network: RefusalNetwork, name: str, shape: tuple[int, ...]) -> None:
    """Even one that would broadcast into place."""
    with pytest.raises(RuntimeError, match=name.replace(".", r"\.")):
        network.load_trained({**heads(network.trained()), name: torch.zeros(shape)}, scale=2.0)


def test_an_update_of_another_shape_is_an_error(network: RefusalNetwork) -> None:
    """B of one row gives a delta of shape (1, 32), which would broadcast over all 32 rows of W."""
    layer = "encoder.encoder.layer.0.attention.self.query"
    factors = {f"{layer}.up": torch.ones(1, 3), f"{layer}.down": torch.ones(3, 32)}
    with pytest.raises(RuntimeError, match=r"\(1, 32\) where \(32, 32\) belongs"):
        network.load_trained({**heads(network.trained()), **factors}, scale=2.0)


def test_folded_calibration_is_calibration_of_the_logits(network: RefusalNetwork) -> None:
    """Gate: z → z / 1.7; partial: z → 0.6 z + 0.9; kinds: z → z / 2.5."""
    before = judged(network)
    network.fold_calibration(gate=1.7, partial=(0.6, 0.9), kinds=2.5)
    after = judged(network)
    log_odds_before = before.gate[:, 1] - before.gate[:, 0]
    torch.testing.assert_close(after.gate[:, 1] - after.gate[:, 0], log_odds_before / 1.7, atol=1e-5, rtol=0)
    torch.testing.assert_close(after.partial, 0.6 * before.partial + 0.9, atol=1e-5, rtol=0)
    torch.testing.assert_close(after.kinds, before.kinds / 2.5, atol=1e-5, rtol=0)
