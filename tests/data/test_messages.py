"""Messages come with many roles, kinds of content and missing pieces."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Turn
from demur.data.rows import Row
from demur.data.shapes import Layout, detect, named
from demur.errors import RowError

if TYPE_CHECKING:
    from collections.abc import Callable

Fields = dict[str, object]

USER = {"role": "user", "content": "Hi?"}
ASSISTANT = {"role": "assistant", "content": "No."}
ONLY_REPLY = (Turn("assistant", "No."),)
HH = "\n\nHuman: Hi?\n\nAssistant: No."


def turns_of(fields: Fields, layout: Layout | None = None) -> tuple[Turn, ...]:
    """Read the turns of the first conversation of a row, in the layout that it shows."""
    reader = detect(fields) if layout is None else layout
    return reader.conversations(Row(7, fields, "a.jsonl", 8))[0].turns


def said_in(fields: Fields) -> list[tuple[str, str]]:
    """Read who says what in a row."""
    return [(turn.role, turn.content) for turn in turns_of(fields)]


def reason_of(fields: Fields, layout: Layout | None = None) -> str:
    """Read why a row cannot be read."""
    with pytest.raises(RowError, match=r"^a\.jsonl:8: ") as caught:
        turns_of(fields, layout)
    return caught.value.reason


class TestMessages:
    """Every piece of a message has one meaning or breaks the row."""

    @pytest.mark.parametrize(
        ("role", "read_as"),
        [
            ("developer", "system"),
            ("human", "user"),
            ("Prompter", "user"),
            ("bot", "assistant"),
            ("model", "assistant"),
            ("bing", "assistant"),
            ("tool_call", "assistant"),
            ("function", "tool"),
            ("observation", "tool"),
        ],
    )
    def test_roles_have_many_names(self, role: str, read_as: str) -> None:
        """Ours are system, user, assistant and tool."""
        assert turns_of({"messages": [{"role": role, "content": "a"}, ASSISTANT]})[0].role == read_as

    @pytest.mark.parametrize(
        "lists",
        [
            {"role": ["user", "assistant"], "content": ["Hi?", "No."]},
            {"from": ("human", "gpt"), "value": ("Hi?", "No."), "id": 3},
        ],
        ids=["role", "from"],
    )
    def test_a_list_for_each_key_is_a_list_of_messages(self, lists: object) -> None:
        """Older `datasets` keep sequences of objects so."""
        assert turns_of({"messages": lists}) == (Turn("user", "Hi?"), Turn("assistant", "No."))

    @pytest.mark.parametrize(
        "lists",
        [{"role": ["user", "assistant"], "content": ["Hi?"]}, {"role": ["user"], "content": "Hi?"}],
        ids=["lengths", "no list"],
    )
    def test_lists_that_do_not_match_break_the_row(self, lists: object) -> None:
        """Which content belongs to which role is never guessed."""
        assert reason_of({"messages": lists}, named("openai", {"messages": "messages"})) == "unreadable_row"

    @pytest.mark.parametrize("role", ["critic", "", None, 3])
    def test_an_unknown_role_breaks_the_row(self, role: object) -> None:
        """Who spoke is never guessed."""
        assert reason_of({"messages": [{"role": role, "content": "a"}, ASSISTANT]}) == "unknown_role"

    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
            (["a", {"type": "image_url", "image_url": {"url": "x"}}], "a\n[image]"),
            ([{"type": "input_audio", "input_audio": {}}], "[audio]"),
            ([{"type": "output_text", "text": "a"}], "a"),
            ([{"type": "refusal", "refusal": "I can't."}], "I can't."),
            ([{"type": "tool_use", "name": "f", "input": {"a": 1}}], '[tool call: f({"a": 1})]'),
            ({"type": "text", "text": "a"}, "a"),
            (["a", None, {"type": "text", "text": None}, {"type": "output_text"}], "a"),
            ([{"type": None, "text": None}, {"text": 3}], "3"),
            ([], ""),
            (12, "12"),
        ],
        ids=[
            "texts",
            "image",
            "audio",
            "output",
            "refusal",
            "tool use",
            "one part",
            "nulls",
            "no type",
            "no part",
            "number",
        ],
    )
    def test_content_may_be_parts(self, content: object, text: str) -> None:
        """What is no text is named in brackets, so that "I cannot see the image" has its image."""
        assert turns_of({"messages": [USER, {"role": "assistant", "content": content}]})[1].content == text

    @pytest.mark.parametrize(
        "call",
        [
            {"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
            {"tool_calls": [{"name": "f", "arguments": {"a": 1}}], "content": None},
            {"function_call": {"name": "f", "arguments": '{"a": 1}'}, "content": ""},
            {"tool_calls": '[{"function": {"name": "f", "arguments": "{\\"a\\": 1}"}}]', "content": None},
            {"tool_calls": "[{'function': {'name': 'f', 'arguments': '{\"a\": 1}'}}]"},
            {"tool_calls": ['{"name": "f", "arguments": {"a": 1}}'], "content": None},
            {"tool_calls": "[]", "function_call": '{"name": "f", "arguments": {"a": 1}}', "content": None},
        ],
        ids=["openai", "flat", "old", "json", "python", "texts", "old_json"],
    )
    def test_a_turn_of_tool_calls_keeps_them_as_text(self, call: Fields) -> None:
        """The reply to a tool's answer is read with the call before it."""
        tool = {"role": "tool", "content": "42"}
        turns = turns_of({"messages": [USER, {"role": "assistant", **call}, tool, ASSISTANT]})
        assert turns[1:3] == (Turn("assistant", '[tool call: f({"a": 1})]'), Turn("tool", "42"))

    @pytest.mark.parametrize("nothing", ["", " ", "[]", "{}", "null", "None", "nan", math.nan])
    def test_no_calls_are_written_in_many_ways(self, nothing: object) -> None:
        """The reply is what stands beside them."""
        assert turns_of({"messages": [USER, {**ASSISTANT, "tool_calls": nothing}]})[1].content == "No."

    @pytest.mark.parametrize("damaged", ['[{"name": "f", "argum', "f(1)", "3"])
    def test_calls_that_cannot_be_read_break_the_row(self, damaged: str) -> None:
        """A reply is never judged without what it consists of."""
        fields: Fields = {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": damaged}]}
        with pytest.raises(RowError, match=r"a\.jsonl:8: tool_calls is str .*; give a list of \{name, arguments\}"):
            turns_of(fields)

    def test_a_refusal_field_is_the_reply(self) -> None:
        """Some providers refuse beside an empty content."""
        message = {"role": "assistant", "content": None, "refusal": "I can't help with that.", "tool_calls": None}
        assert turns_of({"messages": [USER, message]})[1].content == "I can't help with that."

    @pytest.mark.parametrize(
        ("user", "assistant"),
        [
            ({"role": "user", "text": "Hi?"}, {"role": "assistant", "text": "No."}),
            ({"role": "user", "text": "Hi?"}, ASSISTANT),
            (
                {"role": None, "content": None, "from": "human", "value": "Hi?"},
                {"role": None, "content": None, "from": "gpt", "value": "No."},
            ),
        ],
        ids=["text", "text and content", "merged tables"],
    )
    def test_a_content_has_many_names(self, user: Fields, assistant: Fields) -> None:
        """The first that is not null is what was said."""
        assert turns_of({"messages": [user, assistant]}) == (Turn("user", "Hi?"), Turn("assistant", "No."))

    def test_a_message_of_nobody_breaks_the_row(self) -> None:
        """Who spoke stands under another key, perhaps."""
        fields: Fields = {"messages": [{"speaker": "user", "text": "Hi?"}, ASSISTANT]}
        with pytest.raises(RowError, match=r"a message has speaker, text, and neither role nor from; give \{role, con"):
            turns_of(fields, named("openai"))

    def test_a_message_of_unknown_keys_breaks_the_row(self) -> None:
        """Its content is somewhere, and is not blanked."""
        fields: Fields = {"messages": [{"role": "user", "pieces": [{"text": "Hi?"}]}, ASSISTANT]}
        with pytest.raises(RowError, match=r"a message has role, pieces, and no content; give \{role, content\}"):
            turns_of(fields)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (
                {"content_type": "text", "pieces": ["No."]},
                "a part of content has content_type, pieces, and neither type",
            ),
            ([{"type": "text", "text": {"value": "No."}}], "the text of a part is dict .*; give a text"),
            ([["No."]], "a part of content is list .*; give a text"),
        ],
        ids=["unknown keys", "text in an object", "list"],
    )
    def test_a_content_of_unknown_form_breaks_the_row(self, content: object, message: str) -> None:
        """As the key of a message does; `[None]` was judged as a reply."""
        with pytest.raises(RowError, match=message):
            turns_of({"messages": [USER, {"role": "assistant", "content": content}]})

    @pytest.mark.parametrize("column", ["messages", "conversations", "chosen"])
    def test_a_damaged_list_of_python_breaks_the_row(self, column: str) -> None:
        """Cut off as a cell may be; it is no reply."""
        fields: Fields = {column: f"[{USER}, {ASSISTANT}"[:-5], "rejected": "Yes."}
        with pytest.raises(RowError, match=r"a list written by Python, and damaged; write it as JSON"):
            turns_of(fields)

    def test_an_array_of_messages_is_read_as_numpy_prints_it(self) -> None:
        """Without commas, as a frame read from Parquet writes it to CSV."""
        for answer in (ASSISTANT, {**ASSISTANT, "content": "a}\n {b"}):
            printed = turns_of({"messages": f"[{USER}\n {answer}]"})
            assert printed == turns_of({"messages": [USER, answer]})

    def test_results_of_tools_are_no_request(self) -> None:
        """Anthropic puts them into the user's turn, beside what the user may add."""
        call = {"role": "assistant", "content": [{"type": "tool_use", "name": "look", "input": {"at": "a"}}]}
        result = {"type": "tool_result", "content": [{"type": "text", "text": "It rains."}]}
        for parts, said in (
            ([result], [("tool", "It rains.")]),
            ([result, {"type": "text", "text": "And now?"}], [("tool", "It rains."), ("user", "And now?")]),
        ):
            turns = said_in({"messages": [USER, call, {"role": "user", "content": parts}, ASSISTANT]})
            assert turns[1:-1] == [("assistant", '[tool call: look({"at": "a"})]'), *said]

    def test_parts_are_told_by_their_keys(self) -> None:
        """Bedrock and Gemini give them no type."""
        bedrock = [
            {"role": "user", "content": [{"text": "Weather?"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "look", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "It rains."}]}}]},
            {"role": "assistant", "content": [{"text": "It rains there."}]},
        ]
        gemini = [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {"role": "tool", "parts": [{"functionResponse": {"name": "look", "response": "It rains."}}]},
            {"role": "model", "parts": [{"text": "It rains there."}]},
        ]
        said = [("user", "Weather?"), ("assistant", "[tool call: look({})]"), ("tool", "It rains.")]
        assert said_in({"messages": bedrock}) == [*said, ("assistant", "It rains there.")]
        assert said_in(
            {"messages": [USER, {"role": "assistant", "content": {"content_type": "text", "parts": ["No."]}}]}
        )[1:] == [("assistant", "No.")]
        assert said_in({"contents": gemini})[-1] == ("assistant", "It rains there.")

    def test_what_a_tool_gives_back_need_not_be_json(self) -> None:
        """Parquet holds times as such; and a type of no kind that is known breaks its row alone."""
        when = datetime(2026, 1, 1, tzinfo=UTC)
        answer = {"role": "tool", "parts": [{"functionResponse": {"name": "look", "response": {"at": when}}}]}
        assert said_in({"messages": [USER, answer, ASSISTANT]})[1] == ("tool", f'{{"at": "{when}"}}')
        assert reason_of({"messages": [USER, {"type": ["a"], "text": "b"}, ASSISTANT]}) == "unknown_role"

    def test_items_of_a_response_stand_among_messages(self) -> None:
        """OpenAI's thinking, calls and results have a type and no role."""
        items = [
            USER,
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "It rains."},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains there."}]},
        ]
        assert said_in({"messages": items})[1:] == [
            ("assistant", "[tool call: look({})]"),
            ("tool", "It rains."),
            ("assistant", "It rains there."),
        ]

    def test_a_null_turn_of_the_context_is_empty(self) -> None:
        """The order of turns is kept."""
        assert turns_of({"messages": [{"role": "user", "content": None}, ASSISTANT]})[0] == Turn("user", "")

    @pytest.mark.parametrize(
        "fields",
        [
            {"messages": [USER, {"role": "assistant", "content": None}]},
            {"messages": [USER, {"role": "assistant"}]},
            {"messages": [USER, {"role": "assistant", "content": [None]}]},
            {"messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": None}]}]},
            {"prompt": "Hi?", "response": None},
            {"prompt": "Hi?", "response": math.nan},
            {"instruction": "Hi?", "output": None},
            {"chosen": HH, "rejected": None},
            {"response": None},
        ],
        ids=["content", "no content", "null part", "null text", "response", "nan", "output", "side", "reply"],
    )
    def test_a_null_reply_breaks_the_row(self, fields: Fields) -> None:
        """Null is not known; only an empty text is an empty reply."""
        assert reason_of(fields) == "null_content"

    @pytest.mark.parametrize(
        "fields",
        [{"messages": [USER]}, {"messages": []}, {"text": "<|user|>Hi?"}, {"text": "\n\nHuman: Hi?"}],
        ids=["messages", "no messages", "role tokens", "hh"],
    )
    def test_a_row_without_a_reply_breaks(self, fields: Fields) -> None:
        """There is nothing to judge."""
        assert reason_of(fields) == "no_assistant_turn"

    @pytest.mark.parametrize(
        ("name", "fields"),
        [
            ("openai", {"messages": None}),
            ("openai", {"messages": "not a list"}),
            ("openai", {"messages": [USER, "No."]}),
            ("openai", {"messages": [USER, {"role": "assistant", "content": b"No."}]}),
            ("prompt_response", {"prompt": "Hi?", "response": {"a": 1}}),
            ("prompt_response", {"prompt": "Hi?", "response": ["a", "b"]}),
            ("hh", {"text": ["Human: a"]}),
        ],
    )
    def test_a_value_of_another_kind_breaks_the_row(self, name: str, fields: Fields) -> None:
        """Nothing is written out with `str()` but numbers."""
        assert reason_of(fields, named(name)) == "unreadable_row"

    def test_a_column_that_a_row_does_not_have_breaks_it(self) -> None:
        """The row's own columns are listed, if there are any."""
        layout = detect({"prompt": "a", "response": "b"})
        with pytest.raises(RowError, match=r"no column 'response'; the row has prompt, text"):
            turns_of({"prompt": "a", "text": "b"}, layout)
        with pytest.raises(RowError, match=r"no column 'prompt'; the row is empty$"):
            turns_of({}, layout)


