"""Compute what the heads read, and no more.

The heads read [CLS] alone, so the last layer need not be computed for any other token: its queries, its attention
output and its feed-forward part, ten twelfths of a layer's products, run for one token a text. Query, key and value are
one product. The result is the network's own, but for rounding; every engine runs this form.
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


class _Layer(nn.Module):
    """Run one layer for all tokens."""

    def __init__(self, layer: BertLayer) -> None:
        super().__init__()
        attention = layer.attention.self
        self.n_heads = attention.num_attention_heads
        self.projection = _joined([attention.query, attention.key, attention.value])
        self.attention_output, self.intermediate, self.output = layer.attention.output, layer.intermediate, layer.output

    def forward(self, hidden: Tensor, is_seen: Tensor) -> Tensor:
        query, key, value = self.projection(hidden).chunk(3, dim=-1)
        return self._finished(_attended(query, key, value, is_seen, self.n_heads), hidden)

    def _finished(self, context: Tensor, hidden: Tensor) -> Tensor:
        attended = self.attention_output(context, hidden)
        return self.output(self.intermediate(attended), attended)  # type: ignore[no-any-return]  # nn.Module returns Any


class _LastLayer(_Layer):
    """Run one layer for the first token alone, which sees all the others."""

    def __init__(self, layer: BertLayer) -> None:
        super().__init__(layer)
        attention = layer.attention.self
        self.query = attention.query
        self.projection = _joined([attention.key, attention.value])

    def forward(self, hidden: Tensor, is_seen: Tensor) -> Tensor:
        first = hidden[:, :1]
        key, value = self.projection(hidden).chunk(2, dim=-1)
        return self._finished(_attended(self.query(first), key, value, is_seen, self.n_heads), first)


@torch.no_grad()
def _joined(layers: Sequence[nn.Linear]) -> nn.Linear:
    """Make one linear layer of several that read the same input."""
    joined = nn.Linear(layers[0].in_features, sum(layer.out_features for layer in layers))
    joined.weight.copy_(torch.cat([layer.weight for layer in layers]))
    joined.bias.copy_(torch.cat([layer.bias for layer in layers]))
    return joined


def _attended(query: Tensor, key: Tensor, value: Tensor, is_seen: Tensor, n_heads: int) -> Tensor:
    """Attend; all of *shape* `(batch, tokens, width)` but the mask, which is `(batch, 1, 1, tokens)`."""

    def by_head(part: Tensor) -> Tensor:
        return part.reshape(*part.shape[:2], n_heads, -1).transpose(1, 2)

    # ONNX Runtime takes no mask that is to be repeated for each query.
    mask = is_seen.expand(-1, -1, query.shape[1], -1)
    context = nn.functional.scaled_dot_product_attention(by_head(query), by_head(key), by_head(value), mask)
    return context.transpose(1, 2).flatten(2)
