"""Write down each decision as it is made, so that a run that is stopped or killed goes on where it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from demur.data.labelled import JOURNAL, REJECTS
from demur.documents import listed
from demur.errors import OutputError
from demur.studies.writing import writing
from demur.synthesis.decisions import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Journal", "Places"]

_MARK = "demur_synthesis"
_VERSION = 1


class Places:
    """Name the files of a run after the one that its rows go to."""

    def __init__(self, rows: Path) -> None:
        """Take the file of the rows.

        Raises:
            OutputError: It does not end in `.jsonl`.
        """
        if rows.suffix != ".jsonl":
            message = f"{str(rows)!r} is to hold rows as JSON Lines; give a name that ends in .jsonl"
            raise OutputError(message)
        self.rows = rows

    @property
    def rejects(self) -> Path:
        """Return where attempts are that did not count, each with its reason."""
        return self.rows.with_suffix(REJECTS)

    @property
    def report(self) -> Path:
        """Return where the counts, the diversity and the spending are."""
        return self.rows.with_suffix(".report.json")

    @property
    def journal(self) -> Path:
        """Return where every decision is written as it is made; a run goes on from it."""
        return self.rows.with_suffix(JOURNAL)

    @property
    def written(self) -> tuple[Path, ...]:
        """Return all that a run writes and leaves behind."""
        return self.rows, self.rejects, self.report, self.journal

    @property
    def lock(self) -> Path:
        """Return what stands for the run while it is under way: two at once would each miss the other's decisions."""
        return self.rows.with_suffix(".lock")


class Journal:
    """Keep the decisions of one run: the first line says of which run, each further one holds a decision."""

    def __init__(self, path: Path, decisions: list[Decision]) -> None:
        """Take a journal as it is; `open` is the door."""
        self.path = path
        self.decisions = decisions

    @classmethod
    def open(cls, places: Places, manifest: Mapping[str, Any], *, resume: bool, overwrite: bool) -> Journal:
        """Begin a journal, or open the one that is there.

        When a run goes on, given-up attempts are left out and so made again, whatever became of later ones: nothing was
        said against the row. Only those stay that came before the attempt at which the row was kept.

        Args:
            places: Where the run writes.
            manifest: All that decides what is written and what is kept.
            resume: Go on with the run that is there; begin if there is none.
            overwrite: Replace the run that is there.

        Raises:
            OutputError: A run is there and neither flag says what to do with it; it is to be resumed although something
                changed; a file is there that no run wrote; or the place cannot be used.
        """
        path = places.journal
        if path.is_file():
            if resume:
                return cls._resumed(path, manifest)
            _read_manifest(path)
            if not overwrite:
                message = f"{str(places.rows)!r}: a run is there; go on with --resume, or replace it with --overwrite"
                raise OutputError(message)
        elif taken := [str(each) for each in (places.rows, places.rejects, places.report) if each.exists()]:
            message = f"{listed(taken)}: not written by a run that could be gone on with; give another name with --out"
            raise OutputError(message)
        try:
            for each in (places.report, places.rejects, places.rows):
                each.unlink(missing_ok=True)
        except OSError as error:
            message = f"{path}: cannot be replaced ({error.strerror}); give another place with --out"
            raise OutputError(message) from error
        with writing(path) as temporary:
            temporary.write_text(_line({_MARK: _VERSION, **manifest}), encoding="utf-8")
        return cls(path, [])

    @classmethod
    def _resumed(cls, path: Path, manifest: Mapping[str, Any]) -> Journal:
        before = _read_manifest(path)
        now = json.loads(_line({_MARK: _VERSION, **manifest}))
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if changed:
            message = (
                f"{path}: cannot be resumed, something changed: {listed(changed)}. Begin anew with --overwrite, or "
                "give another name with --out"
            )
            raise OutputError(message)
        return cls(path, _standing(_read_decisions(path)))

    def add(self, decision: Decision) -> None:
        """Write a decision down.

        Raises:
            OutputError: The file cannot be written.
        """
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(decision.to_json()))
        except OSError as error:
            message = f"{self.path}: cannot be written ({error.strerror}); free the place, then go on with --resume"
            raise OutputError(message) from error
        self.decisions.append(decision)


def _read_manifest(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        line = file.readline()
    try:
        found = json.loads(line)
        if found[_MARK] == _VERSION and isinstance(found, dict):
            return found
    except (ValueError, KeyError, TypeError):
        pass
    message = f"{path}: is no journal of `demur synth generate`; move it away, or give another name with --out"
    raise OutputError(message)


def _read_decisions(path: Path) -> list[Decision]:
    """Read the decisions, and cut off a last line that was not finished when the process was killed."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    found = []
    for number, line in enumerate(whole.splitlines()[1:], start=2):
        try:
            found.append(Decision.from_json(json.loads(line)))
        except ValueError as error:
            message = f"{path}:{number}: cannot be read ({error}); begin anew with --overwrite"
            raise OutputError(message) from error
    return found


def _standing(decisions: list[Decision]) -> list[Decision]:
    """Return the decisions that still hold, in order: of an attempt the last one, and none to be made again."""
    made = {(decision.id, decision.attempt): decision for decision in decisions}
    kept = {decision.id: decision.attempt for decision in made.values() if decision.fate == "kept"}
    return [
        decision
        for decision in decisions
        if made[decision.id, decision.attempt] is decision
        and (decision.fate != "given_up" or decision.attempt < kept.get(decision.id, 0))
    ]


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"
