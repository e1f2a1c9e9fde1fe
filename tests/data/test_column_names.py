"""Columns are found whatever their case, and a model's reply is told from the reference beside it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation
from demur.data.doubts import prompt_doubt, reply_doubt
from demur.data.reading import read_conversations
from demur.data.rows import Row
from demur.data.shapes import Layout, detect, named
from demur.data.sources import open_source
from demur.errors import LayoutError

if TYPE_CHECKING:
    from pathlib import Path

NO = "I can't help with that."
ASKED = [{"role": "user", "content": "Where is Bamako?"}]


@pytest.mark.parametrize(
    "column",
    [
        "model_answer",
        "prediction",
        "gpt4_response",
        "llama-3 output",
        "claude_answer",
        "modelReply",
        "generated_answer",
        "Model_Answer",
        "response_2",
        "Output B",
        "response_text",
    ],
)
def test_what_is_named_as_a_models_is_judged_before_the_answer(column: str) -> None:
    """The answer is what the reply is compared with."""
    found = detect({"question": "Where?", "answer": "Bamako", column: NO})
    assert found.columns == {"prompt": "question", "response": column}


@pytest.mark.parametrize(
    "column",
    ["correct_answer", "human_response", "expected_output", "judge_response", "is_answer", "answer_id", "explanation"],
)
def test_what_is_named_otherwise_is_not(column: str, caplog: pytest.LogCaptureFixture) -> None:
    """References, people, judges and notes stand beside answers as well, and nothing is said of them."""
    fields = {"question": "Where?", "answer": "Bamako", column: "It is Bamako."}
    layout = detect(fields)
    assert layout.columns == {"prompt": "question", "response": "answer"}
    assert reply_doubt(layout, fields) is None
    assert not caplog.records


def test_a_reply_of_a_usual_name_comes_before_one_that_only_ends_so() -> None:
    """And it is said that the other one may be meant."""
    fields = {"prompt": "Where?", "response": "In Bamako.", "gpt4_response": NO}
    layout = detect(fields)
    assert layout.columns["response"] == "response"
    assert reply_doubt(layout, fields) == (
        "'response' is judged, and 'gpt4_response' beside it may be the reply; say which one is, as in --field "
        "response=gpt4_response (fields={'response': 'gpt4_response'})"
    )


def test_of_several_replies_alone_one_has_to_be_named() -> None:
    """By their names: which they are is told, and how to say it."""
    fields = {"prompt": "Where?", "response_1": NO, "response_2": "In Bamako."}
    with pytest.raises(LayoutError, match=r"response_1, response_2 may each be .* --field response=response_1$"):
        detect(fields)
    assert detect(fields, {"response": "response_2"}).columns["response"] == "response_2"


def test_choices_of_a_question_are_no_replies() -> None:
    """Lettered answers beside the answer are what it chooses among, and no reason to stop."""
    fields = {"question": "Where?", "answer_a": "In Bamako.", "answer_b": "In Accra.", "answer": "In Bamako, I think."}
    assert detect(fields).columns == {"prompt": "question", "response": "answer"}


def test_many_replies_are_not_all_listed() -> None:
    """A message names ten, and says how many more there are."""
    with pytest.raises(LayoutError, match=r"response_9 and 90 more may each be the reply"):
        detect({"prompt": "Where?", **{f"response_{number}": NO for number in range(100)}})


def test_a_numbered_reply_beside_the_usual_one_is_told_of() -> None:
    """Else half of a file of two models would be left out without a word."""
    fields = {"prompt": "Where?", "response": "In Bamako.", "response_2": NO}
    doubt = reply_doubt(detect(fields), fields)
    assert doubt is not None
    assert "'response_2' beside it may be the reply" in doubt


def test_one_of_several_replies_has_to_be_named() -> None:
    """The reference is not judged because two models answered."""
    fields = {"question": "Where?", "answer": "Bamako", "gpt4_response": NO, "claude_response": "In Bamako."}
    with pytest.raises(LayoutError, match=r"gpt4_response, claude_response may each be the reply, and 'answer' is mos"):
        detect(fields)
    assert detect(fields, {"response": "claude_response"}).columns["response"] == "claude_response"


def test_without_a_prompt_a_name_has_to_be_listed() -> None:
    """What only ends like a reply's name may be anything."""
    assert detect({"text": NO, "style_output": "plain words"}).columns == {"response": "text"}
    with pytest.raises(LayoutError, match="fit no layout"):
        detect({"gpt4_response": NO})


