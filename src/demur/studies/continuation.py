"""Go on with a training from weights that there are: what stays held out, what may be forgotten, what is recorded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.errors import TrainingError
from demur.studies.lineage import avoided_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.model.beginning import Beginning
    from demur.model.targets import Example
    from demur.studies.lesson import Lesson
    from demur.taxonomy import Taxonomy

__all__ = ["begun", "parting", "require_calibrated", "warn_of_forgetting"]

# Of fewer clear prompts, less than some two dozen rows would calibrate, and as many measure: weights that were
# calibrated before are then better left as they are.
_ENOUGH_PROMPTS = 400

_LOG = logging.getLogger(__name__)


def parting(beginning: Beginning | None) -> dict[str, Any]:
    """Return how `Lesson.of` is to part the prompts: those held out before are not trained on, nor the reverse.

    Raises:
        TrainingError: The beginning does not say which prompts it held out, or which of them it met all the same: what
            is held out now might be what it was trained on.
    """
    if beginning is None:
        return {}
    met = beginning.manifest.met_prompts
    if beginning.seed is None or met is None:
        unsaid = "by which seed they held out prompts" if beginning.seed is None else "which prompts they met"
        message = (
            f"the manifest of the weights to begin with does not say {unsaid}: nothing tells which rows may calibrate "
            "and measure what comes of them; begin with weights whose manifest says so, or train from the beginning"
        )
        raise TrainingError(message)
    return {"held_out_seed": beginning.seed, "enough": _ENOUGH_PROMPTS, "met": met}


def require_calibrated(beginning: Beginning, lesson: Lesson) -> None:
    """Refuse to keep a calibration that was fitted to other readings of the texts than the weights will give.

    Raises:
        TrainingError: There are too few prompts to calibrate anew, and the weights would read more or less of a text.
    """
    settings, view = lesson.recipe.settings, beginning.manifest.view
    before = {"window": view["max_tokens"], "earlier_tokens": view["earlier_tokens"]}
    after = {"window": settings.reads, "earlier_tokens": settings.earlier_tokens}
    for name, calibrated in before.items() if lesson.parts.is_thin else ():
        if after[name] != calibrated:
            message = (
                f"the weights to begin with are calibrated for {name} {_written(calibrated)}, and the settings have "
                f"{_written(after[name])}; there are too few prompts to calibrate anew (fewer than {_ENOUGH_PROMPTS}): "
                f"set settings.{name} to {_written(calibrated)}"
            )
            raise TrainingError(message)


def _written(value: int | None) -> str:
    """Write a setting as a recipe does."""
    return "null" if value is None else str(value)


def warn_of_forgetting(beginning: Beginning, training: Sequence[Example], taxonomy: Taxonomy) -> None:
    """Warn of kinds that the beginning knows, and no training row is of."""
    taught = np.sum([row.kinds or (0.0,) * len(taxonomy) for row in training], axis=0)
    added = beginning.added(taxonomy)
    idle = [key for key, mass in zip(taxonomy.keys, taught, strict=True) if mass == 0 and key not in added]
    if idle:
        message = "no training row refuses for %s: the weights may forget these kinds; give rows of them, too"
        _LOG.warning(message, ", ".join(idle))


def begun(beginning: Beginning | None, lesson: Lesson, taxonomy: Taxonomy) -> dict[str, Any]:
    """Return what the manifest records of the beginning; nothing where there is none."""
    if beginning is None:
        return {}
    before = beginning.manifest
    return {
        "from_weights": {
            "tensors_sha256": before.tensors_sha256,
            "taxonomy_fingerprint": before.taxonomy_fingerprint,
            **before.view,
            "kinds_added": list(beginning.added(taxonomy)),
            "kinds_left_out": list(beginning.left_out(taxonomy)),
            "is_calibration_kept": lesson.parts.is_thin,
            "files": before.training.get("files", {}),
            "avoided_files": avoided_files(before.training),
            "from_weights": before.training.get("from_weights"),
        },
        "held_out_seed": beginning.seed,
    }
