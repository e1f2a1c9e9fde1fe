"""Hold the choice of an engine to speed, parity and what is installed, and to saying what was chosen and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from demur.errors import EngineError
from demur.model.runtime import TorchEngine, choice
from demur.model.runtime.building import Built
from demur.model.runtime.choice import open_engine
from demur.model.runtime.makers import MAKERS, Maker
from demur.model.runtime.parity import Parity

if TYPE_CHECKING:
    from demur.model.weights import Weights

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU, auto compares torch with torch alone")


class Named(TorchEngine):
    """Be torch under another name."""

    name = ""


def open_named(weights: Weights, folder: Path, *, name: str, n_threads: int | None, is_careful: bool) -> Named:
    """Open it."""
    del folder, n_threads, is_careful
    engine = Named(weights.network)
    engine.name = name
    return engine


class Shelf:
    """Hold what was built, and what would be if somebody asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace makers and building."""
        self.builds: dict[str, Built | EngineError] = {}
        self.asked: list[str] = []
        self.there: set[str] = set()
        self.lines: list[str] = []
        self._makers = {kind: Maker(kind, open_named) for kind in MAKERS}
        monkeypatch.setattr(choice, "MAKERS", self._makers)
        monkeypatch.setattr(choice, "find_built", self._find)
        monkeypatch.setattr(choice, "built", self._build)
        monkeypatch.setattr(choice, "has_bf16", lambda: False)
        monkeypatch.setattr(choice, "overflows_in_int8", lambda: False)

    def holds(self, kind: str, speedup: float, *, gate_flips: int = 0, is_there: bool = True) -> None:
        """Let an engine of this speed come of a kind; of 1,000 texts, so many flip, and more than 3 are too many."""
        parity = Parity(1_000, gate_flips, 500, 0, 0.0)
        self.builds[kind] = Built(kind, f"{kind}-int8", Path(), "int8", parity, speedup)
        self.there |= {kind} if is_there else set()

    def opens(self, name: str, weights: Weights, n_texts: int | None = None) -> str:
        """Return the name of the engine that is opened, and keep what is said."""
        return open_engine(name, weights, n_texts=n_texts, say=self.lines.append).name

    def damage(self, kind: str) -> None:
        """Take a file away from what was built."""

        def fail(weights: Weights, folder: Path, *, name: str, n_threads: int | None, is_careful: bool) -> Named:
            raise FileNotFoundError((weights, folder, name, n_threads, is_careful) and "no model.onnx")

        self._makers[kind] = replace(self._makers[kind], open=fail)

    def uninstall(self, kind: str) -> None:
        """Let a kind need a package that nobody has."""
        self._makers[kind] = replace(self._makers[kind], packages=("no_such_package",))

    def _find(self, maker: Maker, weights: Weights) -> Built | None:
        return self._build(maker, weights) if maker.kind in self.there else None

    def _build(self, maker: Maker, weights: Weights, *, n_threads: int | None = None) -> Built:
        del weights, n_threads
        if maker.kind not in self.there:
            self.asked.append(maker.kind)
        found = self.builds[maker.kind]
        if isinstance(found, EngineError):
            raise found
        return found


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Return an empty one."""
    return Shelf(monkeypatch)


def test_auto_takes_the_fastest_and_says_so(shelf: Shelf, loaded_weights: Weights) -> None:
    """Of 4 and 2 times the speed of fp32, the former, be it the one or the other."""
    for kind, other in (("openvino", "onnx"), ("onnx", "openvino")):
        shelf.holds(kind, 4)
        shelf.holds(other, 2)
        assert shelf.opens("auto", loaded_weights) == f"{kind}-int8"
        assert shelf.lines[-1] == (
            f"engine: {kind}-int8, 4.0 times the speed of fp32; "
            "0 of 1000 verdicts and 0 of 500 categories differ from fp32"
        )


def test_auto_takes_none_that_decides_otherwise_or_is_slower(shelf: Shelf, loaded_weights: Weights) -> None:
    """One flips 4 verdicts of 1,000, the other takes longer: torch is left, and the line says why."""
    shelf.holds("openvino", 9, gate_flips=4)
    shelf.holds("onnx", 0.9)
    assert shelf.opens("auto", loaded_weights) == TorchEngine(loaded_weights.network).name
    assert "openvino-int8: 4 of 1000 verdicts" in shelf.lines[-1]
    assert "onnx-int8: no faster" in shelf.lines[-1]


def test_auto_builds_what_is_not_there(shelf: Shelf, loaded_weights: Weights) -> None:
    """And says so first, for it takes a while."""
    shelf.holds("openvino", 4, is_there=False)
    shelf.holds("onnx", 2)
    assert shelf.opens("auto", loaded_weights) == "openvino-int8"
    assert shelf.asked == ["openvino"]
    assert shelf.lines[0].startswith("building engine openvino, once for these weights: a minute or more")


