"""Stop audits where Ctrl-C would."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from demur.verdict import Verdict


@pytest.fixture
def interrupted_audits(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Return a context in which Ctrl-C stops audits after a chunk; chunks are of two rows there and behind it."""
    from demur.labelers.classifier import Analyzer
    from demur.studies import run

    judge = Analyzer._judge

    def interrupted(self: Analyzer, window: Any) -> list[Verdict]:
        if window.conversations[0].row_id:
            raise KeyboardInterrupt
        return judge(self, window)

    @contextmanager
    def stopping() -> Iterator[None]:
        monkeypatch.setattr(run, "CHUNK", 2)
        with monkeypatch.context() as patch:
            patch.setattr(Analyzer, "_judge", interrupted)
            yield

    return stopping
