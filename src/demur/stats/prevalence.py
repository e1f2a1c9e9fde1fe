"""Correct a counted share for the errors of whoever counted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from demur.stats.clusters import Clusters
from demur.stats.shares import Z_95, Share

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["METHOD", "CorrectedShare", "OperatingPoint", "Undefined", "corrected_share"]

_ROUNDING = 1e-9
_REFUSAL, _OTHER, _RIGHT = "refusal", "other", "right "

METHOD = "Rogan-Gladen 1978, interval of Lang-Reiczigel 2014"

Undefined = Literal[
    "nothing was counted",
    "the reference holds no refusal",
    "the reference holds nothing but refusals",
    "the labeler is no better than chance on the reference",
    "the reference is too small to tell the labeler from chance",
    "the reference is too small to correct the share",
    "fewer refusals were counted than its alarms on the reference give: it errs otherwise here",
    "more refusals were counted than its hits on the reference give: it errs otherwise here",
]
"""Why a share cannot be corrected."""


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Keep how a labeler did on replies whose truth is known.

    Attributes:
        true_positives: Refusals that it found.
        false_negatives: Refusals that it missed.
        true_negatives: Other replies that it let pass.
        false_positives: Other replies that it flagged.
        refusal_effect: Design effect of the sensitivity (Kish 1965): how many of the refusals say as much about it as
            an independent one, since those to one prompt are found or missed together.
        compliance_effect: Likewise of the specificity, among the other replies.
    """

    true_positives: int
    false_negatives: int
    true_negatives: int
    false_positives: int
    refusal_effect: float = 1.0
    compliance_effect: float = 1.0

    @classmethod
    def of(cls, truth: Iterable[bool], called: Iterable[bool], prompts: Iterable[Hashable]) -> Self:
        """Count replies of which it is known whether they refuse, whether they were called so, and what they answer."""
        cells: Counter[tuple[bool, bool]] = Counter()
        rows: list[tuple[str, list[str]]] = []
        for is_refusal, is_called, prompt in zip(truth, called, prompts, strict=True):
            side = _REFUSAL if is_refusal else _OTHER
            rows.append((str(prompt), [side, _RIGHT + side] if is_refusal == is_called else [side]))
            cells[bool(is_refusal), bool(is_called)] += 1
        clusters = Clusters.of(rows)
        effects = [
            clusters.effects([_RIGHT + side], side, of_others=True)[_RIGHT + side] for side in (_REFUSAL, _OTHER)
        ]
        return cls(cells[True, True], cells[True, False], cells[False, False], cells[False, True], *effects)

    @property
    def sensitivity(self) -> float:
        """Return the share of the refusals that it found; nan where there was none to find."""
        return Share(self.true_positives, self.refusals).share

    @property
    def specificity(self) -> float:
        """Return the share of the other replies that it let pass; nan where there was none."""
        return Share(self.true_negatives, self.others).share

    @property
    def youden(self) -> float:
        """Return J = sensitivity + specificity - 1 (Youden 1950): 1 is flawless, 0 is chance; nan where either is."""
        if not (self.refusals and self.others):
            return math.nan
        # The same number over whole counts, so that chance is exactly 0.
        errors = self.false_negatives * self.false_positives
        return (self.true_positives * self.true_negatives - errors) / (self.refusals * self.others)

    @property
    def refusals(self) -> int:
        """Return the number of refusals in truth."""
        return self.true_positives + self.false_negatives

    @property
    def others(self) -> int:
        """Return the number of replies that do not refuse in truth."""
        return self.true_negatives + self.false_positives


@dataclass(frozen=True, slots=True)
class CorrectedShare:
    """Keep a share as it would be had nothing been mislabelled, with its 95 % interval; nan where it is undefined.

    Attributes:
        share: The corrected share, from 0 to 1.
        low: Lower end of the interval.
        high: Upper end of the interval.
        undefined: Why there is no corrected share; None where there is one.
        method: How it was corrected, with its sources.
    """

    share: float
    low: float
    high: float
    undefined: Undefined | None = None
    method: str = METHOD

    @property
    def is_defined(self) -> bool:
        """Tell whether there is a corrected share."""
        return self.undefined is None


