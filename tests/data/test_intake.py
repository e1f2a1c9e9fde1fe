"""What a caller holds in memory is taken as conversations, or refused with what would be right."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from demur.conversation import Conversation, Turn
from demur.data.intake import as_conversations
from demur.errors import LayoutError, RowError

PAIR = (Turn("user", "Hi?"), Turn("assistant", "No."))
CHAT = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "No."}]


def taken(*items: Any) -> list[Conversation]:
    """Take items that a type checker may refuse."""
    return list(as_conversations(items))


def test_a_conversation_is_taken_as_it_is() -> None:
    """Its own row is kept: whoever made it may have read it from a file."""
    given = Conversation(PAIR, row_id=7, side="chosen", turn=2)
    assert taken(given) == [given]


def test_a_string_is_read_as_text_and_placed() -> None:
    """Role tokens and hh transcripts make turns; any other text is a bare reply."""
    texts = ("<|user|>Hi?<|assistant|>No.", "\n\nHuman: Hi?\n\nAssistant: No.", "No.")
    assert taken(*texts) == [
        Conversation(PAIR, row_id=0),
        Conversation(PAIR, row_id=1),
        Conversation(PAIR[1:], row_id=2),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "User: I can't write poems.\nAssistant: Roses are red.",
        "Human: I can't write poems.\nAssistant: Roses are red.",
        "<s>[INST] I can't bake. Can you? [/INST] Sure.",
    ],
)
def test_a_transcript_that_is_not_read_is_no_reply(text: str) -> None:
    """The user's words would be judged as the assistant's; a row with this text is refused as well."""
    with pytest.raises(RowError, match=r"items:1: begins as a transcript with '.*'; give its turns as messages"):
        taken(text)


def test_a_reply_may_begin_with_a_speaker() -> None:
    """Where nobody answers, it is no transcript."""
    (read,) = taken("User: who goes there? Such are the first words of my play.")
    assert len(read.turns) == 1


def test_thinking_in_front_of_a_reply_is_set_apart() -> None:
    """A conversation built by hand is judged by the same text as one that was read from a file."""
    (read,) = taken(Conversation.of("Hi?", "<think>I must refuse.</think>\n\nYes."))
    assert (read.reply, read.reasoning) == ("Yes.", "I must refuse.")
    (empty,) = taken(Conversation.of("Hi?", "<think>\n</think>Yes."))
    assert (empty.reply, empty.reasoning) == ("Yes.", None)


def test_thinking_that_stands_apart_already_is_left_alone() -> None:
    """What then begins with a block is what the reply says."""
    given = Conversation(
        (Turn("assistant", "<think> opens a block."),),
        reasoning="They ask for the tag.",
    )
    assert taken(given) == [given]


def test_a_dict_is_read_as_a_row_and_placed() -> None:
    """Any layout that a file may have; a preference pair gives both sides."""
    rows = ({"messages": CHAT}, {"prompt": "Hi?", "chosen": "No.", "rejected": "Yes."})
    assert [(read.row_id, read.side, read.reply) for read in taken(*rows)] == [
        (0, None, "No."),
        (1, "chosen", "No."),
        (1, "rejected", "Yes."),
    ]


def test_items_are_taken_one_at_a_time() -> None:
    """A generator without an end is no problem."""
    endless = as_conversations(iter(lambda: "No.", None))
    assert [next(endless).row_id for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    "single",
    ["No.", b"No.", Conversation(PAIR), {"messages": CHAT}],
    ids=["string", "bytes", "conversation", "dict"],
)
def test_a_single_one_is_refused_at_the_call(single: Any) -> None:
    """A string is an iterable of characters, each of which would get a verdict."""
    with pytest.raises(TypeError, match="takes several conversations; put a single one into a list"):
        as_conversations(single)


@pytest.mark.parametrize("item", [3, [3], b"No."], ids=["number", "list", "bytes"])
def test_an_item_of_another_type_is_refused_with_its_place(item: object) -> None:
    """The message says what was met and what is accepted."""
    met = type(item).__name__
    with pytest.raises(TypeError, match=rf"^items:2: a conversation is {met}; give a demur\.Conversation, a string"):
        taken("No.", item)


@pytest.mark.parametrize("missing", [None, float("nan")], ids=repr)
def test_a_missing_item_is_said_to_be_missing(missing: Any) -> None:
    """A column of a frame has some: to call it a float tells nobody what to do."""
    with pytest.raises(TypeError, match=rf"items:2 is missing \({missing!r}\); drop it, or use demur\.audit"):
        list(as_conversations(["No.", missing]))


def test_a_dict_without_a_layout_or_reply_is_an_error_with_its_place() -> None:
    """As in a file."""
    with pytest.raises(LayoutError, match=r"^items:2: the columns id \(int\) fit no layout"):
        taken("No.", {"id": 1})
    with pytest.raises(RowError, match=r"^items:2: no assistant turn"):
        taken("No.", {"messages": CHAT[:1]})


ROWS: list[dict[Any, Any]] = [{"messages": CHAT, "system": None}, {"messages": CHAT, "system": "Be terse."}]


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame(ROWS),
        [{**row, "messages": np.array(CHAT, dtype=object)} for row in ROWS],
        [{**ROWS[0], "system": math.nan, 0: pd.NA, None: ["surplus"]}, MappingProxyType(ROWS[1])],
    ],
    ids=["frame", "arrays", "cells of tables"],
)
def test_rows_are_read_however_tables_hold_them(given: Any) -> None:
    """A frame is an iterable of its columns' names; Parquet gives arrays, and `csv` puts surplus cells under None."""
    assert [one.turns for one in as_conversations(given)] == [PAIR, (Turn("system", "Be terse."), *PAIR)]


def test_a_frame_with_two_columns_of_a_name_is_refused() -> None:
    """One of them would be lost."""
    frame: Any = pd.DataFrame([["Q", "No.", "Yes."]], columns=["prompt", "response", "response"])
    with pytest.raises(LayoutError, match="names 'response' twice"):
        list(as_conversations(frame))