@pytest.mark.parametrize(("overflows", "few"), [(False, 1_000), (True, 25_000)])
def test_for_few_texts_auto_builds_nothing_and_takes_what_is_there(
    shelf: Shelf, loaded_weights: Weights, monkeypatch: pytest.MonkeyPatch, *, overflows: bool, few: int
) -> None:
    """999 are few, 1,000 are not; where int8 gains nothing, more are few."""
    monkeypatch.setattr(choice, "overflows_in_int8", lambda: overflows)
    shelf.holds("openvino", 4, is_there=False)
    shelf.holds("onnx", 2, is_there=False)
    assert shelf.opens("auto", loaded_weights, n_texts=few - 1).startswith("torch-fp32")
    assert shelf.lines[-1].endswith(f"(no other is built for less than {few:,} rows)")
    shelf.there.add("onnx")
    assert shelf.opens("auto", loaded_weights, n_texts=few - 1) == "onnx-int8"
    assert shelf.asked == []
    assert shelf.opens("auto", loaded_weights, n_texts=few) == "openvino-int8"
    assert shelf.asked == ["openvino"]


def test_beside_a_gpu_it_does_not_matter_how_the_processor_sums_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is built there runs on the GPU."""
    monkeypatch.setattr(choice, "overflows_in_int8", lambda: True)
    monkeypatch.setattr(choice, "gpu", lambda: "H200")
    assert choice.few_texts() == 1_000


@pytest.mark.parametrize(("has_bf16", "said"), [(True, "a minute or more"), (False, "twenty times as long")])
def test_bf16_where_the_processor_lacks_it_is_said_to_be_slow(
    shelf: Shelf, loaded_weights: Weights, monkeypatch: pytest.MonkeyPatch, *, has_bf16: bool, said: str
) -> None:
    """Before it is built, for that takes long, too."""
    monkeypatch.setattr(choice, "has_bf16", lambda: has_bf16)
    shelf.holds("torch-bf16", 1, is_there=False)
    shelf.opens("torch-bf16", loaded_weights)
    assert said in shelf.lines[0]


def test_auto_goes_on_where_one_cannot_be_built(shelf: Shelf, loaded_weights: Weights) -> None:
    """What is wrong with it is said."""
    shelf.builds["openvino"] = EngineError("no space left")
    shelf.holds("onnx", 2)
    assert shelf.opens("auto", loaded_weights) == "onnx-int8"
    assert "no space left" in shelf.lines


def test_auto_is_torch_where_nothing_else_is_installed(shelf: Shelf, loaded_weights: Weights) -> None:
    """With no extra there is nothing to build, and nothing is an error."""
    shelf.uninstall("openvino")
    shelf.uninstall("onnx")
    assert shelf.opens("auto", loaded_weights).startswith("torch-fp32")
    assert shelf.lines == [f"engine: {TorchEngine(loaded_weights.network).name} (no other is installed)"]


def test_an_engine_that_is_named_is_taken_however_slow(shelf: Shelf, loaded_weights: Weights) -> None:
    """Where it decides as fp32 does."""
    shelf.holds("onnx", 0.5)
    assert shelf.opens("onnx", loaded_weights, n_texts=1) == "onnx-int8"


def test_an_engine_that_is_named_and_cannot_be_taken_is_an_error(shelf: Shelf, loaded_weights: Weights) -> None:
    """It decides otherwise, is not installed, or does not exist; no other takes its place."""
    shelf.holds("onnx", 4, gate_flips=4)
    with pytest.raises(EngineError, match=r"'onnx' does not decide as fp32 does: 4 of 1000 verdicts .* --engine torch"):
        shelf.opens("onnx", loaded_weights)
    shelf.uninstall("openvino")
    with pytest.raises(EngineError, match=r"needs the package 'no_such_package'; run: pip install 'demur\[openvino\]'"):
        shelf.opens("openvino", loaded_weights)
    with pytest.raises(EngineError, match=r"no engine 'cuda'; there are auto, torch, torch-bf16, onnx, openvino"):
        shelf.opens("cuda", loaded_weights)


def test_a_damaged_build_is_named_with_what_repairs_it(shelf: Shelf, loaded_weights: Weights) -> None:
    """Not a library's own error."""
    shelf.holds("onnx", 4)
    shelf.damage("onnx")
    with pytest.raises(EngineError, match=r"'onnx-int8' cannot be opened: no model.onnx; remove '.*' to build"):
        shelf.opens("onnx", loaded_weights)


def test_auto_goes_on_where_the_fastest_is_damaged(shelf: Shelf, loaded_weights: Weights) -> None:
    """To the next, and to torch in the end; what is wrong is said each time."""
    shelf.holds("openvino", 4)
    shelf.holds("onnx", 2)
    shelf.damage("openvino")
    assert shelf.opens("auto", loaded_weights) == "onnx-int8"
    assert "engine 'openvino-int8' cannot be opened: no model.onnx; remove '.' to build it anew" in shelf.lines
    shelf.damage("onnx")
    assert shelf.opens("auto", loaded_weights).startswith("torch-fp32")
    assert shelf.lines[-1].endswith("(openvino-int8: cannot be opened; onnx-int8: cannot be opened)")


def test_torch_is_opened_without_looking_for_others(shelf: Shelf, loaded_weights: Weights) -> None:
    """It is what the others are held to."""
    assert shelf.opens("torch", loaded_weights) == TorchEngine(loaded_weights.network).name
    assert (shelf.asked, shelf.lines) == ([], [])
