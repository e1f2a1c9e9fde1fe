"""`demur train`: train weights from labelled files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from demur.cli.options import EncoderName, TaxonomyFile, quiet_libraries

if TYPE_CHECKING:
    from demur.model.training import Step, Validation

__all__ = ["train"]


def train(
    files: Annotated[list[Path], typer.Argument(help="JSONL files of labelled conversations, or folders of them.")],
    out: Annotated[Path, typer.Option(help="Folder for the weights; a stopped run goes on from its checkpoint there.")],
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
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the rows, at most.")] = 3,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows a step.")] = 16,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Peak learning rate.")] = 5e-4,
    rank: Annotated[int, typer.Option(min=0, help="Rank of the adapters; 0 trains the encoder's layers whole.")] = 32,
    seed: Annotated[int, typer.Option(help="Seed of initial heads, order, dropout and held-out prompts.")] = 42,
) -> None:
    """Train a gate and a category head, and calibrate them on prompts held out from training."""
    quiet_libraries()
    from demur.model.encoders import Encoder
    from demur.model.training import TrainingSettings
    from demur.studies import training
    from demur.taxonomy import Taxonomy

    console = Console(stderr=True)
    found = Encoder.find(encoder)
    console.print(f"encoder: {found.name} ({found.folder})", markup=False, soft_wrap=True)
    settings = TrainingSettings(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, rank=rank, seed=seed)
    with _progress(console) as progress:
        task = progress.add_task("preparing", total=None, rate=0.0, loss="")

        def on_step(step: Step) -> None:
            speed = progress.tasks[0].speed
            rate = 0.0 if speed is None else speed * step.n_rows
            progress.update(
                task,
                description="training",
                completed=step.done,
                total=step.total,
                rate=rate,
                loss=f"loss {step.loss:.3f}",
            )

        def on_epoch(found: Validation) -> None:
            console.print(
                f"epoch {found.epoch}: training loss {found.training_loss:.3f}, held-out gate F1 {found.gate_f1:.3f}, "
                f"kind accuracy {found.kind_accuracy:.3f}"
            )

        manifest = training.train(
            _expanded(files), out, taxonomy=Taxonomy.load(taxonomy), encoder=found, settings=settings,
            avoid=_expanded(avoid), texts=_expanded(texts), on_step=on_step, on_epoch=on_epoch,
        )  # fmt: skip
    rows = manifest.training["rows"]
    print(f"{out}: trained on {sum(rows['training'].values())} rows; calibrated on {rows['tuning']}")


def _expanded(files: list[Path] | None) -> list[Path]:
    """Put the JSONL files below a folder in its place."""
    from demur.errors import SourceError

    empty = [file for file in files or () if file.is_dir() and not any(file.rglob("*.jsonl"))]
    if empty:
        message = f"no .jsonl file below {str(empty[0])!r}; give a JSONL file, or a folder that holds some"
        raise SourceError(message)
    return [path for file in files or () for path in (sorted(file.rglob("*.jsonl")) if file.is_dir() else [file])]


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
