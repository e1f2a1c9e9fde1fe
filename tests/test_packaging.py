"""What is released holds what it needs: the wheel to run and to be typed, the source archive to be tested."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

ROOT = Path(__file__).parents[1]
FOLDERS = (".ci", "benchmarks", "docs", "notebooks", "src", "synth", "taxonomy", "tests")
FILES = ("CHANGELOG.md", "LICENSE", "Makefile", "README.md", "constraints.txt", "pyproject.toml")


def built(target: str, folder: Path) -> Path:
    """Build an archive as a release does, and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (path,) = folder.iterdir()
    return path


def below(folder: str) -> set[str]:
    """Return the files below a folder of the repository, by their path in it; what Python compiled is left out."""
    paths = (path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)}


def test_the_wheel_holds_the_package_its_data_and_the_word_that_it_is_typed(tmp_path: Path) -> None:
    """Without `py.typed`, a type checker takes every name of an installed package for anything."""
    with zipfile.ZipFile(built("wheel", tmp_path)) as wheel:
        names = set(wheel.namelist())
    assert "demur/py.typed" in names
    package = {path.removeprefix("src/") for path in below("src")}
    data = {
        f"demur/_data/{path}" for folder in ("taxonomy", "synth/prompts", "synth/recipes") for path in below(folder)
    }
    assert {name for name in names if ".dist-info/" not in name} == package | data


def test_the_source_archive_holds_all_that_its_tests_read(tmp_path: Path) -> None:
    """They read the corpus, the notebooks, the Makefile and what CI runs."""
    with tarfile.open(built("sdist", tmp_path)) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    expected = {path for folder in FOLDERS for path in below(folder)} | set(FILES)
    assert sorted(expected - names) == []
