"""Say in a file which rows are to be written: categories, leaves, verdicts, axes of variation, prompts, model, seed."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from demur.data.label_fields import OUTCOMES, Outcome
from demur.documents import (
    CLOSED,
    Key,
    Text,
    fingerprint,
    listed,
    raise_problems,
    read_document,
    repeated,
    shipped_folder,
    validate,
    written_out,
)
from demur.errors import RecipeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.taxonomy import Taxonomy

__all__ = ["Axis", "CategoryRows", "Mix", "SynthesisRecipe", "Value", "recipe_path"]

_Weight = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=1, strict=True)]
_Words = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)]]
_Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
_FOLDER = "synth/recipes"


@dataclass(frozen=True, slots=True, config=CLOSED)
class Mix:
    """Say how rows are shared out among the verdicts, by weight; `none` are hard negatives.

    A verdict that a mix does not name is not met.
    """

    full: _Weight = 0.0
    partial: _Weight = 0.0
    none: _Weight = 0.0

    def weights(self) -> dict[Outcome, float]:
        """Return the weights of the verdicts that are to be met."""
        every: dict[Outcome, float] = {"full": self.full, "partial": self.partial, "none": self.none}
        return {outcome: weight for outcome, weight in every.items() if weight > 0}


@dataclass(frozen=True, slots=True, config=CLOSED)
class Value:
    """Name one value of an axis, what the model is told for it, and what can be checked of it.

    Attributes:
        key: Its name in the rows.
        say: What the model is told; None where nothing need be said.
        weight: How often it is met beside the other values of the axis; 0 for never.
        words: Fewest and most words: of the last user turn for an input axis, of the reply for an output axis.
        turns: How many user turns the conversation has.
        system: Whether it begins with a system prompt.
        language: What it is written in, by ISO 639-1 code.
    """

    key: Key
    say: Text | None = None
    weight: _Weight = 1.0
    words: _Words | None = None
    turns: _Count | None = None
    system: bool | None = None
    language: _Language | None = None


@dataclass(frozen=True, slots=True, config=CLOSED)
class Axis:
    """Let rows differ in one respect.

    Attributes:
        key: Its name in the rows.
        values: What it can be.
        verdicts: The planned verdicts that it applies to: a reply that refuses nothing gives no reason for refusing.
    """

    key: Key
    values: Annotated[tuple[Value, ...], Field(min_length=1)]
    verdicts: Annotated[tuple[Outcome, ...], Field(min_length=1)] = OUTCOMES

    def weights(self) -> dict[str, float]:
        """Return the weights of the values that are to be met."""
        return {value.key: value.weight for value in self.values if value.weight > 0}


@dataclass(frozen=True, slots=True, config=CLOSED)
class CategoryRows:
    """Plan one category otherwise than the rest.

    Attributes:
        key: The category.
        rows: How many rows; None for the recipe's number.
        leaves: Topics; none for all leaves of the taxonomy.
    """

    key: Key
    rows: _Count | None = None
    leaves: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True, config=CLOSED)
class SynthesisRecipe:
    """Hold all that decides, beside the taxonomy, what is asked for.

    Attributes:
        name: What the recipe is called; row ids begin with it.
        rows: Rows for each category.
        categories: Which; none for all of the taxonomy.
        verdicts: How the rows of a category are shared out among the verdicts; where nothing is said, 2 : 1 : 1.
        input: Axes of what is asked.
        output: Axes of the reply.
        prompt: Prompt that has rows written, by name and version.
        check: Prompt that has them judged, by name and version.
        model: Who writes; the command line may name another one.
        seed: Decides the plan, and goes with each request.
        attempts: How often a row is written at most until one is kept.
        parameters: What is sent with each request, under the names of the API.
    """

    name: Key
    rows: _Count
    categories: tuple[CategoryRows, ...] = ()
    verdicts: Mix = field(default_factory=lambda: Mix(full=2.0, partial=1.0, none=1.0))
    input: tuple[Axis, ...] = ()
    output: tuple[Axis, ...] = ()
    prompt: Text = "row-1"
    check: Text = "check-1"
    model: Text | None = None
    seed: Annotated[int, Field(ge=0, strict=True)] = 0
    attempts: _Count = 2
    parameters: dict[Text, Any] = field(default_factory=lambda: {"temperature": 1.0, "max_tokens": 4096})

    @classmethod
    def load(cls, name_or_path: str | Path, taxonomy: Taxonomy) -> SynthesisRecipe:
        """Read a shipped recipe by its name, or any other by its path; categories are those of the taxonomy.

        Raises:
            RecipeError: The file is missing or damaged, a field is unknown or out of range, a category is not in the
                taxonomy or has no leaves, or an axis repeats itself; the message lists every problem.
        """
        path = recipe_path(name_or_path)
        recipe = validate(cls, read_document(path, error=RecipeError), where=str(path), error=RecipeError)
        raise_problems(_contradictions(recipe, taxonomy), where=str(path), error=RecipeError)
        return recipe.complete(taxonomy)

    def complete(self, taxonomy: Taxonomy) -> SynthesisRecipe:
        """Return the recipe with every category, its rows and its leaves written out."""
        named = self.categories or tuple(CategoryRows(key) for key in taxonomy.keys)
        whole = tuple(
            CategoryRows(
                each.key, self.rows if each.rows is None else each.rows, each.leaves or taxonomy[each.key].leaves
            )
            for each in named
        )
        return replace(self, categories=whole)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Return all axes, those of the input first."""
        return (*self.input, *self.output)

    def to_json(self) -> dict[str, Any]:
        """Return the whole content, defaults written out, ready for `json.dumps`."""
        return written_out(self)

    @property
    def sha256(self) -> str:
        """Return the hex digest of the content, which comments and order of fields do not change."""
        return fingerprint(self)


