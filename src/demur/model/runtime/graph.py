"""Write the network as an ONNX graph, from which the engines outside of torch are built."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from demur.data.rendering import MAX_TOKENS
from demur.model.runtime.quiet import quiet

if TYPE_CHECKING:
    from pathlib import Path

    from demur.model.runtime.lean import LeanNetwork

__all__ = ["INPUTS", "OUTPUTS", "export_graph"]

INPUTS = ("input_ids", "attention_mask")
OUTPUTS = ("gate", "partial", "kinds")

# From 23 on, ONNX has attention as one operation, which the engines run as one kernel.
_OPSET = 23
# Neither axis may be 1 in what is traced: the exporter would take it for a constant.
_EXAMPLE_SHAPE = (2, 8)


def export_graph(network: LeanNetwork, path: Path) -> None:
    """Write an ONNX graph of one pass, ids and mask to the logits of all heads, in fp32 with both axes free.

    The matrix products of the encoder are named after their layers (`layers.0.intermediate.dense`), so that settings
    can say which of them to quantise.
    """
    import torch

    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=MAX_TOKENS)}
    ids = torch.ones(_EXAMPLE_SHAPE, dtype=torch.int64)
    with quiet("torch.onnx"):
        program = torch.onnx.export(
            network.cpu(),
            (ids, torch.ones_like(ids)),
            dynamo=True,
            input_names=list(INPUTS),
            output_names=list(OUTPUTS),
            dynamic_shapes=(axes, axes),
            opset_version=_OPSET,
            verbose=False,
        )
    if program is None:
        message = "torch.onnx.export gave no program"
        raise RuntimeError(message)
    graph = program.model_proto
    # The exporter keeps shapes from before it transposed constant weights, which ONNX's own inference then contradicts.
    del graph.graph.value_info[:]
    _name_products(graph.graph)
    path.write_bytes(graph.SerializeToString())


def _name_products(graph: Any) -> None:  # noqa: ANN401  # onnx.GraphProto, which strict typing does not know
    """Name each matrix product after its layer, by the scopes that the exporter notes: `['', …, layer, operation]`."""
    for node in graph.node:
        if node.op_type == "MatMul":
            scopes = {entry.key: entry.value for entry in node.metadata_props}.get("pkg.torch.onnx.name_scopes")
            names = ast.literal_eval(scopes) if scopes else []
            if len(names) > 1 and names[-2] and names[-1].startswith("linear"):
                node.name = names[-2]
