"""Keep what was built for engines in the user's cache folder: a folder for each build, there whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path

from demur.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["build", "cache_folder", "cached", "digest"]

_MANIFEST = "engine.json"
_SIZES = "sizes"
_DIGEST = 16
_SECONDS_A_DAY = 86_400
# What `build` calls the folder that it builds in: a kind, a digest, and the eight letters that `mkdtemp` draws.
_UNFINISHED = re.compile(r"\.[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{16}-[a-z0-9_]{8}")


def cache_folder() -> Path:
    """Return where engines are kept: the folder that `DEMUR_ENGINES` names, or one in the user's folder for caches."""
    named = os.environ.get("DEMUR_ENGINES")
    return Path(named) if named else user_cache_path("demur") / "engines"


def digest(identity: Mapping[str, Any]) -> str:
    """Return a short fingerprint of JSON values: 16 hex digits of their sha256, whatever the order of the keys."""
    text = json.dumps(identity, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def cached(name: str, needed: Collection[str] = ()) -> tuple[Path, dict[str, Any]] | None:
    """Return the folder and the manifest of a finished build; None where there is none, or a damaged one.

    Args:
        name: Of the folder.
        needed: Keys that its manifest has where it is whole.
    """
    folder = cache_folder() / name
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        sizes = _sizes(folder)
    except (OSError, ValueError):
        return None
    if not isinstance(manifest, dict) or not manifest.keys() >= set(needed):
        return None
    # Builds of before did not say how large their files are.
    if any(sizes.get(file) != size for file, size in manifest.get(_SIZES, {}).items()):
        return None
    _sweep(folder.parent)
    return folder, {key: value for key, value in manifest.items() if key != _SIZES}


def build(
    name: str, make: Callable[[Path], dict[str, Any]], needed: Collection[str] = ()
) -> tuple[Path, dict[str, Any]]:
    """Build into a folder beside the place, and put it there in one step.

    Two processes may build the same at once: the first to finish puts its folder in place, and the other takes that. A
    damaged build that is in the way is replaced.

    Args:
        name: Of the folder: a kind and a digest; what a build of another name leaves when killed is never removed.
        make: Writes its files into the folder given, and returns the manifest.
        needed: As for `cached`.

    Raises:
        EngineError: The cache folder cannot be written.
    """
    place = cache_folder() / name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=place.parent))
    except OSError as error:
        raise _unwritable(place.parent, error) from error
    try:
        manifest = make(temporary)
        manifest = {**manifest, _SIZES: _sizes(temporary)}
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
        (temporary / _MANIFEST).write_text(f"{text}\n", encoding="utf-8")
        return _in_place(temporary, place, needed)
    except OSError as error:
        raise _unwritable(place.parent, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sizes(folder: Path) -> dict[str, int]:
    """Return the sizes of a build's files by their names: one that was cut is damaged, whatever the manifest says."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != _MANIFEST)
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _sweep(folder: Path) -> None:
    """Remove what builds that were killed have left; none takes a day."""
    # The user names the folder, and may name one that holds a .git or .ssh.
    for left in folder.glob(".*"):
        if _UNFINISHED.fullmatch(left.name) is None:
            continue
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _SECONDS_A_DAY:
                shutil.rmtree(left)


def _in_place(temporary: Path, place: Path, needed: Collection[str]) -> tuple[Path, dict[str, Any]]:
    """Move the folder in place, unless another process was first; return what is there then."""
    # A folder that is not empty cannot be replaced: the first to come stays.
    with contextlib.suppress(OSError):
        temporary.rename(place)
    if temporary.is_dir() and cached(place.name, needed) is None:
        _replace(place, temporary)
    found = cached(place.name, needed)
    if found is None:
        message = f"{place}: what was built could not be put in place; remove that folder, or set DEMUR_ENGINES"
        raise EngineError(message)
    return found


def _replace(place: Path, temporary: Path) -> None:
    """Put the folder where a damaged one is."""
    # Named as what is under way, so that it is swept where this process is killed here.
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    with contextlib.suppress(OSError):
        place.rename(aside / place.name)
        temporary.rename(place)
    shutil.rmtree(aside, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> EngineError:
    message = (
        f"{str(folder)!r} cannot hold engine files ({error.strerror or error}); make room there, set DEMUR_ENGINES to "
        "another folder, or take --engine torch"
    )
    return EngineError(message)
