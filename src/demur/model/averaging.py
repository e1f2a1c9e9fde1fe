"""Average what several trainings of one encoder changed, tensor by tensor (model soups, Wortsman et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from demur.errors import WeightsError
from demur.model.network import GATE_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

__all__ = ["averaged", "factored", "is_low_rank", "reduced", "uncalibrated"]

_FITTED = ("gate", "partial", "kinds")


def is_low_rank(tensors: Mapping[str, Tensor]) -> bool:
    """Say whether the encoder's tensors are low-rank factors, not whole layers."""
    return any(name.endswith((".up", ".down")) for name in tensors)


@torch.no_grad()
def uncalibrated(tensors: Mapping[str, Tensor], calibration: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return tensors as they were before calibration was folded into their heads.

    Averages are taken of what was trained: each training's heads are scaled by temperatures of its own.

    Args:
        tensors: Trained tensors, by name, with `RefusalNetwork.fold_calibration` applied.
        calibration: What was folded in, as the manifest has it. `gate` may also be slope and intercept of the gate's
            log-odds, as weights of before have it.

    Raises:
        WeightsError: The calibration is that of weights before, or incomplete, and cannot be undone.
    """
    if calibration.get("kept"):
        message = (
            "its calibration was kept from the weights that its training went on from, and cannot be undone; "
            "train with enough rows to calibrate by"
        )
        raise WeightsError(message)
    if absent := [name for name in _FITTED if name not in calibration]:
        message = f"its manifest does not say how {', '.join(absent)} was calibrated; restore it or train again"
        raise WeightsError(message)
    found = dict(tensors)
    gate, (slope, intercept) = calibration["gate"], calibration["partial"]
    if isinstance(gate, list | tuple):
        gate_slope, gate_intercept = gate
    else:
        gate_slope, gate_intercept = 1 / gate, 0.0
    refusal = torch.zeros(len(GATE_LABELS))
    refusal[GATE_LABELS.index("Refusal")] = gate_intercept
    shifts = {"gate.classifier": (gate_slope, refusal), "partial": (slope, torch.tensor(intercept))}
    for head, (factor, shift) in {**shifts, "kinds.classifier": (1 / calibration["kinds"], torch.tensor(0.0))}.items():
        found[f"{head}.weight"] = tensors[f"{head}.weight"] / factor
        found[f"{head}.bias"] = (tensors[f"{head}.bias"] - shift) / factor
    return found


@torch.no_grad()
def averaged(trainings: Sequence[Mapping[str, Tensor]], scales: Sequence[float]) -> dict[str, Tensor]:
    """Return the tensors of the mean network, to be merged with the first scale.

    Heads and whole layers are averaged plainly. The mean of the low-rank updates sᵢ · Bᵢ Aᵢ is s · B A with the Aᵢ
    below each other and the Bᵢ · sᵢ / (s · n) beside each other: exact, and of the sum of the ranks.

    Args:
        trainings: Trained tensors, by the same names, without calibration.
        scales: The factor sᵢ of each training's low-rank updates.

    Raises:
        WeightsError: Not all hold the same tensors.
    """
    first, n = trainings[0], len(trainings)
    for other in trainings[1:]:
        if odd := first.keys() ^ other.keys():
            message = f"tensor {min(odd)!r} is in some of the weights only; average trainings of the same layers"
            raise WeightsError(message)
    found: dict[str, Tensor] = {}
    for name in first:
        each = [tensors[name].float() for tensors in trainings]
        if name.endswith(".up"):
            factors = [scale / (scales[0] * n) for scale in scales]
            mean = torch.cat([up * factor for up, factor in zip(each, factors, strict=True)], dim=1)
        elif name.endswith(".down"):
            mean = torch.cat(each, dim=0)
        else:
            mean = torch.stack(each).mean(dim=0)
        found[name] = (mean.half() if name.startswith("encoder.") else mean).contiguous()
    return found


@torch.no_grad()
def reduced(tensors: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Return tensors whose low-rank updates are of a rank at most: the nearest ones of it (Eckart and Young 1936).

    B A is never made whole: with B = Q R and Aᵀ = Q' R', its singular values are those of R R'ᵀ.

    Args:
        tensors: Trained tensors, by name, of low rank; others stay as they are.
        rank: The rank, at least 1.
    """
    found = dict(tensors)
    for name in [name for name in tensors if name.endswith(".up")]:
        down = f"{name.removesuffix('.up')}.down"
        if tensors[down].shape[0] <= rank:
            continue
        left, of_left = torch.linalg.qr(tensors[name].float())
        right, of_right = torch.linalg.qr(tensors[down].float().T)
        first, second = _nearest(of_left @ of_right.T, rank)
        found[name] = (left @ first).to(tensors[name].dtype).contiguous()
        found[down] = (second @ right.T).to(tensors[down].dtype).contiguous()
    return found


@torch.no_grad()
def factored(
    tensors: Mapping[str, Tensor], untrained: Mapping[str, Tensor], rank: int, *, scale: float
) -> dict[str, Tensor]:
    """Return whole layers as low-rank updates s · B A of what they were: the nearest ones (Eckart and Young 1936).

    Biases and layer norms are left as they were, as training adapters leaves them.

    Args:
        tensors: Trained tensors, by name, of whole layers.
        untrained: The encoder's, under the same names.
        rank: The rank, at least 1.
        scale: The factor s.
    """
    found = {name: tensor for name, tensor in tensors.items() if not name.startswith("encoder.")}
    for name, tensor in tensors.items():
        layer, _, sort = name.rpartition(".")
        if sort != "weight" or not name.startswith("encoder.") or tensor.ndim == 1:
            continue
        up, down = _nearest((tensor.float() - untrained[name].float()) / scale, rank)
        found[f"{layer}.up"] = up.to(tensor.dtype).contiguous()
        found[f"{layer}.down"] = down.to(tensor.dtype).contiguous()
    return found


def _nearest(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return the factors of the nearest matrix of a rank, each with the roots of the singular values."""
    u, singular, v = torch.linalg.svd(matrix, full_matrices=False)
    root = singular[:rank].sqrt()
    return u[:, :rank] * root, root[:, None] * v[:rank]
