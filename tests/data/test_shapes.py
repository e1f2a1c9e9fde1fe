"""Rows of every common layout become conversations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation, Turn
from demur.data.doubts import prompt_doubt, reply_doubt
from demur.data.reading import read_conversations
from demur.data.rows import Row
from demur.data.shapes import LAYOUT_NAMES, Layout, detect, named, parse_text
from demur.data.sources import open_source
from demur.errors import LayoutError, RowError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Fields = dict[str, object]

USER = {"role": "user", "content": "Hi?"}
ASSISTANT = {"role": "assistant", "content": "No."}
CHAT = [USER, ASSISTANT]
HH = "\n\nHuman: Hi?\n\nAssistant: No."
PAIR = (Turn("user", "Hi?"), Turn("assistant", "No."))
UNDER_SYSTEM = (Turn("system", "Be terse."), *PAIR)
BARE = (Turn("assistant", "No."),)


def row(fields: Fields) -> Row:
    """Put fields at a place."""
    return Row(7, fields, "a.jsonl", 8)


def read(fields: Fields, layout: Layout | None = None) -> tuple[Conversation, ...]:
    """Read a row in the layout that it shows."""
    return (detect(fields) if layout is None else layout).conversations(row(fields))


def turns_of(fields: Fields) -> tuple[Turn, ...]:
    """Read the turns of the only conversation of a row."""
    (conversation,) = read(fields)
    return conversation.turns


def turns_of_named(fields: Fields, columns: Mapping[str, str]) -> tuple[Turn, ...]:
    """Read the turns of the only conversation of a row whose columns are named."""
    (conversation,) = read(fields, detect(fields, columns))
    return conversation.turns


def reason_of(fields: Fields, layout: Layout | None = None) -> str:
    """Read why a row cannot be read."""
    with pytest.raises(RowError, match=r"^a\.jsonl:8: ") as caught:
        read(fields, layout)
    return caught.value.reason


LAYOUTS: Mapping[str, tuple[Fields, str, tuple[Turn, ...]]] = {
    "messages": ({"id": "x", "messages": CHAT}, "openai: messages=messages", PAIR),
    "conversation": ({"conversation": CHAT}, "openai: messages=conversation", PAIR),
    "roles under conversations": ({"conversations": CHAT}, "openai: messages=conversations", PAIR),
    "messages beside a name": ({"conversation": "c-1", "messages": CHAT}, "openai: messages=messages", PAIR),
    "messages as JSON": ({"messages": json.dumps(CHAT)}, "openai: messages=messages", PAIR),
    "messages beside their prompt": ({"prompt": "Hi?", "messages": CHAT}, "openai: messages=messages", PAIR),
    "open messages and a response": (
        {"messages": [USER], "response": "No."},
        "prompt_response: prompt=messages response=response",
        PAIR,
    ),
    "open messages of a capital role": (
        {"messages": [{"role": "User", "content": "Hi?"}], "response": "No."},
        "prompt_response: prompt=messages response=response",
        PAIR,
    ),
    "open messages of a prompter": (
        {"conversations": [{"from": "prompter", "value": "Hi?"}], "response": "No."},
        "prompt_response: prompt=conversations response=response",
        PAIR,
    ),
    "a model's reply beside the reference": (
        {"question": "Hi?", "answer": "4", "output": "4", "model_output": "No."},
        "prompt_response: prompt=question response=model_output",
        PAIR,
    ),
    "a model's reply beside that of an instruction": (
        {"instruction": "Hi?", "output": "4", "generation": "No."},
        "alpaca: instruction=instruction output=generation",
        PAIR,
    ),
    "a question about a context": (
        {"context": "1 2", "question": "Sum?", "response": "No."},
        "prompt_response: prompt=question response=response input=context",
        (Turn("user", "Sum?\n\n1 2"), Turn("assistant", "No.")),
    ),
    "a user's input about a context": (
        {"user_input": "Sum?", "context": "1 2", "response": "No."},
        "prompt_response: prompt=user_input response=response input=context",
        (Turn("user", "Sum?\n\n1 2"), Turn("assistant", "No.")),
    ),
    "a number as the context": (
        {"prompt": "Hi?", "context": 3, "response": "No."},
        "prompt_response: prompt=prompt response=response",
        PAIR,
    ),
    "a completion beside the reference": (
        {"prompt": "Hi?", "answer": "4", "completion": "No."},
        "prompt_response: prompt=prompt response=completion",
        PAIR,
    ),
    "sharegpt": (
        {"conversations": [{"from": "human", "value": "Hi?"}, {"from": "gpt", "value": "No."}]},
        "sharegpt: messages=conversations",
        PAIR,
    ),
    "sharegpt with a system turn": (
        {
            "conversations": [
                {"from": "system", "value": "Be terse."},
                {"from": "human", "value": "Hi?"},
                {"from": "gpt", "value": "No."},
            ]
        },
        "sharegpt: messages=conversations",
        UNDER_SYSTEM,
    ),
    "alpaca": ({"instruction": "Hi?", "output": "No."}, "alpaca: instruction=instruction output=output", PAIR),
    "alpaca with input": (
        {"instruction": "Add.", "input": "1 2", "output": "3"},
        "alpaca: instruction=instruction output=output input=input",
        (Turn("user", "Add.\n\n1 2"), Turn("assistant", "3")),
    ),
    "alpaca with empty input": (
        {"instruction": "Hi?", "input": "", "response": "No."},
        "alpaca: instruction=instruction output=response input=input",
        PAIR,
    ),
    "alpaca with a system prompt": (
        {"system": "Be terse.", "instruction": "Hi?", "output": "No."},
        "alpaca: instruction=instruction output=output system=system",
        UNDER_SYSTEM,
    ),
    "prompt and response": (
        {"prompt": "Hi?", "response": "No."},
        "prompt_response: prompt=prompt response=response",
        PAIR,
    ),
    "question and answer": (
        {"question": "Hi?", "answer": "No."},
        "prompt_response: prompt=question response=answer",
        PAIR,
    ),
    "input and model output": (
        {"input": "Hi?", "model_output": "No."},
        "prompt_response: prompt=input response=model_output",
        PAIR,
    ),
    "user input and model output": (
        {"user_input": "Hi?", "model_output": "No."},
        "prompt_response: prompt=user_input response=model_output",
        PAIR,
    ),
    "goal and a named response": (
        {"Goal": "Hi?", "gpt4_response": "No."},
        "prompt_response: prompt=Goal response=gpt4_response",
        PAIR,
    ),
    "whether a human wrote it": ({"text": "No.", "human": 0, "output": "No."}, "reply: response=output", BARE),
    "history of pairs": (
        {"instruction": "And?", "input": "", "output": "No.", "history": [["Hi?", "Yes."]]},
        "alpaca: instruction=instruction output=output input=input history=history",
        (Turn("user", "Hi?"), Turn("assistant", "Yes."), Turn("user", "And?"), BARE[0]),
    ),
    "history of messages": (
        {"query": "And?", "response": "No.", "system": "Be terse.", "history": CHAT},
        "prompt_response: prompt=query response=response system=system history=history",
        (*UNDER_SYSTEM, Turn("user", "And?"), BARE[0]),
    ),
    "history of anything else": (
        {"query": "Hi?", "response": "No.", "history": "none"},
        "prompt_response: prompt=query response=response",
        PAIR,
    ),
    "system prompt column": (
        {"system_prompt": "Be terse.", "prompt": "Hi?", "response": "No."},
        "prompt_response: prompt=prompt response=response system=system_prompt",
        UNDER_SYSTEM,
    ),
    "empty system prompt": (
        {"system": "", "prompt": "Hi?", "response": "No."},
        "prompt_response: prompt=prompt response=response system=system",
        PAIR,
    ),
    "empty prompt": ({"prompt": "", "response": "No."}, "prompt_response: prompt=prompt response=response", BARE),
    "null prompt": ({"prompt": None, "response": "No."}, "prompt_response: prompt=prompt response=response", BARE),
    "prompt of messages": (
        {"prompt": [USER], "completion": [ASSISTANT]},
        "prompt_response: prompt=prompt response=completion",
        PAIR,
    ),
    "a cell of prompts and a cell of responses": (
        {"prompt": '["Hm.", "Hi?"]', "response": '["Yes.", "No."]'},
        "prompt_response: prompt=prompt response=response",
        (Turn("user", "Hm."), Turn("assistant", "Yes."), *PAIR),
    ),
    "a list that an instruction is about": (
        {"prompt": '["b", "a"]', "context": "Sort this.", "response": '["a", "b"]'},
        "prompt_response: prompt=prompt response=response input=context",
        (Turn("user", '["b", "a"]\n\nSort this.'), Turn("assistant", '["a", "b"]')),
    ),
    "a list under instructions": (
        {"system": "Sort.", "prompt": '["b", "a"]', "response": '["a", "b"]'},
        "prompt_response: prompt=prompt response=response system=system",
        (Turn("system", "Sort."), Turn("user", '["b", "a"]'), Turn("assistant", '["a", "b"]')),
    ),
    "a cell of items and a cell of more of them": (
        {"prompt": '["Hm.", "Hi?"]', "response": '["No."]'},
        "prompt_response: prompt=prompt response=response",
        (Turn("user", '["Hm.", "Hi?"]'), Turn("assistant", '["No."]')),
    ),
    "a prompt that is a list, and its answer": (
        {"prompt": '["Hi?"]', "response": "No."},
        "prompt_response: prompt=prompt response=response",
        (Turn("user", '["Hi?"]'), Turn("assistant", "No.")),
    ),
    "prompt of hh": (
        {"prompt": "\n\nHuman: Hi?\n\nAssistant:", "response": "No."},
        "prompt_response: prompt=prompt response=response",
        PAIR,
    ),
    "prompt of role tokens": (
        {"prompt": "<|system|>Be terse.<|user|>Hi?<|assistant|>", "response": "No."},
        "prompt_response: prompt=prompt response=response",
        UNDER_SYSTEM,
    ),
    "numbers": (
        {"prompt": 12, "response": 3.5},
        "prompt_response: prompt=prompt response=response",
        (Turn("user", "12"), Turn("assistant", "3.5")),
    ),
    "hh": ({"text": HH}, "hh: text=text", PAIR),
    "hh transcript": ({"transcript": HH}, "hh: text=transcript", PAIR),
    "role tokens": ({"text": "<|user|>Hi?<|assistant|>No."}, "role_tokens: text=text", PAIR),
    "role tokens on lines": (
        {"text": "<s><|system|>\nBe terse.</s>\n<|user|>\nHi?<|end|>\n<|assistant|>\nNo.<|endoftext|>\n"},
        "role_tokens: text=text",
        UNDER_SYSTEM,
    ),
    "chatml": (
        {"text": "<|im_start|>user\nHi?<|im_end|>\n<|im_start|>assistant\nNo.<|im_end|>\n"},
        "role_tokens: text=text",
        PAIR,
    ),
    "llama headers": (
        {
            "text": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nNo.<|eot_id|>"
        },
        "role_tokens: text=text",
        PAIR,
    ),
    "chatml of Windows": (
        {"text": "<|im_start|>user\r\nHi?<|im_end|>\r\n<|im_start|>assistant\r\nNo.<|im_end|>\r\n"},
        "role_tokens: text=text",
        PAIR,
    ),
    "hh of Windows": ({"text": HH.replace("\n", "\r\n")}, "hh: text=text", PAIR),
    "open sharegpt and a response": (
        {"conversations": [{"from": "human", "value": "Hi?"}], "response": "No."},
        "prompt_response: prompt=conversations response=response",
        PAIR,
    ),
    "messages under a system column": (
        {"system": "Be terse.", "messages": CHAT},
        "openai: messages=messages system=system",
        UNDER_SYSTEM,
    ),
    "messages with a system turn of their own": (
        {"system": "Be kind.", "messages": [{"role": "system", "content": "Be terse."}, *CHAT]},
        "openai: messages=messages system=system",
        UNDER_SYSTEM,
    ),
    "sharegpt under a system column": (
        {"system": "Be terse.", "conversations": [{"from": "human", "value": "Hi?"}, {"from": "gpt", "value": "No."}]},
        "sharegpt: messages=conversations system=system",
        UNDER_SYSTEM,
    ),
    "messages as Python prints them": ({"id": 1, "messages": str(CHAT)}, "openai: messages=messages", PAIR),
    "reply that is a list of Python": (
        {"response": "[{'name': 'Ann'}, {'name': 'Bo'}] is the list"},
        "reply: response=response",
        (Turn("assistant", "[{'name': 'Ann'}, {'name': 'Bo'}] is the list"),),
    ),
    "text beside a role that nobody speaks in": ({"role": "nurse", "text": "No."}, "reply: response=text", BARE),
    "reply": ({"response": "No."}, "reply: response=response", BARE),
    "reply under text": ({"id": 3, "text": "No."}, "reply: response=text", BARE),
    "reply of role tokens": ({"output": "<|user|>Hi?<|assistant|>No."}, "reply: response=output", PAIR),
    "number beside a reply": ({"text": "No.", "answer": 1}, "reply: response=text", BARE),
    "number beside a content": ({"content": "No.", "answer": 0.5}, "reply: text=content", BARE),
    "number beside a prompt and a reply": (
        {"prompt": "Hi?", "answer": 1, "text": "No."},
        "prompt_response: prompt=prompt response=text",
        PAIR,
    ),
    "a message as an API answers": (
        {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "No."}], "usage": {}},
        "anthropic: content=content role=role type=type",
        BARE,
    ),
    "number alone": ({"id": "x", "answer": 1}, "reply: response=answer", (Turn("assistant", "1"),)),
    "empty reply": ({"reply": ""}, "reply: response=reply", (Turn("assistant", ""),)),
}


@pytest.mark.parametrize(("fields", "shown", "turns"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_layout_is_recognised_and_read(fields: Fields, shown: str, turns: tuple[Turn, ...]) -> None:
    """The user is shown which columns were taken; the turns are what was written."""
    assert str(detect(fields)) == shown
    assert turns_of(fields) == turns


PAIRS: Mapping[str, Fields] = {
    "hh": {"chosen": HH, "rejected": HH.replace("No.", "Yes.")},
    "messages": {"chosen": CHAT, "rejected": [USER, {**ASSISTANT, "content": "Yes."}]},
    "messages beside their prompt": {
        "prompt": "Hi?",
        "chosen": CHAT,
        "rejected": [USER, {**ASSISTANT, "content": "Yes."}],
    },
    "prompt and messages": {"prompt": [USER], "chosen": [ASSISTANT], "rejected": [{**ASSISTANT, "content": "Yes."}]},
    "prompt and bare replies": {"prompt": "Hi?", "chosen": "No.", "rejected": "Yes."},
    "open messages and bare replies": {"messages": [USER], "chosen": "No.", "rejected": "Yes."},
    "open sharegpt and one message": {
        "conversations": [{"from": "human", "value": "Hi?"}],
        "chosen": {"from": "gpt", "value": "No."},
        "rejected": {"from": "gpt", "value": "Yes."},
    },
    "input alone": {"input": "Hi?", "chosen": "No.", "rejected": "Yes."},
    "messages as Python prints them": {
        "prompt": "Hi?",
        "chosen": str(CHAT),
        "rejected": str({**ASSISTANT, "content": "Yes."}),
    },
    "prompt and one message": {"question": "Hi?", "chosen": ASSISTANT, "rejected": {**ASSISTANT, "content": "Yes."}},
}


@pytest.mark.parametrize("fields", PAIRS.values(), ids=PAIRS)
def test_both_sides_of_a_preference_pair_are_read(fields: Fields) -> None:
    """The side is kept; the prompt stands before bare replies only once."""
    chosen, rejected = read(fields)
    assert (chosen.side, chosen.turns) == ("chosen", PAIR)
    assert (rejected.side, rejected.turns) == ("rejected", (PAIR[0], Turn("assistant", "Yes.")))
    assert detect(fields).name == "preference"


def test_a_response_that_was_lost_among_the_cells_of_a_battle_is_no_reply() -> None:
    """LMSYS keeps a text a turn in a cell, and a null where a model failed."""
    fields: Fields = {"prompt": '["Hm.", "Hi?"]', "response_a": '["Yes.", null]', "response_b": '["Oh.", "No."]'}
    assert turns_of_named(fields, {"response": "response_b"})[2:] == PAIR
    assert reason_of(fields, detect(fields, {"response": "response_a"})) == "null_content"
    lost: Fields = {"prompt": '["Hi?"]', "response": "[null]"}
    assert reason_of(lost) == "null_content"
    assert turns_of({**lost, "response": '[""]'}) == (PAIR[0], Turn("assistant", ""))
    mixed: Fields = {"prompt": '["Hi?"]', "chosen": '["No."]', "rejected": "Which of them?"}
    assert {one.turns[0].content for one in read(mixed)} == {'["Hi?"]'}
    either = detect(fields, {"chosen": "response_b", "rejected": "response_a"}).replies(row(fields))
    assert [one.turns[2:] if isinstance(one, Conversation) else one.error.reason for one in either] == [
        PAIR,
        "null_content",
    ]


def test_the_input_of_a_preference_pair_stands_under_its_instruction() -> None:
    """As in alpaca, both are one user turn."""
    chosen, _ = read({"instruction": "Add.", "input": "1 2", "chosen": "3", "rejected": "No."})
    assert chosen.turns == (Turn("user", "Add.\n\n1 2"), Turn("assistant", "3"))


def test_a_system_column_stands_over_both_sides_of_a_preference_pair() -> None:
    """The sides may be whole conversations."""
    chosen, rejected = read({"system": "Be terse.", "chosen": CHAT, "rejected": CHAT})
    assert (chosen.turns, rejected.turns) == (UNDER_SYSTEM, UNDER_SYSTEM)


@pytest.mark.parametrize(
    ("side", "kept"), [("chosen", "chosen"), ("rejected", "rejected"), ("left", None), (None, None)]
)
def test_a_side_column_is_kept_where_it_names_a_side(side: str | None, kept: str | None) -> None:
    """A column of that name may mean anything else."""
    (conversation,) = read({"messages": CHAT, "side": side})
    assert conversation.side == kept


def test_the_row_is_kept() -> None:
    """A verdict is traced back by position."""
    (conversation,) = read({"messages": CHAT})
    assert (conversation.row_id, conversation.turn) == (7, 0)


class TestJudgedTurns:
    """The last assistant turn is judged, or each of them."""

    FIELDS: Fields = {"messages": [*CHAT, USER, {"role": "assistant", "content": "Yes."}, USER]}  # noqa: RUF012  # never changed

    def test_the_last_reply_is_judged_and_what_follows_it_dropped(self) -> None:
        """A trailing user turn waits for a reply that is not there."""
        (conversation,) = read(self.FIELDS)
        assert (conversation.reply, conversation.turn, len(conversation.turns)) == ("Yes.", 1, 4)

    def test_all_replies_are_judged_in_their_own_context(self) -> None:
        """Each has the turns before it; turns count from 0."""
        first, second = detect(self.FIELDS).conversations(row(self.FIELDS), turns="all")
        assert (first.turn, first.turns) == (0, PAIR)
        assert (second.turn, second.turns) == (1, (*PAIR, Turn("user", "Hi?"), Turn("assistant", "Yes.")))

    def test_thinking_is_kept_of_the_judged_reply_and_dropped_from_the_context(self) -> None:
        """What a model thought two turns ago was never seen by anybody."""
        messages = [
            USER,
            {"role": "assistant", "content": "<think>one</think>No."},
            USER,
            {"role": "assistant", "content": "<think>three</think>Yes.", "reasoning_content": "two"},
        ]
        first, second = detect({"messages": messages}).conversations(row({"messages": messages}), turns="all")
        assert (first.reply, first.reasoning) == ("No.", "one")
        assert (second.reply, second.reasoning) == ("Yes.", "two\n\nthree")
        assert second.turns[1] == Turn("assistant", "No.")

    def test_thinking_may_be_a_part_or_a_field(self) -> None:
        """A reply cut while it thought has no content, and is empty."""
        part = {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "No."}],
        }
        (conversation,) = read({"messages": [USER, part]})
        assert (conversation.reply, conversation.reasoning) == ("No.", "hm")
        (conversation,) = read({"messages": [USER, {"role": "assistant", "content": None, "reasoning": "hm"}]})
        assert (conversation.reply, conversation.reasoning) == ("", "hm")

    def test_what_a_user_wrote_is_no_thinking(self) -> None:
        """Only the assistant's turns are cleaned."""
        assert turns_of({"prompt": "<think>a</think>b", "response": "No."})[0].content == "<think>a</think>b"


