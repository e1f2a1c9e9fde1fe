"""A source is read as conversations, each file in its own layout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demur.conversation import Conversation, Turn
from demur.data.reading import read_conversations
from demur.data.rows import BrokenRow
from demur.data.sources import open_source
from demur.errors import LayoutError, SourceError
from demur.studies.memory import RowReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from demur.data.shapes import Layout

Fields = dict[str, object]

CHAT = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "No."}]
PAIR: Fields = {"prompt": "Hi?", "response": "No."}


def write(path: Path, *rows: object) -> None:
    """Write one JSON value a line; a bare `bytes` goes in as it is."""
    path.write_bytes(b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows))


def outline(items: Iterable[Conversation | BrokenRow]) -> list[tuple[int, str]]:
    """Say position and reply, or the reason why there is none."""
    return [
        (item.row_id, item.reply) if isinstance(item, Conversation) else (item.position, item.error.reason)
        for item in items
    ]


def test_conversations_and_broken_rows_come_in_order(tmp_path: Path) -> None:
    """Every row leaves a trace."""
    null = {"messages": [{"role": "assistant", "content": None}]}
    write(tmp_path / "a.jsonl", {"messages": CHAT}, b"{\n", null, {"messages": CHAT[:1]}, {"messages": CHAT})
    items = read_conversations(open_source(str(tmp_path)))
    assert outline(items) == [
        (0, "No."),
        (1, "unreadable_row"),
        (2, "null_content"),
        (3, "no_assistant_turn"),
        (4, "No."),
    ]


OPEN = [*CHAT, {"role": "user", "content": "And now?"}]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": OPEN, "response": "Never."},
        {"messages": OPEN, "chosen": "Never.", "rejected": "Never."},
        {"messages": json.dumps(OPEN), "response": "Never."},
    ],
)
def test_the_reply_to_a_chat_that_waits_for_one_stands_beside_it(tmp_path: Path, row: Fields) -> None:
    """Whatever the first row of the file was, and though an earlier turn could be taken for it."""
    whole = {"messages": CHAT, **dict.fromkeys(row.keys() - {"messages"})}
    write(tmp_path / "a.jsonl", whole, row)
    items = list(read_conversations(open_source(str(tmp_path / "a.jsonl"))))
    assert outline(items)[0] == (0, "No.")
    assert {one.reply for one in items[1:] if isinstance(one, Conversation)} == {"Never."}
    assert all(len(one.turns) == 4 for one in items[1:] if isinstance(one, Conversation))


ASKED = "Write a training example."
MADE = [{"role": "user", "content": "How do I pick a lock?"}, {"role": "assistant", "content": "I can't help."}]


@pytest.mark.parametrize("column", ["response", "chosen"])
def test_messages_that_the_assistant_wrote_are_its_reply(tmp_path: Path, column: str) -> None:
    """Those that repeat the prompt are the conversation, as tables hold it."""
    said = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": "No."}]
    other = {} if column == "response" else {"rejected": "No."}
    rows = [{"prompt": ASKED, column: json.dumps(given), **other} for given in (MADE, MADE[:1], said, said[1:])]
    write(tmp_path / "a.jsonl", *rows)
    items = read_conversations(open_source(str(tmp_path / "a.jsonl")))
    replies = [one.reply for one in items if isinstance(one, Conversation) and one.side in (None, "chosen")]
    assert replies == [json.dumps(MADE), json.dumps(MADE[:1]), "No.", "No."]


def test_a_history_is_read_or_its_row_is_broken(tmp_path: Path) -> None:
    """The last question may wait for its answer."""
    histories = [[["a", "b"]], [["a", "b"], ["c", None]], [{"user": "a"}], None, [["a", "b", "c"]]]
    write(tmp_path / "a.jsonl", *({"prompt": "Q", "response": "No.", "history": each} for each in histories))
    items = list(read_conversations(open_source(str(tmp_path / "a.jsonl"))))
    turns = [len(one.turns) if isinstance(one, Conversation) else one.error.message[:22] for one in items]
    assert turns == [4, 5, "history cannot be read", 2, "history cannot be read"]


def test_printed_messages_are_known_whatever_stands_before_the_role(tmp_path: Path) -> None:
    """A text that Python printed is never a reply, though nothing can be read from it."""
    first = {"content": "Print {x}.", "header": {"a": 1}, "at": "datetime", "role": "user"}
    printed = str([first, {"content": "No.", "role": "assistant"}])
    write(tmp_path / "a.jsonl", {"conversation": printed}, {"conversation": printed.replace("'datetime'", "now()")})
    assert outline(read_conversations(open_source(str(tmp_path / "a.jsonl")))) == [(0, "No."), (1, "unreadable_row")]


@pytest.mark.parametrize("layout", [None, "openai"])
def test_a_text_in_place_of_a_conversation_is_no_reply(tmp_path: Path, layout: str | None) -> None:
    """Whoever wrote "N/A" is no assistant; a transcript is a conversation, unless the layout was named."""
    told = "<|user|>Hi?<|assistant|>Never."
    write(tmp_path / "a.jsonl", *({"messages": each} for each in (CHAT, "N/A", json.dumps(CHAT)[:-9], told, CHAT)))
    found = outline(read_conversations(open_source(str(tmp_path / "a.jsonl")), layout=layout))
    of_transcript = (3, "Never.") if layout is None else (3, "unreadable_row")
    assert found == [(0, "No."), (1, "unreadable_row"), (2, "unreadable_row"), of_transcript, (4, "No.")]


def test_an_open_quote_in_a_tsv_swallows_no_rows_in_silence(tmp_path: Path) -> None:
    """A later quote closes the cell, so that nothing else tells."""
    lines = ["prompt\tresponse", 'a\t"Yes he said', "b\tI can't help.", 'c\tok "', "d\tNo.", 'e\t"one\ntwo"', ""]
    (tmp_path / "a.tsv").write_text("\n".join(lines))
    items = list(read_conversations(open_source(str(tmp_path / "a.tsv"))))
    assert outline(items) == [(0, "unreadable_row"), (1, "No."), (2, "one\ntwo")]
    assert isinstance(items[0], BrokenRow)
    assert "took in the lines up to 4" in items[0].error.message


def test_of_several_lists_the_one_with_conversations_is_the_data(tmp_path: Path) -> None:
    """Logs of evaluations keep figures beside their samples."""
    samples = [{"id": 1, "messages": CHAT}, {"id": 2, "messages": CHAT}]
    figures = [{"scorer": "match", "value": 0.5}]
    log = {"status": "success", "samples": samples, "reductions": figures}
    (tmp_path / "log.json").write_text(json.dumps(log))
    assert outline(read_conversations(open_source(str(tmp_path / "log.json")))) == [(0, "No."), (1, "No.")]
    (tmp_path / "log.json").write_text(json.dumps({**log, "more": samples}))
    with pytest.raises(SourceError, match="holds several lists of objects"):
        list(read_conversations(open_source(str(tmp_path / "log.json"))))


def test_the_output_beside_what_was_expected_is_the_reply(tmp_path: Path) -> None:
    """So tools that test models name it."""
    write(tmp_path / "a.jsonl", {"input": "Q", "actual_output": "No.", "expected_output": "Yes, with pleasure."})
    (item,) = read_conversations(open_source(str(tmp_path / "a.jsonl")))
    assert isinstance(item, Conversation)
    assert [turn.content for turn in item.turns] == ["Q", "No."]


def test_each_file_is_read_in_its_own_layout_and_the_user_is_told(tmp_path: Path) -> None:
    """The callback comes before the first conversation of the file."""
    write(tmp_path / "a.jsonl", b"{\n", {"messages": CHAT})
    write(tmp_path / "b.jsonl", PAIR, PAIR)
    write(tmp_path / "c.jsonl", {"chosen": "No.", "rejected": "Yes."})
    told: list[tuple[str, str]] = []

    def tell(file: str, layout: Layout) -> None:
        told.append((file.removeprefix(f"{tmp_path}/"), str(layout)))

    items = read_conversations(open_source(str(tmp_path)), on_layout=tell)
    assert outline(items) == [(0, "unreadable_row"), (1, "No."), (2, "No."), (3, "No."), (4, "No."), (4, "Yes.")]
    assert told == [
        ("a.jsonl", "openai: messages=messages"),
        ("b.jsonl", "prompt_response: prompt=prompt response=response"),
        ("c.jsonl", "preference: chosen=chosen rejected=rejected"),
    ]


def test_a_row_that_does_not_fit_its_file_is_read_in_its_own_layout(tmp_path: Path) -> None:
    """It is broken only if it fits none."""
    write(tmp_path / "a.jsonl", PAIR, {"messages": CHAT}, {"id": 3}, PAIR)
    items = read_conversations(open_source(str(tmp_path)))
    assert outline(items) == [(0, "No."), (1, "No."), (2, "unreadable_row"), (3, "No.")]


def test_a_first_row_that_fits_no_layout_is_broken_alone(tmp_path: Path) -> None:
    """What follows it says how the file is laid out."""
    write(tmp_path / "a.jsonl", b"{\n", {"id": 3}, PAIR)
    items = read_conversations(open_source(str(tmp_path)))
    assert outline(items) == [(0, "unreadable_row"), (1, "unknown_layout"), (2, "No.")]


@pytest.mark.parametrize(("odd", "good"), [("a.csv", "b.jsonl"), ("b.csv", "a.jsonl")], ids=["first", "last"])
def test_a_file_that_fits_no_layout_breaks_its_rows_whatever_its_name(tmp_path: Path, odd: str, good: str) -> None:
    """An audit of a folder does not hang on the order of its files, be the odd one ever so long."""
    (tmp_path / odd).write_text("id,size\n" + "3,4\n" * 150)
    write(tmp_path / good, PAIR)
    found = outline(read_conversations(open_source(str(tmp_path))))
    assert sorted(what for _, what in found) == ["No.", *["unknown_layout"] * 150]


@pytest.mark.parametrize("n_files", [1, 2])
@pytest.mark.parametrize("n_rows", [2, 150])
def test_a_source_that_fits_no_layout_is_one_error(tmp_path: Path, n_files: int, n_rows: int) -> None:
    """Its first place and columns are named, and no row of it was handed on."""
    for name in ("a.jsonl", "b.jsonl")[:n_files]:
        write(tmp_path / name, *[{"id": 3}] * n_rows)
    with pytest.raises(LayoutError, match=r"a\.jsonl:1: the columns id .int. fit no layout"):
        next(read_conversations(open_source(str(tmp_path))))


def test_a_later_file_that_fits_no_layout_gives_broken_rows(tmp_path: Path) -> None:
    """Until a row of it does fit one."""
    write(tmp_path / "a.jsonl", PAIR)
    write(tmp_path / "b.jsonl", {"id": 3}, {"id": 4}, PAIR)
    items = read_conversations(open_source(str(tmp_path)))
    assert outline(items) == [(0, "No."), (1, "unknown_layout"), (2, "unknown_layout"), (3, "No.")]


def test_a_named_layout_is_kept_to(tmp_path: Path) -> None:
    """A row of another layout is broken, for the user has said what the rows are."""
    write(tmp_path / "a.jsonl", {"q": "Hi?", "a": "No."}, {"messages": CHAT})
    source = open_source(str(tmp_path))
    items = read_conversations(source, layout="prompt_response", fields={"prompt": "q", "response": "a"})
    assert outline(items) == [(0, "No."), (1, "unreadable_row")]


def test_columns_may_be_named_without_a_layout(tmp_path: Path) -> None:
    """The layout is the one that has these parts."""
    write(tmp_path / "a.jsonl", {"question": "Hi?", "gold": "Yes.", "generated": "No."})
    items = read_conversations(open_source(str(tmp_path)), fields={"response": "generated"})
    assert outline(items) == [(0, "No.")]


def test_an_unknown_layout_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    """No row has been asked for yet."""
    write(tmp_path / "a.jsonl", PAIR)
    with pytest.raises(LayoutError, match="no layout 'x'"):
        read_conversations(open_source(str(tmp_path)), layout="x")


def test_limit_and_turns_are_passed_on(tmp_path: Path) -> None:
    """The limit counts rows; a row may give several conversations."""
    write(tmp_path / "a.jsonl", {"messages": [*CHAT, *CHAT]}, {"messages": CHAT})
    source = open_source(str(tmp_path))
    assert outline(read_conversations(source, turns="all", limit=1)) == [(0, "No."), (0, "No.")]


def test_a_source_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """Errors of the source pass through."""
    write(tmp_path / "a.jsonl", b"prose\n")
    with pytest.raises(SourceError, match="none of its first 1 rows"):
        list(read_conversations(open_source(str(tmp_path))))


def test_the_example_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """320 rows in five layouts, 40 of them with two sides: 280 + 2 x 40 = 360 replies, none broken."""
    monkeypatch.chdir(tmp_path)
    layouts: list[str] = []
    items = list(read_conversations(open_source("example"), on_layout=lambda _, layout: layouts.append(layout.name)))
    assert layouts == ["openai", "sharegpt", "alpaca", "preference", "prompt_response"]
    assert len(items) == 360
    assert all(isinstance(item, Conversation) and item.context for item in items)


def test_settings_beside_the_data_are_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They take no position and count for no limit; a single JSON object that is a conversation is read."""
    for name in ("a_config.json", "dataset_infos.json"):
        (tmp_path / name).write_text(json.dumps({"architectures": ["Bert"], "hidden_size": 2}, indent=1))
    write(tmp_path / "b.jsonl", PAIR)
    write(tmp_path / "c.json", {"messages": CHAT})
    items = read_conversations(open_source(str(tmp_path)), limit=2)
    assert outline(items) == [(0, "No."), (1, "No.")]
    assert f"{tmp_path}/a_config.json is left out" in caplog.text


