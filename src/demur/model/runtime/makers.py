"""Know of each engine beside torch in fp32 what it needs, how its files are written, and how it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from demur.errors import EngineError
from demur.model.runtime.machine import overflows_in_int8
from demur.model.runtime.onnx_engine import OnnxEngine, quantise_for_onnx
from demur.model.runtime.openvino_engine import OpenVinoEngine, quantise_for_openvino
from demur.model.runtime.quantisation import BF16, FP32, SETTINGS, Setting
from demur.model.runtime.rechecking import EnginePair
from demur.model.runtime.torch_engine import TorchEngine
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demur.model.runtime.answers import Engine
    from demur.model.runtime.rechecking import AnyEngine
    from demur.model.weights import Weights
    from demur.verdict import Thresholds

__all__ = ["CAREFUL", "MAKERS", "Maker", "opened"]

CAREFUL = "careful"
"""Folder, in that of an engine with files, of the one that is not quantised and reads again what is in doubt."""

# In log-odds. OpenVINO's int8 moves the gate by 0.13, root mean square, and gives 23 of the 1,184 frozen texts another
# verdict under some policy, and 4 of the 819 refusals another kind. Of these, no verdict and no kind lie further from
# the line than this, and 4 verdicts further than 0.4, which served former weights: one more than an engine may flip. Of
# the texts, 7 in 100 lie nearer to a line of `standard`.
_INT8_MARGIN = 0.5
# bf16 moves it by 0.015, and at most by 0.07 on these texts; without a second reading, 1 verdict and no kind differ.
_BF16_MARGIN = 0.1


class _Write(Protocol):
    def __call__(self, graph: Path, folder: Path, setting: Setting, tokens: Sequence[Sequence[int]]) -> None: ...


class _Open(Protocol):
    def __call__(
        self, weights: Weights, folder: Path, *, name: str, n_threads: int | None, is_careful: bool
    ) -> Engine: ...


@dataclass(frozen=True, slots=True)
class Maker:
    """Make one engine of a network.

    Attributes:
        kind: What the command line calls the engine.
        open: Opens the engine of weights, from the files in a folder where there are any, or the careful one behind it;
            only what reads no file asks for the network, which takes torch.
        write: Writes the files of a setting, in place of those of another, from the network's graph and tokenised
            texts to calibrate on; None where the engine has none, and is only held to fp32 and timed.
        settings: From the boldest to the most cautious; of several, the last is `FP32`.
        margin: How near to a decision, in log-odds, the careful engine reads again; 0 where none is behind it.
        packages: What it needs beside torch: the packages of the extra of its name.
    """

    kind: str
    open: _Open
    write: _Write | None = None
    settings: tuple[Setting, ...] = (BF16,)
    margin: float = 0.0
    packages: tuple[str, ...] = ()

    @property
    def usable_settings(self) -> tuple[Setting, ...]:
        """Return the settings that are worth trying on this processor.

        Where sums of bytes overflow, int8 is not: measured on AVX2, OpenVINO's is slower than its fp32 (0.9), and ONNX
        Runtime's, 1.4 times as quick as its fp32, flipped 5 of the frozen verdicts after the second reading. With
        weights that are unsigned, and so do not overflow, it flips none, and gains 7 % but for that reading.
        """
        return (FP32,) if FP32 in self.settings and overflows_in_int8() else self.settings

    @property
    def is_installed(self) -> bool:
        """Tell whether all packages are there."""
        return all(find_spec(package) is not None for package in self.packages)

    def require(self) -> None:
        """Go on only where all packages are there.

        Raises:
            EngineError: One is not.
        """
        for package in self.packages:
            if find_spec(package) is None:
                message = f"engine {self.kind!r} needs the package {package!r}; run: pip install 'demur[{self.kind}]'"
                raise EngineError(message)

    def versions(self) -> dict[str, str]:
        """Return the versions of torch and of the packages that the engine needs."""
        return {package: metadata.version(package) for package in ("torch", *self.packages)}


def opened(
    maker: Maker,
    weights: Weights,
    folder: Path,
    *,
    name: str,
    setting: str,
    n_threads: int | None = None,
    thresholds: Thresholds | None = None,
) -> AnyEngine:
    """Open an engine from its folder, with the careful one behind it; that one alone where nothing is quantised.

    It is careful near the thresholds that are given; where none are, near those of every policy, so that one reading
    holds them all to fp32. To be so in use would run twice as many texts again, for verdicts that nobody asked for.

    Args:
        maker: Of the engine.
        weights: What it runs.
        folder: Where its files are.
        name: What it is called.
        setting: The name of the one whose files are there.
        n_threads: Cores to use; None for all that this process may use.
        thresholds: What is decided by; None for whatever any policy may decide by.

    Raises:
        EngineError: The files are damaged; the careful one's may show it as late as when it is first needed.
    """

    def open_in(place: Path, *, is_careful: bool = False) -> Engine:
        try:
            return maker.open(weights, place, name=name, n_threads=n_threads, is_careful=is_careful)
        except Exception as error:  # each library has its own
            message = f"engine {name!r} cannot be opened: {error}; remove '{folder}' to build it anew"
            raise EngineError(message) from error

    def open_careful() -> Engine:
        return open_in(folder / CAREFUL, is_careful=True)

    if setting == FP32.name:
        return open_careful()
    quick = open_in(folder)
    if not maker.margin:
        return quick
    return EnginePair(
        quick,
        open_careful,
        thresholds=weights.thresholds if thresholds is None else thresholds,
        others=Policy.refusal_thresholds(weights.thresholds) if thresholds is None else (),
        margin=maker.margin,
    )


def _write_onnx(graph: Path, folder: Path, setting: Setting, tokens: Sequence[Sequence[int]]) -> None:
    del tokens  # the ranges of activations are found as they come
    quantise_for_onnx(graph, folder / "model.onnx", setting=setting)


def _open_onnx(weights: Weights, folder: Path, *, name: str, n_threads: int | None, is_careful: bool) -> Engine:
    del weights, is_careful  # what is not quantised is in fp32
    return OnnxEngine(folder / "model.onnx", name=name, n_threads=n_threads)


def _write_openvino(graph: Path, folder: Path, setting: Setting, tokens: Sequence[Sequence[int]]) -> None:
    quantise_for_openvino(graph, folder / "model.xml", setting=setting, tokens=tokens)


def _open_openvino(weights: Weights, folder: Path, *, name: str, n_threads: int | None, is_careful: bool) -> Engine:
    del weights
    return OpenVinoEngine(folder / "model.xml", name=name, n_threads=n_threads, is_careful=is_careful)


def _open_torch_bf16(weights: Weights, folder: Path, *, name: str, n_threads: int | None, is_careful: bool) -> Engine:
    del folder, name
    return TorchEngine(weights.network, is_bf16=not is_careful, n_threads=n_threads)


MAKERS = {
    maker.kind: maker
    for maker in (
        Maker(
            "openvino",
            _open_openvino,
            _write_openvino,
            SETTINGS,
            _INT8_MARGIN,
            ("openvino", "nncf", "onnx", "onnxscript"),
        ),
        Maker("onnx", _open_onnx, _write_onnx, SETTINGS, _INT8_MARGIN, ("onnxruntime", "onnx", "onnxscript")),
        Maker("torch-bf16", _open_torch_bf16, margin=_BF16_MARGIN),
    )
}
