"""Tell which texts are written in Latin letters."""

from __future__ import annotations

import pytest

from demur.data.scripts import is_latin


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("42 + 1 = 43 🎉", True),
        ("Désolé, ça m'échappe: œuvre, Łódź, İstanbul.", True),
        ("Ｆｕｌｌ ｗｉｄｔｈ", True),
        ("Xin lỗi, tôi không thể giúp.", True),
        ("巴黎是法国的首都。", False),
        ("Столица Франции — Париж.", False),
        ("باريس هي عاصمة فرنسا", False),
        ("पेरिस", False),
        ("프랑스의 수도는 파리입니다.", False),
        ("The word 巴黎 means Paris.", True),
        ("巴黎是法国的首都, or so they say", True),
        ("巴黎是法国的首都，人口最多，也叫光之城 (Paris)", False),
    ],
)
def test_a_text_is_latin_where_half_of_its_letters_are(text: str, *, expected: bool) -> None:
    """Accents and full width are Latin; what has no letters says nothing against it."""
    assert is_latin(text) is expected


def test_of_a_long_text_the_beginning_says_it() -> None:
    """A reply of megabytes costs no more than one of kilobytes."""
    assert not is_latin("я" * 2_000 + "a" * 10_000)
