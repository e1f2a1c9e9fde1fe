"""Training goes on from weights: it learns the new kind, keeps the others, and says where it came from."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.data.labelled import Labelled, read_labelled
from demur.errors import TrainingError
from demur.labelers.classifier import Analyzer
from demur.model.beginning import Beginning
from demur.model.weights import Manifest
from demur.studies.partition import partition, prompt_key
from demur.studies.recipe import Recipe, Source
from demur.studies.training import train, train_recipe

if TYPE_CHECKING:
    from pathlib import Path

    from demur.model.training import Step
    from demur.taxonomy import Taxonomy

SUBJECTS = ("bread", "lock", "story", "song", "image", "news", "law", "feelings")


def limit_row(subject: str) -> dict[str, Any]:
    """Refuse for the new kind's reason."""
    messages = [
        {"role": "user", "content": "Tell me more, please."},
        {"role": "assistant", "content": f"Unfortunately, you need to pay for more {subject}."},
    ]
    return {"leaf": "limit", "messages": messages, "verdict": "full", "labels": ["usage_limits"]}


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    """Write rows of the new kind, on all subjects but two."""
    path = tmp_path / "limits.jsonl"
    path.write_text("".join(json.dumps(limit_row(each)) + "\n" for each in SUBJECTS[:6]), encoding="utf-8")
    return path


def test_a_new_kind_is_learnt_and_the_others_are_kept(
    tiny_weights: Path, labelled_file: Path, limits: Path, wider_taxonomy: Taxonomy, tiny_settings: Any, tmp_path: Path
) -> None:
    """On subjects of the new kind that training did not see, and on prompts of old kinds that were held out."""
    beginning = Beginning.load(tiny_weights)
    out = tmp_path / "out"
    manifest = train(
        [labelled_file, limits], out, taxonomy=wider_taxonomy, encoder=beginning.encoder, settings=tiny_settings,
        beginning=beginning,
    )  # fmt: skip
    assert manifest.categories == wider_taxonomy.keys
    analyzer = Analyzer.load(out, taxonomy=wider_taxonomy)
    new = [_conversation(limit_row(subject)) for subject in SUBJECTS[6:]]
    assert [verdict.category for verdict in analyzer.label(new)] == ["usage_limits"] * 2
    parts = partition(read_labelled(labelled_file, wider_taxonomy), seed=66)
    held_out = [row for row in (*parts.tuning, *parts.measuring) if row.is_refusal]
    assert len(held_out) >= 3
    before, after = (
        [verdict.category for verdict in each.label([row.conversation for row in held_out])]
        for each in (Analyzer.load(tiny_weights), analyzer)
    )
    assert before == after == [row.labels[0] for row in held_out]


def _conversation(row: dict[str, Any]) -> Conversation:
    request, reply = (message["content"] for message in row["messages"])
    return Conversation.of(request, reply)


def test_the_manifest_says_where_training_began(
    tiny_weights: Path, labelled_file: Path, limits: Path, wider_taxonomy: Taxonomy, tiny_settings: Any, tmp_path: Path
) -> None:  # fmt: skip
    """Digest, kinds and files of the beginning; with 64 prompts, calibration and thresholds are those of before."""
    beginning = Beginning.load(tiny_weights)
    source = (Source(labelled_file.name), Source(limits.name))
    recipe = Recipe(name="mine", sources=source, settings=replace(tiny_settings, epochs=1, seed=5))
    manifest = train_recipe(
        recipe, tmp_path / "out", folders=[labelled_file.parent, tmp_path], taxonomy=wider_taxonomy,
        encoder=beginning.encoder, beginning=beginning,
    )  # fmt: skip
    before = Manifest.load(tiny_weights)
    assert manifest.training["from_weights"] == {
        "tensors_sha256": before.tensors_sha256,
        "taxonomy_fingerprint": before.taxonomy_fingerprint,
        "max_tokens": 512,
        "earlier_tokens": 32,
        "kinds_added": ["usage_limits"],
        "kinds_left_out": [],
        "is_calibration_kept": True,
        "files": before.training["files"],
        "avoided_files": {},
        "from_weights": None,
    }
    assert manifest.calibration == {"kept": True}
    assert manifest.thresholds == before.thresholds
    assert manifest.training["recipe"]["name"] == "mine"
    # The seed is 5; the prompts are parted by that of the beginning, and so is what the next training holds out.
    assert manifest.training["held_out_seed"] == 66
    assert Beginning.load(tmp_path / "out").seed == 66
    assert Beginning.load(tmp_path / "out").added(wider_taxonomy) == ()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"window": None}, r"calibrated for window 512, and .* have 64; .* set settings\.window to 512"),
        ({"earlier_tokens": None}, r"for earlier_tokens 32, and .* have null; .* set settings\.earlier_tokens to 32"),
    ],
)
def test_a_calibration_is_not_kept_for_another_view(
    tiny_weights: Path,
    labelled_file: Path,
    taxonomy: Taxonomy,
    tiny_settings: Any,
    tmp_path: Path,
    change: dict[str, Any],
    expected: str,
) -> None:
    """It was fitted to what the network says of texts of which it sees so much."""
    beginning = Beginning.load(tiny_weights)
    with pytest.raises(TrainingError, match=expected):
        train(
            [labelled_file], tmp_path / "out", taxonomy=taxonomy, encoder=beginning.encoder,
            settings=replace(tiny_settings, epochs=1, **change), beginning=beginning,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("training", "unsaid"),
    [
        ({}, "by which seed they held out prompts"),
        ({"met_prompts": []}, "by which seed they held out prompts"),
        ({"held_out_seed": 66}, "which prompts they met"),
    ],
)
def test_weights_of_unknown_prompts_are_no_beginning(
    tiny_weights: Path, labelled_file: Path, taxonomy: Taxonomy, tiny_settings: Any, tmp_path: Path,
    training: dict[str, Any], unsaid: str,
) -> None:  # fmt: skip
    """They may have been trained on what would be held out now; averages are refused for the same reasons."""
    whole = Beginning.load(tiny_weights)
    beginning = replace(whole, manifest=whole.manifest.model_copy(update={"training": training}))
    with pytest.raises(TrainingError, match=f"does not say {unsaid}: .*train from the beginning"):
        train(
            [labelled_file], tmp_path / "out", taxonomy=taxonomy, encoder=beginning.encoder,
            settings=replace(tiny_settings, epochs=1), beginning=beginning,
        )  # fmt: skip


