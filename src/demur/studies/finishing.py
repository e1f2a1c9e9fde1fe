"""Finish weights: calibrate what was trained on held-out rows, measure it on others, and save it with a manifest."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from demur.errors import OutputError, TrainingError, WeightsError
from demur.model.first_look import FIRST_WINDOWS
from demur.model.network import RefusalNetwork
from demur.model.training import held_out_logits
from demur.model.weights import Manifest, save_weights
from demur.studies.held_out import calibrate, first_look, held_out_kinds, held_out_probabilities, thresholds
from demur.studies.holding import held
from demur.studies.writing import made

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from demur.model.encoders import Encoder
    from demur.model.targets import Example
    from demur.studies.lesson import Lesson
    from demur.taxonomy import Taxonomy

__all__ = ["finished", "prepared"]


@contextmanager
def prepared(out: Path) -> Iterator[None]:
    """Make the folder that weights are to be written to, and hold it until the block ends.

    Raises:
        OutputError: It cannot be made or written to, or holds finished weights; or another process writes into it.
    """
    _prepare(out)
    with held(out, out / ".lock"):
        # Another process may have finished since.
        _prepare(out)
        yield


def _prepare(out: Path) -> None:
    if (out / "manifest.json").exists():
        message = f"{str(out)!r} holds finished weights; give another folder, or remove it first"
        raise OutputError(message)
    made(out)


def finished(  # noqa: PLR0913  # each is another part of what a manifest says
    tensors: dict[str, Tensor],
    out: Path,
    *,
    lesson: Lesson,
    tuning: Sequence[Example],
    measuring: Sequence[Example],
    taxonomy: Taxonomy,
    encoder: Encoder,
    low_rank_scale: float,
    training: Mapping[str, Any],
    kept: Manifest | None = None,
) -> Manifest:
    """Calibrate and measure what was trained, and write the weights folder.

    Args:
        tensors: What `RefusalNetwork.trained` gave, without calibration.
        out: The weights folder.
        lesson: Whose held-out rows these are.
        tuning: The examples that calibrate and set thresholds.
        measuring: The examples that measure.
        taxonomy: Gives the head its kinds.
        encoder: What was trained on.
        low_rank_scale: Factor s of the low-rank updates.
        training: What the manifest records of how the weights were made.
        kept: Manifest whose calibration and thresholds are still those of the tensors; fitted anew where None.

    Raises:
        TrainingError: A tensor holds what is no number in the 16 bits that weights are kept in.
        WeightsError: The tensors do not fit the encoder.
        OutputError: The folder cannot be written to.
    """
    _require_finite(tensors)
    tokenizer, max_tokens = encoder.tokenizer(), lesson.recipe.settings.reads
    merged = _merged(tensors, encoder, taxonomy, low_rank_scale)
    calibration = {"kept": True} if kept else calibrate(merged, tuning, tokenizer=tokenizer)
    windows = [window for window in FIRST_WINDOWS if window < max_tokens]
    shortened = {} if kept else {window: lesson.shortened(tokenizer, window) for window in windows}
    log_odds, _, kinds = held_out_logits(merged, measuring, tokenizer=tokenizer)
    held_out, prompts = held_out_probabilities(log_odds, measuring, lesson.measuring_prompts)
    manifest = Manifest(
        encoder=encoder.name,
        encoder_sha256=encoder.sha256,
        encoder_files_sha256=encoder.files_sha256,
        taxonomy_fingerprint=taxonomy.fingerprint,
        categories=taxonomy.keys,
        low_rank_scale=low_rank_scale,
        max_tokens=max_tokens,
        earlier_tokens=lesson.recipe.settings.earlier_tokens,
        thresholds=kept.thresholds if kept else asdict(thresholds(merged, tuning, tokenizer=tokenizer)),
        calibration=calibration,
        held_out=held_out,
        held_out_prompts=prompts,
        held_out_kinds=held_out_kinds(kinds, measuring),
        first_look=None if kept else first_look(merged, tuning, shortened, tokenizer=tokenizer),
        training=dict(training),
    )
    save_weights(out, {**tensors, **_heads(merged)}, manifest)
    return Manifest.load(out)


def _require_finite(tensors: Mapping[str, Tensor]) -> None:
    broken = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
    if broken:
        message = (
            f"training diverged: {broken[0]} and {len(broken) - 1} other tensors hold values that are no numbers in 16 "
            "bits; train again with a lower learning rate, into another folder"
        )
        raise TrainingError(message)


def _merged(tensors: dict[str, Tensor], encoder: Encoder, taxonomy: Taxonomy, scale: float) -> RefusalNetwork:
    """Build the network as it is kept, adapters in 16 bits and merged: that is what calibration must fit."""
    network = RefusalNetwork(encoder.network(), len(taxonomy))
    try:
        network.load_trained(tensors, scale=scale)
    except (KeyError, RuntimeError) as error:
        message = f"the trained tensors do not fit the encoder {encoder.name!r}: {error}; train again"
        raise WeightsError(message) from error
    return network.to("cuda" if torch.cuda.is_available() else "cpu")


def _heads(network: RefusalNetwork) -> dict[str, Tensor]:
    """Return the heads, into which calibration has been folded."""
    parameters = network.named_parameters()
    return {name: tensor.detach().cpu() for name, tensor in parameters if not name.startswith("encoder.")}
