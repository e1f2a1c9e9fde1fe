"""A training begins with what the weights say: kinds keep their rows by key, and a new kind is in nobody's way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch

from demur.errors import TrainingError, WeightsError
from demur.model.beginning import Beginning
from demur.model.network import Logits, RefusalNetwork, add_low_rank
from demur.taxonomy import Category, Taxonomy

if TYPE_CHECKING:
    from pathlib import Path

    from demur.model.weights import Weights

IDS = torch.arange(5, 45).reshape(4, 10)


@pytest.fixture
def beginning(tiny_weights: Path) -> Beginning:
    """Read the tiny weights."""
    return Beginning.load(tiny_weights)


def said(network: RefusalNetwork) -> Logits:
    """Return what a network says of four made-up texts."""
    with torch.no_grad():
        found: Logits = network.eval()(IDS, torch.ones_like(IDS))
    return found


def begun(beginning: Beginning, taxonomy: Taxonomy, *, rank: int = 4, scale: float = 2.0) -> RefusalNetwork:
    """Build the network that a training would begin with."""
    network = RefusalNetwork(beginning.encoder.network(), len(taxonomy))
    if rank:
        add_low_rank(network.encoder, rank, scale=scale)
    beginning.place(network, taxonomy, scale=scale)
    return network


def assert_same(one: torch.Tensor, other: torch.Tensor) -> None:
    """Compare logits, which adapters merged and unmerged give with different rounding."""
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("rank", "scale"), [(4, 2.0), (4, 0.5), (0, 2.0)])
def test_a_training_begins_with_what_the_weights_say(
    beginning: Beginning, loaded_weights: Weights, taxonomy: Taxonomy, rank: int, scale: float
) -> None:
    """With adapters, with adapters of another factor, and with adapters merged into whole layers."""
    before, after = said(loaded_weights.network), said(begun(beginning, taxonomy, rank=rank, scale=scale))
    assert_same(after.gate, before.gate)
    assert_same(after.partial, before.partial)
    assert_same(after.kinds, before.kinds)
    assert (beginning.rank, beginning.seed) == (4, 66)


def test_kinds_keep_their_rows_by_key(
    beginning: Beginning, loaded_weights: Weights, taxonomy: Taxonomy, wider_taxonomy: Taxonomy
) -> None:
    """The 17th kind stands third: all after it move by one, and say what they said; the gate does not move."""
    before, after = said(loaded_weights.network), said(begun(beginning, wider_taxonomy))
    assert_same(after.gate, before.gate)
    places = [wider_taxonomy.index(key) for key in taxonomy.keys]
    assert places == [0, 1, *range(3, 17)]
    assert_same(after.kinds[:, places], before.kinds)
    assert beginning.added(wider_taxonomy) == ("usage_limits",)
    assert beginning.left_out(wider_taxonomy) == ()


def test_a_new_kind_begins_as_the_mean_of_its_group(beginning: Beginning, wider_taxonomy: Taxonomy) -> None:
    """Its logit is the mean of the nine others', so it is never the most probable of them."""
    kinds = said(begun(beginning, wider_taxonomy)).kinds
    others = [wider_taxonomy.index(key) for key in wider_taxonomy.members("cannot") if key != "usage_limits"]
    assert len(others) == 9
    assert_same(kinds[:, 2], kinds[:, others].mean(dim=1))
    assert bool((kinds[:, 2] < kinds[:, others].max(dim=1).values).all())


def test_a_kind_of_a_new_group_begins_as_the_mean_of_all(beginning: Beginning, taxonomy: Taxonomy) -> None:
    """There is no other in its group to be the mean of."""
    kind = Category("whim", "Whim", "whims", "It does not feel like it.")
    group = replace(taxonomy.groups[0], key="whims", definition="It would rather not.")
    wider = replace(taxonomy, groups=(*taxonomy.groups, group), categories=(*taxonomy.categories, kind))
    kinds = said(begun(beginning, wider)).kinds
    assert_same(kinds[:, 16], kinds[:, :16].mean(dim=1))


def test_a_kind_that_is_no_more_takes_its_row_along(
    beginning: Beginning, loaded_weights: Weights, taxonomy: Taxonomy
) -> None:
    """It is named as left out; the others stay."""
    fewer = replace(taxonomy, categories=taxonomy.categories[1:])
    assert beginning.left_out(fewer) == (taxonomy.keys[0],)
    assert_same(said(begun(beginning, fewer)).kinds, said(loaded_weights.network).kinds[:, 1:])


def test_a_taxonomy_of_strangers_is_no_way_to_go_on(beginning: Beginning, taxonomy: Taxonomy) -> None:
    """Not one key is shared."""
    strangers = tuple(replace(each, key=f"{each.key}_2") for each in taxonomy)
    with pytest.raises(TrainingError, match="know none of the taxonomy's kinds"):
        begun(beginning, replace(taxonomy, categories=strangers))


def test_adapters_of_one_rank_do_not_become_others(beginning: Beginning) -> None:
    """The message says which rank to give; rank 0 merges any."""
    with pytest.raises(TrainingError, match="adapters of rank 4, and the settings say 32; give --rank 4"):
        beginning.require_rank(32)
    beginning.require_rank(4)
    beginning.require_rank(0)


def test_tensors_that_do_not_fit_are_refused(beginning: Beginning, taxonomy: Taxonomy) -> None:
    """One missing, or one of another shape."""
    missing = {name: tensor for name, tensor in beginning.tensors.items() if name != "partial.bias"}
    cut = {**beginning.tensors, "gate.dense.bias": torch.zeros(3)}
    for tensors in (missing, cut):
        with pytest.raises(WeightsError, match="do not fit the network"):
            begun(replace(beginning, tensors=tensors), taxonomy)


def test_another_encoder_is_refused(tiny_weights: Path) -> None:
    """Adapters fit the layers that they were trained on."""
    with pytest.raises(WeightsError, match="were trained on encoder"):
        Beginning.load(tiny_weights, encoder="embedded")
