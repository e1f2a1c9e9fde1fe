"""Keep what libraries print of their own insides out of what the user reads."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["quiet"]


@contextlib.contextmanager
def quiet(*loggers: str) -> Iterator[None]:
    """Drop warnings, printed progress bars, and what the loggers named say below an error."""
    named = [logging.getLogger(name) for name in loggers]
    levels = [logger.level for logger in named]
    for logger in named:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(named, levels, strict=True):
            logger.setLevel(level)
