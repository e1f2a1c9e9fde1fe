"""Hold the shipped taxonomy to its promises, and bad files to clear messages."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path

import pytest

from demur.errors import DemurError, TaxonomyError
from demur.labelers.keywords import KeywordLabeler
from demur.stats.composition import UNNAMED
from demur.taxonomy import Taxonomy

CORPUS = Path(__file__).parents[1] / "synth" / "corpus"

SMALL = """\
version: "1"
name: small
gate: {full: all of it, partial: some of it, none: nothing of it}
groups:
  - {key: wont, name: Will not, definition: It will not.}
categories:
  - key: rude
    name: Rude
    group: wont
    definition: It would be rude.
  - key: dull
    name: Dull
    group: wont
    definition: It would be dull.
"""


@pytest.fixture(scope="module")
def shipped() -> Taxonomy:
    """Load the taxonomy that the package ships."""
    return Taxonomy.load()


def load(folder: Path, text: str) -> Taxonomy:
    """Write a taxonomy file and load it."""
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return Taxonomy.load(path)


def failure(folder: Path, text: str) -> str:
    """Load a bad taxonomy file and return the message."""
    with pytest.raises(TaxonomyError) as caught:
        load(folder, text)
    return str(caught.value)


def test_the_shipped_taxonomy_has_sixteen_categories_in_two_groups(shipped: Taxonomy) -> None:
    """Seven kinds should not, nine cannot: 7 + 9 = 16, the members of a group standing together."""
    assert len(shipped) == 16
    assert [group.key for group in shipped.groups] == ["should_not", "cannot"]
    assert len(shipped.members("should_not")) == 7
    assert len(shipped.members("cannot")) == 9
    assert shipped.members("should_not") + shipped.members("cannot") == shipped.keys


def test_every_shipped_category_can_be_taught(shipped: Taxonomy) -> None:
    """Each has at least two boundaries, three examples, two counter-examples, and 62 leaves."""
    for category in shipped:
        assert len(category.boundaries) >= 2, category.key
        assert len(category.examples) >= 3, category.key
        assert len(category.counter_examples) >= 2, category.key
        assert len(category.leaves) == 62, category.key


def test_leaves_are_those_of_the_corpus(shipped: Taxonomy) -> None:
    """The leaves of a category are the corpus's, in the order in which they first appear."""
    for category in shipped:
        lines = (CORPUS / f"{category.key}.jsonl").read_text(encoding="utf-8").splitlines()
        assert category.leaves == tuple(dict.fromkeys(json.loads(line)["leaf"] for line in lines))


def test_examples_come_in_old_and_new_voices(shipped: Taxonomy) -> None:
    """Every category shows a terse reply of at most sixteen words, and one in the set phrases of the first models."""
    for category in shipped:
        replies = [example.reply for example in category.examples]
        assert min(len(reply.split()) for reply in replies) <= 16, category.key
        assert any("AI language model" in reply or "I'm sorry, but" in reply for reply in replies), category.key


def test_no_text_stands_as_two_examples(shipped: Taxonomy) -> None:
    """An exchange that taught two kinds would teach neither."""
    exchanges = [(each.request, each.reply) for kind in shipped for each in kind.examples]
    exchanges += [(each.request, each.reply) for kind in shipped for each in kind.counter_examples]
    assert len(exchanges) == len(set(exchanges))


def test_hard_cases_reach_every_category(shipped: Taxonomy) -> None:
    """All kinds but skill level have a case that was worth deciding; no case has more than three labels."""
    decided = {label for each in shipped.hard_cases for label in each.decision.labels}
    assert set(shipped.keys) - decided == {"skill_level"}
    assert max(len(each.decision.labels) for each in shipped.hard_cases) <= 3


def test_a_category_is_found_by_its_key(shipped: Taxonomy) -> None:
    """Position, category, group and iteration agree with each other."""
    for position, category in enumerate(shipped):
        assert shipped.index(category.key) == position
        assert shipped[category.key] is category
        assert shipped.group_of(category.key) == category.group
        assert category.key in shipped.members(category.group)
        assert category.key in shipped
    assert "none" not in shipped


def test_an_unknown_key_is_answered_with_the_known_ones(shipped: Taxonomy) -> None:
    """A typo in a category or a group shows what would be right."""
    with pytest.raises(TaxonomyError, match=r"no category 'privcy' in taxonomy 'refusals'.*'privacy'"):
        shipped["privcy"]
    with pytest.raises(TaxonomyError, match=r"no category 'privcy'"):
        shipped.group_of("privcy")
    with pytest.raises(TaxonomyError, match=r"no group 'wont' in taxonomy 'refusals'.*'should_not', 'cannot'"):
        shipped.members("wont")


def test_a_taxonomy_cannot_be_changed(shipped: Taxonomy) -> None:
    """Weights are bound to it, so it is frozen throughout."""
    with pytest.raises(FrozenInstanceError):
        shipped.name = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        shipped.categories[0].key = "other"  # type: ignore[misc]


