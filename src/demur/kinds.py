"""Name the kind of a refusal, and the kinds that it may be: probabilities in, names out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.taxonomy import Taxonomy

__all__ = ["RESOLUTIONS", "Resolution", "kind_set", "main_kind", "resolution_of"]

Resolution = Literal["kind", "group", "undetermined"]
"""What a set of kinds resolves to."""

RESOLUTIONS: tuple[Resolution, ...] = ("kind", "group", "undetermined")
"""The resolutions, from the one that says most to the one that says least."""


def main_kind(probabilities: Sequence[float], taxonomy: Taxonomy) -> tuple[str, str]:
    """Name the main kind, the most probable one, and its group; of equals, the first in taxonomy order.

    The most probable kind of the group with most mass is seldom another one, and then seldom the right one.

    Args:
        probabilities: P(kind | the reply refuses), one for each category in taxonomy order.
        taxonomy: Names the kinds and their groups.

    Raises:
        ValueError: There are more or fewer probabilities than kinds.
    """
    if len(probabilities) != len(taxonomy):
        message = f"{len(probabilities)} category probabilities; the taxonomy has {len(taxonomy)} kinds, give one each"
        raise ValueError(message)
    by_kind = dict(zip(taxonomy.keys, probabilities, strict=True))
    main = max(by_kind, key=by_kind.__getitem__)
    return main, taxonomy.group_of(main)


def kind_set(
    probabilities: Sequence[float], taxonomy: Taxonomy, *, least: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the kinds that a refusal may be, and the groups that these are of, most probable first.

    {k: P(k) >= least}, and the main kind whatever its probability: a set is never empty. A larger set holds the true
    kind no less often, so what is stated of {k: P(k) >= least} is true of it too.

    Args:
        probabilities: P(kind | the reply refuses), one for each category in taxonomy order.
        taxonomy: Names the kinds and their groups.
        least: Probability from which a kind is in the set; 0 for all kinds.

    Raises:
        ValueError: There are more or fewer probabilities than kinds.
    """
    main, _ = main_kind(probabilities, taxonomy)
    by_kind = dict(zip(taxonomy.keys, probabilities, strict=True))
    held = sorted((key for key in by_kind if key == main or by_kind[key] >= least), key=lambda key: -by_kind[key])
    return tuple(held), tuple(dict.fromkeys(taxonomy.group_of(key) for key in held))


def resolution_of(kinds: Sequence[str], groups: Sequence[str]) -> Resolution | None:
    """Tell what a set says: one kind names it, several of one group name the group, kinds of several name nothing.

    Args:
        kinds: The set.
        groups: The groups of its kinds, each once.

    Returns:
        None where the set is empty: nobody made one.
    """
    if not kinds:
        return None
    if len(kinds) == 1:
        return "kind"
    return "group" if len(groups) == 1 else "undetermined"
