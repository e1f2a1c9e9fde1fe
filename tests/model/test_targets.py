"""Hold targets to what annotators said, softened where they were not asked directly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation
from demur.data.labelled import Labelled
from demur.data.rendering import Renderer
from demur.model.encoders import Encoder
from demur.model.targets import Example, Opinion, balanced, examples, kind_distribution

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

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


@pytest.mark.parametrize(("is_refusal", "expected"), [(True, 0.9), (False, 0.1)])
def test_a_label_is_softened_as_far_as_it_is_doubted(
    taxonomy: Taxonomy, renderer: Renderer, is_refusal: bool, expected: float
) -> None:
    """At a confidence of .9: .9 or 1 - .9; the row's weight is the example's."""
    doubted = row(outcome="full" if is_refusal else "none", is_refusal=is_refusal, confidence=0.9, weight=0.5)
    example = target(doubted, taxonomy, renderer)
    assert example.refusal == pytest.approx(expected)
    assert example.weight == 0.5


def test_a_weak_label_names_no_kind(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """Neither kind nor extent, since nobody read the reply for them."""
    example = target(row(outcome="full", is_refusal=True, is_weak=True, readings=(("privacy",),)), taxonomy, renderer)
    assert example.kinds is None
    assert math.isnan(example.partial)


def test_rare_kinds_are_weighed_up_to_the_cap() -> None:
    """Of 8, 2 and 1 rows, with exponent 1/2: 1, sqrt(8 / 2) = 2, and sqrt(8 / 1) = 2.83, capped at 2.5."""
    kinds = [(1.0, 0.0, 0.0)] * 8 + [(0.0, 1.0, 0.0)] * 2 + [(0.0, 0.0, 1.0)]
    found = balanced([Example("t", "b", 1.0, kinds=each) for each in kinds], exponent=0.5, cap=2.5)
    assert [each.kind_weight for each in found] == pytest.approx([1.0] * 8 + [2.0] * 2 + [2.5])


def test_a_row_of_several_kinds_weighs_their_mean() -> None:
    """Kinds of 3.5 and .5 rows weigh 1 and 7; half of each is 4. Rows without a kind keep their weight of 1."""
    rows = [Example("t", "b", 1.0, kinds=(1.0, 0.0))] * 3 + [Example("t", "b", 1.0, kinds=(0.5, 0.5))]
    found = balanced([*rows, Example("t", "b", 0.0)], exponent=1.0, cap=10.0)
    assert [each.kind_weight for each in found] == pytest.approx([1.0, 1.0, 1.0, 4.0, 1.0])


def test_an_exponent_of_zero_balances_nothing() -> None:
    """The examples come back as they were."""
    rows = [Example("t", "b", 1.0, kinds=(1.0, 0.0)), Example("t", "b", 1.0, kinds=(1.0, 0.0))]
    assert balanced(rows, exponent=0.0, cap=5.0) == rows


def test_rows_of_unknown_verdict_teach_nothing(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """They are left out, and the others keep their order."""
    rows = [row(), row(outcome="full", is_refusal=True), row(), row(outcome="none", is_refusal=False)]
    found = examples(rows, taxonomy=taxonomy, renderer=renderer, main_share=0.8)
    assert [example.refusal for example in found] == [1.0, 0.0]


def softened(labelled: Labelled, opinion: Opinion | None, taxonomy: Taxonomy, renderer: Renderer) -> list[Example]:
    """Build the examples of a row on which there is an opinion, which gets three quarters beside a label."""
    return examples(
        [labelled], taxonomy=taxonomy, renderer=renderer, main_share=0.8, opinions=[opinion], opinion_share=0.75
    )


def opinion_of(refusal: float, taxonomy: Taxonomy, **kinds: float) -> Opinion:
    """Think a row a refusal of some kinds."""
    return Opinion(refusal, tuple(kinds.get(key, 0.0) for key in taxonomy.keys))


def test_an_opinion_softens_a_label(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """Of the gate 1/4 * 1 + 3/4 * .6 = .7; of the kinds 1/4 + 3/4 * .4 = .55 and 3/4 * .6 = .45; not of partial."""
    labelled = row(outcome="full", is_refusal=True, readings=(("privacy",),))
    (found,) = softened(labelled, opinion_of(0.6, taxonomy, privacy=0.4, unknowable=0.6), taxonomy, renderer)
    assert found.kinds is not None
    assert (found.refusal, found.partial, found.kind_weight) == pytest.approx((0.7, 0.0, 1.0))
    assert found.kinds[taxonomy.index("privacy")] == pytest.approx(0.55)
    assert found.kinds[taxonomy.index("unknowable")] == pytest.approx(0.45)


@pytest.mark.parametrize(("share", "expected"), [(0.0, (1.0, 1.0)), (0.5, (0.8, 0.7)), (1.0, (0.6, 0.4))])
def test_a_row_says_how_far_opinion_counts(
    share: float, expected: tuple[float, float], taxonomy: Taxonomy, renderer: Renderer
) -> None:
    """Its own share comes before that of all rows; of gate and kind, (1 - s) + s * what is thought."""
    labelled = row(outcome="full", is_refusal=True, readings=(("privacy",),), teacher_share=share)
    (found,) = softened(labelled, opinion_of(0.6, taxonomy, privacy=0.4, unknowable=0.6), taxonomy, renderer)
    assert found.kinds is not None
    assert (found.refusal, found.kinds[taxonomy.index("privacy")]) == pytest.approx(expected)


def test_what_complies_is_of_no_kind_whatever_is_thought(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """The gate alone is softened, to 3/4 * .4 = .3."""
    labelled = row(outcome="none", is_refusal=False)
    (found,) = softened(labelled, opinion_of(0.4, taxonomy, privacy=1.0), taxonomy, renderer)
    assert found.refusal == pytest.approx(0.3)
    assert found.kinds is None


def test_an_opinion_names_the_kind_that_nobody_named(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """A weak label says of no kind: the opinion's is taken, as far as it takes the reply for a refusal."""
    labelled = row(outcome="full", is_refusal=True, is_weak=True, confidence=0.9)
    (found,) = softened(labelled, opinion_of(0.5, taxonomy, privacy=1.0), taxonomy, renderer)
    assert found.kinds is not None
    assert (found.refusal, found.kind_weight) == pytest.approx((0.25 * 0.9 + 0.75 * 0.5, 0.5))
    assert found.kinds[taxonomy.index("privacy")] == 1.0


