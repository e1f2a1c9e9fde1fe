"""Annotations are read with who gave them, joined over files, and counted where they cannot be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Turn
from demur.data.annotated import Annotation, Annotator, read_annotated, take_annotated
from demur.errors import RowError, SourceError
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from pathlib import Path

TAXONOMY = Taxonomy.load()
MESSAGES = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "<think>hm</think>No."}]
ADA, BOT = Annotator("ada", "human"), Annotator("bot", "llm")


def write(path: Path, *rows: object) -> Path:
    """Write one JSON value a line; a string is written as it is."""
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def said(annotator: str = "ada", kind: str = "human", verdict: str | None = "none", **more: Any) -> dict[str, Any]:
    """Write one annotation."""
    return {"annotator": annotator, "kind": kind, "verdict": verdict, **more}


def row(name: str | None, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Write one row."""
    return {"id": name, "annotations": list(annotations), **more}


def test_a_row_is_read_with_all_that_was_said_of_it(tmp_path: Path) -> None:
    """Labels keep their order and stand once; the text is read as in an audit."""
    full = said(verdict="full", labels=["privacy", "skill_level", "privacy"], sure=2)
    path = write(tmp_path / "a.jsonl", row("r-1", full, said("bot", "llm"), source="s", messages=MESSAGES))
    (found,) = read_annotated([path], TAXONOMY).rows
    assert (found.id, found.source, found.where) == ("r-1", "s", f"{path}:1")
    assert found.conversation is not None
    assert found.conversation.turns == (Turn("user", "Hi?"), Turn("assistant", "No."))
    assert found.annotations == (Annotation(ADA, "full", ("privacy", "skill_level"), 2), Annotation(BOT, "none"))


def test_annotators_say_what_they_are_and_stand_in_order() -> None:
    """People first, numbers by size; the same name may be a person's and a model's."""
    given = [said("m_10", "llm"), said("m_2", "llm"), said("zoe"), said("m_2", "human")]
    found = take_annotated([row("r", *given)], TAXONOMY).annotators
    assert [str(one) for one in found] == ["m_2 (human)", "zoe (human)", "m_2 (LLM)", "m_10 (LLM)"]


def test_files_of_different_annotators_are_joined_by_id(tmp_path: Path) -> None:
    """One file each, the text in one of them; a file given twice says nothing new."""
    mine = write(tmp_path / "ada.jsonl", row("r-1", said(), messages=MESSAGES), row("r-2", said()))
    theirs = write(tmp_path / "bot.jsonl", row("r-2", said("bot", "llm")), row("r-1", said("bot", "llm", "full")))
    found = read_annotated([mine, theirs, mine], TAXONOMY)
    assert [(one.id, len(one.annotations)) for one in found.rows] == [("r-1", 2), ("r-2", 2)]
    assert found.rows[0].conversation is not None
    assert found.broken == ()
    assert found.name == f"{mine}, {theirs}, {mine}"


