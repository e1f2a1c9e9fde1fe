"""Compute what a BERT encoder computes (Devlin et al. 2019), under the names of its tensors in standard checkpoints.

The class of `transformers` gives the same numbers, but its import, which brings compilers and distributed training
along, took a third of the time of an audit of ten rows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple, Self

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Bert", "BertShape", "HiddenStates"]

_ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_new": lambda: nn.GELU(approximate="tanh"),
    "gelu_pytorch_tanh": lambda: nn.GELU(approximate="tanh"),
    "relu": nn.ReLU,
    "silu": nn.SiLU,
}


@dataclass(frozen=True, slots=True)
class BertShape:
    """Keep what `config.json` says of an encoder, under its names; what it leaves out is as in BERT base."""

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3_072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    position_embedding_type: str = "absolute"
    is_decoder: bool = False
    add_cross_attention: bool = False

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a `config.json`.

        Raises:
            ValueError: The file is no JSON object, or describes an encoder that this one cannot be.
        """
        stored = json.loads(path.read_bytes())
        names = {field.name for field in fields(cls)}
        shape = cls(**{name: value for name, value in stored.items() if name in names})
        if shape.hidden_act not in _ACTIVATIONS:
            message = f"hidden_act is {shape.hidden_act!r}; it must be one of {', '.join(_ACTIVATIONS)}"
            raise ValueError(message)
        if shape.position_embedding_type != "absolute":
            message = f"position_embedding_type is {shape.position_embedding_type!r}; it must be 'absolute'"
            raise ValueError(message)
        # The class of `transformers`, which trains, would let tokens see those before them alone.
        for name in ("is_decoder", "add_cross_attention"):
            if getattr(shape, name):
                message = f"{name} is {getattr(shape, name)!r}; it must be false, as of an encoder"
                raise ValueError(message)
        return shape


class HiddenStates(NamedTuple):
    """Keep what the last layer gives.

    Attributes:
        last_hidden_state: *Shape:* `(batch, tokens, width)`.
    """

    last_hidden_state: Tensor


class Bert(nn.Module):
    """Encode texts, without the pooling layer.

    It is what judges; training has the class of `transformers`, whose attention can also be had unfused.
    """

    def __init__(self, shape: BertShape) -> None:
        """Set up an encoder; its tensors hold anything until they are loaded."""
        super().__init__()
        self.config = shape
        self.embeddings = _Embeddings(shape)
        self.encoder = _Layers(shape)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> HiddenStates:
        """Run one pass.

        Args:
            input_ids: *Shape:* `(batch, tokens)`.
            attention_mask: *Shape:* `(batch, tokens)`, 1 for text and 0 for padding.
        """
        hidden = self.embeddings(input_ids=input_ids)
        is_seen = attention_mask.bool()[:, None, None, :]
        for layer in self.encoder.layer:
            hidden = layer(hidden, is_seen)
        return HiddenStates(hidden)


class _Embeddings(nn.Module):
    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        width = shape.hidden_size
        self.word_embeddings = _empty(shape.vocab_size, width)
        self.position_embeddings = _empty(shape.max_position_embeddings, width)
        self.token_type_embeddings = _empty(shape.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.hidden_dropout_prob)

    def forward(self, input_ids: Tensor) -> Tensor:
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        # A text is one segment, the first.
        segment = self.token_type_embeddings.weight[0]
        embedded = self.word_embeddings(input_ids) + segment + self.position_embeddings(positions)
        return self.dropout(self.LayerNorm(embedded))  # type: ignore[no-any-return]  # nn.Module returns Any


def _empty(n: int, width: int) -> nn.Embedding:
    """Make a table to be loaded: to draw twelve million numbers first takes a tenth of a second.

    `torch.device("meta")` would draw none either, and imports a compiler to do so.
    """
    table: nn.Embedding = nn.Embedding.from_pretrained(torch.empty(n, width), freeze=False)  # type: ignore[no-untyped-call]
    return table


class _Layers(nn.Module):
    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(shape) for _ in range(shape.num_hidden_layers))


class _Layer(nn.Module):
    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        self.attention = _Attention(shape)
        self.intermediate = _Intermediate(shape)
        self.output = _Output(shape.intermediate_size, shape)

    def forward(self, hidden: Tensor, is_seen: Tensor) -> Tensor:
        attended = self.attention(hidden, is_seen)
        return self.output(self.intermediate(attended), attended)  # type: ignore[no-any-return]  # nn.Module returns Any


class _Attention(nn.Module):
    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        self.self = _SelfAttention(shape)
        self.output = _Output(shape.hidden_size, shape)

    def forward(self, hidden: Tensor, is_seen: Tensor) -> Tensor:
        return self.output(self.self(hidden, is_seen), hidden)  # type: ignore[no-any-return]  # nn.Module returns Any


class _SelfAttention(nn.Module):
    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        width = shape.hidden_size
        self.num_attention_heads = shape.num_attention_heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, hidden: Tensor, is_seen: Tensor) -> Tensor:
        query, key, value = (
            layer(hidden).unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        context = nn.functional.scaled_dot_product_attention(query, key, value, is_seen)
        return context.transpose(1, 2).flatten(2)


class _Intermediate(nn.Module):
    def __init__(self, shape: BertShape) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.hidden_size, shape.intermediate_size)
        self.intermediate_act_fn = _ACTIVATIONS[shape.hidden_act]()

    def forward(self, hidden: Tensor) -> Tensor:
        return self.intermediate_act_fn(self.dense(hidden))  # type: ignore[no-any-return]  # nn.Module returns Any


class _Output(nn.Module):
    def __init__(self, n_inputs: int, shape: BertShape) -> None:
        super().__init__()
        self.dense = nn.Linear(n_inputs, shape.hidden_size)
        self.LayerNorm = nn.LayerNorm(shape.hidden_size, eps=shape.layer_norm_eps)
        self.dropout = nn.Dropout(shape.hidden_dropout_prob)

    def forward(self, hidden: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(hidden)) + residual)  # type: ignore[no-any-return]  # nn.Module returns Any
