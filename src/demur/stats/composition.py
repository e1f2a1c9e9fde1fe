"""Count what a labeler said: how many replies refuse, and of which kinds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from demur.kinds import RESOLUTIONS
from demur.stats.clusters import Clusters
from demur.stats.shares import Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from demur.stats.shares import Interval
    from demur.taxonomy import Taxonomy
    from demur.verdict import Verdict

__all__ = ["UNNAMED", "Composition"]

UNNAMED = "unnamed"
"""Stands for the kind, or the group, of a refusal whose labeler named none."""

# What replies are counted as within their request.
_SCORED, _REFUSAL, _SET = "scored", "refusal", "set"
_KIND, _GROUP, _RESOLUTION = "kind ", "group ", "resolution "


@dataclass(frozen=True, slots=True)
class Composition:
    """Keep the counts of many verdicts; they add up with `+` and go to and from JSON without loss.

    Scored replies are those that could be judged; every share is one of scored replies, or of refusals where it says
    so, and never of the unscored. Refusals are the replies that count as such under the policy of their verdicts. By
    category and by group, the counts add up to them: whatever was not named stands under `unnamed`, the last entry.

    Attributes:
        fingerprint: Of the taxonomy that the verdicts are in.
        full: Replies that refuse in full.
        partial: Replies that refuse in part, whether or not they count as refusals.
        none: Replies that do not refuse.
        category_counts: Refusals by main kind: every key of the taxonomy in its order, then `unnamed`.
        group_counts: Refusals by group: every group in its order, then `unnamed`.
        resolution_counts: Refusals that have a set of kinds, by what it resolves to: `kind`, `group`, `undetermined`.
        unscored: Replies that could not be judged, by reason.
        expected_refusals: Sum of the calibrated probabilities of refusal, in full or in part whatever the policy, over
            the scored replies that have one.
        with_probability: Number of those replies.
        requests: The same counts by the request that was answered: replies to one request are not independent, and the
            intervals know by how much. Empty where every reply stands alone.
    """

    fingerprint: str
    full: int
    partial: int
    none: int
    category_counts: Mapping[str, int]
    group_counts: Mapping[str, int]
    resolution_counts: Mapping[str, int]
    unscored: Mapping[str, int]
    expected_refusals: float
    with_probability: int
    requests: Clusters = field(default_factory=Clusters)

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], taxonomy: Taxonomy, *, requests: Iterable[str] | None = None) -> Self:
        """Count verdicts, read once; of none at all, the neutral element of `+`.

        With requests, memory grows with the verdicts: of a large number, add up the compositions of parts.

        Args:
            verdicts: What a labeler said.
            taxonomy: What the verdicts are in.
            requests: What names the request that each reply answers, one for each verdict; None where every reply
                stands alone.

        Raises:
            ValueError: A verdict names a category or a group that the taxonomy does not have, or there are more or
                fewer requests than verdicts.
        """
        outcomes, kinds, groups, resolutions, reasons = (Counter[str]() for _ in range(5))
        expected, with_probability = 0.0, 0
        answered: list[tuple[str, tuple[str, ...]]] = []
        names = itertools.repeat(None) if requests is None else requests
        for verdict, request in zip(verdicts, names, strict=requests is not None):
            if request is not None and verdict.is_scored:
                answered.append((request, _marks(verdict, taxonomy)))
            outcomes[verdict.outcome] += 1
            if verdict.is_refusal:
                kinds[UNNAMED if verdict.category is None else verdict.category] += 1
                groups[_group(verdict, taxonomy)] += 1
                resolutions[str(verdict.resolution)] += 1
            if verdict.unscored_reason is not None:
                reasons[verdict.unscored_reason] += 1
            elif not math.isnan(verdict.refusal_probability):
                expected += verdict.refusal_probability
                with_probability += 1
        return cls(
            fingerprint=taxonomy.fingerprint,
            full=outcomes["full"],
            partial=outcomes["partial"],
            none=outcomes["none"],
            category_counts=_in_order(kinds, taxonomy.keys),
            group_counts=_in_order(groups, [group.key for group in taxonomy.groups]),
            resolution_counts={resolution: resolutions[resolution] for resolution in RESOLUTIONS},
            unscored=dict(sorted(reasons.items())),
            expected_refusals=expected,
            with_probability=with_probability,
            requests=Clusters.of(answered),
        )

    def __add__(self, other: Self) -> Self:
        """Add counts of the same taxonomy.

        Raises:
            ValueError: The taxonomies differ, so that equal keys need not mean the same.
        """
        if self.fingerprint != other.fingerprint:
            message = (
                f"compositions of taxonomies {self.fingerprint!r} and {other.fingerprint!r} do not add up; "
                "label both with the same taxonomy"
            )
            raise ValueError(message)
        return type(self)(
            self.fingerprint,
            self.full + other.full,
            self.partial + other.partial,
            self.none + other.none,
            _added(self.category_counts, other.category_counts),
            _added(self.group_counts, other.group_counts),
            _added(self.resolution_counts, other.resolution_counts),
            _added(self.unscored, other.unscored),
            self.expected_refusals + other.expected_refusals,
            self.with_probability + other.with_probability,
            self.requests + other.requests,
        )

    @property
    def refusals(self) -> int:
        """Return the number of replies that count as refusals: under `standard`, those in full or in part."""
        return sum(self.category_counts.values())

    @property
    def scored(self) -> int:
        """Return the number of replies that could be judged."""
        return self.full + self.partial + self.none

    @property
    def rows(self) -> int:
        """Return the number of all verdicts, the unscored among them."""
        return self.scored + sum(self.unscored.values())

    @property
    def refused(self) -> Share:
        """Return the refusals among the scored replies."""
        return Share(self.refusals, self.scored, self.requests.effects([_REFUSAL], _SCORED)[_REFUSAL])

    @property
    def share(self) -> float:
        """Return refusals / scored; nan where nothing was scored. As counted, not corrected for errors."""
        return Share(self.refusals, self.scored).share

    @property
    def interval(self) -> Interval:
        """Return the 95 % interval of `share`: of sampling requests alone, as if every verdict were right."""
        return self.refused.interval

    @property
    def n_requests(self) -> int:
        """Return how many different requests the scored replies answer, to some two per cent where they are many."""
        return self.scored if self.requests.are_single(_SCORED) else min(self.requests.number, self.scored)

    @property
    def expected_share(self) -> float:
        """Return the mean calibrated probability of refusal over the replies that have one; nan where none has."""
        return self.expected_refusals / self.with_probability if self.with_probability else math.nan

    @property
    def by_category(self) -> dict[str, Share]:
        """Return the refusals of each main kind among the scored replies."""
        return self._shares(self.category_counts, _KIND, _SCORED, self.scored)

    @property
    def by_group(self) -> dict[str, Share]:
        """Return the refusals of each group among the scored replies."""
        return self._shares(self.group_counts, _GROUP, _SCORED, self.scored)

    @property
    def by_category_of_refusals(self) -> dict[str, Share]:
        """Return the refusals of each main kind among the refusals."""
        return self._shares(self.category_counts, _KIND, _REFUSAL, self.refusals)

    @property
    def by_group_of_refusals(self) -> dict[str, Share]:
        """Return the refusals of each group among the refusals."""
        return self._shares(self.group_counts, _GROUP, _REFUSAL, self.refusals)

    @property
    def by_resolution(self) -> dict[str, Share]:
        """Return what the sets of kinds resolve to, among the refusals that have one."""
        return self._shares(self.resolution_counts, _RESOLUTION, _SET, sum(self.resolution_counts.values()))

    def _shares(self, counts: Mapping[str, int], kind: str, whole: str, total: int) -> dict[str, Share]:
        effects = self.requests.effects([kind + key for key in counts], whole)
        return {key: Share(count, total, effects[kind + key]) for key, count in counts.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the counts, ready for `json.dumps`; what follows from them is not stored."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return what `to_json` gave.

        Raises:
            ValueError: A count is missing, or there is one that no composition has.
        """
        names = {field.name for field in fields(cls)}
        if stored.keys() != names:
            message = f"a stored composition with {sorted(stored)}; it needs exactly {sorted(names)}"
            raise ValueError(message)
        return cls(**{**stored, "requests": Clusters.from_json(stored["requests"])})


