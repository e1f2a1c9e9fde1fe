"""Read data sets that others annotated, in labels of their own: columns are found, labels mapped, nothing is guessed.

Three ways of writing down who said what are known: a row for each reply and annotator, with a column that names the
annotator; a column for each annotator; and one column that holds a list, an entry for each annotator.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.data.annotated import Annotated, AnnotatedRows, Annotation, Annotator
from demur.data.likeness import is_nothing
from demur.data.rows import BrokenRow
from demur.data.shapes import detect
from demur.data.sources import open_source
from demur.errors import LayoutError, RowError, SourceError, TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from demur.conversation import Turn
    from demur.crosswalk import Crosswalk
    from demur.data.annotated import AnnotatorKind
    from demur.data.label_fields import Outcome
    from demur.data.rows import Row

__all__ = ["LabelColumns", "find_label_columns", "read_foreign"]

_LOG = logging.getLogger(__name__)
_WHO = ("annotator", "annotator_id", "annotator_name", "rater", "worker", "worker_id", "labeler", "user", "user_id")


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """Say where labels stand.

    Attributes:
        labels: Columns of labels: a label, a list of labels, or a list with an entry for each annotator.
        annotator: Column that names who gave them; None where each column, or each entry, is an annotator's.
    """

    labels: tuple[str, ...]
    annotator: str | None


def read_foreign(
    spec: str,
    crosswalk: Crosswalk,
    *,
    kind: AnnotatorKind,
    columns: LabelColumns | None = None,
    strict: bool = False,
) -> AnnotatedRows:
    """Read a data set of the hub, or a file, whose labels a crosswalk maps.

    A label that the crosswalk calls a refusal, and does not call partial, is taken for one in full: that says nothing
    wrong of whether a reply refuses. One that may stand for several kinds names none of them. Rows of one text are one
    reply.

    Args:
        spec: `hf://owner/name[:config][/split]`, `hf:///folder`, or a file.
        crosswalk: What the labels mean.
        kind: Whether people or language models gave them.
        columns: Where they stand; None to find them.
        strict: Raise on the first row that cannot be read, instead of counting it.

    Raises:
        SourceError: The source cannot be read, or no column holds labels of the crosswalk.
        TaxonomyError: There are labels that the crosswalk does not have; all of them are listed.
        RowError: With `strict`, the first row that cannot be read.
    """
    items = list(open_source(spec).rows())
    rows = [item for item in items if not isinstance(item, BrokenRow)]
    broken = [item.error for item in items if isinstance(item, BrokenRow)]
    if strict and broken:
        raise broken[0]
    where = find_label_columns(rows, crosswalk, spec) if columns is None else columns
    _require_mapped(rows, where, crosswalk, spec)
    found: dict[tuple[Turn, ...], Annotated] = {}
    for row in rows:
        try:
            one = _annotated(row, where, crosswalk, kind)
            turns = one.conversation.turns if one.conversation is not None else ()
            found[turns] = found[turns].joined(one) if turns in found else one
        except (RowError, LayoutError) as error:
            wrong = error if isinstance(error, RowError) else RowError(str(error), where=row.where)
            if strict:
                raise wrong from error
            broken.append(wrong)
    if not found:
        message = f"{spec}: no row with a conversation and labels" + (f" ({broken[0]})" if broken else "")
        raise SourceError(message)
    return AnnotatedRows(spec, tuple(found.values()), tuple(broken))


def find_label_columns(rows: Sequence[Row], crosswalk: Crosswalk, spec: str) -> LabelColumns:
    """Find the columns that hold labels: those of whose different texts at least half are labels of the crosswalk.

    Raises:
        SourceError: There is none; the message lists the columns with what stands in them.
    """
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    texts = {name: {leaf for row in rows for leaf in _leaves(row.fields.get(name))} for name in names}
    labels = tuple(
        name for name in names if texts[name] and 2 * len(texts[name] & crosswalk.labels.keys()) >= len(texts[name])
    )
    if not labels:
        met = "; ".join(f"{name}: {', '.join(sorted(texts[name])[:3])[:80]}" for name in names)
        message = f"{spec}: no column holds labels of crosswalk {crosswalk.name!r}; the columns are {met}"
        raise SourceError(message)
    return LabelColumns(labels, _annotator_column(rows, [name for name in names if name not in labels], spec))


def _annotator_column(rows: Sequence[Row], names: Collection[str], spec: str) -> str | None:
    talk = _talk_columns(rows, names)
    for name in _WHO:
        if name not in names:
            continue
        # A `user` may have annotated a reply, or have been answered by it.
        if name not in talk.values() or _is_of_annotators(rows, name, talk.values()):
            return name
        _LOG.warning(
            "%s: %r is read as what was asked, for hardly a reply has several; if it names who annotated, call it %r",
            spec,
            name,
            _WHO[0],
        )
    return None


def _talk_columns(rows: Sequence[Row], names: Collection[str]) -> Mapping[str, str]:
    """Return the column of each part of the conversation of the first row with one, among those that are named."""
    for row in rows:
        with contextlib.suppress(LayoutError):
            return detect({name: value for name, value in row.fields.items() if name in names}).columns
    return {}


def _is_of_annotators(rows: Sequence[Row], column: str, talk: Collection[str]) -> bool:
    """Tell whether a reply of one id has several values in a column, or, without ids, most replies do."""
    same = ["id", *(name for name in talk if name != column)]
    values: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        values[repr([row.fields.get(name) for name in same])].add(repr(row.fields.get(column)))
    n_several = sum(len(each) > 1 for each in values.values())
    # Without ids, a reply that is the same word for word may be a model's usual one to many a prompt.
    has_ids = any(row.fields.get("id") is not None for row in rows)
    return n_several > (0 if has_ids else len(values) / 2)


def _require_mapped(rows: Sequence[Row], columns: LabelColumns, crosswalk: Crosswalk, spec: str) -> None:
    counts = Counter(
        (name, leaf)
        for row in rows
        for name in columns.labels
        for leaf in _leaves(row.fields.get(name))
        if leaf not in crosswalk.labels
    )
    if counts:
        listed = ", ".join(f"{leaf!r} in {name} ({count})" for (name, leaf), count in sorted(counts.items()))
        message = f"{spec}: crosswalk {crosswalk.name!r} lacks labels: {listed}; add what each of them means"
        raise TaxonomyError(message)


def _leaves(value: object) -> Iterator[str]:
    """Yield the labels in a value, those in lists and entries too; who gave them is no label."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, int | float):
        if not math.isnan(value):
            yield str(value)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in _WHO:
                yield from _leaves(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)


