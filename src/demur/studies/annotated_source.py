"""Bring what annotators said, in files or in memory, in our labels or in others, behind one door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.crosswalk import Crosswalk
from demur.data.annotated import ANNOTATOR_KINDS, read_annotated, take_annotated
from demur.data.foreign import read_foreign
from demur.data.intake import how_held, is_frame, records
from demur.data.labelled import read_texts
from demur.documents import user_path
from demur.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.data.annotated import AnnotatedRows, AnnotatorKind
    from demur.data.label_fields import Texts
    from demur.taxonomy import Taxonomy

__all__ = ["read_annotated_source"]


def read_annotated_source(
    source: object,
    taxonomy: Taxonomy,
    *,
    split: str | None = None,
    texts: Path | str | Iterable[Path | str] | None = None,
    strict: bool = False,
    crosswalk: Path | str | None = None,
    annotator_kind: AnnotatorKind = "human",
) -> tuple[AnnotatedRows, Texts]:
    """Read what is annotated, and the messages by id that are known, its own among them.

    Args:
        source: One or more JSONL files, or rows as they stand in one: one, several, or a pandas frame of them. Beside a
            crosswalk, the name of one source.
        taxonomy: Names the kinds.
        split: Only rows of this split and those without one; None for all.
        texts: One or more JSONL files, or folders of some, that hold the messages, by id, of rows without.
        strict: Raise on the first row that cannot be read, instead of counting it.
        crosswalk: What the labels of a data set mean that has its own; None where they are ours.
        annotator_kind: Who gave such labels.

    Raises:
        SourceError: A file is missing, or no row has annotations; with `strict`, a row cannot be read; or `split`,
            `texts` or a second source stand beside a crosswalk.
        TypeError: What is given is neither files nor rows, or the texts are no files.
        ValueError: There is no such kind of annotator.
    """
    if annotator_kind not in ANNOTATOR_KINDS:
        message = f"annotator_kind {annotator_kind!r}; give one of {', '.join(ANNOTATOR_KINDS)}"
        raise ValueError(message)
    items, of_texts = _items(source), _paths(texts)
    if crosswalk is not None:
        spec = _single(items)
        _require_whole(split, of_texts)
        rows = read_foreign(spec, Crosswalk.load(crosswalk, taxonomy), kind=annotator_kind, strict=strict)
        return rows, rows.texts
    by_id = read_texts(of_texts)
    if items and all(isinstance(item, str | Path) for item in items):
        rows = read_annotated([user_path(item) for item in items], taxonomy, split=split, texts=by_id, strict=strict)
    elif all(isinstance(item, Mapping) for item in items):
        rows = take_annotated(items, taxonomy, split=split, texts=by_id, strict=strict)
    else:
        raise _no_rows(items)
    return rows, {**by_id, **rows.texts}


def _items(source: object) -> list[Any]:
    """Return files or rows one by one; of a frame, a missing cell is a field that the row does not have."""
    if is_frame(source):
        return [{name: value for name, value in row.items() if value is not None} for row in records(source)]
    if isinstance(source, str | Path | Mapping):
        return [source]
    if not isinstance(source, Iterable) or how_held(source):
        raise _no_rows([source])
    return list(source)


def _paths(texts: Path | str | Iterable[Path | str] | None) -> list[Path]:
    """Return files and folders one by one: a single text would else be taken letter by letter, `/` first of all."""
    given = [] if texts is None else [texts] if isinstance(texts, str | Path) else list(texts)
    wrong = [type(one).__name__ for one in given if not isinstance(one, str | Path)]
    if wrong:
        message = f"texts of {', '.join(sorted(set(wrong)))}; give JSONL files that hold messages by id, or folders"
        raise TypeError(message)
    return [user_path(one) for one in given]


def _no_rows(items: Sequence[object]) -> TypeError:
    met = ", ".join(sorted({type(item).__name__ for item in items}))
    how = next(filter(None, map(how_held, items)), "give paths, or dicts, or one pandas frame")
    message = f"Demur measures what stands in files or in rows with `annotations`; met {met}; {how}"
    return TypeError(message)


def _single(items: Sequence[object]) -> str:
    """Return the name of the one source that a crosswalk maps."""
    if not items or not all(isinstance(item, str | Path) for item in items):
        met = ", ".join(sorted({type(item).__name__ for item in items}))
        message = f"a crosswalk maps the labels of a named source, such as hf://owner/name; met {met or 'none'}"
        raise TypeError(message)
    if len(items) > 1:
        message = (
            f"{len(items)} sources ({', '.join(map(str, items))}) beside a crosswalk, which maps the columns of "
            "one data set; give them one after the other, or put their rows into one file"
        )
        raise SourceError(message)
    return str(items[0])


def _require_whole(split: str | None, texts: Sequence[Path]) -> None:
    """Refuse to choose rows or look up texts in a data set that has neither our splits nor our ids."""
    if split is not None:
        message = (
            f"split {split!r} beside a crosswalk, which maps a data set whole; leave it out, or name a split of a data "
            "set on the hub in the source, as in hf://owner/name/train"
        )
        raise SourceError(message)
    if texts:
        message = (
            f"texts {', '.join(map(str, texts))!r} beside a crosswalk, whose data set has its texts in its own columns "
            "and no ids to look others up by; leave them out"
        )
        raise SourceError(message)
