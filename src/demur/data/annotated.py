"""Read what several annotators said of the same replies: people and language models, told apart by their kind."""

from __future__ import annotations

import logging
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Literal, get_args

from demur.data.label_fields import (
    OUTCOMES,
    annotations_of,
    conversation_of,
    kinds_of,
    label_lines,
    outcome_of,
    require_files,
    splits_met,
    with_text,
)
from demur.data.rows import Row
from demur.errors import RowError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from demur.conversation import Conversation, Turn
    from demur.data.label_fields import Outcome, Texts
    from demur.taxonomy import Taxonomy

__all__ = [
    "ANNOTATOR_KINDS",
    "Annotated",
    "AnnotatedRows",
    "Annotation",
    "Annotator",
    "AnnotatorKind",
    "read_annotated",
    "take_annotated",
]

_LOG = logging.getLogger(__name__)

AnnotatorKind = Literal["human", "llm"]
ANNOTATOR_KINDS: tuple[AnnotatorKind, ...] = get_args(AnnotatorKind)

_KIND_NAMES = {"human": "human", "llm": "LLM"}
_IN_MEMORY = "items"
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Annotator:
    """Name who labelled, and whether that is a person or a language model: the same name may stand for one of each."""

    name: str
    kind: AnnotatorKind

    def __str__(self) -> str:
        """Return the name that reports use, which never leaves out what the annotator is."""
        return f"{self.name} ({_KIND_NAMES[self.kind]})"

    @property
    def place(self) -> tuple[int, list[tuple[str, int]]]:
        """Return what sorts annotators: people first, then by name, in which llm_2 stands before llm_10."""
        parts = _DIGITS.split(self.name)
        numbered = [(text, int(number)) for text, number in zip(parts[::2], [*parts[1::2], "0"], strict=True)]
        return ANNOTATOR_KINDS.index(self.kind), numbered


@dataclass(frozen=True, slots=True)
class Annotation:
    """Keep what one annotator said of one reply.

    Attributes:
        annotator: Who said it.
        outcome: `full`, `partial` or `none`; None where no verdict was given: a missing answer, never a guess.
        labels: Kinds, the main one first; empty for `none` and where no kind was named.
        sure: How sure the annotator was, on the file's own scale; None where it was not said.
    """

    annotator: Annotator
    outcome: Outcome | None
    labels: tuple[str, ...] = ()
    sure: float | None = None


@dataclass(frozen=True, slots=True)
class Annotated:
    """Keep one reply with all that was said of it.

    Attributes:
        id: Name of the reply; where it has none, its place.
        source: Data set that the reply came from.
        where: `file:line` of its first row.
        conversation: The turns, the judged reply last; None where the file does not hold its text.
        annotations: One for each annotator at most.
    """

    id: str
    source: str
    where: str
    conversation: Conversation | None
    annotations: tuple[Annotation, ...]

    def joined(self, other: Annotated) -> Annotated:
        """Return the reply with what another row says of it.

        Raises:
            RowError: The other row has another text under the same id, or an annotator says two things.
        """
        ours, theirs = self.conversation, other.conversation
        if ours is not None and theirs is not None and ours.turns != theirs.turns:
            message = f"id {self.id!r} stands for another text at {self.where}; give each text an id of its own"
            raise RowError(message, where=other.where, reason="conflicting_text")
        both = _one_each((*self.annotations, *other.annotations), other.where)
        return replace(self, conversation=theirs if ours is None else ours, annotations=both)


@dataclass(frozen=True, slots=True)
class AnnotatedRows:
    """Keep the replies of one or more files.

    Attributes:
        name: What was read.
        rows: The replies; rows of one id are one reply.
        broken: Why rows could not be read, each with its place: they are counted, and in no figure.
        other_splits: Number of rows that were left out, by their split.
    """

    name: str
    rows: tuple[Annotated, ...]
    broken: tuple[RowError, ...] = ()
    other_splits: Mapping[str, int] = field(default_factory=dict)

    @property
    def annotators(self) -> tuple[Annotator, ...]:
        """Return who labelled anything, people first."""
        found = {one.annotator for row in self.rows for one in row.annotations}
        return tuple(sorted(found, key=lambda annotator: annotator.place))

    @property
    def texts(self) -> Texts:
        """Return the messages by id, for other files that label the same replies."""
        return {
            row.id: [{"role": turn.role, "content": turn.content} for turn in row.conversation.turns]
            for row in self.rows
            if row.conversation is not None
        }


def read_annotated(
    paths: Sequence[Path],
    taxonomy: Taxonomy,
    *,
    split: str | None = None,
    texts: Texts | None = None,
    strict: bool = False,
) -> AnnotatedRows:
    """Read JSONL files whose rows have `annotations`; what several rows say of one id is said of one reply.

    Args:
        paths: The files; annotators may each have a file of their own.
        taxonomy: Names the kinds.
        split: Name of a split, or None for all; rows without a split are always read.
        texts: Messages by id, for rows that have none of their own.
        strict: Raise on the first row that cannot be read, instead of counting it.

    Raises:
        SourceError: A file is missing, or no row has annotations.
        RowError: With `strict`, the first row that cannot be read.
    """
    require_files(paths, "JSONL files whose rows have `annotations`")
    lines = (line for path in paths for line in label_lines(path, texts))
    return _read(lines, ", ".join(map(str, paths)), taxonomy, split=split, strict=strict)