@pytest.mark.parametrize("row", [{"messages": [USER, ASSISTANT]}, {"prompt": "Hi?", "response": "No."}])
def test_a_system_prompt_may_come_in_parts(row: Fields) -> None:
    """As some providers take it, in the first row or a later one; a layout that was found by a text reads it, too."""
    parts: Fields = {**row, "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]}
    by_text = detect({**row, "system": "Be brief."})
    for layout in (None, by_text):
        assert turns_of(parts, layout)[0] == Turn("system", "Be brief.\nBe kind.")
    assert len(turns_of({**row, "system": []}, by_text)) == 2


@pytest.mark.parametrize("content", ["12 °C", [{"type": "text", "text": "12 °C"}]])
def test_what_a_tool_gave_back_is_read(content: object) -> None:
    """Be it a text or parts."""
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": content}]}
    assert turns_of({"messages": [result, ASSISTANT]})[0].content == "12 °C"


@pytest.mark.parametrize("write", [json.dumps, str], ids=["json", "python"])
def test_the_text_of_a_message_is_the_message(write: Callable[[object], str]) -> None:
    """So tables of traces hold it; its null is no refusal that reads "null", and its user may be who asks."""
    assert turns_of({"prompt": write(USER), "response": write(ASSISTANT)}) == (Turn("user", "Hi?"), *ONLY_REPLY)
    assert turns_of({"response": f" {write({'id': 3, **ASSISTANT})}"}) == ONLY_REPLY
    assert turns_of({"prompt": "Hi?", "response": write({**ASSISTANT, "content": ""})})[1].content == ""
    assert reason_of({"prompt": "Hi?", "response": write({**ASSISTANT, "content": None})}) == "null_content"


@pytest.mark.parametrize(
    "said",
    [
        '{"answer": 3}',
        '{"role": "admin", "content": "x"}',
        '{"role": "user", "name": "x"}',
        '{"from": "Mali", "to": "Niger", "text": "x"}',
        '{"choices": ["a", "b"]}',
        '{"choices": [{"text": "a"}]}',
        '{"role": "assistant", "content": "x"} is how it is written.',
    ],
)
def test_json_that_an_assistant_wrote_is_its_reply(said: str) -> None:
    """Models are asked for JSON; only a message of a known role is one."""
    assert turns_of({"prompt": "Hi?", "response": said})[1] == Turn("assistant", said)


@pytest.mark.parametrize("write", [json.dumps, str], ids=["json", "python"])
def test_the_text_of_an_answer_of_an_api_is_no_reply(write: Callable[[object], str]) -> None:
    """Its names and numbers would be judged; as an object, it fits no layout with the same advice."""
    answer = write({"id": "c", "choices": [{"index": 0, "message": ASSISTANT}], "usage": {"total_tokens": 3}})
    rows: list[Fields] = [
        {"prompt": "Hi?", "response": answer},
        {"response": answer},
        {"chosen": answer, "rejected": "No."},
    ]
    for fields in rows:
        with pytest.raises(RowError, match=r"into a column of its own, as from choices\[0\]\.message\.content"):
            turns_of(fields)


CHAT_JSON = json.dumps([USER, {**ASSISTANT, "content": "I cannot draw."}], indent=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": CHAT_JSON[:-15]},
        {"conversations": '[{"value": "Say {x}, \\"y\\".", "n": 1, "from": "human"}, {"value": "No.", "fr'},
        {"prompt": "Hi?", "response": '{"id": null, "role": "Assistant", "content": "I cannot'},
        {"chosen": "No.", "rejected": CHAT_JSON[:-15]},
        {"text": CHAT_JSON.replace("draw.", "draw\n")},
    ],
)
def test_messages_that_are_cut_off_break_the_row(fields: Fields) -> None:
    """As Excel cuts a long cell: the user's turn would be judged as words of the reply."""
    with pytest.raises(RowError, match=r"messages is str '.*; it begins as JSON, and is damaged; get it whole"):
        turns_of(fields)


@pytest.mark.parametrize("said", ['[{"name": "Ada", "role": "user"}, {"na', '{"a": [{"role": "user", "content": 1}'])
def test_other_json_that_is_cut_off_is_a_reply(said: str) -> None:
    """A model may have run out of tokens."""
    assert turns_of({"prompt": "Hi?", "response": said})[1] == Turn("assistant", said)
