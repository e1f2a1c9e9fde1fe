"""Cut texts into words, in scripts with spaces between them and in scripts without."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

__all__ = ["n_words", "script_share", "tokens"]

# Han, kana and Hangul: no spaces, or spaces around more than a word.
_DENSE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_DENSE}]|[^\W_{_DENSE}]+(?:['’][^\W_{_DENSE}]+)*")
_IS_DENSE = re.compile(rf"[{_DENSE}]")
# In Chinese and Japanese, a word has about two characters.
_DENSE_PER_WORD = 2
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
    """Return the words of a text in lower case; of scripts without spaces, the characters.

    >>> tokens("I CAN'T do that.")
    ['i', "can't", 'do', 'that']
    """
    return _TOKEN.findall(text.lower())


def n_words(text: str) -> int:
    """Count the words of a text; two characters of a script without spaces count as one."""
    found = Counter(bool(_IS_DENSE.match(token)) for token in tokens(text))
    return found[False] + -(-found[True] // _DENSE_PER_WORD)


def script_share(text: str, language: str) -> float | None:
    """Return which share of the letters outside of code is in the script of a language.

    None where nothing can be said: there are no letters, or we do not know the script.
    """
    expected = _SCRIPTS.get(language)
    letters = [unicodedata.name(letter, "").split(" ")[0] for letter in _CODE.sub(" ", text) if letter.isalpha()]
    if expected is None or not letters:
        return None
    return sum(script in expected for script in letters) / len(letters)
