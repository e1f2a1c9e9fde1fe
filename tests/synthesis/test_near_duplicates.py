"""Texts that differ in nothing that counts are found, and others are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demur.synthesis.near_duplicates import NearDuplicates, jaccard, normalised, shingles


@pytest.mark.parametrize(
    "other",
    [
        "I CAN'T HELP WITH THAT.",
        "I can’t help with that.",
        "**I cant** help\n\nwith `that`",
        "- I can't <|...|> help with that!",
        "Ｉ can't help with that",
    ],
)
def test_what_makes_no_other_text_is_folded(other: str) -> None:
    """Case, apostrophes, markdown, white space, the mark of a truncation, wide letters."""
    assert normalised(other) == "i cant help with that"


@pytest.mark.parametrize(
    ("one", "other"),
    [("कि", "की"), ("তুমি", "তাম"), ("มี", "มา"), ("ไม่", "ไม้"), ("x\u0300", "x\u0301")],
    ids=["Hindi", "Bengali", "Thai", "Thai tones", "accents"],
)
def test_signs_on_letters_make_another_word(one: str, other: str) -> None:
    """*That* and *of* in Hindi differ in a vowel sign alone, and a word is not cut in two by one."""
    assert normalised(one) != normalised(other)
    assert " " not in normalised(one) + normalised(other)
    index = NearDuplicates()
    index.add("one", one)
    assert index.find(other) == []
    assert index.find(f"«{one}»!") == [("one", 1.0)]


def test_what_nobody_sees_makes_no_other_text() -> None:
    """Variation selectors and joiners between letters; a sign without a letter is no word."""
    assert normalised("1\ufe0f\u20e3 क्\u200dष") == normalised("1 क्ष") == "1 क्ष"
    assert normalised("_\u093e a") == "a"


def test_a_text_of_marks_keeps_them() -> None:
    """Two replies of different emoji are two replies, also where they are followed by a variation selector."""
    assert normalised(" 🙂  🙂 ") == "🙂 🙂"
    assert normalised("❤\ufe0f") != normalised("☹\ufe0f")
    assert normalised(" \n") == ""


def test_shingles_are_the_runs_of_five_characters() -> None:
    """`abcdefg` has abcde, bcdef, cdefg; `aaaaaaa` has one; a short text is one; an empty one has none."""
    assert shingles("abcdefg").size == 3
    assert shingles("aaaaaaa").size == 1
    assert shingles("no").size == 1
    assert shingles("").size == 0


def test_jaccard_is_shared_over_all() -> None:
    """`abcdefg` and `abcdefx` share abcde and bcdef of four runs in all; nothing over nothing is not known."""
    assert jaccard(shingles("abcdefg"), shingles("abcdefx")) == 2 / 4
    assert math.isnan(jaccard(shingles(""), shingles("")))


def test_near_texts_are_found_nearest_first() -> None:
    """With their index; of equally near ones, the first that was added."""
    found = NearDuplicates(threshold=0.5)
    found.add("near", "abcdefghijklm")
    found.add("same", "abcdefghijk")
    found.add("again", "ABCDEFGHIJK!")
    found.add("far", "nothing of the kind")
    # `near` has 9 runs, the text 7, all of them shared.
    assert found.find("abcdefghijk") == [("same", 1.0), ("again", 1.0), ("near", 7 / 9)]
    assert len(found) == 4


def test_the_threshold_decides() -> None:
    """7 / 9 = .78 is near at .7 and at 7 / 9, and not at .8."""
    for threshold, n_found in ((0.7, 1), (7 / 9, 1), (0.8, 0)):
        index = NearDuplicates(threshold=threshold)
        index.add("a", "abcdefghijklm")
        assert len(index.find("abcdefghijk")) == n_found


def test_an_empty_text_is_like_no_other() -> None:
    """Not even like another empty one."""
    index = NearDuplicates()
    index.add("a", "")
    assert index.find("") == []


def test_texts_at_the_threshold_are_found_by_construction() -> None:
    """400 pairs of 80 runs, 60 of them shared: J = 60 / 100 = .6, of which the bands miss one in 10,000."""
    index = NearDuplicates(threshold=0.6)
    for i in range(400):
        index.add(str(i), _text(i, 0, 80))
    found = [dict(index.find(_text(i, 20, 100))) for i in range(400)]
    assert sum(str(i) in pairs for i, pairs in enumerate(found)) == 400
    assert found[0]["0"] == pytest.approx(0.6, abs=0.02)
    assert max(map(len, found)) == 1


def _text(number: int, start: int, stop: int) -> str:
    """Return a stretch, in runs, of a long text of its own."""
    letters = np.random.default_rng(number).integers(0x4E00, 0x9000, 120)
    return "".join(map(chr, letters[start : stop + 4]))


def test_a_key_is_taken_once() -> None:
    """Two texts under one key could not be told apart."""
    index = NearDuplicates()
    index.add("a", "one")
    with pytest.raises(ValueError, match="key 'a' is taken"):
        index.add("a", "two")


@pytest.mark.parametrize(("threshold", "n"), [(0.0, 128), (1.2, 128), (0.1, 8)])
def test_what_cannot_be_found_is_refused(threshold: float, n: int) -> None:
    """A threshold out of range, or one that so few permutations cannot see."""
    with pytest.raises(ValueError, match=f"{threshold}"):
        NearDuplicates(threshold=threshold, n_permutations=n)