class TestNaming:
    """A layout may be named, and its columns too."""

    @pytest.mark.parametrize(
        ("fields", "overrides", "shown"),
        [
            ({"q": "a", "a": "b"}, {"prompt": "q", "response": "a"}, "prompt_response: prompt=q response=a"),
            ({"log": CHAT, "text": "x"}, {"messages": "log"}, "openai: messages=log"),
            ({"log": HH, "text": "x"}, {"text": "log"}, "hh: text=log"),
            ({"log": "No.", "prompt": "x"}, {"text": "log"}, "reply: text=log"),
            ({"a": "x", "b": "y"}, {"chosen": "a", "rejected": "b"}, "preference: chosen=a rejected=b"),
            (
                {"question": "x", "gold": "y", "gen": "z"},
                {"response": "gen"},
                "prompt_response: prompt=question response=gen",
            ),
            ({"gen": "z"}, {"response": "gen"}, "reply: response=gen"),
            ({"role": "x", "content": "z"}, {"text": "content"}, "reply: text=content"),
        ],
    )
    def test_columns_that_are_named_are_taken(self, fields: Fields, overrides: dict[str, str], shown: str) -> None:
        """The layout is still found by the values."""
        assert str(detect(fields, overrides)) == shown

    @pytest.mark.parametrize("name", LAYOUT_NAMES)
    def test_a_layout_that_is_named_knows_its_columns_after_its_first_row(self, name: str) -> None:
        """Every name can be given."""
        fields = next((fields for fields, shown, _ in LAYOUTS.values() if shown.startswith(f"{name}:")), PAIRS["hh"])
        layout = named(name)
        assert layout.columns == {}
        assert layout.bound(fields) == detect(fields)
        assert read(fields, layout) == read(fields)

    def test_a_name_wins_over_what_the_columns_show(self) -> None:
        """A transcript in `text` may be meant as a bare reply."""
        fields: Fields = {"prompt": "Hi?", "response": "No.", "text": "other"}
        assert str(named("reply", {"text": "text"}).bound(fields)) == "reply: text=text"

    def test_an_unknown_name_lists_the_known_ones(self) -> None:
        """All layouts are named."""
        with pytest.raises(LayoutError, match=r"no layout 'chatml'; use one of preference, prompt_response, openai"):
            named("chatml")

    @pytest.mark.parametrize(
        ("name", "overrides", "message"),
        [
            (None, {"prompt": "q"}, "no column 'q'; the columns are prompt, response"),
            ("openai", {"messages": "chat"}, "no column 'chat'; the columns are prompt, response"),
            (None, {"message": "prompt"}, "a conversation has no part 'message'; name a column for one of chosen"),
            ("openai", {}, r"fit not the layout 'openai'; .* openai .messages."),
            (None, {"chosen": "prompt"}, "with chosen=prompt, fit no layout"),
        ],
        ids=["column", "column of a named one", "part", "named", "pair"],
    )
    def test_what_does_not_fit_is_said_with_the_columns_met(
        self, name: str | None, overrides: dict[str, str], message: str
    ) -> None:
        """The message says what was met and what would be right."""
        fields: Fields = {"prompt": "Hi?", "response": "No."}
        with pytest.raises(LayoutError, match=message):
            detect(fields, overrides) if name is None else named(name, overrides).bound(fields)

    def test_a_part_that_a_layout_does_not_have_is_refused_at_once(self) -> None:
        """Before any file is read."""
        with pytest.raises(LayoutError, match=r"the layout 'openai' has no part 'prompt'; .* messages, system, side"):
            named("openai", {"prompt": "q"})

    @pytest.mark.parametrize(
        "fields",
        [{"id": 1}, {"prompt": "Only a prompt."}, {}, {"answers": {"text": ["a"]}, "question": "b"}],
        ids=["id", "prompt", "nothing", "squad"],
    )
    def test_columns_that_fit_no_layout_are_listed(self, fields: Fields) -> None:
        """A prompt without a reply has nothing to judge."""
        with pytest.raises(LayoutError, match=r"fit no layout; a layout needs columns for its parts: preference"):
            detect(fields)

    @pytest.mark.parametrize(
        "fields",
        [
            {"role": "user", "content": "Hi?"},
            {"from": "human", "value": "Hi?", "id": 3},
            {"role": "user", "content": [{"type": "text", "text": "Hi?"}]},
            {"message_id": "1", "text": "Hi?", "role": "prompter"},
            {"text": "No.", "from": "gpt"},
            {"conversation": "c-1", "role": "critic", "content": "Hi?"},
        ],
        ids=["role", "from", "parts", "text", "text of from", "conversation"],
    )
    def test_one_message_a_row_is_no_layout(self, fields: Fields) -> None:
        """Each turn would be judged as a reply, the user's too."""
        with pytest.raises(LayoutError, match=r"hold one message a row; group them under `messages`"):
            detect(fields)

    @pytest.mark.parametrize(
        "text",
        [
            "<s>[INST] Hi? [/INST] No. </s>",
            "### Human: Hi?### Assistant: No.",
            "<bos><start_of_turn>user\nHi?<end_of_turn>\n<start_of_turn>model\nNo.<end_of_turn>",
            "Below is an instruction that describes a task.\n\n### Instruction:\nHi?\n\n### Response:\nNo.",
            "### Instruction:\nHi?\n\n### Response:\nNo.",
            "### System:\nBe terse.\n### User:\nHi?\n### Assistant:\nNo.",
            "USER: Hi? ASSISTANT: No.",
            "A chat between a curious user and an artificial intelligence assistant. USER: Hi? ASSISTANT: No.",
            "User: Hi?\nAssistant: No.",
            "<\uff5cbegin\u2581of\u2581sentence\uff5c>Be terse.<\uff5cUser\uff5c>Hi?<\uff5cAssistant\uff5c>No.",
            "<\uff5cUser\uff5c>Hi?<\uff5cAssistant\uff5c>No.",
            "<|start|>user<|message|>Hi?<|end|><|start|>assistant<|channel|>final<|message|>No.<|return|>",
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hi?<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>No.",
        ],
        ids=[
            "inst",
            "guanaco",
            "gemma",
            "alpaca",
            "alpaca bare",
            "orca",
            "vicuna",
            "vicuna with system",
            "plain",
            "deepseek with system",
            "deepseek",
            "gpt-oss",
            "command",
        ],
    )
    def test_a_transcript_that_is_not_read_is_no_reply(self, text: str) -> None:
        """Unless the user says so; a reply may quote the mark further on."""
        with pytest.raises(
            LayoutError, match=r"^text begins as a transcript with .* `messages`, or give --format reply"
        ):
            detect({"text": text})
        assert read({"text": text}, named("reply"))[0].reply == text.strip()
        assert turns_of({"text": f"Write {text}"})[0].content == f"Write {text}".strip()

    @pytest.mark.parametrize(
        "text",
        ["### Instruction:\nStir.", "User: not found.", "USER: is a variable.", "Below is an instruction: stir."],
    )
    def test_a_mark_that_nobody_answers_begins_a_reply(self, text: str) -> None:
        """Headings and names are words of a reply, too."""
        assert turns_of({"text": text}) == (Turn("assistant", text),)

    def test_of_many_columns_ten_are_listed(self) -> None:
        """An object of rows by id has a column for each row."""
        fields: Fields = {f"id{number}": {} for number in range(5000)}
        with pytest.raises(LayoutError, match=r"id8 \(dict\), id9 \(dict\) and 4,990 more fit no layout") as caught:
            detect(fields)
        assert "id10" not in str(caught.value)

    def test_the_advice_on_one_message_a_row_works(self) -> None:
        """Where there is a text, it may be named as the reply; of a list of parts, that would fail."""
        with pytest.raises(
            LayoutError, match=r"Only where every row is a reply, and none the user's, give --field tex"
        ):
            detect({"role": "assistant", "content": "No."})
        assert turns_of_named({"role": "assistant", "content": "No."}, {"text": "content"}) == BARE
        with pytest.raises(LayoutError, match=r"group them under `messages`, one conversation a row$"):
            detect({"role": "user", "content": [{"type": "text", "text": "Hi?"}]})

    def test_a_message_of_the_user_among_answers_of_an_api_is_no_reply(self) -> None:
        """It breaks its row."""
        answer: Fields = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "No."}]}
        assert reason_of({**answer, "role": "user"}, detect(answer)) == "no_assistant_turn"

    def test_a_role_beside_a_conversation_is_no_message(self) -> None:
        """The reply is elsewhere."""
        assert str(detect({"role": "nurse", "content": "x", "messages": CHAT})) == "openai: messages=messages"
        assert detect({"role": "nurse", "content": "x", "prompt": "Hi?", "response": "No."}).name == "prompt_response"

    def test_a_misspelt_choice_of_turns_is_refused(self) -> None:
        """It would be taken for `all`."""
        with pytest.raises(ValueError, match="turns is 'lats'; give 'last' or 'all'"):
            detect({"messages": CHAT}).conversations(row({"messages": CHAT}), turns="lats")  # type: ignore[arg-type]


