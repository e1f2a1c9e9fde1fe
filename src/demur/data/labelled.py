"""Read labelled conversations: what people or models said of the last reply, whole where it is given."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.data.label_fields import (
    Ambiguous,
    Outcome,
    Texts,
    annotations_of,
    bit_of,
    conversation_of,
    flag_of,
    kinds_of,
    label_lines,
    outcome_of,
    require_files,
    splits_met,
)
from demur.errors import RowError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.data.rows import Row
    from demur.taxonomy import Taxonomy

__all__ = [
    "DROPPED",
    "JOURNAL",
    "REJECTS",
    "Labelled",
    "LabelledRows",
    "Outcome",
    "Texts",
    "labelled_files",
    "read_labelled",
    "read_split",
    "read_texts",
]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Keep a conversation with what is known of its last reply.

    Attributes:
        conversation: The turns, the judged reply last.
        id: Name of the row in its file.
        source: Data set that the row came from.
        outcome: `full`, `partial` or `none`; None where it is not known.
        is_refusal: One bit: follows the outcome; the row's own `refusal` where it has no `verdict` field; None where
            the verdict is null.
        labels: Kinds, the main one first; empty for `none` and where the kind is not known.
        readings: The label lists of all annotators who saw a refusal; one reading where there is one annotator.
        is_weak: Labelled indirectly, so that some labels are wrong.
        is_drawn_hard: Drawn because a model was unsure of it, so that it says nothing of the usual row.
        is_agreed: Whether a majority named the same kind; True where the file does not say.
        split: `train`, `dev`, or None.
        family: What sort of case it is, where a file sorts its cases; figures are given for each.
        weight: How much the row counts in training; 0 for one that is only held out.
        confidence: Probability that the label of the gate is right, which softens its target.
        teacher_share: Share of the targets that is what teachers think; None where the settings of training say it.
        origin_prompt: Of a variant of another row, what that row's prompt is told by; None where the row is no variant.
    """

    conversation: Conversation
    id: str
    source: str
    outcome: Outcome | None
    is_refusal: bool | None
    labels: tuple[str, ...] = ()
    readings: tuple[tuple[str, ...], ...] = ()
    is_weak: bool = False
    is_drawn_hard: bool = False
    is_agreed: bool = True
    split: str | None = None
    family: str | None = None
    weight: float = 1.0
    confidence: float = 1.0
    teacher_share: float | None = None
    origin_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Keep the labelled rows of a file.

    Attributes:
        rows: Those of the split that was asked for, and those without one.
        other_splits: Number of rows that were left out, by their split.
    """

    rows: list[Labelled]
    other_splits: Mapping[str, int]


DROPPED, REJECTS, JOURNAL = ".dropped.jsonl", ".rejects.jsonl", ".journal.jsonl"
"""How the names of files end that hold what `demur synth` put aside, beside what it kept."""


def labelled_files(path: Path) -> list[Path]:
    """Return the JSONL files below a folder, by name; a path that is no folder stands for itself.

    What `demur synth` put aside there, dropped and rejected rows and its journal, is no row to learn from.

    Raises:
        SourceError: There is none below the folder.
    """
    files = [path]
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*.jsonl")) if not file.name.endswith((DROPPED, REJECTS, JOURNAL))]
    if not files:
        message = f"no .jsonl file below {str(path)!r}; give a JSONL file, or a folder that holds some"
        raise SourceError(message)
    return files


def read_labelled(
    path: Path,
    taxonomy: Taxonomy,
    *,
    split: str | None = None,
    texts: Texts | None = None,
    needs_truth: bool = False,
) -> list[Labelled]:
    """Read a JSONL of labelled conversations, of one split where one is named: the rows alone of `read_split`."""
    return read_split(path, taxonomy, split=split, texts=texts, needs_truth=needs_truth).rows


def read_split(
    path: Path,
    taxonomy: Taxonomy,
    *,
    split: str | None,
    texts: Texts | None = None,
    needs_truth: bool = False,
) -> LabelledRows:
    """Read a JSONL of labelled conversations, and count the rows of other splits than the one that is named.

    Args:
        path: The file.
        taxonomy: Names the kinds.
        split: Name of a split, or None for all; rows without a split are always read.
        texts: Messages by id, for rows that have none of their own.
        needs_truth: Whether it must be known of at least one row whether it refuses.

    Raises:
        SourceError: The file is missing or holds no row of that split; or of none it is known whether it refuses, and
            that is needed.
        RowError: A row is no JSON object, or its messages, verdict, labels or bits are not of the documented form.
    """
    require_files([path], "a JSONL file of labelled conversations")
    columns: dict[str, None] = {}
    rows: list[Labelled] = []
    others: Counter[str] = Counter()
    for line in _sound(label_lines(path, texts)):
        columns.update(dict.fromkeys(line.fields))
        row = _labelled(line, taxonomy)
        if split is None or row.split is None or row.split == split:
            rows.append(row)
        else:
            others[row.split] += 1
    if not rows and others:
        message = f"{path}: no labelled row of split {split!r}; {splits_met(others)}"
        raise SourceError(message)
    if not rows or (needs_truth and all(row.is_refusal is None for row in rows)):
        of_split = "" if split is None else f" of split {split!r}"
        met = f"; the columns are {', '.join(columns)}" if columns else ""
        message = f"{path}: no labelled row{of_split}; a row needs `messages` and a `verdict` or `refusal`{met}"
        raise SourceError(message)
    return LabelledRows(rows, dict(sorted(others.items())))


def read_texts(paths: Sequence[Path]) -> dict[str, object]:
    """Read the messages of JSONL files, or folders of them, by the rows' ids; `Ambiguous` where an id has two texts.

    Raises:
        SourceError: A file is missing, or a folder holds none.
        RowError: A line is no JSON object.
    """
    files = [file for path in paths for file in labelled_files(path)]
    require_files(files, "JSONL files whose rows have `id` and `messages`, or folders of them")
    texts: dict[str, object] = {}
    places: dict[str, str] = {}
    for line in (line for path in files for line in _sound(label_lines(path))):
        if line.fields.get("id") is None or "messages" not in line.fields:
            continue
        name, messages = str(line.fields["id"]), line.fields["messages"]
        place = places.setdefault(name, line.where)
        if texts.setdefault(name, messages) != messages:
            texts[name] = Ambiguous(place, line.where)
    return texts


def _sound(lines: Iterator[Row | RowError]) -> Iterator[Row]:
    for line in lines:
        if isinstance(line, RowError):
            raise line
        yield line


def _source_of(row: Mapping[str, object]) -> str:
    """Name the source of a row; a null, which tables write where files of several kinds are merged, is none."""
    if row.get("source") is not None:
        return str(row["source"])
    return "unknown" if row.get("leaf") is None else "synthetic"


def _labelled(line: Row, taxonomy: Taxonomy) -> Labelled:
    row, where = line.fields, line.where
    labels = kinds_of(row, taxonomy, where)
    readings = [kinds_of(annotation, taxonomy, where) for annotation in annotations_of(row, where)]
    return Labelled(
        conversation=conversation_of(line),
        id=where if row.get("id") is None else str(row["id"]),
        source=_source_of(row),
        outcome=outcome_of(row, where),
        is_refusal=bit_of(row, where),
        labels=labels,
        readings=tuple(reading for reading in readings if reading) or ((labels,) if labels else ()),
        is_weak=flag_of(row, "weak", where) is True,
        is_drawn_hard=flag_of(row, "drawn_hard", where) is True,
        is_agreed=flag_of(row, "agreed", where) is not False,
        split=None if row.get("split") is None else str(row["split"]),
        family=None if row.get("family") is None else str(row["family"]),
        origin_prompt=None if row.get("origin_prompt") is None else str(row["origin_prompt"]),
    )
