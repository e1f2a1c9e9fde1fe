"""Lay out the replies that are worth reading, for whatever renders them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.report.plots import category_order, group_colors
from demur.report.tables import group_name
from demur.stats.composition import UNNAMED
from demur.stats.numbers import count, percent, probability

if TYPE_CHECKING:
    from demur.stats.shares import Share
    from demur.studies.examples import Example
    from demur.studies.findings import Audit

__all__ = ["Kind", "Shown", "borderline", "kinds"]


@dataclass(frozen=True, slots=True)
class Shown:
    """Keep one reply as it is shown.

    Attributes:
        place: Where it stands, and how sure the labeler is of it.
        request: What was asked.
        before: What was replied, up to the sentence that carries the refusal; all of it where none is known.
        evidence: That sentence, or nothing.
        after: What was replied after it.
    """

    place: str
    request: str
    before: str
    evidence: str = ""
    after: str = ""

    @property
    def reply(self) -> str:
        """Return what was replied."""
        return self.before + self.evidence + self.after


@dataclass(frozen=True, slots=True)
class Kind:
    """Keep one category with its examples.

    Attributes:
        name: What people call it.
        group: What people call its group.
        color: The colour of its group in the plots.
        definition: What the taxonomy says of it.
        met: How often it was met.
        surest: The surest examples.
        doubtful: Less sure ones that are not among the surest.
    """

    name: str
    group: str
    color: str
    definition: str
    met: str
    surest: tuple[Shown, ...]
    doubtful: tuple[Shown, ...]


def kinds(audit: Audit) -> tuple[Kind, ...]:
    """Return every category that was met, in the order of the plot."""
    shares = audit.by_category
    return tuple(_kind(audit, key, shares[key]) for key in category_order(audit) if shares[key].count)


def borderline(audit: Audit) -> tuple[Shown, ...]:
    """Return the replies nearest to the threshold, the nearest first."""
    return tuple(_shown(one, audit, with_outcome=True) for one in audit.highlights.borderline)


def _kind(audit: Audit, key: str, share: Share) -> Kind:
    surest = audit.highlights.surest.get(key, ())
    # A stock sentence is nearly as sure of another row.
    shown = {one.reply for one in surest}
    doubtful = tuple(one for one in audit.highlights.doubtful.get(key, ()) if one.reply not in shown)
    is_unnamed = key == UNNAMED
    return Kind(
        name=audit.category_name(key),
        group=group_name(audit, key),
        color=group_colors(audit)[UNNAMED if is_unnamed else audit.taxonomy.group_of(key)],
        definition="The labeler named no kind." if is_unnamed else audit.taxonomy[key].definition,
        met=f"{count(share.count)} · {percent(share.share, share.interval)}",
        surest=tuple(_shown(one, audit) for one in surest),
        doubtful=tuple(_shown(one, audit) for one in doubtful),
    )


def _shown(example: Example, audit: Audit, *, with_outcome: bool = False) -> Shown:
    side = "" if example.side is None else f", {example.side}"
    place = f"row {count(example.row_id)}" if example.where is None else example.where
    parts = [f"{place}{side}", f"refusal {probability(example.refusal_probability)}"]
    if example.category is not None:
        of_kind = probability(example.category_probability)
        parts.append(f"{audit.category_name(example.category).lower() if with_outcome else 'kind'} {of_kind}")
    outcome = {"full": "refuses", "partial": "refuses in part", "none": "does not refuse"}.get(example.outcome, "")
    if with_outcome or example.outcome == "partial":
        parts.append(outcome)
    if example.evidence is None:
        return Shown(" · ".join(parts), example.request, example.reply)
    start, end, text = example.evidence.start, example.evidence.end, example.reply
    parts.append(f"marked sentence {probability(example.evidence.score)}")
    return Shown(" · ".join(parts), example.request, text[:start], text[start:end], text[end:])
