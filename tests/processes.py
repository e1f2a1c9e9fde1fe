"""Run command lines in processes of their own, to be stopped and killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["start", "wait_for"]

# Children of what runs in the background ignore Ctrl-C, which is what is to be tested.
_CODE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from demur.cli import main; main()"


def start(tmp_path: Path, *words: str | Path) -> subprocess.Popen[str]:
    """Run a command line, with the cache that the fixture `demur` gives it."""
    command = [sys.executable, "-c", _CODE, *map(str, words)]
    environment = {**os.environ, "DEMUR_CACHE": str(tmp_path / "answers.sqlite")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition: Callable[[], bool], *, seconds: float) -> None:
    """Wait, so many seconds at most."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"nothing happened in {seconds:g} seconds"
        time.sleep(0.005)
