"""Hold what a panel of annotators says together, with anybody left out: nobody is measured against its own word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from demur.data.annotated import ANNOTATOR_KINDS
from demur.errors import SourceError
from demur.stats.answers import MISSING, counted
from demur.stats.consensus import majority
from demur.studies.answer_sheet import GATE, AnswerSheet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from demur.data.annotated import Annotated, Annotator, AnnotatorKind
    from demur.stats.answers import Codes
    from demur.stats.resampling import Flags
    from demur.taxonomy import Taxonomy

__all__ = ["REFUSAL", "Panel", "Said"]

REFUSAL = GATE.index("refusal")


class Said(NamedTuple):
    """Keep what is said of each reply, by one annotator or by several together.

    Attributes:
        gate: Places in `GATE`, or `MISSING`, (rows,).
        kind: Places in the taxonomy of the main kind, or `MISSING`, (rows,).
    """

    gate: Codes
    kind: Codes

    @property
    def is_answered(self) -> Flags:
        """Return where there is a verdict, (rows,)."""
        return np.not_equal(self.gate, MISSING)

    @property
    def is_refusal(self) -> Flags:
        """Return where the verdict is that the reply refuses, (rows,)."""
        return np.equal(self.gate, REFUSAL)


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Keep the annotators whose majority is the measure, all of one sort.

    Attributes:
        members: Who they are.
        gate: Places in `GATE`, or `MISSING`, (rows, members).
        kind: Places in the taxonomy, or `MISSING`, (rows, members).
        n_kinds: Number of kinds in the taxonomy.
    """

    members: tuple[Annotator, ...]
    gate: Codes
    kind: Codes
    n_kinds: int
    _known: dict[frozenset[int], Said] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: Sequence[Annotated], taxonomy: Taxonomy, kind: AnnotatorKind | None = None) -> Self:
        """Gather the annotators of one sort: people where there are any, unless the other sort is asked for.

        Raises:
            SourceError: There are none of that sort.
        """
        found = {one.annotator for row in rows for one in row.annotations}
        annotators = tuple(sorted(found, key=lambda annotator: annotator.place))
        met = (each for each in ANNOTATOR_KINDS if any(one.kind == each for one in annotators))
        wanted = next(met, None) if kind is None else kind
        places = [place for place, one in enumerate(annotators) if one.kind == wanted]
        if not places:
            message = f"no annotator of kind {wanted!r} to make a consensus; met {', '.join(map(str, annotators))}"
            raise SourceError(message)
        sheet = AnswerSheet.of(tuple(rows), annotators, taxonomy)
        members = tuple(annotators[place] for place in places)
        return cls(members, sheet.gate.codes[:, places], sheet.kind[:, places], len(taxonomy))

    def place(self, annotator: Annotator | None) -> int | None:
        """Return an annotator's place among the members; None for one that is not among them."""
        return None if annotator not in self.members else self.members.index(annotator)

    def said(self, place: int) -> Said:
        """Return what one member says."""
        return Said(self.gate[:, place], self.kind[:, place])

    def consensus(self, without: Iterable[int | None] = ()) -> Said:
        """Return what more than half of the others say: of the gate, and, where that is a refusal, of its main kind.

        Those who name no kind have no say in it. There is no consensus where no answer has more than half, nor where
        nobody is left.

        Args:
            without: Places of members that have no say; None stands for one that is no member.
        """
        left_out = frozenset(place for place in without if place is not None)
        if left_out not in self._known:
            rest = [place for place in range(len(self.members)) if place not in left_out]
            gate = majority(counted(self.gate[:, rest], len(GATE)))
            kind = majority(counted(self.kind[:, rest], self.n_kinds))
            self._known[left_out] = Said(gate, np.where(gate == REFUSAL, kind, MISSING))
        return self._known[left_out]
