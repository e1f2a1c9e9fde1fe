"""Choose what runs the network: an engine by name, or the fastest that decides as fp32 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.errors import EngineError
from demur.model.engine_names import EngineName
from demur.model.runtime.building import built, find_built
from demur.model.runtime.makers import MAKERS
from demur.model.runtime.torch_engine import TorchEngine, has_bf16

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.model.runtime.answers import Engine
    from demur.model.runtime.building import Built
    from demur.model.runtime.makers import Maker
    from demur.model.weights import Weights

__all__ = ["FEW_TEXTS", "open_engine"]

FEW_TEXTS = 1_000
"""Texts that torch judges in about the time that it takes to build another engine."""


def open_engine(
    name: str,
    weights: Weights,
    *,
    n_threads: int | None = None,
    n_texts: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Engine:
    """Open an engine for weights; all but `torch` are built at first use, and kept.

    Args:
        name: `torch` for fp32, `torch-bf16`, `onnx`, `openvino`; `auto` for the fastest that is installed and decides
            as fp32 does on this machine.
        weights: What it runs.
        n_threads: Cores to use; None for all that this process may use, of which torch has its own opinion.
        n_texts: How many texts there are, where that is known: for few of them, `auto` builds nothing.
        say: Told what is built and what was chosen, a line each.

    Raises:
        EngineError: There is no such engine, a package is missing, or the engine does not decide as fp32 does.
    """
    if name == EngineName.auto:
        return _fastest(weights, n_threads, n_texts, say)
    if name == EngineName.torch:
        engine = TorchEngine(weights.network, n_threads=n_threads)
        say(f"engine: {engine.name}")
        return engine
    if name not in MAKERS:
        message = f"no engine {name!r}; there are {', '.join(EngineName)}"
        raise EngineError(message)
    maker = MAKERS[name]
    found = _built(maker, weights, n_threads, say)
    if not found.is_held:
        message = f"engine {name!r} does not decide as fp32 does: {found.parity}; take --engine torch"
        raise EngineError(message)
    say(f"engine: {found.name}; {found.parity}")
    return maker.open(weights.network, found.folder, name=found.name, n_threads=n_threads)


def _built(maker: Maker, weights: Weights, n_threads: int | None, say: Callable[[str], None]) -> Built:
    found = find_built(maker, weights) if maker.is_installed else None
    if found is not None:
        return found
    maker.require()
    say(f"building engine {maker.kind}: a minute or so, once for these weights")
    return built(maker, weights, n_threads=n_threads)


def _fastest(weights: Weights, n_threads: int | None, n_texts: int | None, say: Callable[[str], None]) -> Engine:
    """Open the fastest of those that are installed and held to parity; torch in fp32 where none is faster."""
    makers = _candidates()
    is_short = n_texts is not None and n_texts < FEW_TEXTS
    found: dict[str, Built] = {}
    for maker in makers:
        try:
            known = find_built(maker, weights) if is_short else _built(maker, weights, n_threads, say)
        except EngineError as error:
            say(str(error))
            continue
        if known is not None:
            found[maker.kind] = known
    fitting = {kind: known for kind, known in found.items() if known.is_held and known.speedup > 1}
    if not fitting:
        engine = TorchEngine(weights.network, n_threads=n_threads)
        say(f"engine: {engine.name}{_why_torch(found, is_built=not is_short)}")
        return engine
    kind = max(fitting, key=lambda kind: fitting[kind].speedup)
    best = fitting[kind]
    say(f"engine: {best.name}, {best.speedup:.1f} times as fast as fp32; {best.parity}")
    return MAKERS[kind].open(weights.network, best.folder, name=best.name, n_threads=n_threads)


def _candidates() -> list[Maker]:
    """Return what is worth trying here: on a GPU, torch alone."""
    import torch

    kinds = ["torch-bf16"] if has_bf16() else []
    others = [] if torch.cuda.is_available() else [kind for kind in MAKERS if kind != "torch-bf16"]
    return [MAKERS[kind] for kind in (*kinds, *others) if MAKERS[kind].is_installed]


def _why_torch(found: dict[str, Built], *, is_built: bool) -> str:
    """Say why nothing faster was taken."""
    if not is_built and not found:
        return f" (no other is built yet, and for less than {FEW_TEXTS:,} texts none is)"
    failed = [f"{kind} {'is no faster' if known.is_held else known.parity}" for kind, known in found.items()]
    return f" ({'; '.join(failed)})" if failed else ""
