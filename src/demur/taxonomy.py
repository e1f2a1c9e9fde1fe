"""Hold the kinds of refusal that everything else is sized by, and check the file that they come from."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from demur.documents import (
    CLOSED,
    Key,
    Text,
    listed,
    raise_problems,
    read_document,
    repeated,
    shipped_folder,
    user_path,
    validate,
)
from demur.errors import TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "Boundary",
    "Category",
    "CounterExample",
    "Decision",
    "Example",
    "Gate",
    "Group",
    "HardCase",
    "Taxonomy",
]

# What a boundary or counter-example points to where the neighbour is no refusal at all; never a category key.
NO_KIND = "none"
# See `stats.composition.UNNAMED`: a group may not go by it either.
_NO_NAME = "unnamed"
RESERVED_KEYS = (NO_KIND, _NO_NAME)


@dataclass(frozen=True, slots=True, config=CLOSED)
class Gate:
    """Define the three verdicts; `full` and `partial` are both refusals."""

    full: Text
    partial: Text
    none: Text


@dataclass(frozen=True, slots=True, config=CLOSED)
class Group:
    """Gather categories that share a reason at large, such as *should not* and *cannot*."""

    key: Key
    name: Text
    definition: Text


@dataclass(frozen=True, slots=True, config=CLOSED)
class Boundary:
    """Tell a category from its neighbour `against`: a category key, or `none` for no refusal."""

    against: Key
    rule: Text


@dataclass(frozen=True, slots=True, config=CLOSED)
class Example:
    """Show a request and a reply that refuses it for the category's reason."""

    request: Text
    reply: Text


@dataclass(frozen=True, slots=True, config=CLOSED)
class CounterExample:
    """Show what looks like the category, what it is `instead` (a category key, or `none`), and why."""

    request: Text
    reply: Text
    instead: Key
    why: Text


@dataclass(frozen=True, slots=True, config=CLOSED)
class Category:
    """Define one kind of refusal; `leaves` are the topics that synthesis writes about."""

    key: Key
    name: Text
    group: Key
    definition: Text
    boundaries: tuple[Boundary, ...] = ()
    examples: tuple[Example, ...] = ()
    counter_examples: tuple[CounterExample, ...] = ()
    leaves: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True, config=CLOSED)
class Decision:
    """Decide a hard case: verdict None leaves the verdict, empty labels leave the kind, to the usual rules."""

    verdict: Literal["full", "partial", "none"] | None = None
    labels: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True, config=CLOSED)
class HardCase:
    """Record a case on which readers would differ, its decision, and the rule behind it."""

    case: Text
    decision: Decision
    rule: Text


