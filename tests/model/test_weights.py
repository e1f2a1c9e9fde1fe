"""Hold weights to the encoder, the taxonomy and the bytes that they were saved with."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from demur.errors import WeightsError
from demur.model.encoders import sha256_of
from demur.model.runtime import TorchEngine
from demur.model.weights import Manifest, Weights, save_weights, shipped_weights
from demur.verdict import Thresholds

if TYPE_CHECKING:
    from demur.taxonomy import Taxonomy


@pytest.fixture
def copy(tiny_weights: Path, tmp_path: Path) -> Path:
    """Copy the tiny weights, to be spoilt."""
    return Path(shutil.copytree(tiny_weights, tmp_path / "weights"))


@pytest.fixture
def moved_encoder(tiny_encoder: Path, tmp_path: Path) -> Path:
    """Copy the encoder of the tiny weights."""
    return Path(shutil.copytree(tiny_encoder, tmp_path / "moved"))


def rewrite(folder: Path, **changes: Any) -> None:
    """Change fields of a manifest."""
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def failure(folder: Path, taxonomy: Taxonomy, encoder: str | None = None) -> str:
    """Load bad weights, ask for their network, and return the message."""
    with pytest.raises(WeightsError) as caught:
        _ = Weights.load(folder, taxonomy=taxonomy, encoder=encoder).network
    return str(caught.value)


def test_weights_come_back_as_they_were_saved(tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path) -> None:
    """Saved under the same manifest, the tensors are equal, the digest is that of the new file, no part is left."""
    manifest = Manifest.load(tiny_weights)
    tensors = load_file(tiny_weights / "weights.safetensors")
    save_weights(tmp_path / "new" / "folder", tensors, manifest)
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == [
        "manifest.json",
        "weights.safetensors",
    ]
    # Who may read the manifest may read the tensors.
    assert len({path.stat().st_mode for path in (tmp_path / "new" / "folder").iterdir()}) == 1
    again = Manifest.load(tmp_path / "new" / "folder")
    assert again.tensors_sha256 == sha256_of(tmp_path / "new" / "folder" / "weights.safetensors")
    assert again.model_copy(update={"tensors_sha256": manifest.tensors_sha256}) == manifest
    torch.testing.assert_close(load_file(tmp_path / "new" / "folder" / "weights.safetensors"), tensors, rtol=0, atol=0)
    one = Weights.load(tiny_weights, taxonomy=taxonomy).network.state_dict()
    torch.testing.assert_close(
        Weights.load(tmp_path / "new" / "folder", taxonomy=taxonomy).network.state_dict(), one, rtol=0, atol=0
    )


def test_loaded_weights_are_ready_to_judge(loaded_weights: Weights) -> None:
    """In eval mode, one label for each category, thresholds from the manifest."""
    assert not loaded_weights.network.training
    assert loaded_weights.network.kinds.classifier.out_features == len(loaded_weights.taxonomy)
    assert loaded_weights.thresholds == Thresholds(**loaded_weights.manifest.thresholds)


def test_loading_leaves_random_numbers_alone(tiny_weights: Path, taxonomy: Taxonomy) -> None:
    """Whoever has set a seed gets the numbers of that seed, as if nothing had been loaded."""
    before = torch.random.get_rng_state()
    TorchEngine(Weights.load(tiny_weights, taxonomy=taxonomy).network)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_encoder_may_lie_elsewhere(tiny_weights: Path, moved_encoder: Path, taxonomy: Taxonomy) -> None:
    """The same files in another folder are the same encoder."""
    weights = Weights.load(tiny_weights, taxonomy=taxonomy, encoder=str(moved_encoder))
    assert weights.encoder.folder == moved_encoder


def test_another_encoder_is_refused(tiny_weights: Path, tiny_encoder: Path, taxonomy: Taxonomy, tmp_path: Path) -> None:
    """Its tensors differ, so its digest does: both are shown, and what to do."""
    other = Path(shutil.copytree(tiny_encoder, tmp_path / "other"))
    tensors = load_file(other / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, other / "model.safetensors")
    message = failure(tiny_weights, taxonomy, str(other))
    assert sha256_of(tiny_encoder / "model.safetensors")[:12] in message
    assert sha256_of(other / "model.safetensors")[:12] in message
    assert "give that encoder, or train on this one" in message


@pytest.mark.parametrize(
    ("file", "was", "now"),
    [("tokenizer.json", '"lowercase": true', '"lowercase": false'), ("config.json", '"gelu"', '"relu"')],
)
def test_the_same_tensors_under_another_tokenizer_or_configuration_are_refused(
    tiny_weights: Path, moved_encoder: Path, taxonomy: Taxonomy, file: str, was: str, now: str
) -> None:
    """They would answer otherwise, and nobody would be told."""
    text = (moved_encoder / file).read_text(encoding="utf-8")
    assert was in text
    (moved_encoder / file).write_text(text.replace(was, now), encoding="utf-8")
    message = failure(tiny_weights, taxonomy, str(moved_encoder))
    assert "has its tensors, but another tokenizer.json or config.json" in message


def test_weights_of_before_tokenizer_and_configuration_counted_load(copy: Path, taxonomy: Taxonomy) -> None:
    """Their manifest says nothing of these, so nothing is compared."""
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    del manifest["encoder_files_sha256"]
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert Weights.load(copy, taxonomy=taxonomy).manifest.encoder_files_sha256 is None


def test_another_taxonomy_is_refused(tiny_weights: Path, taxonomy: Taxonomy) -> None:
    """A changed definition is another label contract, though the keys are the same."""
    first, *others = taxonomy.categories
    changed = replace(taxonomy, categories=(replace(first, definition="Something else."), *others))
    message = failure(tiny_weights, changed)
    assert "trained under another taxonomy" in message
    assert taxonomy.fingerprint[:12] in message
    assert changed.fingerprint[:12] in message


def test_a_missing_folder_is_said_to_hold_no_weights(taxonomy: Taxonomy, tmp_path: Path) -> None:
    """Missing, or empty."""
    for folder in (tmp_path / "none", tmp_path):
        assert failure(folder, taxonomy).startswith(f"no weights at {str(folder)!r}: manifest.json is missing")


def test_damaged_tensors_are_found_by_their_digest(copy: Path, taxonomy: Taxonomy) -> None:
    """One bit is turned over."""
    path = copy / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert f"{path} is damaged: its sha256 is {sha256_of(path)}" in failure(copy, taxonomy)


def test_missing_tensors_are_said_to_be_missing(copy: Path, taxonomy: Taxonomy) -> None:
    """The manifest alone is no weights."""
    (copy / "weights.safetensors").unlink()
    assert "beside its manifest" in failure(copy, taxonomy)


@pytest.mark.parametrize(
    ("content", "problem"),
    [("", "Invalid JSON"), ("{", "Invalid JSON"), ("[]", "should be an object"), ("{}", "encoder: Field required")],
)
def test_a_damaged_manifest_is_said_to_be_so(copy: Path, taxonomy: Taxonomy, content: str, problem: str) -> None:
    """Empty, cut off, of another shape, or without its fields."""
    (copy / "manifest.json").write_text(content, encoding="utf-8")
    message = failure(copy, taxonomy)
    assert message.startswith(f"{copy / 'manifest.json'} is damaged")
    assert problem in message


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": 2}, "has format 2; this version reads format 1"),
        ({"format": 99, "colour": "red"}, "has format 99; this version reads format 1"),
        ({"format": "x"}, "is damaged: format: Input should be a valid integer"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"thresholds": {"refusal": 1.5}}, "threshold refusal=1.5 is not a probability"),
        ({"thresholds": {"refused": 0.5}}, "'refused' is no threshold"),
        ({"held_out_kinds": [0.2, 1.5]}, "held_out_kinds.1: Input should be less than or equal to 1"),
        ({"held_out_prompts": {"refusal": [0], "compliance": []}}, "give each row its prompt"),
    ],
)
def test_a_manifest_that_cannot_be_meant_is_refused(
    copy: Path, taxonomy: Taxonomy, changes: dict[str, Any], problem: str
) -> None:
    """Another format, an unknown field, thresholds that are none."""
    rewrite(copy, **changes)
    assert problem in failure(copy, taxonomy)


def test_a_window_that_the_encoder_has_no_room_for_is_refused(copy: Path, taxonomy: Taxonomy) -> None:
    """Trainings refuse it, older ones did not: no text has to be that long for it to be found."""
    rewrite(copy, max_tokens=513)
    assert "has 512 positions" in failure(copy, taxonomy)


def test_weights_of_before_there_were_sets_of_kinds_load(copy: Path, taxonomy: Taxonomy) -> None:
    """Their manifest does not have the field, and says so by None."""
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    del manifest["held_out_kinds"]
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert Weights.load(copy, taxonomy=taxonomy).manifest.held_out_kinds is None


def test_a_head_of_another_width_does_not_fit(copy: Path, taxonomy: Taxonomy) -> None:
    """The manifest promises 15 kinds, the tensors hold 16."""
    rewrite(copy, categories=list(taxonomy.keys[:-1]))
    assert "is of shape (16" in failure(copy, taxonomy)


def test_a_head_that_is_missing_is_named(copy: Path, taxonomy: Taxonomy) -> None:
    """A file that is whole by its digest, and lacks a tensor."""
    tensors = load_file(copy / "weights.safetensors")
    del tensors["kinds.dense.bias"]
    save_weights(copy, tensors, Manifest.load(copy))
    assert "tensor 'kinds.dense.bias' is missing or unknown" in failure(copy, taxonomy)


def test_shipped_weights_lie_in_the_package() -> None:
    """Beside the code."""
    assert shipped_weights().parts[-2:] == ("demur", "weights")