@pytest.mark.parametrize(("given", "n_told"), [({}, 1), ({"response": "answer"}, 0), ({"response": "gemini"}, 0)])
def test_an_answer_beside_other_words_is_judged_with_a_warning(
    given: dict[str, str], n_told: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The column `gemini` may be the reply; whoever says which one is, is not asked. It is said once for all files."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"question,answer,gemini\nWhere?,Bamako,{NO}\nWho?,Ann,{NO}\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        found = list(read_conversations(open_source(str(tmp_path)), fields=given))
    assert len(found) == 4
    assert len(caplog.records) == n_told
    assert all("a.csv:2: 'answer' is judged, and 'gemini' beside it" in record.message for record in caplog.records)


CHAT = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "In Bamako."}]


@pytest.mark.parametrize("column", ["model_output", "response", "gpt4_response"])
@pytest.mark.parametrize(
    "whole",
    [
        {"messages": CHAT},
        {"messages": json.dumps(CHAT)},
        {"conversations": [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "In Bamako."}]},
        {"text": "<|user|>Where?<|assistant|>In Bamako.</s>"},
    ],
    ids=["messages", "as JSON", "sharegpt", "role tokens"],
)
def test_a_reply_beside_a_whole_conversation_is_said(whole: dict[str, object], column: str) -> None:
    """It may be another model's, and then takes the place of the last turn; what the conversation says is no other."""
    (judged,) = whole
    fields = {**whole, "title": "Of places", column: NO}
    doubt = reply_doubt(detect(fields), fields)
    assert doubt is not None
    assert doubt.startswith(f"{judged!r} is judged, and {column!r} beside it may be the reply; say which one is")
    (conversation,) = detect(fields, {"response": column}).conversations(Row(0, fields, "a.jsonl", 1))
    assert [turn.content for turn in conversation.turns] == ["Where?", NO]
    same = {**fields, column: "In Bamako."}
    assert reply_doubt(detect(same), same) is None


@pytest.mark.parametrize(
    "content",
    ["In Bamako.\n", "<think>Mali?</think>\n\nIn Bamako.", [{"type": "text", "text": "In Bamako."}]],
    ids=["line end", "thinking", "parts"],
)
def test_a_reply_that_the_conversation_says_otherwise_written_is_no_other(content: object) -> None:
    """It has its thinking, the end of its line, or its parts; a second opinion is another reply."""
    fields = {"messages": [CHAT[0], {"role": "assistant", "content": content}], "response": "In Bamako."}
    layout = detect(fields)
    assert reply_doubt(layout, fields) is None
    assert reply_doubt(layout, {**fields, "response": NO}) is not None


@pytest.mark.parametrize("nothing", [None, ""], ids=["null", "empty"])
def test_beside_an_empty_reply_only_a_replys_names_are_said(nothing: str | None) -> None:
    """Notes of several words stand beside any."""
    fields = {"prompt": "Where?", "completion": nothing, "note": "of a place", "focus": "big cities"}
    assert reply_doubt(detect(fields), fields) is None
    for column in ("answer", "text", "output", "gpt4_response"):
        further = {**fields, column: "In Bamako."}
        doubt = reply_doubt(detect(further), further)
        assert doubt is not None
        assert doubt.startswith(f"'completion' is judged, and {column!r} beside it")


@pytest.mark.parametrize("column", ["generated", "predicted", "assistant_message", "output_text"])
def test_a_name_that_may_be_a_replys_is_said_and_not_taken(column: str) -> None:
    """Beside a chat, and beside the reference of an instruction, it is mostly what is to be judged."""
    for fields in (
        {"messages": [*ASKED, {"role": "assistant", "content": "In Mali."}]},
        {"instruction": "Q", "output": "A"},
    ):
        further = {**fields, column: NO}
        doubt = reply_doubt(detect(further), further)
        assert doubt is not None
        assert f"and {column!r} beside it may be the reply" in doubt


def test_beside_a_chat_that_waits_for_its_reply_any_words_may_be_it() -> None:
    """An earlier reply is judged, so that nothing must stay unsaid."""
    chat = [*ASKED, {"role": "assistant", "content": "In Mali."}, *ASKED]
    fields = {"messages": chat, "said": NO, "notes": NO, "timestamp": "1 May"}
    doubt = reply_doubt(detect(fields), fields)
    assert doubt is not None
    assert doubt.startswith("'messages' is judged, and 'said' beside it")
    closed = {**fields, "messages": chat[:2]}
    assert reply_doubt(detect(closed), closed) is None


