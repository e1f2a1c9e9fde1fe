"""Run the network in ONNX Runtime, the matrix products that the setting names in int8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.model.runtime.answers import Probabilities
from demur.model.runtime.graph import INPUTS, OUTPUTS
from demur.model.runtime.quiet import quiet
from demur.model.runtime.threads import cores

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from demur.model.runtime.quantisation import Setting

__all__ = ["OnnxEngine", "quantise_for_onnx"]


class OnnxEngine:
    """Run one batch on each core at once: two cores on one batch wait for each other."""

    # A core to each batch: 5 % faster than with twice as many, which are further from the core.
    batch_tokens = 1_024

    def __init__(self, path: Path, *, name: str, n_threads: int | None = None) -> None:
        """Load what `quantise_for_onnx` wrote.

        Args:
            path: The `.onnx` file.
            name: What manifests and reports call the engine.
            n_threads: Cores to use; None for all that this process may use.
        """
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # The thread that calls is the one that computes, and several may call.
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.name = name
        self.n_streams = cores() if n_threads is None else n_threads
        widths = {output.name: output.shape[-1] for output in self._session.get_outputs()}
        self.n_categories = int(widths["kinds"])

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Judge a batch; both arrays are of *shape* `(batch, tokens)`."""
        given = dict(zip(INPUTS, (input_ids, attention_mask), strict=True))
        return Probabilities.of_logits(*self._session.run(list(OUTPUTS), given))


def quantise_for_onnx(graph: Path, path: Path, *, setting: Setting) -> None:
    """Quantise weights to int8, and activations as they come, and write the model.

    The range of activations is that of the batch, so what a text is told depends a little on its neighbours.

    Args:
        graph: What `export_graph` wrote.
        path: The `.onnx` file to write.
        setting: Which layers are quantised.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(graph)
    products = [node.name for node in model.graph.node if node.op_type == "MatMul"]
    chosen = setting.quantised(products)
    if not chosen:
        onnx.save(model, path)
        return
    with quiet("root"):
        quantize_dynamic(model, path, weight_type=QuantType.QInt8, per_channel=True, nodes_to_quantize=chosen)
