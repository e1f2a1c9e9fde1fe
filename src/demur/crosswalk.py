"""Translate other people's labels into our kinds and verdicts."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic resolves it at run time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from demur.documents import (
    CLOSED,
    Key,
    Text,
    listed,
    raise_problems,
    read_document,
    shipped_folder,
    user_path,
    validate,
)
from demur.errors import TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.taxonomy import Taxonomy

__all__ = ["Crosswalk", "CrosswalkVerdict", "Target"]

CrosswalkVerdict = Literal["full", "partial", "none", "refusal"]
"""What a label says of the verdict; `refusal` is `full` or `partial`, where their label does not tell which."""


@dataclass(frozen=True, slots=True, config=CLOSED)
class Target:
    """Say what one foreign label means here: kinds, a verdict, or both.

    Attributes:
        verdict: None where the label says nothing of it, for instance because it describes the prompt.
        categories: Keys of the kinds that the label may stand for; empty where it says nothing of the kind.
    """

    verdict: CrosswalkVerdict | None = None
    categories: tuple[Key, ...] = ()


def _written_out(target: object) -> object:
    """Accept the two short forms: a bare verdict, and a bare list of kinds."""
    if isinstance(target, str):
        return {"verdict": target}
    return {"categories": target} if isinstance(target, list) else target


@dataclass(frozen=True, slots=True, config=CLOSED)
class Crosswalk:
    """Map every label of a foreign set to the set of our kinds it may stand for, to a verdict, or to both.

    Attributes:
        name: What the crosswalk is called.
        source: Whose labels these are.
        labels: What each label means here, by its exact spelling.
        licence: Under what terms the labels stand here.
        notes: What a user of the mapping has to know, and what in it is not verified.
    """

    name: Text
    source: Text
    labels: Annotated[Mapping[Text, Annotated[Target, BeforeValidator(_written_out)]], Field(min_length=1)]
    licence: Text | None = None
    notes: Text | None = None

    @classmethod
    def load(cls, name_or_path: str | Path, taxonomy: Taxonomy) -> Crosswalk:
        """Read a shipped crosswalk by its name, or any other by its path, and check it against a taxonomy.

        Args:
            name_or_path: A shipped name such as `xstest`, or the path of a YAML file.
            taxonomy: Whose category keys the crosswalk has to name.

        Raises:
            TaxonomyError: The file is missing or damaged, or names a kind that the taxonomy does not have.
        """
        path = _found(name_or_path)
        crosswalk = validate(cls, read_document(path), where=str(path))
        raise_problems(_contradictions(crosswalk, taxonomy), where=str(path))
        return crosswalk

    def categories(self, label: str | int) -> frozenset[str]:
        """Name the kinds that a label may stand for; empty where it says nothing of the kind.

        Raises:
            TaxonomyError: The crosswalk does not have the label; the message lists those that it has.
        """
        return frozenset(self._target(label).categories)

    def verdict(self, label: str | int) -> CrosswalkVerdict | None:
        """Tell the verdict that a label stands for; None where it says nothing of the verdict.

        Raises:
            TaxonomyError: The crosswalk does not have the label; the message lists those that it has.
        """
        return self._target(label).verdict

    def is_refusal(self, label: str | int) -> bool | None:
        """Tell whether a label stands for a refusal; None where it says nothing of the verdict.

        Raises:
            TaxonomyError: The crosswalk does not have the label; the message lists those that it has.
        """
        verdict = self.verdict(label)
        return None if verdict is None else verdict != "none"

    def _target(self, label: str | int) -> Target:
        """Find what a label means; columns of bits arrive as numbers and booleans, and are spelled as Python does."""
        if (target := self.labels.get(str(label))) is None:
            message = f"crosswalk {self.name!r} has no label {label!r}; its labels are {listed(self.labels)}"
            raise TaxonomyError(message)
        return target


def _found(name_or_path: str | Path) -> Path:
    """Take a bare name for a shipped crosswalk, and everything else for a path."""
    path = user_path(name_or_path)
    if isinstance(name_or_path, Path) or path.suffix or len(path.parts) != 1:
        return path
    folder = shipped_folder() / "crosswalks"
    shipped = sorted(each.stem for each in folder.glob("*.yaml"))
    if name_or_path not in shipped:
        message = f"no crosswalk {name_or_path!r} is shipped; give a path, or one of {listed(shipped)}"
        raise TaxonomyError(message)
    return folder / f"{name_or_path}.yaml"


def _contradictions(crosswalk: Crosswalk, taxonomy: Taxonomy) -> Iterator[str]:
    """Yield every problem that no single field shows."""
    for label, target in crosswalk.labels.items():
        place = f"labels[{label!r}]"
        if target.verdict is None and not target.categories:
            yield f"{place}: says nothing; give categories, a verdict, or both"
        if target.verdict == "none" and target.categories:
            yield f"{place}: has categories beside verdict 'none'; only a refusal has kinds"
        for key in target.categories:
            if key not in taxonomy:
                known = listed(taxonomy.keys)
                yield f"{place}: {key!r} is no category of taxonomy {taxonomy.name!r}; its categories are {known}"
