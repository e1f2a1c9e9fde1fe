"""Decisions add up, are written as they are made, and survive a process that is killed in the middle of a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation, Turn
from demur.errors import OutputError, SourceError
from demur.synthesis.decisions import Accounts, Decision, account
from demur.synthesis.duplicates import Repeat, Seen, read_seen
from demur.synthesis.journal import Journal, Places
from demur.synthesis.plan import Cell

if TYPE_CHECKING:
    from pathlib import Path

CELLS = [Cell(name, "privacy", "leaf", "full", {}, 0) for name in "abcde"]
TALK = Conversation.of("Hi “you”\n\u2028", "No.", system="S")
KEPT = Decision("a", 1, "kept", conversation=TALK, judged={"verdict": "full", "labels": ["privacy"]})
DECISIONS = [
    KEPT,
    Decision("b", 1, "rejected", "row_cut"),
    Decision("c", 1, "given_up", "provider_refused", "policy"),
    Decision("d", 1, "rejected", "row_cut"),
    Decision("b", 2, "rejected", "verdict_differs", "planned full, judged none", TALK, {"verdict": "none"}),
    Decision("c", 2, "given_up", "provider_refused"),
    Decision("elsewhere", 1, "kept"),
]


def test_planned_rows_are_kept_rejected_given_up_or_pending() -> None:
    """1 kept, 1 rejected twice, 1 given up twice; d has an attempt left, and e both: 5 = 1 + 1 + 1 + 2."""
    found = account(CELLS, DECISIONS, attempts=2)
    assert (found.planned, found.kept, found.rejected, found.given_up, found.pending) == (5, 1, 1, 1, 2)
    assert found.attempts == {"kept": 1, "rejected": 3, "given_up": 2}
    assert found.reasons == {"row_cut": 2, "verdict_differs": 1, "provider_refused": 2}


def test_a_row_is_settled_by_all_of_its_attempts_in_whatever_order() -> None:
    """The first one, given up on and made again, comes after the others; the last by number says how it ended."""
    made = [Decision("a", 2, "rejected", "row_cut"), Decision("a", 3, "given_up", "provider_refused")]
    found = account(CELLS[:1], made, attempts=3)
    assert (found.pending, found.tried) == (1, {"a": 2})
    found = account(CELLS[:1], [*made, Decision("a", 1, "rejected", "row_cut")], attempts=3)
    assert (found.rejected, found.given_up, found.pending, found.tried) == (0, 1, 0, {})
    found = account(CELLS[:1], [*made, KEPT], attempts=3)
    assert (found.kept, found.given_up, found.tried) == (1, 0, {})


def test_counts_do_not_tell_the_order_of_decisions() -> None:
    """A run that was stopped decides in another order, and reports the same."""
    there, back = (account(CELLS, order, attempts=2).to_json() for order in (DECISIONS, DECISIONS[::-1]))
    assert json.dumps(there) == json.dumps(back)


@pytest.mark.parametrize(
    "counts",
    [
        (5, 1, 1, 1, 1, {"kept": 1, "rejected": 1, "given_up": 1}, {"row_cut": 2}),
        (3, 1, 1, 1, 0, {"kept": 1, "rejected": 1, "given_up": 1}, {"row_cut": 1}),
        (3, 1, 1, 1, 0, {"kept": 2, "rejected": 1, "given_up": 1}, {"row_cut": 2}),
    ],
)
def test_sums_that_do_not_hold_are_refused(
    counts: tuple[int, int, int, int, int, dict[str, int], dict[str, int]],
) -> None:
    """A row without a fate; a failed attempt without a reason; a row kept twice."""
    with pytest.raises(ValueError, match="each once"):
        Accounts(*counts)


def test_a_journal_is_read_back_and_goes_on(tmp_path: Path) -> None:
    """What was given up is left out; a line that was not finished is cut off."""
    places = Places(tmp_path / "new" / "rows.jsonl")
    journal = Journal.open(places, {"model": "m"}, resume=True, overwrite=False)
    for decision in DECISIONS:
        journal.add(decision)
    with places.journal.open("a") as file:
        file.write('{"id": "e", "attempt": 1, "fa')
    again = Journal.open(places, {"model": "m"}, resume=True, overwrite=False)
    assert again.decisions == [decision for decision in DECISIONS if decision.fate != "given_up"]
    again.add(Decision("e", 1, "rejected", "row_cut"))
    assert len(Journal.open(places, {"model": "m"}, resume=True, overwrite=False).decisions) == 6
    assert Journal.open(places, {"model": "m"}, resume=False, overwrite=True).decisions == []


def test_given_up_attempts_are_made_again_unless_a_later_one_was_kept(tmp_path: Path) -> None:
    """Also where a later one was rejected; of an attempt that was made again, only the last decision holds."""
    places = Places(tmp_path / "rows.jsonl")
    journal = Journal.open(places, {}, resume=False, overwrite=False)
    standing = [
        Decision("a", 1, "given_up", "provider_refused"),
        Decision("a", 2, "kept", conversation=TALK),
        Decision("b", 2, "rejected", "row_cut"),
        Decision("b", 1, "kept", conversation=TALK),
    ]
    made_again = [
        Decision("b", 1, "given_up", "provider_refused"),
        Decision("b", 3, "given_up", "provider_refused"),
        Decision("c", 1, "given_up", "provider_refused"),
    ]
    for decision in (standing[0], made_again[0], made_again[2], *standing[1:3], made_again[1], standing[3]):
        journal.add(decision)
    assert Journal.open(places, {}, resume=True, overwrite=False).decisions == standing


def test_a_journal_that_is_another_run_s_or_damaged_is_not_gone_on_with(tmp_path: Path) -> None:
    """What changed is named; a bad line is named by its number."""
    places = Places(tmp_path / "rows.jsonl")
    Journal.open(places, {"model": "m", "seed": 1}, resume=False, overwrite=False).add(KEPT)
    with pytest.raises(OutputError, match="something changed: 'model'"):
        Journal.open(places, {"model": "n", "seed": 1}, resume=True, overwrite=False)
    for line in ('{"id": "a"}\n', '{"id": \n', "[]\n"):
        Journal.open(places, {"model": "m"}, resume=False, overwrite=True)
        with places.journal.open("a") as file:
            file.write(line)
        with pytest.raises(OutputError, match=r"rows\.journal\.jsonl:2: cannot be read"):
            Journal.open(places, {"model": "m"}, resume=True, overwrite=False)


def test_rows_are_known_again_by_request_and_by_long_replies() -> None:
    """Case and marks do not matter; a short reply is anybody's."""
    seen, words = Seen(), "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    other = "Tell me in a sentence or two of a thing of quite another sort than all of those that came before it."
    assert seen.find(TALK) is None
    empty = seen.digest
    seen.add("a", Conversation.of("What is it?", "No."))
    seen.add("b", Conversation.of("And that?", f"{words}."))
    assert seen.digest != empty
    assert str(seen.find(Conversation.of("WHAT is it", "Yes."))) == "request of a (1.00)"
    assert str(seen.find(Conversation.of(other, words.upper()))) == "reply of b (1.00)"
    assert seen.find(Conversation.of("Else?", "No.")) is None


def test_an_exchange_is_known_again_after_small_talk() -> None:
    """Turns before it change nothing, however short it is; in the middle of a talk it is not what is judged."""
    seen = Seen()
    seen.add("gold", Conversation.of("Draw me a cat", "I can't."))
    talk = (Turn("user", "Hello, how was your day?"), Turn("assistant", "Fine, thank you."))
    asked = (Turn("user", "Draw me a cat"), Turn("assistant", "I can't."))
    assert seen.find(Conversation((*talk, *asked))) == Repeat("exchange", "gold", 1.0)
    # Of 9 and 19 runs of five characters, 9 are shared.
    assert str(seen.find(Conversation((*talk, Turn("user", "Hi! Draw me a cat, please."), talk[1])))) == (
        "request of gold (0.47)"
    )
    assert seen.find(Conversation((*asked, *talk))) is None


def test_a_file_to_avoid_without_a_row_is_an_error(tmp_path: Path) -> None:
    """The first reason is named."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1}\nno row\n')
    with pytest.raises(SourceError, match=r"holds no row that can be read \(.*rows\.jsonl:1"):
        read_seen([path])
