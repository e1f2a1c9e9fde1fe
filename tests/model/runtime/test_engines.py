"""Hold the engines outside of torch to torch: the same logits where nothing is quantised, near ones where all is."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from demur.data.rendering import windowed
from demur.model.runtime import Probabilities, TorchEngine, judged, makers, unchecked
from demur.model.runtime.building import built
from demur.model.runtime.graph import export_graph
from demur.model.runtime.machine import overflows_in_int8
from demur.model.runtime.makers import MAKERS
from demur.model.runtime.openvino_engine import OpenVinoEngine, in_steps
from demur.model.runtime.quantisation import FP32, SETTINGS, Setting
from demur.model.runtime.smoothing import smoothed
from tests.few_texts import FEW_TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    from demur.model.runtime import Engine
    from demur.model.weights import Weights

EVERYTHING = Setting("everything")
KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed"))
    for kind, package in (("onnx", "onnxruntime"), ("openvino", "nncf"))
]


@pytest.fixture(scope="module")
def tokens(loaded_weights: Weights) -> list[list[int]]:
    """Tokenise the few texts, and one that fills the window."""
    texts = (*FEW_TEXTS.parity, "<|assistant|>" + "sorry " * 600)
    return windowed(texts, tokenizer=loaded_weights.tokenizer, max_tokens=512)


@pytest.fixture(scope="module")
def graph(loaded_weights: Weights, tokens: list[list[int]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export the tiny network once."""
    pytest.importorskip("onnxscript")
    path = tmp_path_factory.mktemp("graph") / "graph.onnx"
    export_graph(smoothed(loaded_weights.network, tokens), path)
    return path


def opened(  # what an engine is made of
    kind: str,
    graph: Path,
    folder: Path,
    setting: Setting,
    weights: Weights,
    tokens: list[list[int]],
    *,
    is_careful: bool = False,
) -> Engine:
    """Write the files of a setting, and open them on two threads.

    Calibrated on the texts that are judged: a network this small takes to no other ranges than those it meets.
    """
    maker = MAKERS[kind]
    assert maker.write is not None
    maker.write(graph, folder, setting, tokens)
    return maker.open(weights, folder, name="an-engine", n_threads=2, is_careful=is_careful)


def furthest(one: Probabilities, other: Probabilities) -> float:
    """Return the largest difference of any probability."""
    pairs = ((one.refusal, other.refusal), (one.partial, other.partial), (one.kinds, other.kinds))
    return max(float(np.abs(mine - its).max()) for mine, its in pairs)