def _annotated(row: Row, columns: LabelColumns, crosswalk: Crosswalk, kind: AnnotatorKind) -> Annotated:
    aside = {*columns.labels, *([] if columns.annotator is None else [columns.annotator])}
    talk = {name: value for name, value in row.fields.items() if name not in aside}
    rest = type(row)(row.position, talk, row.file, row.line)
    conversation = detect(talk).conversations(rest)[-1]
    said: dict[str, list[str]] = {}
    for who, labels in _given(row, columns):
        said.setdefault(who, []).extend(labels)
    annotations = tuple(_annotation(Annotator(who, kind), labels, crosswalk, row) for who, labels in said.items())
    return Annotated(row.where, row.file, row.where, conversation, annotations)


def _given(row: Row, columns: LabelColumns) -> Iterator[tuple[str, list[str]]]:
    """Yield who gave which labels.

    Raises:
        RowError: Somebody did, and the column of names does not say who.
    """
    for name in columns.labels:
        value = row.fields.get(name)
        if isinstance(value, list | tuple) and any(isinstance(each, dict | list | tuple) for each in value):
            for place, entry in enumerate(value, start=1):
                yield _name_in(entry, f"{name}_{place}"), list(_leaves(entry))
        elif columns.annotator is not None:
            labels, who = list(_leaves(value)), row.fields.get(columns.annotator)
            if not is_nothing(who):
                yield str(who), labels
            elif labels:
                message = f"{columns.annotator} is {who!r}; write who gave {', '.join(labels)}"
                raise RowError(message, where=row.where)
        else:
            yield name, list(_leaves(value))


def _name_in(entry: object, default: str) -> str:
    if isinstance(entry, dict):
        return next((str(entry[name]) for name in _WHO if not is_nothing(entry.get(name))), default)
    return default


def _annotation(annotator: Annotator, labels: Iterable[str], crosswalk: Crosswalk, row: Row) -> Annotation:
    targets = [crosswalk.labels[label] for label in labels]
    verdicts = {target.verdict for target in targets if target.verdict is not None}
    if "none" in verdicts and len(verdicts) > 1:
        message = f"{annotator} gives labels of a refusal beside one of none: {', '.join(labels)}"
        raise RowError(message, where=row.where, reason="conflicting_labels")
    outcome: Outcome | None = None
    if verdicts:
        outcome = "none" if "none" in verdicts else "partial" if verdicts == {"partial"} else "full"
    # A label that is coarser than our kinds names a set of them, and none in it more than another.
    kinds = dict.fromkeys(target.categories[0] for target in targets if len(target.categories) == 1)
    return Annotation(annotator, outcome, tuple(kinds) if outcome in ("full", "partial") else ())
