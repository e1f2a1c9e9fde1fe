"""Fit probabilities to what happened on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FEWEST_ROWS", "fit_further", "fit_platt", "fit_temperature", "fit_threshold"]

FEWEST_ROWS = 30
"""Rows below which nothing is fitted: it would say more of the rows than of the model."""

# Positive rows below which a threshold would follow single rows.
_MIN_POSITIVES = 10


def fit_platt(log_odds: NDArray[np.float64], is_positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Fit slope a and intercept b of P = σ(a z + b) by maximum likelihood (Platt 1999).

    The targets are smoothed as Platt does, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), so that separable rows keep a finite
    slope.

    Args:
        log_odds: Uncalibrated z. *Shape:* `(n,)`.
        is_positive: What was true. *Shape:* `(n,)`.

    Returns:
        The slope, kept positive so that no ranking changes, and the intercept; (1, 0) where one class or too few rows
        are met.
    """
    n_positive = int(is_positive.sum())
    n_negative = len(is_positive) - n_positive
    if min(n_positive, n_negative) == 0 or len(is_positive) < FEWEST_ROWS:
        return 1.0, 0.0
    target = np.where(is_positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def loss(parameters: NDArray[np.float64]) -> float:
        z = np.exp(parameters[0]) * log_odds + parameters[1]
        return float(np.mean(np.logaddexp(0, z) - target * z))

    log_slope, intercept = minimize(loss, x0=np.zeros(2), method="Nelder-Mead").x
    return float(np.exp(log_slope)), float(intercept)


def fit_temperature(logits: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Fit T of softmax(z / T) by maximum likelihood (Guo et al. 2017), between 0.2 and 5.

    The targets are smoothed as Platt (1999) does: (n + 1) / (n + 2) for the true class, the rest in equal parts for the
    others. So rows that the logits part without an error, which would be sharpened for ever, keep a temperature; n
    counts the rows of all classes, which share it.

    Args:
        logits: Uncalibrated z. *Shape:* `(n, n_classes)`.
        truth: Index of the true class. *Shape:* `(n,)`.

    Returns:
        The temperature; 1 where one class or too few rows are met.
    """
    n, n_classes = logits.shape
    if n < FEWEST_ROWS or len(np.unique(truth)) == 1:
        return 1.0
    target = np.full((n, n_classes), 1 / (n + 2) / (n_classes - 1))
    target[np.arange(n), truth] = (n + 1) / (n + 2)

    def loss(log_temperature: float) -> float:
        scores = log_softmax(logits / np.exp(log_temperature), axis=1)
        return float(-(target * scores).sum(axis=1).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(np.log(0.2), np.log(5.0)), method="bounded").x))


def fit_further(probabilities: NDArray[np.float64], is_named: NDArray[np.bool_], *, default: float) -> float:
    """Fit the probability from which a kind beside the most probable one is named too: the best F1 on a grid.

    Args:
        probabilities: P(kind | refusal). *Shape:* `(n, n_categories)`.
        is_named: Whether an annotator named the kind. *Shape:* `(n, n_categories)`.
        default: What to return where too few rows name a second kind.
    """
    is_further = np.ones_like(is_named)
    if len(probabilities):
        is_further[np.arange(len(probabilities)), probabilities.argmax(axis=1)] = False
    return fit_threshold(probabilities[is_further], is_named[is_further], default=default)


def fit_threshold(probabilities: NDArray[np.float64], is_positive: NDArray[np.bool_], *, default: float) -> float:
    """Fit the probability from which a row is called positive: the best F1 on a grid of hundredths up to one half.

    Args:
        probabilities: *Shape:* `(n,)`.
        is_positive: What was true. *Shape:* `(n,)`.
        default: What to return where too few rows are positive.
    """
    if is_positive.sum() < _MIN_POSITIVES:
        return default
    grid = np.arange(0.05, 0.505, 0.01)
    hits = np.array([(is_positive & (probabilities >= threshold)).sum() for threshold in grid])
    called = np.array([(probabilities >= threshold).sum() for threshold in grid])
    return round(float(grid[np.argmax(2 * hits / (called + is_positive.sum()))]), 2)
