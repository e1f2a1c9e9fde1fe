"""A conversation always ends with the reply that is judged."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from demur.conversation import ROLES, Conversation, Turn


def test_the_reply_is_the_last_turn_and_the_context_all_before() -> None:
    """The reply is judged in what came before it."""
    turns = (Turn("system", "s"), Turn("user", "q"), Turn("assistant", "a"))
    conversation = Conversation(turns)
    assert conversation.reply == "a"
    assert conversation.context == turns[:2]


def test_the_request_is_the_last_user_turn() -> None:
    """Tool results and earlier questions do not hide what was asked last."""
    turns = (Turn("user", "first"), Turn("assistant", "?"), Turn("user", "second"), Turn("tool", "42"))
    assert Conversation((*turns, Turn("assistant", "a"))).request == "second"


def test_a_reply_alone_has_an_empty_request() -> None:
    """A reply without a context can still be judged."""
    assert Conversation((Turn("assistant", "a"),)).request == ""


def test_a_conversation_without_turns_is_refused() -> None:
    """There is nothing to judge."""
    with pytest.raises(ValueError, match="no turns"):
        Conversation(())


@pytest.mark.parametrize("role", [role for role in ROLES if role != "assistant"])
def test_a_conversation_that_ends_with_another_role_is_refused(role: str) -> None:
    """The message names the role that was met and the one that would be right."""
    with pytest.raises(ValueError, match=f"'{role}'; it must be 'assistant'"):
        Conversation((Turn(role, "text"),))  # type: ignore[arg-type]  # the loop widens the literal to str


@pytest.mark.parametrize("side", ["$x$", "", "Chosen"])
def test_a_side_of_another_name_is_refused(side: str) -> None:
    """No pair would be counted, and a third side beside both would end an audit."""
    with pytest.raises(ValueError, match="use one of chosen, rejected, or None"):
        Conversation((Turn("assistant", "a"),), side=side)


def test_the_plainest_conversation_is_a_request_and_its_reply() -> None:
    """No system prompt is made up where none is given."""
    assert [turn.role for turn in Conversation.of("q", "a").turns] == ["user", "assistant"]


def test_an_empty_system_prompt_is_kept() -> None:
    """None is the only "not given"."""
    assert Conversation.of("q", "a", system="").turns[0] == Turn("system", "")


def test_a_conversation_is_frozen() -> None:
    """Nobody writes into the caller's data."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Conversation.of("q", "a").row_id = 3  # type: ignore[misc]  # that it is refused is the fact


@pytest.mark.parametrize("content", [None, 3, ["a"]])
def test_a_turn_is_a_text(content: object) -> None:
    """Clients hold None where a model answers by a refusal of its own or a tool call."""
    with pytest.raises(TypeError, match=r"turn of the assistant is .*; give a text"):
        Turn("assistant", content)  # type: ignore[arg-type]


def test_a_turn_has_a_role_that_is_known() -> None:
    """Readers translate the names that data give."""
    with pytest.raises(ValueError, match="role is 'bot'; use one of system, user"):
        Turn("bot", "Hi.")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("turns", "met"),
    [
        ([{"role": "assistant", "content": "a"}], "dict"),
        ({"role": "assistant", "content": "a"}, "str"),
        ("a", "str"),
        (None, "NoneType"),
        (Turn("assistant", "a"), "Turn"),
    ],
)
def test_what_are_no_turns_is_answered_with_what_would_be(turns: Any, met: str) -> None:
    """Messages as rows have them, a text, nothing, and a single turn."""
    said = (
        rf"a conversation of {met}; give it demur\.Turn\(role, content\) for each message, .* row {{'messages': \[…\]}}"
    )
    with pytest.raises(TypeError, match=said):
        Conversation(turns)


def test_turns_in_a_list_are_those_in_a_tuple() -> None:
    """They can be known again, by their hash."""
    turns = Conversation.of("q", "a").turns
    assert {Conversation(list(turns))} == {Conversation(turns)}  # type: ignore[arg-type]  # that it is taken is the fact
