"""Weights learn from the mean of others, also on rows without a label; nothing that a teacher met measures them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from demur.conversation import Conversation
from demur.data.labelled import read_labelled
from demur.errors import TrainingError, WeightsError
from demur.labelers.classifier import Analyzer
from demur.model.beginning import Beginning
from demur.model.encoders import Encoder
from demur.model.weights import Manifest
from demur.studies import distillation
from demur.studies.distillation import Teachers
from demur.studies.lineage import avoided_files
from demur.studies.recipe import Recipe, Source
from demur.studies.training import train_recipe
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from demur.model.settings import TrainingSettings
    from demur.taxonomy import Taxonomy
    from tests.conftest import Demur


@pytest.fixture
def unlabelled_file(labelled_rows: list[dict[str, Any]], labelled_file: Path) -> Path:
    """Write the hand-made replies under prompts of their own, without a label, beside the labelled ones."""
    path = labelled_file.parent / "unlabelled.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(labelled_rows):
            messages = [{"role": "user", "content": f"Question {number}"}, row["messages"][-1]]
            file.write(json.dumps({"id": f"u{number}", "messages": messages}) + "\n")
    return path


@pytest.fixture
def recipe(labelled_file: Path, unlabelled_file: Path, tiny_settings: TrainingSettings) -> Recipe:
    """Train on labelled rows and on others, under the seed of the tiny weights."""
    sources = (Source(labelled_file.name), Source(unlabelled_file.name))
    return Recipe(name="mine", sources=sources, settings=tiny_settings)


@pytest.fixture
def student(
    recipe: Recipe, labelled_file: Path, tiny_encoder: Path, tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path
) -> Callable[..., Manifest]:
    """Return what trains into `tmp_path / "student"`, by the tiny weights."""

    def run(
        *, epochs: int = 1, sources: tuple[Source, ...] = recipe.sources, avoid: tuple[str, ...] = (), **given: Any
    ) -> Manifest:
        changed = replace(recipe, sources=sources, avoid=avoid, settings=replace(recipe.settings, epochs=epochs))
        options = {"teachers": [tiny_weights], "taxonomy": taxonomy, "encoder": Encoder.find(str(tiny_encoder))}
        return train_recipe(changed, tmp_path / "student", folders=[labelled_file.parent], **{**options, **given})

    return run


class Said:
    """Answer from a table, and count what is asked."""

    def __init__(self, taxonomy: Taxonomy, table: dict[str, tuple[float, tuple[float, ...]]]) -> None:
        """Take probabilities by reply."""
        self.taxonomy, self.table, self.asked = taxonomy, table, list[str]()

    def label(self, conversations: Sequence[Conversation]) -> Iterator[Verdict]:
        """Yield a verdict for each; none where the reply is empty."""
        for conversation in conversations:
            self.asked.append(conversation.reply)
            known = self.table.get(conversation.reply)
            if known is None:
                yield Verdict.unscored("empty_reply")
            else:
                yield Verdict("full", known[0], category_probabilities=known[1])


def test_a_student_learns_what_its_teacher_thinks_of_rows_without_a_label(
    student: Callable[..., Manifest],
    labelled_rows: list[dict[str, Any]],
    tiny_weights: Path,
    unlabelled_file: Path,
    taxonomy: Taxonomy,
    tmp_path: Path,
) -> None:
    """From nothing but opinions: the labelled rows only choose the epoch and calibrate."""
    # Of the four rows that choose the epoch, two have kinds, and would choose by chance.
    bare = [{name: value for name, value in row.items() if name != "labels"} for row in labelled_rows]
    kindless = unlabelled_file.with_name("kindless.jsonl")
    kindless.write_text("".join(json.dumps(row) + "\n" for row in bare), encoding="utf-8")
    manifest = student(epochs=12, sources=(Source(kindless.name, weight=0.0), Source(unlabelled_file.name)))
    asked = [row.conversation for row in read_labelled(unlabelled_file, taxonomy)]
    assert manifest.training["rows"]["training"] == {"unknown": len(asked)}
    learnt, thought = (
        np.array([verdict.is_refusal for verdict in Analyzer.load(folder).label(asked)])
        for folder in (tmp_path / "student", tiny_weights)
    )
    assert 0.2 < thought.mean() < 0.8
    assert (learnt == thought).mean() > 0.8


def test_the_manifest_names_teachers_and_nothing_of_them_stays(
    student: Callable[..., Manifest], tiny_weights: Path, tmp_path: Path
) -> None:
    """By digest; their answers and the checkpoint are gone once the weights are written."""
    manifest = student()
    teacher = Manifest.load(tiny_weights)
    (record,) = manifest.training["teachers"]
    assert record["weights_sha256"] == teacher.tensors_sha256
    assert manifest.training["settings"]["teacher_share"] == 0.7
    assert sorted(path.name for path in (tmp_path / "student").iterdir() if path.suffix != ".lock") == [
        "manifest.json", "weights.safetensors",
    ]  # fmt: skip


def test_the_opinion_is_the_logarithmic_pool(tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path) -> None:
    """Odds 9 and 1 have the mean 3, so P = .75; kinds of .8, .2 and .2, .8 meet at a half each; no reply, none."""
    rest = (0.0,) * (len(taxonomy) - 2)
    one_says, other_says = ((0.9, (0.8, 0.2, *rest)), (0.5, (0.2, 0.8, *rest)))
    voices: Any = (Said(taxonomy, {"No.": one_says}), Said(taxonomy, {"No.": other_says}))
    one = Manifest.load(tiny_weights)
    other = one.model_copy(update={"tensors_sha256": "0" * 64})
    teachers = Teachers((one, other), voices)
    rows = [Conversation.of("Why?", "No."), Conversation.of("Why?", "")]
    first, second = teachers.opinions(rows, kept_in=tmp_path)
    assert teachers.opinions([], kept_in=tmp_path) == []
    assert second is None
    assert first is not None
    assert first.refusal == pytest.approx(0.75)
    assert first.kinds[:2] == pytest.approx((0.5, 0.5), abs=1e-4)


def test_what_was_answered_is_not_asked_again(
    tiny_weights: Path, recipe: Recipe, taxonomy: Taxonomy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in the third of three parts: the second time, in another order, one row is asked about."""
    monkeypatch.setattr(distillation, "_CHUNK", 2)
    monkeypatch.setattr(distillation, "_STEP", 1)
    even = (1 / len(taxonomy),) * len(taxonomy)
    rows = [Conversation.of("Why?", f"No. {number}") for number in range(6)]
    voice = Said(taxonomy, {row.reply: (0.1 * (number + 1), even) for number, row in enumerate(rows)})
    monkeypatch.setattr(Analyzer, "load", lambda *_, **__: voice)
    teachers = Teachers.load([tiny_weights], recipe, taxonomy)

    def stop(done: int, _total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        teachers.opinions(rows, kept_in=tmp_path, on_answer=stop)
    voice.asked.clear()
    found = teachers.opinions(rows[::-1], kept_in=tmp_path)
    assert voice.asked == ["No. 5"]
    assert [opinion.refusal for opinion in found if opinion] == pytest.approx([0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


def test_two_windows_of_the_same_weights_are_two_teachers(
    copy: Callable[..., Path], recipe: Recipe, tiny_weights: Path, taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """Each is asked, though the answers of the other lie in the same folder, and the record tells them apart."""
    narrow = copy(max_tokens=64)
    one, other = Teachers.load([tiny_weights, narrow], recipe, taxonomy).manifests
    assert one.tensors_sha256 == other.tensors_sha256
    assert [each["max_tokens"] for each in Teachers((one, other), ()).record] == [one.max_tokens, 64]
    assert {each["earlier_tokens"] for each in Teachers((one, other), ()).record} == {32}
    even = (1 / len(taxonomy),) * len(taxonomy)
    for manifest, refusal in ((one, 0.9), (other, 0.2)):
        voice: Any = Said(taxonomy, {"No.": (refusal, even)})
        (opinion,) = Teachers((manifest,), (voice,)).opinions([Conversation.of("Why?", "No.")], kept_in=tmp_path)
        assert opinion is not None
        assert opinion.refusal == pytest.approx(refusal)


def test_answers_that_are_damaged_are_said(
    tiny_weights: Path, recipe: Recipe, taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """What to remove is named."""
    teachers = Teachers.load([tiny_weights], recipe, taxonomy)
    rows = [Conversation.of("Why?", "No.")]
    teachers.opinions(rows, kept_in=tmp_path)
    (kept,) = tmp_path.glob("teacher-*.npz")
    kept.write_bytes(kept.read_bytes()[:-40])
    with pytest.raises(TrainingError, match="damaged") as raised:
        teachers.opinions(rows, kept_in=tmp_path)
    assert str(kept) in str(raised.value)


def test_a_teacher_that_held_out_other_prompts_is_refused(
    recipe: Recipe, tiny_weights: Path, taxonomy: Taxonomy
) -> None:
    """It may have been trained on what is to measure the student."""
    with pytest.raises(WeightsError, match="held out prompts by seed 66"):
        Teachers.load([tiny_weights], replace(recipe, held_out_seed=5), taxonomy)


def test_prompts_that_a_teacher_met_do_not_measure_the_student(
    copy: Callable[..., Path],
    student: Callable[..., Manifest],
    tiny_weights: Path,
    labelled_file: Path,
    taxonomy: Taxonomy,
) -> None:
    """All that the student would hold out was met: nothing is left to choose the epoch by, and that is said."""
    from demur.studies.partition import _digest, prompt_key

    training = Manifest.load(tiny_weights).training
    met = [_digest(prompt_key(row.conversation)) for row in read_labelled(labelled_file, taxonomy)]
    with pytest.raises(TrainingError, match="no row is held out"):
        student(teachers=[copy(training={**training, "met_prompts": met})])


def test_teachers_of_another_taxonomy_and_the_same_one_twice_are_refused(
    tiny_weights: Path, recipe: Recipe, taxonomy: Taxonomy, wider_taxonomy: Taxonomy
) -> None:
    """Their kinds would be others; and twice the same is not a mean."""
    with pytest.raises(WeightsError, match="another taxonomy"):
        Teachers.load([tiny_weights], recipe, wider_taxonomy)
    with pytest.raises(WeightsError, match="give each once"):
        Teachers.load([tiny_weights, tiny_weights], recipe, taxonomy)


def test_weights_go_on_with_themselves_as_the_teacher(
    student: Callable[..., Manifest],
    tiny_weights: Path,
    labelled_file: Path,
    taxonomy: Taxonomy,
    copy: Callable[..., Path],
) -> None:
    """So they learn without forgetting; what either of the two met measures nothing."""
    from demur.studies.partition import _digest, prompt_key

    first, other, *_ = {_digest(prompt_key(row.conversation)) for row in read_labelled(labelled_file, taxonomy)}
    before = Beginning.load(tiny_weights)
    training = before.manifest.training
    teacher = copy(training={**training, "met_prompts": [first]})
    manifest = before.manifest.model_copy(update={"training": {**training, "met_prompts": [other]}})
    trained = student(beginning=replace(before, manifest=manifest), teachers=[teacher])
    assert trained.training["from_weights"]["tensors_sha256"] == manifest.tensors_sha256
    assert [each["weights_sha256"] for each in trained.training["teachers"]] == [manifest.tensors_sha256]
    assert {first, other} <= set(trained.met_prompts or ())


def test_going_on_from_weights_that_held_out_other_prompts_than_the_teachers_is_refused(
    student: Callable[..., Manifest], tiny_weights: Path
) -> None:
    """Their rows would measure what comes of the teachers."""
    beginning = Beginning.load(tiny_weights)
    manifest = beginning.manifest
    training = {**manifest.training, "held_out_seed": 7}
    other = replace(beginning, manifest=manifest.model_copy(update={"training": training}))
    with pytest.raises(TrainingError, match="by seed 7"):
        student(beginning=other)


def test_the_command_takes_teachers(
    demur: Demur, recipe: Recipe, labelled_file: Path, tiny_weights: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """With a recipe; without one it says what is lacking."""
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(recipe.to_json()))
    words = ("train", "--teacher", tiny_weights, "--encoder", tiny_encoder, "--out", tmp_path / "weights")
    code, printed, errors = demur(*words, "--recipe", path, "--data", labelled_file.parent, "--epochs", "1")
    assert code == 0, errors
    assert "trained on" in printed
    code, _, errors = demur(*words, labelled_file)
    assert code == 2
    assert "--recipe" in errors


def test_the_command_takes_shipped_weights_for_a_teacher(
    demur: Demur, recipe: Recipe, labelled_file: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """Those are of another seed than this recipe, which is what is said of them."""
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(recipe.to_json()))
    words = ("train", "--recipe", path, "--data", labelled_file.parent, "--teacher", "shipped", "--out", tmp_path / "w")
    code, _, errors = demur(*words, "--encoder", tiny_encoder)
    assert code == 1
    assert "held out prompts by seed 42" in errors


def test_the_command_goes_on_from_weights_that_teach_themselves(
    demur: Demur, recipe: Recipe, labelled_file: Path, tiny_weights: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    """Both options at once."""
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(recipe.to_json()))
    words = ("train", "--recipe", path, "--data", labelled_file.parent, "--encoder", tiny_encoder, "--epochs", "1")
    code, _, errors = demur(*words, "--from-weights", tiny_weights, "--teacher", tiny_weights, "--out", tmp_path / "w")
    assert code == 0, errors
    assert {"from_weights", "teachers"} <= Manifest.load(tmp_path / "w").training.keys()


def test_rows_without_a_label_are_no_training_rows_without_teachers(
    student: Callable[..., Manifest], labelled_file: Path, caplog: pytest.LogCaptureFixture, taxonomy: Taxonomy
) -> None:
    """They are neither counted nor passed over in silence."""
    n_labelled = len(read_labelled(labelled_file, taxonomy))
    manifest = student(teachers=[])
    rows = manifest.training["rows"]
    assert sum(rows["training"].values()) == n_labelled - rows["tuning"] - rows["measuring"]
    assert f"{n_labelled} of {sum(rows['training'].values()) + n_labelled} training rows have no label" in caplog.text


def test_a_teacher_that_met_what_is_avoided_is_named(
    student: Callable[..., Manifest], labelled_file: Path, tiny_weights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By its digest, and the file that it did not avoid; what its student avoided is not all that it may know."""
    avoided = labelled_file.with_name("avoided.jsonl")
    first, *_ = labelled_file.read_text(encoding="utf-8").splitlines(keepends=True)
    avoided.write_text(first, encoding="utf-8")
    manifest = student(avoid=(avoided.name,))
    assert f"weights {Manifest.load(tiny_weights).tensors_sha256[:12]}" in caplog.text
    assert [name for name in manifest.training["avoided_files"] if avoided.name in name]
    assert avoided_files(manifest.training) == {}
    assert avoided.name in caplog.text


def test_a_stop_among_the_teachers_says_what_goes_on(student: Callable[..., Manifest], tmp_path: Path) -> None:
    """Their answers are kept, and what was there of former teachers goes once the weights are written."""

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        student(on_answer=stop)
    assert "the same command goes on" in raised.value.__notes__[0]
    (tmp_path / "student" / "teacher-former.npz").write_bytes(b"")
    student()
    assert not list((tmp_path / "student").glob("teacher-*"))
