"""`demur benchmark`: measure labelers of all sorts on the same rows."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from demur.cli.auditing import Strict, say
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
    AnnotatorKindName,
    AnnotatorSort,
    CrosswalkName,
    EncoderName,
    Replace,
    Split,
    TaxonomyFile,
    WeightsFolder,
    chosen_split,
    open_analyzer,
    require_crosswalk,
    require_heeded,
    require_one_form,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from demur.labelers.classifier import Analyzer
    from demur.labelers.judge import Judge
    from demur.labelers.opening import LabelerSpec
    from demur.studies.pace import OnVerdict
    from demur.verdict import Labeler

__all__ = ["benchmark"]


def benchmark(
    context: typer.Context,
    gold: Annotated[list[str], typer.Argument(help="JSONL files of rows with `messages` and `annotations`.")],
    labelers: Annotated[
        list[str],
        typer.Option(
            "--labelers",
            help="demur, keywords, annotators (who annotated the rows, each against the others), recorded:FILE, "
            "judge:MODEL; with commas between them, or repeated.",
        ),
    ] = ["demur,keywords,annotators"],  # noqa: B006  # typer copies it
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for leaderboard.md, .csv, .html and .json, and frontier.svg where a cost is known; one that "
            "holds a leaderboard is refused without --overwrite."
        ),
    ] = None,
    overwrite: Replace = False,
    texts: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL file, or folder of some, with the messages, by id, of rows without. Repeatable."),
    ] = None,
    split: Split = "all",
    panel: Annotated[
        AnnotatorKindName | None,
        typer.Option(help="Whose majority is the consensus; that of people where there are any."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="The labeler that all others are compared with; the first one by default.")
    ] = None,
    hourly: Annotated[
        float | None,
        typer.Option(
            min=0, help="USD that an hour of this machine costs; without it, the cost of programs is not known."
        ),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(help="What a million rows cost by a labeler on record, as NAME=USD (llm_3 (LLM)=90). Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    resamples: Annotated[int, typer.Option(min=1, help="Draws of requests behind each interval.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of those draws.")] = 0,
    strict: Strict = False,
    crosswalk: CrosswalkName = None,
    annotator_kind: AnnotatorSort = AnnotatorKindName.human,
    weights: WeightsFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
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
    """Measure classifier, keyword list, LLM judges and annotators on the same rows, against the annotators' consensus.

    Limits of cost and rows hold for each judge; one that reaches them is measured on what it has, and goes on from its
    cache when the command is run again.
    """
    from demur.api import benchmark as measure
    from demur.documents import user_path
    from demur.labelers.opening import parse_labelers
    from demur.report.leaderboard import leaderboard_markdown, leaderboard_text, require_board
    from demur.taxonomy import Taxonomy

    if out is not None:
        out = user_path(out)
        # Before labelers are opened, which takes a while.
        require_board(out, overwrite=overwrite)
    specs = parse_labelers(labelers)
    require_heeded(context, specs)
    require_crosswalk(context, crosswalk)
    require_one_form(as_json=as_json, markdown=markdown)
    console = Console(stderr=True)
    kinds = Taxonomy.load(taxonomy)
    asking = Asking(
        base_url, key_variable, prompt, parameter, max_cost, max_rows, prices, price, batch, poll, concurrency,
        timeout, retries, cache,
    )  # fmt: skip
    tell = partial(say, console)
    given, judges = _opened(
        specs, lambda: open_analyzer(weights, encoder, taxonomy), lambda model: asking.open(model, kinds, tell=tell)
    )
    if price is not None and len(judges) > 1:
        message = f"{price!r} for {len(judges)} judges; one price holds for one model, give a file with --prices"
        raise typer.BadParameter(message, param_hint="--price")
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), console=console, transient=True,
    ) as progress:  # fmt: skip
        found = measure(
            gold, given, taxonomy=kinds, texts=texts, split=chosen_split(split),
            panel=None if panel is None else panel.value, reference=reference, usd_per_hour=hourly,
            usd_per_million=_costs(cost), resamples=resamples, seed=seed, strict=strict, crosswalk=crosswalk,
            annotator_kind=annotator_kind.value, out=out, overwrite=overwrite,
            on_verdict=_bars(progress),
        )  # fmt: skip
    for judge in judges:
        tell(f"{judge.name}: {spending_line(judge.spending)}")
    if as_json:
        print(json.dumps(found.to_json(), indent=1, ensure_ascii=False))
    else:
        print(leaderboard_markdown(found) if markdown else leaderboard_text(found), end="")
    if out is not None:
        tell(f"leaderboard: {out / 'leaderboard.html'}")


def _opened(
    specs: Iterable[LabelerSpec], analyzer: Callable[[], Analyzer], judge: Callable[[str], Judge]
) -> tuple[list[Labeler | str], list[Judge]]:
    """Open the labelers that have options of their own, and pass on the names of the others; return judges apart."""
    given: list[Labeler | str] = []
    judges: list[Judge] = []
    for spec in specs:
        if spec.sort == "demur":
            given.append(analyzer())
        elif spec.sort == "judge":
            judges.append(judge(spec.target))
            # Without a key, nothing is begun.
            judges[-1].client.endpoint.key()
            given.append(judges[-1])
        else:
            given.append(str(spec))
    return given, judges


def _costs(pairs: list[str] | None) -> dict[str, float]:
    """Read stated costs."""
    costs = {}
    for pair in [] if pairs is None else pairs:
        name, _, amount = pair.rpartition("=")
        try:
            costs[name] = float(amount)
        except ValueError:
            costs[name] = -1.0
        if not name or not 0 <= costs[name] < math.inf:
            message = f"{pair!r} is no cost of a labeler; write NAME=USD, as in 'llm_3 (LLM)=90'"
            raise typer.BadParameter(message, param_hint="--cost")
    return costs


def _bars(progress: Progress) -> OnVerdict:
    """Return what moves one bar for each labeler."""
    tasks: dict[str, TaskID] = {}

    def show(name: str, done: int, total: int) -> None:
        if name not in tasks:
            tasks[name] = progress.add_task(name.replace("[", "\\["), total=total)
        progress.update(tasks[name], completed=done)

    return show
