"""The mean of weights is the mean of their networks, calibrated anew; what does not go together is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from demur.conversation import Conversation
from demur.data.labelled import read_labelled
from demur.data.rendering import MIN_TOKENS
from demur.errors import OutputError, TrainingError, WeightsError
from demur.labelers.classifier import Analyzer
from demur.model.averaging import averaged, reduced, uncalibrated
from demur.model.beginning import Beginning
from demur.model.encoders import Encoder
from demur.model.network import Logits, RefusalNetwork
from demur.model.weights import Manifest, Weights, read_tensors, save_weights
from demur.report.training_plots import training_plot
from demur.studies.averaging import average
from demur.studies.holding import held
from demur.studies.partition import partition, prompt_key
from demur.studies.recipe import Recipe, Source
from demur.studies.training import train_recipe

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.model.settings import TrainingSettings
    from demur.taxonomy import Taxonomy

IDS = torch.arange(5, 45).reshape(4, 10)


@pytest.fixture
def recipe(labelled_file: Path, tiny_settings: TrainingSettings) -> Recipe:
    """Name the hand-made rows, under the seed of the tiny weights."""
    return Recipe(name="mine", sources=(Source(labelled_file.name),), settings=replace(tiny_settings, epochs=1))


@pytest.fixture
def mean(recipe: Recipe, labelled_file: Path, taxonomy: Taxonomy, tmp_path: Path) -> Callable[..., Manifest]:
    """Return what averages folders into `tmp_path / "mean"`."""

    def run(*folders: Path, **given: Any) -> Manifest:
        options = {"recipe": recipe, "taxonomy": taxonomy, **given}
        return average(folders, tmp_path / "mean", folders_of_data=[labelled_file.parent], **options)

    return run


@pytest.fixture
def other(
    recipe: Recipe, labelled_file: Path, tiny_encoder: Path, taxonomy: Taxonomy, tmp_path: Path
) -> Callable[..., Path]:
    """Return what trains for one epoch of the same seed, under settings of its own."""

    def run(*, held_out_seed: int | None = None, **settings: Any) -> Path:
        changed = replace(recipe, held_out_seed=held_out_seed, settings=replace(recipe.settings, **settings))
        out = tmp_path / f"other{len(list(tmp_path.iterdir()))}"
        encoder = Encoder.find(str(tiny_encoder))
        train_recipe(changed, out, folders=[labelled_file.parent], taxonomy=taxonomy, encoder=encoder)
        return out

    return run


def said(network: RefusalNetwork) -> Logits:
    """Return what a network says of four made-up texts."""
    with torch.no_grad():
        found: Logits = network.eval()(IDS, torch.ones_like(IDS))
    return found


def raw(folder: Path, taxonomy: Taxonomy) -> RefusalNetwork:
    """Load weights, adapters merged and calibration undone."""
    manifest = Manifest.load(folder)
    network = RefusalNetwork(Encoder.find(manifest.encoder).network(), len(taxonomy))
    tensors = uncalibrated(read_tensors(folder, manifest), manifest.calibration)
    network.load_trained(tensors, scale=manifest.low_rank_scale)
    return network


def test_the_mean_of_weights_and_themselves_says_what_they_say(
    mean: Callable[..., Manifest], tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """Three times the same: apart from calibration, logits differ by the rounding of 16 bits."""
    mean(tiny_weights, tiny_weights, tiny_weights)
    one, three = said(raw(tiny_weights, taxonomy)), said(raw(tmp_path / "mean", taxonomy))
    for name in ("gate", "partial", "kinds"):
        torch.testing.assert_close(getattr(three, name), getattr(one, name), rtol=1e-3, atol=5e-3)


@pytest.mark.parametrize("settings", [{"rank": 6, "low_rank_scale": 3.0}, {"rank": 0, "learning_rate": 1e-3}])
def test_the_mean_of_two_is_that_of_their_layers_and_heads(
    mean: Callable[..., Manifest], other: Callable[..., Path], tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path,
    settings: dict[str, Any],
) -> None:  # fmt: skip
    """Adapters of two ranks and scales, or two trainings of whole layers; the sum of the ranks is kept."""
    first = tiny_weights if settings["rank"] else other(rank=0, learning_rate=1e-2)
    second = other(**settings)
    mean(first, second)
    one, two, both = (raw(each, taxonomy).state_dict() for each in (first, second, tmp_path / "mean"))
    assert any((one[name] - two[name]).abs().max() > 0.01 for name in one if name.startswith("encoder."))
    for name, tensor in both.items():
        torch.testing.assert_close(tensor, (one[name] + two[name]) / 2, rtol=1e-3, atol=1e-3)
    assert Beginning.load(tmp_path / "mean").rank == (10 if settings["rank"] else 0)


def test_a_lower_rank_keeps_what_holds_most_of_the_mean(
    mean: Callable[..., Manifest], tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """Of twice the same adapters, their own rank of 4 keeps all; rank 2 keeps the two largest singular values."""
    mean(tiny_weights, tiny_weights, rank=4)
    manifest = Manifest.load(tmp_path / "mean")
    assert (Beginning.load(tmp_path / "mean").rank, manifest.training["rank"]) == (4, 4)
    one, same = (raw(each, taxonomy).state_dict() for each in (tiny_weights, tmp_path / "mean"))
    for name, tensor in same.items():
        torch.testing.assert_close(tensor, one[name], rtol=1e-3, atol=1e-3)
    tensors = read_tensors(tmp_path / "mean", manifest)
    less = reduced(tensors, 2)
    up = next(name for name in tensors if name.endswith(".up"))
    down = up.removesuffix("up") + "down"
    whole, kept = (each[up].float() @ each[down].float() for each in (tensors, less))
    singular = torch.linalg.svdvals(whole)
    torch.testing.assert_close(torch.linalg.svdvals(kept)[:2], singular[:2], rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(torch.linalg.matrix_norm(whole - kept), singular[2:].norm(), rtol=2e-2, atol=1e-3)


def test_the_mean_loads_judges_and_says_what_it_is_made_of(
    mean: Callable[..., Manifest], other: Callable[..., Path], recipe: Recipe, tiny_weights: Path, taxonomy: Taxonomy,
    tmp_path: Path,
) -> None:  # fmt: skip
    """Its manifest keeps the records of both, and the seed that a further training must hold out by."""
    second = other()
    manifest = mean(tiny_weights, second)
    assert Weights.load(tmp_path / "mean", taxonomy=taxonomy).manifest == manifest
    (verdict,) = Analyzer.load(tmp_path / "mean").label(
        [Conversation.of("Help me.", "Sorry, I cannot help with that.")]
    )
    assert 0 <= verdict.refusal_probability <= 1
    before = [Manifest.load(each) for each in (tiny_weights, second)]
    records = manifest.training["averaged"]
    assert [each["weights_sha256"] for each in records] == [each.tensors_sha256 for each in before]
    assert [{**each["training"], "met_prompts": []} for each in records] == [each.training for each in before]
    assert [each["recipe"] for each in records] == [None, {"sha256": recipe.sha256, "name": "mine"}]
    assert manifest.training["recipe"]["sha256"] == recipe.sha256
    rows = manifest.training["rows"]
    assert rows == {name: before[1].training["rows"][name] for name in ("tuning", "measuring")}
    assert sum(map(len, manifest.held_out.values())) == rows["measuring"] > 0
    assert manifest.calibration["n_rows"] == rows["tuning"] > 0
    assert Beginning.load(tmp_path / "mean").seed == 66
    with pytest.raises(WeightsError, match="averaged"):
        training_plot(manifest)


@pytest.mark.parametrize("gate", [1.7, [0.6, -0.4]])
def test_calibration_is_undone(tiny_weights: Path, taxonomy: Taxonomy, gate: float | list[float]) -> None:
    """What was folded in, by temperature or as weights of before have it, comes out again."""
    network = raw(tiny_weights, taxonomy)
    plain = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    temperature = gate if isinstance(gate, float) else 1 / gate[0]
    network.fold_calibration(gate=temperature, partial=(0.5, -1.2), kinds=1.3)
    if not isinstance(gate, float):
        with torch.no_grad():
            network.gate.classifier.bias[1] += gate[1]
    folded = network.state_dict()
    assert not torch.allclose(folded["gate.classifier.bias"], plain["gate.classifier.bias"])
    found = uncalibrated(folded, {"gate": gate, "partial": [0.5, -1.2], "kinds": 1.3})
    torch.testing.assert_close(found, plain, rtol=1e-5, atol=1e-6)


def test_the_calibration_of_before_does_not_shift_the_mean(
    mean: Callable[..., Manifest], tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """Weights averaged with themselves at another temperature give their own heads back."""
    manifest = Manifest.load(tiny_weights)
    network = raw(tiny_weights, taxonomy)
    network.fold_calibration(gate=2.0, partial=(0.5, 1.0), kinds=3.0)
    heads = {name: tensor for name, tensor in network.state_dict().items() if not name.startswith("encoder.")}
    calibration = {"gate": 2.0, "partial": [0.5, 1.0], "kinds": 3.0}
    tensors = {**read_tensors(tiny_weights, manifest), **heads}
    save_weights(tmp_path / "warm", tensors, manifest.model_copy(update={"calibration": calibration}))
    mean(tiny_weights, tmp_path / "warm")
    one, two = (raw(each, taxonomy).state_dict() for each in (tiny_weights, tmp_path / "mean"))
    torch.testing.assert_close(two, one, rtol=1e-3, atol=1e-3)


def test_trainings_of_several_seeds_are_averaged_where_they_hold_out_the_same_rows(
    mean: Callable[..., Manifest], other: Callable[..., Path], recipe: Recipe, tiny_weights: Path
) -> None:
    """One held out by its own seed, 66, the other by what its recipe says; the mean says so, too."""
    second = other(seed=5, held_out_seed=recipe.settings.seed)
    before = [Manifest.load(each) for each in (tiny_weights, second)]
    assert [manifest.training["settings"]["seed"] for manifest in before] == [66, 5]
    manifest = mean(tiny_weights, second, recipe=replace(recipe, held_out_seed=66))
    assert manifest.held_out_seed == 66
    assert len({manifest.training["rows"]["tuning"] for manifest in [*before, manifest]}) == 1


@pytest.mark.parametrize("head_seed", [None, 9])
def test_trainings_of_several_seeds_begin_with_the_same_heads_where_asked(
    other: Callable[..., Path], head_seed: int | None
) -> None:
    """Steps of next to nothing leave the heads as they began; calibration scales other layers than the first."""
    given = {"learning_rate": 1e-9, "head_seed": head_seed, "held_out_seed": 66}
    folders = [other(seed=seed, **given) for seed in (5, 6)]
    first, second = (read_tensors(folder, Manifest.load(folder)) for folder in folders)
    for name in ("gate.dense.weight", "kinds.dense.weight"):
        assert torch.allclose(first[name], second[name], atol=1e-6) == (head_seed is not None)


def test_the_folder_of_a_mean_is_one_process_s(
    mean: Callable[..., Manifest], tiny_weights: Path, tmp_path: Path
) -> None:
    """The second is refused and writes nothing; the lock does not outlast the first."""
    out = tmp_path / "mean"
    out.mkdir()
    with held(out, out / ".lock"), pytest.raises(OutputError, match="being written by another run"):
        mean(tiny_weights, tiny_weights)
    assert not list(out.iterdir())
    mean(tiny_weights, tiny_weights)
    assert not (out / ".lock").exists()


def test_prompts_that_one_training_met_do_not_measure_the_mean(
    mean: Callable[..., Manifest], copy: Callable[..., Path], tiny_weights: Path, labelled_file: Path,
    taxonomy: Taxonomy,
) -> None:  # fmt: skip
    """It had no clear row of them, and the recipe of the mean has; the mean passes on what was met."""
    rows = read_labelled(labelled_file, taxonomy, split="train")
    apart = partition(rows, seed=66)
    weak = [replace(row, is_weak=row in apart.measuring[1:]) for row in rows]
    met = partition(weak, seed=66).met
    assert met
    before = Manifest.load(tiny_weights)
    manifest = mean(tiny_weights, copy(training={**before.training, "met_prompts": list(met)}))
    assert manifest.training["rows"]["tuning"] == len(apart.tuning)
    held_out = {prompt_key(row.conversation) for row in apart.measuring[:1]}
    left = [row for row in apart.measuring if prompt_key(row.conversation) in held_out]
    assert manifest.training["rows"]["measuring"] == len(left) < len(apart.measuring)
    assert manifest.met_prompts == frozenset(met)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"taxonomy_fingerprint": "0" * 64}, "differ in their taxonomy"),
        ({"encoder_sha256": "0" * 64}, "differ in their encoder"),
        ({"encoder_files_sha256": "0" * 64}, "another tokenizer.json or config.json"),
        ({"categories": ("privacy",)}, "differ in their kinds"),
        ({"max_tokens": 128}, r"differ in their window \(max_tokens: 512 and 128\)"),
        ({"calibration": {"kept": True}}, "kept from the weights"),
        ({"calibration": {"gate": 1.0, "partial": [1.0, 0.0]}}, "how kinds was calibrated"),
        ({"training": {"settings": {"seed": 5}}}, "held out prompts by seed 5, and recipe 'mine' does by seed 66"),
        ({"training": {"settings": {"seed": 66}, "held_out_seed": 5}}, "held out prompts by seed 5"),
        ({"training": {}}, "held out prompts by no known seed"),
        ({"training": {"held_out_seed": 66}}, "are of before trainings recorded which prompts they met"),
    ],
)
def test_weights_that_do_not_go_together_are_refused(
    mean: Callable[..., Manifest], copy: Callable[..., Path], tiny_weights: Path, tmp_path: Path,
    changes: dict[str, Any], message: str,
) -> None:  # fmt: skip
    """The message says which differs; nothing is written."""
    with pytest.raises(WeightsError, match=message):
        mean(tiny_weights, copy(**changes))
    assert not (tmp_path / "mean").exists()


def test_whole_layers_and_adapters_are_not_averaged(
    mean: Callable[..., Manifest], other: Callable[..., Path], tiny_weights: Path
) -> None:
    """Rank 0 trains other tensors than any other rank."""
    with pytest.raises(WeightsError, match=r"low-rank adapters and .* whole layers \(rank 0\)"):
        mean(tiny_weights, other(rank=0))


@pytest.mark.parametrize("rank", [2, 1000])
def test_whole_layers_become_the_nearest_updates_of_a_rank(
    mean: Callable[..., Manifest], other: Callable[..., Path], taxonomy: Taxonomy, tmp_path: Path, rank: int
) -> None:
    """Of one training as of several; biases and layer norms are the encoder's, and a high rank keeps all the rest."""
    whole = other(rank=0, learning_rate=1e-2)
    manifest = mean(whole, rank=rank)
    assert manifest.training["rank"] == rank
    assert not any(name.endswith(".weight") for name in read_tensors(tmp_path / "mean", manifest) if "layer" in name)
    before = RefusalNetwork(Encoder.find(manifest.encoder).network(), len(taxonomy)).state_dict()
    trained, found = raw(whole, taxonomy).state_dict(), raw(tmp_path / "mean", taxonomy).state_dict()
    n_layers = 0
    for name, tensor in found.items():
        if name.startswith("encoder.encoder.") and tensor.ndim == 2:
            update = trained[name] - before[name]
            u, singular, v = torch.linalg.svd(update)
            n = min(rank, len(singular))
            torch.testing.assert_close(
                tensor - before[name], u[:, :n] @ torch.diag(singular[:n]) @ v[:n], rtol=1e-2, atol=2e-3
            )
            n_layers += 1
        elif name.startswith("encoder."):
            torch.testing.assert_close(tensor, before[name])
    assert n_layers > 0


