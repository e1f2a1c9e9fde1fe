"""Keep one audit in one folder, and refuse to mix two."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from demur.errors import OutputError
from demur.studies.holding import held
from demur.studies.repeats import Repeats
from demur.studies.shards import TEXTS, Shards, is_part, remove_parts
from demur.studies.writing import read_object, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from demur.taxonomy import Taxonomy

__all__ = ["AuditFolder"]

# Other tools write a manifest.json too; one with all of these is an audit's.
_MANIFEST_KEYS = {"source", "model", "options"}

_ANOTHER = "give another folder with --out (out=…)"


@dataclass(frozen=True, slots=True)
class AuditFolder:
    """Name the files of an audit, and know whether one is there.

    `manifest.json` says what is audited and how; it is written first. `shards/` holds what is finished of an audit
    under way. `verdicts.parquet` and `tally.json` take its place at the end, and `composition.json`, written last, says
    that all is done.
    """

    path: Path

    @property
    def manifest(self) -> Path:
        """Return where it says what is audited and how."""
        return self.path / "manifest.json"

    @property
    def verdicts(self) -> Path:
        """Return where the verdicts are, one for each row."""
        return self.path / "verdicts.parquet"

    @property
    def tally(self) -> Path:
        """Return where the counts and highlights are."""
        return self.path / "tally.json"

    @property
    def composition(self) -> Path:
        """Return where the numbers are that an audit reports."""
        return self.path / "composition.json"

    @property
    def spending(self) -> Path:
        """Return where it says what a judge was paid, if a judge gave the verdicts."""
        return self.path / "spending.json"

    @property
    def is_finished(self) -> bool:
        """Tell whether the audit in it came to its end."""
        return self.composition.is_file()

    @property
    def engine(self) -> str | None:
        """Return the engine that the audit in it was begun with; None where none is recorded."""
        try:
            model = read_object(self.manifest).get("model")
        except OutputError:
            return None
        engine = model.get("engine") if isinstance(model, dict) else None
        return engine if isinstance(engine, str) else None

    def shards(self, taxonomy: Taxonomy) -> Shards:
        """Return the finished chunks of an audit under way."""
        return Shards(self._shards, taxonomy)

    def repeats(self, finished: int) -> Repeats:
        """Open what an audit under way knows of the texts in its finished chunks, of which there are so many.

        Raises:
            OutputError: It cannot be used, or does not know them all.
        """
        return Repeats(self._shards / TEXTS, finished)

    @contextmanager
    def held(self, part: str = "") -> Iterator[None]:
        """Make the folder, and hold it, or a part of it, for this process: two would clear away each other's shards.

        A folder that was made for this, and is empty at the end, is removed.

        Raises:
            OutputError: Another process holds it, or it cannot be used.
        """
        missing = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        self._make()
        try:
            with held(self.path, self.path / f".{part}lock"):
                yield
        finally:
            # What ended before it had anything to write leaves no folder behind.
            with suppress(OSError):
                for folder in missing:
                    folder.rmdir()

    @contextmanager
    def begun(
        self, manifest: Mapping[str, Any], *, resume: bool, overwrite: bool, sources: Iterable[Path] = ()
    ) -> Iterator[None]:
        """Make the folder ready for the audit that the manifest describes.

        A finished audit that it replaces is there as it was where the new one fails before its first chunk is done.

        Args:
            manifest: What is audited and how.
            resume: Go on with the audit that the folder holds; begin if there is none.
            overwrite: Replace the audit that the folder holds, and nothing that no audit wrote.
            sources: The files that are read.

        Raises:
            OutputError: The folder cannot be used, holds an audit and neither flag says what to do with it, or is to be
                resumed although something changed; something in it would be replaced that is no result of an audit, or
                is a source of this one.
        """
        self._keep_apart(sources)
        try:
            self._begin(manifest, resume=resume, overwrite=overwrite)
            yield
        except BaseException as error:
            if self._settle():
                error.add_note(f"The audit that was in {self.path} is there as it was.")
            raise
        self._settle()

    def _begin(self, manifest: Mapping[str, Any], *, resume: bool, overwrite: bool) -> None:
        self._make()
        if not (resume and self._is_replacement(manifest)):
            self._settle()
        if resume and self.manifest.is_file() and not self._holds_only_a_beginning():
            self._compare(manifest)
            return
        self.require_room(resume=resume, overwrite=overwrite)
        if self.is_finished:
            self._set_aside()
        else:
            self.clear()
        write_json(self.manifest, manifest)

    def _is_replacement(self, manifest: Mapping[str, Any]) -> bool:
        """Tell whether what lies here is this audit, stopped while it was to replace another."""
        return self._before.is_dir() and self._is_of_an_audit() and read_object(self.manifest) == manifest

    def _settle(self) -> bool:
        """Put back the finished audit that is being replaced where the new one has no chunk yet; else let it go.

        Returns:
            Whether it was put back.

        Raises:
            OutputError: It cannot be moved.
        """
        if not self._before.is_dir():
            return False
        is_back = not self.is_finished and not self._has_chunks()
        if is_back:
            # The manifest goes last, and comes back first: without it, what lies here is the old audit's, too.
            if (self._before / self.manifest.name).exists():
                self.clear()
            self._move(self._before, self.path, reversed(self._files()))
        else:
            AuditFolder(self._before).clear()
        # Unless there is something in it that no audit wrote.
        with suppress(OSError):
            self._before.rmdir()
        return is_back

    def require_room(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse a folder that holds results, where neither flag says what to do with them.

        Raises:
            OutputError: It does, or is no folder.
        """
        if self.path.exists() and not self.path.is_dir():
            message = f"{str(self.path)!r} is a file, and results need a folder; {_ANOTHER}"
            raise OutputError(message)
        if overwrite or (resume and self.manifest.is_file()):
            return
        taken = [path.name for path in self._files() if path.exists()]
        if taken and not self._holds_only_a_beginning():
            advice = (
                "; go on with --resume (resume=True), replace it with --overwrite (overwrite=True)"
                if self._is_of_an_audit()
                else ", which no audit wrote; move it away"
            )
            message = f"{str(self.path)!r} already holds {', '.join(taken)}{advice}, or {_ANOTHER}"
            raise OutputError(message)

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"{str(self.path)!r} cannot be used as a folder ({error.strerror}); {_ANOTHER}"
            raise OutputError(message) from error

    @property
    def _before(self) -> Path:
        return self.path / ".before"

    @property
    def _shards(self) -> Path:
        return self.path / "shards"

    def _keep_apart(self, sources: Iterable[Path]) -> None:
        """Refuse to write where it is read."""
        results, shards = {path.resolve() for path in self._files()}, self._shards.resolve()
        for source in sources:
            place = source.resolve()
            if place in results or (place.parent == shards and is_part(place)):
                message = (
                    f"{str(source)!r} is to be audited, and lies where results of the audit are written; {_ANOTHER}"
                )
                raise OutputError(message)

    def _holds_only_a_beginning(self) -> bool:
        """Tell whether all there is is the manifest of an audit that failed before any chunk was done."""
        if self._has_chunks() or any(path.is_file() for path in self._files() if path != self.manifest):
            return False
        return self._is_of_an_audit()

    def _has_chunks(self) -> bool:
        return any(map(is_part, self._shards.glob("part-*.json")))

    def _is_of_an_audit(self) -> bool:
        try:
            return read_object(self.manifest).keys() >= _MANIFEST_KEYS
        except OutputError:
            return False

    def _compare(self, manifest: Mapping[str, Any]) -> None:
        if manifest["source"]["fingerprint"] is None:
            message = (
                f"{manifest['source']['name']!r} can be read only once, or its hub tells no revision, so nothing says "
                "that it is still the same; put it in a file to resume, or begin anew with --overwrite (overwrite=True)"
            )
            raise OutputError(message)
        changed = [
            f"{name} was {json.dumps(was, ensure_ascii=False)} and is {json.dumps(now, ensure_ascii=False)}"
            for name, was, now in _differences(read_object(self.manifest), manifest)
        ]
        if changed:
            message = (
                f"{str(self.path)!r} cannot be resumed, something changed: {'; '.join(changed)}. "
                f"Begin anew with --overwrite (overwrite=True), or {_ANOTHER}"
            )
            raise OutputError(message)

    def _files(self) -> tuple[Path, ...]:
        # Composition first, manifest last: what is left of a clearing that was stopped is an audit's still, and is
        # never taken for a finished one.
        reports = (self.path / "report.html", self.path / "report.md")
        return (self.composition, self.tally, self.verdicts, *reports, self.spending, self._shards, self.manifest)

    def _foreign(self) -> list[str]:
        """Name what would be cleared away, and was not written by an audit."""
        taken = [path for path in self._files() if path.exists() or path.is_symlink()]
        if taken and not self._is_of_an_audit():
            return [path.name for path in taken]
        if self._shards.is_symlink():
            return ["shards"]
        found = [path.name for path in taken if path != self._shards and not path.is_file()]
        inside = sorted(self._shards.iterdir()) if self._shards.is_dir() else []
        return found + [f"shards/{path.name}" for path in inside if not is_part(path)]

    def _require_own(self) -> None:
        """Refuse to replace what no audit wrote."""
        if foreign := self._foreign():
            message = (
                f"{str(self.path)!r} holds {', '.join(foreign)}, which no audit wrote and --overwrite "
                f"(overwrite=True) does not replace; move it away, or {_ANOTHER}"
            )
            raise OutputError(message)

    def _set_aside(self) -> None:
        """Keep a finished audit until the one that replaces it has come as far as a first chunk."""
        self._require_own()
        # A run that was killed after its last result has left its shards, and they would be taken for the new one's.
        remove_parts(self._shards)
        self._move(self.path, self._before, self._files())

    @staticmethod
    def _move(origin: Path, to: Path, files: Iterable[Path]) -> None:
        try:
            to.mkdir(exist_ok=True)
            for path in files:
                if (origin / path.name).exists():
                    (origin / path.name).replace(to / path.name)
        except OSError as error:
            message = f"{error.filename}: cannot be moved ({error.strerror}); {_ANOTHER}"
            raise OutputError(message) from error

    def clear(self) -> None:
        """Remove the results of an audit.

        Raises:
            OutputError: Something is there that no audit wrote, or cannot be removed.
        """
        self._require_own()
        try:
            for path in self._files():
                if path == self._shards:
                    remove_parts(path)
                else:
                    path.unlink(missing_ok=True)
        except OSError as error:
            message = f"{error.filename}: cannot be replaced ({error.strerror}); {_ANOTHER}"
            raise OutputError(message) from error


def _differences(was: object, now: object, name: str = "") -> Iterator[tuple[str, object, object]]:
    """Yield what differs between two JSON values, by its dotted name."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in (*was, *(key for key in now if key not in was)):
            yield from _differences(was.get(key), now.get(key), f"{name}.{key}" if name else str(key))
    elif was != now:
        yield name, was, now