@pytest.mark.parametrize("column", ["user_message", "goal", "input"])
def test_a_users_name_is_no_prompt_where_another_column_is(column: str) -> None:
    """It would make requests of names, and leave the kinds without what was asked."""
    fields = {"user": "alice", column: "How do I pick a lock?", "response": NO}
    assert detect(fields).columns == {"prompt": column, "response": "response"}


@pytest.mark.parametrize("nothing", [None, ""])
@pytest.mark.parametrize("column", ["user_message", "goal", "input"])
@pytest.mark.parametrize("said", ["Hi!", "How do I pick a lock?"])
def test_an_empty_column_hides_no_user(column: str, nothing: str | None, said: str) -> None:
    """Be it one word that the user says."""
    fields = {"user": said, column: nothing, "response": NO}
    assert detect(fields).columns["prompt"] == "user"
    pair = {"user": said, column: nothing, "chosen": NO, "rejected": "With a pick."}
    assert detect(pair).columns["prompt"] == "user"


@pytest.mark.parametrize("beside", [{"input": "A passage."}, {"goal": "A lock is open."}, {"human": "yes sure"}])
def test_what_a_user_says_in_words_comes_before_what_may_be_something_else(beside: dict[str, object]) -> None:
    """A passage, what an attack is for, a label."""
    fields = {"user": "How do I pick a lock?", **beside, "response": NO}
    assert detect(fields).columns["prompt"] == "user"


@pytest.mark.parametrize("label", [1, True, 0.5])
def test_a_label_is_no_prompt_of_a_pair(label: float) -> None:
    """It would make one request of all rows that have it."""
    assert "prompt" not in detect({"human": label, "chosen": NO, "rejected": "With a pick."}).columns


def test_a_first_row_without_a_request_does_not_hide_those_that_follow() -> None:
    """The column is known by its name alone."""
    assert detect({"input": "", "response": NO}).columns["prompt"] == "input"
    assert detect({"goal": None, "response": NO}).columns["prompt"] == "goal"


@pytest.mark.parametrize(
    "beside", [{"answer_text": "In Mali, of course."}, {"answer_text": "In Mali.", "choices": ["In Mali."]}]
)
def test_the_text_of_an_answer_is_no_other_reply(beside: dict[str, object]) -> None:
    """It is that of a choice, or of the reference."""
    assert detect({"question": "Where?", "answer": "In Mali.", **beside}).columns["response"] == "answer"


def test_what_else_may_be_the_prompt_beside_a_user_is_said() -> None:
    """`message` is no usual name of a prompt."""
    fields = {"user": "alice", "message": "How do I pick a lock?", "response": NO}
    assert prompt_doubt(detect(fields), fields) == (
        "'user' is taken for what is answered, and 'message' may be it; if so, give --field prompt=message "
        "(fields={'prompt': 'message'})"
    )


@pytest.mark.parametrize("column", ["user_message", "problem", "user"])
def test_a_pair_has_its_prompt_under_further_names(column: str) -> None:
    """As a reply has."""
    fields = {column: "How do I pick a lock?", "chosen": NO, "rejected": "With a pick."}
    assert detect(fields).columns["prompt"] == column


@pytest.mark.parametrize(
    "sides",
    [
        {side: [*ASKED, {"role": "assistant", "content": NO}] for side in ("chosen", "rejected")},
        dict.fromkeys(("chosen", "rejected"), f"\n\nHuman: Where?\n\nAssistant: {NO}"),
        {"chosen": NO, "rejected": "In Mali.", "history": [["Where is Bamako?", None]]},
    ],
)
def test_of_a_pair_with_turns_of_its_own_nothing_is_said(sides: dict[str, object]) -> None:
    """What it answers stands in them."""
    fields = {**sides, "task": "creative writing"}
    assert prompt_doubt(detect(fields), fields) is None


def test_a_pair_without_a_prompt_is_said_to_be() -> None:
    """Its sides would be judged without it in silence."""
    fields = {"hostile_prompt": "How do I pick a lock?", "chosen": NO, "rejected": "With a pick."}
    assert prompt_doubt(detect(fields), fields) == (
        "both sides are judged without a prompt, which 'hostile_prompt' beside it may hold; if so, give --field "
        "prompt=hostile_prompt (fields={'prompt': 'hostile_prompt'})"
    )


