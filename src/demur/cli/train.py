"""`demur train`: train weights from a recipe, or from labelled files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from demur.cli.options import DataFolder, EncoderName, TaxonomyFile, calibration_line, quiet_libraries
from demur.cli.progress import TrainingProgress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.model.beginning import Beginning
    from demur.taxonomy import Taxonomy

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
            help="JSONL file or folder with the messages, by id, of rows that have none, avoided ones among them. "
            "Repeatable."
        ),
    ] = None,
    from_weights: Annotated[
        str | None,
        typer.Option(
            help="Weights folder, or `shipped`, to go on from: its adapters and heads, matched by the kinds' keys; a "
            "kind that is new begins as the mean of its group."
        ),
    ] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder of finished weights, of any encoder, or `shipped`, whose opinion of the recipe's rows is "
            "learnt beside their labels, and where these are lacking. Repeatable: the mean is learnt."
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
        int | None, typer.Option(min=0, help="Seed of heads, order, dropout and held-out prompts: 42, or the recipe's.")
    ] = None,
) -> None:
    """Train a gate and a category head, and calibrate them on prompts held out from training."""
    _require_one_form(files, recipe, data, avoid, texts)
    _require_teachable(teacher, recipe)
    _require_files(files, recipe, data, avoid, texts)
    quiet_libraries()
    from demur.model.encoders import Encoder
    from demur.taxonomy import Taxonomy

    beginning = None if from_weights is None else _beginning(from_weights, encoder)

    console = Console(stderr=True)
    options = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "rank": rank, "seed": seed}
    given = {name: value for name, value in options.items() if value is not None}
    if beginning is not None and recipe is None:
        given = {**_as_before(beginning), **given}
    found = Encoder.find(encoder) if beginning is None else beginning.encoder
    kinds = Taxonomy.load(taxonomy)
    console.print(f"encoder: {found.name} ({found.folder})", markup=False, soft_wrap=True)
    if beginning is not None:
        console.print(_kinds_line(beginning, kinds), markup=False, soft_wrap=True)
    with TrainingProgress(console) as progress:
        common: dict[str, Any] = {
            "taxonomy": kinds, "encoder": found, "beginning": beginning,
            "on_step": progress.on_step, "on_epoch": progress.on_epoch,
        }  # fmt: skip
        if recipe is None:
            training = _from_files(files or [], out, given, avoid=avoid, texts=texts, common=common)
        else:
            of_teachers = {
                "teachers": [_weights_folder(each) for each in teacher or ()],
                "on_answer": progress.on_answer,
            }
            training = _from_recipe(recipe, out, given, data=data, common={**common, **of_teachers})
    rows = training["rows"]
    is_kept = training.get("from_weights", {}).get("is_calibration_kept", False)
    said = f"calibrated as before; validated on {rows['tuning']}" if is_kept else calibration_line(rows["tuning"])
    print(f"{out}: trained on {sum(rows['training'].values())} rows; {said}")
    if left_out := _left_out(rows):
        print(f"left out: {'; '.join(left_out)}")


def _as_before(beginning: Beginning) -> dict[str, Any]:
    """Return the settings of a training that goes on, where they are not given: what fits the weights."""
    from demur.model.settings import TrainingSettings

    view = beginning.manifest.view
    window = view["max_tokens"]
    return {
        "rank": beginning.rank,
        "max_tokens": min(TrainingSettings().max_tokens, window),
        "window": window,
        "earlier_tokens": view["earlier_tokens"],
    }


def _left_out(rows: Mapping[str, Any]) -> list[str]:
    """Say which rows were given and not trained on, but for those that are held out to calibrate and measure by."""
    from demur.stats.numbers import of_splits

    contradicted = f", {rows['contradicted']:,} of them with the opposite verdict" if rows["contradicted"] else ""
    return [
        *([of_splits(rows["other_splits"])] if rows["other_splits"] else []),
        *([f"{rows['avoided']:,} whose prompt is to be avoided"] if rows["avoided"] else []),
        *([f"{rows['repeated']:,} that repeat a conversation{contradicted}"] if rows["repeated"] else []),
        *([f"{rows['withheld']:,} whose prompt is held out"] if rows["withheld"] else []),
    ]


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


def _require_teachable(teacher: list[str] | None, recipe: str | None) -> None:
    if teacher and recipe is None:
        message = "--teacher wants --recipe, which says which rows have labels and which have not; give both"
        raise typer.BadParameter(message)


def _require_files(
    files: list[Path] | None, recipe: str | None, data: Path | None, avoid: list[Path] | None, texts: list[Path] | None
) -> None:
    """Look for all files before the encoder is loaded, which takes seconds."""
    from demur.model.settings import TrainingSettings
    from demur.studies.mixture import files_of
    from demur.studies.recipe import Recipe, folders_for

    if recipe is not None:
        files_of(Recipe.load(recipe), folders_for(recipe, data))
        return
    given = Recipe.of_files(files or [], avoid=avoid or [], texts=texts or [], settings=TrainingSettings())
    files_of(given, ())


def _beginning(name: str, encoder: str | None) -> Beginning:
    from demur.model.beginning import Beginning

    return Beginning.load(_weights_folder(name), encoder=encoder)


def _weights_folder(name: str) -> Path:
    from demur.model.weights import shipped_weights

    return shipped_weights() if name == "shipped" else Path(name)


def _kinds_line(beginning: Beginning, taxonomy: Taxonomy) -> str:
    """Say which kinds begin where, and which end."""
    added, left_out = beginning.added(taxonomy), beginning.left_out(taxonomy)
    line = f"going on from weights with {len(taxonomy) - len(added)} of the {len(taxonomy)} kinds"
    line += f"; new: {', '.join(added)}" if added else ""
    return f"{line}; left out: {', '.join(left_out)}" if left_out else line


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

    settings = TrainingSettings().changed(**given)
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
    loaded = replace(loaded, settings=loaded.settings.changed(**given))
    return train_recipe(loaded, out, folders=folders_for(recipe, data), **common).training


def _expanded(files: list[Path] | None) -> list[Path]:
    """Put the JSONL files of a folder in its place."""
    from demur.data.labelled import labelled_files

    return [path for file in files or () for path in labelled_files(file)]
