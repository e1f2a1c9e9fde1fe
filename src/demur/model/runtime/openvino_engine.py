"""Run the network in OpenVINO: int8 where the setting says so, bf16 for the rest where the processor has it."""

from __future__ import annotations

import contextlib
import sys
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.model.runtime.answers import Probabilities
from demur.model.runtime.batching import TOKENS_STEP
from demur.model.runtime.graph import INPUTS
from demur.model.runtime.quiet import quiet
from demur.model.runtime.threads import cores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from demur.model.runtime.quantisation import Setting

__all__ = ["OpenVinoEngine", "in_steps", "no_telemetry", "quantise_for_openvino"]

# Kernels are made for a shape. An audit of 4,556 rows grows to 1.04 GB with the default of 5,000, to 0.92 GB with this
# many, at the same pace; where every length had kernels of its own, it was 2.1 and 1.2 GB.
_KEPT_KERNELS = "64"


class OpenVinoEngine:
    """Run one batch on each core at once: two cores on one batch wait for each other."""

    # A core to each batch: 3 % faster than with twice as many, which are further from the core.
    batch_tokens = 1_024

    def __init__(self, path: Path, *, name: str, n_threads: int | None = None, is_careful: bool = False) -> None:
        """Load what `quantise_for_openvino` wrote.

        Args:
            path: The `.xml` file, with its `.bin` beside it.
            name: What manifests and reports call the engine.
            n_threads: Cores to use; None for all that this process may use.
            is_careful: Whether to compute in fp32 what is not quantised, on every processor.
        """
        with no_telemetry():
            import openvino

        n_streams = cores() if n_threads is None else n_threads
        core = openvino.Core()
        has_bf16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        settings = {
            "INFERENCE_NUM_THREADS": n_streams,
            "NUM_STREAMS": n_streams,
            "INFERENCE_PRECISION_HINT": "bf16" if has_bf16 and not is_careful else "f32",
            "CPU_RUNTIME_CACHE_CAPACITY": _KEPT_KERNELS,
        }
        compiled = core.compile_model(str(path), "CPU", settings)
        self.name = name
        self.n_streams = n_streams
        self.n_categories = int(compiled.output("kinds").partial_shape[1].get_length())
        # A request holds the memory of one pass, and belongs to one thread at a time.
        self._requests: SimpleQueue[Any] = SimpleQueue()
        for _ in range(n_streams):
            self._requests.put(compiled.create_infer_request())
        # What OpenVINO's binding sets up at first use (pybind11's hold on NumPy) locks up for ever if two threads come
        # to it at once: one holds its guard and waits for Python's lock, the other the reverse.
        self.run(np.zeros((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.int64))

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Judge a batch; both arrays are of *shape* `(batch, tokens)`."""
        given = map(in_steps, (input_ids, attention_mask))
        request = self._requests.get()
        try:
            request.infer(dict(zip(INPUTS, given, strict=True)))
            # Copied before the request goes back: its memory is written to again.
            gate, partial, kinds = (request.get_output_tensor(place).data.copy() for place in range(3))
        finally:
            self._requests.put(request)
        return Probabilities.of_logits(gate, partial, kinds)


def in_steps(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pad ids, or their mask, with zeros to a length that attention is fast at; of *shape* `(batch, tokens)`.

    Attention takes a quarter less time for a token where texts are a multiple of its kernels' width, and a few lengths
    need fewer kernels than all: a tenth more texts a second of 170 tokens, padding paid for, and a tenth less of those
    below 40, which take little. Where an encoder's positions end before the next multiple, OpenVINO looks up zeros, and
    nobody attends to them.
    """
    return np.pad(array, ((0, 0), (0, -array.shape[1] % TOKENS_STEP)))


def quantise_for_openvino(graph: Path, path: Path, *, setting: Setting, tokens: Sequence[Sequence[int]]) -> None:
    """Quantise weights and activations to int8 after training, and write the model.

    Args:
        graph: What `export_graph` wrote.
        path: The `.xml` file to write, and a `.bin` beside it.
        setting: Which layers are quantised.
        tokens: Tokenised texts on which the ranges of activations are found.
    """
    with no_telemetry():
        import nncf
        import openvino

    model = openvino.Core().read_model(graph)
    _drop_guards(model)
    products = [node.get_friendly_name() for node in model.get_ops() if node.get_type_name() == "MatMul"]
    if setting.quantised(products):
        # Looked-up embeddings cost no product, and attention is small beside the layers: both stay as they are.
        kept = [*filter(setting.keeps, products), *_named(model, "Gather", "ScaledDotProductAttention")]
        with quiet("nncf"):
            model = nncf.quantize(
                model,
                nncf.Dataset(tokens, _inputs),
                model_type=nncf.ModelType.TRANSFORMER,
                subset_size=len(tokens),
                ignored_scope=nncf.IgnoredScope(names=kept),
                # The graph comes smoothed.
                advanced_parameters=nncf.AdvancedQuantizationParameters(
                    smooth_quant_alphas=nncf.AdvancedSmoothQuantParameters(convolution=-1, matmul=-1)
                ),
            )
    openvino.save_model(model, str(path), compress_to_fp16=False)


def _drop_guards(model: Any) -> None:  # noqa: ANN401  # openvino.Model, which strict typing does not know
    """Take out what makes 0 of the attention of a query that may see nothing: every text has a token to be seen.

    OpenVINO's reader puts it behind each attention, where it takes 4 % of the time.
    """
    for node in model.get_ops():
        if node.get_type_name() == "Select" and node.input_value(0).get_node().get_type_name() == "IsNaN":
            node.output(0).replace(node.input_value(2))


def _named(model: Any, *types: str) -> list[str]:  # noqa: ANN401  # openvino.Model, which strict typing does not know
    return [node.get_friendly_name() for node in model.get_ops() if node.get_type_name() in types]


def _inputs(ids: Sequence[int]) -> dict[str, NDArray[np.int64]]:
    row = np.array([ids], dtype=np.int64)
    return dict(zip(INPUTS, (row, np.ones_like(row)), strict=True))


@contextlib.contextmanager
def no_telemetry() -> Iterator[None]:
    """Keep OpenVINO and NNCF from reporting to their makers, which both do as soon as they are imported.

    Neither has a switch for it that is not written into the user's home; without the package that reports, both go
    without.
    """
    name = "openvino_telemetry"
    before = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]  # which is how an import is refused
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
