"""Hold the training study to its data: which prompt stands where, and what the manifest says of it."""

from __future__ import annotations

import json
import math
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from demur.conversation import Conversation, Turn
from demur.data.labelled import Labelled, read_labelled
from demur.errors import OutputError, SourceError, TrainingError, WeightsError
from demur.labelers.classifier import Analyzer
from demur.model import training
from demur.model.encoders import Encoder, sha256_of
from demur.model.settings import TrainingSettings
from demur.model.targets import Example
from demur.model.weights import Manifest
from demur.studies import finishing
from demur.studies.held_out import held_out_kinds, held_out_probabilities
from demur.studies.holding import held
from demur.studies.lesson import Lesson
from demur.studies.partition import Partition, partition, prompt_key
from demur.studies.recipe import Balance, Recipe, Source
from demur.studies.training import train, train_recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from demur.model.training import Step
    from demur.taxonomy import Taxonomy


def row(request: str, reply: str = "no", **known: Any) -> Labelled:
    """Build a clearly labelled refusal from a source of real replies."""
    usual: dict[str, Any] = {"outcome": "full", "is_refusal": True, "labels": ("privacy",), "source": "hand"}
    return Labelled(conversation=Conversation.of(request, reply), id=request, **{**usual, **known})


ROWS = [row(f"request {i}", reply) for i in range(400) for reply in ("no", "never")]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSONL."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


@pytest.fixture
def trained(taxonomy: Taxonomy, tiny_encoder: Path, tiny_settings: TrainingSettings) -> Callable[..., Manifest]:
    """Return what trains on files into a folder, for two epochs."""

    def run(files: list[Path], out: Path, **given: Any) -> Manifest:
        settings = given.pop("settings", replace(tiny_settings, epochs=2))
        encoder = Encoder.find(str(tiny_encoder))
        return train(files, out, taxonomy=taxonomy, encoder=encoder, settings=settings, **given)

    return run


# Prompts -------------------------------------------------------------------------------------------------------------


def test_a_prompt_is_the_first_request_with_case_and_space_folded() -> None:
    """What follows in the conversation does not make it another prompt."""
    turns = (Turn("system", "s"), Turn("user", " How\n ARE  you?"), Turn("assistant", "a"), Turn("user", "b"))
    assert prompt_key(Conversation((*turns, Turn("assistant", "c")))) == "how are you?"


def test_a_reply_without_a_request_is_its_own_prompt() -> None:
    """There is nothing else to tell it by."""
    assert prompt_key(Conversation((Turn("assistant", "Sorry, NO"),))) == "sorry, no"


def test_replies_to_requests_that_were_lost_are_prompts_of_their_own() -> None:
    """A set whose user turns are blank is no set of one prompt."""
    keys = {prompt_key(Conversation.of(" ", reply)) for reply in ("No.", "Yes.", "yes. ")}
    assert len(keys) == 2


def test_no_prompt_stands_on_two_sides() -> None:
    """400 prompts of two replies each: about 12 % of them, drawn by prompt, are held out, in equal halves."""
    parts = partition(ROWS)
    prompts = [
        {prompt_key(each.conversation) for each in side} for side in (parts.training, parts.tuning, parts.measuring)
    ]
    assert not prompts[0] & prompts[1]
    assert not prompts[0] & prompts[2]
    assert not prompts[1] & prompts[2]
    assert sum(map(len, prompts)) == 400
    # Binomial(400, .06): 24, with a standard deviation of 4.7.
    assert len(prompts[1]) == pytest.approx(24, abs=15)
    assert len(prompts[2]) == pytest.approx(24, abs=15)


def test_sides_follow_from_prompt_and_seed_alone() -> None:
    """Turning the rows around moves none of them; another seed does."""
    forth, back, other = partition(ROWS), partition(ROWS[::-1]), partition(ROWS, seed=1)
    assert {each.id for each in forth.tuning} == {each.id for each in back.tuning}
    assert {each.id for each in forth.tuning} != {each.id for each in other.tuning}


def test_every_row_is_on_a_side_or_counted() -> None:
    """Of rows avoided, repeated or too unclear to measure by, none is lost without a count."""
    unclear = [row(f"request {i}", "weakly", is_weak=True) for i in range(400)]
    rows = [*ROWS, *unclear, *ROWS[:50]]
    parts = partition(rows, avoid=ROWS[:20])
    on_a_side = len(parts.training) + len(parts.tuning) + len(parts.measuring)
    assert on_a_side + parts.n_avoided + parts.n_repeated + parts.n_withheld == len(rows)
    assert parts.n_withheld > 0


