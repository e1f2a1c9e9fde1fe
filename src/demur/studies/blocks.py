"""Cut an audit into blocks that any process can judge: read here, label there, and pack what is found.

A block is what one shard of the audit holds, so the shards are those of a run on one machine, byte for byte. Nothing
here knows who carries the blocks.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.errors import ClusterError, DemurError
from demur.studies.inputs import chunks, open_input
from demur.studies.judging import Judging
from demur.studies.run import read, threshold
from demur.studies.shards import Packed, Shards
from demur.studies.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from demur.studies.inputs import Item, ReadingOptions
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler, Policy

__all__ = ["Block", "BlockJudge", "End", "Reading", "Shard", "Stopped"]


@dataclass(frozen=True, slots=True)
class Reading:
    """Say what is read, and how, wherever that is done.

    Attributes:
        source: What `open_input` takes; a relative path is one from `folder`.
        options: How it is read.
        folder: The folder that the audit was started in.
        fingerprint: What the source is known by; None where it is read on the machine that took the fingerprint.
        chunk: How many replies make a shard.
        strict: Whether the first row that cannot be read ends it all.
        finished: Shards that are there already, and not wanted again.
    """

    source: Any
    options: ReadingOptions
    folder: str
    fingerprint: str | None
    chunk: int
    strict: bool
    finished: frozenset[int]

    def blocks(self) -> Iterator[Block | End | Stopped]:
        """Yield the blocks of the shards that are wanted, in order, and at last the `End`, or why it `Stopped`."""
        try:
            with _inside(self.folder):
                yield from self._blocks()
        except DemurError as error:
            yield Stopped(error)

    def _blocks(self) -> Iterator[Block | End]:
        told: list[tuple[str, str]] = []
        opened = open_input(self.source, self.options, lambda file, layout: told.append((file, layout)))
        if self.fingerprint not in (None, opened.fingerprint()):
            message = (
                f"{opened.name!r} is not the same on the cluster as here; give a source that every machine sees, such "
                "as a shared folder or hf://owner/name"
            )
            raise ClusterError(message)
        n_blocks, before = 0, 0.0
        for number, chunk in enumerate(chunks(read(opened, strict=self.strict), self.chunk)):
            n_blocks = number + 1
            if number in self.finished:
                continue
            now = opened.fraction_read
            yield Block(number, tuple(chunk), None if now is None else now - before, tuple(told))
            before = before if now is None else now
            told.clear()
        yield End(n_blocks, tuple(told), dict(opened.layouts))


@dataclass(frozen=True, slots=True)
class Block:
    """Keep what one shard is made of.

    Attributes:
        number: Of the shard, from 0.
        items: Conversations, and the rows that gave none.
        share: Share of the source that was read for it, that of finished shards before it included; None where it
            cannot be known.
        layouts: Files met since the block before, each with the layout that it is read in.
    """

    number: int
    items: tuple[Item, ...]
    share: float | None
    layouts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shard:
    """Keep what was found of a block: its files, and what a progress bar shows of it.

    Attributes:
        number: Of the shard, from 0.
        packed: Its two files.
        replies: Verdicts in it.
        refusals: Refusals among them.
        unscored: Unscored verdicts among them.
        share: As of the block.
        layouts: As of the block.
    """

    number: int
    packed: Packed
    replies: int
    refusals: int
    unscored: int
    share: float | None
    layouts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class End:
    """Say that the source was read to its end.

    Attributes:
        n_blocks: How many shards there are, finished ones included.
        layouts: Files met since the last block.
        n_files: Number of files by layout.
    """

    n_blocks: int
    layouts: tuple[tuple[str, str], ...]
    n_files: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Say which error, one that no repetition helps against, ends the audit."""

    error: DemurError


class BlockJudge:
    """Judge one block after the other with a labeler that is loaded once."""

    def __init__(self, labeler: Labeler, taxonomy: Taxonomy, policy: Policy) -> None:
        """Take who judges, and how it is counted."""
        self._labeler = labeler
        self._taxonomy = taxonomy
        self._policy = policy

    def __call__(self, block: Block | End | Stopped) -> Shard | End | Stopped:
        """Judge a block as a run on one machine would; pass on whatever else comes."""
        if not isinstance(block, Block):
            return block
        try:
            return self._shard(block)
        except DemurError as error:
            return Stopped(error)

    def _shard(self, block: Block) -> Shard:
        found = list(Judging(self._labeler, self._taxonomy, self._policy, None).judge(0, block.items))
        tally = Tally.of(found, self._taxonomy, threshold=threshold(self._labeler))
        with tempfile.TemporaryDirectory(prefix="demur-") as folder:
            shards = Shards(Path(folder), self._taxonomy)
            shards.write(block.number, found, tally)
            packed = shards.packed(block.number)
        counts = tally.composition
        unscored = counts.rows - counts.scored
        return Shard(block.number, packed, counts.rows, counts.refusals, unscored, block.share, block.layouts)


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    """Work in a folder for a while, where this machine has it."""
    before = Path.cwd()
    if Path(folder).is_dir():
        os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
