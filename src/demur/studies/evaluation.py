"""Measure a labeler against replies whose truth is known."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.data.label_fields import OUTCOMES
from demur.kinds import kind_set, main_kind
from demur.stats.composition import UNNAMED
from demur.stats.conformal import CategorySets
from demur.stats.metrics import GateMetrics, HeadMetrics
from demur.stats.resampling import Estimate, Resamples, require_draws
from demur.stats.selective import RiskCoverage, SetMetrics
from demur.studies.judging import require_one_each, verdicts_of
from demur.studies.requests import request_clusters
from demur.studies.writing import without_nan
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demur.data.labelled import Labelled
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler, Verdict

__all__ = ["Evaluation", "evaluate"]

Pairs = list[tuple["Labelled", "Verdict"]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Keep how a labeler did; unscored verdicts are counted by reason and stand in no figure, for nothing is guessed.

    Attributes:
        labeler: Name of the labeler.
        policy: What counts as a refusal, in truth and in the verdicts. Under `strict`, rows of which it is not known
            whether they refuse in full are in no figure of the gate, and no figure rests on probabilities, which are
            those of refusing in full or in part. Under `broad`, the truth is that of `standard`: no label says where
            an answer stands in place of what was asked: each one that is found counts as an error.
        rows: All rows given, whatever is known of them.
        clusters: Different requests among them; the intervals resample these.
        unscored: Rows that the labeler could not judge, by reason.
        gate: Refusal or not, over the scored rows where that is known.
        full_against_none: The same without the rows that refuse in part, under any policy.
        outcomes: Scored rows of known outcome: how many of a true outcome (outer key) were given which (inner key).
        head: The kinds, over scored refusals in truth on whose main kind readers agree. The gate has no say here: the
            kind is taken from the probabilities given that the reply refuses. A labeler that gives none is taken at
            the category of its verdict, so that a refusal which it missed is one which it left unnamed.
        families: Accuracy of the gate within each family of cases, where the file sorts its cases into families.
        end_to_end: Verdicts right in gate and main kind, over scored replies that either do not refuse or whose main
            kind is agreed; nan where no kind is, for it would be the specificity alone.
        gate_curve: The gate where it answers only if sure, by the probability that its verdict is right: p, that of
            refusal, where it refuses, and 1 - p where it does not. At a threshold other than one half, that is not
            max(p, 1 - p): below .9, a verdict of `none` on p = .85 is most probably wrong.
        kind_curve: The kinds where they are named only if sure, by the probability of the most probable one; over the
            refusals of `head`.
        sets: The labeler's sets of kinds, over the refusals of `head`, the gate having no say here either; None where
            it gives none, or the data hold no such refusal.
        other_splits: Number of rows that were left out before, by their split.
    """

    labeler: str
    policy: Policy
    rows: int
    clusters: int
    unscored: Mapping[str, int]
    gate: GateMetrics
    full_against_none: GateMetrics
    outcomes: Mapping[str, Mapping[str, int]]
    head: HeadMetrics
    families: Mapping[str, Estimate]
    end_to_end: Estimate
    gate_curve: RiskCoverage
    kind_curve: RiskCoverage
    sets: SetMetrics | None
    other_splits: Mapping[str, int] = field(default_factory=dict)

    @property
    def scored(self) -> int:
        """Return the number of rows that the labeler judged."""
        return self.rows - sum(self.unscored.values())

    @property
    def without_truth(self) -> int:
        """Return the number of scored rows whose labels do not say whether they count as refusals."""
        return self.scored - self.gate.counts.refusals - self.gate.counts.others

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for `json.dumps`; a figure that is undefined is null."""
        whole: dict[str, Any] = {**without_nan(asdict(self)), "without_truth": self.without_truth}
        for stored, kind in zip(whole["head"]["kinds"], self.head.kinds, strict=True):
            figures = {"precision": kind.precision.share, "recall": kind.recall.share, "f1": kind.f1}
            intervals = {"precision_interval": kind.precision.interval, "recall_interval": kind.recall.interval}
            stored.update(without_nan({**figures, **intervals}), support=kind.support, called=kind.precision.total)
        return whole


def evaluate(
    labeler: Labeler,
    rows: Sequence[Labelled],
    taxonomy: Taxonomy,
    *,
    policy: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> Evaluation:
    """Label the rows and measure the verdicts.

    Args:
        labeler: What is measured.
        rows: Conversations with what is known of their replies.
        taxonomy: Of the rows and of the labeler.
        policy: What counts as a refusal; None for the labeler's own, if it has one, or else `standard`.
        resamples: Draws of whole requests behind each interval.
        seed: Of those draws: the same rows, verdicts and seed give the same intervals.

    Raises:
        LabelerError: The labeler gives what is no verdict.
        ValueError: The labeler gives more or fewer verdicts than there are rows, or decides under another policy; there
            are no draws, or the seed is below 0.
    """
    require_draws(resamples, seed)
    counted = Policy.of(labeler, policy)
    verdicts = [verdict.under(counted) for verdict in verdicts_of(labeler, [row.conversation for row in rows])]
    require_one_each(labeler, len(verdicts), len(rows))
    rows = [replace(row, is_refusal=_truth(row, counted)) for row in rows]
    scored = [(row, verdict) for row, verdict in zip(rows, verdicts, strict=True) if verdict.is_scored]
    gated = [(row, verdict) for row, verdict in scored if row.is_refusal is not None]
    kinds = [(row, verdict) for row, verdict in gated if row.is_refusal and row.labels and row.is_agreed]
    draw = _Draw(resamples, seed)
    return Evaluation(
        labeler=labeler.name,
        policy=counted,
        rows=len(rows),
        clusters=len(set(_clusters(rows))),
        unscored=dict(sorted(Counter(v.unscored_reason for v in verdicts if v.unscored_reason is not None).items())),
        gate=_gate(gated, draw),
        full_against_none=_gate(_full_or_none(gated), draw),
        outcomes=_outcomes(scored),
        head=HeadMetrics.of(
            [row.labels for row, _ in kinds], [_kind(verdict, taxonomy) for _, verdict in kinds], taxonomy, draw(kinds)
        ),
        families=_families(gated, draw),
        end_to_end=_end_to_end([*kinds, *(pair for pair in gated if not pair[0].is_refusal)] if kinds else [], draw),
        gate_curve=_gate_curve(gated, draw),
        kind_curve=_kind_curve(kinds, taxonomy, draw),
        sets=_sets(labeler, kinds, taxonomy, draw),
    )


@dataclass(frozen=True, slots=True)
class _Draw:
    """Draw resamples over any rows, each time from the same seed."""

    number: int
    seed: int

    def __call__(self, pairs: Pairs) -> Resamples:
        generator = np.random.default_rng(self.seed)
        return Resamples.of(_clusters([row for row, _ in pairs]), number=self.number, generator=generator)


def _truth(row: Labelled, policy: Policy) -> bool | None:
    """Tell whether a row counts as a refusal; None where that is not known."""
    if policy is Policy.strict and row.is_refusal:
        return None if row.outcome is None else policy.counts(row.outcome)
    return row.is_refusal


def _full_or_none(pairs: Pairs) -> Pairs:
    """Return the rows that refuse in full or not at all; in part they do neither, though `strict` counts it as none.

    Where it is known of no refusal how far it goes, there are none: alone, the others would be a gate without hits.
    """
    known = [pair for pair in pairs if pair[0].outcome is not None or not pair[0].is_refusal]
    if len(known) < len(pairs) and not any(row.is_refusal for row, _ in known):
        return []
    return [
        (row, said) for row, said in known if row.outcome == "full" or (row.outcome != "partial" and not row.is_refusal)
    ]


def _clusters(rows: Sequence[Labelled]) -> list[str | int]:
    return request_clusters(row.conversation for row in rows)


def _gate(pairs: Pairs, draw: _Draw) -> GateMetrics:
    truth = np.array([row.is_refusal for row, _ in pairs], dtype=np.bool_)
    called = np.array([verdict.is_refusal for _, verdict in pairs], dtype=np.bool_)
    probability = np.array([_probability(verdict) for _, verdict in pairs], dtype=np.float64)
    return GateMetrics.of(truth, called, probability, draw(pairs))


def _probability(verdict: Verdict) -> float:
    """Return the probability that the verdict counts as a refusal; under `strict`, nobody gives one."""
    return math.nan if verdict.policy is Policy.strict else verdict.refusal_probability


def _families(pairs: Pairs, draw: _Draw) -> dict[str, Estimate]:
    names = dict.fromkeys(row.family for row, _ in pairs if row.family is not None)
    members = {name: [pair for pair in pairs if pair[0].family == name] for name in names}
    return {
        name: draw(of_family).ratio(np.array([row.is_refusal == verdict.is_refusal for row, verdict in of_family]))
        for name, of_family in members.items()
    }


def _kind(verdict: Verdict, taxonomy: Taxonomy) -> tuple[str, str]:
    if verdict.category_probabilities:
        return main_kind(verdict.category_probabilities, taxonomy)
    kind, group = verdict.category, verdict.group
    return UNNAMED if kind is None else kind, UNNAMED if group is None else group


def _outcomes(pairs: Pairs) -> dict[str, dict[str, int]]:
    counts = Counter((str(row.outcome), str(verdict.outcome)) for row, verdict in pairs)
    return {true: {given: counts[true, given] for given in OUTCOMES} for true in OUTCOMES}


def _end_to_end(pairs: Pairs, draw: _Draw) -> Estimate:
    is_right = [
        verdict.is_refusal and verdict.category == row.labels[0] if row.is_refusal else not verdict.is_refusal
        for row, verdict in pairs
    ]
    return draw(pairs).ratio(np.array(is_right))


def _gate_curve(pairs: Pairs, draw: _Draw) -> RiskCoverage:
    is_right = np.array([row.is_refusal == verdict.is_refusal for row, verdict in pairs], dtype=np.bool_)
    called = np.array([verdict.is_refusal for _, verdict in pairs], dtype=np.bool_)
    probability = np.array([_probability(verdict) for _, verdict in pairs], dtype=np.float64)
    return RiskCoverage.of(is_right, np.where(called, probability, 1 - probability), draw(pairs))


def _kind_curve(pairs: Pairs, taxonomy: Taxonomy, draw: _Draw) -> RiskCoverage:
    is_right = np.array([_kind(verdict, taxonomy)[0] == row.labels[0] for row, verdict in pairs], dtype=np.bool_)
    confidence = [max(verdict.category_probabilities, default=math.nan) for _, verdict in pairs]
    return RiskCoverage.of(is_right, np.array(confidence, dtype=np.float64), draw(pairs))


def _sets(labeler: Labeler, pairs: Pairs, taxonomy: Taxonomy, draw: _Draw) -> SetMetrics | None:
    stated = getattr(labeler, "category_sets", None)
    known = [(row, verdict) for row, verdict in pairs if verdict.category_probabilities]
    if not isinstance(stated, CategorySets) or not known:
        return None
    sets = [kind_set(verdict.category_probabilities, taxonomy, least=stated.least)[0] for _, verdict in known]
    return SetMetrics.of([row.labels[0] for row, _ in known], sets, taxonomy, draw(known), stated)