@pytest.mark.parametrize(
    "unclear", [{"is_weak": True}, {"outcome": None}, {"source": "synthetic"}, {"is_drawn_hard": True}]
)
def test_only_clear_labels_on_real_replies_are_held_out(unclear: dict[str, Any]) -> None:
    """Weak, unknown, synthetic or hard-drawn rows say little of how the gate does: their prompts all train."""
    parts = partition([row(f"request {i}", **unclear) for i in range(200)])
    assert (len(parts.training), parts.tuning, parts.measuring) == (200, (), ())


def test_a_prompt_that_was_met_without_a_clear_row_is_not_held_out_later() -> None:
    """Weak rows trained the first time; the clear ones that came since are none to measure by, and train, too."""
    weak, clear = [row(f"request {i}", is_weak=True) for i in range(400)], [row(f"request {i}") for i in range(800)]
    first = partition(weak)
    later = partition(clear, met=first.met)
    old = {each.id for each in weak}
    assert {each.id for each in partition(clear).measuring} & old
    assert not {each.id for each in (*later.tuning, *later.measuring)} & old
    assert len(later.measuring) == sum(each.id not in old for each in partition(clear).measuring)
    assert set(later.met) == set(first.met)
    # Of 400 prompts, those that the seed would have held out.
    assert len(first.met) == pytest.approx(48, abs=25)


def test_prompts_of_no_weight_were_not_met() -> None:
    """They take no part in training."""
    assert partition([row(f"request {i}", is_weak=True, weight=0.0) for i in range(400)]).met == ()


def test_prompts_to_be_avoided_are_on_no_side() -> None:
    """With every reply to them, however the prompt is written; the rows that were left out are counted."""
    parts = partition(ROWS, avoid=[row("  REQUEST 7 ", "another reply")])
    assert parts.n_avoided == 2
    sides = (*parts.training, *parts.tuning, *parts.measuring)
    assert "request 7" not in {prompt_key(each.conversation) for each in sides}


def test_a_greeting_before_a_request_makes_it_no_other_one() -> None:
    """What is evaluated is the reply to the last request, and it may be trained on in a longer conversation, too."""
    asked = "How do I open the door of my own house without a key?"
    greeted = (Turn("user", "Hi"), Turn("assistant", "Hello!"), Turn("user", asked.upper()), Turn("assistant", "No."))
    longer = (*greeted, Turn("user", "Why?"), Turn("assistant", "No."))
    rows = [row("another"), *(replace(row("x"), conversation=Conversation(turns)) for turns in (greeted, longer))]
    assert partition(rows, avoid=[row(asked)]).n_avoided == 2
    # Short ones go on with anything.
    assert partition(rows, avoid=[row("Why?")]).n_avoided == 0


def test_a_repeated_conversation_keeps_its_fullest_label() -> None:
    """A weak label, a bare one, one with a kind: the last is the fullest, wherever it stands."""
    weak = row("a", is_weak=True, labels=())
    bare = row("a", labels=())
    full = row("a")
    for rows in ([weak, bare, full], [full, bare, weak], [bare, full, weak]):
        parts = partition(rows)
        assert (*parts.training, *parts.tuning, *parts.measuring) == (full,)
        assert parts.n_repeated == 2


def test_labels_that_contradict_each_other_are_counted() -> None:
    """The first of two that are equally full counts."""
    first, other = row("a"), row("a", outcome="none", is_refusal=False, labels=("privacy",))
    parts = partition([first, other, row("b"), row("b")])
    assert first in (*parts.training, *parts.tuning, *parts.measuring)
    assert (parts.n_repeated, parts.n_contradicted) == (2, 1)


def test_a_row_that_weighs_nothing_takes_no_row_from_another_source() -> None:
    """Whichever comes first."""
    left_out, kept = row("a", weight=0.0), row("a", weight=1.0)
    for rows in ([left_out, kept], [kept, left_out]):
        parts = partition(rows)
        assert (*parts.training, *parts.tuning, *parts.measuring) == (kept,)


# Training ------------------------------------------------------------------------------------------------------------


