"""Fit on held-out rows what turns logits into probabilities and decisions, and measure gate and kinds on others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

from demur.data.rendering import MAX_TOKENS, windowed
from demur.model.calibration import fit_further, fit_platt, fit_temperature, fit_threshold
from demur.model.first_look import fit_first_look
from demur.model.runtime import TorchEngine, infer, judged
from demur.model.training import held_out_logits
from demur.verdict import Thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from demur.model.first_look import FirstLook
    from demur.model.network import RefusalNetwork
    from demur.model.targets import Example

__all__ = ["calibrate", "first_look", "held_out_kinds", "held_out_probabilities", "thresholds"]

_GATE_DIGITS = 4
_KIND_DIGITS = 6


def calibrate(network: RefusalNetwork, tuning: Sequence[Example], *, tokenizer: Tokenizer) -> dict[str, Any]:
    """Fit the calibration on the tuning rows and fold it into the network."""
    gate, partial, kinds = held_out_logits(network, tuning, tokenizer=tokenizer)
    is_refusal = np.array([row.is_refusal for row in tuning], dtype=bool)
    is_partial = np.array([row.partial for row in tuning])
    of_kind = [i for i, row in enumerate(tuning) if row.kinds is not None]
    truth = np.array([np.argmax(tuning[i].kinds or ()) for i in of_kind], dtype=np.int64)
    known = ~np.isnan(is_partial)
    # No intercept: it would fit the share of refusals among these rows, which is not that of the user's.
    two_sided = np.stack([np.zeros_like(gate), gate], axis=1)
    fitted: dict[str, Any] = {
        "gate": fit_temperature(two_sided, is_refusal.astype(np.int64)),
        "partial": fit_platt(partial[known], is_partial[known] > 0.5),  # noqa: PLR2004  # one half parts the sides
        "kinds": fit_temperature(kinds[of_kind], truth),
    }
    network.fold_calibration(**fitted)
    return {**fitted, "n_rows": len(tuning), "n_rows_with_kind": len(of_kind)}


def thresholds(network: RefusalNetwork, tuning: Sequence[Example], *, tokenizer: Tokenizer) -> Thresholds:
    """Fit on the tuning rows where *partial* and further kinds begin."""
    _, partial, kinds = held_out_logits(network, tuning, tokenizer=tokenizer)
    is_partial = np.array([row.partial for row in tuning])
    known = ~np.isnan(is_partial)
    defaults = Thresholds()
    of_kind = [i for i, row in enumerate(tuning) if row.kinds is not None]
    targets = np.array([tuning[i].kinds for i in of_kind]).reshape(len(of_kind), kinds.shape[1])
    return Thresholds(
        partial=fit_threshold(expit(partial[known]), is_partial[known] > 0.5, default=defaults.partial),  # noqa: PLR2004
        further=fit_further(softmax(kinds[of_kind], axis=1), targets > 0, default=defaults.further),
    )


def first_look(
    network: RefusalNetwork,
    tuning: Sequence[Example],
    shortened: Mapping[int, Sequence[str]],
    *,
    tokenizer: Tokenizer,
) -> FirstLook | None:
    """Fit on the tuning rows, `shortened` to each window, which texts a first look settles; None where none pays."""
    engine = TorchEngine(network)
    tokens = windowed([row.text for row in tuning], tokenizer=tokenizer, max_tokens=MAX_TOKENS)
    looks = {
        window: infer(texts, tokenizer=tokenizer, engine=engine, max_tokens=window).refusal
        for window, texts in shortened.items()
    }
    return fit_first_look(np.array([len(ids) for ids in tokens]), judged(tokens, engine).refusal, looks)


def held_out_probabilities(
    log_odds: NDArray[np.float64], rows: Sequence[Example], prompts: Sequence[str]
) -> tuple[dict[str, list[float]], dict[str, list[int]]]:
    """Return the gate's probabilities of the measuring rows, by true side and rising, and which prompt each answers.

    Args:
        log_odds: Calibrated, of a refusal, (rows,).
        rows: The measuring rows.
        prompts: What tells their prompts apart, (rows,).
    """
    places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
    found: dict[str, list[tuple[float, int]]] = {"refusal": [], "compliance": []}
    for row, prompt, probability in zip(rows, prompts, expit(log_odds), strict=True):
        side = "refusal" if row.is_refusal else "compliance"
        found[side].append((_rounded_down(probability, _GATE_DIGITS), places[prompt]))
    ordered = {side: sorted(values) for side, values in found.items()}
    return (
        {side: [probability for probability, _ in values] for side, values in ordered.items()},
        {side: [place for _, place in values] for side, values in ordered.items()},
    )


def held_out_kinds(logits: NDArray[np.float64], rows: Sequence[Example]) -> list[float]:
    """Return P(true main kind | refuses) of the measuring rows whose main kind is known, rising.

    A row that its readers name after two kinds equally often has no main kind that is known.

    Args:
        logits: Calibrated, of the kinds, (rows, kinds).
        rows: The measuring rows.
    """
    known = [
        (place, int(np.argmax(row.kinds)))
        for place, row in enumerate(rows)
        if row.kinds is not None and _has_one_main_kind(row.kinds)
    ]
    probabilities = softmax(logits, axis=1)
    return sorted(_rounded_down(probabilities[place], _KIND_DIGITS) for place in known)


def _rounded_down(probability: float, n_digits: int) -> float:
    """Round so that what lies below a threshold stays below it, and a set of kinds keeps the score that set it."""
    scale = 10.0**n_digits
    return math.floor(float(probability) * scale) / scale


def _has_one_main_kind(target: Sequence[float]) -> bool:
    return sum(math.isclose(share, max(target)) for share in target) == 1
