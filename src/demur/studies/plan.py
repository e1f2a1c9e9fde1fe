"""Say in a file which variants of a recipe are compared, over which seeds, and by which figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping  # noqa: TC003 - pydantic resolves it at run time
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from demur.documents import CLOSED, Key, Text, listed, raise_problems, validate
from demur.errors import RecipeError
from demur.model.settings import TrainingSettings
from demur.studies.recipe import Balance, Recipe, Source, document_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Dev", "Figure", "Plan", "Variant"]

_Seed = Annotated[int, Field(ge=0, strict=True)]

Figure = Literal[
    "gate.accuracy",
    "gate.f1",
    "gate.auroc",
    "gate.calibration_error",
    "full_against_none.accuracy",
    "full_against_none.f1",
    "head.accuracy",
    "head.lenient_accuracy",
    "head.group_accuracy",
    "head.macro_f1",
    "head.macro_f1_in_truth",
    "end_to_end",
]
"""A figure of an evaluation, by its place in the JSON of `demur evaluate --json`."""


@dataclass(frozen=True, slots=True, config=CLOSED)
class Dev:
    """Name a file that every variant is evaluated on, and the figures of it that the table shows.

    Attributes:
        path: Where it lies, relative to the folders that the plan is used with.
        figures: The columns.
        split: Rows of this split, and rows without one.
    """

    path: Text
    figures: Annotated[tuple[Figure, ...], Field(min_length=1)]
    split: Literal["dev", "train", "all"] = "dev"


@dataclass(frozen=True, slots=True, config=CLOSED)
class Variant:
    """Say what a variant does otherwise than the recipe; one that says nothing is the recipe itself.

    Attributes:
        key: Names its files.
        title: Names its row in the table.
        settings: Settings that differ.
        leave_out: Sources, or folders of sources, that are not trained on. They still choose the epoch, calibrate and
            measure, so that variants differ in nothing else.
        reads: `conversation`, or the `reply` alone, in training and in evaluation.
        method: `network` trains; `frozen` fits logistic regressions on the untrained encoder's [CLS].
        balance: In place of the recipe's.
        hard_negative_weight: In place of the recipe's.
    """

    key: Key
    title: Text
    settings: Mapping[Text, object] = Field(default_factory=dict)
    leave_out: tuple[Text, ...] = ()
    reads: Literal["conversation", "reply"] = "conversation"
    method: Literal["network", "frozen"] = "network"
    balance: Balance | None = None
    hard_negative_weight: Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)] | None = None

    def recipe(self, base: Recipe, *, seed: int, where: str = "settings") -> Recipe:
        """Return the recipe that the variant is trained by.

        Raises:
            RecipeError: A setting is unknown or out of range.
        """
        document = {**asdict(base.settings), **self.settings, "seed": seed}
        return replace(
            base,
            sources=tuple(self._weighed(source) for source in base.sources),
            balance=base.balance if self.balance is None else self.balance,
            hard_negative_weight=(
                base.hard_negative_weight if self.hard_negative_weight is None else self.hard_negative_weight
            ),
            settings=validate(TrainingSettings, document, where=where, error=RecipeError),
        )

    def _weighed(self, source: Source) -> Source:
        is_left_out = any(_is_in(source, path) for path in self.leave_out)
        return replace(source, weight=0.0) if is_left_out else source


@dataclass(frozen=True, slots=True, config=CLOSED)
class Plan:
    """Hold a comparison: every variant is trained with every seed, and evaluated on every dev file.

    Attributes:
        name: What the plan is called.
        recipe: A shipped recipe, or the path of one from the plan's folder.
        seeds: Each draws its own heads, order and dropout, and held-out prompts where the recipe draws none itself.
        evaluations: The dev files.
        variants: The rows of the table.
    """

    name: Key
    recipe: Text
    seeds: Annotated[tuple[_Seed, ...], Field(min_length=1)]
    evaluations: Annotated[tuple[Dev, ...], Field(min_length=1)]
    variants: Annotated[tuple[Variant, ...], Field(min_length=1)]

    @classmethod
    def load(cls, name_or_path: str | Path) -> tuple[Plan, Recipe]:
        """Read a shipped plan by its name, or any other by its path, and its recipe.

        Raises:
            RecipeError: Plan or recipe is missing or damaged, or they do not fit each other; the message names file and
                field.
        """
        path, document = document_of(name_or_path, "plan")
        plan = validate(cls, document, where=str(path), error=RecipeError)
        is_path = bool(Path(plan.recipe).suffix)
        base = Recipe.load(path.parent / plan.recipe if is_path else plan.recipe)
        raise_problems(_contradictions(plan, base), where=str(path), error=RecipeError)
        for place, variant in enumerate(plan.variants):
            variant.recipe(base, seed=plan.seeds[0], where=f"{path}: variants[{place}].settings")
        return plan, base

    def narrowed(self, *, only: Sequence[str] = (), seeds: Sequence[int] = ()) -> Plan:
        """Return the plan with some of its variants, in its own order, or with other seeds; with neither, as it is.

        Raises:
            RecipeError: There is no variant of that key, or a seed is given twice.
        """
        known = [variant.key for variant in self.variants]
        if unknown := sorted(set(only) - set(known)):
            message = f"no variant {unknown[0]!r} in plan {self.name!r}; there are {listed(known)}"
            raise RecipeError(message)
        if len(set(seeds)) < len(seeds):
            message = f"seeds {list(seeds)} hold one twice; give each once"
            raise RecipeError(message)
        variants = tuple(variant for variant in self.variants if not only or variant.key in only)
        return replace(self, variants=variants, seeds=tuple(seeds) or self.seeds)


def _is_in(source: Source, path: str) -> bool:
    return PurePosixPath(source.path).is_relative_to(path)


def _contradictions(plan: Plan, base: Recipe) -> Iterator[str]:
    """Yield every problem that no single field shows."""
    for name, values in (
        ("seeds", plan.seeds),
        ("variants: key", [variant.key for variant in plan.variants]),
        ("evaluations: path", [dev.path for dev in plan.evaluations]),
    ):
        yield from (f"{name} {value!r} stands {n} times" for value, n in Counter(values).items() if n > 1)
    for place, variant in enumerate(plan.variants):
        if "seed" in variant.settings:
            yield f"variants[{place}].settings.seed: the plan's seeds say it; leave it out"
        for path in variant.leave_out:
            if not any(_is_in(source, path) for source in base.sources):
                known = ", ".join(repr(source.path) for source in base.sources)
                yield f"variants[{place}].leave_out: {path!r} is no source of recipe {base.name!r}; these are {known}"
