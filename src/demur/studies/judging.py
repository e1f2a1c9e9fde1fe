"""Give the items of an audit their verdicts, chunk by chunk, and judge no text twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.data.rows import BrokenRow
from demur.studies.repeats import text_key
from demur.studies.tally import Judged
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from demur.conversation import Conversation
    from demur.studies.inputs import Item
    from demur.studies.repeats import Repeats
    from demur.verdict import Labeler, Policy

__all__ = ["Judging", "judges_text_alone"]


def judges_text_alone(labeler: Labeler) -> bool:
    """Tell whether a labeler says that equal texts get equal verdicts wherever they stand, but for rounding."""
    return getattr(labeler, "judges_text_alone", False) is True


@dataclass(frozen=True, slots=True)
class Judging:
    """Give items their verdicts.

    Attributes:
        labeler: Judges what is new.
        policy: What counts as a refusal.
        repeats: Knows what was judged before; None compares no texts and judges each one.
    """

    labeler: Labeler
    policy: Policy
    repeats: Repeats | None

    def judge(self, number: int, items: Sequence[Item]) -> Iterator[Judged]:
        """Yield the items of a chunk with their verdicts, in order, broken rows in their places.

        Of equal texts the first is judged, here or in an earlier chunk, and the others have its verdict.

        Args:
            number: Of the chunk, from 0.
            items: Conversations and broken rows.

        Raises:
            ValueError: The labeler gives too few verdicts, or too many.
            OutputError: What is known of texts cannot be read or written.
        """
        if self.repeats is None:
            verdicts = self._verdicts([item for item in items if not isinstance(item, BrokenRow)])
            yield from (self._judged(item, verdicts) for item in items)
            return
        keys = [b"" if isinstance(item, BrokenRow) else text_key(item) for item in items]
        known = self.repeats.find({key for key in keys if key})
        first: dict[bytes, Conversation] = {}
        for key, item in zip(keys, items, strict=True):
            if key not in known and not isinstance(item, BrokenRow):
                first.setdefault(key, item)
        verdicts = self._verdicts(list(first.values()))
        new: dict[bytes, Verdict] = {}
        for key, item in zip(keys, items, strict=True):
            if key in known:
                yield Judged(item, known[key].under(self.policy), is_repeat=True)
                continue
            judged = self._judged(item, verdicts)
            if key:
                known[key] = new[key] = judged.verdict
            yield judged
        self.repeats.keep(number, new)

    def _verdicts(self, conversations: Sequence[Conversation]) -> Iterator[Verdict]:
        verdicts = iter(self.labeler.label(conversations))
        for left in range(len(conversations) - 1, -1, -1):
            verdict = next(verdicts, None)
            # Nobody asks for more after the last one: it is the place to see that there are none.
            if verdict is None or (left == 0 and next(verdicts, None) is not None):
                which = "few" if verdict is None else "many"
                message = (
                    f"labeler {self.labeler.name!r} gave too {which} verdicts; it must give one for each conversation"
                )
                raise ValueError(message)
            yield verdict.under(self.policy)

    def _judged(self, item: Item, verdicts: Iterator[Verdict]) -> Judged:
        if isinstance(item, BrokenRow):
            return Judged(item, Verdict.unscored(item.error.reason).under(self.policy))
        return Judged(item, next(verdicts))
