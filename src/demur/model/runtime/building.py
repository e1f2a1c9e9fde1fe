"""Build engines from weights once: the boldest setting that decides as fp32 does is kept, with what was measured."""

from __future__ import annotations

import hashlib
import platform
import shutil
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Self
from zipfile import BadZipFile

import numpy as np

from demur.data.rendering import windowed
from demur.errors import EngineError
from demur.model.runtime.answers import Probabilities
from demur.model.runtime.batching import judged
from demur.model.runtime.cache import build, cached, digest
from demur.model.runtime.graph import export_graph
from demur.model.runtime.machine import gpu, instructions, processor
from demur.model.runtime.makers import CAREFUL, opened
from demur.model.runtime.parity import Parity, frozen_texts
from demur.model.runtime.quantisation import FP32
from demur.model.runtime.torch_engine import TorchEngine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demur.model.runtime.makers import Maker
    from demur.model.runtime.rechecking import AnyEngine
    from demur.model.weights import Weights

__all__ = ["Built", "built", "find_built"]

# Of the folder's layout, of how graphs and settings come about, and of how they are run: another number builds anew.
_FORMAT = 7
_EXACT = "exact.npz"
# Texts that both engines are timed on, in turns: enough for a second or two.
_EVERY = 12
_ROUNDS = 2
_SHORT = 8
# What `Built.read` reads.
_NEEDED = ("tried", "speedup")


@dataclass(frozen=True, slots=True)
class Built:
    """Keep what is known of an engine that was built for these weights on a machine like this one.

    Attributes:
        kind: What the command line calls the engine.
        name: What manifests of audits call it: its kind, setting and fingerprint.
        folder: Where its files are.
        setting: The setting that was kept, or the most cautious one where none decided as fp32 does.
        parity: Of that setting.
        speedup: Texts a second over those of torch in fp32, on this machine when it was built.
    """

    kind: str
    name: str
    folder: Path
    setting: str
    parity: Parity
    speedup: float

    @classmethod
    def read(cls, kind: str, folder: Path, manifest: dict[str, Any]) -> Self:
        """Read what a build's manifest says."""
        last, fingerprint = manifest["tried"][-1], folder.name.rpartition("-")[2]
        name = f"{kind}-{last['setting']}-{fingerprint[:_SHORT]}"
        return cls(kind, name, folder, last["setting"], Parity.from_json(last["parity"]), manifest["speedup"])

    @property
    def is_held(self) -> bool:
        """Tell whether the engine passed the check of parity."""
        return self.parity.is_held


def find_built(maker: Maker, weights: Weights) -> Built | None:
    """Return what was built before, or None."""
    found = cached(_place(maker, weights), _NEEDED)
    return None if found is None else Built.read(maker.kind, *found)


def built(maker: Maker, weights: Weights, *, n_threads: int | None = None) -> Built:
    """Return what was built before, or build it: a minute or more, once for each weights, machine and library version.

    Raises:
        EngineError: A package is missing, the engine cannot be built, or the cache cannot be written.
    """
    maker.require()
    found = find_built(maker, weights)
    if found is not None:
        return found
    work = _Work(maker, weights, n_threads)
    return Built.read(maker.kind, *build(_place(maker, weights), work.make, _NEEDED))


def _place(maker: Maker, weights: Weights) -> str:
    return f"{maker.kind}-{digest(_identity(maker, weights))}"


def _identity(maker: Maker, weights: Weights) -> dict[str, Any]:
    """Return all that decides what is built, and how it does here."""
    return {
        **_exact_identity(weights),
        "kind": maker.kind,
        "settings": [asdict(setting) for setting in maker.usable_settings],
        "margin": maker.margin,
        "versions": maker.versions(),
        "machine": _machine(),
    }


def _exact_identity(weights: Weights) -> dict[str, Any]:
    manifest = weights.manifest
    return {
        "format": _FORMAT,
        "demur": metadata.version("demur"),
        **manifest.identity,
        # Known here, too, where the manifest is of before it was kept.
        "encoder": weights.encoder.files_sha256,
        "thresholds": manifest.thresholds,
        "texts": hashlib.sha256("\0".join(frozen_texts().parity).encode()).hexdigest(),
    }