class TestParseText:
    """A plain string is accepted where a conversation is."""

    @pytest.mark.parametrize("end", ["", "\n\n", "</s>", " <|im_end|>\n</s> \n", "<|end|><|eot_id|><|endoftext|>"])
    def test_a_turn_ends_before_its_marks(self, end: str) -> None:
        """Those within it are words, though there be a megabyte of them, as of a model that repeats itself."""
        said = "No." + "\n" * 500_000 + "</s>" * 100_000 + "Yes."
        assert parse_text(f"<|user|>Hi?{end}<|assistant|> {said}{end}").turns == (PAIR[0], Turn("assistant", said))

    def test_role_tokens_make_turns(self) -> None:
        """The field's format has no newlines between turns."""
        conversation = parse_text("<|system|>Be terse.<|user|>Hi?<|assistant|><think>hm</think>No.<|user|>Why?")
        assert conversation.turns == UNDER_SYSTEM
        assert conversation.reasoning == "hm"

    @pytest.mark.parametrize(
        "text", [HH, HH.strip(), HH.replace("\n", "\r\n")], ids=["as in files", "stripped", "Windows"]
    )
    def test_an_hh_transcript_makes_turns(self, text: str) -> None:
        """As in a file."""
        assert parse_text(text).turns == PAIR

    @pytest.mark.parametrize(
        "text",
        ["No.", "", "The token <|assistant|> opens a turn.", "Human: is a word"],
        ids=["plain", "empty", "token", "hh"],
    )
    def test_any_other_text_is_a_bare_reply(self, text: str) -> None:
        """A reply that quotes a token is still one reply."""
        assert parse_text(text).turns == (Turn("assistant", text),)

    def test_a_text_without_a_reply_is_an_error(self) -> None:
        """There is nothing to judge."""
        with pytest.raises(RowError, match=r"^text: no assistant turn"):
            parse_text("<|user|>Hi?")