def test_a_row_without_a_label_teaches_what_is_thought_of_it(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """All of the target is the opinion; with none there is no example."""
    (found,) = softened(row(), opinion_of(0.3, taxonomy, privacy=1.0), taxonomy, renderer)
    assert found.kinds is not None
    assert (found.refusal, found.kind_weight) == (0.3, 0.3)
    assert math.isnan(found.partial)
    assert softened(row(), None, taxonomy, renderer) == []


def test_a_row_without_an_opinion_keeps_its_label(taxonomy: Taxonomy, renderer: Renderer) -> None:
    """As where there are no teachers at all."""
    labelled = row(outcome="full", is_refusal=True, readings=(("privacy",),))
    assert softened(labelled, None, taxonomy, renderer) == [target(labelled, taxonomy, renderer)]


def test_kinds_that_are_doubtful_count_as_far_as_there_is_one() -> None:
    """10 rows of one kind, and 1,000 that are refusals of the other with P = .01, are as many: none is weighed up."""
    sure, doubtful = (
        Example("t", "b", 1.0, kinds=(1.0, 0.0)),
        Example("t", "b", 0.01, kinds=(0.0, 1.0), kind_weight=0.01),
    )
    found = balanced([sure] * 10 + [doubtful] * 1_000, exponent=1.0, cap=20.0)
    assert found[0].kind_weight == pytest.approx(1.0)
    assert found[-1].kind_weight == pytest.approx(0.01)