def _machine() -> dict[str, Any]:
    """Return what says how arithmetic is done here, and how quickly."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": processor(),
        "instructions": instructions(),
        "gpu": gpu(),
    }


@dataclass(frozen=True, slots=True)
class _Work:
    """Build one engine."""

    maker: Maker
    weights: Weights
    n_threads: int | None

    def make(self, folder: Path) -> dict[str, Any]:
        """Write the engine's files into the folder, and return its manifest.

        Raises:
            EngineError: A library fails.
        """
        exact_engine = TorchEngine(self.weights.network, n_threads=self.n_threads)
        texts = self._tokens(frozen_texts().parity)
        exact = _exact(self.weights, exact_engine, texts)
        try:
            engine, tried = self._boldest(folder, texts, exact)
        except Exception as error:  # each library has its own
            message = f"engine {self.maker.kind!r} cannot be built here: {error}; take another --engine"
            raise EngineError(message) from error
        return {
            "kind": self.maker.kind,
            "tried": tried,
            "speedup": _speedup(engine, exact_engine, texts[::_EVERY]),
            "identity": _identity(self.maker, self.weights),
        }

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        weights = self.weights
        return windowed(texts, tokenizer=weights.tokenizer, max_tokens=weights.manifest.max_tokens)

    def _export(self, graph: Path, calibration: Sequence[Sequence[int]]) -> None:
        from demur.model.runtime.smoothing import smoothed

        export_graph(smoothed(self.weights.network, calibration), graph)

    def _boldest(
        self, folder: Path, texts: Sequence[Sequence[int]], exact: Probabilities
    ) -> tuple[AnyEngine, list[dict[str, Any]]]:
        """Try settings until one decides as fp32 does; return the last one's engine, and how each did."""
        maker, tried, graph = self.maker, [], folder / "graph.onnx"
        calibration = self._tokens(frozen_texts().calibration)
        careful = folder / CAREFUL
        if maker.write is not None:
            self._export(graph, calibration)
            careful.mkdir()
            maker.write(graph, careful, FP32, calibration)
        for setting in maker.usable_settings:
            if maker.write is not None and setting != FP32:
                maker.write(graph, folder, setting, calibration)
            engine = opened(
                maker, self.weights, folder, name=maker.kind, setting=setting.name, n_threads=self.n_threads
            )
            parity = Parity.of(
                exact, judged(texts, engine), taxonomy=self.weights.taxonomy, thresholds=self.weights.thresholds
            )
            tried.append({"setting": setting.name, "parity": parity.to_json()})
            if parity.is_held:
                break
        graph.unlink(missing_ok=True)
        return engine, tried


def _exact(weights: Weights, engine: TorchEngine, texts: Sequence[Sequence[int]]) -> Probabilities:
    """Return what fp32 finds in the frozen texts, from the cache where it was found before."""
    place = f"{engine.name}-{digest({**_exact_identity(weights), 'machine': _machine()})}"
    if (found := cached(place)) is not None:
        folder, _ = found
        try:
            with (folder / _EXACT).open("rb") as file, np.load(file) as stored:
                return Probabilities(**stored)
        except (EOFError, OSError, TypeError, ValueError, BadZipFile):
            # A manifest without what it is of would stay in the way of a new build.
            shutil.rmtree(folder, ignore_errors=True)
    exact = judged(texts, engine)

    def make(folder: Path) -> dict[str, Any]:
        np.savez(folder / _EXACT, **asdict(exact))
        return {"identity": _exact_identity(weights)}

    build(place, make)
    return exact


def _speedup(engine: AnyEngine, exact: AnyEngine, texts: Sequence[Sequence[int]]) -> float:
    """Return how many times as quick as fp32 an engine is: both in turns, the best time of each."""
    own: list[float] = []
    of_exact: list[float] = []
    for _ in range(_ROUNDS):
        own.append(_seconds(engine, texts))
        of_exact.append(_seconds(exact, texts))
    return min(of_exact) / min(own)


def _seconds(engine: AnyEngine, texts: Sequence[Sequence[int]]) -> float:
    started = time.perf_counter()
    judged(texts, engine)
    return time.perf_counter() - started
