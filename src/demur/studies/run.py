"""Go through a source once, chunk by chunk, from wherever an earlier run stopped."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.data.sources import BrokenRow
from demur.errors import LabelerError, SourceError
from demur.stats.prevalence import OperatingPoint
from demur.studies.inputs import chunks
from demur.studies.judging import Judging
from demur.studies.progress import Meter
from demur.studies.summary import summary
from demur.studies.tally import Judged, Tally
from demur.studies.writing import read_object, write_json
from demur.verdict import Policy, Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from demur.studies.folder import AuditFolder
    from demur.studies.inputs import Input, Item
    from demur.studies.progress import Progress
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler

__all__ = ["CHUNK", "Run", "chunk_size", "read", "stamp", "threshold"]

CHUNK = 1_024
"""Replies after which what is finished is written; an interruption costs no more than these."""


def chunk_size(labeler: Labeler) -> int:
    """Return how many replies make a chunk: what a labeler that has a `chunk` asks for, else `CHUNK`.

    Raises:
        LabelerError: It asks for less than one.
    """
    size = getattr(labeler, "chunk", None)
    if isinstance(size, int) and size < 1:
        message = f"labeler {labeler.name!r} has chunk {size}; right would be a number of replies from 1 on, or none"
        raise LabelerError(message)
    return size if isinstance(size, int) else CHUNK


def threshold(labeler: Labeler) -> float | None:
    """Return the probability from which a reply refuses; None where the labeler has none.

    Raises:
        LabelerError: What it has for thresholds are none.
    """
    thresholds = getattr(labeler, "thresholds", None)
    if thresholds is None:
        return None
    if not isinstance(thresholds, Thresholds):
        message = (
            f"labeler {labeler.name!r} has thresholds {thresholds!r}; right would be demur.Thresholds(refusal=…), "
            "or none"
        )
        raise LabelerError(message)
    return float(thresholds.refusal)


def stamp(file: Path) -> object:
    """Return what changes when a file does, short of reading it: its place on the disk, its size and its time."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def read(opened: Input, *, strict: bool) -> Iterator[Item]:
    """Yield the items of a source.

    Raises:
        RowError: A row cannot be read, and `strict` is set.
    """
    for item in opened.items():
        if strict and isinstance(item, BrokenRow):
            raise item.error
        yield item


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Go through the source once.

    Attributes:
        opened: What is audited.
        labeler: Who judges.
        taxonomy: What the verdicts are in.
        folder: Where the results go.
        policy: What counts as a refusal.
        is_once: Whether each text is judged once, however often it comes.
        strict: Whether a row that cannot be read stops it all.
        stamps: What tells of each file that is read whether it has changed since the run began.
        progress: Told how far it has come.
    """

    opened: Input
    labeler: Labeler
    taxonomy: Taxonomy
    folder: AuditFolder
    policy: Policy
    is_once: bool
    strict: bool
    stamps: Mapping[Path, object]
    progress: Callable[[Progress], None] | None

    def complete(self) -> None:
        """Label what is not labelled yet, and write the results."""
        shards = self.folder.shards(self.taxonomy)
        shards.drop_damaged()
        tally, finished = Tally.of((), self.taxonomy, threshold=threshold(self.labeler)), 0
        for stored in shards.tallies():
            tally, finished = tally + stored, finished + 1
        meter = Meter(self.opened, self.progress, tally.composition)
        with self.folder.repeats(finished) if self.is_once else nullcontext() as repeats:
            judging = Judging(self.labeler, self.taxonomy, self.policy, repeats)
            for number, chunk in enumerate(chunks(read(self.opened, strict=self.strict), chunk_size(self.labeler))):
                meter.begin(len(chunk))
                if number < finished:
                    continue
                judged = list(_counted(judging.judge(number, chunk), meter))
                of_chunk = Tally.of(judged, self.taxonomy, threshold=threshold(self.labeler))
                shards.write(number, judged, of_chunk)
                tally += of_chunk
        self.finish(tally, self.opened.layouts)

    def finish(self, tally: Tally, layouts: Mapping[str, int]) -> None:
        """Put the results in place; composition.json comes last, so that it stands for all of them.

        Args:
            tally: Counts and highlights of all shards, which are all there.
            layouts: Number of files by the layout that they were read in.

        Raises:
            SourceError: A file has changed since the run began.
        """
        changed = [str(file) for file, stamped in self.stamps.items() if stamp(file) != stamped]
        if changed:
            message = (
                f"{', '.join(changed)} changed while it was audited, so that no one state of it has these verdicts; "
                "give a copy that stays as it is, and begin anew with --overwrite (overwrite=True)"
            )
            raise SourceError(message)
        shards, manifest = self.folder.shards(self.taxonomy), read_object(self.folder.manifest)
        shards.join(self.folder.verdicts, n_rows=tally.composition.rows)
        write_json(self.folder.tally, tally.to_json())
        content = summary(tally, manifest, layouts=layouts, at=self._operating_point())
        write_json(self.folder.composition, content)
        shards.remove()

    def _operating_point(self) -> OperatingPoint | None:
        find, at = getattr(self.labeler, "operating_point", None), threshold(self.labeler)
        # Errors under another policy are not those that were counted.
        if not callable(find) or at is None or self.policy.not_corrected is not None:
            return None
        found = find(at)
        return found if isinstance(found, OperatingPoint) else None


def _counted(judged: Iterator[Judged], meter: Meter) -> Iterator[Judged]:
    """Pass verdicts on, and tell of each."""
    for one in judged:
        meter.count(one.verdict)
        yield one
