"""Hold plans to their file: which variants, what each changes, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.errors import RecipeError
from demur.studies.plan import Plan, Variant
from demur.studies.recipe import Balance, Recipe, Source

if TYPE_CHECKING:
    from pathlib import Path

BASE = Recipe(name="base", sources=(Source("real/rows.jsonl"), Source("synth/rows.jsonl", weight=0.5)))
PLAN = """
name: mine
recipe: base.yaml
seeds: [1, 2]
evaluations: [{path: dev.jsonl, figures: [gate.f1]}]
variants:
  - {key: plain, title: plain}
"""


def write(folder: Path, plan: str) -> Path:
    """Write a plan beside its recipe."""
    (folder / "base.yaml").write_text("name: base\nsources: [{path: rows.jsonl}]\n", encoding="utf-8")
    path = folder / "plan.yaml"
    path.write_text(plan, encoding="utf-8")
    return path


def test_the_shipped_plan_varies_the_recipe_of_most_rows() -> None:
    """Its rows, over three seeds; every variant gives a valid recipe."""
    plan, base = Plan.load("ablations")
    assert base == Recipe.load("further")
    assert len(plan.seeds) == 3
    by_key = {variant.key: variant.recipe(base, seed=7) for variant in plan.variants}
    assert by_key["shipped"].settings.rank == base.settings.rank
    assert by_key["rank_8"].settings.rank == 8
    assert by_key["whole"].settings.rank == 0
    assert by_key["flat"].settings.group_weight == 0
    assert by_key["single"].settings.main_share == 1
    assert (by_key["tokens_128"].settings.max_tokens, by_key["tokens_128"].settings.window) == (128, 128)
    assert {recipe.settings.seed for recipe in by_key.values()} == {7}


def test_a_plan_and_a_recipe_are_told_apart(tmp_path: Path) -> None:
    """Shipped or not, each is named as what it is, and only files of the right sort are offered."""
    write(tmp_path, PLAN)
    for plan in ("ablations", tmp_path / "plan.yaml"):
        with pytest.raises(
            RecipeError, match=r"\.yaml: is a plan, as `demur ablate` takes; what is asked for here is a r"
        ):
            Recipe.load(plan)
    for recipe in ("shipped", tmp_path / "base.yaml"):
        with pytest.raises(RecipeError, match=r"\.yaml: is a recipe of training, .*; what is asked for here is a plan"):
            Plan.load(recipe)
    with pytest.raises(RecipeError, match=r"no plan 'ablation' is shipped; give a YAML file, or one of 'ablations'$"):
        Plan.load("ablation")


def test_real_and_synthetic_part_the_sources_between_them() -> None:
    """What one leaves out the other trains on, and nothing else."""
    plan, base = Plan.load("ablations")
    real, synthetic = (
        {source.path for source in variant.recipe(base, seed=0).sources if source.weight != 0}
        for variant in plan.variants
        if variant.key in ("real", "synthetic")
    )
    contrasts = {"synth/contrasts.jsonl", "synth/further/contrasts.jsonl"}
    assert synthetic == {"synth/corpus", "synth/robustness.jsonl", *contrasts}
    assert real == {source.path for source in base.sources} - synthetic


def test_a_variant_that_says_nothing_is_the_recipe() -> None:
    """With the seed."""
    recipe = Variant("plain", "plain").recipe(BASE, seed=BASE.settings.seed)
    assert recipe == BASE


def test_a_source_that_is_left_out_keeps_its_place() -> None:
    """At weight 0, by its path or by its folder; the other keeps its weight."""
    for path in ("real", "real/rows.jsonl"):
        recipe = Variant("x", "x", leave_out=(path,)).recipe(BASE, seed=0)
        assert [source.weight for source in recipe.sources] == [0.0, 0.5]


def test_balance_and_hard_negatives_can_be_varied() -> None:
    """In place of the recipe's own."""
    recipe = Variant("x", "x", balance=Balance(exponent=0.5), hard_negative_weight=2.0).recipe(BASE, seed=0)
    assert (recipe.balance.exponent, recipe.hard_negative_weight) == (0.5, 2.0)


def test_a_recipe_lies_beside_its_plan(tmp_path: Path) -> None:
    """A path is taken from the plan's folder."""
    plan, base = Plan.load(write(tmp_path, PLAN))
    assert (plan.name, base.name) == ("mine", "base")


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("{key: x, title: x, setings: {}}", r"variants\[1\]\.setings: unknown field 'setings'"),
        ("{key: x, title: x, settings: {ranks: 8}}", r"variants\[1\]\.settings: ranks: unknown field 'ranks'"),
        ("{key: x, title: x, settings: {rank: -8}}", r"variants\[1\]\.settings: rank: met -8"),
        ("{key: x, title: x, settings: {seed: 8}}", r"variants\[1\]\.settings\.seed: the plan's seeds say it"),
        ("{key: x, title: x, leave_out: [row]}", r"variants\[1\]\.leave_out: 'row' is no source of recipe 'base'"),
        ("{key: x, title: x, reads: prompt}", r"variants\[1\]\.reads: met 'prompt'"),
        ("{key: plain, title: x}", "variants: key 'plain' stands 2 times"),
        ("{key: X 1, title: x}", r"variants\[1\]\.key: 'X 1' is not in snake case"),
    ],
)
def test_a_faulty_variant_is_refused_with_file_and_field(tmp_path: Path, variant: str, expected: str) -> None:
    """Before anything is trained."""
    with pytest.raises(RecipeError, match=rf"plan\.yaml: {expected}"):
        Plan.load(write(tmp_path, f"{PLAN}  - {variant}\n"))


def test_an_unknown_figure_is_answered_with_those_there_are(tmp_path: Path) -> None:
    """By file and field."""
    with pytest.raises(
        RecipeError, match=r"evaluations\[0\]\.figures\[0\]: met 'f1'; Input should be 'gate\.accuracy'"
    ):
        Plan.load(write(tmp_path, PLAN.replace("gate.f1", "f1")))


def test_a_plan_is_narrowed_to_variants_and_seeds(tmp_path: Path) -> None:
    """Variants keep the plan's order; what the plan does not know is refused."""
    plan, _ = Plan.load(write(tmp_path, PLAN + "  - {key: other, title: other}\n"))
    assert plan.narrowed() == plan
    narrowed = plan.narrowed(only=["other", "plain"], seeds=[9])
    assert [variant.key for variant in narrowed.variants] == ["plain", "other"]
    assert narrowed.seeds == (9,)
    assert [variant.key for variant in plan.narrowed(only=["other"]).variants] == ["other"]
    with pytest.raises(RecipeError, match=r"no variant 'rank' in plan 'mine'; there are 'plain', 'other'"):
        plan.narrowed(only=["rank"])
    with pytest.raises(RecipeError, match=r"seeds \[3, 3\] hold one twice"):
        plan.narrowed(seeds=[3, 3])
