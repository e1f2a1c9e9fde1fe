"""Recipes and prompts say what is wrong with them; those that are shipped are not wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.documents import shipped_folder
from demur.errors import RecipeError
from demur.synthesis.plan import Plan
from demur.synthesis.prompting import CheckPrompt, PromptFile, RowPrompt, find_prompt
from demur.synthesis.recipe import SynthesisRecipe, recipe_path
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from pathlib import Path

SMALL = "name: mine\nrows: 2\ncategories: [{key: privacy}]\n"


def load(folder: Path, text: str, taxonomy: Taxonomy) -> SynthesisRecipe:
    """Write a recipe and load it."""
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return SynthesisRecipe.load(path, taxonomy)


def test_a_recipe_is_written_out_and_identified(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """All leaves of the taxonomy, unless it names some; comments change nothing, a number does."""
    recipe = load(tmp_path, SMALL, taxonomy)
    (category,) = recipe.categories
    assert (category.rows, category.leaves) == (2, taxonomy["privacy"].leaves)
    assert recipe.sha256 == load(tmp_path, f"# mine\n{SMALL}", taxonomy).sha256
    assert recipe.sha256 != load(tmp_path, f"{SMALL}seed: 1\n", taxonomy).sha256
    named = load(tmp_path, "name: mine\nrows: 2\ncategories: [{key: privacy, rows: 3, leaves: [a new one]}]", taxonomy)
    assert {cell.leaf for cell in Plan.of(named).cells} == {"a new one"}
    assert len(Plan.of(named)) == 3
    assert len(load(tmp_path, "name: mine\nrows: 1\n", taxonomy).categories) == 16


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: mine\n", "rows: is missing"),
        (SMALL.replace("rows: 2", "rows: 0"), "rows"),
        (SMALL.replace("privacy", "rudeness"), "'rudeness' is no category of the taxonomy"),
        ("name: mine\nrows: 1\ncategories: [{key: privacy}, {key: privacy}]", "'privacy' stands more than once"),
        (f"{SMALL}verdicts: {{full: 0, partial: 0, none: 0}}", "every weight is 0"),
        (f"{SMALL}verdict: {{full: 1}}", "unknown field 'verdict'"),
        (f"{SMALL}input: [{{key: a, values: [{{key: x}}]}}, {{key: a, values: [{{key: x}}]}}]", "axis 'a' stands"),
        (f"{SMALL}output: [{{key: a, values: [{{key: x}}, {{key: x}}]}}]", "value 'x' stands more than once"),
        (f"{SMALL}output: [{{key: a, values: [{{key: x, weight: 0}}]}}]", "axis 'a': every weight is 0"),
        (f"{SMALL}output: [{{key: a, values: [{{key: x, words: [9, 2]}}]}}]", "write [fewest, most]"),
    ],
)
def test_a_fault_in_a_recipe_is_named_with_its_place(tmp_path: Path, taxonomy: Taxonomy, text: str, said: str) -> None:
    """The file, the field, and what would be right."""
    with pytest.raises(RecipeError) as caught:
        load(tmp_path, text, taxonomy)
    assert said in str(caught.value)
    assert "mine.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("mix", "dealt"), [("", ["full", "partial", "none", "full"]), ("verdicts: {none: 1}\n", ["none"] * 4)]
)
def test_a_mix_has_the_verdicts_that_it_names(tmp_path: Path, taxonomy: Taxonomy, mix: str, dealt: list[str]) -> None:
    """No others; where there is no mix, 2 : 1 : 1."""
    recipe = load(tmp_path, SMALL.replace("rows: 2", "rows: 4") + mix, taxonomy)
    assert [cell.verdict for cell in Plan.of(recipe).cells] == dealt


def test_a_category_needs_leaves_from_somewhere(tmp_path: Path) -> None:
    """Its own in the taxonomy, or some in the recipe."""
    document = {
        "version": "1",
        "name": "bare",
        "gate": {"full": "a", "partial": "b", "none": "c"},
        "groups": [{"key": "wont", "name": "W", "definition": "d"}],
        "categories": [{"key": key, "name": key, "group": "wont", "definition": "d"} for key in ("rude", "dull")],
    }
    bare = Taxonomy.from_mapping(document, where="here")
    with pytest.raises(RecipeError, match="2 problems"):
        load(tmp_path, "name: mine\nrows: 1\n", bare)
    text = "name: mine\nrows: 1\ncategories: [{key: rude, leaves: [a topic]}]"
    assert len(Plan.of(load(tmp_path, text, bare))) == 1


def test_every_shipped_recipe_can_be_asked_for(taxonomy: Taxonomy) -> None:
    """Its prompts are there, and every row of it can be put into words, each in its own."""
    names = sorted(path.stem for path in shipped_folder("synth/recipes").glob("*.yaml"))
    assert names == ["balanced", "small"]
    for name in names:
        recipe, path = SynthesisRecipe.load(name, taxonomy), recipe_path(name)
        prompt = RowPrompt(find_prompt(recipe.prompt, path), taxonomy, recipe)
        requests = [prompt.request(cell, 1) for cell in Plan.of(recipe).cells]
        assert len({request.messages for request in requests}) == len(requests)
        for cell, request in zip(Plan.of(recipe).cells, requests, strict=True):
            system, question = (message.content for message in request.messages)
            assert taxonomy[cell.category].definition in system
            assert all(boundary.rule in system for boundary in taxonomy[cell.category].boundaries)
            said = [value.say for value in cell.values.values() if value.say is not None]
            assert all(line in question for line in (cell.leaf, cell.id, f"verdict {cell.verdict}", *said))
            assert "{{" not in system + question
            assert request.parameters["seed"] == cell.seed


def test_a_second_attempt_is_another_request(taxonomy: Taxonomy) -> None:
    """Else the cache would give the rejected row again."""
    recipe = SynthesisRecipe.load("small", taxonomy)
    file, (cell, *_) = find_prompt("row-1", recipe_path("small")), Plan.of(recipe).cells
    prompt = RowPrompt(file, taxonomy, recipe)
    assert prompt.request(cell, 1).messages != prompt.request(cell, 2).messages
    without = RowPrompt(file, taxonomy, recipe, {"seed": None, "temperature": None, "top_p": 0.9})
    assert set(without.request(cell, 1).parameters) == {"max_tokens", "top_p"}
    fixed = RowPrompt(file, taxonomy, recipe, {"seed": 7})
    assert fixed.request(cell, 2).parameters["seed"] == 7
    # Provenance names what was sent.
    assert [each.seed(cell, 2) for each in (prompt, without, fixed)] == [cell.seed + 1, None, 7]


def test_the_check_asks_what_a_judge_is_asked_and_two_questions_more(taxonomy: Taxonomy) -> None:
    """It is not told the plan; its name follows what it says."""
    from demur.conversation import Conversation
    from demur.labelers.judge_prompt import JudgePrompt

    file = find_prompt("check-1", recipe_path("small"))
    prompt = CheckPrompt(file, taxonomy, {"temperature": 0.0})
    talk = Conversation.of("Draw a cat.", "I can't draw.")
    plain, asked = JudgePrompt(taxonomy).request(talk, {"temperature": 0.0}), prompt.request(talk)
    assert asked.messages[0].content.startswith(plain.messages[0].content)
    assert asked.messages[1] == plain.messages[1]
    assert asked.schema is not None
    assert asked.schema["required"] == ["reason", "verdict", "labels", "harmful_detail", "language"]
    other = CheckPrompt(PromptFile("check", 1, "Anything else?"), taxonomy, {})
    assert prompt.name != other.name != plain.prompt
    assert asked.messages[0].content.endswith(file.system)


def test_the_check_is_a_template_too(taxonomy: Taxonomy) -> None:
    """Over the taxonomy, without the plan; what it would not use, it refuses."""
    from demur.conversation import Conversation

    talk = Conversation.of("Draw a cat.", "I can't draw.")
    file = PromptFile("check", 1, "{% for each in taxonomy.groups %}{{ each.key }} {% endfor %}")
    asked = CheckPrompt(file, taxonomy, {}).request(talk)
    assert asked.messages[0].content.endswith("\n\nshould_not cannot")
    with pytest.raises(RecipeError, match="prompt check-1: `system` cannot be filled in: 'cell' is undefined"):
        CheckPrompt(PromptFile("check", 1, "{{ cell.verdict }}"), taxonomy, {})
    with pytest.raises(RecipeError, match="check-1 has a `user` part"):
        CheckPrompt(PromptFile("check", 1, "Anything else?", "And?"), taxonomy, {})


def test_prompts_beside_a_recipe_come_before_those_that_are_shipped(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """By name and version; a prompt that cannot be filled in says where."""
    recipe = load(tmp_path, f"{SMALL}prompt: mine-2\n", taxonomy)
    path, cell = tmp_path / "mine.yaml", Plan.of(recipe).cells[0]
    with pytest.raises(RecipeError, match=r"no prompt 'mine-2'; the prompts are 'check-1', 'row-1'"):
        find_prompt("mine-2", path)
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "mine-2.yaml").write_text('name: mine\nversion: 2\nsystem: "S"\nuser: "{{ cell.leaf }} {{ nothing }}"\n')
    prompt = RowPrompt(find_prompt("mine-2", path), taxonomy, recipe)
    with pytest.raises(RecipeError, match="`user` cannot be filled in: 'nothing' is undefined"):
        prompt.request(cell, 1)
    (folder / "mine-2.yaml").write_text('name: mine\nversion: 3\nsystem: "S"\n')
    with pytest.raises(RecipeError, match="holds version 3 of 'mine'"):
        find_prompt("mine-2", path)
    with pytest.raises(RecipeError, match="has no `user` part"):
        RowPrompt(PromptFile("mine", 1, "S"), taxonomy, recipe)
    with pytest.raises(RecipeError, match="line 1"):
        RowPrompt(PromptFile("mine", 1, "{% if %}", "U"), taxonomy, recipe)
