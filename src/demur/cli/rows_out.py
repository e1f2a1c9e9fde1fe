"""Write rows to a file, whole or not at all."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from demur.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["rows_writer"]


@contextmanager
def rows_writer(out: Path, *, overwrite: bool, apart_from: Sequence[Path]) -> Iterator[Callable[[str], None]]:
    """Open a file for lines; what an error or Ctrl-C cuts short leaves no file behind.

    Args:
        out: The file.
        overwrite: Whether it may replace another.
        apart_from: Files that are read, and must not be written to.

    Raises:
        OutputError: The file cannot be written, is there already, or is one that is read.
    """
    if out.resolve() in {path.resolve() for path in apart_from}:
        message = f"{str(out)!r} is read from; give another file for the results"
        raise OutputError(message)
    if out.exists() and not overwrite:
        message = f"{str(out)!r} is there already; give another file, or --overwrite"
        raise OutputError(message)
    part = out.with_name(f"{out.name}.part")
    try:
        stream = part.open("w", encoding="utf-8")
    except OSError as error:
        message = f"cannot write {str(out)!r}: {error.strerror or error}; give a file in a folder that exists"
        raise OutputError(message) from error
    try:
        with stream:
            yield lambda line: print(line, file=stream)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.replace(out)
