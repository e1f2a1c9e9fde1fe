"""What is sent beside the messages changes neither who is asked, nor what, nor how often."""

from __future__ import annotations

from typing import Any

import pytest

from demur.errors import EndpointError
from demur.llm.parameters import longest_answer, sent_parameters


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "other"}, "model='other' cannot be given"),
        ({"messages": []}, r"messages=\[\] cannot be given"),
        ({"n": 5}, "n=5 cannot be given: one answer is read"),
        ({"stream": True}, "stream=True cannot be given"),
        ({"max_tokens": "abc"}, "max_tokens='abc' is no longest answer"),
        ({"max_tokens": 0}, "max_tokens=0 is no longest answer"),
        ({"max_tokens": True}, "max_tokens=True is no longest answer"),
        ({"max_completion_tokens": 9.5}, "max_completion_tokens=9.5 is no longest answer"),
    ],
)
def test_what_cannot_be_given_is_answered_clearly(given: dict[str, Any], said: str) -> None:
    """By name and value."""
    with pytest.raises(EndpointError, match=said):
        sent_parameters({"max_tokens": 9}, given)


def test_the_longest_answer_is_known_by_either_name() -> None:
    """By the larger one where both are given, by the one that is where the other is a default, and by none else."""
    assert longest_answer(sent_parameters({"max_tokens": 9}, {"max_tokens": None, "max_completion_tokens": 40})) == 40
    assert longest_answer(sent_parameters({"max_tokens": 9}, {"max_completion_tokens": 4})) == 4
    assert longest_answer(sent_parameters({"max_tokens": 9}, {"max_completion_tokens": 4, "max_tokens": 5})) == 5
    assert longest_answer(sent_parameters({"max_completion_tokens": 9}, {"max_tokens": 4})) == 4
    assert longest_answer(sent_parameters({"max_tokens": 9}, {"max_completion_tokens": None})) == 9
    assert longest_answer(sent_parameters({"max_tokens": 9}, {"max_tokens": None})) is None