def test_a_taxonomy_is_shown_in_one_line(shipped: Taxonomy) -> None:
    """And so is a labeler that holds one, in a notebook or a traceback."""
    assert repr(shipped) == f"<Taxonomy 'refusals' {shipped.version}: 16 kinds in 2 groups>"
    assert repr(KeywordLabeler(shipped)) == f"KeywordLabeler(taxonomy={shipped!r})"


def test_a_taxonomy_goes_to_plain_values_and_back(shipped: Taxonomy) -> None:
    """A checkpoint can carry the whole taxonomy as JSON."""
    plain = json.loads(json.dumps(asdict(shipped)))
    assert Taxonomy.from_mapping(plain, where="checkpoint") == shipped


def test_the_fingerprint_is_the_hash_of_the_label_contract(tmp_path: Path) -> None:
    """It is written out here once, so that a change of the recipe, which would orphan all weights, is noticed."""
    fingerprint = load(tmp_path, SMALL).fingerprint
    assert fingerprint == "35decaeb73663e8b40a8c969c24702b6ae8b22c3de49a900d6e2f4faca95421e"


def test_prose_may_change_without_a_new_fingerprint(shipped: Taxonomy) -> None:
    """Version, names, procedure, hard cases, boundaries, examples and leaves are not part of the label contract."""
    bare = replace(shipped.categories[0], name="Renamed", boundaries=(), examples=(), counter_examples=(), leaves=())
    edited = replace(
        shipped, version="9", name="other", procedure=(), hard_cases=(), categories=(bare, *shipped.categories[1:])
    )
    assert edited.fingerprint == shipped.fingerprint


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("full: all of it", "full: all"),
        ("definition: It will not.", "definition: It never will."),
        ("definition: It would be rude.", "definition: It would be unkind."),
        ("key: rude", "key: unkind"),
        ("wont", "will_not"),
    ],
    ids=["gate", "group definition", "category definition", "category key", "group key"],
)
def test_the_label_contract_makes_the_fingerprint(tmp_path: Path, old: str, new: str) -> None:
    """Definitions, keys and groups each change it."""
    assert load(tmp_path, SMALL).fingerprint != load(tmp_path, SMALL.replace(old, new)).fingerprint


def test_the_order_of_categories_makes_the_fingerprint(shipped: Taxonomy) -> None:
    """A head whose outputs are swapped is another head."""
    first, second, *rest = shipped.categories
    assert replace(shipped, categories=(second, first, *rest)).fingerprint != shipped.fingerprint


def test_a_small_taxonomy_of_ones_own_loads(tmp_path: Path) -> None:
    """Two categories in one free group are enough; all prose is optional."""
    small = load(tmp_path, SMALL)
    assert small.keys == ("rude", "dull")
    assert small.members("wont") == ("rude", "dull")
    assert small["dull"].leaves == ()
    assert small.hard_cases == ()


def test_a_path_may_be_given_as_text(tmp_path: Path) -> None:
    """`load` takes what a command line gives."""
    load(tmp_path, SMALL)
    assert Taxonomy.load(str(tmp_path / "mine.yaml")).name == "small"


