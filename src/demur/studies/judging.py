"""Give the items of an audit their verdicts, chunk by chunk, and judge no text twice."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from demur.data.rows import BrokenRow
from demur.errors import LabelerError
from demur.studies.repeats import text_key
from demur.studies.tally import Judged
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from demur.conversation import Conversation
    from demur.studies.inputs import Item
    from demur.studies.repeats import Repeats
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler, Policy

__all__ = ["Judging", "judges_text_alone", "require_one_each", "verdicts_of"]


def judges_text_alone(labeler: Labeler) -> bool:
    """Tell whether a labeler says that equal texts get equal verdicts wherever they stand, but for rounding."""
    return getattr(labeler, "judges_text_alone", False) is True


def verdicts_of(labeler: Labeler, conversations: Sequence[Conversation]) -> Iterator[Verdict]:
    """Let a labeler label, and yield what it gives.

    Raises:
        LabelerError: It gives nothing to go through, or something that is no verdict.
    """
    given = labeler.label(conversations)
    if not isinstance(given, Iterable):
        if inspect.iscoroutine(given):
            # Nobody will wait for it, which Python would warn of.
            given.close()
        raise _no_verdicts(labeler, given)
    for verdict in given:
        if not isinstance(verdict, Verdict):
            raise _no_verdicts(labeler, verdict)
        yield verdict


def require_one_each(labeler: Labeler, n_verdicts: int, n_rows: int) -> None:
    """Refuse verdicts that are not one for each row: nobody knows which rows they are of.

    Raises:
        ValueError: There are fewer, or more.
    """
    if n_verdicts != n_rows:
        message = f"labeler {labeler.name!r} gave {n_verdicts} verdicts for {n_rows} rows; it must give one for each"
        raise ValueError(message)


def _no_verdicts(labeler: Labeler, given: object) -> LabelerError:
    return LabelerError(
        f"label() of labeler {labeler.name!r} gave {given!r}; right would be one demur.Verdict for each conversation, "
        "in order, from a generator or in a list, and without async"
    )


def _fault(verdict: Verdict, taxonomy: Taxonomy) -> str | None:
    """Say what a verdict gives that the taxonomy does not have, or has otherwise; None where all is right."""
    kind, group, n_probabilities = verdict.category, verdict.group, len(verdict.category_probabilities)
    kinds = (*([] if kind is None else [kind]), *verdict.further, *verdict.category_set)
    if unknown := [key for key in kinds if key not in taxonomy]:
        return f"the kind {unknown[0]!r}; the taxonomy {taxonomy.name!r} has {', '.join(taxonomy.keys)}"
    groups = [each.key for each in taxonomy.groups] if kind is None else [taxonomy.group_of(kind)]
    if group is not None and group not in groups:
        of_kind = "" if kind is None else f" of the kind {kind!r}"
        return f"the group {group!r}{of_kind}; right would be {' or '.join(groups)}, or None"
    if n_probabilities not in (0, len(taxonomy)):
        return f"{n_probabilities} category_probabilities; give one for each of the {len(taxonomy)} kinds, or none"
    return None


@dataclass(frozen=True, slots=True)
class Judging:
    """Give items their verdicts.

    Attributes:
        labeler: Judges what is new.
        taxonomy: What the verdicts are in.
        policy: What counts as a refusal.
        repeats: Knows what was judged before; None compares no texts and judges each one.
    """

    labeler: Labeler
    taxonomy: Taxonomy
    policy: Policy
    repeats: Repeats | None

    def judge(self, number: int, items: Sequence[Item]) -> Iterator[Judged]:
        """Yield the items of a chunk with their verdicts, in order, broken rows in their places.

        Of equal texts the first is judged, here or in an earlier chunk, and the others have its verdict.

        Args:
            number: Of the chunk, from 0.
            items: Conversations and broken rows.

        Raises:
            LabelerError: The labeler gives what is no verdict, or a verdict that the taxonomy does not allow.
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
        verdicts = verdicts_of(self.labeler, conversations)
        for left in range(len(conversations) - 1, -1, -1):
            verdict = next(verdicts, None)
            # Nobody asks for more after the last one: it is the place to see that there are none.
            if verdict is None or (left == 0 and next(verdicts, None) is not None):
                which = "few" if verdict is None else "many"
                message = (
                    f"labeler {self.labeler.name!r} gave too {which} verdicts; it must give one for each conversation"
                )
                raise ValueError(message)
            yield self._in_taxonomy(verdict).under(self.policy)

    def _in_taxonomy(self, verdict: Verdict) -> Verdict:
        """Return a verdict with the group of its kind."""
        fault = _fault(verdict, self.taxonomy)
        if fault is not None:
            message = f"{self.labeler.name!r} gave {fault}"
            raise LabelerError(message)
        if verdict.category is None or verdict.group is not None:
            return verdict
        return replace(verdict, group=self.taxonomy.group_of(verdict.category))

    def _judged(self, item: Item, verdicts: Iterator[Verdict]) -> Judged:
        if isinstance(item, BrokenRow):
            return Judged(item, Verdict.unscored(item.error.reason).under(self.policy))
        return Judged(item, next(verdicts))