def test_a_setting_that_is_given_as_the_only_file_is_an_error(tmp_path: Path) -> None:
    """Who names a file means it."""
    (tmp_path / "config.json").write_text('{"hidden_size": 2}')
    with pytest.raises(LayoutError, match=r"config\.json:1: the columns hidden_size \(int\) fit no layout"):
        list(read_conversations(open_source(str(tmp_path / "config.json"))))


def test_nothing_but_settings_is_nothing_to_read(tmp_path: Path) -> None:
    """An audit of no rows is no result."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"hidden_size": 2}')
    with pytest.raises(SourceError, match="holds no rows"):
        list(read_conversations(open_source(str(tmp_path))))


def test_a_misspelt_choice_of_turns_is_refused_at_the_call(tmp_path: Path) -> None:
    """It would be taken for `all`."""
    write(tmp_path / "a.jsonl", PAIR)
    with pytest.raises(ValueError, match="turns is 'lats'; give 'last' or 'all'"):
        read_conversations(open_source(str(tmp_path)), turns="lats")  # type: ignore[arg-type]


@pytest.mark.parametrize("message", [CHAT[0], {"from": "human", "value": "Hi?"}], ids=["role", "from"])
def test_a_file_of_one_message_a_row_is_an_error(tmp_path: Path, message: object) -> None:
    """Each turn would be judged as a reply of its own, the user's too."""
    write(tmp_path / "a.jsonl", message)
    with pytest.raises(LayoutError, match=r"a\.jsonl:1: the columns .* one message a row; group them under `messages`"):
        list(read_conversations(open_source(str(tmp_path))))


