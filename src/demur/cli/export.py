"""`demur export`: write standard checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demur.cli.options import EncoderName, Replace, TaxonomyFile, WeightsFolder, quiet_libraries

__all__ = ["export"]


def export(
    out: Annotated[Path, typer.Argument(help="Folder that gets `gate` and `categories`.")],
    weights: WeightsFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
    overwrite: Replace = False,
) -> None:
    """Write gate and category head as folders that plain `transformers` pipelines load."""
    from demur.studies.writing import require_room

    require_room([out / "gate", out / "categories"], overwrite=overwrite)
    quiet_libraries()
    from demur.model.export import export_standard
    from demur.model.weights import Weights
    from demur.taxonomy import Taxonomy

    loaded = Weights.load(weights, taxonomy=Taxonomy.load(taxonomy), encoder=encoder)
    for folder in export_standard(loaded, out):
        print(folder)
