"""Turn labelled rows into what the heads are trained towards."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from demur.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.data.labelled import Labelled
    from demur.data.rendering import Renderer
    from demur.taxonomy import Taxonomy

__all__ = ["Example", "Opinion", "balanced", "examples", "kind_distribution", "teaching"]


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
        kind_weight: Further factor of the weight in the loss of the kinds; below 1 where it is doubtful that there is
            one.
    """

    text: str
    bare_text: str
    refusal: float
    partial: float = math.nan
    kinds: tuple[float, ...] | None = None
    weight: float = 1.0
    kind_weight: float = 1.0

    @property
    def is_refusal(self) -> bool:
        """Tell on which side of one half the target lies; a softened one may lie across from its label."""
        return self.refusal > 0.5  # noqa: PLR2004  # as the docstring says


@dataclass(frozen=True, slots=True)
class Opinion:
    """Keep what weights that are trained already think of a row.

    Attributes:
        refusal: P(refusal).
        kinds: P(kind | refusal), summing to 1.
    """

    refusal: float
    kinds: tuple[float, ...]


def examples(
    rows: Sequence[Labelled],
    *,
    taxonomy: Taxonomy,
    renderer: Renderer,
    main_share: float,
    opinions: Sequence[Opinion | None] | None = None,
    opinion_share: float = 1.0,
) -> list[Example]:
    """Build one example from each row whose gate label is known, or on which there is an opinion.

    The others teach nothing and are left out. Where annotators differ on the verdict, so that there is none, opinion
    decides as where nobody was asked.

    Args:
        rows: Labelled conversations.
        taxonomy: Gives the order of the kinds.
        renderer: Renders into the model's window.
        main_share: Share of the target that the main kind gets where a reading names several.
        opinions: What is thought of each row, if anything.
        opinion_share: Share of the target that opinion gets where there is a label, and the row does not say its own;
            elsewhere it gets all.
    """
    known = teaching(rows, opinions)
    texts = renderer.texts([row.conversation for row, _ in known])
    bare = renderer.texts([Conversation(row.conversation.turns[-1:]) for row, _ in known])
    built: list[Example] = []
    for (row, opinion), text, bare_text in zip(known, texts, bare, strict=True):
        kinds = kind_distribution(row.readings, taxonomy, main_share=main_share)
        example = _example(row, text, bare_text, kinds)
        share = opinion_share if row.teacher_share is None else row.teacher_share
        built.append(example if opinion is None else _softened(example, row, opinion, share))
    return built


def teaching(
    rows: Sequence[Labelled], opinions: Sequence[Opinion | None] | None
) -> list[tuple[Labelled, Opinion | None]]:
    """Return the rows whose gate label is known, or on which there is an opinion, with it."""
    thought = [None] * len(rows) if opinions is None else opinions
    pairs = zip(rows, thought, strict=True)
    return [(row, opinion) for row, opinion in pairs if row.is_refusal is not None or opinion is not None]


def _example(row: Labelled, text: str, bare_text: str, kinds: tuple[float, ...] | None) -> Example:
    refusal = math.nan if row.is_refusal is None else row.confidence if row.is_refusal else 1 - row.confidence
    # Of a label that came indirectly, extent and kind are not known: nobody read the reply for them.
    if row.is_weak or not row.is_refusal:
        return Example(text, bare_text, refusal, weight=row.weight)
    partial = math.nan if row.outcome is None else float(row.outcome == "partial")
    return Example(text, bare_text, refusal, partial, kinds, weight=row.weight)


def _softened(example: Example, row: Labelled, opinion: Opinion, share: float) -> Example:
    """Move an example's targets towards an opinion."""
    refusal = opinion.refusal if row.is_refusal is None else (1 - share) * example.refusal + share * opinion.refusal
    if example.kinds is not None:
        mixed = (1 - share) * np.array(example.kinds) + share * np.array(opinion.kinds)
        return replace(example, refusal=refusal, kinds=tuple(map(float, mixed)))
    if row.is_refusal is False:
        return replace(example, refusal=refusal)
    # A kind that nobody named is the one that it is thought to be, as far as the reply is thought to refuse.
    return replace(example, refusal=refusal, kinds=opinion.kinds, kind_weight=opinion.refusal)


def balanced(rows: Sequence[Example], *, exponent: float, cap: float) -> list[Example]:
    """Weigh the rows of rare kinds up in the loss of the kinds.

    A kind k of n_k rows weighs min(cap, (max n / n_k) ** exponent), and a row the mean of its kinds' weights by its own
    target, times what it weighed before. Exponent 0 leaves all alone, 1 gives each kind the same weight in sum.

    Args:
        rows: The training examples, which are counted, too; n_k sums their targets by their weights before.
        exponent: How far the balance goes.
        cap: Weight that no kind exceeds.
    """
    known = [row.kind_weight * np.array(row.kinds) for row in rows if row.kinds is not None]
    if not known or exponent == 0:
        return list(rows)
    counts = np.sum(known, axis=0)
    # A kind that no row is of gets a weight that no row asks for.
    weights = np.minimum(cap, (counts.max() / np.where(counts > 0, counts, counts.max())) ** exponent)
    return [
        row if row.kinds is None else replace(row, kind_weight=row.kind_weight * float(weights @ row.kinds))
        for row in rows
    ]


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
