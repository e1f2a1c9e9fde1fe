"""Run texts through the network, by one engine or another."""

from demur.model.runtime.answers import Engine, Probabilities
from demur.model.runtime.batching import infer, judged, length_batches, padded
from demur.model.runtime.rechecking import AnyEngine, unchecked
from demur.model.runtime.torch_engine import TorchEngine

__all__ = [
    "AnyEngine",
    "Engine",
    "Probabilities",
    "TorchEngine",
    "infer",
    "judged",
    "length_batches",
    "padded",
    "unchecked",
]
