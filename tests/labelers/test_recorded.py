"""Recorded annotations label as their annotators did, and say where they said nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from demur.conversation import Conversation
from demur.data.annotated import Annotated, Annotation, Annotator
from demur.labelers import recorded
from demur.labelers.recorded import RecordedLabeler, recorded_labelers
from demur.taxonomy import Taxonomy
from demur.verdict import Outcome, Verdict

TAXONOMY = Taxonomy.load()
ADA, BOT = Annotator("ada", "human"), Annotator("bot", "llm")


def row(number: int, *annotations: Annotation, request: str | None = "Draw me a cat.") -> Annotated:
    """Build an annotated reply; without a request, one whose text is not known."""
    talk = None if request is None else Conversation.of(request, "I can't draw.")
    return Annotated(f"r{number}", "test", f"a.jsonl:{number}", talk, annotations)


ROWS = (
    row(1, Annotation(ADA, "full", ("output_modality", "skill_level")), Annotation(BOT, "none")),
    row(2, Annotation(ADA, "none"), request="2 + 2?"),
    row(3, Annotation(ADA, None), request="Why?"),
    row(4, Annotation(BOT, "partial"), request=None),
)


def test_a_file_is_one_labeler_for_each_annotator_people_first() -> None:
    """Their names say what they are."""
    labelers = recorded_labelers(ROWS, TAXONOMY)
    assert [labeler.name for labeler in labelers] == ["ada (human)", "bot (LLM)"]


def test_it_gives_what_was_recorded_and_nothing_else() -> None:
    """Kinds are taken over, probabilities are not made up, and each gap has its reason."""
    ada, bot = recorded_labelers(ROWS, TAXONOMY)
    talks = [*(each.conversation for each in ROWS if each.conversation), Conversation.of("Never seen.", "No.")]
    refused, answered, silent, unknown = ada.label(talks)
    assert (refused.outcome, refused.category, refused.group) == ("full", "output_modality", "cannot")
    assert refused.further == ("skill_level",)
    assert math.isnan(refused.refusal_probability)
    assert refused.category_probabilities == ()
    assert answered == Verdict("none")
    assert silent == Verdict.unscored("no_verdict")
    assert unknown == Verdict.unscored("not_labelled")
    assert [verdict.unscored_reason for verdict in bot.label(talks)] == [None, *["not_labelled"] * 3]


def test_the_whole_conversation_is_looked_up() -> None:
    """The same reply to another request was not labelled; plain strings are read as elsewhere."""
    ada = recorded_labelers(ROWS, TAXONOMY)[0]
    found = ada.label(["<|user|>Draw me a dog.<|assistant|>I can't draw.", "<|user|>2 + 2?<|assistant|>I can't draw."])
    assert [verdict.outcome for verdict in found] == ["unscored", "none"]


def test_it_is_known_by_what_was_said_and_not_by_the_order_of_the_rows() -> None:
    """Another verdict, another kind or one reply less is another labeler, under the same name."""
    ada = RecordedLabeler.of(ADA, ROWS, TAXONOMY).describe()
    assert RecordedLabeler.of(ADA, ROWS[::-1], TAXONOMY).describe() == ada
    others = (
        (row(1, Annotation(ADA, "full", ("privacy", "skill_level"))), *ROWS[1:]),
        (ROWS[0], row(2, Annotation(ADA, "full"), request="2 + 2?"), *ROWS[2:]),
        ROWS[:2],
    )
    found = [RecordedLabeler.of(ADA, rows, TAXONOMY).describe() for rows in others]
    assert {each["name"] for each in found} == {ada["name"]} == {"ada (human)"}
    assert len({each["verdicts_sha256"] for each in (ada, *found)}) == 4


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (("full", "full"), Verdict("full")),
        (("full", "none"), Verdict.unscored("conflicting_labels")),
        (("full", "none", "full"), Verdict.unscored("conflicting_labels")),
        ((None, "full"), Verdict("full")),
        (("full", None), Verdict("full")),
    ],
)
def test_rows_of_the_same_text_must_not_contradict_each_other(outcomes: tuple[object, ...], expected: Verdict) -> None:
    """Two verdicts on one text leave none; to have said nothing once contradicts nothing."""
    rows = [row(place, Annotation(ADA, outcome)) for place, outcome in enumerate(outcomes)]  # type: ignore[arg-type]
    (verdict,) = RecordedLabeler.of(ADA, rows, TAXONOMY).label([Conversation.of("Draw me a cat.", "I can't draw.")])
    assert verdict == expected


def test_a_recorded_labeler_is_shown_without_what_it_recorded() -> None:
    """That may be a whole file."""
    assert repr(RecordedLabeler.of(ADA, ROWS, TAXONOMY)) == f"RecordedLabeler(annotator={ADA!r})"


def test_rows_that_agree_do_so_whatever_nan_their_probabilities_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 compares dataclasses field by field, where no nan equals another, nor itself."""

    def build(outcome: Outcome, **known: Any) -> Verdict:
        return Verdict(outcome, float("nan"), **known)

    rows = [row(place, Annotation(ADA, "full", ("output_modality",))) for place in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr(recorded, "Verdict", build)
        labeler = RecordedLabeler.of(ADA, rows, TAXONOMY)
    (verdict,) = labeler.label([Conversation.of("Draw me a cat.", "I can't draw.")])
    assert (verdict.outcome, verdict.category) == ("full", "output_modality")
