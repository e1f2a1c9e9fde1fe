"""Write gate and category head as standard checkpoints that need nothing of ours."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from demur.data.rendering import MAX_TOKENS
from demur.errors import OutputError, WeightsError
from demur.model.network import GATE_LABELS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

    from demur.model.network import PooledHead
    from demur.model.weights import Weights

__all__ = ["export_standard"]


def export_standard(weights: Weights, out: Path) -> tuple[Path, Path]:
    """Write `out/gate` and `out/categories`, each a `BertForSequenceClassification` with its tokenizer.

    `transformers.pipeline("text-classification", model=folder)` loads either with no code of ours; adapters are merged
    and calibration is folded in, so its probabilities are the analyzer's on the same text.

    Raises:
        OutputError: The folder cannot be written, or holds something else already.
        WeightsError: The encoder has no token to pad with.
    """
    from safetensors import SafetensorError

    heads = {"gate": (weights.network.gate, GATE_LABELS), "categories": (weights.network.kinds, weights.taxonomy.keys)}
    for name in heads:
        if (out / name).exists() and not (out / name / "config.json").is_file():
            message = f"{str(out / name)!r} exists and is no model folder; give an empty or a new folder"
            raise OutputError(message)
    parts = {name: out / f".{name}.part" for name in heads}
    try:
        for name, (head, labels) in heads.items():
            _export_head(weights, head, labels, parts[name])
        # Once all is written: a folder holds one model whole, and both are of the same weights.
        for name, part in parts.items():
            if (out / name).exists():
                shutil.rmtree(out / name)
            part.replace(out / name)
    except (OSError, SafetensorError) as error:
        why = getattr(error, "strerror", None) or error
        message = f"cannot write to {str(out)!r}: {why}; give a folder that can be written"
        raise OutputError(message) from error
    finally:
        for part in parts.values():
            shutil.rmtree(part, ignore_errors=True)
    return out / "gate", out / "categories"


def _export_head(weights: Weights, head: PooledHead, labels: Sequence[str], folder: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    config = BertConfig.from_pretrained(
        weights.encoder.folder,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
        # What the encoder's own says would have pipelines take a sigmoid of each logit, or nothing.
        problem_type="single_label_classification",
    )
    special = _special_tokens(weights, config.pad_token_id)
    model = BertForSequenceClassification(config)
    model.load_state_dict(_standard_names(weights, head), strict=True)
    model.save_pretrained(folder)
    # The tensors are written for their owner alone, whatever the umask says; the other files are not.
    shutil.copymode(folder / "config.json", folder / "model.safetensors")
    # As much as any weights read: who truncates cuts the reply's end off, where our window keeps it.
    longest = min(config.max_position_embeddings, MAX_TOKENS)
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        tokenizer_object=weights.tokenizer, model_max_length=longest, **special
    )
    tokenizer.save_pretrained(folder)
    # transformers 5 writes a class name of its own, which no transformers 4 can load; both know this one.
    path = folder / "tokenizer_config.json"
    settings = {**json.loads(path.read_text(encoding="utf-8")), "tokenizer_class": "PreTrainedTokenizerFast"}
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _special_tokens(weights: Weights, pad: int | None) -> dict[str, str]:
    """Name the tokenizer's own special tokens: one that it lacks would be added, and have no embedding.

    Raises:
        WeightsError: There is none to pad with.
    """
    tokenizer = weights.tokenizer
    ids = tokenizer.get_vocab()
    padding = [token for token, number in ids.items() if number == pad]
    if not padding:
        message = (
            f"encoder {weights.encoder.name!r} has no token to pad with (pad_token_id in config.json is {pad!r}, the "
            "id of no token in tokenizer.json), and pipelines need one; train on an encoder that has one"
        )
        raise WeightsError(message)
    ends = tokenizer.encode("").tokens
    spellings = {
        "pad": padding,
        "cls": ends[:1],
        "sep": ends[-1:],
        "unk": ["[UNK]", "<unk>"],
        "mask": ["[MASK]", "<mask>"],
    }
    return {f"{name}_token": token for name, tokens in spellings.items() for token in tokens if token in ids}


def _standard_names(weights: Weights, head: PooledHead) -> dict[str, Tensor]:
    """Map our tensors to the names of `BertForSequenceClassification`."""
    encoder = {f"bert.{name}": tensor for name, tensor in weights.network.encoder.state_dict().items()}
    pooler = {f"bert.pooler.dense.{name}": tensor for name, tensor in head.dense.state_dict().items()}
    classifier = {f"classifier.{name}": tensor for name, tensor in head.classifier.state_dict().items()}
    return {**encoder, **pooler, **classifier}
