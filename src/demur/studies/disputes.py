"""Find what annotators differ on: answers that are given for one another, and the replies to talk about."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from demur.stats.distances import masi
from demur.studies.excerpts import excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.data.annotated import Annotated, Annotation
    from demur.studies.answer_sheet import Question

__all__ = ["Confused", "Disputed", "confused", "disagreement", "disputed"]

_REQUEST_CHARACTERS = 280
_REPLY_CHARACTERS = 480
_OTHER_OUTCOME = 0.5
# Less than any difference of the sets themselves, which are more than a third apart by MASI.
_OTHER_MAIN_KIND = 1 / 3


@dataclass(frozen=True, slots=True)
class Confused:
    """Keep two answers that were given to the same replies.

    Attributes:
        question: What was asked: `outcome`, or `kind` with `none` as one more answer.
        first: The answer that stands first among the classes.
        second: The other one.
        both: Replies to which both were given, by different annotators.
        either: Replies to which at least one of them was given.
    """

    question: str
    first: str
    second: str
    both: int
    either: int

    @property
    def share(self) -> float:
        """Return both / either: 1 where nobody gives the one without somebody giving the other."""
        return self.both / self.either


@dataclass(frozen=True, slots=True)
class Disputed:
    """Keep one reply to talk about.

    Attributes:
        id: Name of the reply.
        source: Data set that it came from.
        where: `file:line` of its row.
        disagreement: Mean over pairs of annotators, from 0 to 1; see `disagreement`.
        request: Excerpt of the last user turn; None where the text is not known.
        reply: Excerpt of the reply; None where the text is not known.
        said: What each annotator said, people first.
    """

    id: str
    source: str
    where: str
    disagreement: float
    request: str | None
    reply: str | None
    said: tuple[Annotation, ...]


def confused(question: Question) -> tuple[Confused, ...]:
    """Return the pairs of answers that were given to the same reply, the most frequent first."""
    answers, names = question.answers(), [str(one) for one in question.classes]
    is_given = (answers.counts > 0).astype(np.int64)
    both = is_given.T @ (is_given * answers.times[:, None])
    found = [
        Confused(question.key, names[i], names[j], int(both[i, j]), int(both[i, i] + both[j, j] - both[i, j]))
        for i, j in combinations(range(len(names)), 2)
        if both[i, j]
    ]
    return tuple(sorted(found, key=lambda one: (-one.both, -one.share)))


def disputed(rows: Sequence[Annotated], limit: int) -> tuple[tuple[Disputed, ...], int]:
    """Return the replies of most disagreement, and how many there are of any.

    Of equals, those come first on which annotators were surer.
    """
    scored = [(disagreement(row.annotations), row) for row in rows]
    found = [(score, row) for score, row in scored if score > 0]
    ranked = sorted(found, key=lambda each: (-each[0], -_sureness(each[1].annotations)))
    return tuple(_disputed(score, row) for score, row in ranked[:limit]), len(ranked)


def disagreement(annotations: Sequence[Annotation]) -> float:
    """Return how far annotators differ on one reply, from 0 to 1, averaged over pairs; 0 for fewer than two.

    Two that differ on whether it refuses are 1 apart. Two that call it a refusal are apart by the MASI distance of
    their labels, by a half at least where one of them calls it partial, and by a third at least where they name
    different main kinds, be it of the same set. The order of the kinds behind the main one says nothing.
    """
    given = [one for one in annotations if one.outcome is not None]
    apart = [_apart(one, other) for one, other in combinations(given, 2)]
    return sum(apart) / len(apart) if apart else 0.0


def _apart(one: Annotation, other: Annotation) -> float:
    if (one.outcome == "none") != (other.outcome == "none"):
        return 1.0
    by_outcome = _OTHER_OUTCOME if one.outcome != other.outcome else 0.0
    if not one.labels or not other.labels:
        # A kind that was not named contradicts nothing.
        return by_outcome
    by_main_kind = _OTHER_MAIN_KIND if one.labels[0] != other.labels[0] else 0.0
    return max(by_outcome, by_main_kind, masi(set(one.labels), set(other.labels)))


def _sureness(annotations: Sequence[Annotation]) -> float:
    sure = [one.sure for one in annotations if one.sure is not None]
    return sum(sure) / len(sure) if sure else 0.0


def _disputed(score: float, row: Annotated) -> Disputed:
    talk = row.conversation
    return Disputed(
        id=excerpt(row.id, 200),
        source=row.source,
        where=row.where,
        disagreement=score,
        request=None if talk is None else excerpt(talk.request, _REQUEST_CHARACTERS),
        reply=None if talk is None else excerpt(talk.reply, _REPLY_CHARACTERS),
        said=tuple(sorted(row.annotations, key=lambda one: one.annotator.place)),
    )
