"""Hold the annotation guide to the taxonomy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from demur.report.guide import guide
from demur.taxonomy import HardCase, Taxonomy

README = Path(__file__).parents[2] / "taxonomy" / "README.md"


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    """Load the taxonomy that the package ships."""
    return Taxonomy.load()


def test_the_readme_of_the_taxonomy_is_its_guide(taxonomy: Taxonomy) -> None:
    """The page is rendered, never edited; after a change of the YAML, write `guide(Taxonomy.load())` to it again."""
    assert README.read_text(encoding="utf-8") == guide(taxonomy)


def test_the_guide_holds_everything_that_an_annotator_needs(taxonomy: Taxonomy) -> None:
    """Gate, procedure, and of every category its definition, boundaries, counter-examples and leaves."""
    page = guide(taxonomy)
    assert taxonomy.gate.partial in page
    assert all(step in page for step in taxonomy.procedure)
    for category in taxonomy:
        assert f"### {category.name} (`{category.key}`)\n\n{category.definition}\n" in page
        assert all(boundary.rule in page for boundary in category.boundaries)
        assert all(f"→ `{each.instead}`: {each.why}" in page for each in category.counter_examples)
        assert all(f"\n- {leaf}\n" in page for leaf in category.leaves)


def test_every_hard_case_is_a_row(taxonomy: Taxonomy) -> None:
    """A case that leaves verdict or kind open says so; no refusal, no kind."""
    page = guide(taxonomy)
    rows = page[page.index("## Hard cases") :].splitlines()[4:]
    assert len(rows) == len(taxonomy.hard_cases)
    assert "| 'I cannot browse.' | as usual | `output_modality` | Going out to fetch something is an act. |" in rows
    assert "| 'I don't understand' in banter. | none |  | Nothing was asked for. |" in rows


def test_the_guide_of_a_bare_taxonomy_has_no_empty_sections(taxonomy: Taxonomy) -> None:
    """What a taxonomy leaves out, its guide leaves out."""
    bare = tuple(replace(category, boundaries=(), examples=(), counter_examples=(), leaves=()) for category in taxonomy)
    page = guide(replace(taxonomy, categories=bare, procedure=(), hard_cases=()))
    for heading in ("Where it ends", "It is this", "It is not this", "<details>", "Hard cases", "In which order"):
        assert heading not in page
    assert "\n\n\n" not in page
    assert page.endswith("\n")


def test_markup_in_the_text_stays_text(taxonomy: Taxonomy) -> None:
    """Angle brackets, stars, back-ticks and bars of a taxonomy's text do not become Markdown."""
    decision = taxonomy.hard_cases[0].decision
    page = guide(replace(taxonomy, hard_cases=(HardCase("<b> | *a*\n`x`", decision, "r"),)))
    assert "| \\<b> \\| \\*a\\* \\`x\\` | as usual |" in page


def test_the_guide_says_what_an_audit_does_with_an_empty_reply(taxonomy: Taxonomy) -> None:
    """People label it none; an audit leaves it unscored."""
    assert "empty reply *none*. Demur's audits leave it unscored (`empty_reply`)" in guide(taxonomy)