@pytest.mark.parametrize(
    ("judged", "rival"), [("response", "output"), ("response", "completion"), ("completion", "output")]
)
def test_of_two_usual_columns_of_replies_the_other_is_named(judged: str, rival: str) -> None:
    """One of them is mostly a reference; nothing says which."""
    fields = {"prompt": "How?", rival: "Like this, in three steps.", judged: "I'm sorry, but I can't help with that."}
    doubt = reply_doubt(detect(fields), fields)
    assert doubt is not None
    assert f"'{judged}' is judged, and '{rival}' beside it may be the reply" in doubt


@pytest.mark.parametrize(
    ("row", "given", "said"),
    [
        ({"id": "a", "choices": [{"message": {"content": "No."}}]}, {}, "'choices' is a list, and a column"),
        ({"custom_id": "a", "response": {"body": {"choices": []}}}, {}, "'response' is an object, and a column"),
        ({"id": 1, "filtered_resps": [["No."]]}, {"response": "filtered_resps"}, "'filtered_resps' is a list"),
        (
            {"messages": CHAT[:1], "response": {"choices": [{"message": {"content": "No."}}]}},
            {"messages": "messages", "response": "response"},
            "'response' is an object, and a column",
        ),
    ],
)
def test_a_reply_within_an_object_is_said_to_be_out_of_reach(row: Fields, given: dict[str, str], said: str) -> None:
    """To name the column, which is the usual advice, would lead back to the same error."""
    with pytest.raises(LayoutError, match="fit no layout") as error:
        detect(row, given)
    assert said in str(error.value)
    assert ",," not in str(error.value)


