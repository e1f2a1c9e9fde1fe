"""Find the files that a source names, and open each by its ending."""

from __future__ import annotations

import contextlib
import difflib
import glob
import hashlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from demur.data.formats import Opened, json_document, json_lines
from demur.data.json_text import decode_json
from demur.data.packing import PACKINGS, unpacked
from demur.data.rows import Record
from demur.data.tables import comma_separated, parquet, tab_separated
from demur.errors import RowError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["FilePart", "find_files", "find_in_folder", "is_supported", "printable"]

_LOG = logging.getLogger(__name__)
_READERS: dict[str, Callable[[Opened], Iterator[Record]]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_document,
    ".csv": comma_separated,
    ".tsv": tab_separated,
    ".parquet": parquet,
}
_SUPPORTED = f"{', '.join(_READERS)}, and all but .parquet packed as {', '.join(PACKINGS)}"
# Packed as nothing here unpacks: worth a word, for beside them other files are read.
_OTHER_PACKINGS = frozenset({".bz2", ".xz", ".lzma", ".lz4", ".br", ".zip", ".7z"})
# What an audit writes into its folder, and below this, chunk by chunk.
_AUDIT_FILES = frozenset({"manifest.json", "composition.json", "tally.json", "spending.json", "verdicts.parquet"})
_AUDIT_CHUNKS = "shards"
# What `save_to_disk` of `datasets` writes beside its Arrow files.
_SAVED_BESIDE = frozenset({"dataset_dict.json", "dataset_info.json", "state.json"})


@dataclass(frozen=True, slots=True)
class FilePart:
    """Read one file.

    Attributes:
        path: Where it lies.
        name: The name that rows and messages use.
        label: Its path below the source, which is part of what the content is known by.
        size: Its bytes, as they lie on the disk.
    """

    path: Path
    name: str
    label: str
    size: int

    @classmethod
    def of(cls, path: Path, *, name: str | None = None, root: Path | None = None) -> FilePart:
        """Look at the file, and refuse one that cannot be opened."""
        shown = printable(str(path) if name is None else name)
        if not os.access(path, os.R_OK):
            message = f"no permission to read {shown!r}; change its mode or give another file"
            raise SourceError(message)
        label = path.name if root is None else path.relative_to(root).as_posix()
        return cls(path, shown, label, path.stat().st_size)

    def records(self) -> Iterator[Record]:
        """Yield the records in order, unpacked on the way; where a packed file was cut off, the last one says so.

        Raises:
            SourceError: The file is damaged, or cut off before its first row.
        """
        ending, packing = _endings(self.path)
        n_rows = line = 0
        try:
            with contextlib.ExitStack() as stack:
                raw = stack.enter_context(self.path.open("rb", buffering=0))
                stream = stack.enter_context(unpacked(self.path, raw, packing))
                opened = Opened(self.name, stream, lambda: min(raw.tell() / self.size, 1.0))
                for record in _READERS[ending](opened):
                    n_rows, line = n_rows + 1, record.line
                    yield record
        except EOFError as error:
            if not n_rows:
                message = f"{self.name}: the {packing} file ends too early, before a row could be read; get it whole"
                raise SourceError(message) from error
            message = f"the {packing} file ends too early, after row {n_rows:,}; what followed is lost, get it whole"
            yield Record(line + 1, RowError(message, where=self.name, reason="file_cut_off"), 1.0)
        except (OSError, pa.ArrowException) as error:
            packed = "" if packing is None else f" as {packing}"
            message = f"{self.name}: damaged, or not what its ending says: cannot be read{packed} ({error})"
            raise SourceError(message) from error

    def identity(self) -> str:
        """Return name, size and hash of the content."""
        with self.path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return f"{self.label}\0{self.size}\0{digest}"


def find_files(spec: str) -> list[FilePart]:
    """Find the file, the supported files below the folder, or those that match the pattern, each once, by path.

    Raises:
        SourceError: There is no such thing, or nothing in it that can be read.
    """
    path = Path(spec).expanduser()
    try:
        if path.is_dir():
            return find_in_folder(path)
        if path.is_file():
            return _filled([_supported(path, spec)], spec)
        if glob.has_magic(spec):
            return _find_matches(spec)
        raise SourceError(_missing(spec, path))
    except OSError as error:
        message = f"cannot look at {spec!r} ({error.strerror}); give a file or folder that you may read"
        raise SourceError(message) from error


def find_in_folder(folder: Path, *, shown: str | None = None, except_for: Iterable[str] = ()) -> list[FilePart]:
    """Find the supported files below a folder; what begins with `.` or `_` is no data, nor are folders with an audit.

    Of a folder that itself holds an audit, the files that no audit wrote are found. A folder that is a link, a file
    that a link names again and one packed as nothing here unpacks are left out with a warning.

    Args:
        folder: Where to look, in all its folders.
        shown: The name that messages use for the folder, where that is not its path.
        except_for: Names of files to leave out.
    """
    title = str(folder) if shown is None else shown
    paths = [path for path in _walk(folder) if path.name not in set(except_for)]
    if _is_saved_to_disk(folder, paths):
        saved = min(paths, key=lambda path: len(path.parts)).parent
        message = f"the folder {title!r} was written by save_to_disk; read it as hf://{saved.resolve()}"
        raise SourceError(message)
    if not paths:
        but = " but those of an audit" if _is_audit(folder) else ""
        message = f"no file to read in the folder {title!r}{but}; put {_SUPPORTED} there"
        raise SourceError(message)
    parts = [
        FilePart.of(path, name=f"{title}/{path.relative_to(folder).as_posix()}".replace("//", "/"), root=folder)
        for path in _each_once(paths)
    ]
    return _filled(parts, title)


