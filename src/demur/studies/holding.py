"""Hold a place for one process, so that no two write what only one of them knows of."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from demur.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["held"]


@contextmanager
def held(place: Path, lock: Path) -> Iterator[None]:
    """Hold a place until the block ends; the system lets go of it where the process is killed.

    Args:
        place: What is held, as messages call it.
        lock: The file that stands for it, in a folder that is there; it is removed at the end.

    Raises:
        OutputError: Another process holds it, or the lock cannot be written.
    """
    # `filelock` would make the folder.
    if not lock.parent.is_dir():
        raise _unwritable(place, f"there is no folder {str(lock.parent)!r}")
    holder = FileLock(lock, blocking=False)
    try:
        holder.acquire()
    except Timeout:
        message = (
            f"{str(place)!r} is being written by another run; wait until that has ended, or give another place "
            "with --out (out=…)"
        )
        raise OutputError(message) from None
    except OSError as error:
        raise _unwritable(place, error.strerror or str(error)) from error
    try:
        yield
    finally:
        # Removed while it is held: who has opened it by then finds it without a name, and is not let in by it. Windows
        # removes no open file; there it stays, and holds nothing.
        with suppress(OSError):
            lock.unlink()
        holder.release()


def _unwritable(place: Path, why: str) -> OutputError:
    return OutputError(f"cannot write {str(place)!r}: {why}; give a file in a folder that exists")
