"""Label as somebody did before: what people or models said of replies, given again as verdicts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from demur.data.intake import as_conversations
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from demur.conversation import Conversation, Turn
    from demur.data.annotated import Annotated, Annotation, Annotator
    from demur.taxonomy import Taxonomy

__all__ = ["NOT_LABELLED", "RecordedLabeler", "recorded_labelers"]

NOT_LABELLED = "not_labelled"
"""Why there is no verdict of a reply that a labeler never came to."""

# A verdict has two kinds at most beside the main one: so the codebook has it.
_N_FURTHER = 2
_SILENT = Verdict.unscored("no_verdict")
_CONFLICTING = "conflicting_labels"


@dataclass(frozen=True, slots=True)
class RecordedLabeler:
    """Give the verdicts that one annotator gave.

    A conversation is found by its turns, whole: the same reply after another context is another one. One that the
    annotator did not label is unscored (`not_labelled`), as is one without a verdict (`no_verdict`) and one that two
    rows label differently (`conflicting_labels`). There are no probabilities: nobody recorded any.

    Attributes:
        annotator: Who labelled, and whether that is a person or a language model.
        verdicts: By the turns of the conversation.
    """

    annotator: Annotator
    verdicts: Mapping[tuple[Turn, ...], Verdict] = field(repr=False)

    @classmethod
    def of(cls, annotator: Annotator, rows: Iterable[Annotated], taxonomy: Taxonomy) -> RecordedLabeler:
        """Gather what the annotator said of those replies whose text is known."""
        verdicts: dict[tuple[Turn, ...], Verdict] = {}
        for row in rows:
            said = next((one for one in row.annotations if one.annotator == annotator), None)
            if said is None or row.conversation is None:
                continue
            turns, verdict = row.conversation.turns, _verdict(said, taxonomy)
            verdicts[turns] = _agreed(verdicts.get(turns, _SILENT), verdict)
        return cls(annotator, verdicts)

    @property
    def name(self) -> str:
        """Return the name that reports use, with what the annotator is."""
        return str(self.annotator)

    def describe(self) -> dict[str, Any]:
        """Return what identifies this labeler: its name, and a hex digest of all verdicts, in whatever order."""
        digest = hashlib.sha256()
        for each in sorted(
            json.dumps([[asdict(turn) for turn in turns], asdict(verdict)]) for turns, verdict in self.verdicts.items()
        ):
            digest.update(each.encode())
        return {"name": self.name, "verdicts_sha256": digest.hexdigest()}

    def label(self, conversations: Iterable[Conversation | str | Mapping[str, Any]]) -> Iterator[Verdict]:
        """Yield one verdict for each reply, in order, of what `Analyzer.label` takes."""
        for conversation in as_conversations(conversations):
            yield self.verdicts.get(conversation.turns, Verdict.unscored(NOT_LABELLED))


def recorded_labelers(rows: Sequence[Annotated], taxonomy: Taxonomy) -> tuple[RecordedLabeler, ...]:
    """Return one labeler for each annotator of the rows, people first."""
    annotators = {one.annotator for row in rows for one in row.annotations}
    return tuple(
        RecordedLabeler.of(annotator, rows, taxonomy) for annotator in sorted(annotators, key=lambda one: one.place)
    )


def _verdict(said: Annotation, taxonomy: Taxonomy) -> Verdict:
    if said.outcome is None:
        return _SILENT
    main = said.labels[0] if said.labels else None
    group = None if main is None else taxonomy.group_of(main)
    return Verdict(said.outcome, category=main, group=group, further=said.labels[1 : 1 + _N_FURTHER])


def _agreed(before: Verdict, after: Verdict) -> Verdict:
    """Return what two rows of the same text say together; to have said nothing in one contradicts nothing."""
    if before in (_SILENT, after):
        return after
    return before if after == _SILENT else Verdict.unscored(_CONFLICTING)