@pytest.mark.parametrize("is_careful", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_quantised_the_probabilities_are_those_of_torch(  # fixtures
    kind: str, *, is_careful: bool, graph: Path, tmp_path: Path, loaded_weights: Weights, tokens: list[list[int]]
) -> None:
    """All heads, in fp32 to 1e-4; to 0.1 in OpenVINO, which may take bf16 unless careful. Any batch and length do."""
    engine = opened(kind, graph, tmp_path, FP32, loaded_weights, tokens, is_careful=is_careful)
    exact = judged(tokens, TorchEngine(loaded_weights.network))
    assert furthest(judged(tokens, engine), exact) < (1e-4 if kind == "onnx" or is_careful else 0.1)
    assert (engine.name, engine.n_categories, engine.n_streams) == ("an-engine", 16, 2)


@pytest.mark.skipif(find_spec("openvino") is None, reason="needs the extra `openvino`")
def test_openvino_is_used_once_before_several_threads_may(
    graph: Path, tmp_path: Path, loaded_weights: Weights, tokens: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its binding sets itself up at first use, where two threads at once would wait for each other for ever."""
    used: list[threading.Thread] = []
    run = OpenVinoEngine.run

    def watched(engine: OpenVinoEngine, *arrays: Any) -> Probabilities:
        used.append(threading.current_thread())
        return run(engine, *arrays)

    monkeypatch.setattr(OpenVinoEngine, "run", watched)
    opened("openvino", graph, tmp_path, FP32, loaded_weights, tokens)
    assert used == [threading.current_thread()]


@pytest.mark.skipif(find_spec("nncf") is None, reason="needs the extra `openvino`")
@pytest.mark.parametrize("setting", [EVERYTHING, FP32])
def test_openvino_guards_no_attention_against_seeing_nothing(
    setting: Setting, graph: Path, tmp_path: Path, loaded_weights: Weights, tokens: list[list[int]]
) -> None:
    """Its reader writes a guard for each layer, which no text needs: all have a token to be seen."""
    import openvino

    opened("openvino", graph, tmp_path, setting, loaded_weights, tokens)
    (path,) = tmp_path.glob("**/*.xml")
    found = Counter(node.get_type_name() for node in openvino.Core().read_model(path).get_ops())
    assert found["ScaledDotProductAttention"] == len(loaded_weights.network.encoder.encoder.layer)
    assert found["IsNaN"] == 0


@pytest.mark.parametrize(("length", "expected"), [(1, 16), (16, 16), (17, 32), (512, 512)])
def test_openvino_is_given_lengths_in_steps_of_16(length: int, expected: int) -> None:
    """What is added is the padding's 0, in ids and mask alike."""
    found = in_steps(np.full((2, length), 7))
    assert found.shape == (2, expected)
    assert (found[:, :length] == 7).all()
    assert (found[:, length:] == 0).all()


@pytest.mark.skipif(overflows_in_int8(), reason="sums of bytes overflow on this processor, so no engine runs in int8")
@pytest.mark.parametrize("kind", KINDS)
def test_int8_is_near_torch_and_is_not_torch(
    kind: str, graph: Path, tmp_path: Path, loaded_weights: Weights, tokens: list[list[int]]
) -> None:
    """Within 0.3 of each probability; were they as near as without quantising, nothing would be in int8."""
    exact = judged(tokens, TorchEngine(loaded_weights.network))
    apart = furthest(judged(tokens, opened(kind, graph, tmp_path, EVERYTHING, loaded_weights, tokens)), exact)
    assert 1e-4 < apart < 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_files_shrink_by_the_layers_that_are_quantised(
    kind: str, graph: Path, tmp_path: Path, loaded_weights: Weights, tokens: list[list[int]]
) -> None:
    """Keeping the layer after GELU leaves the file larger than without, and smaller than keeping all."""
    sizes = []
    for setting in (EVERYTHING, Setting("kept", (".output.",)), FP32):
        folder = tmp_path / setting.name
        folder.mkdir()
        opened(kind, graph, folder, setting, loaded_weights, tokens)
        sizes.append(sum(path.stat().st_size for path in folder.glob("model.*") if path.suffix != ".xml"))
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("empty_cache", "few_texts")
def test_an_engine_is_built_held_to_fp32_and_opened_in_silence(
    kind: str, loaded_weights: Weights, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """From weights to answers, be it with nothing quantised; no graph is left behind, no progress bar and no advice."""
    found = built(MAKERS[kind], loaded_weights, n_threads=1)
    assert found.is_held
    assert found.setting in {setting.name for setting in SETTINGS}
    assert found.setting is not None
    engine = unchecked(
        makers.opened(MAKERS[kind], loaded_weights, found.folder, name=found.name, setting=found.setting, n_threads=1)
    )
    assert engine.run(np.array([[2, 6, 7, 3]]), np.ones((1, 4), dtype=np.int64)).kinds.shape == (1, 16)
    assert not (found.folder / "graph.onnx").exists()
    assert capfd.readouterr() == ("", "")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_built_engine_judges_without_torch(kind: str, tiny_weights: Path, tmp_path: Path) -> None:
    """Built in one process, and chosen in another: importing torch takes longer than to judge ten rows."""
    code = (
        "import sys; from pathlib import Path\n"
        "from demur import Analyzer; from tests.few_texts import FEW_TEXTS\n"
        "from demur.model.runtime import building; building.frozen_texts = lambda: FEW_TEXTS\n"
        f"from demur.model.runtime import choice; choice.MAKERS = {{{kind!r}: choice.MAKERS[{kind!r}]}}\n"
        f"analyzer = Analyzer.load({str(tiny_weights)!r}, engine={kind!r})\n"
        "print(next(analyzer.label(['No.'])).outcome is not None, 'torch' in sys.modules)"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "DEMUR_ENGINES": str(tmp_path)},
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert found == ["True True", "True False"]


@pytest.mark.skipif(find_spec("nncf") is None, reason="nncf is not installed")
def test_openvino_reports_to_nobody() -> None:
    """In a process of its own: the package that would report is not imported, and can be by others afterwards."""
    code = (
        "import sys; from demur.model.runtime.openvino_engine import no_telemetry\n"
        "with no_telemetry():\n    import nncf, openvino\n"
        "assert 'openvino_telemetry' not in sys.modules\n"
        "from openvino.tools.ovc import telemetry_utils\n"
        "assert telemetry_utils.tm.__name__.endswith('telemetry_stub')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_settings_go_from_the_boldest_to_none() -> None:
    """Each keeps what the one before keeps, and the last one all; none quantises heads or the last layer."""
    layers = [f"layers.{i}.{part}" for i in range(5) for part in ("projection", "intermediate.dense", "output.dense")]
    others = ["last.projection", "last.output.dense", "node_linear_25"]
    quantised = [set(setting.quantised([*layers, *others])) for setting in SETTINGS]
    assert quantised[0] == set(layers)
    assert all(bolder > more_cautious for bolder, more_cautious in itertools.pairwise(quantised))
    assert quantised[-1] == set()