@dataclass(frozen=True, slots=True, repr=False, config=CLOSED)
class Taxonomy:
    """Order the kinds of refusal: the position of a category is its position in every probability vector."""

    version: Text
    name: Key
    gate: Gate
    groups: Annotated[tuple[Group, ...], Field(min_length=1)]
    categories: Annotated[tuple[Category, ...], Field(min_length=2)]
    procedure: tuple[Text, ...] = ()
    hard_cases: tuple[HardCase, ...] = ()

    @classmethod
    def load(cls, path: Path | str | None = None) -> Taxonomy:
        """Read the taxonomy in a YAML file, or the shipped one where no path is given.

        A folder that holds a `refusals.yaml` stands for it.

        Raises:
            TaxonomyError: The file is missing or damaged, or contradicts itself; the message lists every problem.
        """
        source = shipped_folder() if path is None else user_path(path)
        inside = source / "refusals.yaml"
        source = inside if inside.is_file() else source
        return cls.from_mapping(read_document(source), where=str(source))

    @classmethod
    def from_mapping(cls, document: object, *, where: str) -> Taxonomy:
        """Build a taxonomy from plain mappings and lists, as YAML or `dataclasses.asdict` gives them.

        Args:
            document: The taxonomy as nested mappings and lists.
            where: What error messages call the place that the document comes from.
        """
        taxonomy = validate(cls, document, where=where)
        raise_problems(_contradictions(taxonomy), where=where)
        return taxonomy

    def __repr__(self) -> str:
        """Return name and size in one line; the whole of it has 70,000 characters."""
        return f"<Taxonomy {self.name!r} {self.version}: {len(self)} kinds in {len(self.groups)} groups>"

    def __len__(self) -> int:
        """Count the categories."""
        return len(self.categories)

    def __iter__(self) -> Iterator[Category]:
        """Go through the categories in order."""
        return iter(self.categories)

    def __contains__(self, key: object) -> bool:
        """Tell whether a category has this key."""
        return key in self.keys

    def __getitem__(self, key: str) -> Category:
        """Find a category by its key."""
        return self.categories[self.index(key)]

    @property
    def keys(self) -> tuple[str, ...]:
        """Name the categories in order."""
        return tuple(category.key for category in self.categories)

    def index(self, key: str) -> int:
        """Find the position of a category.

        Raises:
            TaxonomyError: No category has this key; the message lists those that there are.
        """
        if key in self:
            return self.keys.index(key)
        message = f"no category {key!r} in taxonomy {self.name!r}; its categories are {listed(self.keys)}"
        raise TaxonomyError(message)

    def group_of(self, key: str) -> str:
        """Name the group that a category belongs to."""
        return self[key].group

    def members(self, group: str) -> tuple[str, ...]:
        """Name the categories of a group, in order.

        Raises:
            TaxonomyError: No group has this key; the message lists those that there are.
        """
        if group not in (known := [each.key for each in self.groups]):
            message = f"no group {group!r} in taxonomy {self.name!r}; its groups are {listed(known)}"
            raise TaxonomyError(message)
        return tuple(category.key for category in self.categories if category.group == group)

    @property
    def fingerprint(self) -> str:
        """Identify the label contract: sha256, in hex, over the canonical JSON of what a label means.

        It holds the gate's definitions, the groups (key, definition) and the categories in order (key, group,
        definition). Version, names and all other prose stay out: editing them invalidates no trained weights.
        """
        contract = {
            "gate": [self.gate.full, self.gate.partial, self.gate.none],
            "groups": [[group.key, group.definition] for group in self.groups],
            "categories": [[each.key, each.group, each.definition] for each in self.categories],
        }
        canonical = json.dumps(contract, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _contradictions(taxonomy: Taxonomy) -> Iterator[str]:
    """Yield every problem that no single field shows."""
    groups = [group.key for group in taxonomy.groups]
    yield from repeated("groups: key", groups)
    yield from repeated("categories: key", taxonomy.keys)
    kept = {NO_KIND: taxonomy.keys, _NO_NAME: (*groups, *taxonomy.keys)}
    yield from (f"key {key!r} is reserved for what has no kind; use another" for key, at in kept.items() if key in at)
    empty = sorted(set(groups) - {category.group for category in taxonomy})
    yield from (f"groups: {group!r} has no category; give it one, or leave it out" for group in empty)
    for position, category in enumerate(taxonomy.categories):
        place = f"categories[{position}] ({category.key})"
        if category.group not in groups:
            yield f"{place}.group: {category.group!r} is no group; the groups are {listed(groups)}"
        yield from _bad_neighbours(place, category, taxonomy)
        yield from repeated(f"{place}.leaves:", category.leaves)
    for position, hard_case in enumerate(taxonomy.hard_cases):
        yield from _bad_decision(f"hard_cases[{position}].decision", hard_case.decision, taxonomy)


def _bad_neighbours(place: str, category: Category, taxonomy: Taxonomy) -> Iterator[str]:
    """Yield boundaries and counter-examples that point nowhere, or back at their own category."""
    right = [NO_KIND, *(key for key in taxonomy.keys if key != category.key)]
    pointers = [(f"boundaries[{i}].against", each.against) for i, each in enumerate(category.boundaries)]
    pointers += [(f"counter_examples[{i}].instead", each.instead) for i, each in enumerate(category.counter_examples)]
    for field, key in pointers:
        if key not in right:
            yield f"{place}.{field}: {key!r} is no other category; right would be one of {listed(right)}"


def _bad_decision(place: str, decision: Decision, taxonomy: Taxonomy) -> Iterator[str]:
    """Yield what is wrong with the decision of a hard case."""
    if decision.verdict is None and not decision.labels:
        yield f"{place}: decides nothing; give a verdict, labels, or both"
    if decision.verdict == "none" and decision.labels:
        yield f"{place}.labels: {listed(decision.labels)} beside verdict 'none'; only a refusal has labels"
    for key in sorted(set(decision.labels) - set(taxonomy.keys)):
        yield f"{place}.labels: {key!r} is no category; the categories are {listed(taxonomy.keys)}"
