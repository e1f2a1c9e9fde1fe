"""Hold building to the boldest setting that decides as fp32 does, and to doing it once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from demur.errors import EngineError
from demur.model.runtime import Probabilities, TorchEngine, building, makers
from demur.model.runtime.building import built, find_built
from demur.model.runtime.makers import CAREFUL as CAREFUL_FOLDER
from demur.model.runtime.makers import MAKERS, Maker, opened
from demur.model.runtime.quantisation import BF16, FP32, Setting
from demur.model.runtime.rechecking import EnginePair

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from demur.model.runtime.parity import FrozenTexts
    from demur.model.weights import Weights

pytestmark = pytest.mark.usefixtures("empty_cache", "few_texts")

BOLD, CAREFUL = Setting("bold"), Setting("careful", ("layers.0.",))


class Bent(TorchEngine):
    """Answer as torch does, but with the gate turned round, and sure of it, where the setting is bold."""

    is_bent = False
    is_doubting = False

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Answer."""
        answer = super().run(input_ids, attention_mask)
        if self.is_doubting:
            return replace(answer, refusal=np.full_like(answer.refusal, 0.49))
        if self.is_bent:
            surely = np.eye(answer.kinds.shape[1])[answer.kinds.argmax(1)]
            turned = np.where(answer.refusal < 0.5, 0.99, 0.01)
            return replace(answer, refusal=turned, partial=np.zeros_like(turned), kinds=surely)
        return answer


@dataclass
class Making:
    """Keep what was written, and open engines that are bent, or in doubt, where the setting is one of those named."""

    bent: tuple[str, ...] = ()
    doubting: tuple[str, ...] = ()
    written: list[str] = field(default_factory=list)
    calibrated_on: int = 0

    def write(self, graph: Path, folder: Path, setting: Setting, tokens: Sequence[Sequence[int]]) -> None:
        """Write the name of the setting."""
        assert graph.is_file()
        self.written.append(setting.name)
        self.calibrated_on = len(tokens)
        (folder / "model").write_text(setting.name, encoding="utf-8")

    def open(self, weights: Weights, folder: Path, *, name: str, n_threads: int | None, is_careful: bool) -> Bent:
        """Read it; what is careful reads what is not quantised."""
        del name
        assert is_careful is (folder.name == CAREFUL_FOLDER)
        engine = Bent(weights.network, n_threads=n_threads)
        setting = (folder / "model").read_text(encoding="utf-8")
        engine.is_bent, engine.is_doubting = setting in self.bent, setting in self.doubting
        return engine

    def maker(self) -> Maker:
        """Return what builds so."""
        return Maker("bending", self.open, self.write, (BOLD, CAREFUL, FP32), margin=0.25)


@pytest.fixture(autouse=True)
def no_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no graph: its export needs packages that may not be installed."""
    monkeypatch.setattr(building, "export_graph", lambda _, path: path.touch())


@pytest.fixture(autouse=True)
def is_overflowing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let int8 be worth trying, whatever computes this, unless a test says otherwise."""
    overflows = getattr(request, "param", False)
    monkeypatch.setattr(makers, "overflows_in_int8", lambda: overflows)


def test_the_boldest_setting_that_agrees_is_kept(loaded_weights: Weights, few_texts: FrozenTexts) -> None:
    """The bold one flips all 24 verdicts; the careful one none, so nothing more cautious is tried in its place."""
    making = Making(bent=("bold",))
    found = built(making.maker(), loaded_weights)
    assert (found.setting, found.is_held, found.parity.gate_flips) == ("careful", True, 0)
    assert making.written == ["fp32", "bold", "careful"]
    assert making.calibrated_on == len(few_texts.calibration)
    assert found.name.startswith("bending-careful-")
    assert found.speedup > 0


def test_the_manifest_says_what_was_tried(loaded_weights: Weights) -> None:
    """Settings with their counts, what it was built for, and no graph is left beside it."""
    found = built(Making(bent=("bold",)).maker(), loaded_weights)
    manifest = json.loads((found.folder / "engine.json").read_text(encoding="utf-8"))
    assert [(tried["setting"], tried["parity"]["gate_flips"]) for tried in manifest["tried"]] == [
        ("bold", 24),
        ("careful", 0),
    ]
    assert manifest["identity"]["weights"] == loaded_weights.manifest.tensors_sha256
    assert "torch" in manifest["identity"]["versions"]
    assert sorted(path.name for path in found.folder.iterdir()) == ["careful", "engine.json", "model"]


def test_it_is_built_once(loaded_weights: Weights) -> None:
    """The second time it is found, and is the same."""
    making = Making()
    assert find_built(making.maker(), loaded_weights) is None
    first = built(making.maker(), loaded_weights)
    assert built(making.maker(), loaded_weights) == find_built(making.maker(), loaded_weights) == first
    assert making.written == ["fp32", "bold"]


@pytest.mark.parametrize(
    "change",
    [
        {"tensors_sha256": "0" * 64},
        {"max_tokens": 100},
        {"earlier_tokens": None},
        {"thresholds": {"refusal": 0.4}},
        {"low_rank_scale": 9.0},
    ],
)
def test_other_weights_are_built_anew(loaded_weights: Weights, change: dict[str, object]) -> None:
    """By all of the manifest that decides verdicts."""
    maker = Making().maker()
    built(maker, loaded_weights)
    others = replace(loaded_weights, manifest=loaded_weights.manifest.model_copy(update=change))
    assert find_built(maker, others) is None