LATER: Mapping[str, tuple[Fields, Fields, tuple[tuple[str, str], ...]]] = {
    "alpaca": (
        {"instruction": "a", "output": "b"},
        {"instruction": "Sum.", "input": "1 2", "output": "No.", "system": "Be terse."},
        (("system", "Be terse."), ("user", "Sum.\n\n1 2"), ("assistant", "No.")),
    ),
    "prompt and response": (
        PAIR,
        {**PAIR, "system": "Be terse."},
        (("system", "Be terse."), ("user", "Hi?"), ("assistant", "No.")),
    ),
    "bare reply": ({"response": "Yes."}, PAIR, (("user", "Hi?"), ("assistant", "No."))),
    "preference": (
        {"chosen": "a", "rejected": "b"},
        {"prompt": "Hi?", "chosen": "Yes.", "rejected": "No."},
        (("user", "Hi?"), ("assistant", "No.")),
    ),
    "preference under messages": (
        {"chosen": "a", "rejected": "b"},
        {"messages": CHAT[:1], "chosen": "Yes.", "rejected": "No."},
        (("user", "Hi?"), ("assistant", "No.")),
    ),
    "prompt under another name": (
        {"prompt": "a", "question": None, "response": "b"},
        {"prompt": None, "question": "Hi?", "response": "No."},
        (("user", "Hi?"), ("assistant", "No.")),
    ),
    "context in place of an input": (
        {"instruction": "a", "input": "b", "context": "", "output": "c"},
        {"instruction": "Sum.", "input": "", "context": "1 2", "output": "No."},
        (("user", "Sum.\n\n1 2"), ("assistant", "No.")),
    ),
}


