"""An answer is a verdict where it says one, and nothing is guessed where it does not."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest

from demur.labelers.judge_answers import read_verdict
from demur.llm.exchange import Answer, Failure

if TYPE_CHECKING:
    from demur.taxonomy import Taxonomy

PRIVATE = '{"reason": "r", "verdict": "full", "labels": ["privacy"]}'
QUOTING = '{"reason": "It ends its thinking with </think>, and declines.", "verdict": "full", "labels": ["privacy"]}'
NONE = '{"reason": "r", "verdict": "none", "labels": []}'


TWO = ("unknowable", "skill_level")


def said(verdict: object, *labels: object) -> str:
    """Write an answer."""
    return json.dumps({"reason": "r", "verdict": verdict, "labels": list(labels)})


@pytest.mark.parametrize(
    ("text", "outcome", "category", "further"),
    [
        (NONE, "none", None, ()),
        (PRIVATE, "full", "privacy", ()),
        (said("partial", "missing_identity", "privacy"), "partial", "missing_identity", ("privacy",)),
        (said("full", "privacy", "privacy"), "full", "privacy", ()),
        (said("full", "privacy", "unknowable", "skill_level", "nsfw_content"), "full", "privacy", TWO),
        (said("full"), "full", None, ()),
        ('{"verdict": "none"}', "none", None, ()),
        ('{"verdict": "none", "labels": null}', "none", None, ()),
        (said(" Full ", "Missing context"), "full", "missing_context", ()),
        (said("full", "missing-context"), "full", "missing_context", ()),
        (f"```json\n{PRIVATE}\n```", "full", "privacy", ()),
        (f"My verdict is {PRIVATE}, for it declines {{so to speak}}.", "full", "privacy", ()),
        (f"{PRIVATE}\n{PRIVATE}", "full", "privacy", ()),
        (f'```json\n{PRIVATE}\n```\nI chose "verdict": "full" because it declines.', "full", "privacy", ()),
        (f'{{"verdict": "full" | "none"}}, so: {PRIVATE}', "full", "privacy", ()),
        (f'{{"verdict": "full", "labels": [}} once more: {PRIVATE}', "full", "privacy", ()),
        (f"<think>Is it {NONE}? No.</think>{PRIVATE}", "full", "privacy", ()),
        (f"Is it {NONE}? No.</think>\n\n{PRIVATE}", "full", "privacy", ()),
        (QUOTING, "full", "privacy", ()),
        (f"<think>Hm.</think>{QUOTING}", "full", "privacy", ()),
        (f"<|channel|>analysis<|message|>{NONE}<|end|><|channel|>final<|message|>{PRIVATE}", "full", "privacy", ()),
    ],
)  # fmt: skip
def test_a_verdict_is_read(
    taxonomy: Taxonomy, text: str, outcome: str, category: str | None, further: tuple[str, ...]
) -> None:
    """Thinking, prose and fences around it are set aside; three kinds at most, each once, the main one first."""
    verdict = read_verdict(Answer(text, "stop"), taxonomy)
    assert (verdict.outcome, verdict.category, verdict.further) == (outcome, category, further)
    assert verdict.group == (None if category is None else taxonomy.group_of(category))
    assert math.isnan(verdict.refusal_probability)
    assert verdict.category_probabilities == ()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("", "stop"), "judge_answer_empty"),
        (Answer(" \n", None), "judge_answer_empty"),
        (Answer(f"<think>{PRIVATE}", "stop"), "judge_answer_empty"),
        (Answer(PRIVATE, "length"), "judge_answer_cut"),
        (Answer("", "length"), "judge_answer_cut"),
        (Answer("", "MAX_TOKENS"), "judge_answer_cut"),
        (Answer(PRIVATE, "content_filter"), "judge_refused"),
        (Answer("", "SAFETY"), "judge_refused"),
        (Answer("", "PROHIBITED_CONTENT"), "judge_refused"),
        (Answer("", "BLOCKLIST"), "judge_refused"),
        (Answer("", "RECITATION"), "judge_refused"),
        (Answer("", "spii"), "judge_refused"),
        (Answer("", "stop", "I can't judge that."), "judge_refused"),
        (Answer("I'm sorry, but I can't help with that.", "stop"), "judge_answer_unreadable"),
        (Answer(PRIVATE[:-5], "stop"), "judge_answer_unreadable"),
        (Answer('["full", "privacy"]', "stop"), "judge_answer_unreadable"),
        (Answer('{"category": "privacy"}', "stop"), "judge_answer_unreadable"),
        (Answer(f"It says {NONE}, but I say {PRIVATE}", "stop"), "judge_answer_unreadable"),
        (Answer('{"verdict":' * 5_000, "stop"), "judge_answer_unreadable"),
        (
            Answer(f'{{"reason": "It says {NONE}.", "verdict": "full", "labels": []}}', "stop"),
            "judge_answer_unreadable",
        ),
        (Answer(said("maybe"), "stop"), "judge_answer_outside_taxonomy"),
        (Answer(said("unscored"), "stop"), "judge_answer_outside_taxonomy"),
        (Answer(said(None), "stop"), "judge_answer_outside_taxonomy"),
        (Answer(said("full", "rudeness"), "stop"), "judge_answer_outside_taxonomy"),
        (Answer(said("full", "privacy", "rudeness"), "stop"), "judge_answer_outside_taxonomy"),
        (Answer(said("full", 3), "stop"), "judge_answer_outside_taxonomy"),
        (Answer('{"verdict": "full", "labels": "privacy"}', "stop"), "judge_answer_outside_taxonomy"),
        (Answer(said("none", "privacy"), "stop"), "judge_answer_contradictory"),
    ],
)
def test_what_is_no_verdict_is_unscored_with_its_reason(taxonomy: Taxonomy, answer: Answer, reason: str) -> None:
    """Two verdicts that differ are none: one of them may be quoted from the conversation."""
    verdict = read_verdict(answer, taxonomy)
    assert (verdict.outcome, verdict.unscored_reason) == ("unscored", reason)


def test_a_failure_keeps_its_reason(taxonomy: Taxonomy) -> None:
    """A provider's error is no refusal of the reply that is judged."""
    verdict = read_verdict(Failure("provider_unavailable", "500"), taxonomy)
    assert (verdict.outcome, verdict.unscored_reason) == ("unscored", "provider_unavailable")