def test_the_manifest_tells_how_the_weights_were_made(
    tiny_weights: Path, tiny_encoder: Path, labelled_file: Path, taxonomy: Taxonomy, tiny_settings: TrainingSettings
) -> None:
    """Encoder, taxonomy, window, data by digest and count, settings, and one entry for each epoch."""
    manifest = Manifest.load(tiny_weights)
    assert manifest.encoder_sha256 == sha256_of(tiny_encoder / "model.safetensors")
    assert manifest.taxonomy_fingerprint == taxonomy.fingerprint
    assert manifest.categories == taxonomy.keys
    assert (manifest.max_tokens, manifest.low_rank_scale) == (512, tiny_settings.low_rank_scale)
    digests = manifest.training["files"]
    assert digests == {f"{labelled_file.parent.name}/{labelled_file.name}": sha256_of(labelled_file)}
    assert manifest.training["settings"]["learning_rate"] == tiny_settings.learning_rate
    assert [entry["epoch"] for entry in manifest.training["history"]] == list(range(1, 13))
    rows = manifest.training["rows"]
    assert sum(rows["training"].values()) + rows["tuning"] + rows["measuring"] == 64
    assert rows["tuning"] == manifest.calibration["n_rows"]
    assert manifest.thresholds["refusal"] == 0.5


def test_held_out_probabilities_are_the_analyzers_own(
    tiny_weights: Path, labelled_file: Path, taxonomy: Taxonomy, tiny_settings: TrainingSettings, analyzer: Analyzer
) -> None:
    """On the rows that only measure: as the loaded analyzer gives them, to the four digits that are kept."""
    measuring = partition(read_labelled(labelled_file, taxonomy), seed=tiny_settings.seed).measuring
    manifest = Manifest.load(tiny_weights)
    assert manifest.held_out_prompts is not None
    for side, refuses in (("refusal", True), ("compliance", False)):
        conversations = [each.conversation for each in measuring if each.is_refusal is refuses]
        expected = sorted(verdict.refusal_probability for verdict in analyzer.label(conversations))
        assert len(expected) >= 2
        np.testing.assert_allclose(manifest.held_out[side], expected, atol=1e-4)
        # No two of the hand-made rows that measure share a prompt.
        assert len(set(manifest.held_out_prompts[side])) == len(expected)


def test_held_out_probabilities_are_rounded_down() -> None:
    """What lies .00004 below the threshold is counted below it, as in use: .4999, not .5000."""
    odds = np.log(np.array([0.49996, 0.5000001, 0.99996]) / (1 - np.array([0.49996, 0.5000001, 0.99996])))
    rows = [Example("a", "a", 1.0)] * 3
    prompts = ["one", "other", "one"]
    found, of_prompt = held_out_probabilities(odds, rows, prompts)
    assert found == {"refusal": [0.4999, 0.5, 0.9999], "compliance": []}
    assert of_prompt == {"refusal": [0, 1, 0], "compliance": []}


def test_held_out_kinds_are_the_analyzers_own(
    tiny_weights: Path, labelled_file: Path, taxonomy: Taxonomy, tiny_settings: TrainingSettings, analyzer: Analyzer
) -> None:
    """Of the refusals that only measure: as the loaded analyzer gives them, rounded down to six digits."""
    measuring = partition(read_labelled(labelled_file, taxonomy), seed=tiny_settings.seed).measuring
    refusals = [each for each in measuring if each.labels]
    verdicts = list(analyzer.label(each.conversation for each in refusals))
    expected = sorted(
        verdict.category_probabilities[taxonomy.index(each.labels[0])]
        for each, verdict in zip(refusals, verdicts, strict=True)
    )
    assert len(expected) >= 2
    assert Manifest.load(tiny_weights).held_out_kinds == pytest.approx(expected, abs=1e-5)