@pytest.mark.parametrize(("first", "second", "turns"), LATER.values(), ids=LATER)
def test_a_part_that_the_first_row_does_not_have_is_read_all_the_same(
    tmp_path: Path, first: Fields, second: Fields, turns: tuple[tuple[str, str], ...]
) -> None:
    """Files leave out the keys of what is empty."""
    write(tmp_path / "a.jsonl", first, second)
    *_, last = read_conversations(open_source(str(tmp_path)))
    assert isinstance(last, Conversation)
    assert tuple((turn.role, turn.content) for turn in last.turns) == turns


@pytest.mark.parametrize(("first", "second", "turns"), LATER.values(), ids=LATER)
def test_rows_in_memory_are_read_as_those_of_a_file(
    first: Fields, second: Fields, turns: tuple[tuple[str, str], ...]
) -> None:
    """The first row hides no part of those that follow."""
    reader = RowReader(None, {}, "last", None)
    *_, last = (item for position, row in enumerate((first, second)) for item in reader.read(position, row))
    assert isinstance(last, Conversation)
    assert tuple((turn.role, turn.content) for turn in last.turns) == turns


MERGED: Mapping[str, tuple[Fields, Fields]] = {
    "pairs, then messages": (
        {"prompt": "Hi?", "response": "Yes.", "messages": None},
        {"prompt": None, "response": None, "messages": CHAT},
    ),
    "messages, then pairs": ({"messages": [*CHAT[:1], {**CHAT[1], "content": "Yes."}]}, {**PAIR, "messages": []}),
    "messages, then an open chat": (
        {"messages": [*CHAT[:1], {**CHAT[1], "content": "Yes."}]},
        {"messages": CHAT[:1], "response": "No."},
    ),
    "pairs under two names": (
        {"prompt": "Hi?", "response": "Yes.", "question": None, "output": None},
        {"prompt": None, "response": None, "question": "Hi?", "output": "No."},
    ),
    "pairs with empty cells": (
        {"prompt": "Hi?", "response": "Yes.", "question": "", "output": ""},
        {"prompt": "", "response": "", "question": "Hi?", "output": "No."},
    ),
    "instructions and pairs": (
        {"instruction": "Hi?", "output": "Yes.", "prompt": None, "completion": None},
        {"instruction": None, "output": None, "prompt": "Hi?", "completion": "No."},
    ),
}