def printable(name: str) -> str:
    """Return the name of a file as every file and terminal takes it, with bytes that are no UTF-8 escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def is_supported(path: Path) -> bool:
    """Tell whether the ending is one that can be read; Parquet packs its own columns and is not unpacked again."""
    ending, packing = _endings(path)
    return ending in _READERS and (packing is None or ending != ".parquet")


def _supported(path: Path, spec: str) -> FilePart:
    if not is_supported(path):
        message = f"cannot read {spec!r}: its ending {path.suffix!r} is not supported; give {_SUPPORTED}"
        raise SourceError(message)
    return FilePart.of(path)


def _endings(path: Path) -> tuple[str, str | None]:
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    packing = PACKINGS.get(endings[-1]) if endings else None
    if packing is not None:
        endings.pop()
    return (endings[-1] if endings else ""), packing


def _walk(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        message = f"no permission to list the folder {error.filename!r}; change its mode or give another folder"
        raise SourceError(message) from error

    found = []
    for root, folders, files in os.walk(folder, onerror=refuse):
        visible = sorted(name for name in folders if not name.startswith((".", "_")))
        for link in (path for name in visible if (path := Path(root, name)).is_symlink()):
            _LOG.warning("%s is a link to a folder and is left out; give it as a source of its own", link)
        folders[:] = [name for name in visible if not _is_audit(Path(root, name))]
        found += _data_files(Path(root, name) for name in files if not name.startswith((".", "_")))
    return sorted(found)


def _data_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files that can be read and that no audit wrote."""
    found = []
    for path in paths:
        if is_supported(path):
            if path.is_file() and not _is_of_audit(path):
                found.append(path)
        elif path.suffix.lower() in _OTHER_PACKINGS and _endings(path.with_suffix(""))[0] in _READERS:
            _LOG.warning("%s is left out: packed as %s; unpack it, or pack it as .gz or .zst", path, path.suffix)
        elif path.suffix.lower() == ".arrow":
            _LOG.warning("%s is left out: what save_to_disk wrote is read as hf://%s", path, path.parent.resolve())
    return found


def _is_of_audit(path: Path) -> bool:
    """Tell whether an audit wrote the file: what lies beside it may be data."""
    if path.parent.name == _AUDIT_CHUNKS:
        return _is_audit(path.parent.parent)
    return path.name in _AUDIT_FILES and _is_audit(path.parent)


def _is_audit(folder: Path) -> bool:
    """Tell whether the folder holds an audit, finished or under way: what we write is never read as data."""
    try:
        manifest = decode_json((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    # Other tools write a manifest.json too.
    return isinstance(manifest, dict) and {"source", "model", "options"} <= manifest.keys()


def _is_saved_to_disk(folder: Path, paths: Sequence[Path]) -> bool:
    """Tell whether there are Arrow files, and nothing to read but what `datasets` writes beside them."""
    return bool(paths) and all(path.name in _SAVED_BESIDE for path in paths) and any(folder.rglob("*.arrow"))


def _find_matches(spec: str) -> list[FilePart]:
    # `Path.glob` takes no absolute patterns.
    found = glob.glob(str(Path(spec).expanduser()), recursive=True)  # noqa: PTH207
    matches = [Path(match) for match in sorted(found)]
    if not matches:
        message = f"nothing matches {spec!r} in {str(Path.cwd())!r}; quote the pattern, and check it with ls"
        raise SourceError(message)
    files = set(_data_files(matches))
    below = {path for match in matches if match.is_dir() and not _is_audit(match) for path in _walk(match)}
    if not files | below:
        message = f"no match of {spec!r} is data that can be read, {str(matches[0])!r} for one; give {_SUPPORTED}"
        raise SourceError(message)
    paths = _each_once(sorted(files | below))
    root = Path(os.path.commonpath([path.parent for path in paths]))
    return _filled([FilePart.of(path, root=root) for path in paths], spec)


def _each_once(paths: Iterable[Path]) -> list[Path]:
    """Return the paths without those that lead to a file again, by a link: its rows would count twice."""
    first: dict[tuple[int, int], Path] = {}
    for path in paths:
        status = path.stat()
        known = first.setdefault((status.st_dev, status.st_ino), path)
        if known is not path:
            _LOG.warning("%s is %s again, by a link, and is left out", path, known)
    return list(first.values())


def _filled(parts: Sequence[FilePart], title: str) -> list[FilePart]:
    filled = [part for part in parts if part.size]
    if not filled:
        message = f"{title!r} is empty (0 bytes); give a source that holds rows"
        raise SourceError(message)
    for part in parts:
        if not part.size:
            _LOG.warning("%s is empty (0 bytes) and is left out", part.name)
    return filled


def _missing(spec: str, path: Path) -> str:
    if not path.parent.is_dir():
        return f"no file or folder {spec!r}: there is no folder {str(path.parent)!r} seen from {str(Path.cwd())!r}"
    names = sorted(entry.name for entry in path.parent.iterdir())
    near = difflib.get_close_matches(path.name, names, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it holds {_some(names)}"
    return f"no file or folder {spec!r} in {str(path.parent.resolve())!r}; {hint}"


def _some(names: Sequence[str], n_shown: int = 5) -> str:
    shown = ", ".join(names[:n_shown])
    return f"{shown} and {len(names) - n_shown} more" if len(names) > n_shown else shown or "nothing"
