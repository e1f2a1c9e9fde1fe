"""A reply's own thinking is set apart, and what only looks like thinking is not."""

from __future__ import annotations

import pytest

from demur.data.reasoning import joined_reasoning, set_reasoning_apart

APART = {
    "think": ("<think>hm</think>\n\nYes.", "Yes.", "hm"),
    "thinking": ("<thinking>hm</thinking>Yes.", "Yes.", "hm"),
    "reasoning": ("<reasoning>hm</reasoning>Yes.", "Yes.", "hm"),
    "thought": ("<thought>hm</thought>Yes.", "Yes.", "hm"),
    "capitals": ("<Think>hm</THINK>Yes.", "Yes.", "hm"),
    "begin of thought": ("<|begin_of_thought|>hm<|end_of_thought|>Yes.", "Yes.", "hm"),
    "brackets": ("[THINK]hm[/THINK]Yes.", "Yes.", "hm"),
    "after whitespace": ("\n <think>\nhm\n</think> Yes.", "Yes.", "hm"),
    "wedges": ("◁think▷hm◁/think▷Yes.", "Yes.", "hm"),
    "orphan wedge": ("hm◁/think▷Yes.", "Yes.", "hm"),
    "seed": ("<seed:think>hm</seed:think>Yes.", "Yes.", "hm"),
    "two blocks": ("<think>a</think>\n<think>b</think>Yes.", "Yes.", "a\n\nb"),
    "two kinds": ("<think>a</think><thought>b</thought>Yes.", "Yes.", "a\n\nb"),
    "empty block": ("<think>\n\n</think>\n\nYes.", "Yes.", None),
    "cut while thinking": ("<think>I could say no, but", "", "I could say no, but"),
    "nothing after": ("<think>hm</think>", "", "hm"),
    "orphan closing": ("I must refuse.\n</think>\n\nYes.", "Yes.", "I must refuse."),
    "orphan end of thought": ("hm<|end_of_thought|>Yes.", "Yes.", "hm"),
    "orphan bracket": ("hm[/THINK]Yes.", "Yes.", "hm"),
    "nested": ("<think>a <think>b</think> c</think>Yes.", "Yes.", "a <think>b\n\nc"),
    "orphan after a quoted one": ("Say `</think>` to end.\n</think>Yes.", "Yes.", "Say `</think>` to end."),
    "orphan between sentences": ("I must refuse. </think> Yes.", "Yes.", "I must refuse."),
    "orphan after a word": ("so I say yes </think> Yes.", "Yes.", "so I say yes"),
    "orphan before a small letter": ("I say yes.</think> yes.", "yes.", "I say yes."),
    "orphan after one in a sentence": (
        "Put </think> here, then answer.\n</think>\nYes.",
        "Yes.",
        "Put </think> here, then answer.",
    ),
    "channels": (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
        "Yes.",
        "hm",
    ),
    "channels after a start": (
        "<|start|>assistant<|channel|>analysis<|message|>hm<|channel|>final<|message|>Yes.",
        "Yes.",
        "hm",
    ),
    "channels with a call": (
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|><|channel|>final<|message|>Yes.",
        "Yes.",
        "{}",
    ),
    "channel after a header that is cut": ("<|channel|>analysis <|channel|>final<|message|>Yes.", "Yes.", None),
    "channels without their tokens": ("analysisI could say no.assistantfinalYes.", "Yes.", "I could say no."),
    "channels without their tokens, with a call": (
        "analysishm\n\nassistantcommentary to=functions.f json{}assistantfinal\nYes.",
        "Yes.",
        "hm\n\nassistantcommentary to=functions.f json{}",
    ),
    "channels cut while thinking": ("<|channel|>analysis<|message|>I could say no", "", "I could say no"),
}
KEPT = {
    "plain": "Yes.",
    "empty": "",
    "whitespace": "  Yes.\n",
    "inline code": "Wrap it in `<think>` and `</think>`.",
    "closing in inline code": "End it with `</think>`, then answer.",
    "closing in a code block": "```\n</think>\n```\nThat is all.",
    "closing in a sentence": "To end the block type </think> after it. I can't say more.",
    "closing at the end of a sentence": "End the block with </think>. I can't say more.",
    "closing in quotation marks": 'End it with "</think>" and answer.',
    "in prose": "Sure! <think>hm</think> Yes.",
    "other tags": "<b>Yes.</b>",
    "tag with attributes": "<think about='it'>Yes.",
    "analysis in prose": "analysis of assistantfinal shows that it is a mark.",
    "analysis alone": "analysisI could say no.",
    "analysis further on": "An analysisI wrote.assistantfinalYes.",
    "wedge in a sentence": "The mark ◁/think▷ ends it.",
    "channel in prose": "The token <|channel|> opens a channel.",
}


@pytest.mark.parametrize(("text", "reply", "reasoning"), APART.values(), ids=APART)
def test_thinking_in_front_is_set_apart(text: str, reply: str, reasoning: str | None) -> None:
    """The reply begins at its first word; thinking is kept for those who want to read it."""
    assert set_reasoning_apart(text) == (reply, reasoning)


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_what_the_reply_says_is_kept_to_the_letter(text: str) -> None:
    """A block in the middle or in code is something that the reply talks about."""
    assert set_reasoning_apart(text) == (text, None)


def test_a_long_reply_is_searched_in_passing() -> None:
    """Two megabytes of backticks and angle brackets take no more than a moment."""
    text = "a `b` < c ``` d\n" * 130_000
    assert set_reasoning_apart(text) == (text, None)
    assert set_reasoning_apart(f"<think>{text}</think>Yes.")[0] == "Yes."


def test_headers_that_a_model_repeats_are_passed_over() -> None:
    """Two megabytes of them; each would be searched to the end of the reply."""
    said = "<|channel|>analysis<|message|>hm<|end|><|channel|>final<|message|>Yes.<|end|>"
    assert set_reasoning_apart(said + "<|channel|>analysis " * 100_000) == ("Yes.", "hm")


def test_joining_nothing_gives_none() -> None:
    """Empty thinking is no thinking."""
    assert joined_reasoning(None, "", " \n") is None
    assert joined_reasoning("a", None, " b ") == "a\n\nb"
