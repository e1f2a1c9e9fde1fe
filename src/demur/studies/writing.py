"""Write files whole or not at all, and read back what was written."""

from __future__ import annotations

import json
import math
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from demur.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["made", "read_object", "require_room", "without_nan", "write_json", "writing"]


_PROBE_BYTES = 4_096


def made(folder: Path) -> None:
    """Make a folder, and see that it can be written to: what is to be kept there may be an hour of work away.

    Raises:
        OutputError: It cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder that is there may still be another's, or on a disk that is full or mounted to be read.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
    except OSError as error:
        message = f"cannot write to {str(folder)!r}: {error.strerror or error}; give a folder that can be written"
        raise OutputError(message) from error


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Lend a temporary name that becomes `path` in one step, so that the file is there whole or not at all.

    Raises:
        OutputError: The place cannot be written.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        message = f"{path}: cannot be written ({error}); free the place or give another with --out"
        raise OutputError(message) from error
    finally:
        # Half a file is in nobody's way but that of who has to make room.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def require_room(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Refuse to replace what is there, unless that is asked for.

    Raises:
        OutputError: One of the paths is there already.
    """
    taken = [] if overwrite else [str(path) for path in paths if path.exists() or path.is_symlink()]
    if taken:
        message = (
            f"{', '.join(taken)}: there already; replace it with --overwrite (overwrite=True), or give another place"
        )
        raise OutputError(message)


def write_json(path: Path, data: object) -> None:
    """Write JSON, whole or not at all."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2)
    with writing(path) as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object that an audit wrote.

    Raises:
        OutputError: The file is missing or damaged.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{path}: cannot be read as a part of an audit ({error}); give the folder that an audit wrote"
        raise OutputError(message) from error
    if isinstance(stored, dict):
        return stored
    message = f"{path}: holds {type(stored).__name__} where an audit writes an object; give the folder of an audit"
    raise OutputError(message)


def without_nan(value: Any) -> Any:  # noqa: ANN401  # any JSON value, and NaN is none
    """Return plain data with null for nan and for what is infinite, which JSON lacks, and lists for tuples."""
    if isinstance(value, dict):
        return {key: without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
