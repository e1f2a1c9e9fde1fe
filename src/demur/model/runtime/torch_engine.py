"""Run the network in torch: fp32, which every other engine is measured against, or bf16."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from demur.model.runtime.answers import Probabilities

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from demur.model.network import RefusalNetwork
    from demur.model.runtime.lean import LeanNetwork

__all__ = ["TorchEngine"]


class TorchEngine:
    """Run the network on the CPU, or on the first CUDA device where there is one."""

    # One batch at a time: torch shares a batch among its threads.
    n_streams = 1
    batch_tokens = 2_048

    def __init__(self, network: RefusalNetwork, *, is_bf16: bool = False, n_threads: int | None = None) -> None:
        """Take a network that is calibrated and ready to judge, and leave it as it is.

        Args:
            network: With plain linear layers.
            is_bf16: Whether the encoder computes in bf16; the heads stay in fp32.
            n_threads: Threads that torch uses in this whole process; None leaves them as they are.
        """
        import torch

        from demur.model.runtime.lean import LeanNetwork

        if n_threads is not None:
            torch.set_num_threads(n_threads)
        self._device = _device()
        self._precision = "bf16" if is_bf16 else "fp32"
        lean = LeanNetwork(network)
        if self._device != "cpu":
            # It shares parts with the network, and `to` moves them where they are.
            lean = copy.deepcopy(lean)
        self._network = (_in_bf16(lean) if is_bf16 else lean).to(self._device)

    @property
    def name(self) -> str:
        """Return the engine and its arithmetic."""
        return f"torch-{self._precision}-{self._device}"

    @property
    def n_categories(self) -> int:
        """Return the width of the category head."""
        return int(self._network.kinds.classifier.out_features)

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Judge a batch; both arrays are of *shape* `(batch, tokens)`."""
        import torch

        with torch.inference_mode():
            ids, mask = (torch.from_numpy(array).to(self._device) for array in (input_ids, attention_mask))
            gate, partial, kinds = (logits.float().cpu().numpy() for logits in self._network(ids, mask))
        return Probabilities.of_logits(gate, partial, kinds)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _in_bf16(lean: LeanNetwork) -> LeanNetwork:
    """Put encoder layers of its own in bf16 in place of those that it shares; the heads read what comes out in fp32."""
    lean.embeddings = copy.deepcopy(lean.embeddings).bfloat16()
    lean.layers, lean.last = copy.deepcopy(lean.layers).bfloat16(), copy.deepcopy(lean.last).bfloat16()
    return lean
