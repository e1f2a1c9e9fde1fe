"""Cut texts into words, in scripts with spaces between them and in scripts without."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

__all__ = ["INVISIBLE", "SIGNS", "n_words", "script_share", "tokens"]

# Variation selectors, and what only joins letters or keeps them apart: they change how a letter looks, not which it is.
INVISIBLE = dict.fromkeys((0x34F, 0x200C, 0x200D, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))


def _signs() -> str:
    """Return the vowel signs, tones, accents and other marks that belong to a letter, for a class of characters."""
    # Beyond the second plane there are none but variation selectors.
    return "".join(c for c in map(chr, range(0x20000)) if unicodedata.category(c) in ("Mn", "Mc"))


# `re` does not take them for parts of words: by letters alone, Hindi *ki* (that) and *kī* (of) would both be *k*.
SIGNS = _signs()
# Thai and Lao have no spaces between words either.
_LONG_DENSE = "\u0e00-\u0eff"
# Nor have Khmer and Burmese, Han and kana; Hangul has them around more than a word.
_SHORT_DENSE = "\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_DENSE = _SHORT_DENSE + _LONG_DENSE
_RUN = rf"(?:[^\W_{_DENSE}][{SIGNS}]*)+"
_TOKEN = re.compile(rf"(?=\w)[{_DENSE}][{SIGNS}]*|{_RUN}(?:['’]{_RUN})*")
_IS_DENSE, _IS_LONG_DENSE = re.compile(rf"[{_DENSE}]"), re.compile(rf"[{_LONG_DENSE}]")
# In Chinese and Japanese, a word has about two characters; in Thai, about three with their signs.
_DENSE_PER_WORD, _LONG_DENSE_PER_WORD = 2, 3
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

# First words of the names that Unicode gives the letters of a script, by language; a language that is not here is
# written in a script that we do not check.
_SCRIPTS = {
    **dict.fromkeys(("bg", "mk", "ru", "uk"), ("CYRILLIC",)),
    **dict.fromkeys(("ar", "fa", "ur"), ("ARABIC",)),
    **dict.fromkeys(("hi", "mr", "ne"), ("DEVANAGARI",)),
    "bn": ("BENGALI",),
    "el": ("GREEK",),
    "he": ("HEBREW",),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "ko": ("HANGUL",),
    "th": ("THAI",),
    "zh": ("CJK",),
    **dict.fromkeys(
        "ca cs da de en es et eu fi fr ga gl hr hu id is it lt lv ms nl no pl pt ro sk sl sq sv sw tr vi".split(),  # noqa: SIM905  # a list of letters reads worse
        ("LATIN",),
    ),
}


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case; of scripts without spaces, the characters, each with its signs.

    >>> tokens("I CAN'T do that.")
    ['i', "can't", 'do', 'that']
    """
    return _TOKEN.findall(text.lower().translate(INVISIBLE))


def n_words(text: str) -> int:
    """Count the words of a text; of a script without spaces two characters count as one, of Thai and Lao three."""
    found = Counter(_per_word(token) for token in tokens(text))
    return sum(-(-n // per_word) for per_word, n in found.items())


def _per_word(token: str) -> int:
    if not _IS_DENSE.match(token):
        return 1
    return _LONG_DENSE_PER_WORD if _IS_LONG_DENSE.match(token) else _DENSE_PER_WORD


def script_share(text: str, language: str) -> float | None:
    """Return which share of the letters outside of code is in the script of a language.

    None where nothing can be said: there are no letters, or we do not know the script.
    """
    expected = _SCRIPTS.get(language)
    letters = [unicodedata.name(letter, "").split(" ")[0] for letter in _CODE.sub(" ", text) if letter.isalpha()]
    if expected is None or not letters:
        return None
    return sum(script in expected for script in letters) / len(letters)
