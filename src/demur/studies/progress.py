"""Tell how far an audit has come."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.stats.composition import Composition
    from demur.studies.inputs import Input
    from demur.verdict import Verdict

__all__ = ["Meter", "Progress"]

_TELL_EVERY = 64
# A judge gives a verdict now and then.
_TELL_AFTER_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Say how far an audit has come.

    Attributes:
        replies: Verdicts so far, with those of an earlier run that is gone on with.
        resumed: How many of them an earlier run gave.
        refusals: Refusals so far.
        unscored: Unscored verdicts so far.
        fraction: Share of the source that is labelled, from 0 to 1; None where it cannot be known.
    """

    replies: int
    resumed: int
    refusals: int
    unscored: int
    fraction: float | None


class Meter:
    """Count verdicts as they come, and tell the caller now and then."""

    def __init__(self, opened: Input, tell: Callable[[Progress], None] | None, earlier: Composition) -> None:
        """Begin with what an earlier run counted.

        Args:
            opened: Knows what share of the source was read.
            tell: Whom to tell; None for nobody.
            earlier: Counts of the chunks that are finished already.
        """
        self._opened = opened
        self._tell = tell
        self._resumed = self._replies = earlier.rows
        self._refusals = earlier.refusals
        self._unscored = earlier.rows - earlier.scored
        self._size = self._done = 0
        self._told_at = time.monotonic()
        self._read_before: float | None = 0.0
        self._read: float | None = 0.0

    def begin(self, size: int) -> None:
        """Begin a chunk of so many items, which have just been read; one that is finished is begun, and left."""
        self._read_before, self._read = self._read, self._opened.fraction_read
        self._size, self._done = size, 0

    def count(self, verdict: Verdict) -> None:
        """Count one verdict."""
        self._replies += 1
        self._done += 1
        self._refusals += verdict.is_refusal
        self._unscored += not verdict.is_scored
        is_slow = time.monotonic() - self._told_at >= _TELL_AFTER_SECONDS
        if self._tell is not None and (self._done % _TELL_EVERY == 0 or self._done == self._size or is_slow):
            self._told_at = time.monotonic()
            self._tell(Progress(self._replies, self._resumed, self._refusals, self._unscored, self._fraction()))

    def _fraction(self) -> float | None:
        """Return the share that is labelled: a chunk is read whole before its first verdict comes."""
        if self._read is None or self._read_before is None:
            return None
        return self._read_before + (self._read - self._read_before) * self._done / self._size