def test_whole_layers_stay_whole_where_no_rank_is_asked_for(
    mean: Callable[..., Manifest], other: Callable[..., Path]
) -> None:
    """And no manifest says otherwise."""
    whole = other(rank=0)
    assert mean(whole, whole).training["rank"] is None


def test_what_is_asked_for_must_fit_the_weights(
    mean: Callable[..., Manifest], tiny_weights: Path, wider_taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """One folder is no average; the taxonomy is that of the weights; finished weights are not overwritten."""
    with pytest.raises(WeightsError, match="give two or more"):
        mean(tiny_weights)
    with pytest.raises(TrainingError, match=r"window: met 513; .* less than or equal to 512"):
        mean(tiny_weights, window=513)
    with pytest.raises(WeightsError, match="another taxonomy"):
        mean(tiny_weights, tiny_weights, taxonomy=wider_taxonomy)
    (tmp_path / "mean").mkdir()
    (tmp_path / "mean" / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputError, match="holds finished weights"):
        mean(tiny_weights, tiny_weights)


def test_the_mean_reads_what_its_trainings_read_unless_told_otherwise(
    mean: Callable[..., Manifest], recipe: Recipe, tiny_weights: Path, tmp_path: Path
) -> None:
    """Whatever the recipe says; another window may be given, of one training as of several."""
    other = replace(recipe, settings=replace(recipe.settings, window=128))
    usual = mean(tiny_weights, tiny_weights, recipe=other)
    (tmp_path / "mean").rename(tmp_path / "usual")
    narrow = mean(tiny_weights, recipe=other, window=MIN_TOKENS)
    for manifest, window in ((usual, 512), (narrow, MIN_TOKENS)):
        assert (manifest.max_tokens, manifest.training["window"]) == (window, window)
        assert {each["max_tokens"] for each in manifest.training["averaged"]} == {512}


def test_how_much_the_mean_reads_of_earlier_turns_is_the_recipes_choice(
    mean: Callable[..., Manifest], recipe: Recipe, tiny_weights: Path, copy: Callable[..., Path]
) -> None:
    """Trainings that read more and less of them can be averaged, and each is recorded with what it read."""
    of_all = copy(earlier_tokens=None)
    manifest = mean(tiny_weights, of_all, recipe=replace(recipe, settings=replace(recipe.settings, earlier_tokens=8)))
    assert manifest.view == {"max_tokens": 512, "earlier_tokens": 8}
    assert manifest.training["earlier_tokens"] == 8
    assert [each["earlier_tokens"] for each in manifest.training["averaged"]] == [32, None]


def test_a_window_that_the_encoder_has_no_room_for_is_refused(
    mean: Callable[..., Manifest], copy: Callable[..., Path], tiny_encoder: Path, tmp_path: Path
) -> None:
    """With the option that makes it fit, since no setting of the recipe does."""
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 128}), encoding="utf-8")
    weights = copy(encoder=str(folder), encoder_files_sha256=None)
    with pytest.raises(WeightsError, match=r"has 128 positions .* average with --window 128 at most"):
        mean(weights, window=256)


def test_tensors_that_only_some_hold_are_refused() -> None:
    """By name."""
    one = {"encoder.a.weight": torch.ones(1)}
    with pytest.raises(WeightsError, match=r"'encoder.b.weight' is in some"):
        averaged([one, {**one, "encoder.b.weight": torch.ones(1)}], [2.0, 2.0])