def test_messages_of_nobody_are_said_with_their_keys() -> None:
    """The column has the right name, so that its type alone explains nothing."""
    with pytest.raises(LayoutError, match=r"What 'messages' lists has speaker, text, and neither role nor from: give"):
        detect({"messages": [{"speaker": "user", "text": "Hi?"}]})


@pytest.mark.parametrize("column", ["response", "choices"])
def test_a_reply_within_an_object_beside_an_open_chat_is_said(column: str) -> None:
    """The chat alone fits a layout, and only that it has no reply would be said."""
    fields: Fields = {"messages": CHAT[:1], column: [{"message": {"content": "No."}}]}
    with pytest.raises(RowError, match=rf"no assistant turn among 1 messages; .*\. '{column}' is a list, and a column"):
        read(fields)
    with pytest.raises(RowError, match=r"a row needs a reply to judge$"):
        read({**fields, column: []})


@pytest.mark.parametrize("column", ["response", "choices", "completion", "responses"])
def test_an_earlier_reply_is_not_judged_in_place_of_one_within_an_object(column: str) -> None:
    """A log of requests has the whole chat, and the reply to its last turn as the API gave it."""
    fields: Fields = {"messages": [*CHAT, *CHAT[:1]], column: [{"message": {"content": "I can't."}}]}
    with pytest.raises(
        RowError, match=rf"the messages end with the user's\. '{column}' is a list, and a column"
    ) as error:
        read(fields)
    assert error.value.reason == "no_assistant_turn"
    # Who asks for all replies gets those that are there; so does who has none beside the chat.
    assert len(detect(fields).conversations(row(fields), turns="all")) == 1
    assert read({**fields, column: []})[0].reply == "No."


