"""`demur ablate`: train and evaluate the variants of a recipe, and compare them in a table."""

from __future__ import annotations

import hashlib
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from demur.cli.options import DataFolder, EncoderName, TaxonomyFile, quiet_libraries
from demur.cli.progress import TrainingProgress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.studies.ablation import Cell

__all__ = ["ablate"]

_TABLE = "ablations"
# File systems take 255 bytes.
_LONGEST_NAME = 120


def ablate(
    plan: Annotated[
        str, typer.Argument(help="Plan (a YAML file, or `ablations`) that names recipe, variants, seeds and dev files.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the table, the finished cells, which are not done again, and their weights. Tables of a "
            "plan that --only or --seed narrows have names of their own."
        ),
    ],
    data: DataFolder = None,
    only: Annotated[list[str] | None, typer.Option(help="Variant to run, by its key. Repeatable.")] = None,
    seed: Annotated[list[int] | None, typer.Option(min=0, help="Seed in place of the plan's. Repeatable.")] = None,
    share: Annotated[
        float | None,
        typer.Option(min=0.01, max=1.0, help="Share of each source's rows to train on, for a quick look."),
    ] = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
    resamples: Annotated[
        int, typer.Option(min=1, help="Bootstrap resamples behind the intervals that a cell keeps.")
    ] = 200,
) -> None:
    """Train every variant with every seed, evaluate each on the dev files, and write a table of means and spreads."""
    quiet_libraries()
    from demur.model.encoders import Encoder
    from demur.report.ablation import ablation_markdown
    from demur.studies.ablation import ablate as run
    from demur.studies.plan import Plan
    from demur.studies.recipe import folders_for
    from demur.studies.writing import writing
    from demur.taxonomy import Taxonomy

    loaded, base = Plan.load(plan)
    loaded = loaded.narrowed(only=only or (), seeds=seed or ())
    base = base if share is None else replace(base, share=share)
    with TrainingProgress(Console(stderr=True)) as progress:

        def on_cell(cell: Cell) -> None:
            progress.start(f"cell {cell.number} of {cell.total}: {cell.variant.title}, seed {cell.seed}")

        lines = run(
            loaded, base, out, folders=folders_for(plan, data), taxonomy=Taxonomy.load(taxonomy),
            encoder=Encoder.find(encoder), resamples=resamples,
            on_cell=on_cell, on_step=progress.on_step, on_epoch=progress.on_epoch,
        )  # fmt: skip
    command = shlex.join(["demur", *sys.argv[1:]])
    table = ablation_markdown(loaded.name, lines, seeds=loaded.seeds, command=command)
    keys = [variant.key for variant in loaded.variants] if only else []
    path = out / f"{_table_name(keys, seed or ())}.md"
    with writing(path) as temporary:
        temporary.write_text(table, encoding="utf-8")
    print(table, end="")
    Console(stderr=True).print(f"table: {path}", markup=False, soft_wrap=True)


def _table_name(keys: Sequence[str], seeds: Sequence[int]) -> str:
    """Name a table by what its plan was narrowed to, so that it takes the place of no other in the folder."""
    name = "-".join([_TABLE, *keys, *map(str, seeds)])
    return name if len(name) <= _LONGEST_NAME else f"{_TABLE}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
