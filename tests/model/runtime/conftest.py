"""Lend a cache that is empty, and frozen texts that are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.model.runtime import building
from tests.few_texts import FEW_TEXTS

if TYPE_CHECKING:
    from pathlib import Path

    from demur.model.runtime.parity import FrozenTexts


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep engines in a folder of the test's own, and return where."""
    monkeypatch.setenv("DEMUR_ENGINES", str(tmp_path / "engines"))
    return tmp_path / "engines"


@pytest.fixture
def few_texts(monkeypatch: pytest.MonkeyPatch) -> FrozenTexts:
    """Compare on the few texts: the real ones take a minute."""
    monkeypatch.setattr(building, "frozen_texts", lambda: FEW_TEXTS)
    return FEW_TEXTS
