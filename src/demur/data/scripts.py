"""Tell in which sort of script a text is written."""

from __future__ import annotations

__all__ = ["is_latin"]

# What says it of a long text, too.
_ENOUGH = 2_000
# Blocks of Latin letters beyond ASCII: accents and the extensions A and B, the additional ones, and full width.
_LATIN = ((0xC0, 0x24F), (0x1E00, 0x1EFF), (0xFF21, 0xFF5A))


def is_latin(text: str) -> bool:
    """Tell whether at least half of a text's letters are Latin; a text without letters, of digits or emoji, is.

    Example:
        >>> is_latin("Łódź, 3 km"), is_latin("巴黎是法国的首都。")
        (True, False)
    """
    if text.isascii():
        return True
    letters = [character for character in text[:_ENOUGH] if character.isalpha()]
    return 2 * sum(map(_is_latin_letter, letters)) >= len(letters)


def _is_latin_letter(letter: str) -> bool:
    return letter.isascii() or any(low <= ord(letter) <= high for low, high in _LATIN)
