"""What several tests of trainings share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from demur.model.weights import Manifest, read_tensors, save_weights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def copy(tiny_weights: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return what copies the tiny weights with another manifest."""

    def run(**changes: Any) -> Path:
        manifest = Manifest.load(tiny_weights)
        tensors = read_tensors(tiny_weights, manifest)
        save_weights(tmp_path / "copy", tensors, manifest.model_copy(update=changes))
        return tmp_path / "copy"

    return run