def test_kinds_without_rows_are_warned_of(
    tiny_weights: Path, limits: Path, labelled_rows: list[dict[str, Any]], wider_taxonomy: Taxonomy,
    tiny_settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Answers alone beside the new kind: nothing rehearses the old ones."""
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(row) + "\n" for row in labelled_rows if not row["labels"]), encoding="utf-8")
    beginning = Beginning.load(tiny_weights)
    with caplog.at_level(logging.WARNING):
        train(
            [answers, limits], tmp_path / "out", taxonomy=wider_taxonomy, encoder=beginning.encoder,
            settings=replace(tiny_settings, epochs=1), beginning=beginning,
        )  # fmt: skip
    assert "no training row refuses for chain_of_command, illegal_activity, regulated_advice" in caplog.text
    assert "usage_limits" not in caplog.text


def test_a_checkpoint_of_another_beginning_is_refused(
    tiny_weights: Path, labelled_file: Path, taxonomy: Taxonomy, tiny_settings: Any, tmp_path: Path
) -> None:
    """A run that began with weights does not go on as one that began afresh."""

    def stop(step: Step) -> None:
        if step.done == 8:
            raise KeyboardInterrupt

    beginning = Beginning.load(tiny_weights)
    given: dict[str, Any] = {"taxonomy": taxonomy, "encoder": beginning.encoder, "settings": tiny_settings}
    with pytest.raises(KeyboardInterrupt):
        train([labelled_file], tmp_path / "out", **given, beginning=beginning, on_step=stop)
    with pytest.raises(TrainingError, match="checkpoint of another run"):
        train([labelled_file], tmp_path / "out", **given)


def row(name: str, **known: Any) -> Labelled:
    """Build a clearly labelled refusal."""
    usual: dict[str, Any] = {"outcome": "full", "is_refusal": True, "source": "hand"}
    return Labelled(Conversation.of(name, "no"), id=name, **{**usual, **known})


def test_synthetic_rows_tune_where_others_are_few_and_never_measure() -> None:
    """Beside 20 clear prompts, some 6 % of 400 synthetic ones tune: 24, with a standard deviation of 4.7."""
    real = [row(f"real {i}") for i in range(20)]
    made = [row(f"made {i}", source="synthetic") for i in range(400)]
    thin, usual = partition([*real, *made], enough=21), partition([*real, *made], enough=20)
    assert (thin.is_thin, usual.is_thin) == (True, False)
    tuning = [each for each in thin.tuning if each.source == "synthetic"]
    assert len(tuning) == pytest.approx(24, abs=15)
    assert thin.measuring == usual.measuring
    assert {each.source for each in (*usual.tuning, *usual.measuring)} <= {"hand"}
    trained_on = {prompt_key(each.conversation) for each in thin.training}
    assert not trained_on & {prompt_key(each.conversation) for each in tuning}
    assert len(thin.training) + len(thin.tuning) + len(thin.measuring) == 420


@pytest.mark.parametrize("known", [{"is_weak": True}, {"outcome": None}, {"origin_prompt": "real 1"}])
def test_unclear_synthetic_rows_do_not_tune(known: dict[str, Any]) -> None:
    """Nor do variants."""
    made = [row(f"made {i}", source="synthetic", **known) for i in range(300)]
    parts = partition(made, enough=1000)
    assert (len(parts.training), parts.tuning, parts.measuring) == (300, (), ())
