"""A judge is told what the taxonomy says, in a version that changes with every word of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation
from demur.labelers.fence import fence_of
from demur.labelers.judge_prompt import JudgePrompt

if TYPE_CHECKING:
    from demur.taxonomy import Taxonomy


def test_the_full_prompt_holds_definitions_boundaries_and_hard_cases(taxonomy: Taxonomy) -> None:
    """All of them; the short one definitions alone."""
    full, short = (JudgePrompt(taxonomy, variant).system for variant in ("full", "short"))
    for category in taxonomy:
        for text in (full, short):
            assert f"- {category.key}: {' '.join(category.definition.split())}" in text
        for boundary in category.boundaries:
            assert boundary.rule in full
            assert boundary.rule not in short
    for hard_case in taxonomy.hard_cases:
        assert f"- {hard_case.case} → " in full
        assert hard_case.case not in short
    assert "- full: The reply declines" in short
    assert len(short) < len(full) / 2


def test_a_decided_case_names_verdict_and_kinds(taxonomy: Taxonomy) -> None:
    """As the taxonomy decides it."""
    assert "- 'Please provide the text.' → full, missing_context. " in JudgePrompt(taxonomy).system


def test_a_version_is_of_every_word_and_of_the_variant(taxonomy: Taxonomy) -> None:
    """The same taxonomy gives the same one; a word in a hard case, which changes no label, another."""
    plain = JudgePrompt(taxonomy)
    case = replace(taxonomy.hard_cases[0], rule="Otherwise.")
    edited = JudgePrompt(replace(taxonomy, hard_cases=(case, *taxonomy.hard_cases[1:])))
    assert plain.version == JudgePrompt(taxonomy, "full").version
    assert len({plain.version, edited.version, JudgePrompt(taxonomy, "short").version}) == 3
    assert plain.name == f"judge/full/{plain.version}"


def test_a_request_holds_the_conversation_between_marks_and_a_word_after_it(taxonomy: Taxonomy) -> None:
    """Rules in the system message, evidence in the user's; braces in a reply are only that."""
    talk = Conversation.of("Show me {fence}.", "I can't {conversation}.")
    prompt = JudgePrompt(taxonomy)
    request = prompt.request(talk, {"max_tokens": 5})
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].content == prompt.system
    asked = request.messages[1].content
    assert "\nI can't {conversation}.\n" in asked
    assert asked.index(f"⟦{fence_of(talk)} end⟧") < asked.index("Judge the reply under")
    assert (request.prompt, request.parameters) == (prompt.name, {"max_tokens": 5})


def test_the_schema_allows_the_kinds_of_the_taxonomy_alone(taxonomy: Taxonomy) -> None:
    """Strict schemas want every property required, and no others."""
    schema = JudgePrompt(taxonomy).schema
    assert schema["properties"]["labels"]["items"]["enum"] == list(taxonomy.keys)
    assert schema["required"] == list(schema["properties"]) == ["reason", "verdict", "labels"]
    assert schema["additionalProperties"] is False


def test_an_unknown_variant_is_refused(taxonomy: Taxonomy) -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match="no prompt 'long'; give 'full' or 'short'"):
        JudgePrompt(taxonomy, "long")  # type: ignore[arg-type]
