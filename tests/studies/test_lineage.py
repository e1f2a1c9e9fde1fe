"""What weights were kept from meeting, over all that they come of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from demur.model.beginning import Beginning
from demur.studies.lineage import avoided_files
from demur.studies.recipe import Recipe, Source
from demur.studies.training import train_recipe

if TYPE_CHECKING:
    from pathlib import Path

    from demur.taxonomy import Taxonomy

_OWN = {"gold.jsonl": "1", "pack.jsonl": "2"}


def _mean(*others: dict[str, str]) -> dict[str, Any]:
    return {"averaged": [{"training": {"avoided_files": each}} for each in (_OWN, *others)]}


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({}, {}),
        ({"avoided_files": _OWN}, _OWN),
        (_mean({"gold of theirs": "1"}), {"gold.jsonl": "1"}),
        (_mean({}), {}),
        ({"avoided_files": _OWN, "from_weights": None}, _OWN),
        ({"avoided_files": _OWN, "from_weights": {"avoided_files": {"other.jsonl": "2"}}}, {"pack.jsonl": "2"}),
        # Written before manifests recorded it.
        ({"avoided_files": _OWN, "from_weights": {"files": {}}}, {}),
        ({"avoided_files": _OWN, "teachers": [{"avoided_files": {"a": "1"}}]}, {"gold.jsonl": "1"}),
    ],
)  # fmt: skip
def test_what_was_avoided_is_what_all_that_weights_come_of_avoided(
    training: dict[str, Any], expected: dict[str, str]
) -> None:
    """Files are told by their digests, and named as the training itself names them."""
    assert avoided_files(training) == expected


def test_a_beginning_that_met_what_is_avoided_is_named(
    tiny_weights: Path, labelled_file: Path, taxonomy: Taxonomy, tmp_path: Path,
    tiny_settings: Any, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Going on from weights leaves in them what they met; files of one folder's and file's name are told apart."""
    beginning, names = Beginning.load(tiny_weights), []
    for folder in ("one", "other"):
        file = tmp_path / folder / "data" / "met.jsonl"
        file.parent.mkdir(parents=True)
        first, *_ = labelled_file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text(first, encoding="utf-8")
        names.append(f"{folder}/data/met.jsonl")
    recipe = Recipe(
        name="mine",
        sources=(Source(labelled_file.name),),
        avoid=tuple(names),
        settings=replace(tiny_settings, epochs=1),
    )
    manifest = train_recipe(
        recipe, tmp_path / "out", folders=[labelled_file.parent, tmp_path], taxonomy=taxonomy,
        encoder=beginning.encoder, beginning=beginning,
    )  # fmt: skip
    assert list(manifest.training["avoided_files"]) == names
    assert f"did not avoid the prompts of {', '.join(names)}" in caplog.text
    assert avoided_files(manifest.training) == {}
