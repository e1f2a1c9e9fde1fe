"""`demur evaluate`: measure a labeler against labelled rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from demur.cli.auditing import say
from demur.cli.judging import (
    Asking,
    BaseUrl,
    Batch,
    CacheFile,
    Concurrency,
    KeyVariable,
    MaxCost,
    MaxRows,
    Parameters,
    PollSeconds,
    PriceFile,
    PricePair,
    Prompt,
    PromptName,
    Retries,
    TimeoutSeconds,
    spending_line,
)
from demur.cli.options import (
    CoverageShare,
    EncoderName,
    EngineOption,
    Exact,
    PolicyName,
    Runtime,
    Split,
    TaxonomyFile,
    Threshold,
    WeightsFolder,
    Workers,
    chosen_split,
    open_analyzer,
    require_heeded,
    require_one_form,
)
from demur.model.engine_names import EngineName
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from demur.conversation import Conversation
    from demur.labelers.opening import LabelerSpec
    from demur.stats.conformal import CategorySets
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler, Verdict

__all__ = ["evaluate"]


def evaluate(
    context: typer.Context,
    gold: Annotated[
        Path,
        typer.Argument(
            help="JSONL file of labelled conversations: messages, a list of {role, content} that ends with the reply; "
            "verdict (full, partial or none) or refusal (true or false); and labels, its kinds, the main one first."
        ),
    ],
    labeler: Annotated[
        str, typer.Option(help="What is measured: demur, keywords, judge:MODEL or recorded:FILE (of one annotator).")
    ] = "demur",
    split: Split = "dev",
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            help="JSONL file, or folder of some, with the messages, by id, of rows that have none. Repeatable."
        ),
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
    base_url: BaseUrl = "https://api.openai.com/v1",
    key_variable: KeyVariable = None,
    prompt: PromptName = Prompt.full,
    parameter: Parameters = None,
    max_cost: MaxCost = None,
    max_rows: MaxRows = None,
    prices: PriceFile = None,
    price: PricePair = None,
    batch: Batch = False,
    poll: PollSeconds = 30.0,
    concurrency: Concurrency = 8,
    timeout: TimeoutSeconds = 120.0,
    retries: Retries = 6,
    cache: CacheFile = None,
) -> None:
    """Measure gate and category head on labelled rows, with bootstrap intervals over prompts."""
    from demur.data.labelled import read_split, read_texts
    from demur.labelers.judge import Judge
    from demur.report.evaluation import evaluation_markdown, evaluation_text
    from demur.studies.evaluation import evaluate as measure
    from demur.taxonomy import Taxonomy

    spec, kinds = _spec(labeler), Taxonomy.load(taxonomy)
    require_heeded(context, [spec])
    if policy is Policy.broad and spec.sort != "demur":
        message = f"broad lowers a threshold, which {str(spec)!r} does not have; give strict or standard"
        raise typer.BadParameter(message, param_hint="--policy")
    require_one_form(as_json=as_json, markdown=markdown)
    runtime = Runtime.of(engine, workers, exact=exact)
    asking = Asking(
        base_url, key_variable, prompt, parameter, max_cost, max_rows, prices, price, batch, poll, concurrency,
        timeout, retries, cache,
    )  # fmt: skip
    # What is measured on comes first: to build an engine takes a minute.
    by_id = read_texts([] if texts is None else texts)
    read = read_split(gold, kinds, split=chosen_split(split), texts=by_id, needs_truth=True)
    measured = (
        open_analyzer(weights, encoder, taxonomy, threshold, policy=policy, coverage=coverage, runtime=runtime)
        if spec.sort == "demur"
        else _opened(spec, kinds, asking, known=[gold, *(texts or [])])
    )
    found = measure(_Watched(measured, len(read.rows)), read.rows, kinds, policy=policy, resamples=resamples)
    found = replace(found, other_splits=read.other_splits)
    if isinstance(measured, Judge):
        say(Console(stderr=True), spending_line(measured.spending))
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
    def policy(self) -> Policy | None:
        return getattr(self.labeler, "policy", None)

    @property
    def category_sets(self) -> CategorySets | None:
        return getattr(self.labeler, "category_sets", None)

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        verdicts = self.labeler.label(conversations)
        return iter(track(verdicts, "evaluating", total=self.total, console=Console(stderr=True), transient=True))


def _spec(labeler: str) -> LabelerSpec:
    """Read which labeler is meant."""
    from demur.errors import LabelerError
    from demur.labelers.opening import parse_labeler

    try:
        return parse_labeler(labeler)
    except LabelerError as error:
        message = f"{error}; several are measured by `demur benchmark`"
        raise typer.BadParameter(message, param_hint="--labeler") from error


def _opened(spec: LabelerSpec, kinds: Taxonomy, asking: Asking, *, known: Sequence[Path]) -> Labeler:
    """Open a labeler that is not the classifier; what is on record may leave its texts to other files."""
    from demur.data.labelled import read_texts
    from demur.labelers.keywords import KeywordLabeler
    from demur.labelers.opening import open_recorded

    if spec.sort == "keywords":
        return KeywordLabeler(kinds)
    if spec.sort == "judge":
        console = Console(stderr=True)
        judge = asking.open(spec.target, kinds, tell=lambda line: say(console, line))
        # Without a key, nothing is begun.
        judge.client.endpoint.key()
        return judge
    return open_recorded(Path(spec.target), kinds, texts=read_texts(known))
