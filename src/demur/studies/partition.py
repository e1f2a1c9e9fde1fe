"""Part labelled rows by their prompts, so that what is measured was never trained on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.studies.requests import folded, opening

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from demur.conversation import Conversation
    from demur.data.labelled import Labelled

__all__ = ["Partition", "partition", "prompt_key"]

# Share of the prompts with clear labels that training never sees: one half chooses the epoch and calibrates,
# the other measures the operating point that corrected shares need, and calibrates sets of kinds.
_HELD_OUT_SHARE = 0.12
# Characters from which a request is taken to be the same one wherever it stands; shorter ones go on with anything.
_TELLING = 20


@dataclass(frozen=True, slots=True)
class Partition:
    """Keep rows on their sides; no prompt stands on two of them.

    Attributes:
        training: What the network is fitted to.
        tuning: Chooses the epoch, calibrates and sets thresholds.
        measuring: Measures the gate's operating point and how sure the head is of the true kinds, and nothing else.
        n_avoided: Rows left out because their prompt stands in a file to be avoided.
        n_repeated: Rows left out because the same conversation came before.
        n_contradicted: Those among the repeated ones that say otherwise whether the reply refuses.
        n_withheld: Rows left out because their prompt is held out, and they are none to measure by.
        is_thin: Whether there were too few clear prompts to calibrate by, so that synthetic rows help to tune.
        met: Digests, rising, of the prompts that the seed draws to be held out and training meets all the same, for no
            row of theirs is clear, now or in the trainings before. Where a clear one turns up later, it is none to
            measure these weights by.
    """

    training: tuple[Labelled, ...]
    tuning: tuple[Labelled, ...]
    measuring: tuple[Labelled, ...]
    n_avoided: int = 0
    n_repeated: int = 0
    n_contradicted: int = 0
    n_withheld: int = 0
    is_thin: bool = False
    met: tuple[str, ...] = ()


def prompt_key(conversation: Conversation) -> str:
    """Return what counts as the same prompt: the first user turn if it says something, else the reply, both folded."""
    return folded(opening(conversation) or "") or folded(conversation.reply)


def partition(
    rows: Sequence[Labelled],
    *,
    avoid: Sequence[Labelled] = (),
    seed: int = 0,
    enough: int = 0,
    met: Collection[str] = (),
) -> Partition:
    """Part rows by their prompts.

    Only clear labels on real replies are held out: neither weak ones, nor synthetic rows, nor rows that were drawn for
    being hard, nor variants of other rows say how the gate does on real data. A variant stands where the prompt stands
    that it was made from, however its own is written. Rows that repeat a conversation are left out, the one with the
    fuller label kept, and of equal ones the first.

    Args:
        rows: Labelled conversations, in any order.
        avoid: Rows whose prompts must stand on no side, nor, where it says enough to be known by, their last request in
            any turn: a greeting before it makes it no other.
        seed: Draws the prompts that are held out.
        enough: With fewer clear prompts than this, synthetic ones are drawn, too, of which the rows tune and never
            measure.
        met: Digests of the prompts that trainings before this one met, as `Partition.met` has them: none of them is
            held out.
    """
    avoided = {_prompt_of(row) for row in avoid}
    last = {said[-1] for row in avoid if (said := _said(row)) and len(said[-1]) >= _TELLING}
    clean = [row for row in rows if _prompt_of(row) not in avoided and last.isdisjoint(_said(row))]
    unique = _unique(clean)
    fresh = [row for row in unique if _digest(_prompt_of(row)) not in met] if met else unique
    measurable = {_prompt_of(row) for row in fresh if _is_clear(row)}
    held_out = {key: drawn for key in measurable if (drawn := _draw(key, seed)) < _HELD_OUT_SHARE}
    is_thin = len(measurable) < enough
    made = {_prompt_of(row) for row in fresh if is_thin and _is_well_made(row)} - measurable
    tuning_only = {key for key in made if _draw(key, seed) < _HELD_OUT_SHARE / 2}
    sides: dict[str, list[Labelled]] = {"training": [], "tuning": [], "measuring": []}
    n_withheld = 0
    for row in unique:
        key = _prompt_of(row)
        if key not in held_out and key not in tuning_only:
            sides["training"].append(row)
        elif _is_clear(row):
            sides["tuning" if held_out[key] < _HELD_OUT_SHARE / 2 else "measuring"].append(row)
        elif key in tuning_only and _is_well_made(row):
            sides["tuning"].append(row)
        else:
            n_withheld += 1
    trained = {_prompt_of(row) for row in sides["training"] if row.weight > 0}
    now_met = {_digest(key) for key in trained if _draw(key, seed) < _HELD_OUT_SHARE}
    return Partition(
        **{name: tuple(rows) for name, rows in sides.items()},
        n_avoided=len(rows) - len(clean),
        n_repeated=len(clean) - len(unique),
        n_contradicted=_contradicted(clean, unique),
        n_withheld=n_withheld,
        is_thin=is_thin,
        met=tuple(sorted(now_met.union(met))),
    )


def _said(row: Labelled) -> list[str]:
    return [folded(turn.content) for turn in row.conversation.turns if turn.role == "user"]


def _prompt_of(row: Labelled) -> str:
    return prompt_key(row.conversation) if row.origin_prompt is None else row.origin_prompt


def _is_clear(row: Labelled) -> bool:
    return row.source != "synthetic" and _is_sure(row)


def _is_well_made(row: Labelled) -> bool:
    return row.source == "synthetic" and _is_sure(row)


def _is_sure(row: Labelled) -> bool:
    return row.outcome is not None and not (row.is_weak or row.is_drawn_hard or row.origin_prompt is not None)


def _unique(rows: Sequence[Labelled]) -> list[Labelled]:
    fullest: dict[object, Labelled] = {}
    for row in rows:
        met = fullest.get(row.conversation.turns)
        if met is None or _fullness(row) > _fullness(met):
            fullest[row.conversation.turns] = row
    return list(fullest.values())


def _fullness(row: Labelled) -> tuple[bool, bool, bool, bool]:
    # A source of weight 0, as an ablation leaves one out, takes no row from another.
    return (row.weight > 0, not row.is_weak, row.outcome is not None, bool(row.labels))


def _contradicted(rows: Sequence[Labelled], unique: Sequence[Labelled]) -> int:
    kept = {row.conversation.turns: row.is_refusal for row in unique}
    pairs = ((row.is_refusal, kept[row.conversation.turns]) for row in rows)
    return sum(one is not None and other is not None and one != other for one, other in pairs)


def _digest(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _draw(key: str, seed: int) -> float:
    """Draw a number in [0, 1) that depends on the prompt and the seed alone, never on the order of files."""
    digest = hashlib.sha256(f"{seed}:{key}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
