"""Measure how far people, or language models, agree on refusals and their kinds."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from demur.data.annotated import ANNOTATOR_KINDS
from demur.stats.agreement import agreement, pair_agreement, set_agreement
from demur.stats.answers import MISSING
from demur.stats.consensus import against_rest, dawid_skene, majority, mean_standing, why_no_dawid_skene
from demur.stats.distances import distances, jaccard, masi
from demur.stats.resampling import require_draws
from demur.studies.agreement import Agreement
from demur.studies.agreement_figures import Between, Ceiling, Consensus, Figure, Reliability
from demur.studies.answer_sheet import AnswerSheet
from demur.studies.disputes import confused, disputed
from demur.studies.examples import BrokenSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from demur.data.annotated import AnnotatedRows, AnnotatorKind
    from demur.stats.agreement import Coefficient
    from demur.stats.answers import Answers
    from demur.stats.consensus import DawidSkene
    from demur.stats.resampling import Flags, Floats
    from demur.studies.answer_sheet import Question
    from demur.taxonomy import Taxonomy

__all__ = ["agree"]

_N_BROKEN = 20
_NOT_SETTLED = "the estimates do not settle: the answers hardly tell errors and truth apart"
_NO_KINDS = "no annotator names the kind of any refusal"
# Whether the reply refuses, to what extent, and why: what annotators are measured on one by one.
_OF_ANNOTATORS = ("gate", "outcome", "kind")


def agree(
    annotated: AnnotatedRows, taxonomy: Taxonomy, *, resamples: int = 1000, seed: int = 0, discuss: int = 10
) -> Agreement:
    """Measure the agreement of all annotators, of each two, and of each with the rest.

    Args:
        annotated: What they said.
        taxonomy: Names the kinds.
        resamples: Draws of requests behind each interval.
        seed: Of those draws: the same rows and seed give the same intervals.
        discuss: How many of the most disputed replies to keep.

    Raises:
        ValueError: There are no draws, the seed is below 0, or fewer than no replies are to be kept.
    """
    require_draws(resamples, seed)
    if discuss < 0:
        message = f"discuss {discuss!r}; give a number of replies from 0 on"
        raise ValueError(message)
    sheet, draw = AnswerSheet.of(annotated.rows, annotated.annotators, taxonomy), _Draw(resamples, seed)
    single = [question for question in sheet.questions if question.key in _OF_ANNOTATORS]
    estimates = {question.key: _estimates(question.answers()) for question in single}
    disputes, n_disputed = disputed(sheet.rows, discuss)
    return Agreement(
        name=annotated.name,
        taxonomy=taxonomy,
        annotators=sheet.annotators,
        answers=tuple(int(n) for n in (sheet.outcome != MISSING).sum(axis=0)),
        items=tuple(row.id for row in sheet.rows),
        requests=sheet.n_requests,
        unread=dict(sorted(Counter(error.reason for error in annotated.broken).items())),
        broken=tuple(BrokenSample.of(error) for error in annotated.broken[:_N_BROKEN]),
        other_splits=annotated.other_splits,
        left_out={} if sheet.sets else dict.fromkeys(("group", "kind", "kinds", "is_group", "is_kind"), _NO_KINDS),
        named=_named(sheet),
        figures=tuple(_figures(sheet, draw)),
        between=tuple(_between(sheet, draw)),
        ceilings=tuple(_ceilings(sheet, single, draw)),
        reliabilities=tuple(_reliability(question, estimates[question.key]) for question in single),
        confused=tuple(one for question in (sheet.questions[1], *_with_none(sheet)) for one in confused(question)),
        disputed=disputes,
        n_disputed=n_disputed,
        consensus=_consensuses(single, estimates),
        **asdict(draw),
    )


@dataclass(frozen=True, slots=True)
class _Draw:
    """Measure any answers with draws from the same seed."""

    resamples: int
    seed: int

    def agreement(self, answers: Answers) -> tuple[Coefficient, ...]:
        return agreement(answers, number=self.resamples, seed=self.seed)

    def sets(self, answers: Answers, apart: Mapping[str, Floats]) -> Iterator[Coefficient]:
        """Measure label sets by each distance, whose name the coefficients then carry."""
        for name, distance in apart.items():
            for one in set_agreement(answers, distance, number=self.resamples, seed=self.seed):
                yield replace(one, name=f"{one.name}_{name}")


def _figures(sheet: AnswerSheet, draw: _Draw) -> Iterator[Figure]:
    """Yield every coefficient: of everything, by sort of annotator, by source, and of each group and kind."""
    apart = {name: distances(sheet.sets, distance) for name, distance in (("masi", masi), ("jaccard", jaccard))}
    for part, of, items, columns in _parts(sheet):
        for question in sheet.questions:
            for one in draw.agreement(question.answers(items, columns)):
                yield Figure(question.key, part, of, one)
        if sheet.sets:
            for one in draw.sets(sheet.label_sets.answers(items, columns), apart):
                yield Figure("kinds", part, of, one)
    for question in sheet.one_against_rest:
        for one in draw.agreement(question.answers()):
            yield Figure(question.key, question.key.removeprefix("is_"), question.of, one)


def _named(sheet: AnswerSheet) -> dict[str, dict[str, int]]:
    """Count the replies that anybody called a refusal of each group and kind."""
    named: dict[str, dict[str, int]] = {"is_group": {}, "is_kind": {}}
    for question in sheet.one_against_rest:
        is_named = (question.codes == question.classes.index("yes")).any(axis=1)
        named[question.key][question.of] = int(is_named.sum())
    return named


def _parts(sheet: AnswerSheet) -> Iterator[tuple[str, str, Flags | None, Sequence[int] | None]]:
    """Yield the parts of the answers that are measured alike: name, which one, items, annotators."""
    yield "all", "", None, None
    panels = _panels(sheet)
    if len(panels) > 1:
        yield from (("annotators", kind, None, columns) for kind, columns in panels)
    sources = np.array([row.source for row in sheet.rows])
    names = sorted(set(sources.tolist()))
    if len(names) > 1:
        yield from (("source", name, sources == name, None) for name in names)


def _panels(sheet: AnswerSheet) -> list[tuple[AnnotatorKind, list[int]]]:
    """Return the columns of people and of language models, those of whom there are."""
    columns = [(kind, [at for at, one in enumerate(sheet.annotators) if one.kind == kind]) for kind in ANNOTATOR_KINDS]
    return [(kind, places) for kind, places in columns if places]


def _between(sheet: AnswerSheet, draw: _Draw) -> Iterator[Between]:
    for question in sheet.questions:
        for pair in pair_agreement(question.answers(), number=draw.resamples, seed=draw.seed):
            first, second = sheet.annotators[pair.first], sheet.annotators[pair.second]
            yield Between(question.key, first, second, pair.agreement, pair.kappa)


def _ceilings(sheet: AnswerSheet, questions: Sequence[Question], draw: _Draw) -> Iterator[Ceiling]:
    for question in questions:
        answers = question.answers()
        for kind, panel in _panels(sheet):
            standings = against_rest(answers, panel, number=draw.resamples, seed=draw.seed)
            mean = mean_standing(answers, panel, number=draw.resamples, seed=draw.seed)
            yield Ceiling(question.key, kind, standings, mean)


def _estimates(answers: Answers) -> DawidSkene | str:
    """Return the estimates of Dawid and Skene, or why there are none."""
    why_not = why_no_dawid_skene(answers)
    if why_not is not None:
        return why_not
    found = dawid_skene(answers)
    return found if found.is_converged else _NOT_SETTLED


def _reliability(question: Question, found: DawidSkene | str) -> Reliability:
    if isinstance(found, str):
        return Reliability(question.key, {}, undefined=found)
    names = [str(name) for name in question.classes]
    return Reliability(
        question=question.key,
        shares=dict(zip(names, found.shares.tolist(), strict=True)),
        expected=tuple(found.reliability.tolist()),
        hits=tuple(dict(zip(names, np.diag(errors).tolist(), strict=True)) for errors in found.errors),
    )


def _consensuses(
    questions: Sequence[Question], estimates: Mapping[str, DawidSkene | str]
) -> dict[str, tuple[Consensus, ...]]:
    """Return what is said together of each item; a kind only where it is also said that the reply refuses."""
    said = {question.key: _consensus(question, estimates[question.key]) for question in questions}
    if "kind" in said:
        said["kind"] = tuple(
            Consensus(
                kind.majority if gate.majority == "refusal" else None,
                kind.estimated if gate.estimated == "refusal" else None,
                kind.probability if gate.estimated == "refusal" else math.nan,
            )
            for gate, kind in zip(said["gate"], said["kind"], strict=True)
        )
    return said


def _consensus(question: Question, found: DawidSkene | str) -> tuple[Consensus, ...]:
    """Return what is said together of each item, those that nobody answered among them."""
    answers, names = question.answers(), [str(name) for name in question.classes]
    tops = majority(answers.counts)
    of_pattern = []
    for place, top in enumerate(tops.tolist()):
        said = None if top == MISSING else names[top]
        if isinstance(found, str):
            of_pattern.append(Consensus(said, None, math.nan))
        else:
            best = int(found.posterior[place].argmax())
            of_pattern.append(Consensus(said, names[best], float(found.posterior[place, best])))
    nothing = Consensus(None, None, math.nan)
    return tuple(nothing if place == MISSING else of_pattern[place] for place in answers.pattern_of_item.tolist())


def _with_none(sheet: AnswerSheet) -> tuple[Question, ...]:
    return (sheet.kind_or_none,) if sheet.sets else ()
