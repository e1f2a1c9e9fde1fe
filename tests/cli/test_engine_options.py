"""Hold `--engine`, `--exact` and `--workers` to what runs the network; torch in bf16 stands for all that are built."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from demur.model.runtime import building, makers, parity
from tests.few_texts import FEW_TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    Demur = Callable[..., tuple[int, str, str]]
    Interrupted = Callable[[], AbstractContextManager[None]]

REPLY = ("classify", "--prompt", "Please draw a lock for me.", "Sorry, I am unable to draw.")


@pytest.fixture(autouse=True)
def quick_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build in a cache of the test's own, from few texts, and pass whatever comes of it."""
    monkeypatch.setenv("DEMUR_ENGINES", str(tmp_path / "engines"))
    # Given back at the end, where `--workers` has set it.
    monkeypatch.setenv("RAYON_NUM_THREADS", "1")
    monkeypatch.setattr(building, "frozen_texts", lambda: FEW_TEXTS)
    monkeypatch.setattr(parity, "MAX_GATE_SHARE", 1.0)
    monkeypatch.setattr(parity, "MAX_CATEGORY_SHARE", 1.0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write six conversations."""
    path = tmp_path / "rows.jsonl"
    rows = [{"prompt": f"Please draw lock {i}.", "response": "Sorry, I am unable to draw."} for i in range(6)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def engine_of(folder: Path) -> str:
    """Return the engine that an audit's manifest names."""
    return str(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["model"]["engine"])


def test_an_engine_that_is_named_is_built_once_and_recorded(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """The second time it is there."""
    words = ("audit", source, "--weights", tiny_weights, "--engine", "torch-bf16", "--out")
    code, _, errors = demur(*words, tmp_path / "one")
    assert code == 0, errors
    assert errors.splitlines()[0].startswith("building engine torch-bf16")
    assert errors.splitlines()[1].startswith("engine: torch-bf16-")
    assert engine_of(tmp_path / "one").startswith("torch-bf16-")
    assert "building" not in demur(*words, tmp_path / "two")[2]


@pytest.mark.parametrize(
    ("further", "said"), [((), "already holds"), (("--overwrite", "--on", "here"), "is no place to run an audit")]
)
def test_no_engine_is_built_for_an_audit_that_cannot_begin(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path, further: tuple[str, ...], said: str
) -> None:
    """Its folder is taken, or there is no such place to judge: what is cheap to find is found first."""
    words = ("audit", source, "--weights", tiny_weights, "--out", tmp_path / "out")
    assert demur(*words, "--exact")[0] == 0
    code, _, errors = demur(*words, "--engine", "torch-bf16", *further)
    assert code == 1
    assert said in " ".join(errors.split())
    assert "building engine" not in errors
    assert not (tmp_path / "engines").exists()


def test_auto_builds_nothing_for_few_rows_and_exact_is_fp32(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """Six rows are few; `--exact` does not even look."""
    words = ("audit", source, "--weights", tiny_weights, "--out")
    assert "engine: torch-fp32-" in demur(*words, tmp_path / "auto")[2]
    assert not (tmp_path / "engines").exists()
    assert "engine:" not in demur(*words, tmp_path / "exact", "--exact")[2]
    assert engine_of(tmp_path / "exact") == engine_of(tmp_path / "auto")


def test_a_resumed_audit_goes_on_with_its_engine(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path, interrupted_audits: Interrupted
) -> None:
    """Without `--engine`, `auto` would take another for these six rows; named, another is refused."""
    words = ("audit", source, "--weights", tiny_weights, "--out", tmp_path / "audit")
    with interrupted_audits():
        assert demur(*words, "--engine", "torch-bf16")[0] == 130
    code, _, errors = demur(*words, "--resume", "--exact")
    assert (code, "engine" in errors) == (1, True), errors
    assert demur(*words, "--resume")[0] == 0
    assert engine_of(tmp_path / "audit").startswith("torch-bf16-")


def test_classify_and_evaluate_take_an_engine(demur: Demur, labelled_file: Path, tiny_weights: Path) -> None:
    """They judge in fp32, and say nothing of it, where none is asked for."""
    for words in ((*REPLY, "--weights", tiny_weights), ("evaluate", labelled_file, "--weights", tiny_weights)):
        assert "engine:" not in demur(*words)[2]
        code, printed, errors = demur(*words, "--engine", "torch-bf16", "--workers", 1)
        assert (code, bool(printed)) == (0, True)
        assert "engine: torch-bf16-" in errors


def test_exact_goes_with_no_other_engine(demur: Demur) -> None:
    """One of the two is meant; which, is not guessed."""
    code, _, errors = demur(*REPLY, "--exact", "--engine", "onnx")
    assert code == 2
    assert "--exact" in errors


def test_an_engine_that_is_not_installed_names_its_extra(
    demur: Demur, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is the command that repairs it."""
    monkeypatch.setattr(makers, "find_spec", lambda _: None)
    code, _, errors = demur(*REPLY, "--weights", tiny_weights, "--engine", "openvino")
    assert code == 1
    assert "pip install 'demur[openvino]'" in errors
