"""Say in plain JSON what an audit counted: the same counts give the same bytes."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from demur.stats.prevalence import corrected_share
from demur.studies.tally import BINS
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.stats.composition import Composition
    from demur.stats.prevalence import OperatingPoint
    from demur.stats.shares import Share
    from demur.studies.tally import Tally

__all__ = ["summary"]

# A share of a million rows is told apart from its neighbour by six digits.
_DIGITS = 8
_OF_MANIFEST = ("model", "taxonomy", "policy", "thresholds", "category_sets", "options", "demur")


def summary(
    tally: Tally, manifest: Mapping[str, Any], *, layouts: Mapping[str, int], at: OperatingPoint | None
) -> dict[str, Any]:
    """Return the content of `composition.json`.

    Args:
        tally: Counts and highlights.
        manifest: What was audited and how.
        layouts: Number of files by the layout that they were read in.
        at: How often the labeler errs; None where it is not known.
    """
    counts = tally.composition
    return {
        **_counted(counts),
        "expected_share": _number(counts.expected_share),
        "corrected": _corrected(counts, at, Policy(manifest["policy"]), str(manifest["model"]["name"])),
        "unscored": dict(counts.unscored),
        # Where texts are not compared, nobody knows how many repeat: 0 would be a claim.
        "repeats": tally.repeats if manifest["options"]["dedup"] else None,
        "other_scripts": tally.other_scripts,
        "by_side": {side: _counted(of_side) for side, of_side in tally.sides.items()},
        "pairs": {name: _of_pairs(share) for name, share in tally.pairs.shares.items()},
        "probabilities": {"bins": BINS, "counts": list(tally.probabilities)},
        "broken_rows": [asdict(sample) for sample in tally.highlights.broken],
        "source": {**manifest["source"], "layouts": dict(sorted(layouts.items()))},
        **{key: manifest[key] for key in _OF_MANIFEST},
    }


def _counted(counts: Composition) -> dict[str, Any]:
    by_group, by_category = counts.by_group_of_refusals, counts.by_category_of_refusals
    return {
        "rows": counts.rows,
        "scored": counts.scored,
        "refusals": counts.refusals,
        "full": counts.full,
        "partial": counts.partial,
        "none": counts.none,
        "share": _number(counts.share),
        "interval": _numbers(counts.interval),
        "requests": counts.n_requests,
        "design_effect": _number(counts.refused.effect),
        "groups": {key: _part(share, by_group[key]) for key, share in counts.by_group.items()},
        "categories": {key: _part(share, by_category[key]) for key, share in counts.by_category.items()},
        "resolutions": {key: _of_sets(share) for key, share in counts.by_resolution.items()},
    }


def _part(of_scored: Share, of_refusals: Share) -> dict[str, Any]:
    return {
        "count": of_scored.count,
        "share": _number(of_scored.share),
        "interval": _numbers(of_scored.interval),
        "share_of_refusals": _number(of_refusals.share),
        "interval_of_refusals": _numbers(of_refusals.interval),
    }


def _of_pairs(share: Share) -> dict[str, Any]:
    return {"count": share.count, "share": _number(share.share), "interval": _numbers(share.interval)}


def _of_sets(share: Share) -> dict[str, Any]:
    return {"count": share.count, "share_of_sets": _number(share.share), "interval_of_sets": _numbers(share.interval)}


def _corrected(counts: Composition, at: OperatingPoint | None, policy: Policy, labeler: str) -> dict[str, Any]:
    if at is None:
        unknown = f"the error rates of {labeler!r} are not known"
        why = unknown if policy.not_corrected is None else policy.not_corrected
        return {"share": None, "interval": [None, None], "method": None, "why_not": why, "operating_point": None}
    found = corrected_share(counts.refused, at)
    return {
        "share": _number(found.share),
        "interval": _numbers((found.low, found.high)),
        "method": found.method,
        "why_not": found.undefined,
        "operating_point": asdict(at),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, _DIGITS)


def _numbers(values: tuple[float, float]) -> list[float | None]:
    return [_number(value) for value in values]
