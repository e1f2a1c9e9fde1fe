"""Lay out what annotators said as answers to questions: one table of codes for each question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from demur.data.label_fields import OUTCOMES
from demur.stats.answers import MISSING, Answers
from demur.studies.requests import request_clusters

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from demur.data.annotated import Annotated, Annotation, Annotator
    from demur.stats.answers import Codes
    from demur.stats.resampling import Flags
    from demur.taxonomy import Taxonomy

__all__ = ["GATE", "NONE", "AnswerSheet", "Question"]

GATE = ("refusal", "none")
NONE = OUTCOMES.index("none")


class Question(NamedTuple):
    """Keep one question with everybody's answers.

    Attributes:
        key: `gate`, `outcome`, `group`, `kind`, `kinds` (all labels of a refusal, as a set), `is_group` or `is_kind`
            (whether a reply is a refusal of the one named, over all replies).
        of: The group or kind of `is_group` and `is_kind`; else nothing.
        classes: What can be answered, in order.
        codes: The answers, (items, annotators).
        requests: Which request each item answers, counted from 0, (items,).
    """

    key: str
    of: str
    classes: tuple[Hashable, ...]
    codes: Codes
    requests: Codes

    def answers(self, items: Flags | None = None, annotators: Sequence[int] | None = None) -> Answers:
        """Return the answers of some annotators to some items; of all of them by default."""
        wanted = slice(None) if items is None else items
        codes = self.codes[wanted]
        asked = codes if annotators is None else codes[:, annotators]
        return Answers.of(self.classes, asked, self.requests[wanted])


@dataclass(frozen=True, slots=True, eq=False)
class AnswerSheet:
    """Keep the answers of all annotators to all items.

    A refusal whose kind an annotator did not name is a missing answer to every question about kinds; so is a reply
    that it does not call a refusal, but for `is_group` and `is_kind`, which it answers with no.

    Attributes:
        rows: The items.
        annotators: Who answered, the columns of all tables.
        taxonomy: Names the kinds.
        outcome: Places among `OUTCOMES`, (items, annotators).
        kind: Places of main kinds, (items, annotators).
        kinds: Places of label sets among `sets`, (items, annotators).
        sets: The label sets that were given.
        requests: Which request each item answers, counted from 0, (items,); one whose text is not known stands alone.
    """

    rows: tuple[Annotated, ...]
    annotators: tuple[Annotator, ...]
    taxonomy: Taxonomy
    outcome: Codes
    kind: Codes
    kinds: Codes
    sets: tuple[frozenset[str], ...]
    requests: Codes

    @classmethod
    def of(cls, rows: tuple[Annotated, ...], annotators: tuple[Annotator, ...], taxonomy: Taxonomy) -> Self:
        """Look up every annotator's answers."""
        columns = {annotator: column for column, annotator in enumerate(annotators)}
        outcome, kind, kinds = (np.full((len(rows), len(annotators)), MISSING, dtype=np.int64) for _ in range(3))
        sets: dict[frozenset[str], int] = {}
        places = {key: place for place, key in enumerate(taxonomy.keys)}
        for item, row in enumerate(rows):
            for said in _answered(row):
                at = item, columns[said.annotator]
                outcome[at] = OUTCOMES.index(said.outcome)
                if said.labels:
                    kind[at] = places[said.labels[0]]
                    kinds[at] = sets.setdefault(frozenset(said.labels), len(sets))
        return cls(rows, annotators, taxonomy, outcome, kind, kinds, tuple(sets), _requests(rows))

    @property
    def n_requests(self) -> int | None:
        """Return how many different requests there are; None where not every text is known."""
        is_known = all(row.conversation is not None for row in self.rows)
        return len(np.unique(self.requests)) if is_known else None

    @property
    def gate(self) -> Question:
        """Ask whether a reply refuses, in full or in part."""
        refuses = np.where(self.outcome == NONE, GATE.index("none"), GATE.index("refusal"))
        return self._question("gate", GATE, np.where(self.outcome == MISSING, MISSING, refuses))

    @property
    def questions(self) -> tuple[Question, ...]:
        """Return the questions that are asked of everything; those about kinds only where somebody named one."""
        both = (self.gate, self._question("outcome", OUTCOMES, self.outcome))
        if not self.sets:
            return both
        of_kind = np.where(self.kind == MISSING, MISSING, self._group_of[self.kind])
        group = self._question("group", self._groups, of_kind)
        return (
            *both,
            *((group,) if len(self._groups) > 1 else ()),
            self._question("kind", self.taxonomy.keys, self.kind),
        )

    @property
    def label_sets(self) -> Question:
        """Ask for all kinds of a refusal, which may lie near each other."""
        return self._question("kinds", self.sets, self.kinds)

    @property
    def one_against_rest(self) -> tuple[Question, ...]:
        """Ask of each group and each kind whether a reply is a refusal of it; nothing where nobody named a kind."""
        if not self.sets:
            return ()
        groups = [self._is("is_group", key, self._group_of == place) for place, key in enumerate(self._groups)]
        kinds = [self._is("is_kind", key, np.array(self.taxonomy.keys) == key) for key in self.taxonomy.keys]
        return (*groups, *kinds)

    @property
    def kind_or_none(self) -> Question:
        """Ask for the main kind, where not to refuse is one more answer."""
        classes = (*self.taxonomy.keys, "none")
        return self._question("kind", classes, np.where(self.outcome == NONE, len(classes) - 1, self.kind))

    @property
    def _groups(self) -> tuple[str, ...]:
        return tuple(group.key for group in self.taxonomy.groups)

    @property
    def _group_of(self) -> Codes:
        return np.array([self._groups.index(self.taxonomy.group_of(key)) for key in self.taxonomy.keys])

    def _is(self, question: str, of: str, members: Flags) -> Question:
        codes = np.where(self.kind == MISSING, MISSING, members[self.kind])
        return self._question(question, ("no", "yes"), np.where(self.outcome == NONE, 0, codes), of=of)

    def _question(self, key: str, classes: Sequence[Hashable], codes: Codes, *, of: str = "") -> Question:
        return Question(key, of, tuple(classes), codes, self.requests)


def _requests(rows: Sequence[Annotated]) -> Codes:
    named = iter(request_clusters(row.conversation for row in rows if row.conversation is not None))
    # Requests are named by a text, and replies without one by a number: a pair is neither.
    names = [("unknown", place) if row.conversation is None else next(named) for place, row in enumerate(rows)]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([places[name] for name in names], dtype=np.int64)


def _answered(row: Annotated) -> list[Annotation]:
    return [one for one in row.annotations if one.outcome is not None]
