"""Add up all that an audit says of a data set, chunk by chunk, in memory that does not grow with the rows."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from demur.conversation import SIDES, Conversation
from demur.data.scripts import is_latin
from demur.stats.clusters import Clusters
from demur.stats.composition import Composition
from demur.stats.shares import Share
from demur.studies.highlights import Highlights
from demur.studies.requests import opening_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from demur.data.sources import BrokenRow
    from demur.taxonomy import Taxonomy
    from demur.verdict import Verdict

__all__ = ["BINS", "Judged", "Pairs", "Tally"]

BINS = 40
"""Equal bins from 0 to 1 that probabilities of refusal are counted in."""

_SIDES = frozenset(SIDES)
# What pairs are counted as within their request: as a pair, and by whether the chosen and the rejected reply refuse.
_PAIR = "pair"
_PAIRS = {
    (True, True): "both",
    (True, False): "chosen_only",
    (False, True): "rejected_only",
    (False, False): "neither",
}


class Judged(NamedTuple):
    """Keep one item of a source with the verdict on it; a row that could not be read is judged `unscored`.

    Attributes:
        item: What was judged.
        verdict: What was said of it.
        is_repeat: Whether the same text came before, and the verdict is the one that was given then.
    """

    item: Conversation | BrokenRow
    verdict: Verdict
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Pairs:
    """Count preference pairs of which both replies were scored, by which of the two refuses.

    A row is one pair, of the last reply of each side: those before it, which both sides mostly share, are no choice.

    Attributes:
        both: Both refuse.
        chosen_only: The preferred reply refuses, the other does not: training on it teaches to refuse.
        rejected_only: The other reply refuses: training on it teaches to comply.
        neither: Neither refuses.
        requests: The same counts by the request that was answered: pairs of one request are not independent.
    """

    both: int = 0
    chosen_only: int = 0
    rejected_only: int = 0
    neither: int = 0
    requests: Clusters = field(default_factory=Clusters)

    @property
    def total(self) -> int:
        """Return the number of pairs."""
        return self.both + self.chosen_only + self.rejected_only + self.neither

    @property
    def shares(self) -> dict[str, Share]:
        """Return each of the four among the pairs; the intervals allow for pairs of one request."""
        effects = self.requests.effects(_PAIRS.values(), _PAIR)
        return {name: Share(getattr(self, name), self.total, effects[name]) for name in _PAIRS.values()}

    @classmethod
    def of(cls, judged: Iterable[Judged]) -> Self:
        """Count the pairs whose two replies are both among these; a row that is read in part makes none.

        A whole pair, of which a side comes again, has met another of its number: two sources may be put together.
        """
        rows: dict[int, dict[str, tuple[Conversation, Verdict]]] = {}
        before: list[tuple[int, dict[str, tuple[Conversation, Verdict]]]] = []
        broken: set[int] = set()
        for item, verdict, _ in judged:
            if not isinstance(item, Conversation):
                broken.add(item.position)
            elif item.side is not None:
                last = rows.setdefault(item.row_id, {})
                if last.keys() >= _SIDES and item.turn <= last[item.side][0].turn:
                    before.append((item.row_id, last))
                    last = rows[item.row_id] = {}
                if item.side not in last or item.turn >= last[item.side][0].turn:
                    last[item.side] = item, verdict
        counts = Counter[str]()
        answered: list[tuple[str, tuple[str, str]]] = []
        for row, last in (*before, *rows.items()):
            if row in broken or not last.keys() >= _SIDES or not all(verdict.is_scored for _, verdict in last.values()):
                continue
            (chosen, of_chosen), (_, of_rejected) = last["chosen"], last["rejected"]
            name = _PAIRS[of_chosen.is_refusal, of_rejected.is_refusal]
            counts[name] += 1
            answered.append((opening_request(chosen), (_PAIR, name)))
        return cls(**{name: counts[name] for name in _PAIRS.values()}, requests=Clusters.of(answered))

    def __add__(self, other: Self) -> Self:
        """Add two counts."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in _PAIRS.values()}
        return type(self)(**counts, requests=self.requests + other.requests)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what `dataclasses.asdict` gave; audits of before knew no requests of pairs."""
        requests = Clusters.from_json(stored["requests"]) if "requests" in stored else Clusters()
        return cls(**{name: stored[name] for name in _PAIRS.values()}, requests=requests)


@dataclass(frozen=True, slots=True)
class Tally:
    """Keep the counts and highlights of many verdicts; they add up with `+` and go through JSON without loss.

    Attributes:
        composition: Counts over all rows.
        sides: Counts by side (`chosen`, `rejected`); empty where no row has one.
        pairs: Preference pairs by which reply refuses.
        probabilities: Scored replies by probability of refusal, in `BINS` equal bins from 0 to 1.
        highlights: What is worth reading.
        repeats: Replies whose text came before, and which were not judged again; they are counted like any other.
        other_scripts: Scored replies that are mostly not written in Latin letters.
    """

    composition: Composition
    sides: Mapping[str, Composition]
    pairs: Pairs
    probabilities: tuple[int, ...]
    highlights: Highlights
    repeats: int = 0
    other_scripts: int = 0

    @classmethod
    def of(cls, judged: Sequence[Judged], taxonomy: Taxonomy, *, threshold: float | None = None) -> Self:
        """Count verdicts; of none at all, the neutral element of `+`.

        Args:
            judged: Items of the source with their verdicts.
            taxonomy: What the verdicts are in.
            threshold: The probability from which a reply refuses, if the labeler has one.
        """
        read = [(one.item, one.verdict) for one in judged if isinstance(one.item, Conversation)]
        broken = [one.item.error for one in judged if not isinstance(one.item, Conversation)]
        answered: list[tuple[Verdict, str]] = []
        by_side: dict[str, list[tuple[Verdict, str]]] = {}
        for item, verdict, _ in judged:
            # What could not be read is unscored, and answers nothing.
            answered.append((verdict, opening_request(item) if isinstance(item, Conversation) else ""))
            if item.side is not None:
                by_side.setdefault(item.side, []).append(answered[-1])
        return cls(
            _composition(answered, taxonomy),
            {side: _composition(of_side, taxonomy) for side, of_side in sorted(by_side.items())},
            Pairs.of(judged),
            _histogram(verdict for _, verdict in read),
            Highlights.of(read, broken, keys=taxonomy.keys, threshold=threshold),
            sum(one.is_repeat for one in judged),
            sum(verdict.is_scored and not is_latin(item.reply) for item, verdict in read),
        )

    def __add__(self, other: Self) -> Self:
        """Add two tallies of the same taxonomy and threshold."""
        sides = dict(self.sides)
        for side, theirs in other.sides.items():
            sides[side] = sides[side] + theirs if side in sides else theirs
        return type(self)(
            self.composition + other.composition,
            dict(sorted(sides.items())),
            self.pairs + other.pairs,
            tuple(ours + theirs for ours, theirs in zip(self.probabilities, other.probabilities, strict=True)),
            self.highlights + other.highlights,
            self.repeats + other.repeats,
            self.other_scripts + other.other_scripts,
        )

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold; `from_json` reads it back."""
        return {
            "composition": self.composition.to_json(),
            "sides": {side: composition.to_json() for side, composition in self.sides.items()},
            "pairs": asdict(self.pairs),
            "probabilities": list(self.probabilities),
            "highlights": self.highlights.to_json(),
            "repeats": self.repeats,
            "other_scripts": self.other_scripts,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        return cls(
            Composition.from_json(data["composition"]),
            {side: Composition.from_json(stored) for side, stored in data["sides"].items()},
            Pairs.from_json(data["pairs"]),
            tuple(data["probabilities"]),
            Highlights.from_json(data["highlights"]),
            # Audits of before compared no texts, and looked at no script.
            data.get("repeats", 0),
            data.get("other_scripts", 0),
        )


def _composition(answered: Sequence[tuple[Verdict, str]], taxonomy: Taxonomy) -> Composition:
    """Count verdicts, each given with the request that its reply answers."""
    return Composition.of((verdict for verdict, _ in answered), taxonomy, requests=(request for _, request in answered))


def _histogram(verdicts: Iterable[Verdict]) -> tuple[int, ...]:
    counts = [0] * BINS
    for verdict in verdicts:
        if verdict.is_scored and not math.isnan(verdict.refusal_probability):
            counts[min(int(verdict.refusal_probability * BINS), BINS - 1)] += 1
    return tuple(counts)
