"""The regression pack, written by a language model, is sound: cases that readers and labelers stumble over."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter

from demur.conversation import Conversation, Role, Turn
from demur.taxonomy import Taxonomy

PACK = Path(__file__).parent / "data" / "regression.jsonl"
CORPUS = Path(__file__).parents[1] / "synth" / "corpus"
FAMILIES = (
    "all_caps",
    "answer_then_disclaimer",
    "apostrophes",
    "capability",
    "clarification",
    "code_comments",
    "correct_no",
    "disclaimer_then_answer",
    "emoji",
    "fiction_refusal",
    "late_refusal",
    "markdown",
    "multi_turn",
    "no_context",
    "other_languages",
    "prompt_injection",
    "provider_blocks",
    "quoted_refusals",
    "refusal_on_request",
    "safe_completion",
    "sarcasm",
    "sympathy",
    "system_scope",
    "terse_no",
    "think_leftovers",
    "tool_stubs",
)


class Message(BaseModel):
    """Keep one message as the pack writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    role: Role
    content: str


class Case(BaseModel):
    """Keep one case: a conversation, the verdict on its last reply, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str
    family: str
    language: str
    messages: tuple[Message, ...]
    verdict: Literal["full", "partial", "none"]
    labels: tuple[str, ...]
    reason: str

    @property
    def conversation(self) -> Conversation:
        """Read the messages as a conversation."""
        return Conversation(tuple(Turn(each.role, each.content) for each in self.messages))

    @property
    def refuses(self) -> bool:
        """Tell whether the verdict is a refusal."""
        return self.verdict != "none"


class Row(BaseModel):
    """Keep of a row of the corpus nothing but its messages."""

    messages: tuple[Message, ...]


@cache
def pack() -> tuple[Case, ...]:
    """Read every case; a field too many, too few or of another type is an error."""
    return tuple(Case.model_validate_json(line) for line in PACK.read_text(encoding="utf-8").splitlines())


def family(name: str) -> tuple[Case, ...]:
    """Take the cases of one family."""
    return tuple(case for case in pack() if case.family == name)


def test_the_pack_has_at_least_three_hundred_cases() -> None:
    """Every line holds a case with the known fields and no other."""
    assert len(pack()) >= 300


def test_every_family_has_at_least_twelve_cases() -> None:
    """The families are those that are named above, each of a useful size."""
    counts = Counter(case.family for case in pack())
    assert tuple(sorted(counts)) == FAMILIES
    assert {name: n for name, n in counts.items() if n < 12} == {}


def test_ids_are_unique_and_name_their_family() -> None:
    """A case is called by its family and its number in it, from 001 on without a gap."""
    for name in FAMILIES:
        assert [case.id for case in family(name)] == [f"{name}-{n:03d}" for n in range(1, len(family(name)) + 1)]


def test_no_conversation_stands_twice() -> None:
    """A case is counted once."""
    counts = Counter(case.conversation for case in pack())
    assert [conversation for conversation, n in counts.items() if n > 1] == []


@pytest.mark.parametrize("case", pack(), ids=lambda case: case.id)
def test_a_case_ends_with_a_reply_and_says_why_it_is_judged_so(case: Case) -> None:
    """No message is empty, the last is the assistant's, and the reason is one short sentence."""
    assert case.conversation.reply.strip()
    assert all(message.content.strip() for message in case.messages)
    assert re.fullmatch(r"\S.{5,118}\.", case.reason)


def test_only_refusals_have_labels_and_every_refusal_has_one() -> None:
    """A reply that does not refuse has no kind; one that does has one to three of them."""
    assert [case.id for case in pack() if not case.refuses and case.labels] == []
    assert [case.id for case in pack() if case.refuses and not 1 <= len(case.labels) <= 3] == []


def test_every_label_is_a_kind_of_the_taxonomy() -> None:
    """Each of the 16 kinds occurs, and none that is unknown or named twice in a case."""
    assert {label for case in pack() for label in case.labels} == set(Taxonomy.load().keys)
    assert [case.id for case in pack() if len(set(case.labels)) != len(case.labels)] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_a_constant_answer_fails_in_every_family(name: str) -> None:
    """Refusals and other replies each make up a third of a family at least."""
    refusals = sum(case.refuses for case in family(name))
    assert min(refusals, len(family(name)) - refusals) >= len(family(name)) / 3


def test_all_three_verdicts_occur_often() -> None:
    """Partial refusals are rarer, yet there are enough to count."""
    counts = Counter(case.verdict for case in pack())
    assert min(counts["full"], counts["none"]) >= 100
    assert counts["partial"] >= 20


def test_the_same_words_have_the_same_verdict_with_any_apostrophe() -> None:
    """The `apostrophes` family writes each reply straight, curly and without."""
    verdicts: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for case in family("apostrophes"):
        plain = re.sub("['’“”\"]", "", case.conversation.reply)
        verdicts.setdefault(plain, []).append((case.verdict, case.labels))
    assert {len(each) for each in verdicts.values()} == {3}
    assert {len(set(each)) for each in verdicts.values()} == {1}


def test_the_same_bare_no_refuses_in_one_context_and_answers_in_another() -> None:
    """The `terse_no` family can only be judged with the request in view."""
    assert {case.refuses for case in family("terse_no") if case.conversation.reply == "No."} == {True, False}


def test_late_refusals_come_in_long_replies() -> None:
    """Every reply of the `late_refusal` family has 150 words or more."""
    assert min(len(case.conversation.reply.split()) for case in family("late_refusal")) >= 150


def test_cases_without_context_are_bare_replies() -> None:
    """The `no_context` family shows the reply alone; all others have a user's turn before it."""
    assert {len(case.messages) for case in family("no_context")} == {1}
    assert [case.id for case in pack() if case.family != "no_context" and not case.conversation.request] == []


def test_other_languages_are_many_and_each_has_both_sides() -> None:
    """English is every other family's language, and no language of this one is all refusals or all answers."""
    sides: dict[str, set[bool]] = {}
    for case in family("other_languages"):
        sides.setdefault(case.language, set()).add(case.refuses)
    assert len(sides) >= 12
    assert "en" not in sides
    assert {language: found for language, found in sides.items() if len(found) < 2} == {}
    assert {case.language for case in pack() if case.family != "other_languages"} == {"en"}


def test_no_case_occurs_in_the_training_corpus() -> None:
    """What a model has been trained on tells nothing about it."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not part of this distribution")
    row = TypeAdapter(Row)
    lines = (line for path in sorted(CORPUS.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines())
    known = {row.validate_json(line).messages for line in lines}
    assert known
    assert [case.id for case in pack() if case.messages in known] == []
