"""Hold the cache to builds that are there whole or not at all, whoever builds at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from demur.errors import EngineError
from demur.model.runtime.cache import build, cache_folder, cached, digest

if TYPE_CHECKING:
    from pathlib import Path

# Builds until the other process builds too, says who it is, and prints whose build it was given.
RACE = """
import json, sys, time
from pathlib import Path
from demur.model.runtime.cache import build

def make(folder):
    me, other = sys.argv[1:]
    (folder / "model.bin").write_text(me)
    Path(other).with_name(me).touch()
    while not Path(other).exists():
        time.sleep(0.01)
    return {"by": me}

folder, manifest = build("thing", make)
print(json.dumps([manifest["by"], (folder / "model.bin").read_text()]))
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a cache of its own."""
    monkeypatch.setenv("DEMUR_ENGINES", str(tmp_path / "engines"))
    return cache_folder()


def write_model(folder: Path) -> dict[str, object]:
    """Build something."""
    (folder / "model.bin").write_text("model", encoding="utf-8")
    return {"speed": 2}


def test_a_build_is_found_again(own_cache: Path) -> None:
    """Its folder, its manifest, its files."""
    assert cached("thing") is None
    folder, manifest = build("thing", write_model)
    assert (folder, manifest) == (own_cache / "thing", {"speed": 2})
    assert cached("thing") == (folder, manifest)
    assert (folder / "model.bin").read_text(encoding="utf-8") == "model"


def test_two_processes_that_build_at_once_end_with_one_build(tmp_path: Path, own_cache: Path) -> None:
    """Both are in the middle of it at the same time; both are given the same, and nothing else is left."""
    code = [sys.executable, "-c", RACE]
    environment = {**os.environ, "DEMUR_ENGINES": str(own_cache)}
    pairs = (("one", "two"), ("two", "one"))
    running = [
        subprocess.Popen([*code, me, str(tmp_path / other)], env=environment, stdout=subprocess.PIPE, text=True)
        for me, other in pairs
    ]
    given = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert given[0] == given[1]
    assert given[0][0] == given[0][1]
    assert [path.name for path in own_cache.iterdir()] == ["thing"]


def test_a_build_that_fails_leaves_nothing(own_cache: Path) -> None:
    """Its error is passed on."""

    def fail(folder: Path) -> dict[str, object]:
        write_model(folder)
        message = "broken"
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="broken"):
        build("thing", fail)
    assert cached("thing") is None
    assert list(own_cache.iterdir()) == []


def aged(path: Path, *, hours: int) -> Path:
    """Make a folder with a file in it, both written so long ago."""
    path.mkdir(parents=True)
    (path / "file").write_text("precious", encoding="utf-8")
    then = time.time() - 3600 * hours
    for each in (path / "file", path):
        os.utime(each, (then, then))
    return path


def test_what_killed_builds_left_is_removed_after_a_day(own_cache: Path) -> None:
    """What was written an hour ago may be under way."""
    made: list[Path] = []

    def killed(folder: Path) -> dict[str, object]:
        made.append(folder)
        message = "killed"
        raise RuntimeError(message)

    for kind in ("onnx", "torch-fp32-cpu"):
        with pytest.raises(RuntimeError, match="killed"):
            build(f"{kind}-{digest({})}", killed)
    old, other = made
    aged(old, hours=25)
    aged(other, hours=25)
    new = aged(old.with_name(f"{old.name[:-8]}abcd_123"), hours=1)
    build("other", write_model)
    assert {path.name for path in own_cache.iterdir()} == {new.name, "other"}


@pytest.mark.parametrize(
    "name", [".git", ".ssh", ".config", ".onnx-0123-abcd_123", f".onnx-{'0' * 16}-abcd_123.bak", f"onnx-{'0' * 16}"]
)
def test_what_others_keep_in_the_folder_is_left_alone(own_cache: Path, name: str) -> None:
    """`DEMUR_ENGINES` may name a home folder or a repository, and finished builds are kept."""
    foreign = aged(own_cache / name, hours=1000)
    build(f"onnx-{digest({})}", write_model)
    assert (foreign / "file").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("manifest", ["{", "[]", '{"slow": 2}'], ids=["cut off", "no object", "without what is read"])
def test_a_damaged_build_is_none_and_is_replaced(own_cache: Path, manifest: str) -> None:
    """Once; the one that took its place is found from then on, with nothing beside it."""
    (own_cache / "thing").mkdir(parents=True)
    (own_cache / "thing" / "engine.json").write_text(manifest, encoding="utf-8")
    assert cached("thing", ["speed"]) is None
    found = build("thing", write_model, ["speed"])
    assert found == (own_cache / "thing", {"speed": 2})
    assert cached("thing", ["speed"]) == found
    assert [path.name for path in own_cache.iterdir()] == ["thing"]
    assert sorted(path.name for path in found[0].iterdir()) == ["engine.json", "model.bin"]


@pytest.mark.usefixtures("own_cache")
def test_a_build_with_a_file_that_was_cut_is_damaged() -> None:
    """As where the disk was full; its manifest is whole."""
    folder, _ = build("thing", write_model)
    (folder / "model.bin").write_bytes(b"")
    assert cached("thing") is None
    build("thing", write_model)
    assert cached("thing") is not None


def test_what_killed_builds_left_is_removed_where_a_build_is_found(own_cache: Path) -> None:
    """Most runs build none."""
    build("other", write_model)
    left = aged(own_cache / f".onnx-{digest({})}-abcd_123", hours=25)
    assert cached("other") is not None
    assert not left.exists()


def test_a_build_that_stays_damaged_is_named(own_cache: Path) -> None:
    """What is built anew lacks what is read, too."""
    with pytest.raises(EngineError, match=r"thing: what was built could not be put in place; remove that folder"):
        build("thing", write_model, ["weight"])
    assert [path.name for path in own_cache.iterdir()] == ["thing"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file lies where the folder should be."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("DEMUR_ENGINES", str(tmp_path / "file"))
    with pytest.raises(EngineError, match=r"file' cannot hold engine files .* set DEMUR_ENGINES"):
        build("thing", write_model)


def test_without_a_setting_the_users_cache_folder_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system has it."""
    monkeypatch.delenv("DEMUR_ENGINES")
    assert cache_folder().parts[-2:] == ("demur", "engines")


def test_a_digest_is_of_values_not_of_their_order() -> None:
    """16 hex digits."""
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert len(digest({})) == 16
