"""Keep a training run on disk, and tell whether a run may go on from what is kept."""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from demur.errors import OutputError, TrainingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import nn

    from demur.model.settings import TrainingSettings
    from demur.model.targets import Example
    from demur.taxonomy import Taxonomy

__all__ = ["read_checkpoint", "run_identity", "write_checkpoint"]


def run_identity(
    network: nn.Module,
    training: Sequence[Example],
    held_out: Sequence[Example],
    settings: TrainingSettings,
    *,
    taxonomy: Taxonomy,
    started_from: str | None = None,
) -> dict[str, Any]:
    """Return what two runs have in common exactly where one can go on from the other's checkpoint.

    Args:
        network: As it is before the first step.
        training: What it is fitted to.
        held_out: What chooses the epoch.
        settings: How it is fitted.
        taxonomy: Orders and groups the kinds.
        started_from: Digest of the weights that it began with; None for fresh ones.
    """
    digest = hashlib.sha256()
    for example in (*training, *held_out):
        digest.update(repr(example).encode())
    for name, parameter in network.named_parameters():
        digest.update(f"{name} {tuple(parameter.shape)}".encode())
        if not parameter.requires_grad:
            digest.update(parameter.detach().cpu().numpy().tobytes())
    identity = {"settings": asdict(settings), "n_held_out": len(held_out), "taxonomy": taxonomy.fingerprint}
    started = {} if started_from is None else {"started_from": started_from}
    return {**identity, **started, "rows_and_encoder_sha256": digest.hexdigest()}


def write_checkpoint(path: Path, identity: dict[str, Any], content: dict[str, Any]) -> None:
    """Write a checkpoint; whole or not at all.

    Raises:
        OutputError: It cannot be written; the one before it is as it was.
    """
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({**content, "identity": identity}, part)
        part.replace(path)
    except (OSError, RuntimeError) as error:
        # torch's writer has errors of its own for a folder that is not there and a disk that is full.
        message = (
            f"the checkpoint {path} cannot be written ({error}); make room there, or see to its folder, and give the "
            "same command again"
        )
        raise OutputError(message) from error
    finally:
        # Half a file is in nobody's way but that of who has to make room.
        with suppress(OSError):
            part.unlink(missing_ok=True)


def read_checkpoint(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    """Read a checkpoint of the run with this identity.

    Raises:
        TrainingError: The file is damaged, or of another run.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (EOFError, KeyError, OSError, RuntimeError, pickle.UnpicklingError) as error:
        message = f"{path} is damaged ({type(error).__name__}); remove it to train from the beginning"
        raise TrainingError(message) from error
    if not isinstance(content, dict) or content.get("identity") != identity:
        message = (
            f"{path} is the checkpoint of another run: settings, rows, teachers, taxonomy, encoder or beginning "
            "differ; remove it"
        )
        raise TrainingError(message)
    return content