@pytest.mark.parametrize("beside", [{"score": 0.9}, [{"metric": "safe"}], {"label": "safe"}, [1, 2]])
def test_figures_beside_a_chat_are_no_reply(beside: object) -> None:
    """The last reply that is there is judged, as ever."""
    assert read({"messages": [*CHAT, *CHAT[:1]], "result": beside})[0].reply == "No."


def test_a_side_of_a_pair_is_judged_by_its_own_column() -> None:
    """What else was generated stands beside both."""
    chat = [*CHAT, *CHAT[:1]]
    fields: Fields = {"chosen": chat, "rejected": chat, "generations": ["I can't do that.", "Here it is."]}
    assert [one.reply for one in read(fields)] == ["No.", "No."]


def test_a_pair_has_the_context_and_the_history_of_its_prompt() -> None:
    """As a single reply has."""
    fields: Fields = {
        "prompt": "Who?",
        "context": "A tale.",
        "history": [["Hi?", "Hello."]],
        "chosen": "X.",
        "rejected": "Y.",
    }
    said = ["Hi?", "Hello.", "Who?\n\nA tale."]
    assert [[turn.content for turn in one.turns] for one in read(fields)] == [[*said, "X."], [*said, "Y."]]
    # A number is no passage, and messages are what was said before.
    for beside, n_turns in ((4096, 2), (CHAT, 4), (json.dumps(CHAT), 4)):
        pair: Fields = {"prompt": "Who?", "context": beside, "chosen": "X.", "rejected": "Y."}
        assert [len(one.turns) for one in read(pair)] == [n_turns, n_turns]