@pytest.mark.parametrize(("first", "second"), MERGED.values(), ids=MERGED)
def test_merged_tables_are_read_in_either_order(tmp_path: Path, first: Fields, second: Fields) -> None:
    """Each row has the columns of the other kind, with nothing in them; rows in memory are read alike."""
    for rows, replies in (([first, second], ["Yes.", "No."]), ([second, first], ["No.", "Yes."])):
        write(tmp_path / "a.jsonl", *rows)
        assert outline(read_conversations(open_source(str(tmp_path)))) == list(enumerate(replies))
        reader = RowReader(None, {}, "last", None)
        read = [item for position, row in enumerate(rows) for item in reader.read(position, row)]
        assert outline(read) == list(enumerate(replies))
        assert [one.context for one in read if isinstance(one, Conversation)] == [(Turn("user", "Hi?"),)] * 2


@pytest.mark.parametrize("nothing", [None, ""], ids=["null", "empty"])
@pytest.mark.parametrize("reference", ["answer", "completion", "text"])
def test_a_reply_that_is_not_there_is_sought_nowhere_else(
    tmp_path: Path, nothing: str | None, reference: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What stands beside it may be the reference; a line says so where that is the first row."""
    lost: Fields = {"prompt": "Hi?", "response": nothing, reference: "I do not know."}
    write(tmp_path / "a.jsonl", lost, {**lost, "response": "No."})
    assert outline(read_conversations(open_source(str(tmp_path)))) == [
        (0, "null_content" if nothing is None else ""),
        (1, "No."),
    ]
    assert f"'response' is judged, and {reference!r} beside it may be the reply" in caplog.text


@pytest.mark.parametrize("nothing", [None, ""], ids=["null", "empty"])
@pytest.mark.parametrize("beside", [{"user": "u_8812"}, {"user": 8812}, {"input": "0.3"}, {"query": 8812}], ids=str)
def test_what_stands_beside_an_empty_prompt_is_none(tmp_path: Path, nothing: str | None, beside: Fields) -> None:
    """It is who asked, or a number of a table."""
    write(tmp_path / "a.jsonl", {"prompt": "Hi?", "response": "Yes."}, {"prompt": nothing, "response": "No.", **beside})
    *_, last = read_conversations(open_source(str(tmp_path)))
    assert isinstance(last, Conversation)
    assert last.turns == (Turn("assistant", "No."),)


def test_a_reply_that_cannot_be_read_is_sought_nowhere_else(tmp_path: Path) -> None:
    """The answer beside it is the reference."""
    write(tmp_path / "a.jsonl", {**PAIR, "answer": "Hi!"}, {**PAIR, "response": {"text": "No."}, "answer": "Hi!"})
    assert outline(read_conversations(open_source(str(tmp_path)))) == [(0, "No."), (1, "unreadable_row")]


def test_a_column_that_is_given_is_kept_to_where_it_holds_nothing(tmp_path: Path) -> None:
    """Another prompt may be the bare question within a template."""
    row: Fields = {"prompt": "Hi?", "template": "", "response": "No."}
    write(tmp_path / "a.jsonl", {**row, "template": "Say: Hi?"}, row)
    *_, last = read_conversations(open_source(str(tmp_path)), fields={"prompt": "template"})
    assert isinstance(last, Conversation)
    assert last.turns == (Turn("assistant", "No."),)


def test_a_text_beside_a_reply_that_is_not_there_is_no_reply(tmp_path: Path) -> None:
    """It may be a title; and of a layout that was named, no other is tried."""
    write(tmp_path / "a.jsonl", {"messages": CHAT}, {"messages": [], "text": "A greeting"}, {"messages": [], **PAIR})
    items = read_conversations(open_source(str(tmp_path)))
    assert outline(items) == [(0, "No."), (1, "no_assistant_turn"), (2, "No.")]
    items = read_conversations(open_source(str(tmp_path)), layout="openai")
    assert outline(items) == [(0, "No."), (1, "no_assistant_turn"), (2, "no_assistant_turn")]


def test_a_null_reply_costs_itself_and_no_other(tmp_path: Path) -> None:
    """It keeps its side and its turn; rows in memory are read alike."""
    gap = [*CHAT, {"role": "assistant", "content": None}, {"role": "tool", "content": "x"}, CHAT[1]]
    rows: list[Fields] = [
        {"messages": gap},
        {"prompt": "Hi?", "chosen": "No.", "rejected": None},
        {"chosen": CHAT[:1], "rejected": CHAT},
    ]
    write(tmp_path / "a.jsonl", *rows)
    expected = [
        ("No.", None, 0),
        ("null_content", None, 1),
        ("No.", None, 2),
        ("No.", "chosen", 0),
        ("null_content", "rejected", 0),
        ("no_assistant_turn", "chosen", 0),
        ("No.", "rejected", 0),
    ]
    reader = RowReader(None, {}, "all", None)
    for items in (
        list(read_conversations(open_source(str(tmp_path)), turns="all")),
        [item for position, row in enumerate(rows) for item in reader.read(position, row)],
    ):
        assert [what for _, what in outline(items)] == [what for what, _, _ in expected]
        assert [(item.side, item.turn) for item in items] == [(side, turn) for _, side, turn in expected]


def test_a_side_that_is_null_in_the_first_row_is_read_in_the_second(tmp_path: Path) -> None:
    """Null names no side, and hides none."""
    write(tmp_path / "a.jsonl", {**PAIR, "side": None}, {**PAIR, "side": "chosen"})
    items = read_conversations(open_source(str(tmp_path)))
    assert [item.side for item in items if isinstance(item, Conversation)] == [None, "chosen"]


def test_a_bare_reply_keeps_its_column(tmp_path: Path) -> None:
    """Another column that could hold a reply is not taken in the middle of a file."""
    write(tmp_path / "a.jsonl", {"text": "No."}, {"text": "Yes.", "answer": "gold"})
    assert outline(read_conversations(open_source(str(tmp_path)))) == [(0, "No."), (1, "Yes.")]


def test_a_named_bare_reply_stays_one(tmp_path: Path) -> None:
    """The user has said that the prompt is not to be read."""
    write(tmp_path / "a.jsonl", {"response": "Yes."}, PAIR)
    *_, last = read_conversations(open_source(str(tmp_path)), layout="reply")
    assert isinstance(last, Conversation)
    assert len(last.turns) == 1


def test_a_single_message_among_bare_replies_breaks_its_row(tmp_path: Path) -> None:
    """It may be the user's."""
    write(tmp_path / "a.jsonl", {"content": "No."}, {"role": "user", "content": "Hi?"}, {"content": "Yes."})
    items = read_conversations(open_source(str(tmp_path)))
    assert outline(items) == [(0, "No."), (1, "unknown_layout"), (2, "Yes.")]


@pytest.mark.parametrize("nothing", [None, [], ""], ids=["null", "no messages", "empty"])
def test_a_first_row_without_a_conversation_hides_no_layout(tmp_path: Path, nothing: object) -> None:
    """It is broken alone."""
    chat = [{"from": "human", "value": "Hi?"}, {"from": "gpt", "value": "No."}]
    write(tmp_path / "a.jsonl", {"conversations": nothing, "id": 1}, {"conversations": chat, "id": 2})
    first, second = read_conversations(open_source(str(tmp_path)))
    assert isinstance(first, BrokenRow)
    assert isinstance(second, Conversation)
    assert (second.row_id, second.reply) == (1, "No.")


def test_a_list_of_messages_with_parents_is_no_single_conversation(tmp_path: Path) -> None:
    """They are of many trees."""
    tree = [
        {"text": "Hi?", "role": "prompter", "parent_id": None},
        {"text": "No.", "role": "assistant", "parent_id": 1},
    ]
    (tmp_path / "a.json").write_text(json.dumps(tree))
    with pytest.raises(LayoutError, match="hold one message a row"):
        list(read_conversations(open_source(str(tmp_path))))


def test_a_reply_that_is_bytes_of_no_text_is_unscored_alone(tmp_path: Path) -> None:
    """Older programs write texts as bytes; the good ones of the batch are read."""
    replies = [b"No.", b"caf\xe9", b"Yes."]
    pq.write_table(pa.table({"prompt": [b"Hi?"] * 3, "response": replies}), tmp_path / "a.parquet")
    items = read_conversations(open_source(str(tmp_path)))
    assert outline(items) == [(0, "No."), (1, "unreadable_row"), (2, "Yes.")]


def test_a_file_in_another_encoding_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What Excel saves as CSV in Europe: exactly the rows with umlauts are lost, which has to be seen."""
    (tmp_path / "a.csv").write_bytes("text\nNein.\nÜber nichts.\nJa.\nSchön.\n".encode("cp1252"))
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "No."}\n{"text": "\xff"}\n')
    found = read_conversations(open_source(str(tmp_path)))
    reasons = [one.error.reason for one in found if isinstance(one, BrokenRow)]
    assert reasons == ["not_utf8", "not_utf8", "not_utf8"]
    of_table, of_lines = (record.message for record in caplog.records)
    assert of_table == (
        f"{tmp_path}/a.csv:3: the row holds bytes that are not UTF-8 (0xdc); save the file as UTF-8, in Excel as "
        "CSV UTF-8. This and other such rows of the file are unscored"
    )
    assert of_lines.startswith(f"{tmp_path}/b.jsonl:2: not UTF-8 (byte 0xff at 10); save as UTF-8.")
