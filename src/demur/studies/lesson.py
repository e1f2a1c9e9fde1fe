"""Part what a recipe brings together, and turn it into what the network is fitted to and measured by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from demur.data.rendering import Renderer
from demur.model.targets import Example, Opinion, balanced, examples, teaching
from demur.studies.mixture import Mixture, harder, mix
from demur.studies.partition import Partition, partition, prompt_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from demur.conversation import Conversation
    from demur.data.labelled import Labelled
    from demur.studies.recipe import Recipe
    from demur.taxonomy import Taxonomy

__all__ = ["Lesson"]


@dataclass(frozen=True, slots=True)
class Lesson:
    """Keep a recipe, its files, and its rows on their sides.

    Attributes:
        recipe: What says so.
        mixture: What its files hold.
        parts: The rows on their sides, as the network is shown them; those of weight 0 are on the held-out ones alone.
        measuring_prompts: What tells the prompts of the examples that measure apart, in their order; by the whole
            conversations, of which a view may leave the reply alone.
        opinions: What teachers think of each training row, where there are teachers; the other sides are never told.
    """

    recipe: Recipe
    mixture: Mixture
    parts: Partition
    measuring_prompts: tuple[str, ...]
    opinions: Sequence[Opinion | None] | None = None

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        taxonomy: Taxonomy,
        *,
        folders: Sequence[Path] = (),
        view: Callable[[Conversation], Conversation] = lambda conversation: conversation,
        held_out_seed: int | None = None,
        enough: int = 0,
        met: Collection[str] = (),
    ) -> Self:
        """Read a recipe's rows and part them by their prompts.

        Args:
            recipe: What to read.
            taxonomy: Names the kinds.
            folders: Where its files are looked up, first to last; with none, paths are taken as they stand.
            view: What the network is shown of a conversation; the prompts are parted by the whole.
            held_out_seed: Draws the prompts that are held out, where not the recipe's own seed does.
            enough: Clear prompts below which synthetic rows help to tune; see `partition`.
            met: What earlier trainings met of the prompts to hold out; see `partition`.

        Raises:
            SourceError: A file is missing or cannot be read.
        """
        mixture = mix(recipe, taxonomy, folders=folders)
        seed = recipe.parting_seed if held_out_seed is None else held_out_seed
        parts = partition(mixture.rows, avoid=mixture.avoided, seed=seed, enough=enough, met=met)
        training = harder([row for row in parts.training if row.weight > 0], recipe.hard_negative_weight, taxonomy)
        seen = replace(
            parts,
            training=_through(view, training),
            tuning=_through(view, parts.tuning),
            measuring=_through(view, parts.measuring),
        )
        prompts = tuple(prompt_key(row.conversation) for row in parts.measuring if row.is_refusal is not None)
        return cls(recipe, mixture, seen, prompts)

    @property
    def teaching(self) -> list[Labelled]:
        """Return the training rows that have a label, or on which there is an opinion."""
        return [row for row, _ in teaching(self.parts.training, self.opinions)]

    def shortened(self, tokenizer: Tokenizer, max_tokens: int) -> list[str]:
        """Return the texts of those tuning rows that become examples, rendered into a smaller window."""
        rows = [row.conversation for row in self.parts.tuning if row.is_refusal is not None]
        return self._renderer(tokenizer, max_tokens).texts(rows)

    def examples(self, taxonomy: Taxonomy, tokenizer: Tokenizer) -> tuple[list[Example], list[Example], list[Example]]:
        """Build the examples of the three sides; what measures sees the whole window, as it will in use."""
        settings, balance = self.recipe.settings, self.recipe.balance
        renderer = self._renderer(tokenizer, settings.max_tokens)
        training = self._examples(self.parts.training, taxonomy, renderer, opinions=self.opinions)
        weighed = balanced(training, exponent=balance.exponent, cap=balance.cap)
        return weighed, *self.held_out(taxonomy, tokenizer)

    def held_out(self, taxonomy: Taxonomy, tokenizer: Tokenizer) -> tuple[list[Example], list[Example]]:
        """Build the examples that tune, and those that measure, alone."""
        renderer = self._renderer(tokenizer, self.recipe.settings.reads)
        tuning, measuring = self.parts.tuning, self.parts.measuring
        return self._examples(tuning, taxonomy, renderer), self._examples(measuring, taxonomy, renderer)

    def _renderer(self, tokenizer: Tokenizer, max_tokens: int) -> Renderer:
        return Renderer(tokenizer, max_tokens=max_tokens, earlier_tokens=self.recipe.settings.earlier_tokens)

    def _examples(
        self,
        rows: Sequence[Labelled],
        taxonomy: Taxonomy,
        renderer: Renderer,
        *,
        opinions: Sequence[Opinion | None] | None = None,
    ) -> list[Example]:
        settings = self.recipe.settings
        return examples(
            rows, taxonomy=taxonomy, renderer=renderer, main_share=settings.main_share,
            opinions=opinions, opinion_share=settings.teacher_share,
        )  # fmt: skip


def _through(view: Callable[[Conversation], Conversation], rows: Sequence[Labelled]) -> tuple[Labelled, ...]:
    return tuple(replace(row, conversation=view(row.conversation)) for row in rows)
