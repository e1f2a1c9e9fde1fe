"""`demur audit`: audit a data set."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from demur.cli.options import (
    CoverageShare,
    EncoderName,
    PolicyName,
    TaxonomyFile,
    Threshold,
    WeightsFolder,
    open_analyzer,
)
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.labelers.classifier import Analyzer
    from demur.studies.audit import Progress as AuditProgress
    from demur.studies.findings import Audit

__all__ = ["audit"]

# The bar counts parts of the source's bytes: rows are not known before they are read.
_PARTS = 10_000
# What the embedded encoder is.
_EMBEDDED_MODEL = "all-MiniLM-L6-v2"
_DIGEST = 12


class Turns(StrEnum):
    """Name the assistant turns that are judged."""

    last = "last"
    all = "all"


def audit(
    source: Annotated[
        str,
        typer.Argument(
            help="File, folder, pattern, hf://owner/name[:config][/split], - for standard input, or `example`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for verdicts.parquet, composition.json and the reports.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Read so many rows at most.")] = None,
    layout: Annotated[
        str | None, typer.Option("--format", help="Layout of the rows; found by itself by default.")
    ] = None,
    field: Annotated[
        list[str] | None, typer.Option(help="Column of a part, as part=column (prompt=question). Repeatable.")
    ] = None,
    turns: Annotated[Turns, typer.Option(help="Judge the last assistant turn of a row, or all.")] = Turns.last,
    policy: PolicyName = Policy.standard,
    threshold: Threshold = None,
    coverage: CoverageShare = None,
    evidence: Annotated[
        bool, typer.Option(help="Find the sentence that carries each refusal: one more pass over their sentences.")
    ] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a stopped run into this folder was.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the audit that the folder holds.")] = False,
    weights: WeightsFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
) -> None:
    """Judge every reply of a data set, and write what it holds."""
    fields = _fields([] if field is None else field)
    analyzer = open_analyzer(weights, encoder, taxonomy, threshold, evidence=evidence, policy=policy, coverage=coverage)
    from demur.api import audit as run

    console = Console(stderr=True)
    _say(console, _model_line(analyzer, weights))
    with _progress(console) as progress:
        found = run(
            source, labeler=analyzer, out=out, limit=limit, layout=layout, fields=fields, turns=turns.value,
            strict=strict, resume=resume, overwrite=overwrite, progress=_display(progress),
            on_layout=_layout_display(console),
        )  # fmt: skip
    _print_summary(found, out)
    if found.why_not_scored is not None:
        raise typer.Exit(1)


def _fields(pairs: list[str]) -> dict[str, str]:
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        message = f"{wrong[0]!r} is not of the form part=column, as in prompt=question"
        raise typer.BadParameter(message, param_hint="--field")
    return dict(tuple(pair.split("=", 1)) for pair in pairs)  # type: ignore[misc]  # split gives two parts, checked above


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[replies]:,} replies"),
        TextColumn("{task.fields[rate]:.1f}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _display(progress: Progress) -> Callable[[AuditProgress], None]:
    task: TaskID = progress.add_task("auditing", total=None, replies=0, rate=0.0)

    def show(now: AuditProgress) -> None:
        elapsed = progress.tasks[0].elapsed
        rate = (now.replies - now.resumed) / elapsed if elapsed else 0.0
        is_known = now.fraction is not None
        progress.update(
            task,
            total=_PARTS if is_known else None,
            completed=round(_PARTS * now.fraction) if now.fraction is not None else 0,
            replies=now.replies,
            rate=rate,
        )

    return show


def _layout_display(console: Console) -> Callable[[str, str], None]:
    """Return what says how a file is read; of many files, the first of each layout."""
    told: set[str] = set()

    def show(file: str, layout: str) -> None:
        if layout not in told:
            told.add(layout)
            _say(console, f"{file}: read as {layout}")

    return show


def _model_line(analyzer: Analyzer, weights: Path | None) -> str:
    from demur.model.encoders import EMBEDDED

    found = analyzer.describe()
    encoder = f"{EMBEDDED} ({_EMBEDDED_MODEL})" if found["encoder"] == EMBEDDED else found["encoder"]
    folder = "shipped" if weights is None else str(weights)
    return f"encoder: {encoder}; weights: {folder} ({found['weights_sha256'][:_DIGEST]})"


def _say(console: Console, line: str) -> None:
    """Print one line as it is, above the bar where there is one."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_summary(found: Audit, out: Path) -> None:
    for layout, n_files in found.layouts.items():
        print(f"read as {layout}" + (f" ({n_files} files)" if n_files > 1 else ""))
    low, high = found.interval
    policy = "" if found.policy is Policy.standard else f", policy {found.policy}"
    finding = f"{found.refusals:,} refusals: {found.share:.1%} ({low:.1%} to {high:.1%}){policy}"
    print(f"{found.rows:,} replies, {finding if found.why_not_scored is None else found.why_not_scored}")
    if found.composition.scored and found.composition.unscored:
        print("unscored: " + ", ".join(f"{reason} {count:,}" for reason, count in found.composition.unscored.items()))
    for key, share in sorted(found.by_category.items(), key=lambda item: -item[1].count):
        if share.count:
            print(f"  {key:<24}{share.count:>7,}  {share.share:6.1%}")
    print(f"report: {out / 'report.html'}")
