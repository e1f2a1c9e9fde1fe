"""Plan rows as a grid over leaves, verdicts and axes before anything is asked: coverage is by design, not by luck."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from demur.data.label_fields import Outcome
    from demur.synthesis.recipe import Axis, CategoryRows, SynthesisRecipe, Value

__all__ = ["Cell", "Plan", "deal"]

Name = TypeVar("Name", bound=str)
Item = TypeVar("Item")

# What many an API takes for a seed is a signed number of 32 bits.
_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Cell:
    """Plan one row.

    Attributes:
        id: Name of the row: recipe, category, and its place among the category's rows, from 1.
        category: What it is written for.
        leaf: What it is about.
        verdict: What the reply is to be; `none` for a hard negative.
        values: The value of each axis that applies, by the key of the axis.
        seed: Of the first attempt.
    """

    id: str
    category: str
    leaf: str
    verdict: Outcome
    values: Mapping[str, Value]
    seed: int

    @property
    def axes(self) -> dict[str, str]:
        """Return the keys of the values by those of the axes."""
        return {axis: value.key for axis, value in self.values.items()}

    @property
    def language(self) -> str:
        """Return what the row is written in; English where no axis says."""
        return next((value.language for value in self.values.values() if value.language is not None), "en")

    def seed_of(self, attempt: int) -> int:
        """Return the seed of an attempt, from 1."""
        return (self.seed + attempt - 1) % _SEEDS


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold the planned rows, category by category."""

    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, recipe: SynthesisRecipe) -> Plan:
        """Plan a recipe whose categories are written out.

        Within a category, the leaves are met equally often, and verdicts and the values of each axis as often as their
        weights say, each less than one row off (see `deal`); within the rows of one verdict less than two. Which rows
        of a verdict get which value is drawn for each axis on its own, so that axes do not go together. A draw depends
        on seed, category and axis alone: another category, more of an axis, or another axis leaves the rest as it is.
        """
        return cls(tuple(cell for each in recipe.categories for cell in _cells(each, recipe)))

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.cells)

    @property
    def digest(self) -> str:
        """Return what changes when a planned row does: sha256, in hex."""
        rows = [[cell.id, cell.leaf, cell.verdict, cell.axes, cell.seed] for cell in self.cells]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def by_category(self) -> dict[str, tuple[Cell, ...]]:
        """Return the cells of each category, in order."""
        found: dict[str, list[Cell]] = defaultdict(list)
        for cell in self.cells:
            found[cell.category].append(cell)
        return {category: tuple(cells) for category, cells in found.items()}

    def counts(self, axis: str) -> dict[str, Counter[str]]:
        """Count the values of an axis in each category; `verdict` and `leaf` are axes, too."""
        return {
            category: Counter(value for cell in cells if (value := _value_of(cell, axis)) is not None)
            for category, cells in self.by_category().items()
        }


def deal(n: int, weights: Mapping[Name, float]) -> list[Name]:
    """Return n names in an order in which each beginning holds them as their weights say, each less than one off.

    The rule is Tijdeman's for choosing chairmen ("The chairman assignment problem", Discrete Mathematics 32, 1980):
    with m names of shares λ_i, give place k to the i whose next turn is due soonest, that is of least
    (1 - 1/(2m - 2) - (λ_i (k - 1) - x_i)) / λ_i, among those with λ_i k - x_i ≥ 1/(2m - 2), x_i being how often i has
    had a turn. Then |x_i - λ_i k| ≤ 1 - 1/(2m - 2) at every k. Names whose turns are due together come as they stand.

    >>> deal(8, {"full": 2, "partial": 1, "none": 1})
    ['full', 'partial', 'none', 'full', 'full', 'partial', 'none', 'full']
    """
    total, slack = sum(weights.values()), 1 / max(2 * len(weights) - 2, 1)
    shares = {name: weight / total for name, weight in weights.items()}
    turns: Counter[Name] = Counter()
    dealt: list[Name] = []
    for k in range(1, n + 1):
        # A share such as 1/3 is a little off, and must not make a name late that is due to the dot.
        ready = [name for name, share in shares.items() if share * k - turns[name] >= slack - 1e-9]
        due = {name: round((1 - slack - (shares[name] * (k - 1) - turns[name])) / shares[name], 9) for name in ready}
        dealt.append(min(ready, key=lambda name: due[name]))
        turns[dealt[-1]] += 1
    return dealt


def _cells(each: CategoryRows, recipe: SynthesisRecipe) -> Iterator[Cell]:
    n = recipe.rows if each.rows is None else each.rows
    root = f"{recipe.seed}|{each.key}"
    leaves = deal(n, dict.fromkeys(_shuffled(each.leaves, f"{root}|leaf"), 1.0))
    # A leaf's rows stand together, so that the verdicts are shared out among them.
    first = {leaf: place for place, leaf in reversed(list(enumerate(leaves)))}
    leaves.sort(key=lambda leaf: first[leaf])
    verdicts = deal(n, recipe.verdicts.weights())
    values = [dict[str, "Value"]() for _ in range(n)]
    for axis in recipe.axes:
        for place, value in _assigned(axis, verdicts, root):
            values[place][axis.key] = value
    for place, (leaf, verdict) in enumerate(zip(leaves, verdicts, strict=True)):
        name = f"{recipe.name}-{each.key}-{place + 1:04d}"
        yield Cell(name, each.key, leaf, verdict, values[place], _number(f"{root}|{place}") % _SEEDS)


def _assigned(axis: Axis, verdicts: Sequence[Outcome], root: str) -> Iterator[tuple[int, Value]]:
    """Yield which row, by its place, gets which value of an axis."""
    groups = [[i for i, met in enumerate(verdicts) if met == verdict] for verdict in axis.verdicts]
    by_key = {value.key: value for value in axis.values}
    weights = axis.weights()
    order = _shuffled(list(weights), f"{root}|{axis.key}")
    dealt = iter(deal(sum(map(len, groups)), {key: weights[key] for key in order}))
    for verdict, places in zip(axis.verdicts, groups, strict=True):
        keys = [next(dealt) for _ in places]
        for place, key in zip(places, _shuffled(keys, f"{root}|{axis.key}|{verdict}"), strict=True):
            yield place, by_key[key]


def _shuffled(items: Sequence[Item], root: str) -> list[Item]:
    """Return the items in an order that is drawn by hashing, and so is the same in every version of everything."""
    places = sorted(range(len(items)), key=lambda place: _number(f"{root}|{place}"))
    return [items[place] for place in places]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8])


def _value_of(cell: Cell, axis: str) -> str | None:
    return {"verdict": cell.verdict, "leaf": cell.leaf, **cell.axes}.get(axis)
