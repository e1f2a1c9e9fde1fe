"""Open labelers by name: what a command line or a script calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from demur.data.annotated import read_annotated
from demur.documents import user_path
from demur.errors import LabelerError, SourceError
from demur.labelers.keywords import KeywordLabeler
from demur.labelers.recorded import recorded_labelers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from demur.data.annotated import Annotated
    from demur.data.label_fields import Texts
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler

__all__ = ["LabelerSpec", "Opener", "open_recorded", "parse_labeler", "parse_labelers", "require_labeler"]

_Sort = Literal["demur", "keywords", "annotators", "judge", "recorded"]
_WITH_TARGET = {"judge": "judge:MODEL", "recorded": "recorded:FILE"}


class LabelerSpec(NamedTuple):
    """Name a labeler.

    Attributes:
        sort: `demur` for the classifier, `keywords`, `annotators` for everybody who labelled the rows themselves,
            `judge` for a language model that is asked, or `recorded` for everybody in a file.
        target: Name of the model, or the file; nothing for the others.
    """

    sort: _Sort
    target: str = ""

    def __str__(self) -> str:
        """Return the name as it is written."""
        return f"{self.sort}:{self.target}" if self.target else self.sort


def parse_labelers(words: Iterable[str]) -> tuple[LabelerSpec, ...]:
    """Read names of labelers, several to a word with commas between them.

    Example:
        >>> [spec.sort for spec in parse_labelers(["demur,keywords", "judge:gpt-5-mini"])]
        ['demur', 'keywords', 'judge']

    Raises:
        LabelerError: One of them names no labeler, or none is given.
    """
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    if not names:
        message = f"no labeler is named; give some of {_offered()}"
        raise LabelerError(message)
    return tuple(_parsed(name) for name in names)


def parse_labeler(word: str) -> LabelerSpec:
    """Read the name of one labeler; `annotators`, who may be many and label their own rows alone, is none.

    Raises:
        LabelerError: It names none, or several.
    """
    name = word.strip()
    spec = None if "," in name else _read(name)
    if spec is None or spec.sort == "annotators":
        message = f"{word!r} is not one labeler; give one of {_offered(without='annotators')}"
        raise LabelerError(message)
    return spec


def require_labeler(given: object) -> Labeler:
    """Return what labels; a class of labelers, which would have to be called first, does not.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(given, type) or not callable(getattr(given, "label", None)):
        what = f"the class {given.__name__}" if isinstance(given, type) else f"{type(given).__name__} {given!r}"
        message = (
            f"{what} is no labeler; give one that is made, as KeywordLabeler(), or the name of one: "
            f"{_offered(without='annotators')}"
        )
        raise TypeError(message)
    if not isinstance(getattr(given, "name", None), str):
        message = (
            f"{type(given).__name__} {given!r} has no name; a labeler needs one, a string, that reports call it by"
        )
        raise TypeError(message)
    return given  # type: ignore[return-value]  # it has what was just looked for


def open_recorded(path: Path, taxonomy: Taxonomy, *, texts: Texts | None = None) -> Labeler:
    """Open what one annotator said of rows in a file.

    Args:
        path: The file.
        taxonomy: Names the kinds.
        texts: Messages by id, for rows that have none.

    Raises:
        LabelerError: It holds several annotators.
        SourceError: It cannot be read, or holds no annotations.
    """
    found = recorded_labelers(read_annotated([user_path(path)], taxonomy, texts=texts).rows, taxonomy)
    if len(found) > 1:
        who = ", ".join(one.name for one in found)
        message = f"{str(path)!r} holds several annotators ({who}); keep one, or measure all with a benchmark"
        raise LabelerError(message)
    return found[0]


@dataclass(frozen=True, slots=True)
class Opener:
    """Open labelers for rows.

    Attributes:
        taxonomy: What they label in.
        rows: What is labelled, with what annotators said of it.
        texts: Messages by id, for recorded rows that have none.
        analyzer: Loads the classifier.
        judge: Opens the judge that a model makes.
    """

    taxonomy: Taxonomy
    rows: Sequence[Annotated]
    texts: Texts
    analyzer: Callable[[], Labeler]
    judge: Callable[[str], Labeler]

    def open(self, spec: LabelerSpec) -> tuple[Labeler, ...]:
        """Return the labelers of a name: one, or all annotators.

        Raises:
            SourceError: A recorded file cannot be read, or holds nothing on the rows.
        """
        if spec.sort == "demur":
            return (self.analyzer(),)
        if spec.sort == "keywords":
            return (KeywordLabeler(self.taxonomy),)
        if spec.sort == "judge":
            return (self.judge(spec.target),)
        if spec.sort == "annotators":
            return recorded_labelers(self.rows, self.taxonomy)
        return self._recorded(user_path(spec.target))

    def _recorded(self, path: Path) -> tuple[Labeler, ...]:
        found = recorded_labelers(read_annotated([path], self.taxonomy, texts=self.texts).rows, self.taxonomy)
        wanted = {row.conversation.turns for row in self.rows if row.conversation is not None}
        known = tuple(labeler for labeler in found if wanted & labeler.verdicts.keys())
        if not known:
            message = (
                f"{path}: nobody in it labelled any of the {len(wanted):,} replies; a row has to have the same "
                "`messages` as one of these, or the same `id` and no messages"
            )
            raise SourceError(message)
        return known


def _parsed(name: str) -> LabelerSpec:
    spec = _read(name)
    if spec is None:
        message = f"{name!r} names no labeler; give one of {_offered()}"
        raise LabelerError(message)
    return spec


def _read(name: str) -> LabelerSpec | None:
    """Take a name apart; None where it names no labeler."""
    sort, colon, target = name.partition(":")
    if sort not in get_args(_Sort) or bool(target) != (sort in _WITH_TARGET) or bool(colon) != bool(target):
        return None
    return LabelerSpec(sort, target)  # type: ignore[arg-type]  # one of its words, as was just checked


def _offered(*, without: str = "") -> str:
    return ", ".join(_WITH_TARGET.get(sort, sort) for sort in get_args(_Sort) if sort != without)
