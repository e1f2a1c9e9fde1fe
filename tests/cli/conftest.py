"""Run the command line as a shell would."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from demur.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Demur = Callable[..., tuple[int, str, str]]


@pytest.fixture
def demur(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Demur:
    """Run a command line and return exit code, standard output and standard error."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["demur", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        code = stopped.value.code
        printed = capfd.readouterr()
        return 0 if code is None else int(code), printed.out, printed.err

    return run
