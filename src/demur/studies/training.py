"""Train weights from labelled files: read, keep prompts on one side, fit, calibrate, save with a manifest."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import expit, softmax

from demur.data.labelled import read_labelled, read_texts
from demur.data.rendering import MAX_TOKENS, Renderer
from demur.errors import OutputError, TrainingError
from demur.model.calibration import fit_further, fit_platt, fit_temperature, fit_threshold
from demur.model.encoders import Encoder, sha256_of
from demur.model.network import RefusalNetwork, add_low_rank
from demur.model.targets import Example, examples
from demur.model.training import Step, TrainingSettings, Validation, fit, held_out_logits
from demur.model.weights import Manifest, save_weights
from demur.studies.partition import Partition, partition, prompt_key
from demur.verdict import Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer
    from torch import Tensor

    from demur.data.labelled import Labelled
    from demur.taxonomy import Taxonomy

__all__ = ["Partition", "partition", "prompt_key", "train"]


def train(  # noqa: PLR0913  # each is one option of the command line
    files: Sequence[Path],
    out: Path,
    *,
    taxonomy: Taxonomy,
    encoder: Encoder,
    settings: TrainingSettings,
    avoid: Sequence[Path] = (),
    texts: Sequence[Path] = (),
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
        on_step: Called after each step.
        on_epoch: Called after each epoch.

    Raises:
        TrainingError: There are too few rows, or none that refuses, or none that complies; or the folder holds the
            checkpoint of another run.
        SourceError: A file cannot be read.
        OutputError: The folder cannot be made, or holds finished weights.
    """
    _prepare(out)
    by_id = read_texts(texts)
    rows = [row for file in files for row in read_labelled(file, taxonomy, split="train", texts=by_id)]
    parts = partition(rows, avoid=[row for file in avoid for row in read_labelled(file, taxonomy)], seed=settings.seed)
    tokenizer = encoder.tokenizer()
    training, tuning, measuring = _targets(parts, taxonomy=taxonomy, tokenizer=tokenizer, settings=settings)
    _require_both_sides(training)
    network = _fresh(encoder, taxonomy, settings)
    checkpoint = out / "checkpoint.pt"
    try:
        history = fit(
            network, training, tuning, taxonomy=taxonomy, tokenizer=tokenizer, settings=settings,
            checkpoint=checkpoint, on_step=on_step, on_epoch=on_epoch,
        )  # fmt: skip
    except KeyboardInterrupt as interrupt:
        if checkpoint.exists():
            interrupt.add_note(f"the same command goes on from {checkpoint}")
        raise
    tensors = {name: tensor.cpu() for name, tensor in network.trained().items()}
    merged = _merged(tensors, encoder, taxonomy, settings)
    calibration = _calibrate(merged, tuning, tokenizer=tokenizer)
    manifest = Manifest(
        encoder=encoder.name,
        encoder_sha256=encoder.sha256,
        taxonomy_fingerprint=taxonomy.fingerprint,
        categories=taxonomy.keys,
        low_rank_scale=settings.low_rank_scale,
        max_tokens=MAX_TOKENS,
        thresholds=asdict(_thresholds(merged, tuning, tokenizer=tokenizer)),
        calibration=calibration,
        held_out=_held_out_probabilities(merged, measuring, tokenizer=tokenizer),
        training=_record({"files": files, "texts": texts, "avoided_files": avoid}, parts, settings, history),
    )
    save_weights(out, {**tensors, **_heads(merged)}, manifest)
    return Manifest.load(out)


def _prepare(out: Path) -> None:
    # Before the first step, since the first checkpoint may be an hour away.
    if (out / "manifest.json").exists():
        message = f"{str(out)!r} holds finished weights; give another folder, or remove it first"
        raise OutputError(message)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot write to {str(out)!r}: {error.strerror or error}; give a folder that can be written"
        raise OutputError(message) from error


def _targets(
    parts: Partition, *, taxonomy: Taxonomy, tokenizer: Tokenizer, settings: TrainingSettings
) -> tuple[list[Example], list[Example], list[Example]]:
    """Build the examples of the three sides; what measures sees the whole window, as it will in use."""

    def of(rows: Sequence[Labelled], max_tokens: int) -> list[Example]:
        renderer = Renderer(tokenizer, max_tokens=max_tokens)
        return examples(rows, taxonomy=taxonomy, renderer=renderer, main_share=settings.main_share)

    return of(parts.training, settings.max_tokens), of(parts.tuning, MAX_TOKENS), of(parts.measuring, MAX_TOKENS)


def _require_both_sides(training: Sequence[Example]) -> None:
    n_refusals = sum(example.refusal > 0.5 for example in training)  # noqa: PLR2004  # one half parts the sides
    if n_refusals in (0, len(training)):
        message = f"{len(training)} training rows with {n_refusals} refusals: the gate needs refusals and other replies"
        raise TrainingError(message)


