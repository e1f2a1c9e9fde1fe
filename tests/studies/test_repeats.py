"""Texts are told apart, and the verdicts on them kept to the last bit."""

from __future__ import annotations

import math
import sqlite3
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation, Turn
from demur.errors import OutputError
from demur.studies.repeats import Repeats, text_key
from demur.verdict import Evidence, Policy, Verdict

if TYPE_CHECKING:
    from pathlib import Path

TALK = Conversation.of("Q", "No.")
KINDS = (0.1 + 0.2, 1e-300, 1 / 3)
FULL = Verdict(
    "partial", 0.1 + 0.2, "privacy", "should_not", KINDS, ("skill_level",), None, Evidence(1, 5, 2 / 3),
    Policy.broad, ("privacy", "skill_level"), ("should_not", "cannot"),
)  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        Conversation.of("Q", "No"),
        Conversation.of("q", "No."),
        Conversation.of("Q", "No.", system=""),
        Conversation((Turn("user", "Q"), Turn("user", ""), Turn("assistant", "No."))),
        Conversation((Turn("tool", "Q"), Turn("assistant", "No."))),
        Conversation((Turn("user", "Q" + "assistant\0" + "3\0" + "No."), Turn("assistant", "No."))),
        Conversation(TALK.turns, reasoning=""),
    ],
)
def test_what_is_shown_differently_is_another_text(other: Conversation) -> None:
    """Another word, another case, another role, one more turn, a turn that imitates the next."""
    assert text_key(other) != text_key(TALK)


def test_where_a_text_stands_is_no_part_of_it() -> None:
    """Row, side and turn are the source's; lone surrogates are text."""
    assert text_key(Conversation(TALK.turns, row_id=9, side="chosen", turn=2)) == text_key(TALK)
    assert len(text_key(Conversation.of("\ud83d", "\udc4d"))) == 16


def test_verdicts_come_back_as_they_were_given(tmp_path: Path) -> None:
    """Floats to the last bit; tuples as tuples; nan where there is no probability."""
    unscored = Verdict.unscored("empty_reply")
    with Repeats(tmp_path / "texts.sqlite", 0) as repeats:
        assert repeats.find([b"a"]) == {}
        repeats.keep(0, {b"a": FULL, b"b": Verdict("none", 0.25), b"c": unscored})
        found = repeats.find([b"a", b"b", b"c", b"d"])
    assert (found[b"a"], found[b"b"]) == (FULL, Verdict("none", 0.25))
    assert found[b"c"].unscored_reason == "empty_reply"
    assert math.isnan(found[b"c"].refusal_probability)
    assert b"d" not in found


def test_what_came_after_the_finished_chunks_is_forgotten(tmp_path: Path) -> None:
    """A run that was killed between the texts of a chunk and its shard judges the chunk again."""
    with Repeats(tmp_path / "texts.sqlite", 0) as repeats:
        repeats.keep(0, {b"a": FULL})
        repeats.keep(1, {b"b": FULL})
    with Repeats(tmp_path / "texts.sqlite", 1) as repeats:
        assert repeats.find([b"a", b"b"]).keys() == {b"a"}
        repeats.keep(1, {b"b": FULL})


def test_texts_that_are_missing_or_damaged_are_no_ground_to_go_on_from(tmp_path: Path) -> None:
    """Fewer chunks than are finished, a file of something else, a verdict of something else."""
    path = tmp_path / "texts.sqlite"
    with Repeats(path, 0) as repeats:
        repeats.keep(0, {b"a": FULL})
    with pytest.raises(OutputError, match=r"knows the texts of 1 chunks, and 2 are finished; .*--overwrite"):
        Repeats(path, 2)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE answers SET verdict = '{broken'")
    connection.close()
    with Repeats(path, 1) as repeats, pytest.raises(OutputError, match="cannot be used to find repeated texts"):
        repeats.find([b"a"])
    path.write_text("mine, and long enough to be no database" * 100)
    with pytest.raises(OutputError, match="cannot be used to find repeated texts"):
        Repeats(path, 0)