def take_annotated(
    items: Iterable[Mapping[str, object]],
    taxonomy: Taxonomy,
    *,
    split: str | None = None,
    texts: Texts | None = None,
    strict: bool = False,
) -> AnnotatedRows:
    """Take rows that a caller holds in memory, laid out as in a file.

    Raises:
        SourceError: No row has annotations.
        RowError: With `strict`, the first row that cannot be read.
    """
    by_id = {} if texts is None else texts
    lines = (with_text(Row(place, fields, _IN_MEMORY, place + 1), by_id) for place, fields in enumerate(items))
    return _read(lines, _IN_MEMORY, taxonomy, split=split, strict=strict)


def _read(
    lines: Iterable[Row | RowError], name: str, taxonomy: Taxonomy, *, split: str | None, strict: bool
) -> AnnotatedRows:
    rows: dict[str, Annotated] = {}
    broken: list[RowError] = []
    others: Counter[str] = Counter()
    for line in lines:
        of_split = None if isinstance(line, RowError) else line.fields.get("split")
        if split is not None and of_split is not None and str(of_split) != split:
            others[str(of_split)] += 1
            continue
        try:
            row = _annotated(line, taxonomy)
            rows[row.id] = rows[row.id].joined(row) if row.id in rows else row
        except RowError as error:
            if strict:
                raise
            broken.append(error)
    if not rows:
        first = f" ({broken[0]})" if broken else ""
        message = f"{name}: no row with annotations{first}; a row needs `annotations`, one object for each annotator"
        if others:
            message = f"{name}: no row of split {split!r} with annotations{first}; {splits_met(others)}"
        raise SourceError(message)
    _warn_of_parted(rows.values())
    return AnnotatedRows(name, tuple(rows.values()), tuple(broken), dict(sorted(others.items())))


def _warn_of_parted(rows: Iterable[Annotated]) -> None:
    """Say where one reply stands under several ids with annotators of its own each: so nobody would agree on it."""
    first: dict[tuple[Turn, ...], Annotated] = {}
    parted: list[tuple[Annotated, Annotated]] = []
    for row in rows:
        if row.conversation is None:
            continue
        other = first.setdefault(row.conversation.turns, row)
        if other is not row and {one.annotator for one in row.annotations}.isdisjoint(
            one.annotator for one in other.annotations
        ):
            parted.append((other, row))
    if parted:
        (other, row), *_ = parted
        _LOG.warning(
            "%s: %s of the replies stand again under another id, or none, with other annotators (the first is that of "
            "%s); give a reply one id in all files, or it counts as several, on which nobody can agree",
            row.where,
            f"{len(parted):,}",
            other.where,
        )


def _annotated(line: Row | RowError, taxonomy: Taxonomy) -> Annotated:
    if isinstance(line, RowError):
        raise line
    given = annotations_of(line.fields, line.where)
    if not given:
        message = f"no annotations among {', '.join(line.fields)}; write [{{annotator, kind, verdict, labels}}, …]"
        raise RowError(message, where=line.where, reason="no_annotations")
    return Annotated(
        id=line.where if line.fields.get("id") is None else str(line.fields["id"]),
        source="unknown" if line.fields.get("source") is None else str(line.fields["source"]),
        where=line.where,
        conversation=conversation_of(line) if "messages" in line.fields else None,
        annotations=_one_each((_annotation(each, taxonomy, line.where) for each in given), line.where),
    )


def _annotation(given: Mapping[str, object], taxonomy: Taxonomy, where: str) -> Annotation:
    name, kind, sure = given.get("annotator"), given.get("kind"), given.get("sure")
    if not isinstance(name, str) or not name:
        message = f"annotator {name!r}; write who labelled, as a text"
        raise RowError(message, where=where)
    if kind not in ANNOTATOR_KINDS:
        message = f"kind {kind!r} of annotator {name!r}; write {' or '.join(ANNOTATOR_KINDS)}: reports say which"
        raise RowError(message, where=where)
    if isinstance(sure, bool) or not isinstance(sure, int | float | None) or (sure is not None and not isfinite(sure)):
        message = f"sure is {sure!r}; write a number, or leave it out"
        raise RowError(message, where=where)
    if "verdict" not in given and "refusal" in given:
        message = f"{name!r} gives refusal {given['refusal']!r}, and no verdict; write verdict: {', '.join(OUTCOMES)}"
        raise RowError(message, where=where)
    outcome, labels = outcome_of(given, where), tuple(dict.fromkeys(kinds_of(given, taxonomy, where)))
    if labels and outcome in ("none", None):
        message = f"labels {list(labels)!r} beside verdict {outcome!r}; only a refusal has kinds"
        raise RowError(message, where=where)
    return Annotation(Annotator(name, kind), outcome, labels, sure)


def _one_each(annotations: Iterable[Annotation], where: str) -> tuple[Annotation, ...]:
    """Keep one annotation for each annotator; to say the same twice is no second reading."""
    kept: dict[Annotator, Annotation] = {}
    for one in annotations:
        if kept.setdefault(one.annotator, one) != one:
            message = f"{one.annotator} says two things of one reply; keep one of them"
            raise RowError(message, where=where, reason="conflicting_annotations")
    return tuple(kept.values())
