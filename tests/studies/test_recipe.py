"""Hold recipes to their file: what is read, what is refused, and what two recipes have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demur.errors import RecipeError
from demur.model.settings import TrainingSettings
from demur.studies.recipe import Balance, Recipe, Source, folders_for, shipped_document

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = "name: mine\nsources:\n  - path: rows.jsonl\n"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Return what writes a recipe and gives its path."""

    def write(text: str) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_shipped_recipe_names_what_the_shipped_weights_were_trained_on() -> None:
    """Eight sources, labels of people twice, weak rows at .3 and .95, the gold file avoided, and the usual settings."""
    recipe = Recipe.load("shipped")
    assert [source.path for source in recipe.sources] == [
        "annotated/train.jsonl",
        "human/chatgpt_refusals.jsonl",
        "human/gptfuzz_weak_refusals.jsonl",
        "human/xstest.jsonl",
        "synth/corpus",
        "synth/robustness.jsonl",
        "synth/contrasts.jsonl",
        "synth/readings",
    ]
    assert [source.weight for source in recipe.sources[:4]] == [None, 2, 0.3, 2]
    weak = recipe.sources[2]
    assert (weak.weight, weak.confidence) == (0.3, 0.95)
    assert recipe.sources[-1].texts == ("unlabelled",)
    assert recipe.avoid == ("annotated/gold.jsonl",)
    assert recipe.settings == TrainingSettings()
    assert (recipe.balance.exponent, recipe.hard_negative_weight) == (0, 1)


def test_the_shipped_recipe_finds_what_the_repository_holds() -> None:
    """Its synthetic sources lie in a folder above its own; everything else is the user's to give."""
    folders = folders_for("shipped", None)
    ours = [source.path for source in Recipe.load("shipped").sources if source.path.startswith("synth/")]
    assert ours
    assert all(any((folder / path).exists() for folder in folders) for path in ours)


def test_what_a_recipe_leaves_out_is_as_usual(written: Callable[[str], Path]) -> None:
    """A name and one source are enough."""
    assert Recipe.load(written(PLAIN)) == Recipe(name="mine", sources=(Source("rows.jsonl"),))


def test_any_field_of_the_settings_can_be_set(written: Callable[[str], Path]) -> None:
    """The others keep their defaults."""
    recipe = Recipe.load(written(PLAIN + "settings: {rank: 8, is_bf16: false}\nbalance: {exponent: 0.5}\n"))
    assert recipe.settings == TrainingSettings(rank=8, is_bf16=False)
    assert recipe.balance == Balance(exponent=0.5, cap=5.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN + "setings: {}\n", "unknown field 'setings'; the fields here are 'name', 'sources', 'avoid'"),
        (PLAIN + "settings: {ranks: 8}\n", "settings.ranks: unknown field 'ranks'; the fields here are 'epochs'"),
        (PLAIN + "settings: {rank: 8.5}\n", r"settings\.rank: met 8\.5"),
        (PLAIN + "settings: {rank: '8'}\n", r"settings\.rank: met '8'"),
        (PLAIN + "settings: {max_tokens: 513}\n", r"settings\.max_tokens: met 513; .* less than or equal to 512"),
        (PLAIN + "settings: {learning_rate: .nan}\n", r"settings\.learning_rate: met nan; .* finite"),
        (
            PLAIN + "    wieght: 2\n",
            r"sources\[0\]\.wieght: unknown field 'wieght'; the fields here are 'path', 'weight'",
        ),
        (PLAIN + "    weight: -1\n", r"sources\[0\]\.weight: met -1"),
        (PLAIN + "    confidence: 0.5\n", r"sources\[0\]\.confidence: met 0\.5; .* greater than 0\.5"),
        (PLAIN + "    sample: 0\n", r"sources\[0\]\.sample: met 0"),
        (PLAIN + "  - path: rows.jsonl\n", r"sources\[1\]\.path: 'rows\.jsonl' stands twice"),
        (PLAIN + "balance: {cap: 0.5}\n", r"balance\.cap: met 0\.5"),
        (PLAIN + "hard_negative_weight: many\n", "hard_negative_weight: met 'many'"),
        ("name: mine\nsources: []\n", "sources: has 0 entries; give at least 1"),
        ("name: mine\n", "sources: is missing"),
        (PLAIN + "name: yours\n", "'name' stands twice"),
        ("sources: [", "invalid YAML"),
    ],
)
def test_a_faulty_recipe_is_refused_with_file_and_field(
    written: Callable[[str], Path], text: str, expected: str
) -> None:
    """What was met, where, and what would be right."""
    with pytest.raises(RecipeError, match=rf"mine\.yaml.*{expected}"):
        Recipe.load(written(text))


def test_an_unknown_name_is_answered_with_those_that_are_shipped() -> None:
    """A bare name means a shipped recipe, and a path is a path."""
    # A plan is no answer to what recipe there is.
    names = "'all', 'distilled', 'further', 'shipped', 'whole'"
    with pytest.raises(RecipeError, match=rf"no recipe 'shiped' is shipped; .* one of {names}$"):
        Recipe.load("shiped")
    with pytest.raises(RecipeError, match="no such file"):
        Recipe.load(Path("nowhere") / "shipped.yaml")


def test_data_is_searched_before_the_folders_of_the_recipe(tmp_path: Path) -> None:
    """Then the recipe's own folder, then those above it."""
    folders = folders_for(tmp_path / "deep" / "mine.yaml", Path("data"))
    assert folders[:3] == [Path("data"), (tmp_path / "deep").resolve(), tmp_path.resolve()]


def test_the_digest_is_of_the_content(written: Callable[[str], Path]) -> None:
    """Comments and a default written out change nothing; a weight does."""
    plain = Recipe.load(written(PLAIN)).sha256
    assert Recipe.load(written("# why\n" + PLAIN + "hard_negative_weight: 1\navoid: []\n")).sha256 == plain
    assert Recipe.load(written(PLAIN + "hard_negative_weight: 2\n")).sha256 != plain


def test_a_recipe_goes_through_json(written: Callable[[str], Path]) -> None:
    """What the manifest records can be read as a recipe again."""
    recipe = Recipe.load(written(PLAIN + "    texts: [a, b]\nsettings: {rank: 8}\n"))
    copy = written(json.dumps(recipe.to_json()))
    assert Recipe.load(copy) == recipe


def test_a_shipped_document_is_found_by_its_name() -> None:
    """In the package."""
    assert shipped_document("shipped").is_file()