def recipe_path(name_or_path: str | Path) -> Path:
    """Take a bare name for a shipped recipe, and everything else for a path.

    Raises:
        RecipeError: Nothing of that name is shipped.
    """
    path = Path(name_or_path)
    if path.suffix or len(path.parts) != 1:
        return path
    folder = shipped_folder(_FOLDER)
    shipped = sorted(each.stem for each in folder.glob("*.yaml"))
    if str(name_or_path) not in shipped:
        message = (
            f"no recipe of synthesis {str(name_or_path)!r} is shipped; give a YAML file, or one of {listed(shipped)}"
        )
        raise RecipeError(message)
    return folder / f"{name_or_path}.yaml"


def _contradictions(recipe: SynthesisRecipe, taxonomy: Taxonomy) -> Iterator[str]:
    """Yield every problem that no single field shows."""
    yield from repeated("categories: key", (each.key for each in recipe.categories))
    for place, each in enumerate(recipe.categories):
        yield from _bad_category(f"categories[{place}]", each, taxonomy)
    if not recipe.categories:
        for key in taxonomy.keys:
            yield from _bad_category("categories", CategoryRows(key), taxonomy)
    if not recipe.verdicts.weights():
        yield "verdicts: every weight is 0; give one of them more"
    yield from repeated("axis", (axis.key for axis in recipe.axes))
    for axis in recipe.axes:
        yield from repeated(f"axis {axis.key!r}: value", (value.key for value in axis.values))
        if not axis.weights():
            yield f"axis {axis.key!r}: every weight is 0; give one of its values more"
        for value in axis.values:
            if value.words is not None and value.words[0] > value.words[1]:
                yield f"axis {axis.key!r}, value {value.key!r}: words {list(value.words)}; write [fewest, most]"


def _bad_category(place: str, each: CategoryRows, taxonomy: Taxonomy) -> Iterator[str]:
    if each.key not in taxonomy:
        yield f"{place}: {each.key!r} is no category of the taxonomy; its categories are {listed(taxonomy.keys)}"
    elif not each.leaves and not taxonomy[each.key].leaves:
        yield f"{place}: category {each.key!r} has no leaves to write about; give it `leaves` here or in the taxonomy"
