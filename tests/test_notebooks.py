"""The notebooks run from top to bottom, and define nothing."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def read(path: Path) -> Any:
    """Return the parsed notebook."""
    return nbformat.read(path, as_version=4)


def test_there_is_a_notebook() -> None:
    """The tests below would pass on an empty folder."""
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # the kernel's own libraries warn
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    """Every cell runs in a fresh kernel without an error."""
    notebook = read(path)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert [output for output in outputs if "image/png" in output.get("data", {})], "a notebook shows plots"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_defines_nothing(path: Path) -> None:
    """Functions and classes belong into the package, where they are tested."""
    code = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    assert not [node for node in ast.walk(ast.parse(code)) if isinstance(node, kinds)]
