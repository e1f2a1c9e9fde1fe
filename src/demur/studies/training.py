"""Train weights from labelled rows: read, keep prompts on one side, fit, calibrate, save with a manifest."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import torch

from demur.errors import TrainingError
from demur.model.encoders import Encoder, sha256_of
from demur.model.network import RefusalNetwork, add_low_rank
from demur.model.training import Step, TrainingSettings, Validation, fit, is_in_bf16, require_enough
from demur.studies.continuation import begun, parting, require_calibrated, warn_of_forgetting
from demur.studies.distillation import Teachers
from demur.studies.finishing import finished, prepared
from demur.studies.lesson import Lesson
from demur.studies.lineage import warn_of_avoided
from demur.studies.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.model.beginning import Beginning
    from demur.model.targets import Example
    from demur.model.weights import Manifest
    from demur.taxonomy import Taxonomy

_LOG = logging.getLogger(__name__)

# Up to this window a CPU is faster without the fused attention, whose backward pass in bfloat16 is slow.
_SHORT_WINDOW = 256

__all__ = ["train", "train_recipe"]


def train(  # noqa: PLR0913  # each is one option of the command line
    files: Sequence[Path],
    out: Path,
    *,
    taxonomy: Taxonomy,
    encoder: Encoder,
    settings: TrainingSettings,
    avoid: Sequence[Path] = (),
    texts: Sequence[Path] = (),
    beginning: Beginning | None = None,
    on_step: Callable[[Step], None] = lambda _: None,
    on_epoch: Callable[[Validation], None] = lambda _: None,
) -> Manifest:
    """Train weights and write them to a folder; a run that was stopped goes on from its checkpoint there.

    Args:
        files: JSONL files of labelled conversations; of rows with a `split`, only `train` is read.
        out: The weights folder.
        taxonomy: Gives the head its kinds.
        encoder: What to train on.
        settings: How to train.
        avoid: JSONL files whose prompts must not be trained on: those that the result is to be evaluated on.
        texts: JSONL files with the messages of labelled rows that carry none, by id.
        beginning: Weights to go on from, on the same encoder; the heads and adapters are fresh where there are none.
            The prompts that they held out stay held out, and the last epoch is kept. With few clear prompts, synthetic
            rows are held out, too, and calibration and thresholds stay those of the beginning.
        on_step: Called after each step.
        on_epoch: Called after each epoch.

    Raises:
        TrainingError: There are too few rows, or none that refuses, or none that complies; the folder holds the
            checkpoint of another run; or weights to go on from do not say which prompts they met, or would keep a
            calibration of another window, or of other `earlier_tokens`.
        WeightsError: The encoder is of a kind that could be trained and not judge, or has no room for the window.
        SourceError: A file cannot be read.
        OutputError: The folder cannot be made, holds finished weights, or another process trains into it.
    """
    with _prepared(out, settings, encoder):
        recipe = Recipe.of_files(files, avoid=avoid, texts=texts, settings=settings)
        lesson = Lesson.of(recipe, taxonomy, **parting(beginning))
        return _train(
            lesson, out, taxonomy=taxonomy, encoder=encoder, recorded={}, beginning=beginning,
            on_step=on_step, on_epoch=on_epoch,
        )  # fmt: skip


def train_recipe(  # noqa: PLR0913  # as above
    recipe: Recipe,
    out: Path,
    *,
    folders: Sequence[Path],
    taxonomy: Taxonomy,
    encoder: Encoder,
    view: Callable[[Conversation], Conversation] = lambda conversation: conversation,
    beginning: Beginning | None = None,
    teachers: Sequence[Path] = (),
    on_step: Callable[[Step], None] = lambda _: None,
    on_epoch: Callable[[Validation], None] = lambda _: None,
    on_answer: Callable[[int, int], None] = lambda _done, _total: None,
) -> Manifest:
    """Train weights as a recipe says, which the manifest then records; else as `train` does.

    Args:
        recipe: What to train on, and how.
        out: The weights folder.
        folders: Where the recipe's files are looked up, first to last.
        taxonomy: Gives the head its kinds.
        encoder: What to train on.
        view: What the network is shown of a conversation; the prompts are parted by the whole.
        beginning: Weights to go on from, as of `train`. With themselves as a teacher, they keep what they know while
            they learn something new (learning without forgetting, Li and Hoiem 2016).
        teachers: Folders of finished weights, of any encoder, whose mean opinion the training rows are given beside
            their labels, and in place of those that they lack; see `Teachers`.
        on_step: Called after each step.
        on_epoch: Called after each epoch.
        on_answer: Called with the number of answers of teachers so far, and of all: one of each on each row.

    Raises:
        TrainingError: As of `train`; or there are teachers, and the beginning held out other prompts than they did.
        WeightsError: As of `train`; or a teacher is damaged, of another taxonomy, or trained on what is held out here.
        SourceError: A file is missing or cannot be read.
        OutputError: The folder cannot be made, or another process trains into it.
    """
    with _prepared(out, recipe.settings, encoder):
        parted, taught = parting(beginning), None
        if teachers:
            _require_same_parting(beginning, recipe)
            taught = Teachers.load(teachers, recipe, taxonomy)
            parted["met"] = taught.met.union(parted.get("met", ()))
        lesson = Lesson.of(recipe, taxonomy, folders=folders, view=view, **parted)
        recorded: dict[str, Any] = {"recipe": recipe.record}
        if taught is not None:
            lesson, recorded["teachers"] = _thought_over(lesson, taught, out, on_answer), taught.record
        manifest = _train(
            lesson, out, taxonomy=taxonomy, encoder=encoder, recorded=recorded, beginning=beginning,
            on_step=on_step, on_epoch=on_epoch,
        )  # fmt: skip
        Teachers.forget(out)
        return manifest


def _require_same_parting(beginning: Beginning | None, recipe: Recipe) -> None:
    """Refuse to go on from weights that held out other prompts than the recipe, and with it the teachers, do."""
    if beginning is not None and beginning.seed != recipe.parting_seed:
        message = (
            f"the weights to go on from held out prompts by seed {beginning.seed}, and recipe {recipe.name!r}, as its "
            f"teachers must, by seed {recipe.parting_seed}: set held_out_seed to {beginning.seed} and take teachers of "
            "it, or go on without teachers"
        )
        raise TrainingError(message)


def _thought_over(lesson: Lesson, teachers: Teachers, out: Path, on_answer: Callable[[int, int], None]) -> Lesson:
    """Add what teachers think of the training rows."""
    rows = lesson.parts.training
    # Asking takes minutes: what is known to be missing is said before.
    require_enough(len(rows), len(lesson.parts.tuning), lesson.recipe.settings)
    warn_of_avoided(teachers.manifests, _digests(lesson.mixture.avoided_files))
    try:
        opinions = teachers.opinions([row.conversation for row in rows], kept_in=out, on_answer=on_answer)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"the same command goes on with the teachers' answers in {out}")
        raise
    return replace(lesson, opinions=opinions)


@contextmanager
def _prepared(out: Path, settings: TrainingSettings, encoder: Encoder) -> Iterator[None]:
    """Hold the folder of weights, which must not be finished, once it is sure that the encoder can judge with them."""
    encoder.require(max(settings.max_tokens, settings.reads))
    with prepared(out):
        yield


def _train(
    lesson: Lesson,
    out: Path,
    *,
    taxonomy: Taxonomy,
    encoder: Encoder,
    recorded: Mapping[str, Any],
    beginning: Beginning | None,
    on_step: Callable[[Step], None],
    on_epoch: Callable[[Validation], None],
) -> Manifest:
    settings, tokenizer = lesson.recipe.settings, encoder.tokenizer()
    training, tuning, measuring = lesson.examples(taxonomy, tokenizer)
    _require_both_sides(training)
    _warn_of_unlabelled(lesson)
    if beginning is not None:
        require_calibrated(beginning, lesson)
        warn_of_avoided([beginning.manifest], _digests(lesson.mixture.avoided_files))
        warn_of_forgetting(beginning, training, taxonomy)
    network = _first(encoder, taxonomy, settings, beginning)
    checkpoint = out / "checkpoint.pt"
    try:
        history = fit(
            network, training, tuning, taxonomy=taxonomy, tokenizer=tokenizer, settings=settings,
            checkpoint=checkpoint, started_from=None if beginning is None else beginning.manifest.tensors_sha256,
            on_step=on_step, on_epoch=on_epoch,
        )  # fmt: skip
        tensors = {name: tensor.cpu() for name, tensor in network.trained().items()}
        manifest = finished(
            tensors, out, lesson=lesson, tuning=tuning, measuring=measuring, taxonomy=taxonomy, encoder=encoder,
            low_rank_scale=settings.low_rank_scale,
            training={**_record(lesson, history), **recorded, **begun(beginning, lesson, taxonomy)},
            kept=beginning.manifest if beginning is not None and lesson.parts.is_thin else None,
        )  # fmt: skip
    except KeyboardInterrupt as interrupt:
        if checkpoint.exists():
            interrupt.add_note(f"the same command goes on from {checkpoint}")
        raise
    # Not before the weights are written: until then it is all that is left of the training.
    checkpoint.unlink(missing_ok=True)
    return manifest


def _require_both_sides(training: Sequence[Example]) -> None:
    n_refusals = sum(example.is_refusal for example in training)
    if n_refusals in (0, len(training)):
        message = f"{len(training)} training rows with {n_refusals} refusals: the gate needs refusals and other replies"
        raise TrainingError(message)


def _warn_of_unlabelled(lesson: Lesson) -> None:
    """Say how many rows nobody has read, and nobody thinks anything of: a recipe that wants teachers has many."""
    if lesson.opinions is None:
        n_unread = sum(row.is_refusal is None and not row.readings for row in lesson.parts.training)
        if n_unread:
            message = "%d of %d training rows have no label and teach nothing; teachers would label them (--teacher)"
            _LOG.warning(message, n_unread, len(lesson.parts.training))


def _first(
    encoder: Encoder, taxonomy: Taxonomy, settings: TrainingSettings, beginning: Beginning | None
) -> RefusalNetwork:
    """Build the network as it is before the first step."""
    torch.manual_seed(settings.seed if settings.head_seed is None else settings.head_seed)
    network = RefusalNetwork(encoder.network(), len(taxonomy))
    if settings.rank:
        add_low_rank(network.encoder, settings.rank, scale=settings.low_rank_scale, dropout=settings.low_rank_dropout)
    else:
        network.encoder.embeddings.requires_grad_(requires_grad=False)
    if beginning is not None:
        beginning.require_rank(settings.rank)
        beginning.place(network, taxonomy, scale=settings.low_rank_scale)
    if torch.cuda.is_available():
        return network.to("cuda")
    if settings.max_tokens <= _SHORT_WINDOW:
        network.encoder.set_attn_implementation("eager")
    return network


def _record(lesson: Lesson, history: list[Validation]) -> dict[str, Any]:
    parts = lesson.parts
    return {
        "settings": asdict(lesson.recipe.settings),
        "precision": "bf16" if is_in_bf16(lesson.recipe.settings) else "fp32",
        "held_out_seed": lesson.recipe.parting_seed,
        "met_prompts": list(parts.met),
        "files": _digests(lesson.mixture.files),
        "avoided_files": _digests(lesson.mixture.avoided_files),
        "texts": _digests(lesson.mixture.text_files),
        "rows": {
            "training": dict(sorted(Counter(row.source for row in lesson.teaching).items())),
            "tuning": len(parts.tuning),
            "measuring": len(parts.measuring),
            "avoided": parts.n_avoided,
            "other_splits": dict(lesson.mixture.other_splits),
            "repeated": parts.n_repeated,
            "contradicted": parts.n_contradicted,
            "withheld": parts.n_withheld,
        },
        "history": [asdict(validation) for validation in history],
    }


def _digests(files: Sequence[Path]) -> dict[str, str]:
    """Name files by folder and name, and by more where that is not enough: whose machine it was is nobody's matter."""
    return {_told_apart(file, files): sha256_of(file) for file in files}


def _told_apart(file: Path, files: Sequence[Path]) -> str:
    others = [other.parts for other in files if other != file]
    lengths = range(2, len(file.parts))
    length = next((n for n in lengths if all(other[-n:] != file.parts[-n:] for other in others)), len(file.parts))
    return "/".join(file.parts[-length:])