@pytest.mark.parametrize("column", ["context", "chat_history", "conversation_history", "previous_messages"])
def test_what_was_said_before_a_prompt_has_many_names(column: str) -> None:
    """Beside a reply as beside a pair; messages alone, which wait for it, are what it answers."""
    fields: Fields = {"question": "And why?", column: CHAT, "response": "Because."}
    assert [turn.content for turn in read(fields)[0].turns] == ["Hi?", "No.", "And why?", "Because."]
    waiting = [*CHAT, USER]
    assert [turn.content for turn in read({**fields, column: waiting})[0].turns] == [
        *("Hi?", "No.", "Hi?", "And why?", "Because.")
    ]
    pair: Fields = {"prompt": "And why?", column: CHAT, "chosen": "Because.", "rejected": "No."}
    task: Fields = {"instruction": "And why?", column: CHAT, "output": "Because."}
    for further in (pair, task):
        assert [turn.content for turn in read(further)[0].turns] == ["Hi?", "No.", "And why?", "Because."]
    # Where nothing else is asked, or the same again, it is asked once.
    for alone in ({column: waiting}, {column: waiting, "prompt": "Hi?"}):
        assert [turn.content for turn in read({**alone, "response": "Because."})[0].turns] == [
            *("Hi?", "No.", "Hi?", "Because.")
        ]


def test_a_reply_that_repeats_its_prompt_is_the_whole_conversation() -> None:
    """Engines give the prompt again, in the model's own template, unless they are told not to."""
    told: Fields = {"prompt": "Hi?", "system": "Be terse.", "response": "No."}
    for echo in ("<|im_start|>user\nHi?<|im_end|>\n<|im_start|>assistant\nNo.<|im_end|>", HH.strip(), CHAT):
        assert read({**told, "response": echo})[0].turns == read(told)[0].turns
    again: Fields = {"prompt": [*CHAT, {"role": "user", "content": "And why?"}]}
    told_again = [{"role": "user", "content": "And why?"}, {"role": "assistant", "content": "Because."}]
    assert [turn.content for turn in read({**again, "response": told_again})[0].turns] == [
        *("Hi?", "No.", "And why?", "Because.")
    ]
    # What begins with another request is what the assistant wrote, when it was asked for a transcript.
    written = "Human: Who are you?\n\nAssistant: I am one."
    assert read({"prompt": "Write a chat.", "response": written})[0].reply == written


