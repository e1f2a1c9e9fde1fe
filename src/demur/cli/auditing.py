"""What every command that audits takes, shows and prints."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from demur.stats.numbers import percent, with_noun
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.progress import ProgressColumn

    from demur.studies.audit import Progress as AuditProgress
    from demur.studies.findings import Audit

__all__ = [
    "Dedup",
    "Fields",
    "Layout",
    "Limit",
    "OnCluster",
    "Out",
    "Overwrite",
    "Resume",
    "SourceName",
    "Strict",
    "Turns",
    "TurnsName",
    "audit_bar",
    "check_one_of",
    "parse_fields",
    "print_summary",
    "say",
    "show_layouts",
    "show_progress",
]

# The bar counts parts of the source's bytes: rows are not known before they are read.
_PARTS = 10_000


class Turns(StrEnum):
    """Name the assistant turns that are judged."""

    last = "last"
    all = "all"


SourceName = Annotated[
    str,
    typer.Argument(help="File, folder, pattern, hf://owner/name[:config][/split], - for standard input, or `example`."),
]
Out = Annotated[Path, typer.Option(help="Folder for verdicts.parquet, composition.json and the reports.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Read so many rows at most.")]
Layout = Annotated[str | None, typer.Option("--format", help="Layout of the rows; found by itself by default.")]
Fields = Annotated[
    list[str] | None, typer.Option("--field", help="Column of a part, as part=column (prompt=question). Repeatable.")
]
TurnsName = Annotated[Turns, typer.Option(help="Judge the last assistant turn of a row, or all.")]
Dedup = Annotated[
    bool, typer.Option("--dedup/--no-dedup", help="Judge identical conversations once, and count each of them.")
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="`ray` judges in worker processes on this machine; ray://HOST:PORT, or ray://auto on one of its nodes, on "
        "a cluster: with the same results. Needs: pip install 'demur[ray]'.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a stopped run into this folder was.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the audit that the folder holds.")]


def check_one_of(*, resume: bool, overwrite: bool) -> None:
    """Refuse to go on with what is to be replaced.

    Raises:
        BadParameter: Both are asked for.
    """
    if resume and overwrite:
        message = "--resume goes on with what is there, and --overwrite replaces it; give one of them"
        raise typer.BadParameter(message, param_hint="--resume, --overwrite")


def parse_fields(pairs: list[str] | None, name: str = "--field", example: str = "prompt=question") -> dict[str, str]:
    """Read what is given as several `part=column`.

    Raises:
        BadParameter: One has no equals sign, or a part is given twice.
    """
    given = [] if pairs is None else pairs
    wrong = [pair for pair in given if "=" not in pair]
    if wrong:
        message = f"{wrong[0]!r} has no equals sign; write it as in {example}"
        raise typer.BadParameter(message, param_hint=name)
    parts = [pair.partition("=")[0] for pair in given]
    if repeated := [part for part, n in Counter(parts).items() if n > 1]:
        message = f"{repeated[0]!r} is given {parts.count(repeated[0])} times; give each once"
        raise typer.BadParameter(message, param_hint=name)
    return dict(zip(parts, (pair.partition("=")[2] for pair in given), strict=True))


def audit_bar(console: Console, *further: ProgressColumn) -> Progress:
    """Return the bar of an audit, with whatever else is to stand in it."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[replies]:,} replies"),
        TextColumn("{task.fields[rate]:.1f}/s"),
        *further,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def show_progress(progress: Progress) -> Callable[[AuditProgress], None]:
    """Return what moves the bar."""
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


def show_layouts(console: Console) -> Callable[[str, str], None]:
    """Return what says how a file is read; of many files, the first of each layout."""
    told: set[str] = set()

    def show(file: str, layout: str) -> None:
        if layout not in told:
            told.add(layout)
            say(console, f"{file}: read as {layout}")

    return show


def say(console: Console, line: str) -> None:
    """Print one line as it is, above the bar where there is one."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_summary(found: Audit, out: Path) -> None:
    """Print what an audit found."""
    from demur.report.words import language_note, pairs_sentence

    print(_finding(found) if found.why_not_scored is None else found.why_not_scored)
    for side, of_side in found.tally.sides.items():
        if of_side.scored:
            rate = percent(of_side.share, of_side.interval)
            print(f"{side}: {of_side.refusals:,} of {of_side.scored:,} refuse, {rate}")
    if said := pairs_sentence(found):
        print(said)
    if repeats := found.tally.repeats:
        said = with_noun(repeats, "reply repeats", "replies repeat")
        print(f"{said} a text that came before, and {'was' if repeats == 1 else 'were'} not judged again")
    if found.composition.scored and found.composition.unscored:
        print("unscored: " + ", ".join(f"{reason} {count:,}" for reason, count in found.composition.unscored.items()))
    if note := language_note(found):
        print(f"note: {note}")
    for key, share in sorted(found.by_category.items(), key=lambda item: -item[1].count):
        if share.count:
            print(f"  {key:<24}{share.count:>7,}{percent(share.share, share.interval):>8}")
    print(f"report: {out / 'report.html'}")


def _finding(found: Audit) -> str:
    share, low, high = (percent(end, found.interval) for end in (found.share, *found.interval))
    policy = "" if found.policy is Policy.standard else f", policy {found.policy}"
    counts = found.composition
    of_one = " of replies to one request" if counts.n_requests == 1 < counts.scored else ""
    return f"{found.counted}: {share} ({low} to {high}){of_one}{policy}"