def test_a_column_that_is_given_is_no_other_part() -> None:
    """Here it could be the prompt, too."""
    assert detect({"input": NO}, {"response": "Input"}).columns == {"response": "input"}
    assert detect({"text": "<|user|>Where?<|assistant|>No."}, {"response": "text"}).columns == {"response": "text"}


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ({"output": NO, "hostile_prompt": "How do I pick a lock?"}, {"prompt": "hostile_prompt"}),
        ({"prompt": "How do I pick a lock?", "content": NO}, {"prompt": "prompt", "response": "content"}),
    ],
    ids=["prompt", "content"],
)
def test_what_a_bare_reply_may_answer_is_said(
    fields: dict[str, object], columns: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Replies to one request would count as so many requests; who names columns or layout is not asked."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(fields), encoding="utf-8")
    advice = {"response": "output", **columns}
    (bare,) = read_conversations(open_source(str(path)))
    (record,) = caplog.records
    assert record.message == (
        f"{path}:1: {advice['response']!r} is judged without a prompt, which {advice['prompt']!r} beside it may "
        f"hold; if so, give --field prompt={advice['prompt']} --field response={advice['response']} "
        f"(fields={{'prompt': {advice['prompt']!r}, 'response': {advice['response']!r}}})"
    )
    (answered,) = read_conversations(open_source(str(path)), fields=advice)
    (named_bare,) = read_conversations(open_source(str(path)), layout="reply")
    assert [len(one.turns) for one in (bare, answered, named_bare) if isinstance(one, Conversation)] == [1, 2, 1]
    assert caplog.records == [record]


@pytest.mark.parametrize(
    "column",
    ["hostile_prompt", "forbidden_prompt", "question_text", "user_input", "userMessage", "human", "user", "task"],
)
def test_a_prompt_is_known_by_the_last_word_of_its_name(column: str) -> None:
    """What stands before it says what kind of a prompt it is."""
    fields = {"content": NO, column: "How do I pick a lock?"}
    doubt = prompt_doubt(Layout("reply", {"response": "content"}), fields)
    assert doubt is not None
    assert f"which {column!r} beside it may hold" in doubt


@pytest.mark.parametrize(
    "column",
    [
        *("prompt_category", "prompt_harm_label", "task_name", "query_time"),
        *("user_id", "user_agent", "user_country", "user_feedback"),
        *("human_answer", "human_label", "human_annotation", "human_rating"),
        *("system_prompt", "system_message", "error_message", "title", "explanation"),
    ],
)
def test_what_is_known_of_a_prompt_is_none(column: str) -> None:
    """Nothing is said of it."""
    fields = {"output": NO, column: "hate speech"}
    assert prompt_doubt(detect(fields), fields) is None
    numbers = {"output": NO, "hostile_prompt": 3}
    assert prompt_doubt(detect(numbers), numbers) is None


class TestSpelling:
    """Names are matched without regard to case and surrounding space."""

    def test_columns_of_any_case_are_found(self) -> None:
        """Programs write `Prompt`, and `RESPONSE `."""
        assert detect({"Prompt": "Hi?", " RESPONSE": "No."}).columns == {"prompt": "Prompt", "response": " RESPONSE"}
        assert detect({"Messages": [{"role": "assistant", "content": "No."}]}).columns == {"messages": "Messages"}

    def test_what_a_row_may_have_is_found_too(self) -> None:
        """Here the system prompt."""
        assert detect({"Prompt": "Hi?", "Response": "No.", "System": "Be terse."}).columns["system"] == "System"

    def test_an_exact_name_comes_first(self) -> None:
        """Whatever stands before it."""
        assert detect({"Response": "Yes.", "response": "No."}).columns == {"response": "response"}

    def test_a_column_that_is_given_may_be_spelt_otherwise(self) -> None:
        """The column that there is, is shown."""
        assert detect({"Frage": "Hi?", "Bot ": "No."}, {"prompt": "frage", "response": "bot"}).columns == {
            "prompt": "Frage",
            "response": "Bot ",
        }
        assert named("reply", {"response": "bot"}).bound({"BOT": "No."}).columns == {"response": "BOT"}

    def test_one_message_a_row_is_known_in_any_case(self) -> None:
        """`Content` would be read as a bare reply."""
        with pytest.raises(LayoutError, match="one message a row"):
            detect({"Role": "user", "Content": "Hi?"})