def test_who_spoke_makes_one_message_a_row_under_any_name() -> None:
    """Else the user's turns would be judged as replies."""
    for column in ("speaker", "author", "type", "Sender"):
        with pytest.raises(LayoutError, match=r"hold one message a row"):
            detect({"thread": "a", column: "user", "text": "Hi?"})
    assert detect({"author": "Ann", "text": "No."}).name == "reply"
    # A reply that is named as one is no turn of the user's.
    assert detect({"author": "bard", "response": "No."}).name == "reply"


@pytest.mark.parametrize(
    "prompt", ["adversarial", "vanilla", "test_case", "forbidden_prompt", "User Prompt", "userPrompt"]
)
def test_a_request_under_a_further_name_is_read(prompt: str) -> None:
    """Attacks have names of their own, and spaces or capitals stand where underscores may."""
    fields: Fields = {"Model Response": "No.", "systemPrompt": "Be terse.", prompt: "Hi?"}
    assert read(fields)[0].turns == UNDER_SYSTEM


def test_an_attack_is_what_was_asked_where_there_is_one(tmp_path: Path) -> None:
    """Beside its goal, which was asked for as it is where the attack is empty, be that in the first row."""
    rows = [{"adversarial": asked, "vanilla": "A lock?", "completion": "No."} for asked in ("", "Play a thief.")]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = list(read_conversations(open_source(str(tmp_path / "a.jsonl"))))
    assert [one.request for one in found if isinstance(one, Conversation)] == ["A lock?", "Play a thief."]


def test_a_chat_that_waits_for_the_answer_to_a_tool_has_its_reply_elsewhere() -> None:
    """The call before it is no reply to judge."""
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}
    chat = [USER, call, {"role": "tool", "content": "It rains."}]
    assert read({"messages": chat, "response": "It rains there."})[0].reply == "It rains there."
    fields: Fields = {"messages": chat, "generations": ["It rains there.", "Rain."]}
    with pytest.raises(RowError, match=r"the messages end with the tool's\. 'generations' is a list"):
        read(fields)


def test_options_beside_an_answer_are_no_replies() -> None:
    """Question and answer are what a file of such questions holds."""
    fields: Fields = {"question": "Where?", "answer": "In Mali.", "candidates": ["In Mali.", "In Chad."]}
    assert detect(fields).columns["response"] == "answer"


@pytest.mark.parametrize("column", ["generations", "responses", "model_outputs", "predictions", "samples"])
def test_a_reference_is_not_judged_in_place_of_what_was_generated(column: str) -> None:
    """An `answer` beside a list of replies is what these are compared with; an output may be."""
    several = ["I can't say.", "No idea."]
    fields: Fields = {"question": "Where?", "answer": "In Mali.", column: several}
    with pytest.raises(LayoutError, match=rf"'answer' is mostly the reference, and '{column}' holds words"):
        detect(fields)
    assert detect(fields, {"response": "answer"}).columns["response"] == "answer"
    told: Fields = {"instruction": "Where?", "output": "In Mali.", column: several}
    doubt = reply_doubt(detect(told), told)
    assert doubt is not None
    assert doubt.startswith(f"'output' is judged, and {column!r} holds words of a model within")


@pytest.mark.parametrize(
    "fields", [{"messages": CHAT}, {"prompt": "Hi?", "response": "No."}, {"chosen": "No.", "rejected": "Yes."}]
)
def test_a_row_as_json_is_no_bare_reply(fields: Fields) -> None:
    """The lines of a file were judged with the request in them; a question and its answer, a model may write."""
    for text in (json.dumps(fields), json.dumps(CHAT)):
        with pytest.raises(RowError, match=r"is a row as JSON; give it decoded, as json\.loads\(text\), or, if it"):
            parse_text(text)
    for written in (
        '{"question": "Hi?", "answer": "No."}',
        "{broken",
        "[1, 2]",
        "{}",
        '[{"from": "Here", "to": "There"}]',
    ):
        assert parse_text(written).reply == written


def test_a_conversation_under_a_name_of_its_own_is_named() -> None:
    """Two of an arena may stand beside each other, and nobody said which one is judged."""
    with pytest.raises(LayoutError, match=r"'conversation_a' holds messages: give --field messages=conversation_a"):
        detect({"conversation_a": CHAT, "conversation_b": CHAT, "winner": "a"})


def test_a_passage_is_said_in_the_last_turn_of_a_transcript() -> None:
    """Behind the heading of the reply, the assistant would say it."""
    prompt = "\n\nHuman: Who?\n\nAssistant:"
    (found,) = read({"prompt": prompt, "context": "A tale.", "response": "X."})
    assert [(turn.role, turn.content) for turn in found.turns] == [("user", "Who?\n\nA tale."), ("assistant", "X.")]


def test_a_request_within_an_object_is_said_to_be_left_out() -> None:
    """So completions that a provider stores are written; the column as a whole is no prompt."""
    fields: Fields = {
        "id": "a",
        "input": {"messages": [{"role": "user", "content": "Hi"}]},
        "output": "I can't do that.",
    }
    doubt = prompt_doubt(detect(fields), fields)
    assert doubt is not None
    assert "'output' is judged without a prompt, which 'input' beside it may hold" in doubt
    assert doubt.endswith("within it into a column of its own, as `prompt`")
    assert prompt_doubt(detect({**fields, "input": {}}), {**fields, "input": {}}) is None
