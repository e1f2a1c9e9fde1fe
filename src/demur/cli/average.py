"""`demur average`: average the weights of several trainings into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli.options import DataFolder, EncoderName, TaxonomyFile, calibration_line, quiet_libraries
from demur.data.rendering import MAX_TOKENS, MIN_TOKENS

__all__ = ["average"]


def average(
    weights: Annotated[
        list[Path],
        typer.Argument(
            help="Weights folders of one encoder, taxonomy, window and held-out rows: several, or one and a rank or "
            "a window."
        ),
    ],
    recipe: Annotated[
        str,
        typer.Option(
            help="Recipe (a YAML file, or `shipped`) whose held-out rows calibrate and measure the mean, and whose "
            "settings say how much it reads of earlier turns."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the averaged weights.")],
    rank: Annotated[
        int | None, typer.Option(min=1, help="Rank to keep of what was trained in each layer; all of it by default.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            min=MIN_TOKENS,
            max=MAX_TOKENS,
            help="Tokens that the mean reads of a text; those that the trainings read by default.",
        ),
    ] = None,
    data: DataFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
) -> None:
    """Average trained weights into one set of the same size in use, and calibrate it on held-out prompts."""
    quiet_libraries()
    from demur.studies.averaging import average as average_weights
    from demur.studies.recipe import Recipe, folders_for
    from demur.taxonomy import Taxonomy

    manifest = average_weights(
        weights, out, recipe=Recipe.load(recipe), folders_of_data=folders_for(recipe, data),
        taxonomy=Taxonomy.load(taxonomy), encoder=encoder, rank=rank, window=window,
    )  # fmt: skip
    rows = manifest.training["rows"]
    said = calibration_line(rows["tuning"])
    print(f"{out}: mean of {len(weights)} weights; {said} rows, measured on {rows['measuring']}")
