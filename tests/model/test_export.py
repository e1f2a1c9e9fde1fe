"""Hold exported folders to plain transformers: the same labels, the same probabilities, and none of our code."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from safetensors import SafetensorError
from torch import nn
from transformers import pipeline

from demur.errors import OutputError, WeightsError
from demur.labelers.classifier import Analyzer
from demur.model import export
from demur.model.encoders import Encoder
from demur.model.export import export_standard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from demur.model.network import PooledHead
    from demur.model.weights import Weights

TEXTS = [
    "<|user|>Please draw a lock for me.<|assistant|>Sorry, I am unable to draw.",
    "<|user|>How do I write about bread?<|assistant|>Sure, here is how you write about bread.",
    "<|system|>Be good.<|user|>What is the law of today?<|assistant|>I cannot know the law of today.",
    "<|assistant|>Désolé, 我不能 🙂",
]

# What a stranger runs: no path to this project, an import of it made impossible, no hub.
STRANGER = """
import json, os, sys, warnings
sys.modules["demur"] = None
os.environ["HF_HUB_OFFLINE"] = "1"
import transformers
transformers.logging.set_verbosity_error()
answers = [
    transformers.pipeline("text-classification", model=folder, top_k=None)(json.loads(sys.argv[-1]))
    for folder in sys.argv[1:-1]
]
assert not [name for name, module in sys.modules.items() if name.startswith("demur") and module is not None]
print(json.dumps(answers))
"""


@pytest.fixture
def weights_on(loaded_weights: Weights, tiny_encoder: Path, tmp_path: Path) -> Callable[..., Weights]:
    """Return what gives the tiny weights an encoder of other settings, or whose tokens are spelt otherwise."""

    def run(*, respelt: dict[str, str] | None = None, **config: Any) -> Weights:
        folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
        usual = json.loads((folder / "config.json").read_bytes())
        (folder / "config.json").write_text(json.dumps({**usual, **config}), encoding="utf-8")
        tokenizer = (folder / "tokenizer.json").read_text(encoding="utf-8")
        for token, other in (respelt or {}).items():
            tokenizer = tokenizer.replace(json.dumps(token), json.dumps(other))
        (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        encoder = Encoder.find(str(folder))
        return replace(loaded_weights, encoder=encoder, tokenizer=encoder.tokenizer())

    return run


def require_alike(weights: Weights, out: Path) -> None:
    """Export weights, and hold what plain pipelines say of texts to what the analyzer says, to 1e-4."""
    gate, categories = (
        pipeline("text-classification", str(folder), top_k=None)(TEXTS) for folder in export_standard(weights, out)
    )
    for verdict, of_gate, of_kinds in zip(Analyzer(weights).label(TEXTS), gate, categories, strict=True):
        refusal = verdict.refusal_probability
        kinds = dict(zip(weights.taxonomy.keys, verdict.category_probabilities, strict=True))
        assert by_label(of_gate) == pytest.approx({"Refusal": refusal, "Non-refusal": 1 - refusal}, abs=1e-4)
        assert by_label(of_kinds) == pytest.approx(kinds, abs=1e-4)


def by_label(answer: Any) -> dict[str, float]:
    """Return what a pipeline says of one text."""
    return {one["label"]: one["score"] for one in answer}


@pytest.fixture(scope="module")
def exported(loaded_weights: Weights, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Export the tiny weights."""
    return export_standard(loaded_weights, tmp_path_factory.mktemp("exported") / "new")


@pytest.fixture(scope="module")
def answers(exported: tuple[Path, Path]) -> list[list[dict[str, float]]]:
    """Ask both folders about the texts in a process of its own: probabilities by label, a text, a folder."""
    command = [sys.executable, "-I", "-c", STRANGER, *map(str, exported), json.dumps(TEXTS)]
    output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert output.returncode == 0, output.stderr
    found: list[list[list[dict[str, Any]]]] = json.loads(output.stdout)
    return [[by_label(text) for text in folder] for folder in found]


def test_both_folders_stand_beside_each_other(exported: tuple[Path, Path]) -> None:
    """`gate` and `categories`, each with model, configuration and tokenizer, and no code."""
    gate, categories = exported
    assert (gate.name, categories.name, gate.parent) == ("gate", "categories", categories.parent)
    for folder in exported:
        names = {path.name for path in folder.iterdir()}
        assert names >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
        assert not [name for name in names if name.endswith(".py")]


def test_the_gate_judges_as_the_analyzer_does(answers: list[list[dict[str, float]]], analyzer: Analyzer) -> None:
    """Labels `Refusal` and `Non-refusal`; P(Refusal) to 1e-4 on the same text."""
    for text, answer in zip(TEXTS, answers[0], strict=True):
        (verdict,) = analyzer.label([text])
        assert set(answer) == {"Refusal", "Non-refusal"}
        assert answer["Refusal"] == pytest.approx(verdict.refusal_probability, abs=1e-4)
        assert answer["Refusal"] + answer["Non-refusal"] == pytest.approx(1.0, abs=1e-5)


