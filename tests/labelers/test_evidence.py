"""Evidence: sentences by their offsets, and the one of the highest score."""

from __future__ import annotations

from re import _parser  # type: ignore[attr-defined]  # what `re` reads patterns with
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation, Turn
from demur.labelers import evidence
from demur.labelers.evidence import evidence_of, sentences
from demur.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def texts(reply: str) -> list[str]:
    """Return the sentences themselves."""
    return [reply[start:end] for start, end in sentences(reply)]


class Told:
    """Give the probabilities that it was told by reply, and remember what it was asked."""

    def __init__(self, **by_reply: float) -> None:
        """Take probabilities by the words of the reply, joined with underscores and without marks."""
        self._by_reply = {key.replace("_", " "): value for key, value in by_reply.items()}
        self.asked: list[Conversation] = []

    def __call__(self, conversations: Sequence[Conversation]) -> list[float]:
        """Look every reply up."""
        self.asked += conversations
        return [self._by_reply[conversation.reply.strip(".!")] for conversation in conversations]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("I'm sorry. I can't!  Why?", ["I'm sorry.", "I can't!", "Why?"]),
        ("First line\nsecond line\r\n\r\nthird", ["First line", "second line", "third"]),
        (" - No.\n* Nor that.\n12) Or this.", ["No.", "Nor that.", "Or this."]),
        ("# No\n> 1. I can't", ["No", "I can't"]),
        ("抱歉。我不能。好", ["抱歉。", "我不能。", "好"]),
        ("क्षमा करें। नहीं।", ["क्षमा करें।", "नहीं।"]),
        ('"No." she said...', ['"No."', "she said..."]),
        ("See Dr. Who, e.g. at 3.5 Main St. today.", ["See Dr. Who, e.g. at 3.5 Main St. today."]),
        ("... --- ... I can't.", ["I can't."]),
        ("No", ["No"]),
        ("\u3000🙏\n", ["🙏"]),
        ("...", ["..."]),
        ("", []),
        (" \n", []),
    ],
)
def test_a_reply_falls_into_sentences(reply: str, expected: list[str]) -> None:
    """By marks before white space, full-width marks and lines; without bullets, numbers and what holds no letter."""
    assert texts(reply) == expected


def test_only_the_first_twelve_and_last_four_sentences_are_read() -> None:
    """Of 20: 0 to 11 and 16 to 19; of 16, all."""
    reply = " ".join(f"S{number}." for number in range(20))
    assert texts(reply) == [f"S{number}." for number in (*range(12), *range(16, 20))]
    assert len(texts(" ".join(["No."] * 16))) == 16


def test_emoji_and_lone_surrogates_are_one_character_each() -> None:
    """Offsets count what Python counts: "🙏" is one, half of a pair is one."""
    assert sentences("🙏🙏 No. \ud83d I can't.") == [(0, 6), (7, 17)]


def test_a_reply_of_two_megabytes_is_read_at_its_ends() -> None:
    """Twelve sentences of its beginning, four of its end."""
    reply = "No, I cannot. " * 150_000 + "Not that either."
    found = sentences(reply)
    assert [reply[start:end] for start, end in found] == ["No, I cannot."] * 15 + ["Not that either."]
    assert found[-1][1] == len(reply)


@pytest.mark.parametrize("wall", ["x", "- ", "\n", ".", "1. ", "\n-\n"])
def test_walls_of_one_mark_do_not_hold_it_up(wall: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they are, patterns are let loose on 8,192 characters of each end; what is found lies in the text."""
    reply, n_read, spans = wall * 500_000 + " No.", 0, evidence._spans

    def counted(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
        nonlocal n_read
        n_read += stop - begin
        return spans(text, begin, stop)

    monkeypatch.setattr(evidence, "_spans", counted)
    found = sentences(reply)
    assert n_read == 2 * 8_192
    assert all(0 <= start < end <= len(reply) for start, end in found)
    assert found[-1][1] == len(reply)


def test_no_end_of_a_sentence_is_tried_again_from_each_of_its_marks() -> None:
    """What repeats without end is followed by nothing that can fail: else a wall of n marks would take n² / 2 steps."""
    assert endless_before_a_condition(_parser.parse(r"[!?]+(?=\s)"))
    assert endless_before_a_condition(_parser.parse(r"a|(?:b[!?]*)c"))
    assert not endless_before_a_condition(_parser.parse(evidence._END.pattern))


def endless_before_a_condition(parsed: Any, *, is_followed: bool = False) -> bool:
    """Tell whether a repeat without end stands before what may fail, in a pattern as Python's own parser sees it."""
    for operation, argument in reversed(list(parsed)):
        inner, is_needed = [], True
        if operation in (_parser.MAX_REPEAT, _parser.MIN_REPEAT):
            least, most, repeated = argument
            if most is _parser.MAXREPEAT and is_followed:
                return True
            inner, is_needed = [repeated], least > 0
        elif operation is _parser.BRANCH:
            inner = argument[1]
        elif operation is _parser.SUBPATTERN:
            inner = [argument[-1]]
        if any(endless_before_a_condition(one, is_followed=is_followed) for one in inner):
            return True
        is_followed = is_followed or is_needed
    return False


def test_the_most_probable_sentence_is_the_evidence() -> None:
    """P = .2, .9, .4 for three sentences: the second, from 12 to 20."""
    talk = Conversation.of("Draw.", "Good point. I can't. Bye now.")
    gate = Told(Good_point=0.2, **{"I can't": 0.9}, Bye_now=0.4)
    assert evidence_of([talk], [0.8], gate) == [Evidence(12, 20, 0.9)]
    assert talk.reply[12:20] == "I can't."


def test_a_sentence_is_judged_in_its_conversation() -> None:
    """Everything before the reply stays; the reply is that sentence alone."""
    context = (Turn("system", "Be kind."), Turn("user", "A?"), Turn("assistant", "B."), Turn("user", "C?"))
    talk = Conversation((*context, Turn("assistant", "One. Two.")), row_id=7)
    gate = Told(One=0.1, Two=0.2)
    evidence_of([talk], [0.9], gate)
    assert [asked.turns for asked in gate.asked] == [
        (*context, Turn("assistant", "One.")),
        (*context, Turn("assistant", "Two.")),
    ]


def test_a_reply_of_one_sentence_is_not_read_again() -> None:
    """It has the score of the reply, and costs nothing; the sentences of others go through together."""
    talks = [Conversation.of("Q", reply) for reply in (" I can't.", "One. Two.", "No")]
    gate = Told(One=0.1, Two=0.2)
    found = evidence_of(talks, [0.7, 0.6, 0.5], gate)
    assert found == [Evidence(1, 9, 0.7), Evidence(5, 9, 0.2), Evidence(0, 2, 0.5)]
    assert len(gate.asked) == 2


def test_of_equal_sentences_the_first_is_the_evidence() -> None:
    """The same reply always gives the same sentence."""
    talk = Conversation.of("Q", "Never. Never. Never.")
    assert evidence_of([talk], [0.9], Told(Never=0.9)) == [Evidence(0, 6, 0.9)]


def test_no_refusal_has_no_evidence() -> None:
    """The gate is not asked for nothing."""
    gate = Told()
    assert evidence_of([], [], gate) == []
    assert gate.asked == []