def corrected_share(counted: Share, at: OperatingPoint) -> CorrectedShare:
    """Correct a counted share for the errors that the labeler makes at its operating point.

    The share (Rogan and Gladen 1978, Am J Epidemiol 107:71-76), with AP as counted, clipped to [0, 1]:

        P = (AP + Sp - 1) / (Se + Sp - 1)

    The interval (Lang and Reiczigel 2014, Prev Vet Med 113:13-22), which also carries that Se and Sp were estimated
    from a reference of m refusals and k others, here their numbers over their design effects. With z = 1.96,
    n = total / effect, and counts adjusted by

        n' = n + z²    AP' = (n AP + z²/2) / n'    Se' = (m Se + 1) / (m + 2)    Sp' = (k Sp + 1) / (k + 2)

    and P' from the first formula, the ends, clipped to [0, 1], are P' + d ± z √V with

        d = 2 z² (P' Se'(1-Se') / (m + 2) - (1-P') Sp'(1-Sp') / (k + 2))
        V = (AP'(1-AP') / n' + P'² Se'(1-Se') / (m + 2) + (1-P')² Sp'(1-Sp') / (k + 2)) / (Se' + Sp' - 1)²

    It holds where the labeler errs on the counted replies as often as on the reference, and where the counted replies
    are not the reference. Where both ends lie beyond the same limit there is no corrected share: where P does so, too,
    the labeler errs otherwise here; where it does not, the one added to each cell of a small reference moved the ends
    there. Where it moved one of them past P, the interval is widened to hold it.

    Args:
        counted: Replies that the labeler called refusals, of those that it judged.
        at: How it did on the reference.
    """
    undefined = _undefined(counted.total, at)
    if undefined is not None:
        return _uncorrected(undefined)
    m, k = at.refusals / at.refusal_effect, at.others / at.compliance_effect
    sensitivity, specificity = (m * at.sensitivity + 1) / (m + 2), (k * at.specificity + 1) / (k + 2)
    youden = sensitivity + specificity - 1
    if youden <= _ROUNDING:
        return _uncorrected("the reference is too small to tell the labeler from chance")
    n = counted.total / counted.effect + Z_95**2
    flagged_share = (counted.count / counted.effect + Z_95**2 / 2) / n
    p = (flagged_share + specificity - 1) / youden
    of_flagged = flagged_share * (1 - flagged_share) / n
    of_sensitivity = sensitivity * (1 - sensitivity) / (m + 2)
    of_specificity = specificity * (1 - specificity) / (k + 2)
    middle = p + 2 * Z_95**2 * (p * of_sensitivity - (1 - p) * of_specificity)
    margin = Z_95 * math.sqrt(of_flagged + p**2 * of_sensitivity + (1 - p) ** 2 * of_specificity) / youden
    low, high = middle - margin, middle + margin
    share = (counted.share + at.specificity - 1) / at.youden
    # Clipped, both ends would be the same limit, and look certain.
    if high <= 0 or low >= 1:
        return _uncorrected(_beyond(share, is_below=high <= 0))
    return CorrectedShare(_clipped(share), _clipped(min(low, share)), _clipped(max(high, share)))


def _beyond(share: float, *, is_below: bool) -> Undefined:
    """Say why both ends of an interval lie below 0, or above 1."""
    # Rounding apart, since a share of exactly 0 or 1 fits.
    if -_ROUNDING <= share <= 1 + _ROUNDING:
        return "the reference is too small to correct the share"
    if is_below:
        return "fewer refusals were counted than its alarms on the reference give: it errs otherwise here"
    return "more refusals were counted than its hits on the reference give: it errs otherwise here"


def _uncorrected(reason: Undefined) -> CorrectedShare:
    return CorrectedShare(math.nan, math.nan, math.nan, reason)


def _undefined(total: int, at: OperatingPoint) -> Undefined | None:
    reasons: tuple[tuple[bool, Undefined], ...] = (
        (total == 0, "nothing was counted"),
        (at.refusals == 0, "the reference holds no refusal"),
        (at.others == 0, "the reference holds nothing but refusals"),
        (at.youden <= 0, "the labeler is no better than chance on the reference"),
    )
    return next((reason for is_so, reason in reasons if is_so), None)


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share))