def test_the_head_names_the_kinds_as_the_analyzer_does(
    answers: list[list[dict[str, float]]], analyzer: Analyzer
) -> None:
    """One label for each key of the taxonomy; P(kind) to 1e-4 on the same text."""
    for text, answer in zip(TEXTS, answers[1], strict=True):
        (verdict,) = analyzer.label([text])
        expected = dict(zip(analyzer.taxonomy.keys, verdict.category_probabilities, strict=True))
        assert answer.keys() == expected.keys()
        assert answer == pytest.approx(expected, abs=1e-4)


def test_labels_stand_in_the_order_of_the_taxonomy(exported: tuple[Path, Path], analyzer: Analyzer) -> None:
    """Index i is category i; for the gate, 1 is the refusal."""
    gate, categories = (json.loads((folder / "config.json").read_text(encoding="utf-8")) for folder in exported)
    assert gate["id2label"] == {"0": "Non-refusal", "1": "Refusal"}
    assert categories["id2label"] == {str(i): key for i, key in enumerate(analyzer.taxonomy.keys)}
    assert categories["label2id"] == {key: i for i, key in enumerate(analyzer.taxonomy.keys)}


def test_the_tokenizers_class_is_one_that_older_transformers_know(exported: tuple[Path, Path]) -> None:
    """Transformers 4 has no `TokenizersBackend`; texts are cut where the encoder's positions end."""
    for folder in exported:
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        assert settings["tokenizer_class"] == "PreTrainedTokenizerFast"
        assert settings["model_max_length"] == 512


def test_an_export_may_be_repeated(loaded_weights: Weights, tmp_path: Path) -> None:
    """A folder that holds a model is written anew, with the same bytes."""
    (gate, _) = export_standard(loaded_weights, tmp_path)
    before = {path.name: path.read_bytes() for path in gate.iterdir()}
    export_standard(loaded_weights, tmp_path)
    assert {path.name: path.read_bytes() for path in gate.iterdir()} == before


def test_what_is_no_model_is_not_written_over(loaded_weights: Weights, tmp_path: Path) -> None:
    """A folder of that name with something else in it stays as it was, and the other folder is not begun."""
    (tmp_path / "categories").mkdir()
    (tmp_path / "categories" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="exists and is no model folder"):
        export_standard(loaded_weights, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["categories"]


def test_an_export_that_fails_leaves_what_was_there(
    loaded_weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate is not replaced where the categories cannot be written; safetensors has an error of its own."""
    (gate, _) = export_standard(loaded_weights, tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in gate.iterdir()}
    write = export._export_head

    def full(weights: Weights, head: PooledHead, labels: Sequence[str], folder: Path) -> None:
        if "categories" in folder.name:
            message = "No space left on device"
            raise SafetensorError(message)
        write(weights, head, labels, folder)

    monkeypatch.setattr(export, "_export_head", full)
    with pytest.raises(OutputError, match="No space left on device"):
        export_standard(loaded_weights, tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in gate.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["categories", "gate"]


def test_a_place_that_cannot_be_written_to_is_named(loaded_weights: Weights, tmp_path: Path) -> None:
    """A file stands where the folder should."""
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"cannot write to '.*file': Not a directory"):
        export_standard(loaded_weights, tmp_path / "file")


@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_what_an_encoder_was_tuned_for_before_changes_no_probability(
    weights_on: Callable[..., Weights], tmp_path: Path, problem: str
) -> None:
    """Its configuration may keep the problem of a head that it had: the sum over labels is 1 all the same."""
    require_alike(weights_on(problem_type=problem), tmp_path)


def test_special_tokens_are_those_of_the_encoder(weights_on: Callable[..., Weights], tmp_path: Path) -> None:
    """However they are spelt: one by another name would get an id for which there is no embedding."""
    respelt = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "[unused0]"}
    weights = weights_on(respelt=respelt)
    require_alike(weights, tmp_path)
    settings = json.loads((tmp_path / "gate" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert {name: token for name, token in settings.items() if name.endswith("_token")} == {
        "pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>",
    }  # fmt: skip


@pytest.mark.parametrize("pad", [None, -1])
def test_an_encoder_without_a_token_to_pad_with_is_refused(
    weights_on: Callable[..., Weights], tmp_path: Path, pad: int | None
) -> None:
    """Pipelines pad what they judge together; nothing is written."""
    with pytest.raises(WeightsError, match=rf"no token to pad with \(pad_token_id in config.json is {pad}"):
        export_standard(weights_on(pad_token_id=pad), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_texts_are_cut_where_weights_read_no_more(
    weights_on: Callable[..., Weights], loaded_weights: Weights, tmp_path: Path
) -> None:
    """At 512 tokens, also on an encoder that has twice the positions: no training showed the others."""
    network = deepcopy(loaded_weights.network)
    network.encoder.embeddings.position_embeddings = nn.Embedding(1_024, network.encoder.config.hidden_size)
    export_standard(replace(weights_on(max_position_embeddings=1_024), build=lambda: network), tmp_path)
    settings = json.loads((tmp_path / "gate" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert settings["model_max_length"] == 512
