"""What APIs are asked and answer with is read out of their objects, as logs of requests keep them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.data.api_objects import opened
from demur.data.intake import as_conversations
from demur.data.reading import read_conversations
from demur.data.sources import open_source
from demur.errors import RowError

if TYPE_CHECKING:
    from pathlib import Path

ASKED = [
    {"role": "user", "content": "Two and two?"},
    {"role": "assistant", "content": "Four."},
    {"role": "user", "content": "Now pick this lock."},
]
SAID = "I'm sorry, but I can't help with that."
MESSAGE = {"role": "assistant", "content": SAID}
ANSWERS: dict[str, dict[str, Any]] = {
    "chat completion": {"object": "chat.completion", "choices": [{"index": 0, "message": MESSAGE}], "usage": {}},
    "refusal": {"choices": [{"message": {"role": "assistant", "content": None, "refusal": SAID}}]},
    "completion": {"object": "text_completion", "choices": [{"text": SAID, "index": 0}]},
    "response": {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]},
        ],
    },
    "batch": {"status_code": 200, "body": {"choices": [{"message": MESSAGE}]}},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "STOP"}]},
    "gemini without a role": {"candidates": [{"content": {"parts": [{"text": SAID}]}}]},
    "bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": SAID}]}}, "stopReason": "end_turn"},
    "ollama": {"model": "m", "message": MESSAGE, "done": True},
    "anthropic": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": SAID}]},
}
TURNS = [*((turn["role"], turn["content"]) for turn in ASKED), ("assistant", SAID)]


def turns_of(path: Path, *rows: object) -> list[list[tuple[str, str]]]:
    """Write rows as JSON Lines, and read who says what in each."""
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = list(read_conversations(open_source(str(path))))
    assert all(isinstance(one, Conversation) for one in found), found
    return [[(turn.role, turn.content) for turn in one.turns] for one in found if isinstance(one, Conversation)]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_log_of_requests_has_its_reply_in_the_answer(answer: dict[str, Any], tmp_path: Path) -> None:
    """The turn before it, which stands in the messages, was judged in its place."""
    path = tmp_path / "a.jsonl"
    rows = (
        {"messages": ASKED, "response": answer},
        {"messages": ASKED, "response": json.dumps(answer)},
        {"request": {"model": "m", "messages": ASKED}, "response": answer},
        {"request": json.dumps({"model": "m", "messages": ASKED}), "response": answer},
        {"request_body": {"messages": ASKED}, "response_body": answer},
    )
    for row in rows:
        assert turns_of(path, row, row) == [TURNS, TURNS]


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "anthropic"])
def test_an_answer_may_be_the_row(name: str, tmp_path: Path) -> None:
    """With the request beside its parts, or alone, as a file of answers has it."""
    path = tmp_path / "a.jsonl"
    assert turns_of(path, {**ANSWERS[name], "messages": ASKED}) == [TURNS]
    assert turns_of(path, ANSWERS[name]) == [TURNS[-1:]]


def test_the_system_prompt_of_a_request_stands_beside_its_messages(tmp_path: Path) -> None:
    """As Anthropic takes it."""
    row = {"request": {"system": "Be kind.", "messages": ASKED}, "response": ANSWERS["anthropic"]}
    assert turns_of(tmp_path / "a.jsonl", row) == [[("system", "Be kind."), *TURNS]]


def test_of_several_answers_none_is_taken(tmp_path: Path) -> None:
    """Nobody said which one is judged, and the earlier turn is none of them."""
    path = tmp_path / "a.jsonl"
    row = {"messages": ASKED, "response": {"choices": [{"message": MESSAGE}, {"message": MESSAGE}]}}
    path.write_text(json.dumps(row), encoding="utf-8")
    (broken,) = read_conversations(open_source(str(path)))
    assert not isinstance(broken, Conversation)
    assert isinstance(broken.error, RowError)
    assert "the messages end with the user's. 'response' is an object" in str(broken.error)


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "Hi?", "response": "No."},
        {"question": "Which?", "choices": {"text": ["a b", "c d"], "label": ["A", "B"]}, "answer": "A"},
        {"messages": ASKED, "response": [{"role": "user", "content": "Hi?"}]},
        {"messages": [*ASKED, MESSAGE], "result": {"score": 1.0}},
        {"prompt": "As JSON.", "response": '{"answer": "yes"}'},
        {"prompt": "As JSON.", "response": "{broken"},
        {"response": "A text.", "choices": [{"message": MESSAGE}]},
    ],
)
def test_other_objects_are_left_as_they_are(fields: dict[str, object]) -> None:
    """Options, figures, a user's turn, JSON that a model wrote, and what stands beside a reply that is there."""
    assert opened(fields) == fields


def test_rows_in_memory_are_opened_too() -> None:
    """As those of a file."""
    rows: Any = [{"messages": ASKED, "response": ANSWERS["chat completion"]}]
    (found,) = as_conversations(rows)
    assert isinstance(found, Conversation)
    assert found.reply == SAID


@pytest.mark.parametrize(
    "printed",
    [
        f"ChatCompletionMessage(content={SAID!r}, refusal=None, role='assistant')",
        f"[TextBlock(citations=None, text={SAID!r}, type='text')]",
        f"content={SAID!r} additional_kwargs={{}} response_metadata={{}}",
    ],
)
def test_an_object_as_python_prints_it_is_no_reply(printed: str, tmp_path: Path) -> None:
    """The words around the reply would be judged with it: `refusal=None` is one of them."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"prompt": "Hi?", "response": printed}), encoding="utf-8")
    (broken,) = read_conversations(open_source(str(path)))
    assert not isinstance(broken, Conversation)
    assert "is an object as Python prints it" in str(broken.error)
