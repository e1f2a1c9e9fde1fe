"""Settle clear answers at a first look through a short window, and read the rest in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from demur.data.rendering import MAX_TOKENS, MIN_TOKENS
from demur.documents import CLOSED
from demur.model.runtime import Probabilities, judged, unchecked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from demur.model.runtime import AnyEngine
    from demur.verdict import Thresholds

__all__ = ["FIRST_WINDOWS", "FirstLook", "fit_first_look", "judged_in_looks"]

FIRST_WINDOWS = (96, 128, 160, 192)
"""Windows, in tokens, that a first look is fitted for.

In 64, too little of a request and the end of its reply is left: fitted so, weights changed 3 of 1,723 verdicts on
development rows, of which two were refusals with a probability above .5.
"""

# A text gets a first look from this many of its windows on: a look in vain then costs half a reading at most. On twelve
# data sets, 96 tokens below 0.05 read 0.54 to 1.09 of the tokens and changed 10 of 5,376 verdicts where every longer
# text got a look; with this factor, 0.56 to 1.02 and 3.
_WORTH = 2
# No verdict under any policy rests on a lower probability than this one by a policy's own threshold: `broad` halves it.
_MAY_COUNT = 0.25
# What the fit leaves between the least probable refusal that it saw and what it settles.
_MARGIN = 0.75
# With fewer longer refusals to fit by, the least probable of them says too little.
_FEWEST = 20
_MOST = 0.1


@dataclass(frozen=True, slots=True, config=CLOSED)
class FirstLook:
    """Say which texts are settled at a first look.

    Texts of at least twice the window get one. Only answers are settled: a text that may refuse is read in full, so
    that its extent and kind always are.

    Attributes:
        tokens: Window of the first look, smaller than that of the second.
        below: P(refuses) at the first look below which a text is taken for an answer.
    """

    tokens: Annotated[int, Field(ge=MIN_TOKENS, lt=MAX_TOKENS, strict=True)]
    below: Annotated[float, Field(gt=0, lt=1)]

    @staticmethod
    def serves(thresholds: Thresholds) -> bool:
        """Tell whether a look that settles answers settles nothing that counts as a refusal at these thresholds."""
        return thresholds.refusal >= _MAY_COUNT

    def is_worth(self, n_tokens: int) -> bool:
        """Tell whether a text of so many tokens gets a first look."""
        return n_tokens >= _WORTH * self.tokens


def judged_in_looks(
    tokens: Sequence[Sequence[int]], shortened: Mapping[int, Sequence[int]], engine: AnyEngine, first: FirstLook
) -> Probabilities:
    """Judge texts, some of them at a first look where that settles them; in input order.

    Args:
        tokens: Ids of each text, special tokens included.
        shortened: Ids of the texts that get a first look, rendered into the first window, by their places.
        engine: Runs both looks.
        first: Which texts are settled.
    """
    refusal, partial = np.empty(len(tokens)), np.empty(len(tokens))
    kinds = np.empty((len(tokens), engine.n_categories))
    # What is in doubt there is read in full, so once is enough.
    looked = judged(list(shortened.values()), unchecked(engine))
    is_settled = looked.refusal < first.below
    settled = np.array(list(shortened), dtype=np.intp)[is_settled]
    refusal[settled], partial[settled] = looked.refusal[is_settled], looked.partial[is_settled]
    kinds[settled] = looked.kinds[is_settled]
    rest = np.setdiff1d(np.arange(len(tokens)), settled)
    read = judged([tokens[place] for place in rest], engine)
    refusal[rest], partial[rest], kinds[rest] = read.refusal, read.partial, read.kinds
    return Probabilities(refusal, partial, kinds)


def fit_first_look(
    lengths: NDArray[np.intp],
    refusal: NDArray[np.float64],
    looks: Mapping[int, NDArray[np.float64]],
) -> FirstLook | None:
    """Choose the window and threshold that save most tokens without settling any reply that may count as a refusal.

    Args:
        lengths: Tokens of each text in the full window, (n,).
        refusal: P(refuses) of each in the full window, (n,).
        looks: The same at a first look, (n,), by the window of that look.

    Returns:
        The first look that reads the fewest tokens of those texts that do not refuse, of which data mostly consist;
        None where none reads fewer than a single look does, or where too few longer texts refuse to fit by.
    """
    may_count = refusal >= _MAY_COUNT
    answers = ~may_count
    best, least = None, float(lengths[answers].sum())
    for window, first in looks.items():
        longer = lengths >= _WORTH * window
        if (longer & may_count).sum() < _FEWEST:
            continue
        below = round(min(_MOST, _MARGIN * float(first[longer & may_count].min())), 6)
        if below <= 0:
            continue
        is_settled = longer & (first < below)
        read = window * float((longer & answers).sum()) + float(lengths[answers & ~is_settled].sum())
        if read < least:
            best, least = FirstLook(window, below), read
    return best
