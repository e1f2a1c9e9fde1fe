"""Plans are balanced by design, and the same everywhere."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from demur.synthesis.plan import Plan, deal
from demur.synthesis.recipe import Axis, CategoryRows, SynthesisRecipe, Value

if TYPE_CHECKING:
    from demur.taxonomy import Taxonomy


@pytest.fixture(scope="module")
def balanced(taxonomy: Taxonomy) -> SynthesisRecipe:
    """Load the shipped recipe of 16 kinds."""
    return SynthesisRecipe.load("balanced", taxonomy)


def test_each_beginning_holds_names_as_their_weights_say() -> None:
    """Tijdeman's bound: at every k, a count is less than one off its share of k, whatever the weights."""
    draw = random.Random(66)
    for _ in range(300):
        weights = {str(name): draw.choice([0.5, 1, 1, 2, 5, 12]) for name in range(draw.randint(1, 8))}
        dealt, total = deal(60, weights), sum(weights.values())
        bound = 1 - 1 / max(2 * len(weights) - 2, 1) + 1e-6
        for k in range(1, 61):
            off = max(abs(dealt[:k].count(name) - k * weight / total) for name, weight in weights.items())
            assert off <= (bound if len(weights) > 1 else 1e-6)


def test_the_shipped_plan_has_sixteen_kinds_of_fifty_rows(balanced: SynthesisRecipe, taxonomy: Taxonomy) -> None:
    """25 : 13 : 12 of 50 by weights 2 : 1 : 1; as many leaves as rows; ids stand once."""
    plan = Plan.of(balanced)
    assert tuple(plan.by_category()) == taxonomy.keys
    assert {len(cells) for cells in plan.by_category().values()} == {50}
    assert len({cell.id for cell in plan.cells}) == len({cell.seed for cell in plan.cells}) == len(plan) == 800
    for counts in plan.counts("verdict").values():
        assert counts == {"full": 25, "partial": 13, "none": 12}
    assert {len(counts) for counts in plan.counts("leaf").values()} == {50}


def test_values_of_an_axis_are_met_as_their_weights_say_in_every_category(balanced: SynthesisRecipe) -> None:
    """Less than one row off in a category, and less than two off in the rows of one verdict."""
    plan = Plan.of(balanced)
    for axis in balanced.axes:
        total = sum(axis.weights().values())
        for category, cells in plan.by_category().items():
            groups = {verdict: [cell for cell in cells if cell.verdict == verdict] for verdict in axis.verdicts}
            whole = [cell for group in groups.values() for cell in group]
            assert not [cell for cell in cells if cell.verdict not in axis.verdicts and axis.key in cell.axes]
            for value, weight in axis.weights().items():
                share = weight / total
                assert abs(sum(cell.axes[axis.key] == value for cell in whole) - share * len(whole)) < 1, category
                for group in groups.values():
                    assert abs(sum(cell.axes[axis.key] == value for cell in group) - share * len(group)) < 2


def test_axes_do_not_go_together(balanced: SynthesisRecipe) -> None:
    """Over 800 rows of two axes of three values, no pair is far from a ninth of them (89 rows)."""
    met = [(cell.axes["request_length"], cell.axes["reply_length"]) for cell in Plan.of(balanced).cells]
    assert all(60 < met.count(pair) < 120 for pair in set(met))
    assert len(set(met)) == 9


def test_a_leaf_with_several_rows_shares_out_the_verdicts(taxonomy: Taxonomy) -> None:
    """Eight rows on two leaves: four each, of which two are full."""
    recipe = SynthesisRecipe("r", 8, (CategoryRows("privacy", leaves=("a", "b")),))
    cells = Plan.of(recipe.complete(taxonomy)).cells
    for leaf in ("a", "b"):
        assert sorted(cell.verdict for cell in cells if cell.leaf == leaf) == ["full", "full", "none", "partial"]


def test_a_plan_follows_from_recipe_and_seed_alone(balanced: SynthesisRecipe) -> None:
    """The same again; another seed gives another one; a category or an axis more changes nothing else."""
    plan = Plan.of(balanced)
    assert plan == Plan.of(balanced)
    assert plan.cells != Plan.of(replace(balanced, seed=2)).cells
    fewer = Plan.of(replace(balanced, categories=balanced.categories[3:5]))
    assert fewer.cells == plan.cells[150:250]
    further = Axis("mood", (Value("a"), Value("b")))
    more = Plan.of(replace(balanced, input=(*balanced.input, further)))
    assert [(cell.leaf, cell.axes | {"mood": ""}) for cell in plan.cells] == [
        (cell.leaf, cell.axes | {"mood": ""}) for cell in more.cells
    ]


def test_a_row_is_in_the_language_that_an_axis_gives_it(balanced: SynthesisRecipe) -> None:
    """English where none does."""
    plan = Plan.of(balanced)
    assert {cell.language for cell in plan.cells} == {"en", "de", "es", "fr", "zh"}
    assert {cell.language for cell in Plan.of(replace(balanced, input=())).cells} == {"en"}
    cell = plan.cells[0]
    assert cell.seed_of(1) == cell.seed != cell.seed_of(2)
