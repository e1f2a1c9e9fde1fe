"""Keep what is worth reading of a data set of any size: examples, borderline replies, repeated wordings."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from demur.stats.composition import UNNAMED
from demur.studies.examples import BrokenSample, Example
from demur.studies.wordings import Wordings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from demur.conversation import Conversation
    from demur.errors import RowError
    from demur.verdict import Verdict

    _Rank = Callable[[Example], float]

__all__ = ["BORDERLINE", "BORDERLINE_ODDS", "BROKEN_ROWS", "DOUBTFUL", "SUREST", "Highlights"]

SUREST = 3
DOUBTFUL = 2
BORDERLINE = 10
BORDERLINE_ODDS = 4
"""How many times the odds p / (1 - p) of a borderline reply may be those of the threshold, or these its own."""
BROKEN_ROWS = 20


@dataclass(frozen=True, slots=True)
class Highlights:
    """Keep a few replies of each sort; two keep the best of both with `+`, so that memory never grows with the rows.

    No two examples in one list share the excerpt of the reply: a stock sentence is one example, however often used.

    Attributes:
        threshold: The probability from which a reply refuses, which borderline replies are near to; None without one.
        surest: Refusals of each kind (`unnamed` for those of none) by falling `Example.probability`, `SUREST` at most.
        doubtful: Refusals of each kind whose `Example.probability` is nearest to one half, `DOUBTFUL` at most; none
            that has none.
        borderline: Replies whose probability of refusal is within `near`, those nearest to the threshold by their
            log-odds, `BORDERLINE` at most.
        wordings: How refusals open, counted.
        broken: The first rows that could not be read, `BROKEN_ROWS` at most.
    """

    threshold: float | None = None
    surest: Mapping[str, tuple[Example, ...]] = field(default_factory=dict)
    doubtful: Mapping[str, tuple[Example, ...]] = field(default_factory=dict)
    borderline: tuple[Example, ...] = ()
    wordings: Wordings = field(default_factory=Wordings)
    broken: tuple[BrokenSample, ...] = ()

    @property
    def near(self) -> tuple[float, float] | None:
        """Return from which to which probability a reply is borderline; None without a threshold.

        |log-odds(p) - log-odds(threshold)| <= log `BORDERLINE_ODDS`: from .2 to .8 for a threshold of .5.
        """
        return None if self.threshold is None else _near(self.threshold)

    @classmethod
    def of(
        cls,
        judged: Iterable[tuple[Conversation, Verdict]],
        broken: Iterable[RowError] = (),
        *,
        keys: tuple[str, ...],
        threshold: float | None = None,
    ) -> Self:
        """Choose among judged conversations and broken rows.

        Args:
            judged: Conversations with their verdicts.
            broken: Errors of the rows that could not be read.
            keys: The categories, in the order of the verdicts' probabilities.
            threshold: The probability from which a reply refuses, if the labeler has one.
        """
        scored = [(talk, verdict) for talk, verdict in judged if verdict.is_scored]
        examples = [Example.of(talk, verdict, _own(verdict, keys)) for talk, verdict in scored]
        by_kind: dict[str, list[Example]] = {}
        for one, (_, verdict) in zip(examples, scored, strict=True):
            if verdict.is_refusal:
                by_kind.setdefault(UNNAMED if one.category is None else one.category, []).append(one)
        return cls(
            threshold,
            {key: _best(of_kind, _by_sureness, SUREST) for key, of_kind in by_kind.items()},
            {key: _best(filter(_has_probability, of_kind), _by_doubt, DOUBTFUL) for key, of_kind in by_kind.items()},
            _borderline(examples, threshold),
            Wordings.of((talk.reply, verdict.category) for talk, verdict in scored if verdict.is_refusal),
            tuple(BrokenSample.of(error) for error in broken)[:BROKEN_ROWS],
        )

    def __add__(self, other: Self) -> Self:
        """Keep the best of both.

        Raises:
            ValueError: The two were chosen at different thresholds.
        """
        if self.threshold != other.threshold:
            message = f"highlights at thresholds {self.threshold!r} and {other.threshold!r} do not add up"
            raise ValueError(message)
        return type(self)(
            self.threshold,
            _merged(self.surest, other.surest, _by_sureness, SUREST),
            _merged(self.doubtful, other.doubtful, _by_doubt, DOUBTFUL),
            _borderline((*self.borderline, *other.borderline), self.threshold),
            self.wordings + other.wordings,
            (*self.broken, *other.broken)[:BROKEN_ROWS],
        )

    def to_json(self) -> dict[str, object]:
        """Return what JSON can hold; `from_json` reads it back."""
        return {
            "threshold": self.threshold,
            "surest": {key: [one.to_json() for one in examples] for key, examples in self.surest.items()},
            "doubtful": {key: [one.to_json() for one in examples] for key, examples in self.doubtful.items()},
            "borderline": [one.to_json() for one in self.borderline],
            "wordings": self.wordings.to_json(),
            "broken": [asdict(one) for one in self.broken],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned."""
        return cls(
            data["threshold"],
            {key: tuple(map(Example.from_json, examples)) for key, examples in data["surest"].items()},
            {key: tuple(map(Example.from_json, examples)) for key, examples in data["doubtful"].items()},
            _borderline(map(Example.from_json, data["borderline"]), data["threshold"]),
            Wordings.from_json(data["wordings"]),
            tuple(BrokenSample(**one) for one in data["broken"]),
        )


