"""Go through a source once, chunk by chunk, from wherever an earlier run stopped."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.data.sources import BrokenRow
from demur.stats.prevalence import OperatingPoint
from demur.studies.inputs import chunks
from demur.studies.judging import Judging
from demur.studies.progress import Meter
from demur.studies.summary import summary
from demur.studies.tally import Judged, Tally
from demur.studies.writing import read_object, write_json
from demur.verdict import Policy, Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from demur.studies.folder import AuditFolder
    from demur.studies.inputs import Input, Item
    from demur.studies.progress import Progress
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler

__all__ = ["CHUNK", "Run", "chunk_size"]

CHUNK = 1_024
"""Replies after which what is finished is written; an interruption costs no more than these."""


def chunk_size(labeler: Labeler) -> int:
    """Return how many replies make a chunk: what a labeler that has a `chunk` asks for, else `CHUNK`."""
    size = getattr(labeler, "chunk", None)
    return size if isinstance(size, int) else CHUNK


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
        progress: Told how far it has come.
    """

    opened: Input
    labeler: Labeler
    taxonomy: Taxonomy
    folder: AuditFolder
    policy: Policy
    is_once: bool
    strict: bool
    progress: Callable[[Progress], None] | None

    def complete(self) -> None:
        """Label what is not labelled yet, and write the results."""
        shards = self.folder.shards(self.taxonomy)
        tally, finished = Tally.of((), self.taxonomy, threshold=self._threshold), 0
        for stored in shards.tallies():
            tally, finished = tally + stored, finished + 1
        meter = Meter(self.opened, self.progress, tally.composition)
        with self.folder.repeats(finished) if self.is_once else nullcontext() as repeats:
            judging = Judging(self.labeler, self.policy, repeats)
            for number, chunk in enumerate(chunks(self._items(), chunk_size(self.labeler))):
                meter.begin(len(chunk))
                if number < finished:
                    continue
                judged = list(_counted(judging.judge(number, chunk), meter))
                of_chunk = Tally.of(judged, self.taxonomy, threshold=self._threshold)
                shards.write(number, judged, of_chunk)
                tally += of_chunk
        self._finish(tally)

    @property
    def _threshold(self) -> float | None:
        thresholds = getattr(self.labeler, "thresholds", None)
        return float(thresholds.refusal) if isinstance(thresholds, Thresholds) else None

    def _items(self) -> Iterator[Item]:
        for item in self.opened.items():
            if self.strict and isinstance(item, BrokenRow):
                raise item.error
            yield item

    def _finish(self, tally: Tally) -> None:
        """Put the results in place; composition.json comes last, so that it stands for all of them."""
        shards, manifest = self.folder.shards(self.taxonomy), read_object(self.folder.manifest)
        shards.join(self.folder.verdicts)
        write_json(self.folder.tally, tally.to_json())
        content = summary(tally, manifest, layouts=self.opened.layouts, at=self._operating_point())
        write_json(self.folder.composition, content)
        shards.remove()

    def _operating_point(self) -> OperatingPoint | None:
        find = getattr(self.labeler, "operating_point", None)
        # Errors under another policy are not those that were counted.
        if not callable(find) or self._threshold is None or self.policy.not_corrected is not None:
            return None
        found = find(self._threshold)
        return found if isinstance(found, OperatingPoint) else None


def _counted(judged: Iterator[Judged], meter: Meter) -> Iterator[Judged]:
    """Pass verdicts on, and tell of each."""
    for one in judged:
        meter.count(one.verdict)
        yield one