def test_one_reply_under_two_ids_with_other_annotators_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of them would stand alone, and nobody could agree."""
    mine = write(tmp_path / "ada.jsonl", row("r-1", said(), messages=MESSAGES))
    theirs = write(tmp_path / "bot.jsonl", row(None, said("bot", "llm"), messages=MESSAGES))
    assert len(read_annotated([mine, theirs], TAXONOMY).rows) == 2
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{theirs}:1: 1 of the replies stand again under another id, or none")
    caplog.clear()
    again = write(tmp_path / "again.jsonl", row("r-2", said(), messages=MESSAGES))
    read_annotated([mine, again], TAXONOMY)
    assert not caplog.records


def test_a_bit_is_no_verdict(tmp_path: Path) -> None:
    """Passed over, it would be an annotator that says nothing."""
    path = write(
        tmp_path / "a.jsonl", row("r-1", {"annotator": "ada", "kind": "human", "refusal": True}), row("r-2", said())
    )
    found = read_annotated([path], TAXONOMY)
    assert [one.id for one in found.rows] == ["r-2"]
    assert [error.message for error in found.broken] == [
        "'ada' gives refusal True, and no verdict; write verdict: full, partial, none"
    ]


def test_rows_without_an_id_are_replies_of_their_own() -> None:
    """Their place is their name; null is no name."""
    found = take_annotated([{"annotations": [said()]}, *[row(None, said(), source=None)] * 2], TAXONOMY)
    assert [one.id for one in found.rows] == ["items:1", "items:2", "items:3"]
    assert {one.source for one in found.rows} == {"unknown"}


def test_a_missing_verdict_is_a_missing_answer() -> None:
    """Null and absent alike: the row is read, and nothing is guessed."""
    absent = {"annotator": "bot", "kind": "llm", "label": "complied"}
    (found,) = take_annotated([row("r", said(verdict=None), absent)], TAXONOMY).rows
    assert [one.outcome for one in found.annotations] == [None, None]


def test_texts_are_looked_up_by_id_and_rows_chosen_by_split() -> None:
    """A row without a split is always read, and those of others are counted."""
    given = [row("r-1", said(), split="dev"), row("r-2", said(), split=2), row("r-3", said())]
    found = take_annotated(given, TAXONOMY, split="dev", texts={"r-3": MESSAGES})
    assert [(one.id, one.conversation is not None) for one in found.rows] == [("r-1", False), ("r-3", True)]
    assert found.other_splits == {"2": 1}
    assert [one.id for one in take_annotated(given, TAXONOMY, split="2").rows] == ["r-2", "r-3"]


@pytest.mark.parametrize(
    ("bad", "reason", "expected"),
    [
        ("{not json", "unreadable_row", "not JSON"),
        ([1], "unreadable_row", "a row is list"),
        ({"id": "b", "verdict": "full"}, "no_annotations", "no annotations among id, verdict"),
        ({"id": "b", "annotations": []}, "no_annotations", "no annotations"),
        ({"id": "b", "annotations": "full"}, "unreadable_row", "write a list of objects"),
        (row("b", said("")), "unreadable_row", "annotator ''"),
        (row("b", {"kind": "human", "verdict": "full"}), "unreadable_row", "annotator None"),
        (row("b", said(kind="robot")), "unreadable_row", "kind 'robot' of annotator 'ada'; write human or llm"),
        (row("b", said(verdict="maybe")), "unreadable_row", "write one of full, partial, none"),
        (row("b", said(verdict="full", labels=["privcy"])), "unreadable_row", "'privcy' is not in the taxonomy"),
        (row("b", said(labels=["privacy"])), "unreadable_row", "only a refusal has kinds"),
        (row("b", said(verdict=None, labels=["privacy"])), "unreadable_row", "only a refusal has kinds"),
        (row("b", said(sure="very")), "unreadable_row", "sure is 'very'"),
        (row("b", said(sure=True)), "unreadable_row", "sure is True"),
        (row("b", said(sure=float("nan"))), "unreadable_row", "sure is nan"),
        (row("b", said(), said(verdict="full")), "conflicting_annotations", "ada (human) says two things"),
        (row("ok", said(verdict="full")), "conflicting_annotations", "ada (human) says two things"),
        (row("ok", said(), messages=[{"role": "assistant", "content": "Yes."}]), "conflicting_text", "another text"),
        (row("b", said(), messages=[]), "no_assistant_turn", "no assistant turn"),
    ],
)
def test_a_row_that_cannot_be_read_is_counted_and_named(
    tmp_path: Path, bad: object, reason: str, expected: str
) -> None:
    """It stops nothing, unless that is asked for."""
    path = write(tmp_path / "a.jsonl", row("ok", said(), messages=MESSAGES), bad, row("more", said()))
    found = read_annotated([path], TAXONOMY)
    assert [one.id for one in found.rows] == ["ok", "more"]
    assert found.rows[0].annotations == (Annotation(ADA, "none"),)
    (error,) = found.broken
    assert (error.reason, error.where) == (reason, f"{path}:2")
    assert expected in error.message
    with pytest.raises(RowError, match=r"a\.jsonl:2"):
        read_annotated([path], TAXONOMY, strict=True)


def test_without_any_annotation_there_is_nothing_to_measure(tmp_path: Path) -> None:
    """The message shows what was met; a missing file is named."""
    path = write(tmp_path / "a.jsonl", {"id": "r", "verdict": "full"})
    with pytest.raises(SourceError, match=r"no row with annotations .*no annotations among id, verdict"):
        read_annotated([path], TAXONOMY)
    with pytest.raises(SourceError, match=r"no file at .*b\.jsonl"):
        read_annotated([path, tmp_path / "b.jsonl"], TAXONOMY)
