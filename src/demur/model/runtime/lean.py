"""Compute what the heads read, and no more.

The heads read [CLS] alone, so the last layer need not be computed for any other token: its products run for one token a
text, and keys and values not at all. In the other layers query, key and value are one product. The result is the
network's own, but for rounding; every engine runs this form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from demur.model.network import Logits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers.models.bert.modeling_bert import BertLayer

    from demur.model.network import RefusalNetwork

__all__ = ["LeanNetwork"]


class LeanNetwork(nn.Module):
    """Judge texts as `RefusalNetwork` does, with less work; for inference alone."""

    def __init__(self, network: RefusalNetwork) -> None:
        """Take the tensors of a network with plain linear layers: adapters are merged."""
        super().__init__()
        *layers, last = cast("Sequence[BertLayer]", network.encoder.encoder.layer)
        self.embeddings = network.encoder.embeddings
        self.layers = nn.ModuleList(_Layer(layer) for layer in layers)
        self.last = _LastLayer(last)
        self.gate, self.partial, self.kinds = network.gate, network.partial, network.kinds
        self.eval()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Run one pass; both arguments are of *shape* `(batch, tokens)`, the result is as in `Logits`, as a tuple."""
        hidden = self.embeddings(input_ids=input_ids)
        is_seen = attention_mask.bool()[:, None, None, :]
        for layer in (*self.layers, self.last):
            hidden = layer(hidden, is_seen)
        # The heads compute in fp32, whatever the layers compute in.
        hidden = hidden[:, 0].float()
        pooled = self.gate.pooled(hidden)
        logits = Logits(self.gate.classifier(pooled), self.partial(pooled).squeeze(-1), self.kinds(hidden))
        return logits.gate, logits.partial, logits.kinds


class _LayerEnd(nn.Module):
    """Run what follows attention in a layer."""

    def __init__(self, layer: BertLayer) -> None:
        super().__init__()
        self.n_heads = layer.attention.self.num_attention_heads
        self.attention_output, self.intermediate, self.output = layer.attention.output, layer.intermediate, layer.output

    def finished(self, context: Tensor, hidden: Tensor) -> Tensor:
        attended = self.attention_output(context, hidden)
        return self.output(self.intermediate(attended), attended)  # type: ignore[no-any-return]  # nn.Module returns Any


class _Layer(_LayerEnd):
    """Run one layer for all tokens."""

    def __init__(self, layer: BertLayer) -> None:
        super().__init__(layer)
        attention = layer.attention.self
        self.projection = _joined([attention.query, attention.key, attention.value])

    def forward(self, hidden: Tensor, is_seen: Tensor) -> Tensor:
        query, key, value = (self._by_head(part) for part in self.projection(hidden).chunk(3, dim=-1))
        # ONNX Runtime takes no mask that is to be repeated for each query.
        mask = is_seen.expand(-1, -1, query.shape[2], -1)
        context = nn.functional.scaled_dot_product_attention(query, key, value, mask)
        return self.finished(context.transpose(1, 2).flatten(2), hidden)

    def _by_head(self, part: Tensor) -> Tensor:
        return part.reshape(*part.shape[:2], self.n_heads, -1).transpose(1, 2)


class _LastLayer(_LayerEnd):
    """Run one layer for the first token alone, which sees all the others.

    A single query wants neither the keys nor the values of the other tokens. A head with the query q scores token t by
    `q · (W_k x_t + b_k)`: that is `(W_k' q) · x_t`, and `q · b_k`, which is the same for all tokens and leaves softmax
    as it is. The weights a_t of a head sum to 1, so its context is `W_v (Σ a_t x_t) + b_v`. All heads attend to the
    hidden states themselves then, which spares two products of the whole width for each token.
    """

    def __init__(self, layer: BertLayer) -> None:
        super().__init__(layer)
        attention = layer.attention.self
        self.query = attention.query
        # By head, of *shape* `(heads, width of a head, width)`, and `(heads, width, width of a head)`.
        key, value = (
            part.weight.detach().reshape(self.n_heads, -1, part.in_features)
            for part in (attention.key, attention.value)
        )
        self.key, self.value = nn.Parameter(key), nn.Parameter(value.transpose(1, 2).contiguous())
        self.value_bias = attention.value.bias

    def forward(self, hidden: Tensor, is_seen: Tensor) -> Tensor:
        first = hidden[:, :1]
        # Heads come first, since each multiplies all texts by a matrix of its own.
        query = self.query(first).reshape(-1, self.n_heads, self.key.shape[1]).transpose(0, 1)
        asked = (query @ self.key).transpose(0, 1).unsqueeze(1)
        states, mask = hidden.unsqueeze(1), is_seen.expand(-1, -1, self.n_heads, -1)
        scale = self.key.shape[1] ** -0.5
        seen = nn.functional.scaled_dot_product_attention(asked, states, states, mask, scale=scale)
        context = (seen.squeeze(1).transpose(0, 1) @ self.value).transpose(0, 1).flatten(1) + self.value_bias
        return self.finished(context.unsqueeze(1), first)


@torch.no_grad()
def _joined(layers: Sequence[nn.Linear]) -> nn.Linear:
    """Make one linear layer of several that read the same input."""
    # What a fresh layer draws is written over: the generator is to be as it was.
    with torch.random.fork_rng(devices=[]):
        joined = nn.Linear(layers[0].in_features, sum(layer.out_features for layer in layers))
    joined.weight.copy_(torch.cat([layer.weight for layer in layers]))
    joined.bias.copy_(torch.cat([layer.bias for layer in layers]))
    return joined
