"""Hold targets to what annotators said, softened where they were not asked directly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation
from demur.data.labelled import Labelled
from demur.data.rendering import Renderer
from demur.model.encoders import Encoder
from demur.model.targets import examples, kind_distribution

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from demur.model.targets import Example
    from demur.taxonomy import Taxonomy


@pytest.fixture
def renderer(tiny_encoder: Path) -> Renderer:
    """Render with the tiny encoder's tokenizer."""
    return Renderer(Encoder.find(str(tiny_encoder)).tokenizer())


def row(**known: Any) -> Labelled:
    """Build a labelled row about one refused request."""
    conversation = Conversation.of("draw me", "sorry")
    return Labelled(conversation=conversation, id="1", source="hand", **{"outcome": None, "is_refusal": None, **known})


def target(labelled: Labelled, taxonomy: Taxonomy, renderer: Renderer) -> Example:
    """Build the one example of a row."""
    (example,) = examples([labelled], taxonomy=taxonomy, renderer=renderer, main_share=0.8)
    return example


def test_one_kind_takes_all(taxonomy: Taxonomy) -> None:
    """A reading of one kind is a certain one."""
    found = kind_distribution([["privacy"]], taxonomy, main_share=0.8)
    assert found is not None
    assert found[taxonomy.index("privacy")] == 1.0
    assert sum(found) == 1.0


def test_the_main_kind_of_several_takes_its_share(taxonomy: Taxonomy) -> None:
    """Of three kinds: .8 for the first, (1 - .8) / 2 = .1 for each of the others."""
    found = kind_distribution([["privacy", "unknowable", "skill_level"]], taxonomy, main_share=0.8)
    assert found is not None
    assert found[taxonomy.index("privacy")] == pytest.approx(0.8)
    assert found[taxonomy.index("unknowable")] == pytest.approx(0.1)
    assert found[taxonomy.index("skill_level")] == pytest.approx(0.1)


def test_readings_are_averaged(taxonomy: Taxonomy) -> None:
    """Two annotators, (1 + .8) / 2 = .9 and (0 + .2) / 2 = .1."""
    found = kind_distribution([["privacy"], ["privacy", "unknowable"]], taxonomy, main_share=0.8)
    assert found is not None
    assert found[taxonomy.index("privacy")] == pytest.approx(0.9)
    assert found[taxonomy.index("unknowable")] == pytest.approx(0.1)


def test_no_reading_is_no_distribution(taxonomy: Taxonomy) -> None:
    """None is the only 'not known'."""
    assert kind_distribution([], taxonomy, main_share=0.8) is None


def test_a_full_refusal_with_a_kind_has_all_targets(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """Gate 1, partial 0, the kind, whole weight; the text with its context and without."""
    readings = (("output_modality",),)
    example = target(row(outcome="full", is_refusal=True, readings=readings), taxonomy, renderer)
    assert (example.refusal, example.partial, example.weight) == (1.0, 0.0, 1.0)
    assert example.kinds is not None
    assert example.kinds[taxonomy.index("output_modality")] == 1.0
    assert example.text == "<|user|>draw me<|assistant|>sorry"
    assert example.bare_text == "<|assistant|>sorry"


def test_a_partial_refusal_is_a_refusal(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """Gate 1 and partial 1."""
    example = target(row(outcome="partial", is_refusal=True), taxonomy, renderer)
    assert (example.refusal, example.partial, example.kinds) == (1.0, 1.0, None)


def test_a_refusal_of_unknown_extent_says_nothing_of_partial(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """The source said only that it refuses."""
    example = target(row(is_refusal=True), taxonomy, renderer)
    assert example.refusal == 1.0
    assert math.isnan(example.partial)


def test_what_complies_has_neither_extent_nor_kind(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """Even where a reading was noted: partial and kind are given that the reply refuses."""
    example = target(row(outcome="none", is_refusal=False, readings=(("privacy",),)), taxonomy, renderer)
    assert (example.refusal, example.kinds) == (0.0, None)
    assert math.isnan(example.partial)


@pytest.mark.parametrize(("is_refusal", "expected"), [(True, 0.95), (False, 0.05)])
def test_a_weak_label_is_softened_and_weighs_less(
    taxonomy: Taxonomy, renderer: Renderer, is_refusal: bool, expected: float
) -> None:
    """.95 or .05, at weight .3, and of no kind, since nobody read the reply for one."""
    weak = row(outcome="full" if is_refusal else "none", is_refusal=is_refusal, is_weak=True, readings=(("privacy",),))
    example = target(weak, taxonomy, renderer)
    assert example.refusal == pytest.approx(expected)
    assert (example.weight, example.kinds) == (0.3, None)


def test_rows_of_unknown_verdict_teach_nothing(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """They are left out, and the others keep their order."""
    rows = [row(), row(outcome="full", is_refusal=True), row(), row(outcome="none", is_refusal=False)]
    found = examples(rows, taxonomy=taxonomy, renderer=renderer, main_share=0.8)
    assert [example.refusal for example in found] == [1.0, 0.0]