def test_scores_of_kinds_are_those_of_the_main_kind_where_there_is_one(taxonomy: Taxonomy) -> None:
    """No kind, or two that readers name equally often: left out. Never above the probability itself."""
    main, second = np.eye(len(taxonomy))[[0, 3]]
    rows = [
        Example("[CLS] a", "a", 1.0, kinds=tuple(main)),
        Example("[CLS] a", "a", 1.0, kinds=tuple(0.7 * main + 0.3 * second)),
        Example("[CLS] a", "a", 1.0, kinds=tuple(0.5 * main + 0.5 * second)),
        Example("[CLS] a", "a", 0.0),
    ]
    logits = np.tile(np.linspace(1.0, 0.0, len(taxonomy)), (4, 1))
    probability = math.e / np.exp(logits[0]).sum()
    scores = held_out_kinds(logits, rows)
    assert len(scores) == 2
    assert all(probability - 2e-6 < score <= probability for score in scores)
    assert held_out_kinds(logits[2:], rows[2:]) == []
    assert held_out_kinds(logits[:0], []) == []


def test_only_training_rows_of_a_file_are_read(
    trained: Callable[..., Manifest], labelled_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Where rows name a split, `dev` stays out; rows without one are read."""
    rows = [{**each, "split": ("train", "dev", None)[i % 3]} for i, each in enumerate(labelled_rows)]
    manifest = trained([write(tmp_path / "split.jsonl", rows)], tmp_path / "out")
    counts = manifest.training["rows"]
    assert sum(counts["training"].values()) + counts["tuning"] + counts["measuring"] == 43  # 64 less every third


def test_files_to_be_avoided_are_named_and_counted(
    trained: Callable[..., Manifest], labelled_file: Path, labelled_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Ten prompts, one row each; of a file to be avoided, every split is."""
    avoid = write(tmp_path / "gold.jsonl", [{**each, "split": "dev"} for each in labelled_rows[20:30]])
    manifest = trained([labelled_file], tmp_path / "out", avoid=[avoid])
    assert manifest.training["avoided_files"] == {f"{tmp_path.name}/gold.jsonl": sha256_of(avoid)}
    assert manifest.training["rows"]["avoided"] == 10


def test_a_stopped_training_ends_up_with_the_same_weights(
    trained: Callable[..., Manifest], labelled_file: Path, tmp_path: Path
) -> None:
    """Byte for byte, tensors and manifest; the checkpoint is gone in the end."""

    def stop(step: Step) -> None:
        if step.done == 9:
            raise KeyboardInterrupt

    trained([labelled_file], tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        trained([labelled_file], tmp_path / "stopped", on_step=stop)
    assert [path.name for path in (tmp_path / "stopped").iterdir()] == ["checkpoint.pt"]
    trained([labelled_file], tmp_path / "stopped")
    whole, stopped = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "stopped")
    )
    assert whole.keys() == {"manifest.json", "weights.safetensors"}
    assert stopped == whole


def test_whole_layers_can_be_trained(
    trained: Callable[..., Manifest], labelled_file: Path, tiny_settings: TrainingSettings, tmp_path: Path
) -> None:
    """Rank 0; what comes out loads and judges."""
    settings = replace(tiny_settings, epochs=1, rank=0, learning_rate=1e-3)
    trained([labelled_file], tmp_path / "out", settings=settings)
    (verdict,) = Analyzer.load(tmp_path / "out").label(["<|user|>Why?<|assistant|>Sorry, no."])
    assert verdict.is_scored


def test_weights_that_16_bits_do_not_hold_are_not_saved(
    trained: Callable[..., Manifest], labelled_file: Path, tiny_settings: TrainingSettings, tmp_path: Path
) -> None:
    """After its one step, layers of some 10⁵ are beyond 65,504, and finite in 32 bits, where layer norms help."""
    settings = replace(tiny_settings, epochs=1, batch_size=32, rank=0, learning_rate=1e5)
    with pytest.raises(TrainingError, match=r"training diverged: encoder\..* no numbers in 16 bits"):
        trained([labelled_file], tmp_path / "out", settings=settings)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["checkpoint.pt"]


@pytest.mark.parametrize("verdict", ["full", "none"])
def test_rows_of_one_side_alone_train_no_gate(
    trained: Callable[..., Manifest], labelled_rows: list[dict[str, Any]], tmp_path: Path, verdict: str
) -> None:
    """Only refusals, or only answers."""
    rows = [each for each in labelled_rows if each["verdict"] == verdict]
    with pytest.raises(TrainingError, match="the gate needs refusals and other replies"):
        trained([write(tmp_path / "rows.jsonl", rows)], tmp_path / "out")


