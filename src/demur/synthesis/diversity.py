"""Measure how much rows differ from each other, and warn where one voice or one opening dominates."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from demur.synthesis.wording import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Diversity", "distinct", "diversity_of", "self_bleu"]

_ORDERS = (1, 2, 3, 4)
# Where nothing matches, so much of one match: method 1 of Chen and Cherry, "A Systematic Comparison of Smoothing
# Techniques for Sentence-Level BLEU", WMT 2014.
_EPSILON = 0.1
_OPENING_WORDS = 3
# Of 50 full refusals of a kind in synth/corpus, 4 to 14 % share their first three words, and self-BLEU is 0.09 to 0.20;
# of 50 or 200 refusals by a single chat model in public data sets, it is 32 to 76 %, and 0.39 to 0.71.
_DOMINANT_OPENING = 0.2
_ALIKE = 0.35
# A voice has a planned share. Rejects take from some voices more than from others, and twice the share is no accident.
_DOMINANT_VOICE = 2.0
_FEWEST_ROWS = 10

_Grams = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Diversity:
    """Say how much the replies of a category differ.

    Attributes:
        rows: How many.
        distinct_1: Distinct words over all words; see `distinct`.
        distinct_2: Distinct pairs of words over all pairs.
        self_bleu: How much each reply is like the others, from 0 to 1; see `self_bleu`.
        opening: The three words that most replies begin with.
        opening_share: Share of the replies that do.
        voice: The commonest voice; None where rows have no `voice`.
        voice_share: Share of the rows that have it; nan where there is none.
        planned_voice_share: Share of the planned rows that were to have it; nan where there is none.
    """

    rows: int
    distinct_1: float
    distinct_2: float
    self_bleu: float
    opening: str
    opening_share: float
    voice: str | None = None
    voice_share: float = math.nan
    planned_voice_share: float = math.nan

    def warnings(self) -> Iterator[str]:
        """Yield what dominates; of few rows, nothing is said."""
        if self.rows < _FEWEST_ROWS:
            return
        if self.opening_share > _DOMINANT_OPENING:
            yield f"{self.opening_share:.0%} of the replies begin with {self.opening!r}"
        if self.self_bleu > _ALIKE:
            yield f"replies are much alike: self-BLEU {self.self_bleu:.2f}"
        if self.voice is not None and self.voice_share > _DOMINANT_VOICE * self.planned_voice_share:
            planned = f"{self.planned_voice_share:.0%} were planned"
            yield f"{self.voice_share:.0%} of the rows have the voice {self.voice!r}, where {planned}"

    def to_json(self) -> dict[str, Any]:
        """Return everything, nan as null, ready for `json.dumps`."""
        return {name: None if value != value else value for name, value in asdict(self).items()}  # noqa: PLR0124  # nan


def diversity_of(replies: Sequence[str], voices: Sequence[str], planned: Mapping[str, int]) -> Diversity:
    """Measure the replies of one category.

    Args:
        replies: Their texts.
        voices: Their voices; empty where there is no such axis.
        planned: How many rows were planned in each voice.
    """
    cut = [tokens(reply) for reply in replies]
    openings = Counter(" ".join(words[:_OPENING_WORDS]) for words in cut)
    opening, n_opening = openings.most_common(1)[0] if openings else ("", 0)
    voice, n_voice = Counter(voices).most_common(1)[0] if voices else (None, 0)
    n_planned = sum(planned.values())
    return Diversity(
        rows=len(replies),
        distinct_1=distinct(cut, 1),
        distinct_2=distinct(cut, 2),
        self_bleu=self_bleu(cut),
        opening=opening,
        opening_share=n_opening / len(replies) if replies else math.nan,
        voice=voice,
        voice_share=n_voice / len(voices) if voices else math.nan,
        planned_voice_share=planned.get(voice, 0) / n_planned if voice is not None and n_planned else math.nan,
    )


def distinct(texts: Sequence[Sequence[str]], n: int) -> float:
    """Return distinct n-grams over all n-grams of some texts, nan where there are none (Li et al., NAACL 2016).

    It falls as texts are added, so only sets of about the same size compare.
    """
    grams = sum((_grams(words, n) for words in texts), Counter[tuple[str, ...]]())
    return len(grams) / grams.total() if grams else math.nan


def self_bleu(texts: Sequence[Sequence[str]]) -> float:
    """Return the mean BLEU-4 of each text against all the others, nan where there are fewer than two.

    As Zhu et al., "Texygen" (SIGIR 2018), have it: 0 for texts that share nothing, 1 for copies. BLEU is that of
    Papineni et al. (ACL 2002): the geometric mean of the clipped precisions of 1- to 4-grams, times
    exp(1 - r/c) where the text's length c is below that of the reference nearest in length, r.
    """
    if len(texts) < 2:  # noqa: PLR2004  # one text has no others
        return math.nan
    precisions = [_log_precisions(texts, n) for n in _ORDERS]
    penalties = _log_penalties([len(words) for words in texts])
    scores = [penalty + math.fsum(logs) / len(_ORDERS) for penalty, *logs in zip(penalties, *precisions, strict=True)]
    return math.fsum(map(math.exp, scores)) / len(scores)


def _log_precisions(texts: Sequence[Sequence[str]], n: int) -> list[float]:
    """Return the log of the clipped n-gram precision of each text against the others; -inf for no shared word."""
    counted = [_grams(words, n) for words in texts]
    # The most often that a gram stands in any other text: in the text that has most of it, the second most.
    most: dict[tuple[str, ...], tuple[int, int, int]] = {}
    for owner, grams in enumerate(counted):
        for gram, count in grams.items():
            first, second, who = most.get(gram, (0, 0, -1))
            most[gram] = (count, first, owner) if count > first else (first, max(second, count), who)
    found = []
    for owner, grams in enumerate(counted):
        others = {gram: most[gram][1] if most[gram][2] == owner else most[gram][0] for gram in grams}
        matches = sum(min(count, others[gram]) for gram, count in grams.items())
        if matches == 0 and n == 1:
            found.append(-math.inf)
        else:
            found.append(math.log((matches or _EPSILON) / max(grams.total(), 1)))
    return found


def _log_penalties(lengths: Sequence[int]) -> list[float]:
    """Return the log of BLEU's penalty for brevity; of two references equally near, the shorter one counts."""
    met = Counter(lengths)
    nearest = {length: length for length, n in met.items() if n > 1}
    for before, after in pairwise(sorted(met)):
        for length, other in ((before, after), (after, before)):
            known = nearest.get(length)
            if known is None or (abs(other - length), other) < (abs(known - length), known):
                nearest[length] = other
    return [0.0 if not 0 < length < nearest[length] else 1 - nearest[length] / length for length in lengths]


def _grams(words: Sequence[str], n: int) -> _Grams:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
