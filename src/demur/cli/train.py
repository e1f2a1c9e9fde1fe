"""`demur train`: train weights from a recipe, or from labelled files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from demur.cli.options import DataFolder, EncoderName, TaxonomyFile, quiet_libraries

if TYPE_CHECKING:
    from demur.model.training import Step, Validation

__all__ = ["train"]


def train(
    out: Annotated[Path, typer.Option(help="Folder for the weights; a stopped run goes on from its checkpoint there.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="JSONL files of labelled conversations, or folders of them.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="Recipe (a YAML file, or `shipped`) that names sources and settings.")
    ] = None,
    data: DataFolder = None,
    avoid: Annotated[
        list[Path] | None, typer.Option(help="JSONL file whose prompts must not be trained on. Repeatable.")
    ] = None,
    texts: Annotated[
        list[Path] | None,
        typer.Option(
            help="JSONL file or folder with the messages, by id, of labelled rows that have none. Repeatable."
        ),
    ] = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows, at most: 3, or the recipe's.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows a step: 16, or the recipe's.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(min=0.0, help="Peak learning rate: 0.0005, or the recipe's.")
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(min=0, help="Rank of the adapters: 32, or the recipe's; 0 trains the encoder's layers whole."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of heads, order, dropout and held-out prompts: 42, or the recipe's.")
    ] = None,
) -> None:
    """Train a gate and a category head, and calibrate them on prompts held out from training."""
    _require_one_form(files, recipe, data, avoid, texts)
    quiet_libraries()
    from demur.model.encoders import Encoder
    from demur.taxonomy import Taxonomy

    console = Console(stderr=True)
    options = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "rank": rank, "seed": seed}
    given = {name: value for name, value in options.items() if value is not None}
    found = Encoder.find(encoder)
    console.print(f"encoder: {found.name} ({found.folder})", markup=False, soft_wrap=True)
    with _progress(console) as progress:
        watched = _Watched(console, progress)
        common: dict[str, Any] = {
            "taxonomy": Taxonomy.load(taxonomy), "encoder": found,
            "on_step": watched.on_step, "on_epoch": watched.on_epoch,
        }  # fmt: skip
        training = (
            _from_files(files or [], out, given, avoid=avoid, texts=texts, common=common)
            if recipe is None
            else _from_recipe(recipe, out, given, data=data, common=common)
        )
    rows = training["rows"]
    print(f"{out}: trained on {sum(rows['training'].values())} rows; calibrated on {rows['tuning']}")


def _require_one_form(
    files: list[Path] | None, recipe: str | None, data: Path | None, avoid: list[Path] | None, texts: list[Path] | None
) -> None:
    if recipe is None and not files:
        message = "nothing to train on; give files of labelled conversations, or --recipe"
        raise typer.BadParameter(message)
    if recipe is None and data is not None:
        message = "--data is where a recipe's sources lie; give --recipe too, or the files alone"
        raise typer.BadParameter(message)
    if recipe is not None and (files or avoid or texts):
        message = "a recipe names its own files; write these, and what to avoid, into it, or leave --recipe out"
        raise typer.BadParameter(message)


def _from_files(
    files: list[Path],
    out: Path,
    given: dict[str, Any],
    *,
    avoid: list[Path] | None,
    texts: list[Path] | None,
    common: dict[str, Any],
) -> dict[str, Any]:
    from demur.model.settings import TrainingSettings
    from demur.studies.training import train as train_files

    settings = TrainingSettings(**given)
    return train_files(
        _expanded(files), out, settings=settings, avoid=_expanded(avoid), texts=_expanded(texts), **common
    ).training


def _from_recipe(
    recipe: str, out: Path, given: dict[str, Any], *, data: Path | None, common: dict[str, Any]
) -> dict[str, Any]:
    from dataclasses import replace

    from demur.studies.recipe import Recipe, folders_for
    from demur.studies.training import train_recipe

    loaded = Recipe.load(recipe)
    loaded = replace(loaded, settings=replace(loaded.settings, **given))
    return train_recipe(loaded, out, folders=folders_for(recipe, data), **common).training


def _expanded(files: list[Path] | None) -> list[Path]:
    """Put the JSONL files of a folder in its place."""
    from demur.data.labelled import labelled_files

    return [path for file in files or () for path in labelled_files(file)]


class _Watched:
    """Show how far training is."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self._console, self._progress = console, progress
        self._task = progress.add_task("preparing", total=None, rate=0.0, loss="")

    def on_step(self, step: Step) -> None:
        speed = self._progress.tasks[0].speed
        rate = 0.0 if speed is None else speed * step.n_rows
        self._progress.update(
            self._task,
            description="training",
            completed=step.done,
            total=step.total,
            rate=rate,
            loss=f"loss {step.loss:.3f}",
        )

    def on_epoch(self, found: Validation) -> None:
        self._console.print(
            f"epoch {found.epoch}: training loss {found.training_loss:.3f}, held-out gate F1 {found.gate_f1:.3f}, "
            f"kind accuracy {found.kind_accuracy:.3f}"
        )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]:.1f} rows/s"),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )
