"""Keep what weights were trained on apart from what they, or those that come of them, are measured by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demur.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from demur.model.weights import Manifest
    from demur.studies.recipe import Recipe

__all__ = ["met_prompts", "not_avoided", "require_held_out"]


def met_prompts(manifests: Iterable[Manifest]) -> frozenset[str]:
    """Return digests of the prompts that one of the trainings met although their seed would hold them out."""
    return frozenset[str]().union(*(manifest.met_prompts or () for manifest in manifests))


def not_avoided(manifest: Manifest, files: Mapping[str, str]) -> list[str]:
    """Return the names of those files whose prompts a training did not avoid, as far as its manifest says.

    Args:
        manifest: Of the weights.
        files: Digests of the files by their names.
    """
    avoided = _avoided(manifest.training)
    return [name for name, digest in files.items() if digest not in avoided]


def _avoided(training: Mapping[str, Any]) -> frozenset[str]:
    """Return digests of the files that a training avoided; of a mean, those that all of its trainings did."""
    if averaged := training.get("averaged"):
        first, *others = (_avoided(each["training"]) for each in averaged)
        return first.intersection(*others)
    return frozenset(training.get("avoided_files", {}).values())


def require_held_out(folder: Path, manifest: Manifest, recipe: Recipe) -> None:
    """Refuse weights that may have been trained on prompts which a recipe holds out.

    Raises:
        WeightsError: They held out others, or do not say which prompts they met all the same.
    """
    if manifest.held_out_seed != recipe.parting_seed:
        held_out = "no known seed" if manifest.held_out_seed is None else f"seed {manifest.held_out_seed}"
        message = (
            f"the training of {str(folder)!r} held out prompts by {held_out}, and recipe {recipe.name!r} does by seed "
            f"{recipe.parting_seed}: it was trained on rows that are to calibrate and measure what comes of it; give "
            "trainings and a recipe of one seed"
        )
        raise WeightsError(message)
    if manifest.met_prompts is None:
        message = (
            f"the weights in {str(folder)!r} are of before trainings recorded which prompts they met: nothing says "
            "which rows may calibrate and measure what comes of them; train again"
        )
        raise WeightsError(message)
