"""Turn labelled rows into what the heads are trained towards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from demur.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.data.labelled import Labelled
    from demur.data.rendering import Renderer
    from demur.taxonomy import Taxonomy

__all__ = ["Example", "examples", "kind_distribution"]

# A label that came indirectly is a little wrong: its target is softened, and it weighs less beside one that was read.
_WEAK_CONFIDENCE = 0.95
_WEAK_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Example:
    """Keep one training text with its targets; nan or None where a target is not known.

    Attributes:
        text: The rendered conversation.
        bare_text: The rendered reply alone, which stands in for the conversation now and then.
        refusal: Target of the gate, from 0 to 1.
        partial: Target of *partial* given refusal, from 0 to 1.
        kinds: Target distribution over the kinds, summing to 1.
        weight: Weight in the loss.
    """

    text: str
    bare_text: str
    refusal: float
    partial: float = math.nan
    kinds: tuple[float, ...] | None = None
    weight: float = 1.0


def examples(rows: Sequence[Labelled], *, taxonomy: Taxonomy, renderer: Renderer, main_share: float) -> list[Example]:
    """Build one example from each row whose gate label is known; the others teach nothing and are left out.

    Args:
        rows: Labelled conversations.
        taxonomy: Gives the order of the kinds.
        renderer: Renders into the model's window.
        main_share: Share of the target that the main kind gets where a reading names several.
    """
    known = [row for row in rows if row.is_refusal is not None]
    texts = renderer.texts([row.conversation for row in known])
    bare = renderer.texts([Conversation(row.conversation.turns[-1:]) for row in known])
    return [
        _example(row, text, bare_text, kind_distribution(row.readings, taxonomy, main_share=main_share))
        for row, text, bare_text in zip(known, texts, bare, strict=True)
    ]


def _example(row: Labelled, text: str, bare_text: str, kinds: tuple[float, ...] | None) -> Example:
    is_refusal = bool(row.is_refusal)
    if row.is_weak:
        refusal = _WEAK_CONFIDENCE if is_refusal else 1 - _WEAK_CONFIDENCE
        return Example(text, bare_text, refusal, weight=_WEAK_WEIGHT)
    if not is_refusal:
        return Example(text, bare_text, 0.0)
    partial = math.nan if row.outcome is None else float(row.outcome == "partial")
    return Example(text, bare_text, 1.0, partial, kinds)


def kind_distribution(
    readings: Sequence[Sequence[str]], taxonomy: Taxonomy, *, main_share: float
) -> tuple[float, ...] | None:
    """Average the readings of annotators into one distribution over the kinds; None where there is no reading.

    A reading with one kind puts all on it; one with several puts `main_share` on the first and shares the rest evenly.
    """
    if not readings:
        return None
    target = np.zeros(len(taxonomy))
    for main, *others in readings:
        target[taxonomy.index(main)] += main_share if others else 1.0
        for other in others:
            target[taxonomy.index(other)] += (1 - main_share) / len(others)
    return tuple(float(p) for p in target / len(readings))
