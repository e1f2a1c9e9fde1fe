"""`demur synth check`: drop rows that repeat each other, a corpus, or what is evaluated on."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.synthesis.duplicate_check import Checked, Drop, DuplicateCheck

__all__ = ["check"]


def check(
    file: Annotated[Path, typer.Argument(help="JSONL file of labelled conversations.")],
    avoid: Annotated[
        list[Path] | None,
        typer.Option(
            help="JSONL file, or folder of some, that is evaluated on: no exchange or request of it may come back "
            "at any turn (below 20 characters: no equal request), nor a reply of 80 characters or more. Repeatable."
        ),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL file, or folder of some, that the rows are to be added to. Repeatable."),
    ] = None,
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            help="JSONL file, or folder of some, with the messages, by id, of rows that have none. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="JSONL file for the rows that are kept; the others go beside it, into NAME.dropped.jsonl."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0.3, max=1.0, help="Jaccard index from which two texts are near duplicates.")
    ] = 0.6,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of rows.")] = False,
) -> None:
    """Find exact and near duplicates, and account for each row that is dropped."""
    from demur.cli.rows_out import rows_writer
    from demur.data.labelled import DROPPED, labelled_files, read_texts
    from demur.synthesis.duplicate_check import DuplicateCheck

    console = Console(stderr=True)
    comparison = DuplicateCheck(threshold=threshold, texts=read_texts(texts or []))
    avoided = [each for path in avoid or () for each in labelled_files(path)]
    kept_before = [each for path in corpus or () for each in labelled_files(path)]
    if file.resolve() in (path.resolve() for path in avoided):
        message = f"{str(file)!r} is among what is to be avoided, so that no row of it could be kept; name other files"
        raise typer.BadParameter(message, param_hint="--avoid")
    n_avoided = comparison.avoid(avoided)
    # A corpus may hold what is checked against it.
    n_corpus = comparison.add_corpus(path for path in kept_before if path.resolve() != file.resolve())
    with ExitStack() as stack:
        keep: Callable[[str], None] | None = None
        reject: Callable[[str], None] | None = None
        if out is not None:
            dropped = out.with_suffix(DROPPED)
            inputs = [file, *avoided, *kept_before, *(each for path in texts or () for each in labelled_files(path))]
            keep = stack.enter_context(rows_writer(out, overwrite=overwrite, apart_from=inputs))
            reject = stack.enter_context(rows_writer(dropped, overwrite=overwrite, apart_from=inputs))
        n_rows, reasons = _run(comparison, file, console, keep, reject)
    print(f"{file}: {n_rows} rows, {n_rows - reasons.total()} kept, {reasons.total()} dropped")
    for reason, count in sorted(reasons.items()):
        print(f"  {reason:<20} {count:>6}")
    print(f"compared with {n_avoided} rows to be avoided and {n_corpus} of the corpus")
    if n_rows and n_rows == reasons["unreadable"]:
        raise typer.Exit(1)


def _run(
    comparison: DuplicateCheck,
    file: Path,
    console: Console,
    keep: Callable[[str], None] | None,
    reject: Callable[[str], None] | None,
) -> tuple[int, Counter[str]]:
    n_rows, reasons = 0, Counter[str]()
    for checked in track(comparison.check(file), description="checking", console=console, transient=True):
        n_rows += 1
        if checked.drop is None:
            _write(keep, checked)
            continue
        reasons[checked.drop.reason] += 1
        print(_line(checked.drop))
        _write(reject, checked)
    return n_rows, reasons


def _write(write: Callable[[str], None] | None, checked: Checked) -> None:
    if write is None:
        return
    fields = {} if checked.row is None else dict(checked.row.fields)
    if (drop := checked.drop) is not None:
        fields["dropped"] = {
            "where": drop.where, "reason": drop.reason, "detail": drop.detail, "partner": drop.partner,
            "similarity": None if drop.similarity is None else round(drop.similarity, 4),
        }  # fmt: skip
    write(json.dumps(fields, ensure_ascii=False))


def _line(drop: Drop) -> str:
    name = drop.where if drop.id is None else f"{drop.where} ({drop.id})"
    if drop.partner is None or drop.similarity is None:
        return f"{name}: {drop.reason}: {drop.detail}"
    return f"{name}: {drop.reason}: {drop.detail} as in {drop.partner}, Jaccard {drop.similarity:.2f}"
