"""`demur evaluate`: measure a labeler against labelled rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from demur.cli.options import (
    CoverageShare,
    EncoderName,
    EngineOption,
    Exact,
    PolicyName,
    Runtime,
    TaxonomyFile,
    Threshold,
    WeightsFolder,
    Workers,
    open_analyzer,
)
from demur.model.engine_names import EngineName
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demur.conversation import Conversation
    from demur.stats.conformal import CategorySets
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler, Verdict

__all__ = ["evaluate"]


class LabelerName(StrEnum):
    """Name what can be measured."""

    demur = "demur"
    keywords = "keywords"


class Split(StrEnum):
    """Name the rows that are measured on."""

    dev = "dev"
    train = "train"
    all = "all"


def evaluate(
    gold: Annotated[Path, typer.Argument(help="JSONL file of labelled conversations.")],
    labeler: Annotated[LabelerName, typer.Option(help="What is measured.")] = LabelerName.demur,
    split: Annotated[Split, typer.Option(help="Rows of this split, and rows without one.")] = Split.dev,
    texts: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL file with the messages, by id, of rows that have none. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap resamples behind each interval.")] = 1000,
    weights: WeightsFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
    policy: PolicyName = Policy.standard,
    threshold: Threshold = None,
    coverage: CoverageShare = None,
    engine: EngineOption = EngineName.torch,
    exact: Exact = False,
    workers: Workers = None,
) -> None:
    """Measure gate and category head on labelled rows, with bootstrap intervals over prompts."""
    from demur.data.labelled import read_labelled, read_texts
    from demur.report.evaluation import evaluation_markdown, evaluation_text
    from demur.studies.evaluation import evaluate as measure

    runtime = Runtime.of(engine, workers, exact=exact)
    measured, kinds = _labeler(labeler, weights, encoder, taxonomy, threshold, policy, coverage, runtime)
    by_id = read_texts([] if texts is None else texts)
    rows = read_labelled(gold, kinds, split=None if split is Split.all else split.value, texts=by_id)
    found = measure(_Watched(measured, len(rows)), rows, kinds, policy=policy, resamples=resamples)
    if as_json:
        print(json.dumps(found.to_json(), indent=1, ensure_ascii=False))
    else:
        print(evaluation_markdown(found) if markdown else evaluation_text(found))


@dataclass(frozen=True, slots=True)
class _Watched:
    """Show a progress bar while a labeler labels."""

    labeler: Labeler
    total: int

    @property
    def name(self) -> str:
        return self.labeler.name

    @property
    def category_sets(self) -> CategorySets | None:
        return getattr(self.labeler, "category_sets", None)

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        verdicts = self.labeler.label(conversations)
        return iter(track(verdicts, "evaluating", total=self.total, console=Console(stderr=True), transient=True))


def _labeler(
    name: LabelerName,
    weights: Path | None,
    encoder: str | None,
    taxonomy: Path | None,
    threshold: float | None,
    policy: Policy,
    coverage: float | None,
    runtime: Runtime,
) -> tuple[Labeler, Taxonomy]:
    if name is LabelerName.demur:
        analyzer = open_analyzer(
            weights, encoder, taxonomy, threshold, policy=policy, coverage=coverage, runtime=runtime
        )
        return analyzer, analyzer.taxonomy
    if coverage is not None:
        message = f"{coverage}, but the labeler {name.value!r} gives no probabilities of kinds; leave it out"
        raise typer.BadParameter(message, param_hint="--coverage")
    from demur.labelers.keywords import KeywordLabeler
    from demur.taxonomy import Taxonomy

    kinds = Taxonomy.load(taxonomy)
    return KeywordLabeler(kinds), kinds
