"""Write rows to a file, whole or not at all."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from demur.errors import OutputError
from demur.studies.holding import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

__all__ = ["rows_writer"]


@contextmanager
def rows_writer(out: Path, *, overwrite: bool, apart_from: Sequence[Path]) -> Iterator[Callable[[str], None]]:
    """Open a file for lines; what an error or Ctrl-C cuts short leaves no file behind.

    Args:
        out: The file.
        overwrite: Whether it may replace another.
        apart_from: Files that are read, and must not be written to.

    Raises:
        OutputError: The file cannot be written, is there already, is being written, or is one that is read.
    """
    if out.resolve() in {path.resolve() for path in apart_from}:
        message = f"{str(out)!r} is read from; give another file for the results"
        raise OutputError(message)
    with held(out, out.with_name(f"{out.name}.lock")):
        if out.exists() and not overwrite:
            message = f"{str(out)!r} is there already; give another file, or --overwrite"
            raise OutputError(message)
        with _whole(out) as stream:
            yield lambda line: print(line, file=stream)


@contextmanager
def _whole(out: Path) -> Iterator[TextIO]:
    part = out.with_name(f"{out.name}.part")
    try:
        with part.open("w", encoding="utf-8") as stream:
            yield stream
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.replace(out)