def _own(verdict: Verdict, keys: Sequence[str]) -> float:
    """Return the probability of the verdict's own kind."""
    if verdict.category is None or not verdict.category_probabilities:
        return math.nan
    return verdict.category_probabilities[keys.index(verdict.category)]


def _by_sureness(example: Example) -> float:
    return -example.probability


def _by_doubt(example: Example) -> float:
    return abs(example.probability - 0.5)


def _has_probability(example: Example) -> bool:
    return not math.isnan(example.probability)


def _best(examples: Iterable[Example], rank: _Rank, n: int) -> tuple[Example, ...]:
    """Return the `n` first by rank, without probability last, equals in the order of the source; each reply once."""

    def order(example: Example) -> tuple[bool, float, int, int, str]:
        value = rank(example)
        is_unknown = math.isnan(value)
        side = "" if example.side is None else example.side
        return is_unknown, 0.0 if is_unknown else value, example.row_id, example.turn, side

    chosen: dict[str, Example] = {}
    for example in sorted(examples, key=order):
        if len(chosen) == n:
            break
        chosen.setdefault(example.reply, example)
    return tuple(chosen.values())


def _borderline(examples: Iterable[Example], threshold: float | None) -> tuple[Example, ...]:
    if threshold is None:
        return ()
    low, high = _near(threshold)
    near = [one for one in examples if low <= one.refusal_probability <= high]
    return _best(near, lambda one: _distance(one.refusal_probability, threshold), BORDERLINE)


def _distance(p: float, threshold: float) -> float:
    """Return tanh(|log-odds(p) - log-odds(threshold)| / 2): it ranks as the difference does, and 0 and 1 have one."""
    return 0.0 if p == threshold else abs(p - threshold) / (p * (1 - threshold) + threshold * (1 - p))


def _near(threshold: float) -> tuple[float, float]:
    rest = 1 - threshold
    low = threshold / (threshold + BORDERLINE_ODDS * rest)
    return low, BORDERLINE_ODDS * threshold / (BORDERLINE_ODDS * threshold + rest)


def _merged(
    ours: Mapping[str, tuple[Example, ...]], theirs: Mapping[str, tuple[Example, ...]], rank: _Rank, n: int
) -> dict[str, tuple[Example, ...]]:
    return {key: _best((*ours.get(key, ()), *theirs.get(key, ())), rank, n) for key in sorted(ours.keys() | theirs)}
