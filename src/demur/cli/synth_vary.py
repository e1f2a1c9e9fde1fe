"""`demur synth vary`: vary labelled rows by cheap changes that keep their labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from demur.errors import RowError

if TYPE_CHECKING:
    from demur.synthesis.variation import Variation

__all__ = ["vary"]


def vary(
    file: Annotated[Path, typer.Argument(help="JSONL file of labelled conversations.")],
    out: Annotated[Path, typer.Option(help="JSONL file for the variants; the rows themselves are not repeated in it.")],
    seed: Annotated[int, typer.Option(min=0, help="Draws the changes: the same seed gives the same variants.")],
    mutations: Annotated[
        list[str] | None,
        typer.Option(
            help="Names with commas between them: case, typos, apostrophes, markdown, truncation, courtesy_before, "
            "courtesy_after, innocent_turn. All by default. Repeatable."
        ),
    ] = None,
    per_row: Annotated[int, typer.Option(min=1, help="Variants of each row, at most.")] = 1,
    chain: Annotated[int, typer.Option(min=1, help="Changes on top of one another in a variant, at most.")] = 1,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of variants.")] = False,
) -> None:
    """Write variants of labelled rows, with the same labels and the changes that were made."""
    from demur.cli.rows_out import rows_writer
    from demur.data.label_fields import require_files
    from demur.synthesis.variation import vary as vary_rows

    variation = _variation(mutations, seed, per_row, chain)
    require_files([file], "a JSONL file of labelled conversations")
    console = Console(stderr=True)
    n_rows, n_unchanged, broken = 0, 0, list[RowError]()
    of_kind: Counter[str] = Counter()
    with rows_writer(out, overwrite=overwrite, apart_from=[file]) as write:
        for rows in track(vary_rows(file, variation), description="varying", console=console, transient=True):
            if isinstance(rows, RowError):
                if strict:
                    raise rows
                broken.append(rows)
                continue
            n_rows += 1
            n_unchanged += not rows
            of_kind.update(name for row in rows for name in row["mutations"])
            for row in rows:
                write(json.dumps(row, ensure_ascii=False))
    for error in broken:
        console.print(f"left out: {error}", markup=False, highlight=False, soft_wrap=True)
    made = ", ".join(f"{name} {count}" for name, count in of_kind.items())
    print(f"{out}: {n_rows} rows varied, {n_unchanged} of them without a variant, {len(broken)} unreadable")
    print(f"changes: {made or 'none'}")
    if broken and not n_rows:
        raise typer.Exit(1)


def _variation(mutations: list[str] | None, seed: int, per_row: int, chain: int) -> Variation:
    from demur.synthesis.mutations import MUTATIONS
    from demur.synthesis.variation import Variation

    given = list(MUTATIONS) if mutations is None else [part.strip() for each in mutations for part in each.split(",")]
    try:
        return Variation(tuple(given), seed=seed, per_row=per_row, chain=chain)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--mutations") from error
