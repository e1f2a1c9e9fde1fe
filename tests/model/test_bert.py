"""The encoder gives what `transformers` gives, under the same names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel

from demur.errors import WeightsError
from demur.model.bert import Bert, BertShape
from demur.model.encoders import Encoder

if TYPE_CHECKING:
    from pathlib import Path

# Two texts of seven tokens, the second padded by two.
IDS = torch.tensor([[2, 60, 61, 62, 63, 64, 3], [2, 70, 71, 72, 3, 0, 0]])


def reference(folder: Path, activation: str = "gelu") -> BertModel:
    """Build the encoder with `transformers`."""
    config = BertConfig.from_pretrained(folder)
    config.hidden_act = activation
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    model.train(mode=False)
    return model


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu", "silu"])
def test_hidden_states_are_those_of_transformers(tiny_encoder: Path, activation: str) -> None:
    """To 1e-5, for all tokens but padding, whatever the activation."""
    shape = BertShape.read(tiny_encoder / "config.json")
    ours = Bert(BertShape(**{**{name: getattr(shape, name) for name in shape.__slots__}, "hidden_act": activation}))
    ours.load_state_dict(load_file(tiny_encoder / "model.safetensors"))
    mask = (IDS > 0).long()
    with torch.inference_mode():
        found = ours.eval()(input_ids=IDS, attention_mask=mask).last_hidden_state
        expected = reference(tiny_encoder, activation)(input_ids=IDS, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)


def test_tensors_have_the_names_of_standard_checkpoints(tiny_encoder: Path) -> None:
    """None more and none less, in the same order: what is trained here loads there, and the other way round."""
    ours = Encoder.find(str(tiny_encoder)).lean_network().state_dict()
    assert list(ours) == list(reference(tiny_encoder).state_dict())


def test_no_tensor_is_left_to_chance(tiny_encoder: Path) -> None:
    """All are loaded, in fp32, and can be read."""
    tensors = Encoder.find(str(tiny_encoder)).lean_network().state_dict()
    torch.testing.assert_close(tensors, reference(tiny_encoder).state_dict(), atol=0, rtol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "swiglu"}, "hidden_act is 'swiglu'"),
        ({"position_embedding_type": "rotary"}, "must be 'absolute'"),
        ({"is_decoder": True}, "is_decoder is True; it must be false"),
        ({"add_cross_attention": True}, "add_cross_attention is True; it must be false"),
    ],
)
def test_another_kind_of_encoder_is_refused(
    tiny_encoder: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """It would load, and give other numbers."""
    for name in ("tokenizer.json", "model.safetensors"):
        (tmp_path / name).symlink_to(tiny_encoder / name)
    config = json.loads((tiny_encoder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(WeightsError, match=message):
        Encoder.find(str(tmp_path)).lean_network()
