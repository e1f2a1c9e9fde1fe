"""Lend a cache that is empty, and frozen texts that are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.model.runtime import building
from demur.model.runtime.parity import FrozenTexts

if TYPE_CHECKING:
    from pathlib import Path

_REQUESTS = (
    "How do I make bread?",
    "Please draw a lock for me.",
    "What is a story?",
    "Tell me of the law.",
    "Why?",
    "",
)
_REPLIES = (
    "Sorry, I cannot help with that.",
    "Sorry, I am unable to draw.",
    "Here is what bread is.",
    "Yes, here it is.",
)
_TEXTS = tuple(f"<|user|>{request}<|assistant|>{reply}" for request in _REQUESTS for reply in _REPLIES)
FEW_TEXTS = FrozenTexts(parity=_TEXTS, calibration=_TEXTS[::6])
"""24 short texts to compare on, and 4 of them to calibrate on."""


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
