"""`demur judge`: audit a data set with a language model as the judge."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from demur.cli.auditing import (
    Fields,
    Layout,
    Limit,
    Overwrite,
    Resume,
    SourceName,
    Strict,
    Turns,
    TurnsName,
    audit_bar,
    check_one_of,
    parse_fields,
    print_summary,
    say,
    show_layouts,
    show_progress,
)
from demur.cli.judging import (
    Asking,
    BaseUrl,
    Batch,
    CacheFile,
    Concurrency,
    KeyVariable,
    MaxCost,
    MaxRows,
    ModelName,
    Parameters,
    PollSeconds,
    PriceFile,
    PricePair,
    Prompt,
    PromptName,
    Retries,
    SpentColumn,
    TimeoutSeconds,
    estimate_lines,
    spending_line,
)
from demur.cli.options import TaxonomyFile
from demur.stats.numbers import with_noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.conversation import Conversation
    from demur.labelers.judge import Judge
    from demur.llm.budget import Spending
    from demur.llm.client import Client
    from demur.studies.findings import Audit

__all__ = ["judge"]


class DecidedPolicy(StrEnum):
    """Name the policies that need no threshold: a judge decides without one, so that `broad` could lower none."""

    strict = "strict"
    standard = "standard"


def judge(
    source: SourceName,
    model: ModelName,
    out: Annotated[
        Path | None, typer.Option(help="Folder for verdicts.parquet, composition.json, the reports and spending.json.")
    ] = None,
    base_url: BaseUrl = "https://api.openai.com/v1",
    key_variable: KeyVariable = None,
    limit: Limit = None,
    layout: Layout = None,
    field: Fields = None,
    turns: TurnsName = Turns.last,
    policy: Annotated[
        DecidedPolicy,
        typer.Option(help="What counts as a refusal. strict: refusals in full. standard: in full or in part."),
    ] = DecidedPolicy.standard,
    prompt: PromptName = Prompt.full,
    parameter: Parameters = None,
    max_cost: MaxCost = None,
    max_rows: MaxRows = None,
    prices: PriceFile = None,
    price: PricePair = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say what it would come to in rows, tokens and USD, and where limits would stop it; ask nothing.",
        ),
    ] = False,
    batch: Batch = False,
    poll: PollSeconds = 30.0,
    concurrency: Concurrency = 8,
    timeout: TimeoutSeconds = 120.0,
    retries: Retries = 6,
    cache: CacheFile = None,
    strict: Strict = False,
    resume: Resume = False,
    overwrite: Overwrite = False,
    taxonomy: TaxonomyFile = None,
) -> None:
    """Let a language model judge every reply of a data set, and write what it holds."""
    if out is None and not dry_run:
        message = "nowhere to write; give a folder, or --dry-run"
        raise typer.BadParameter(message, param_hint="--out")
    check_one_of(resume=resume, overwrite=overwrite)
    from demur.documents import user_path
    from demur.taxonomy import Taxonomy

    out = None if out is None else user_path(out)
    console = Console(stderr=True)
    reading = {"limit": limit, "layout": layout, "fields": parse_fields(field), "turns": turns.value}
    asking = Asking(
        base_url, key_variable, prompt, parameter, max_cost, max_rows, prices, price, batch, poll, concurrency,
        timeout, retries, cache,
    )  # fmt: skip
    # What an earlier run was charged counts where this one goes on with it; a dry one forgets nothing.
    is_apart = out is None or (dry_run and _begins_anew(out, resume=resume, overwrite=overwrite))
    run = None if is_apart or out is None else str(out.resolve())
    opened = asking.open(model, Taxonomy.load(taxonomy), tell=lambda line: say(console, line), run=run)
    if dry_run or out is None:
        _print_estimate(opened, source, reading)
        return
    further = {"policy": policy.value, "strict": strict, "resume": resume, "overwrite": overwrite}
    _audit(opened, source, out, {**reading, **further}, console)


def _audit(judge: Judge, source: str, out: Path, options: dict[str, Any], console: Console) -> None:
    from demur.api import audit as run
    from demur.studies.folder import AuditFolder

    # Without a key, nothing is begun.
    judge.client.endpoint.key()
    folder = AuditFolder(out)
    # What a run under way has been charged is no other's to forget.
    with folder.held("spending-"):
        is_new = _begins_anew(out, resume=options["resume"], overwrite=options["overwrite"])
        books = _Books(judge.client, is_kept=not is_new)
        n_before, found = 0 if is_new else _n_answered(judge.spending), None
        show = show_layouts(console)

        def begin(file: str, layout: str) -> None:
            books.begin()
            show(file, layout)

        try:
            with audit_bar(console, SpentColumn(judge.client)) as progress:
                found = run(
                    source, labeler=judge, out=out, progress=show_progress(progress), on_layout=begin, **options
                )
            books.begin()
        finally:
            # A run that is refused, fails to replace an audit, or finds all done leaves the books of what is there.
            is_left_alone = found is None and (folder.is_finished or not books.is_kept)
            if not is_left_alone and (_n_answered(judge.spending) > n_before or not folder.spending.exists()):
                _write_spending(judge.client, out)
    print_summary(found, out)
    print(spending_line(judge.spending))
    if said := _how_to_ask_again(found):
        say(console, said)
    if found.why_not_scored is not None:
        raise typer.Exit(1)


class _Books:
    """Forget what an earlier run was charged, once: where there is something to judge, and the audit has begun.

    Before, a source that is not there, or a folder that is another's, would cost an audit under way its books, and its
    limit would be spent twice.
    """

    def __init__(self, client: Client, *, is_kept: bool) -> None:
        self._client, self.is_kept = client, is_kept

    def begin(self) -> None:
        if not self.is_kept:
            self._client.begin()
            self.is_kept = True


def _how_to_ask_again(found: Audit) -> str | None:
    """Say how replies are asked for again that the judge gave no verdict on; None where there are none."""
    from demur.labelers.judge_answers import is_without_answer

    n = sum(count for reason, count in found.composition.unscored.items() if is_without_answer(reason))
    if not n:
        return None
    n_cut = found.composition.unscored.get("judge_answer_cut", 0)
    cut = (
        f"; {n_cut:,} ended at max_tokens: more of them asks all anew, as --parameter max_tokens=N does"
        if n_cut
        else ""
    )
    return (
        f"{with_noun(n, 'reply', 'replies')} without a verdict of the judge; --resume leaves a finished audit as it "
        f"is, --overwrite asks them again, and takes all that was answered from the cache, unpaid{cut}"
    )


def _begins_anew(out: Path, *, resume: bool, overwrite: bool) -> bool:
    """Tell whether what an earlier run into the folder was charged is no part of this one."""
    from demur.studies.folder import AuditFolder

    return not AuditFolder(out).manifest.is_file() or (overwrite and not resume)


def _n_answered(spending: Spending) -> int:
    """Count the requests that something came of, be it a failure."""
    return spending.answers + spending.failures + spending.reused


def _write_spending(client: Client, out: Path) -> None:
    """Write down what was paid, however the run ended; nothing where it did not begin."""
    from demur.studies.folder import AuditFolder
    from demur.studies.writing import write_json

    spending = client.spending
    if not _n_answered(spending):
        return
    price = client.price
    dated = client.prices.dated if price is None or price.read is None else price.read
    content = {"model": client.endpoint.model, "is_batch": client.is_batch, **spending.to_json()}
    write_json(AuditFolder(out).spending, {**content, "prices_of": None if price is None else dated.isoformat()})


def _print_estimate(judge: Judge, source: str, reading: dict[str, Any]) -> None:
    from demur.conversation import Conversation
    from demur.studies.inputs import ReadingOptions, open_input

    n_blank = n_broken = 0

    def talks() -> Iterator[Conversation]:
        nonlocal n_blank, n_broken
        for item in open_input(source, ReadingOptions(**reading)).items():
            if not isinstance(item, Conversation):
                n_broken += 1
            elif not item.reply.strip():
                n_blank += 1
            else:
                yield item

    found = judge.estimate(talks())
    for line in estimate_lines(found, n_blank=n_blank, n_broken=n_broken):
        print(line)
