"""Probabilities name a kind, and the kinds that it may be, by one rule each."""

from __future__ import annotations

import pytest

from demur.kinds import kind_set, main_kind, resolution_of
from demur.taxonomy import Taxonomy

TAXONOMY = Taxonomy.load()


def spread(**mass: float) -> list[float]:
    """Give each named kind its mass, (kinds,)."""
    return [mass.get(key, 0.0) for key in TAXONOMY.keys]


def test_the_most_probable_kind_is_the_main_one() -> None:
    """Its group comes with it, also where the other group has more mass in sum: .3 + .3 against .4."""
    probabilities = spread(privacy=0.3, nsfw_content=0.3, skill_level=0.4)
    assert main_kind(probabilities, TAXONOMY) == ("skill_level", "cannot")


def test_of_equal_kinds_the_first_in_taxonomy_order_is_named() -> None:
    """The same probabilities always give the same kind."""
    equal = spread(privacy=0.25, nsfw_content=0.25, skill_level=0.25, unknowable=0.25)
    assert main_kind(equal, TAXONOMY) == ("privacy", "should_not")


@pytest.mark.parametrize("n", [0, 1, 17])
def test_probabilities_that_do_not_fit_the_taxonomy_are_refused(n: int) -> None:
    """A head of another size cannot be read."""
    with pytest.raises(ValueError, match=f"{n} category probabilities; the taxonomy has 16"):
        main_kind([0.1] * n, TAXONOMY)


@pytest.mark.parametrize(
    ("least", "kinds", "groups"),
    [
        (0.6, ("privacy",), ("should_not",)),
        (0.3, ("privacy", "nsfw_content"), ("should_not",)),
        (0.1, ("privacy", "nsfw_content", "skill_level"), ("should_not", "cannot")),
    ],
)
def test_a_set_holds_the_kinds_from_a_probability_on(
    least: float, kinds: tuple[str, ...], groups: tuple[str, ...]
) -> None:
    """The probability itself is in; the most probable kind stands first, and so does its group."""
    probabilities = spread(skill_level=0.1, nsfw_content=0.3, privacy=0.6)
    assert kind_set(probabilities, TAXONOMY, least=least) == (kinds, groups)


def test_from_nothing_on_a_set_is_all_kinds() -> None:
    """Also those of probability 0, in taxonomy order where they are equal."""
    kinds, groups = kind_set(spread(skill_level=1.0), TAXONOMY, least=0.0)
    assert set(kinds) == set(TAXONOMY.keys)
    assert kinds == ("skill_level", *(key for key in TAXONOMY.keys if key != "skill_level"))
    assert groups == ("cannot", "should_not")


def test_a_set_is_never_empty() -> None:
    """Where no kind is probable enough, it is the main one."""
    assert kind_set(spread(privacy=0.5, skill_level=0.3), TAXONOMY, least=0.9) == (("privacy",), ("should_not",))


def test_a_set_of_another_taxonomy_is_refused() -> None:
    """As its main kind is."""
    with pytest.raises(ValueError, match="3 category probabilities; the taxonomy has 16"):
        kind_set([0.5, 0.3, 0.2], TAXONOMY, least=0.1)


@pytest.mark.parametrize(
    ("kinds", "groups", "resolution"),
    [
        (("privacy",), ("should_not",), "kind"),
        (("privacy", "nsfw_content"), ("should_not",), "group"),
        (("privacy", "skill_level"), ("should_not", "cannot"), "undetermined"),
        ((), (), None),
    ],
)
def test_a_set_resolves_by_one_principle(
    kinds: tuple[str, ...], groups: tuple[str, ...], resolution: str | None
) -> None:
    """One kind, several of one group, several groups; no set says nothing."""
    assert resolution_of(kinds, groups) == resolution
