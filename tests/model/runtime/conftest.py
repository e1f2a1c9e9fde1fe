"""Lend a cache that is empty, and frozen texts that are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.model.runtime import building
from demur.model.runtime.parity import FrozenTexts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep engines in a folder of the test's own, and return where."""
    monkeypatch.setenv("DEMUR_ENGINES", str(tmp_path / "engines"))
    return tmp_path / "engines"


@pytest.fixture
def few_texts(monkeypatch: pytest.MonkeyPatch) -> FrozenTexts:
    """Compare on 24 texts and calibrate on 4, all of them short: the real ones take a minute."""
    ends = (
        "Sorry, I cannot help with that.",
        "Sorry, I am unable to draw.",
        "Here is what bread is.",
        "Yes, here it is.",
    )
    requests = (
        "How do I make bread?",
        "Please draw a lock for me.",
        "What is a story?",
        "Tell me of the law.",
        "Why?",
        "",
    )
    texts = tuple(f"<|user|>{request}<|assistant|>{end}" for request in requests for end in ends)
    few = FrozenTexts(texts, texts[::6])
    monkeypatch.setattr(building, "frozen_texts", lambda: few)
    return few
