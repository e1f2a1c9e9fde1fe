"""Vary labelled rows by mutations: each variant keeps the labels, and says what was done to which row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.data.label_fields import bit_of, conversation_of, label_lines
from demur.errors import RowError
from demur.studies.partition import prompt_key
from demur.synthesis.mutations import MUTATIONS, refusing_sentences
from demur.synthesis.origins import name_of, origin_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.data.rows import Row

__all__ = ["Variation", "vary"]


@dataclass(frozen=True, slots=True)
class Variation:
    """Say how rows are varied.

    Attributes:
        mutations: Names of the mutations to draw from.
        seed: Draws them: the same for rows of the same id, or without one of the same text, wherever they stand.
        per_row: Variants of each row, at most: no two of a row have the same mutations.
        chain: Mutations that are put on top of one another in a variant, at most.

    Raises:
        ValueError: A name is unknown or stands twice, there is none, or a number is too small.
    """

    mutations: tuple[str, ...] = tuple(MUTATIONS)
    seed: int = 0
    per_row: int = 1
    chain: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        unknown = [name for name in self.mutations if name not in MUTATIONS]
        if unknown or not self.mutations:
            met = repr(unknown[0]) if unknown else "no name"
            message = f"{met} is no mutation; right would be some of {', '.join(MUTATIONS)}"
            raise ValueError(message)
        if len(set(self.mutations)) < len(self.mutations):
            message = f"a mutation stands twice among {', '.join(self.mutations)}; name each once"
            raise ValueError(message)
        if min(self.per_row, self.chain) < 1 or self.seed < 0:
            message = f"per_row {self.per_row}, chain {self.chain}, seed {self.seed}; give 1, 1 and 0 or more"
            raise ValueError(message)

    def variants(
        self, conversation: Conversation, *, name: str, refuses: bool
    ) -> Iterator[tuple[tuple[str, ...], Conversation]]:
        """Yield the variants of a conversation, each with the mutations that changed it, in order.

        Args:
            conversation: What is varied.
            name: The row's name, which the draws depend on.
            refuses: Whether the label says that the reply refuses, or does not say.
        """
        names = [each for each in self.mutations if each != "truncation" or not refuses or _shows(conversation)]
        met = {conversation}
        used: set[tuple[str, ...]] = set()
        # Where a draw changes nothing, another is made; a short row may have nothing left to draw.
        for attempt in range(4 * self.per_row + 4):
            rng = np.random.default_rng([self.seed, _number(name), attempt])
            size = min(len(names), 1 + int(rng.integers(self.chain)))
            variant, done = conversation, []
            for i in rng.choice(len(names), size, replace=False) if names else ():
                changed = MUTATIONS[names[i]](variant, rng)
                done += [names[i]] if changed != variant else []
                variant = changed
            if variant in met or tuple(sorted(done)) in used:
                continue
            met.add(variant)
            used.add(tuple(sorted(done)))
            yield tuple(done), variant
            if len(used) == self.per_row:
                return


def vary(path: Path, variation: Variation) -> Iterator[list[dict[str, Any]] | RowError]:
    """Yield for each row of a JSONL file its variants as rows, none where nothing changes it, or what is wrong with it.

    A variant has the fields of its row, with new `messages`, the name of the row and a number as its `id`, and its
    provenance: `origin`, the name of the row, which is its id, or follows from its text where it has none;
    `origin_prompt`, by which training keeps it on the row's side; `mutations`, in the order in which they were done;
    and `mutation_seed`. What annotators said of the row's own text is left out. A row under the name of one before it
    would give variants under taken ids, and counts among those with something wrong.

    Args:
        path: The file.
        variation: How the rows are varied.
    """
    places: dict[str, str] = {}
    for line in label_lines(path):
        if isinstance(line, RowError):
            yield line
            continue
        try:
            yield _rows(line, variation, places)
        except RowError as error:
            yield error


# What describes the row's own text, to the letter.
_OF_THE_TEXT = ("annotations", "evidence")


def _rows(line: Row, variation: Variation, places: dict[str, str]) -> list[dict[str, Any]]:
    """Return the variants of a row, and note where its name stands."""
    conversation = conversation_of(line)
    if (origin := origin_of(line)) is not None:
        message = f"is a variant of {origin!r} itself; vary the rows that it came from"
        raise RowError(message, where=line.where, reason="variant")
    # Where a row does not say, it may refuse.
    refuses = bit_of(line.fields, line.where) is not False
    name = name_of(line, conversation)
    if (first := places.setdefault(name, line.where)) != line.where:
        message = f"goes by {name!r}, as {first} does; give each row an id of its own"
        raise RowError(message, where=line.where, reason="repeated_id")
    kept = {field: value for field, value in line.fields.items() if field not in _OF_THE_TEXT}
    return [
        {
            **kept,
            "id": f"{name}~{number}",
            "messages": [{"role": turn.role, "content": turn.content} for turn in variant.turns],
            "origin": name,
            "origin_prompt": prompt_key(conversation),
            "mutations": list(names),
            "mutation_seed": variation.seed,
        }
        for number, (names, variant) in enumerate(variation.variants(conversation, name=name, refuses=refuses), start=1)
    ]


def _shows(conversation: Conversation) -> bool:
    """Tell whether the keyword list sees the sentence that refuses, so that it can be kept."""
    return bool(refusing_sentences(conversation.reply))


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")