def test_another_tokenizer_is_built_for_anew(loaded_weights: Weights) -> None:
    """What fp32 says of the frozen texts follows from it, under the same tensors."""
    maker = Making().maker()
    built(maker, loaded_weights)
    encoder = loaded_weights.encoder
    other = replace(encoder, digests={**encoder.digests, "tokenizer.json": "0" * 64})
    assert find_built(maker, replace(loaded_weights, encoder=other)) is None


def test_a_manifest_that_lacks_what_is_read_is_built_anew(loaded_weights: Weights) -> None:
    """And is whole from then on."""
    making = Making()
    first = built(making.maker(), loaded_weights)
    (first.folder / "engine.json").write_text('{"kind": "bending"}', encoding="utf-8")
    assert find_built(making.maker(), loaded_weights) is None
    again = built(making.maker(), loaded_weights)
    assert (again.folder, again.setting) == (first.folder, "bold")
    assert find_built(making.maker(), loaded_weights) == again
    assert making.written == ["fp32", "bold", "fp32", "bold"]


@pytest.mark.parametrize("is_missing", [True, False])
def test_what_fp32_found_is_found_anew_where_it_is_damaged(
    is_missing: bool, loaded_weights: Weights, empty_cache: Path
) -> None:
    """Its manifest alone does not make it whole."""
    built(Making().maker(), loaded_weights)
    (stored,) = empty_cache.glob("*/exact.npz")
    whole = stored.read_bytes()
    if is_missing:
        stored.unlink()
    else:
        stored.write_bytes(whole[:-100])
    assert built(replace(Making().maker(), kind="other"), loaded_weights).is_held
    assert len(stored.read_bytes()) == len(whole)


def test_where_no_setting_agrees_none_is_kept(loaded_weights: Weights) -> None:
    """The figures are those of the most cautious, and it is known the next time."""
    making = Making(bent=("bold", "careful", "fp32"))
    found = built(making.maker(), loaded_weights)
    assert (found.setting, found.is_held, found.parity.gate_flips) == ("fp32", False, 24)
    assert find_built(making.maker(), loaded_weights) == found


def test_what_is_in_doubt_is_read_again_by_the_fp32_engine(loaded_weights: Weights) -> None:
    """A bold setting that knows nothing, and says so, decides as fp32 does; what flips surely is not held."""
    making = Making(doubting=("bold",))
    found = built(making.maker(), loaded_weights)
    assert (found.setting, found.parity.gate_flips) == ("bold", 0)
    assert (found.folder / CAREFUL_FOLDER / "model").read_text(encoding="utf-8") == "fp32"


def test_the_fp32_setting_is_the_careful_engine_alone(loaded_weights: Weights) -> None:
    """It is written once, and reads nothing twice."""
    making = Making(bent=("bold", "careful"), doubting=("fp32",))
    maker = making.maker()
    found = built(maker, loaded_weights)
    assert making.written == ["fp32", "bold", "careful"]
    # Whoever doubts is not read again by another, and knows nothing.
    assert (found.setting, found.is_held, found.parity.gate_flips > 0) == ("fp32", False, True)
    engine = opened(maker, loaded_weights, found.folder, name=found.name, setting=found.setting)
    assert isinstance(engine, Bent)
    assert engine.is_doubting


@pytest.mark.parametrize("is_overflowing", [True], indirect=True)
def test_int8_is_not_tried_where_it_overflows(loaded_weights: Weights) -> None:
    """What computes in bf16 alone is, all the same."""
    making = Making()
    assert built(making.maker(), loaded_weights).setting == "fp32"
    assert making.written == ["fp32"]
    assert MAKERS["torch-bf16"].usable_settings == (BF16,)


def test_another_margin_is_another_engine(loaded_weights: Weights) -> None:
    """It decides what is read again."""
    maker = Making().maker()
    built(maker, loaded_weights)
    assert find_built(replace(maker, margin=0.3), loaded_weights) is None


def test_what_a_library_raises_is_told_as_ours(loaded_weights: Weights, empty_cache: Path) -> None:
    """With the engine's name, and nothing but what fp32 said is kept."""

    def fail(graph: Path, folder: Path, setting: Setting, tokens: Sequence[Sequence[int]]) -> None:
        raise ZeroDivisionError((graph, folder, setting, tokens) and "no such operation")

    maker = replace(Making().maker(), write=fail)
    with pytest.raises(EngineError, match=r"engine 'bending' cannot be built here: no such operation; take another"):
        built(maker, loaded_weights)
    assert [path.name[:11] for path in empty_cache.iterdir()] == ["torch-fp32-"]


def test_torch_in_bf16_is_held_to_fp32_too(loaded_weights: Weights) -> None:
    """It has no files of its own, and fp32 behind it."""
    found = built(MAKERS["torch-bf16"], loaded_weights)
    assert found.setting == "bf16"
    pair = opened(MAKERS["torch-bf16"], loaded_weights, found.folder, name=found.name, setting="bf16")
    assert isinstance(pair, EnginePair)
    assert [engine.name[:10] for engine in (pair.quick, pair.careful)] == ["torch-bf16", "torch-fp32"]
    assert found.parity.texts == 24
    assert np.isfinite(found.parity.gate_error)
    assert 0 < found.parity.gate_error < 0.05
