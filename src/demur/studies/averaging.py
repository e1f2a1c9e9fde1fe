"""Average the weights of several trainings into one, and calibrate it anew (model soups, Wortsman et al. 2022)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from demur.errors import WeightsError
from demur.model.averaging import averaged, factored, is_low_rank, reduced, uncalibrated
from demur.model.weights import Manifest, encoder_of, read_tensors, require_encoder, require_taxonomy
from demur.studies.finishing import finished, prepared
from demur.studies.lesson import Lesson
from demur.studies.lineage import met_prompts, require_held_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

    from demur.model.encoders import Encoder
    from demur.studies.recipe import Recipe
    from demur.taxonomy import Taxonomy

__all__ = ["average"]

_FEWEST = 2
# What all trainings must share, and what to call it.
_SHARED = {
    "encoder_sha256": "encoder",
    "categories": "kinds",
    "taxonomy_fingerprint": "taxonomy",
    "max_tokens": "window",
}


def average(
    folders: Sequence[Path],
    out: Path,
    *,
    recipe: Recipe,
    folders_of_data: Sequence[Path],
    taxonomy: Taxonomy,
    encoder: str | None = None,
    rank: int | None = None,
    window: int | None = None,
) -> Manifest:
    """Average weights, calibrate and measure the mean on the rows that a recipe holds out, and write a weights folder.

    Which prompts are held out is drawn by the seed, so all trainings must have held out by the recipe's. A prompt that
    one of them met all the same, for it had no clear row of it, neither calibrates nor measures the mean.

    Args:
        folders: Weights folders of one encoder, taxonomy and window, two at least; or one, to reduce it to a rank or
            to calibrate it for a window.
        out: The folder for the mean.
        recipe: Whose held-out rows calibrate and measure.
        folders_of_data: Where the recipe's files are looked up, first to last.
        taxonomy: That of the weights.
        encoder: Where the encoder is, if not where the first manifest says; must be the same file.
        rank: Rank that is kept of what the mean changes in each layer, 1 at least; None for all, which is the sum of
            the trainings' ranks, or whole layers where these were trained whole.
        window: Tokens that the mean reads of a text; None for those that the trainings read. How many of these may be
            of earlier turns, the recipe says.

    Raises:
        TrainingError: The window is none that weights can have.
        WeightsError: A folder is damaged, or the weights do not go together or with the recipe; the message says why.
        SourceError: A file of the recipe is missing or cannot be read.
        OutputError: The folder for the mean cannot be made, holds finished weights, or another process writes to it.
    """
    if len(folders) < (_FEWEST if rank is None and window is None else 1):
        message = (
            f"{len(folders)} weights folder to average; give two or more, or one and the rank to reduce it to, or the "
            "window to calibrate it for"
        )
        raise WeightsError(message)
    manifests = [Manifest.load(folder) for folder in folders]
    for folder, manifest in zip(folders, manifests, strict=True):
        _require_alike(folders[0], manifests[0], folder, manifest)
        require_held_out(folder, manifest, recipe)
    read = manifests[0].max_tokens if window is None else window
    settings = recipe.settings.changed(window=read)
    require_taxonomy(taxonomy, manifests[0], folders[0])
    found = encoder_of(manifests[0], encoder, folders[0])
    found.require(read)
    for folder, manifest in zip(folders[1:], manifests[1:], strict=True):
        require_encoder(found, manifest, folder)
    trainings = [_trained(folder, manifest) for folder, manifest in zip(folders, manifests, strict=True)]
    _require_one_form(folders, trainings)
    tensors = averaged(trainings, [manifest.low_rank_scale for manifest in manifests])
    if rank is not None:
        tensors = _of_rank(tensors, rank, found, manifests[0].low_rank_scale)
    with prepared(out):
        met = met_prompts(manifests)
        lesson = Lesson.of(replace(recipe, settings=settings), taxonomy, folders=folders_of_data, met=met)
        tuning, measuring = lesson.held_out(taxonomy, found.tokenizer())
        training = {
            "averaged": [_record(manifest) for manifest in manifests],
            "recipe": recipe.record,
            "rank": rank,
            "window": read,
            "earlier_tokens": settings.earlier_tokens,
            "rows": {"tuning": len(lesson.parts.tuning), "measuring": len(lesson.parts.measuring)},
            # A training that goes on from the mean must not meet these prompts either.
            "held_out_seed": recipe.parting_seed,
            "met_prompts": sorted(met),
        }
        return finished(
            tensors, out, lesson=lesson, tuning=tuning, measuring=measuring, taxonomy=taxonomy, encoder=found,
            low_rank_scale=manifests[0].low_rank_scale, training=training,
        )  # fmt: skip


def _require_alike(first_folder: Path, first: Manifest, folder: Path, manifest: Manifest) -> None:
    for name, title in _SHARED.items():
        one, other = getattr(first, name), getattr(manifest, name)
        if one != other:
            message = (
                f"the weights in {str(first_folder)!r} and {str(folder)!r} differ in their {title} ({name}: "
                f"{_short(one)} and {_short(other)}); average trainings of one encoder, taxonomy and window"
            )
            raise WeightsError(message)


def _short(value: object) -> str:
    return f"{len(value)} keys" if isinstance(value, tuple) else str(value)[:12]


def _trained(folder: Path, manifest: Manifest) -> dict[str, Tensor]:
    tensors = read_tensors(folder, manifest)
    try:
        return uncalibrated(tensors, manifest.calibration)
    except WeightsError as error:
        message = f"the weights in {str(folder)!r} cannot be averaged: {error}"
        raise WeightsError(message) from error
    except KeyError as error:
        message = f"the weights in {str(folder)!r} lack tensor {error}; restore them or train again"
        raise WeightsError(message) from error


def _require_one_form(folders: Sequence[Path], trainings: Sequence[dict[str, Tensor]]) -> None:
    forms = {is_low_rank(tensors): folder for folder, tensors in zip(folders, trainings, strict=True)}
    if len(forms) > 1:
        message = (
            f"{str(forms[True])!r} holds low-rank adapters and {str(forms[False])!r} whole layers (rank 0); "
            "average trainings of one form"
        )
        raise WeightsError(message)


def _of_rank(tensors: dict[str, Tensor], rank: int, encoder: Encoder, scale: float) -> dict[str, Tensor]:
    if is_low_rank(tensors):
        return reduced(tensors, rank)
    untrained = {f"encoder.{name}": tensor for name, tensor in encoder.network().named_parameters()}
    return factored(tensors, untrained, rank, scale=scale)


def _record(manifest: Manifest) -> dict[str, Any]:
    recipe = manifest.training.get("recipe")
    return {
        "weights_sha256": manifest.tensors_sha256,
        **manifest.view,
        "recipe": None if recipe is None else {name: recipe.get(name) for name in ("sha256", "name")},
        # What was met is said once, of all.
        "training": {name: value for name, value in manifest.training.items() if name != "met_prompts"},
    }
