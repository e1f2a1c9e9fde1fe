"""Choose what runs the network: an engine by name, or the fastest that decides as fp32 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.errors import EngineError
from demur.model.engine_names import EngineName
from demur.model.runtime.building import built, find_built
from demur.model.runtime.machine import gpu, has_bf16, overflows_in_int8
from demur.model.runtime.makers import MAKERS, opened
from demur.model.runtime.torch_engine import TorchEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from demur.model.runtime.building import Built
    from demur.model.runtime.makers import Maker
    from demur.model.runtime.rechecking import AnyEngine
    from demur.model.weights import Weights
    from demur.verdict import Thresholds

__all__ = ["few_texts", "open_engine"]

# Torch judges so many in about the time that building takes.
_FEW_TEXTS = 1_000
# Where engines compute in fp32, too, they gain a fifth: so many rows take torch 17 minutes, and building takes three.
_FEW_TEXTS_IN_FP32 = 25_000


def few_texts() -> int:
    """Return for how many texts at least `auto` builds an engine on this machine."""
    is_in_fp32 = overflows_in_int8() and gpu() is None
    return _FEW_TEXTS_IN_FP32 if is_in_fp32 else _FEW_TEXTS


def open_engine(
    name: str,
    weights: Weights,
    *,
    n_threads: int | None = None,
    n_texts: int | None = None,
    thresholds: Thresholds | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> AnyEngine:
    """Open an engine for weights; all but `torch` are built at first use, and kept.

    Args:
        name: `torch` for fp32, `torch-bf16`, `onnx`, `openvino`; `auto` for the fastest that is installed and decides
            as fp32 does on this machine.
        weights: What it runs.
        n_threads: Cores to use; None for all that this process may use, of which torch has its own opinion.
        n_texts: How many texts there are, where that is known: for few of them, `auto` builds nothing.
        thresholds: What is decided by, where not by the weights' own: near them, what is quantised is not relied on.
        say: Told what is built and what was chosen, a line each; nothing of torch in fp32 where that was asked for.

    Raises:
        EngineError: There is no such engine, a package is missing, the engine cannot be built or opened, or it does not
            decide as fp32 does.
    """
    if name == EngineName.auto:
        is_short = n_texts is not None and n_texts < few_texts()
        return _fastest(weights, n_threads, thresholds, say, is_short=is_short)
    if name == EngineName.torch:
        return TorchEngine(weights.network, n_threads=n_threads)
    if name not in MAKERS:
        message = f"no engine {name!r}; there are {', '.join(EngineName)}"
        raise EngineError(message)
    found = _built(MAKERS[name], weights, n_threads, say)
    if not found.is_held:
        message = f"engine {name!r} does not decide as fp32 does: {found.parity}; take --engine torch"
        raise EngineError(message)
    return _opened(found, weights, n_threads, thresholds, say)


def _fastest(
    weights: Weights,
    n_threads: int | None,
    thresholds: Thresholds | None,
    say: Callable[[str], None],
    *,
    is_short: bool,
) -> AnyEngine:
    """Open the fastest of those that are installed and held to parity; torch in fp32 where none is faster."""
    makers = _candidates()
    found: list[Built] = []
    for maker in makers:
        try:
            known = find_built(maker, weights) if is_short else _built(maker, weights, n_threads, say)
        except EngineError as error:
            say(str(error))
            continue
        if known is not None:
            found.append(known)
    for known in sorted(filter(_is_worth, found), key=lambda known: -known.speedup):
        try:
            return _opened(known, weights, n_threads, thresholds, say)
        except EngineError as error:
            say(str(error))
    engine = TorchEngine(weights.network, n_threads=n_threads)
    why = _why_torch(found, is_any_installed=bool(makers), is_short=is_short)
    say(f"engine: {engine.name} ({why})" if why else f"engine: {engine.name}")
    return engine


def _candidates() -> list[Maker]:
    """Return what is worth trying here: on a GPU, torch alone."""
    kinds = [EngineName.torch_bf16] if has_bf16() else []
    if gpu() is None:
        kinds += [EngineName.openvino, EngineName.onnx]
    return [MAKERS[kind] for kind in kinds if MAKERS[kind].is_installed]


def _why_torch(found: Sequence[Built], *, is_any_installed: bool, is_short: bool) -> str:
    if not is_any_installed:
        return "no other is installed"
    if is_short and not found:
        return f"no other is built for less than {few_texts():,} rows"
    return "; ".join(f"{known.name}: {_why_not(known)}" for known in found)


def _why_not(known: Built) -> str:
    if _is_worth(known):
        return "cannot be opened"
    return "no faster" if known.is_held else str(known.parity)


def _is_worth(known: Built) -> bool:
    return known.is_held and known.speedup > 1


def _built(maker: Maker, weights: Weights, n_threads: int | None, say: Callable[[str], None]) -> Built:
    maker.require()
    found = find_built(maker, weights)
    if found is not None:
        return found
    is_slow = maker.kind == EngineName.torch_bf16 and not has_bf16()
    how_long = "bf16 is slow here, up to twenty times as long as fp32" if is_slow else "a minute or more"
    say(f"building engine {maker.kind}, once for these weights: {how_long}")
    return built(maker, weights, n_threads=n_threads)


def _opened(
    found: Built, weights: Weights, n_threads: int | None, thresholds: Thresholds | None, say: Callable[[str], None]
) -> AnyEngine:
    engine = opened(
        MAKERS[found.kind],
        weights,
        found.folder,
        name=found.name,
        setting=found.setting,
        n_threads=n_threads,
        thresholds=thresholds,
    )
    say(f"engine: {engine.name}, {found.speedup:.1f} times the speed of fp32; {found.parity}")
    return engine
