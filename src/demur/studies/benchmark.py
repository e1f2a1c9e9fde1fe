"""Measure labelers of all sorts, programs, judges and annotators, on the same rows."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from demur.data.annotated import Annotator
from demur.errors import LabelerError, SourceError
from demur.labelers.judge import Judge
from demur.labelers.recorded import NOT_LABELLED, RecordedLabeler
from demur.stats.agreement import nominal_alpha, pairwise, uncommon
from demur.stats.answers import MISSING
from demur.stats.composition import UNNAMED
from demur.stats.metrics import GateMetrics, HeadMetrics
from demur.stats.paired import against_rivals, f1_difference, holm, mcnemar
from demur.stats.resampling import Resamples, require_draws
from demur.studies.answer_sheet import GATE
from demur.studies.leaderboard import QUESTIONS, Band, Entry, Leaderboard, Versus
from demur.studies.pace import OnVerdict, Run, run
from demur.studies.panel import REFUSAL, Panel, Said
from demur.studies.requests import request_clusters
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demur.conversation import Conversation
    from demur.data.annotated import Annotated, AnnotatedRows, AnnotatorKind
    from demur.stats.answers import Codes
    from demur.stats.resampling import Estimate, Flags, Floats
    from demur.studies.leaderboard import Question, Sort
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler, Verdict

__all__ = ["benchmark"]

_POLICY = Policy.standard


def benchmark(  # noqa: PLR0913  # each is one option of the command line
    annotated: AnnotatedRows,
    labelers: Sequence[Labeler],
    taxonomy: Taxonomy,
    *,
    panel: AnnotatorKind | None = None,
    reference: str | None = None,
    usd_per_hour: float | None = None,
    usd_per_million: Mapping[str, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    on_verdict: OnVerdict | None = None,
) -> Leaderboard:
    """Let each labeler label the rows, and measure its verdicts against the consensus of the annotators.

    The consensus is the majority of the panel, under the policy `standard`. A labeler that is a member of the panel, by
    name and kind, has no say in what it is measured against; nor has a judge's model that is one by its name.

    Args:
        annotated: Replies, and what annotators said of them.
        labelers: Who is measured; no two of one name.
        taxonomy: Names the kinds.
        panel: Whose majority is the consensus: that of people or that of language models; None for people where there
            are any.
        reference: Name of the labeler that all others are compared with; None for the first one.
        usd_per_hour: Price of this machine, in USD: what programs on it cost; None where that is not known.
        usd_per_million: Stated cost of a million rows, by name of the labeler: for those on record, above all.
        resamples: Draws of whole requests behind each interval.
        seed: Of those draws.
        on_verdict: Told name, verdicts so far and rows in all, as they come.

    Raises:
        SourceError: No row has a text, or there is no panel.
        LabelerError: Two labelers have one name, a name is given that none has, or a labeler gives a kind that is not
            in the taxonomy.
        ValueError: A labeler decides under another policy, or gives more or fewer verdicts than there are rows; there
            are no draws, the seed is below 0, or what something costs is no amount.
    """
    require_draws(resamples, seed)
    costs = {} if usd_per_million is None else usd_per_million
    _require_amounts(usd_per_hour, costs)
    known = [row for row in annotated.rows if row.conversation is not None]
    if not known:
        message = f"{annotated.name}: no row has `messages`; give the files that hold the texts by id with --texts"
        raise SourceError(message)
    names = [labeler.name for labeler in labelers]
    first = _require_names(names, reference, costs)
    for labeler in labelers:
        Policy.of(labeler, _POLICY)
    study = _Study.of(known, taxonomy, Panel.of(known, taxonomy, panel), resamples, seed)
    measured = [
        _Measured.of(labeler, run(labeler, study.talks, usd_per_hour=usd_per_hour, on_verdict=on_verdict), study)
        for labeler in labelers
    ]
    entries = _compared([_entry(one, study, costs) for one in measured], measured, names.index(first), study)
    whole = study.panel.consensus()
    return Leaderboard(
        name=annotated.name,
        taxonomy=taxonomy,
        panel=study.panel.members,
        entries=tuple(sorted(entries, key=_rank)),
        reference=first,
        rows=len(known),
        requests=len(set(study.clusters)),
        gated=int(whole.is_answered.sum()),
        kinds=int((whole.kind != MISSING).sum()),
        without_text=len(annotated.rows) - len(known),
        unread=dict(sorted(Counter(error.reason for error in annotated.broken).items())),
        other_splits=annotated.other_splits,
        resamples=resamples,
        seed=seed,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Study:
    """Keep what all labelers share."""

    talks: tuple[Conversation, ...]
    clusters: tuple[str | int, ...]
    taxonomy: Taxonomy
    panel: Panel
    resamples: int
    seed: int

    @classmethod
    def of(cls, rows: Sequence[Annotated], taxonomy: Taxonomy, panel: Panel, resamples: int, seed: int) -> _Study:
        talks = tuple(row.conversation for row in rows if row.conversation is not None)
        return cls(talks, tuple(request_clusters(talks)), taxonomy, panel, resamples, seed)

    def draw(self, rows: Flags) -> Resamples:
        """Draw resamples over some of the rows, each time from the same seed."""
        clusters = [cluster for cluster, is_in in zip(self.clusters, rows.tolist(), strict=True) if is_in]
        return Resamples.of(clusters, number=self.resamples, generator=np.random.default_rng(self.seed))


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """Keep what one labeler said, as codes beside its verdicts.

    `place` is that among the members of the panel; `is_read` tells which rows it labelled or could not judge.
    """

    name: str
    sort: Sort
    place: int | None
    run: Run
    said: Said
    is_read: Flags

    @classmethod
    def of(cls, labeler: Labeler, ran: Run, study: _Study) -> _Measured:
        keys = {key: place for place, key in enumerate(study.taxonomy.keys)}
        for verdict in ran.verdicts:
            if verdict.category is not None and verdict.category not in keys:
                message = (
                    f"{labeler.name!r} gave the kind {verdict.category!r}; the taxonomy {study.taxonomy.name!r} has "
                    f"{', '.join(keys)}"
                )
                raise LabelerError(message)
        places = [_gate_code(verdict) for verdict in ran.verdicts]
        kinds = [MISSING if verdict.category is None else keys[verdict.category] for verdict in ran.verdicts]
        is_read = [verdict.unscored_reason != NOT_LABELLED for verdict in ran.verdicts]
        annotator = _annotator(labeler)
        return cls(
            name=labeler.name,
            sort="judge" if isinstance(labeler, Judge) else "local" if annotator is None else annotator.kind,
            place=study.panel.place(annotator),
            run=ran,
            said=Said(np.array(places, dtype=np.int64), np.array(kinds, dtype=np.int64)),
            is_read=np.array(is_read, dtype=np.bool_),
        )


def _annotator(labeler: Labeler) -> Annotator | None:
    """Return whose word a labeler's is: of those on record, and of a judge whose model may be among them."""
    if isinstance(labeler, Judge):
        return Annotator(labeler.client.endpoint.model, "llm")
    return labeler.annotator if isinstance(labeler, RecordedLabeler) else None


