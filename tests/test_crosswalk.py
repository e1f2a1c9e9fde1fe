"""Hold the shipped crosswalks to the taxonomy, and bad ones to clear messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from demur.crosswalk import Crosswalk
from demur.errors import TaxonomyError
from demur.taxonomy import Taxonomy

SHIPPED = sorted(path.stem for path in (Path(__file__).parents[1] / "taxonomy" / "crosswalks").glob("*.yaml"))


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    """Load the taxonomy that the crosswalks lead to."""
    return Taxonomy.load()


def write(folder: Path, labels: str) -> Path:
    """Write a crosswalk file."""
    path = folder / "theirs.yaml"
    path.write_text(f"name: theirs\nsource: them\nlabels: {labels}\n", encoding="utf-8")
    return path


def test_five_crosswalks_are_shipped() -> None:
    """Each has a test of its own below."""
    assert SHIPPED == ["arxiv_2412_16974_14", "binary", "chat_refusal", "coconot", "xstest"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_crosswalk_loads_and_says_where_it_is_from(name: str, taxonomy: Taxonomy) -> None:
    """File name and name agree; source, licence and notes are given."""
    crosswalk = Crosswalk.load(name, taxonomy)
    assert crosswalk.name == name
    assert crosswalk.source
    assert crosswalk.licence
    assert crosswalk.notes


def test_the_fourteen_labels_split_into_sixteen_without_loss(taxonomy: Taxonomy) -> None:
    """Every kind of ours lies under exactly one label of theirs: 12 alone, and 2 labels with 2 kinds each."""
    crosswalk = Crosswalk.load("arxiv_2412_16974_14", taxonomy)
    assert len(crosswalk.labels) == 14
    assert sorted(key for label in crosswalk.labels for key in crosswalk.categories(label)) == sorted(taxonomy.keys)
    assert sorted(len(crosswalk.categories(label)) for label in crosswalk.labels) == [1] * 12 + [2] * 2
    assert crosswalk.categories("modalities") == {"input_modality", "output_modality"}
    assert "regulated_advice" in crosswalk.categories("legal_compliance_illegal")
    assert all(crosswalk.is_refusal(label) for label in crosswalk.labels)


def test_coconot_labels_describe_prompts(taxonomy: Taxonomy) -> None:
    """They name kinds and never a verdict: 18 subcategories and 5 main categories."""
    crosswalk = Crosswalk.load("coconot", taxonomy)
    assert len(crosswalk.labels) == 18 + 5
    assert {crosswalk.verdict(label) for label in crosswalk.labels} == {None}
    assert {crosswalk.is_refusal(label) for label in crosswalk.labels} == {None}
    assert crosswalk.categories("personal inquiry") == {"missing_identity"}


@pytest.mark.parametrize(
    ("main", "parts"),
    [
        ("Incomplete requests", ["false presuppositions", "underspecified", "incomprehensible"]),
        ("Indeterminate requests", ["universal unknowns", "subjective questions"]),
        ("Humanizing requests", ["personal inquiry", "offer advice, opinion or recommendations"]),
        (
            "Unsupported requests",
            [
                "input modality limitations",
                "output modality limitations",
                "modality limitations",
                "style and length limitations",
                "temporal limitations",
            ],
        ),
        (
            "Requests with safety concerns",
            [
                "copyright violations",
                "dangerous or sensitive topics",
                "misinformation",
                "privacy violations",
                "triggers for offensive language",
                "wildchats",
            ],
        ),
    ],
)
def test_a_main_category_of_coconot_is_the_union_of_its_parts(main: str, parts: list[str], taxonomy: Taxonomy) -> None:
    """So a row that has only the main category is held to what any of its subcategories would allow."""
    crosswalk = Crosswalk.load("coconot", taxonomy)
    assert crosswalk.categories(main) == frozenset[str]().union(*(crosswalk.categories(part) for part in parts))


def test_chat_refusal_letters_name_refusals_and_x_does_not(taxonomy: Taxonomy) -> None:
    """A to I each name kinds of a refusal, together all sixteen; X is an answer."""
    crosswalk = Crosswalk.load("chat_refusal", taxonomy)
    assert "".join(crosswalk.labels) == "ABCDEFGHIX"
    assert all(crosswalk.verdict(letter) == "refusal" and crosswalk.categories(letter) for letter in "ABCDEFGHI")
    assert frozenset[str]().union(*map(crosswalk.categories, crosswalk.labels)) == set(taxonomy.keys)
    assert crosswalk.verdict("X") == "none"
    assert crosswalk.categories("X") == frozenset()


def test_xstest_classes_are_verdicts(taxonomy: Taxonomy) -> None:
    """Full compliance is no refusal; nothing is said of kinds."""
    crosswalk = Crosswalk.load("xstest", taxonomy)
    verdicts = {label: crosswalk.verdict(label) for label in crosswalk.labels}
    assert verdicts == {"1_full_compliance": "none", "2_full_refusal": "full", "3_partial_refusal": "partial"}
    assert not any(target.categories for target in crosswalk.labels.values())


@pytest.mark.parametrize("label", ["Refusal", "refusal", "1", 1, 1.0, True, "true", "True"])
def test_a_set_bit_is_a_refusal_of_either_extent(label: str | int, taxonomy: Taxonomy) -> None:
    """One bit does not tell full from partial, in whatever type a column holds it."""
    crosswalk = Crosswalk.load("binary", taxonomy)
    assert crosswalk.verdict(label) == "refusal"
    assert crosswalk.is_refusal(label) is True


@pytest.mark.parametrize("label", ["Non-refusal", "non-refusal", "0", 0, 0.0, False, "false", "False"])
def test_a_clear_bit_is_no_refusal(label: str | int, taxonomy: Taxonomy) -> None:
    """The other side of the bit, in the same spellings."""
    crosswalk = Crosswalk.load("binary", taxonomy)
    assert crosswalk.verdict(label) == "none"
    assert crosswalk.is_refusal(label) is False


def test_an_unmapped_label_is_answered_with_the_known_ones(taxonomy: Taxonomy) -> None:
    """Nothing is guessed from a label that nobody mapped."""
    crosswalk = Crosswalk.load("xstest", taxonomy)
    with pytest.raises(TaxonomyError, match=r"crosswalk 'xstest' has no label '4_other'; its labels are '1_full"):
        crosswalk.verdict("4_other")
    with pytest.raises(TaxonomyError, match="has no label '4_other'"):
        crosswalk.categories("4_other")


def test_an_unknown_name_is_answered_with_the_shipped_ones(taxonomy: Taxonomy) -> None:
    """A typo in the name shows what there is."""
    with pytest.raises(TaxonomyError, match=r"no crosswalk 'xtest' is shipped; give a path, or one of .*'xstest'"):
        Crosswalk.load("xtest", taxonomy)


def test_a_path_that_is_missing_is_named(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """A path is never taken for a shipped name."""
    with pytest.raises(TaxonomyError, match=r"absent\.yaml: no such file"):
        Crosswalk.load(str(tmp_path / "absent.yaml"), taxonomy)
    with pytest.raises(TaxonomyError, match="xstest: no such file"):
        Crosswalk.load(tmp_path / "xstest", taxonomy)


def test_a_crosswalk_of_ones_own_may_use_all_three_forms(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """A bare verdict, a bare list of kinds, and both written out."""
    path = write(tmp_path, "{ok: none, private: [privacy], rude: {verdict: partial, categories: [nsfw_content]}}")
    crosswalk = Crosswalk.load(path, taxonomy)
    assert (crosswalk.verdict("ok"), crosswalk.categories("ok")) == ("none", frozenset())
    assert (crosswalk.verdict("private"), crosswalk.categories("private")) == (None, frozenset({"privacy"}))
    assert (crosswalk.verdict("rude"), crosswalk.categories("rude")) == ("partial", frozenset({"nsfw_content"}))
    assert crosswalk.licence is None


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        ("{a: [privcy]}", "labels['a']: 'privcy' is no category of taxonomy 'refusals'"),
        ("{a: {}}", "labels['a']: says nothing"),
        ("{a: {verdict: none, categories: [privacy]}}", "labels['a']: has categories beside verdict 'none'"),
        ("{a: maybe}", "labels.a.verdict: met 'maybe'"),
        (
            "{a: {verdict: full, kinds: [privacy]}}",
            "unknown field 'kinds'; the fields here are 'verdict', 'categories'",
        ),
        ("{a: full, a: none}", "theirs.yaml:3: invalid YAML: key 'a' stands twice"),
        ("{1: full}", "met 1"),
        ("{}", "labels: has 0 entries; give at least 1"),
    ],
)
def test_a_fault_in_a_crosswalk_is_named_by_its_path(
    tmp_path: Path, taxonomy: Taxonomy, labels: str, part: str
) -> None:
    """Every message names the file, the label, and what was met or would be right."""
    with pytest.raises(TaxonomyError) as caught:
        Crosswalk.load(write(tmp_path, labels), taxonomy)
    assert str(caught.value).startswith(str(tmp_path))
    assert part in str(caught.value)