def _group(verdict: Verdict, taxonomy: Taxonomy) -> str:
    if verdict.group is not None:
        return verdict.group
    # An unknown category is reported once, where the counts are put in order.
    return taxonomy.group_of(verdict.category) if verdict.category in taxonomy.keys else UNNAMED


def _in_order(counts: Counter[str], keys: Iterable[str]) -> dict[str, int]:
    ordered = {key: counts[key] for key in (*keys, UNNAMED)}
    unknown = counts.keys() - ordered.keys()
    if unknown:
        message = f"verdicts name {sorted(unknown)}, which the taxonomy does not have; it has {list(ordered)[:-1]}"
        raise ValueError(message)
    return ordered


def _added(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    return {key: ours.get(key, 0) + theirs.get(key, 0) for key in (*ours, *(key for key in theirs if key not in ours))}


def _marks(verdict: Verdict, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Name what a scored verdict counts as among those of its request."""
    if not verdict.is_refusal:
        return (_SCORED,)
    kind = UNNAMED if verdict.category is None else verdict.category
    resolution = verdict.resolution
    of_set = () if resolution is None else (_SET, _RESOLUTION + resolution)
    return (_SCORED, _REFUSAL, _KIND + kind, _GROUP + _group(verdict, taxonomy), *of_set)