def test_errors_are_demurs_own(tmp_path: Path) -> None:
    """Whoever catches DemurError catches these."""
    with pytest.raises(DemurError):
        Taxonomy.load(tmp_path / "absent.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The message holds the path and what to give instead."""
    with pytest.raises(TaxonomyError, match=r"absent\.yaml: no such file; give the path of a YAML file"):
        Taxonomy.load(tmp_path / "absent.yaml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """What cannot be read as a file is said to be unreadable, and why."""
    with pytest.raises(TaxonomyError, match="cannot be read"):
        Taxonomy.load(tmp_path)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """Latin-1 is not guessed at."""
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: café".encode("latin-1"))
    with pytest.raises(TaxonomyError, match="UTF-8"):
        Taxonomy.load(path)


def test_broken_yaml_is_located_by_line(tmp_path: Path) -> None:
    """The bracket that opens on line 3 is still open where the file ends, on line 4."""
    message = failure(tmp_path, 'version: "1"\nname: small\ngate: {full: [\n')
    assert "mine.yaml:4: invalid YAML" in message


def test_a_character_that_yaml_forbids_is_reported(tmp_path: Path) -> None:
    """Some faults come without a line; the file is named all the same."""
    assert "mine.yaml: invalid YAML" in failure(tmp_path, "name: \x07\n")


def test_a_key_that_stands_twice_is_located_by_line(tmp_path: Path) -> None:
    """YAML readers keep the last of two silently; here the second one, on line 3, is an error."""
    message = failure(tmp_path, SMALL.replace("name: small\n", "name: small\nname: other\n"))
    assert "mine.yaml:3: invalid YAML: key 'name' stands twice in one mapping" in message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("version: 2024-02-30", ":1: invalid YAML: '2024-02-30' cannot be read (day is out of range for month)"),
        ("version: !!int x", ":1: invalid YAML: 'x' cannot be read"),
        ("version: !!timestamp x", ":1: invalid YAML: 'x' cannot be read"),
        ("version: !!bool x", ":1: invalid YAML: 'x' cannot be read"),
        ("groups: &all [*all]", ":1: invalid YAML: found unconstructable recursive node"),
        ("version: " + "[" * 3000 + "]" * 3000, ": lists and mappings are nested too deep"),
    ],
)
def test_a_value_that_yaml_cannot_build_is_located(tmp_path: Path, line: str, said: str) -> None:
    """A day that there is not, a value that is not of its tag, an anchor within itself, a list without a bottom."""
    assert said in failure(tmp_path, f"{line}\n")


def test_an_empty_file_is_no_taxonomy(tmp_path: Path) -> None:
    """Nothing at all is said to be nothing at all."""
    assert "mine.yaml: the document: met None" in failure(tmp_path, "")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("name: small\n", "", ["name: is missing"]),
        ("gate: {full: all of it, ", "gate: {", ["gate.full: is missing"]),
        ("It would be rude.", '" "', ["categories[0].definition: is empty"]),
        ("key: rude", "key: Very rude", ["categories[0].key: 'Very rude' is not in snake case", "'missing_context'"]),
        ("key: rude", "key: no", ["categories[0].key: met False"]),
        ("key: rude", "key: none", ["key 'none' is reserved"]),
        ("key: rude", f"key: {UNNAMED}", ["key 'unnamed' is reserved"]),
        ("wont", UNNAMED, ["key 'unnamed' is reserved"]),
        ("key: dull", "key: rude", ["categories: key 'rude' stands more than once"]),
        (
            "name: Rude",
            "title: Rude",
            ["categories[0].title: unknown field 'title'", "'definition'", "name: is missing"],
        ),
        ("version: ", "author: me\nversion: ", ["author: unknown field 'author'", "'hard_cases'"]),
        ("name: Rude\n    group: wont", "name: Rude\n    group: cant", ["(rude).group: 'cant' is no group", "'wont'"]),
        ("categories:", "  - {key: cant, name: C, definition: D.}\ncategories:", ["'cant' has no category"]),
        (
            "categories:",
            "  - {key: wont, name: C, definition: D.}\ncategories:",
            ["groups: key 'wont' stands more than once"],
        ),
        (
            "It would be dull.",
            "It would be dull.\n    leaves: [a, b, a]",
            ["categories[1] (dull).leaves: 'a' stands more than once"],
        ),
    ],
)
def test_a_fault_is_named_by_its_path(tmp_path: Path, old: str, new: str, parts: list[str]) -> None:
    """Every message names the file, the path in it, and what was met or would be right."""
    message = failure(tmp_path, SMALL.replace(old, new))
    assert message.startswith(str(tmp_path / "mine.yaml"))
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("field", "parts"),
    [
        ("boundaries: [{against: dul, rule: R.}]", ["(dull).boundaries[0].against: 'dul'", "'none', 'rude'"]),
        ("boundaries: [{against: dull, rule: R.}]", ["boundaries[0].against: 'dull' is no other category"]),
        ("boundaries: [{against: rude, rule: ''}]", ["categories[1].boundaries[0].rule: is empty"]),
        ("boundaries: [{against: rude, ruel: R.}]", ["unknown field 'ruel'; the fields here are 'against', 'rule'"]),
        (
            "counter_examples: [{request: Q, reply: A, instead: odd, why: W.}]",
            ["counter_examples[0].instead: 'odd' is no other category"],
        ),
    ],
)
def test_a_pointer_to_nowhere_is_named(tmp_path: Path, field: str, parts: list[str]) -> None:
    """Boundaries and counter-examples point to another category of the file, or to `none`."""
    message = failure(tmp_path, f"{SMALL}    {field}\n")
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("decision", "part"),
    [
        ("{}", "hard_cases[0].decision: decides nothing"),
        ("{verdict: none, labels: [rude]}", "hard_cases[0].decision.labels: 'rude' beside verdict 'none'"),
        ("{labels: [odd]}", "hard_cases[0].decision.labels: 'odd' is no category; the categories are 'rude', 'dull'"),
        ("{verdict: maybe}", "hard_cases[0].decision.verdict: met 'maybe'"),
    ],
)
def test_a_hard_case_has_to_decide_something_that_exists(tmp_path: Path, decision: str, part: str) -> None:
    """A decision is a verdict, labels that the file defines, or both."""
    message = failure(tmp_path, f"{SMALL}hard_cases:\n  - {{case: C, rule: R, decision: {decision}}}\n")
    assert part in message


def test_one_category_is_no_taxonomy(tmp_path: Path) -> None:
    """A softmax over one kind says nothing."""
    message = failure(tmp_path, SMALL[: SMALL.index("  - key: dull")])
    assert "categories: has 1 entries; give at least 2" in message


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    """Whoever repairs a file sees every problem in one run."""
    broken = SMALL.replace("group: wont", "group: cant").replace("key: dull", "key: rude")
    message = failure(tmp_path, broken)
    assert "mine.yaml: 4 problems" in message
    assert len(message.splitlines()) == 5
