"""Excerpts: short, safe, cut between words, and true to where a sentence stands."""

from __future__ import annotations

import pytest

from demur.studies.excerpts import excerpt, excerpt_around


def test_an_excerpt_leaves_out_the_middle_and_keeps_its_length() -> None:
    """A reply of a megabyte is cut to the limit, and begins and ends as it did."""
    cut = excerpt("begin" + "x" * 1_000_000 + "end", 100)
    assert len(cut) == 100
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert " … " in cut


def test_an_excerpt_cuts_between_words() -> None:
    """Of 97 characters beside the mark, 67 begin it and 30 end it; the words cut through are left out."""
    assert excerpt("refusal " * 100, 100) == " ".join(["refusal"] * 8) + " … " + " ".join(["refusal"] * 3)


def test_an_excerpt_holds_no_control_characters() -> None:
    """An escape sequence must not reach a terminal; newlines and tabs may stay."""
    assert excerpt("a\x1b[2Jb\r\nc\td\x00", 100) == "a\ufffd[2Jb\nc\td\ufffd"


@pytest.mark.parametrize("override", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
def test_an_excerpt_does_not_turn_the_text_after_it(override: str) -> None:
    """Nor before it, as in names of files that hide their ending; marks that Hebrew is written with stay."""
    assert excerpt(f"exe{override}gpj.bat", 100) == "exe\ufffdgpj.bat"
    assert excerpt("\u05d0\u200f.", 100) == "\u05d0\u200f."


def test_an_excerpt_that_shows_the_span_is_the_plain_one() -> None:
    """The white space before the text is gone, and a line end of two characters is one: 4 becomes 2."""
    assert excerpt_around(" a\r\nNo. b", 100, (4, 7)) == ("a\nNo. b", (2, 5))


def test_a_span_in_the_middle_is_shown_with_beginning_and_end() -> None:
    """34 - 16 of the span - 6 of the gaps leave 12: 8 begin, of which "One." is whole, and 4 end."""
    text = "One. Two. Three. I can't do that. Four. Five. Six."
    assert excerpt_around(text, 34, (17, 33)) == ("One. … I can't do that. … Six.", (7, 23))


def test_a_span_that_the_cut_would_go_through_is_whole() -> None:
    """Of 100 characters, 67 would begin the excerpt: a sentence from 60 to 80 is kept, and the text before it too."""
    text = "x" * 59 + " " + "No, I will not do it" + " " + "y" * 100
    shown, place = excerpt_around(text, 100, (60, 80))
    assert place is not None
    assert shown[slice(*place)] == "No, I will not do it"
    assert len(shown) <= 100


def test_a_span_longer_than_half_of_the_limit_loses_its_middle() -> None:
    """The place goes from the beginning of the span to its end, with the gap inside of it."""
    shown, place = excerpt_around("a" * 100 + " No" + "n" * 96 + "n. " + "b" * 100, 80, (101, 201))
    assert place is not None
    assert shown[slice(*place)].startswith("Non")
    assert shown[slice(*place)].endswith("nn.")
    assert " … " in shown[slice(*place)]
    assert len(shown) <= 80


def test_what_is_replaced_does_not_move_a_span() -> None:
    """A lone surrogate becomes one mark, an escape sequence another; emoji stay single characters."""
    shown, place = excerpt_around("\ud83d \x1b[1m🙏 No. 🙏", 100, (7, 10))
    assert place is not None
    assert shown == "? \ufffd[1m🙏 No. 🙏"
    assert shown[slice(*place)] == " No"


@pytest.mark.parametrize("span", [(50, 60), (10, 12)], ids=["beyond the text", "in the white space after it"])
def test_a_span_outside_of_the_text_has_no_place(span: tuple[int, int]) -> None:
    """It marks nothing, and breaks nothing."""
    assert excerpt_around("I can't.    ", 100, span) == ("I can't.", None)


@pytest.mark.parametrize("limit", [30, 100, 480])
def test_every_sentence_of_a_long_text_is_found_again(limit: int) -> None:
    """Each of 200 sentences of 12 characters and more, wherever it stands."""
    sentences = [f"I can't, {number}." for number in range(200)]
    text = "\n".join(sentences)
    for sentence in sentences:
        start = text.index(sentence)
        shown, place = excerpt_around(text, limit, (start, start + len(sentence)))
        assert place is not None
        assert shown[slice(*place)] == sentence
        assert len(shown) <= limit
