"""Keep what weights were trained on apart from what they, or those that come of them, are measured by."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from demur.errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from demur.model.weights import Manifest
    from demur.studies.recipe import Recipe

__all__ = ["avoided_files", "met_prompts", "require_held_out", "warn_of_avoided"]

_LOG = logging.getLogger(__name__)


def met_prompts(manifests: Iterable[Manifest]) -> frozenset[str]:
    """Return digests of the prompts that one of the trainings met although their seed would hold them out."""
    return frozenset[str]().union(*(manifest.met_prompts or () for manifest in manifests))


def warn_of_avoided(manifests: Iterable[Manifest], files: Mapping[str, str]) -> None:
    """Warn of weights to learn from that did not avoid the prompts of files, as far as their manifests say.

    Args:
        manifests: Of the weights.
        files: Digests of the files by their names.
    """
    for manifest in manifests:
        avoided = avoided_files(manifest.training).values()
        if names := [name for name, digest in files.items() if digest not in avoided]:
            message = "weights %s… did not avoid the prompts of %s: what they met there may reach the new ones"
            _LOG.warning(message, manifest.tensors_sha256[:12], ", ".join(names))


def avoided_files(training: Mapping[str, Any]) -> dict[str, str]:
    """Return digests, by name, of the files whose prompts neither a training met, nor anything that it learnt from.

    Args:
        training: What a manifest records of it; of a mean, what it records of each of its trainings.
    """
    if averaged := training.get("averaged"):
        own, *others = (avoided_files(each["training"]) for each in averaged)
    else:
        own = training.get("avoided_files", {})
        learnt_from = [*training.get("teachers", ()), *filter(None, [training.get("from_weights")])]
        others = [each.get("avoided_files", {}) for each in learnt_from]
    return {name: digest for name, digest in own.items() if all(digest in other.values() for other in others)}


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
