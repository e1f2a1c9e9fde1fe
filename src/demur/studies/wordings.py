"""Count how refusals open: the first sentence of each, or the first few short ones, normalised, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["KEPT_WORDINGS", "Wording", "Wordings", "wording"]

KEPT_WORDINGS = 2_000

_MAX_CHARACTERS = 160
# "I'm sorry." says nothing alone: a shorter opening takes the next sentence with it.
_MIN_WORDS = 4
# A refusal of megabytes opens no differently from one of kilobytes.
_READ_CHARACTERS = 2_000
_STRAIGHT = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})
# A word of these scripts has no space around it: Thai, Lao, Tibetan, Burmese, Khmer, kana and CJK ideographs.
_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")  # full-width marks end sentences too
_EDGES = " \t\r\n.!?。！？*_#>-\"'"


def wording(reply: str) -> str:
    """Return the normalised opening of a reply: lower case, straight apostrophes, single spaces, no closing mark.

    Example:
        >>> wording("I'm sorry.  I CAN'T help with that! Try a locksmith.")
        "i'm sorry. i can't help with that"
    """
    opening = ""
    for sentence in _SENTENCE_END.split(reply[:_READ_CHARACTERS]):
        opening = f"{opening} {' '.join(sentence.split())}".strip()
        if _n_words(opening) >= _MIN_WORDS or len(opening) >= _MAX_CHARACTERS:
            break
    # Lone surrogates can be counted, but never written as UTF-8.
    printable = opening.encode("utf-8", "replace").decode("utf-8")
    return printable.translate(_STRAIGHT).lower().strip(_EDGES)[:_MAX_CHARACTERS]


def _n_words(text: str) -> int:
    """Count words; of those without spaces between them, each character is one."""
    return sum(max(1, len(_UNSPACED.findall(word))) for word in text.split())


@dataclass(frozen=True, slots=True)
class Wording:
    """Keep one opening, how many refusals begin with it, and under which kind most of them fall."""

    text: str
    count: int
    category: str | None


@dataclass(frozen=True, slots=True)
class Wordings:
    """Count openings by wording and kind; two counts add up with `+`.

    Only the most frequent `KEPT_WORDINGS` outlive a merge. What is counted is therefore exact up to that many distinct
    wordings, and beyond it a lower bound: the true count lies between `count` and `count + missed`.

    Attributes:
        kept: Number of refusals by wording and kind; the empty kind stands for a refusal that was given none.
        missed: The most that a single wording can have lost in merges so far.
    """

    kept: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    missed: int = 0

    @classmethod
    def of(cls, refusals: Iterable[tuple[str, str | None]]) -> Self:
        """Count refusals, each a reply and its main kind; a reply with no words in it is left out."""
        counts: dict[str, Counter[str]] = {}
        for reply, category in refusals:
            if text := wording(reply):
                counts.setdefault(text, Counter())["" if category is None else category] += 1
        return cls._bounded(counts, 0)

    def __add__(self, other: Self) -> Self:
        """Add two counts."""
        counts = {text: Counter(by_category) for text, by_category in self.kept.items()}
        for text, by_category in other.kept.items():
            counts.setdefault(text, Counter()).update(by_category)
        return self._bounded(counts, self.missed + other.missed)

    @classmethod
    def _bounded(cls, counts: Mapping[str, Mapping[str, int]], missed: int) -> Self:
        order = sorted(counts, key=lambda text: (-sum(counts[text].values()), text))
        dropped = max((sum(counts[text].values()) for text in order[KEPT_WORDINGS:]), default=0)
        return cls({text: dict(sorted(counts[text].items())) for text in order[:KEPT_WORDINGS]}, missed + dropped)

    def most_repeated(self, n: int, *, at_least: int = 2) -> tuple[Wording, ...]:
        """Return the `n` most frequent wordings that occur `at_least` so often, the most frequent first."""
        found = [_named(text, by_category) for text, by_category in self.kept.items()]
        repeated = [one for one in found if one.count >= at_least]
        return tuple(sorted(repeated, key=lambda one: (-one.count, one.text))[:n])

    def to_json(self) -> dict[str, object]:
        """Return what JSON can hold; `from_json` reads it back."""
        return {"missed": self.missed, "kept": {text: dict(counts) for text, counts in self.kept.items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        return cls(data["kept"], data["missed"])


def _named(text: str, by_category: Mapping[str, int]) -> Wording:
    category = min(by_category, key=lambda key: (-by_category[key], key))
    return Wording(text, sum(by_category.values()), category if category != "" else None)