def _fresh(encoder: Encoder, taxonomy: Taxonomy, settings: TrainingSettings) -> RefusalNetwork:
    torch.manual_seed(settings.seed)
    network = RefusalNetwork(encoder.network(), len(taxonomy))
    if settings.rank:
        add_low_rank(network.encoder, settings.rank, scale=settings.low_rank_scale, dropout=settings.low_rank_dropout)
    else:
        network.encoder.embeddings.requires_grad_(requires_grad=False)
    return network.to("cuda" if torch.cuda.is_available() else "cpu")


def _merged(
    tensors: dict[str, Tensor], encoder: Encoder, taxonomy: Taxonomy, settings: TrainingSettings
) -> RefusalNetwork:
    """Build the network as it is kept, adapters in 16 bits and merged: that is what calibration must fit."""
    network = RefusalNetwork(encoder.network(), len(taxonomy))
    network.load_trained(tensors, scale=settings.low_rank_scale)
    return network.to("cuda" if torch.cuda.is_available() else "cpu")


def _heads(network: RefusalNetwork) -> dict[str, Tensor]:
    """Return the heads, into which calibration has been folded."""
    parameters = network.named_parameters()
    return {name: tensor.detach().cpu() for name, tensor in parameters if not name.startswith("encoder.")}


def _calibrate(network: RefusalNetwork, tuning: Sequence[Example], *, tokenizer: Tokenizer) -> dict[str, Any]:
    """Fit the calibration on the tuning rows and fold it into the network."""
    gate, partial, kinds = held_out_logits(network, tuning, tokenizer=tokenizer)
    is_refusal = np.array([row.refusal > 0.5 for row in tuning], dtype=bool)  # noqa: PLR2004  # as above
    is_partial = np.array([row.partial for row in tuning])
    of_kind = [i for i, row in enumerate(tuning) if row.kinds is not None]
    truth = np.array([np.argmax(tuning[i].kinds or ()) for i in of_kind], dtype=np.int64)
    known = ~np.isnan(is_partial)
    fitted: dict[str, Any] = {
        "gate": fit_platt(gate, is_refusal),
        "partial": fit_platt(partial[known], is_partial[known] > 0.5),  # noqa: PLR2004  # as above
        "kinds": fit_temperature(kinds[of_kind], truth),
    }
    network.fold_calibration(**fitted)
    return {**fitted, "n_rows": len(tuning), "n_rows_with_kind": len(of_kind)}


def _thresholds(network: RefusalNetwork, tuning: Sequence[Example], *, tokenizer: Tokenizer) -> Thresholds:
    _, partial, kinds = held_out_logits(network, tuning, tokenizer=tokenizer)
    is_partial = np.array([row.partial for row in tuning])
    known = ~np.isnan(is_partial)
    defaults = Thresholds()
    of_kind = [i for i, row in enumerate(tuning) if row.kinds is not None]
    targets = np.array([tuning[i].kinds for i in of_kind]).reshape(len(of_kind), kinds.shape[1])
    return Thresholds(
        partial=fit_threshold(expit(partial[known]), is_partial[known] > 0.5, default=defaults.partial),  # noqa: PLR2004
        further=fit_further(softmax(kinds[of_kind], axis=1), targets > 0, default=defaults.further),
    )


def _held_out_probabilities(
    network: RefusalNetwork, rows: Sequence[Example], *, tokenizer: Tokenizer
) -> dict[str, list[float]]:
    log_odds = held_out_logits(network, rows, tokenizer=tokenizer)[0]
    found: dict[str, list[float]] = {"refusal": [], "compliance": []}
    for row, probability in zip(rows, expit(log_odds), strict=True):
        side = "refusal" if row.refusal > 0.5 else "compliance"  # noqa: PLR2004  # as above
        found[side].append(round(float(probability), 4))
    return {side: sorted(values) for side, values in found.items()}


def _record(
    read: Mapping[str, Sequence[Path]],
    parts: Partition,
    settings: TrainingSettings,
    history: list[Validation],
) -> dict[str, Any]:
    return {
        "settings": asdict(settings),
        # By folder and name: enough to tell files apart, and nothing of whose machine it was.
        **{role: {"/".join(file.parts[-2:]): sha256_of(file) for file in files} for role, files in read.items()},
        "rows": {
            "training": dict(sorted(Counter(row.source for row in parts.training).items())),
            "tuning": len(parts.tuning),
            "measuring": len(parts.measuring),
            "avoided": parts.n_avoided,
            "repeated": parts.n_repeated,
            "withheld": parts.n_withheld,
        },
        "history": [asdict(validation) for validation in history],
    }
