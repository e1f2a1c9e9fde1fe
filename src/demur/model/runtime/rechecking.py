"""Say which texts a quick engine may have decided otherwise than fp32 does, and what reads them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logit

from demur.model.runtime.answers import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from demur.model.runtime.answers import Probabilities
    from demur.verdict import Thresholds

__all__ = ["AnyEngine", "EnginePair", "unchecked"]


class EnginePair:
    """Pair a quick engine with a careful one, which reads again what lies near a threshold, or between two kinds.

    It runs no batch itself: `judged` gathers what is in doubt, for one text at a time takes twice as long.
    """

    def __init__(
        self,
        quick: Engine,
        open_careful: Callable[[], Engine],
        *,
        thresholds: Thresholds,
        margin: float,
        others: Sequence[float] = (),
    ) -> None:
        """Take the quick engine, and what opens the careful one: it takes a second, and is seldom needed in short runs.

        Args:
            quick: Runs all texts.
            open_careful: Opens what runs those in doubt; called when there is the first of them.
            thresholds: What is decided by; below that of a refusal, neither extent nor kind is ever in doubt.
            margin: How near to a line, in log-odds, a text is in doubt.
            others: Further P(refuses) from which on a reply refuses, under policies that are not in use.
        """
        self.quick = quick
        self._open_careful = open_careful
        self._careful: Engine | None = None
        self._margin = margin
        self._refusal, self._partial = logit(thresholds.refusal), logit(thresholds.partial)
        self._gates = logit(np.array([thresholds.refusal, *others]))

    @property
    def name(self) -> str:
        """Return the quick engine's name."""
        return self.quick.name

    @property
    def n_categories(self) -> int:
        """Return the width of the category head."""
        return self.quick.n_categories

    @property
    def careful(self) -> Engine:
        """Return the careful engine, opened where it was not yet."""
        # No lock, which could not be sent to other machines: of two threads at once each opens one, and one stays.
        if self._careful is None:
            self._careful = self._open_careful()
        return self._careful

    def doubtful(self, found: Probabilities) -> NDArray[np.intp]:
        """Return the places of the texts that the careful engine may decide otherwise than the quick one found."""
        # A gate that saturates is not in doubt, at a threshold of 0 or 1 neither, where inf - inf is no number.
        log_odds = logit(found.refusal)
        with np.errstate(invalid="ignore"):
            is_near = (np.abs(log_odds[:, None] - self._gates) < self._margin).any(axis=1)
            is_undecided = np.abs(logit(found.partial) - self._partial) < self._margin
        if self.n_categories > 1:
            second, first = np.partition(found.kinds, -2, axis=1)[:, -2:].T
            is_undecided |= first < np.exp(self._margin) * second
        refuses_or_nearly = log_odds >= self._refusal - self._margin
        return np.flatnonzero(is_near | (refuses_or_nearly & is_undecided))


AnyEngine = Engine | EnginePair
"""What texts are judged by: an engine, or a pair of them."""


def unchecked(engine: AnyEngine) -> Engine:
    """Return the engine that reads first, alone."""
    return engine.quick if isinstance(engine, EnginePair) else engine
