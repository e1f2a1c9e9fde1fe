"""What APIs are asked and answer with is read out of their objects, as logs of requests keep them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.data.api_objects import unwrapped
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
    "gemini that thinks": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": SAID}]}}]
    },
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
    ("request_", "said"),
    [
        ({"model": "m", "prompt": "Hi?"}, [("user", "Hi?")]),
        ({"input": "Hi?", "instructions": "Be kind."}, [("system", "Be kind."), ("user", "Hi?")]),
        (
            {"contents": [{"parts": [{"text": "Hi?"}]}], "systemInstruction": {"parts": [{"text": "Be kind."}]}},
            [("system", "Be kind."), ("user", "Hi?")],
        ),
    ],
    ids=["completions", "responses", "gemini"],
)
def test_what_was_asked_is_read_in_each_form(
    request_: dict[str, Any], said: list[tuple[str, str]], tmp_path: Path
) -> None:
    """Beside the answer; as an object, and as its JSON."""
    path = tmp_path / "a.jsonl"
    for asked in (request_, json.dumps(request_)):
        assert turns_of(path, {"request": asked, "response": ANSWERS["chat completion"]}) == [[*said, TURNS[-1]]]


def test_the_columns_are_the_users_own(tmp_path: Path) -> None:
    """What is opened stays under its name, too, so that it can be given."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"body": {"messages": ASKED}, "result": ANSWERS["chat completion"]}), encoding="utf-8")
    for fields in ({}, {"prompt": "body"}, {"response": "result"}, {"prompt": "body", "response": "result"}):
        (found,) = read_conversations(open_source(str(path)), fields=fields)
        assert isinstance(found, Conversation)
        assert found.reply == SAID
        assert found.request == ASKED[-1]["content"]


def test_a_document_may_be_one_answer(tmp_path: Path) -> None:
    """Its list of choices is no table of rows; a list of rows under the same name is."""
    path = tmp_path / "a.json"
    for document, replies in (
        (ANSWERS["chat completion"], [SAID]),
        ({"candidates": [{"prompt": "Hi?", "text": SAID}]}, [SAID]),
        ({"message": MESSAGE, "data": [{"prompt": "Hi?", "response": "No."}]}, ["No."]),
    ):
        path.write_text(json.dumps(document), encoding="utf-8")
        found = list(read_conversations(open_source(str(path))))
        assert [one.reply for one in found if isinstance(one, Conversation)] == replies


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "Hi?", "response": "No."},
        {"question": "Which?", "choices": {"text": ["a b", "c d"], "label": ["A", "B"]}, "answer": "A"},
        {"messages": ASKED, "response": [{"role": "user", "content": "Hi?"}]},
        {"messages": [*ASKED, MESSAGE], "result": {"score": 1.0}},
        {"prompt": "As JSON.", "response": '{"answer": "yes"}'},
        {"prompt": "As JSON.", "response": '{"candidates": [{"text": "Jane Doe"}]}'},
        {"prompt": "As JSON.", "response": '{"question": "Which?", "choices": [{"text": "This"}]}'},
        {"prompt": "As JSON.", "response": json.dumps({"message": MESSAGE, "n": 1})},
        {"prompt": "As JSON.", "response": "{broken"},
        {"prompt": json.dumps({"messages": ASKED}), "response": "It lacks a model."},
        {"instruction": "Mend it.", "input": json.dumps({"model": "m", "messages": ASKED}), "output": "It is whole."},
        {"question": "Who?", "answer": "Ann.", "candidates": [{"text": "A passage on Ann."}]},
    ],
)
def test_other_objects_are_left_as_they_are(fields: dict[str, object]) -> None:
    """Options, figures, a user's turn, and JSON that was written or asked about."""
    assert unwrapped(fields) == fields


@pytest.mark.parametrize("beside", ["answer", "text", "reply", "assistant", "prediction", "gpt4_response"])
def test_a_reply_that_is_there_is_judged(beside: str, tmp_path: Path) -> None:
    """Whatever else a row holds of an API's."""
    for further in ({"result": ANSWERS["chat completion"]}, ANSWERS["chat completion"]):
        rows = turns_of(tmp_path / "a.jsonl", {"prompt": "Hi?", beside: "It is there.", **further})
        assert rows == [[("user", "Hi?"), ("assistant", "It is there.")]]


@pytest.mark.parametrize("key", ["choices", "candidates"])
@pytest.mark.parametrize("value", [3, 1.5, True, None, "a", {}, {"a": 1}, [], [3], [None], [[]]])
def test_no_object_that_a_model_writes_ends_the_reading(key: str, value: object, tmp_path: Path) -> None:
    """A single reply with `{"choices": 3}` ended the audit of all others."""
    written = json.dumps({key: value})
    for fields in ({"response": written}, {"response": "No.", key: value}):
        (turns,) = turns_of(tmp_path / "a.jsonl", {"prompt": "Hi?", **fields})
        assert turns == [("user", "Hi?"), ("assistant", fields["response"])]


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
