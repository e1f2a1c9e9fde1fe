"""Read the fields that rows of labels share, whoever gave the labels; what is not of the documented form is said."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from demur.data.formats import Opened, json_lines
from demur.data.rows import Row
from demur.data.shapes import detect, named
from demur.errors import LayoutError, RowError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.taxonomy import Taxonomy

__all__ = [
    "OUTCOMES",
    "Ambiguous",
    "Outcome",
    "Texts",
    "annotations_of",
    "bit_of",
    "conversation_of",
    "flag_of",
    "kinds_of",
    "label_lines",
    "outcome_of",
    "require_files",
    "splits_met",
    "with_text",
]

Texts = Mapping[str, object]
"""Messages by row id: the texts of label files that may not carry them; `Ambiguous` where an id has more than one."""

Outcome = Literal["full", "partial", "none"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_MESSAGES = named("openai", {"messages": "messages"})


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Stand in the place of messages whose id names others, too: an error for a row that needs them, for no other.

    Attributes:
        first: `file:line` of the one text.
        second: `file:line` of another.
    """

    first: str
    second: str


def require_files(paths: Iterable[Path], wanted: str) -> None:
    """Refuse paths without a file, the first of which is named beside what would be right.

    Raises:
        SourceError: One of them is missing.
    """
    for path in paths:
        if not path.is_file():
            message = f"no file at {str(path)!r}; give {wanted}"
            raise SourceError(message)


def label_lines(path: Path, texts: Texts | None = None) -> Iterator[Row | RowError]:
    """Yield the rows of a JSONL file with the texts that are given apart, and in its place what is no row."""
    with path.open("rb") as stream:
        for position, record in enumerate(json_lines(Opened(str(path), stream, lambda: 0.0))):
            if isinstance(record.value, RowError):
                yield record.value
            else:
                yield with_text(Row(position, record.value, str(path), record.line), {} if texts is None else texts)


def with_text(row: Row, texts: Texts) -> Row:
    """Return a row with its messages, looked up by its id where it has none of its own; null is no id."""
    name = row.fields.get("id")
    if "messages" in row.fields or name is None or str(name) not in texts:
        return row
    return Row(row.position, {**row.fields, "messages": texts[str(name)]}, row.file, row.line)


def splits_met(splits: Iterable[str]) -> str:
    """Say which splits there are rows of, and how one of them is asked for."""
    names = sorted(splits)
    return f"there are rows of {', '.join(map(repr, names))}; give --split {names[0]} (split={names[0]!r})"


def outcome_of(row: Mapping[str, object], where: str) -> Outcome | None:
    """Return the `verdict`; None where it is absent or null.

    Raises:
        RowError: It is another word.
    """
    outcome = row.get("verdict")
    if outcome is not None and outcome not in OUTCOMES:
        message = f"verdict {outcome!r}; write one of {', '.join(OUTCOMES)}, or null where it is not known"
        raise RowError(message, where=where)
    return outcome


def flag_of(row: Mapping[str, object], name: str, where: str) -> bool | None:
    """Return a bit; None where it is absent or null.

    Raises:
        RowError: It is no bit.
    """
    value = row.get(name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    # bool("false") is True: a text is never taken for a bit.
    message = f"{name} is {value!r}; write true or false, or leave it out"
    raise RowError(message, where=where)


def bit_of(row: Mapping[str, object], where: str) -> bool | None:
    """Tell whether a row refuses: by its `verdict`, else by its `refusal`; None where it is not known.

    Raises:
        RowError: Either is not of the documented form.
    """
    outcome, refusal = outcome_of(row, where), flag_of(row, "refusal", where)
    if outcome is not None:
        return outcome != "none"
    # A verdict of null says that people would differ; only a row that has no verdict at all is taken at its one bit.
    return None if "verdict" in row else refusal


def annotations_of(row: Mapping[str, object], where: str) -> list[Mapping[str, object]]:
    """Return the `annotations` as they stand; none where they are absent or null.

    Raises:
        RowError: They are no list of objects.
    """
    annotations = row.get("annotations")
    if annotations is None:
        return []
    if not isinstance(annotations, list) or not all(isinstance(annotation, dict) for annotation in annotations):
        message = f"annotations is {annotations!r}; write a list of objects, each with its `labels`"
        raise RowError(message, where=where)
    return annotations


def kinds_of(row: Mapping[str, object], taxonomy: Taxonomy, where: str) -> tuple[str, ...]:
    """Return the `labels`, the main one first; none where they are absent or null.

    Raises:
        RowError: They are no list, or name what the taxonomy does not have.
    """
    kinds = row.get("labels")
    if kinds is None:
        return ()
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        message = f"labels is {kinds!r}; write a list of kinds, such as ['privacy'], the main one first"
        raise RowError(message, where=where)
    unknown = [kind for kind in kinds if kind not in taxonomy.keys]
    if unknown:
        message = f"label {unknown[0]!r} is not in the taxonomy; the keys are {', '.join(taxonomy.keys)}"
        raise RowError(message, where=where)
    return tuple(kinds)


def conversation_of(line: Row) -> Conversation:
    """Return the conversation in `messages`.

    Raises:
        RowError: There is none, or no reply in it to judge; or the texts have more than one by the row's id.
    """
    match line.fields.get("messages"):
        case Ambiguous(first, second):
            message = (
                f"id {line.fields['id']!r} has one text at {first} and another at {second}; "
                "give texts in which each id stands for one"
            )
            raise RowError(message, where=line.where, reason="conflicting_text")
    if "messages" not in line.fields:
        message = (
            f"no messages among {', '.join(line.fields) or 'no columns'}{_not_read(line.fields)}; write a list of "
            "{role, content} that ends with the reply, and beside it verdict (full, partial or none) or refusal (true "
            "or false), and labels; or give the file that holds the texts by id"
        )
        raise RowError(message, where=line.where)
    (conversation,) = _MESSAGES.conversations(line)
    return conversation


def _not_read(fields: Mapping[str, object]) -> str:
    """Say of a row in another layout, which an audit would read, that labelled rows are in one alone."""
    with contextlib.suppress(LayoutError):
        columns = detect(fields).columns.values()
        return f" (labelled rows take messages only, not {' and '.join(columns)})"
    return ""