def test_too_few_rows_are_said_to_be_too_few(
    trained: Callable[..., Manifest], labelled_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Four rows are fewer than one batch of eight."""
    rows = [*labelled_rows[:2], *labelled_rows[-2:]]
    with pytest.raises(TrainingError, match="fewer than one batch of 8"):
        trained([write(tmp_path / "rows.jsonl", rows)], tmp_path / "out")


def test_rows_that_cannot_be_held_out_are_too_little(
    trained: Callable[..., Manifest], labelled_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """All of them weak: nothing could choose the epoch or calibrate."""
    rows = [{**each, "weak": True} for each in labelled_rows]
    with pytest.raises(TrainingError, match="no row is held out"):
        trained([write(tmp_path / "rows.jsonl", rows)], tmp_path / "out")


def test_a_place_that_cannot_be_written_to_is_found_before_training(
    trained: Callable[..., Manifest], labelled_file: Path, tmp_path: Path
) -> None:
    """Not when the first checkpoint is due."""
    (tmp_path / "file").touch()
    steps: list[Step] = []
    with pytest.raises(OutputError, match="cannot write to"):
        trained([labelled_file], tmp_path / "file", on_step=steps.append)
    assert steps == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder here that nobody can write to")
def test_a_folder_that_is_there_and_cannot_be_written_to_is_found_before_training(
    trained: Callable[..., Manifest], labelled_file: Path
) -> None:
    """To make it is no error, since it is there."""
    steps: list[Step] = []
    with pytest.raises(OutputError, match=r"cannot write to '/proc/self': .*; give a folder that can be written"):
        trained([labelled_file], Path("/proc/self"), on_step=steps.append)
    assert steps == []


@pytest.mark.parametrize("name", ["checkpoint.part", "weights.safetensors.part", "manifest.json.part"])
def test_what_cannot_be_written_later_is_named(
    trained: Callable[..., Manifest], labelled_file: Path, tmp_path: Path, name: str
) -> None:
    """A folder lies where the file is to be: each library has an error of its own for it."""
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(OutputError, match=r"cannot be written \(.*\); make room there"):
        trained([labelled_file], tmp_path / "out")


def test_a_missing_file_is_named(trained: Callable[..., Manifest], tmp_path: Path) -> None:
    """Before anything is trained."""
    with pytest.raises(SourceError, match=r"no file at .*none\.jsonl"):
        trained([tmp_path / "none.jsonl"], tmp_path / "out")


def test_finished_weights_are_not_trained_over(trained: Callable[..., Manifest], tiny_weights: Path) -> None:
    """An hour's work is not replaced by a command that was typed twice."""
    with pytest.raises(OutputError, match="finished weights"):
        trained([], tiny_weights)


def test_weights_that_another_process_finishes_meanwhile_are_not_trained_over(
    trained: Callable[..., Manifest], labelled_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the folder when this one has looked at it, and has finished when this one gets hold of it."""
    out = tmp_path / "out"
    steps: list[Step] = []

    @contextmanager
    def held_later(place: Path, lock: Path) -> Iterator[None]:
        monkeypatch.setattr(finishing, "held", held)
        trained([labelled_file], out)
        with held(place, lock):
            yield

    monkeypatch.setattr(finishing, "held", held_later)
    with pytest.raises(OutputError, match="finished weights"):
        trained([labelled_file], out, on_step=steps.append)
    assert steps == []
    assert (out / "manifest.json").is_file()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_position_embeddings": 64}, r"has 64 positions .*, and the window is 256 tokens; .* 64 at most"),
        ({"hidden_act": "gelu_fast"}, "hidden_act is 'gelu_fast'; it must be one of"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True"),
    ],
    ids=["room", "activation", "positions", "decoder"],
)
def test_an_encoder_that_could_not_judge_is_refused_before_training(
    labelled_file: Path, tiny_encoder: Path, taxonomy: Taxonomy, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """Training takes encoders that judging does not, and short rows do not show how long a text there is room for."""
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({**config, **change}), encoding="utf-8")
    if change.keys() == {"max_position_embeddings"}:
        tensors = load_file(folder / "model.safetensors")
        name = "embeddings.position_embeddings.weight"
        save_file({**tensors, name: tensors[name][:64].clone()}, folder / "model.safetensors")
    given: dict[str, Any] = {"taxonomy": taxonomy, "encoder": Encoder.find(str(folder))}
    settings = TrainingSettings(epochs=1, batch_size=8, rank=4, max_tokens=64, window=256, is_bf16=False)
    with pytest.raises(WeightsError, match=message):
        train([labelled_file], tmp_path / "out", settings=settings, **given)
    assert not (tmp_path / "out").exists()
    if change.keys() == {"max_position_embeddings"}:
        train([labelled_file], tmp_path / "out", settings=replace(settings, window=64), **given)
        (verdict,) = Analyzer.load(tmp_path / "out").label(["<|user|>Why?<|assistant|>Sorry, " + "no, " * 200])
        assert verdict.is_scored


def test_texts_that_lie_elsewhere_are_trained_on_and_recorded(
    trained: Callable[..., Manifest], labelled_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Labels by id and texts by id make the same 64 rows, and both files are in the manifest by digest."""
    names = [f"row-{place}" for place in range(len(labelled_rows))]
    labels = [{key: each[key] for key in ("source", "verdict", "labels")} for each in labelled_rows]
    files = write(tmp_path / "labels.jsonl", [{"id": name, **each} for name, each in zip(names, labels, strict=True)])
    texts = write(
        tmp_path / "texts.jsonl",
        [{"id": name, "messages": each["messages"]} for name, each in zip(names, labelled_rows, strict=True)],
    )
    manifest = trained([files], tmp_path / "out", texts=[texts])
    counts = manifest.training["rows"]
    assert sum(counts["training"].values()) + counts["tuning"] + counts["measuring"] == 64
    assert manifest.training["texts"] == {f"{tmp_path.name}/texts.jsonl": sha256_of(texts)}


# Recipes -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def followed(taxonomy: Taxonomy, tiny_encoder: Path, tiny_settings: TrainingSettings) -> Callable[..., Manifest]:
    """Return what trains a recipe of one file into a folder, for two epochs."""

    def run(file: Path, out: Path, **known: Any) -> Manifest:
        source = Source(file.name, **known.pop("source", {}))
        recipe = Recipe(name="mine", sources=(source,), settings=replace(tiny_settings, epochs=2), **known)
        encoder = Encoder.find(str(tiny_encoder))
        return train_recipe(recipe, out, folders=[file.parent], taxonomy=taxonomy, encoder=encoder)

    return run


def test_a_recipe_of_a_file_trains_what_the_file_does(
    trained: Callable[..., Manifest], followed: Callable[..., Manifest], labelled_file: Path, tmp_path: Path
) -> None:
    """The same tensors; the manifest says more: digest and content of the recipe."""
    plain = trained([labelled_file], tmp_path / "plain")
    manifest = followed(labelled_file, tmp_path / "followed")
    assert manifest.tensors_sha256 == plain.tensors_sha256
    recipe = manifest.training.pop("recipe")
    assert manifest.training == plain.training
    assert (recipe["name"], len(recipe["sha256"])) == ("mine", 64)
    assert recipe["sources"][0]["path"] == labelled_file.name
    assert recipe["settings"]["epochs"] == 2


@pytest.mark.parametrize(
    "known", [{"balance": Balance(exponent=1.0)}, {"source": {"confidence": 0.9}}, {"hard_negative_weight": 3.0}]
)
def test_what_a_recipe_changes_changes_the_weights(
    trained: Callable[..., Manifest],
    followed: Callable[..., Manifest],
    labelled_rows: list[dict[str, Any]],
    tmp_path: Path,
    known: dict[str, Any],
) -> None:
    """Six refusals of one kind are left out, and eight replies that comply begin as refusals do."""
    reply = {"role": "assistant", "content": "I cannot say no: here it is, and here is why."}
    hard = [{**each, "messages": [each["messages"][0], reply]} for each in labelled_rows[-8:]]
    file = write(tmp_path / "rows.jsonl", [*labelled_rows[6:-8], *hard])
    plain = trained([file], tmp_path / "plain")
    assert followed(file, tmp_path / "followed", **known).tensors_sha256 != plain.tensors_sha256


def test_a_source_of_weight_zero_is_only_held_out(
    taxonomy: Taxonomy, labelled_file: Path, tmp_path: Path, labelled_rows: list[dict[str, Any]]
) -> None:
    """Training loses its rows; what calibrates and measures keeps them."""
    other = [
        {**each, "messages": [{"role": "user", "content": f"request {i}"}, each["messages"][1]]}
        for i, each in enumerate(labelled_rows)
    ]
    write(tmp_path / "other.jsonl", other)

    def parted(weight: float) -> Partition:
        recipe = Recipe(name="mine", sources=(Source(labelled_file.name), Source("other.jsonl", weight=weight)))
        return Lesson.of(recipe, taxonomy, folders=[labelled_file.parent, tmp_path]).parts

    both, first = parted(1.0), parted(0.0)
    trained_on = {prompt_key(each.conversation) for each in first.training}
    held_out = {prompt_key(each.conversation) for each in (*first.tuning, *first.measuring)}
    assert not any(key.startswith("request") for key in trained_on)
    assert any(key.startswith("request") for key in held_out)
    assert held_out == {prompt_key(each.conversation) for each in (*both.tuning, *both.measuring)}


def test_a_view_hides_the_request_and_parts_by_it_still(taxonomy: Taxonomy, labelled_file: Path) -> None:
    """Each side has the rows that it has without the view, the reply alone."""
    recipe = Recipe.of_files([labelled_file], settings=TrainingSettings())
    whole = Lesson.of(recipe, taxonomy).parts
    seen = Lesson.of(recipe, taxonomy, view=lambda conversation: Conversation(conversation.turns[-1:])).parts
    assert [each.id for each in seen.training] == [each.id for each in whole.training]
    assert {len(each.conversation.turns) for each in seen.training} == {1}


def test_prompts_that_measure_are_told_apart_by_the_whole(taxonomy: Taxonomy, labelled_file: Path) -> None:
    """The reply alone would make each a prompt of its own, and shares corrected with such weights too sure."""
    recipe = Recipe.of_files([labelled_file], settings=TrainingSettings())
    whole = Lesson.of(recipe, taxonomy)
    seen = Lesson.of(recipe, taxonomy, view=lambda conversation: Conversation(conversation.turns[-1:]))
    assert seen.measuring_prompts == whole.measuring_prompts
    assert set(seen.measuring_prompts) == {prompt_key(row.conversation) for row in whole.parts.measuring}


def test_the_window_of_the_settings_is_that_of_the_weights(
    trained: Callable[..., Manifest], labelled_file: Path, tiny_settings: TrainingSettings, tmp_path: Path
) -> None:
    """What was trained at 64 tokens is calibrated and judges at 64, unless the settings say otherwise."""
    settings = replace(tiny_settings, epochs=1, window=None)
    assert trained([labelled_file], tmp_path / "out", settings=settings).max_tokens == 64
    assert trained([labelled_file], tmp_path / "wide", settings=replace(settings, window=128)).max_tokens == 128


@pytest.mark.parametrize(("is_quick", "expected"), [(True, "bf16"), (False, "fp32")])
def test_the_arithmetic_of_training_is_recorded(
    trained: Callable[..., Manifest], labelled_file: Path, tiny_settings: TrainingSettings, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, *, is_quick: bool, expected: str,
) -> None:  # fmt: skip
    """That of the machine, where the settings leave it a choice."""
    monkeypatch.setattr(training, "has_bf16", lambda: is_quick)
    settings = replace(tiny_settings, epochs=1, is_bf16=True)
    assert trained([labelled_file], tmp_path / "out", settings=settings).training["precision"] == expected


def test_training_and_held_out_texts_hold_as_much_of_earlier_turns_as_the_settings_say(
    taxonomy: Taxonomy, tiny_settings: TrainingSettings, labelled_rows: list[dict[str, Any]], tiny_encoder: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    """Those that the weights will read in use."""
    said = {"role": "assistant", "content": "quagga"}
    rows = [
        {**row, "messages": [{"role": "user", "content": f"zebra {number}"}, said, *row["messages"]]}
        for number, row in enumerate(labelled_rows)
    ]
    file = tmp_path / "chats.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    tokenizer = Encoder.find(str(tiny_encoder)).tokenizer()
    for earlier_tokens, expected in ((None, True), (0, False)):
        settings = replace(tiny_settings, max_tokens=512, earlier_tokens=earlier_tokens)
        lesson = Lesson.of(Recipe.of_files([file], settings=settings), taxonomy)
        sides = lesson.examples(taxonomy, tokenizer)
        assert all(sides)
        assert {"quagga" in example.text for side in sides for example in side} == {expected}
        assert {"quagga" in text for text in lesson.shortened(tokenizer, 500)} == {expected}