def _gate_code(verdict: Verdict) -> int:
    if not verdict.is_scored:
        return MISSING
    return REFUSAL if verdict.under(_POLICY).is_refusal else 1 - REFUSAL


def _require_names(names: Sequence[str], reference: str | None, costs: Mapping[str, float]) -> str:
    """Return the name of the reference."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if not names or twice:
        met = "no labeler" if not names else f"two labelers of the name {twice[0]!r}"
        message = f"{met}; give at least one, and none twice"
        raise LabelerError(message)
    for given in (*costs, *([] if reference is None else [reference])):
        if given not in names:
            message = f"no labeler {given!r}; there are {', '.join(names)}"
            raise LabelerError(message)
    return names[0] if reference is None else reference


def _require_amounts(usd_per_hour: float | None, costs: Mapping[str, float]) -> None:
    """Refuse what is no cost: below 0, infinite, or no number."""
    amounts = {f"usd_per_million of {name!r}": cost for name, cost in costs.items()}
    if usd_per_hour is not None:
        amounts["usd_per_hour"] = usd_per_hour
    for name, amount in amounts.items():
        if not 0 <= amount < math.inf:
            message = f"{name} is {amount!r}; give an amount of USD from 0 on, or leave it out where it is not known"
            raise ValueError(message)


def _entry(one: _Measured, study: _Study, costs: Mapping[str, float]) -> Entry:
    truth = study.panel.consensus([one.place])
    gated = one.said.is_answered & truth.is_answered
    named = gated & (truth.kind != MISSING)
    unscored = Counter(
        verdict.unscored_reason for verdict in one.run.verdicts if verdict.unscored_reason not in (None, NOT_LABELLED)
    )
    kappa, alpha = _coefficients(one.said.gate, truth.gate, gated, len(GATE), study)
    n_kinds = len(study.taxonomy)
    kinds = np.where(one.said.is_refusal & (one.said.kind != MISSING), one.said.kind, n_kinds)
    kind_kappa, kind_alpha = _coefficients(kinds, truth.kind, named, n_kinds + 1, study)
    pace = one.run.pace
    if one.name in costs:
        pace = replace(pace, usd_per_million=costs[one.name], basis="stated")
    return Entry(
        name=one.name,
        sort=one.sort,
        read=int(one.is_read.sum()),
        unscored=dict(sorted((str(reason), count) for reason, count in unscored.items())),
        gate=_gate(one, truth, gated, study),
        head=_head(one, truth, named, study),
        kappa=kappa,
        alpha=alpha,
        kind_kappa=kind_kappa,
        kind_alpha=kind_alpha,
        bands=tuple(_band(question, one, study) for question in QUESTIONS),
        versus=(),
        pace=pace,
        stopped=one.run.stopped,
    )


def _gate(one: _Measured, truth: Said, rows: Flags, study: _Study) -> GateMetrics:
    probability = np.array([verdict.refusal_probability for verdict in one.run.verdicts], dtype=np.float64)[rows]
    return GateMetrics.of(truth.is_refusal[rows], one.said.is_refusal[rows], probability, study.draw(rows))


def _head(one: _Measured, truth: Said, rows: Flags, study: _Study) -> HeadMetrics:
    keys = study.taxonomy.keys
    accepted = [(keys[place],) for place in truth.kind[rows].tolist()]
    called = [
        (UNNAMED if verdict.category is None else verdict.category, UNNAMED if verdict.group is None else verdict.group)
        for verdict, is_in in zip(one.run.verdicts, rows.tolist(), strict=True)
        if is_in
    ]
    return HeadMetrics.of(accepted, called, study.taxonomy, study.draw(rows))


def _coefficients(ours: Codes, truth: Codes, rows: Flags, n_classes: int, study: _Study) -> tuple[Estimate, Estimate]:
    """Return Cohen's kappa and Krippendorff's alpha of a labeler and the consensus."""
    codes = np.stack([ours, truth], axis=1)[rows]

    def figures(weights: Floats) -> Floats:
        return np.stack(
            [pairwise(weights, codes, n_classes)[1][:, 0], nominal_alpha(weights, codes, n_classes)], axis=1
        )

    resamples = study.draw(rows)
    kappa, alpha = (resamples.backed(one, uncommon(codes, resamples.times)) for one in resamples.estimates(figures))
    return kappa, alpha


def _right(question: Question, said: Said, truth: Said) -> Flags:
    """Return where an answer is that of the consensus, (rows,)."""
    if question == "gate":
        return np.equal(said.gate, truth.gate)
    return np.logical_and(said.is_refusal, np.equal(said.kind, truth.kind))


def _is_known(question: Question, truth: Said) -> Flags:
    return truth.is_answered if question == "gate" else np.not_equal(truth.kind, MISSING)


def _band(question: Question, one: _Measured, study: _Study) -> Band:
    places = [place for place in range(len(study.panel.members)) if place != one.place]
    n = len(study.talks)
    ours, theirs, compared = (np.zeros((n, len(places)), dtype=np.bool_) for _ in range(3))
    for column, place in enumerate(places):
        truth, rival = study.panel.consensus([one.place, place]), study.panel.said(place)
        compared[:, column] = one.said.is_answered & rival.is_answered & _is_known(question, truth)
        ours[:, column], theirs[:, column] = _right(question, one.said, truth), _right(question, rival, truth)
    used: Flags = np.asarray(compared.any(axis=1), dtype=np.bool_)
    found = against_rivals(ours[used], theirs[used], compared[used], study.draw(used))
    return Band(question, tuple(study.panel.members[place] for place in places), found)


def _compared(entries: Sequence[Entry], measured: Sequence[_Measured], first: int, study: _Study) -> list[Entry]:
    """Compare everybody with the reference; tests of one question are corrected for each other.

    Who has no row in common with the reference is not tested, and no test that the others are corrected for.
    """
    others = [place for place in range(len(entries)) if place != first]
    of_question = []
    for question in QUESTIONS:
        found = [_versus(question, measured[place], measured[first], study) for place in others]
        corrected = iter(holm([one.test for one in found if one.difference.n]))
        of_question.append([replace(one, test=next(corrected)) if one.difference.n else one for one in found])
    compared = dict(zip(others, zip(*of_question, strict=True), strict=True))
    return [replace(entry, versus=compared.get(place, ())) for place, entry in enumerate(entries)]


def _versus(question: Question, one: _Measured, other: _Measured, study: _Study) -> Versus:
    truth = study.panel.consensus([one.place, other.place])
    rows: Flags = np.logical_and(one.said.is_answered & other.said.is_answered, _is_known(question, truth))
    ours, theirs = (_right(question, each.said, truth)[rows] for each in (one, other))
    draw = study.draw(rows)
    f1 = None
    if question == "gate":
        f1 = f1_difference(truth.is_refusal[rows], one.said.is_refusal[rows], other.said.is_refusal[rows], draw)
    return Versus(
        question=question,
        difference=draw.ratio(ours.astype(np.float64) - theirs),
        f1_difference=f1,
        test=mcnemar(ours, theirs),
    )


def _rank(entry: Entry) -> float:
    return math.inf if math.isnan(entry.gate.f1.value) else -entry.gate.f1.value
