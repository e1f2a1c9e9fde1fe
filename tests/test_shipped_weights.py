"""The weights that come with the package: small, whole, and right on what users try first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demur.data.reading import read_conversations
from demur.data.rendering import Renderer
from demur.data.sources import open_source
from demur.labelers.classifier import Analyzer
from demur.model.export import export_standard
from demur.model.weights import Weights, shipped_weights
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from demur.conversation import Conversation

SEED_CARD = Path(__file__).parent / "data" / "seed_card.jsonl"
LEAST_SURE = 0.9

# Runs where `demur` cannot be imported: the exported folders must need nothing of ours.
PLAIN_PIPELINE = """
import json, sys
sys.modules["demur"] = None
from transformers import pipeline
folder, texts = sys.argv[1], json.load(sys.stdin)
print(json.dumps(pipeline("text-classification", model=folder)(texts, top_k=None)))
"""


@pytest.fixture(scope="module")
def weights() -> Weights:
    """Load the shipped weights."""
    return Weights.load(taxonomy=Taxonomy.load())


@pytest.fixture(scope="module")
def analyzer(weights: Weights) -> Analyzer:
    """Judge with the shipped weights."""
    return Analyzer(weights)


@pytest.fixture(scope="module")
def exported(weights: Weights, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Export gate and category head."""
    return export_standard(weights, tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="module")
def example() -> list[Conversation]:
    """Return 200 conversations of the bundled example, from all of its layouts."""
    items = [item for item in read_conversations(open_source("example")) if hasattr(item, "turns")]
    return items[:: max(1, len(items) // 200)][:200]  # type: ignore[return-value]  # broken rows have no turns


def seed_card() -> list[tuple[str, str]]:
    """Return the published examples with their labels."""
    rows = [json.loads(line) for line in SEED_CARD.read_text(encoding="utf-8").splitlines()]
    return [(row["text"], row["label"]) for row in rows]


def plain_pipeline(folder: Path, texts: list[str]) -> list[dict[str, float]]:
    """Return each text's scores by label, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_PIPELINE, str(folder)],
        input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    answers = json.loads(done.stdout.splitlines()[-1])
    return [{score["label"]: score["score"] for score in answer} for answer in answers]


def test_the_shipped_weights_are_small() -> None:
    """Adapters and heads take 8 MB at most: they travel inside of the wheel."""
    assert sum(file.stat().st_size for file in shipped_weights().iterdir()) <= 8 * 1024 * 1024


@pytest.mark.parametrize(("text", "label"), seed_card(), ids=range(len(seed_card())))
def test_the_published_examples_come_out_right(analyzer: Analyzer, text: str, label: str) -> None:
    """The eleven texts of the seed model's card get their label, with a probability of 0.9 at least."""
    (verdict,) = analyzer.label([text])
    assert verdict.is_refusal == (label == "Refusal")
    probability = verdict.refusal_probability
    assert max(probability, 1 - probability) >= LEAST_SURE


def test_the_exported_gate_gives_the_same_labels_without_our_code(exported: tuple[Path, Path]) -> None:
    """A plain transformers pipeline on the exported gate labels the eleven texts the same way."""
    answers = plain_pipeline(exported[0], [text for text, _ in seed_card()])
    assert [max(answer, key=answer.__getitem__) for answer in answers] == [label for _, label in seed_card()]


def test_the_exports_give_the_same_probabilities(
    exported: tuple[Path, Path], analyzer: Analyzer, weights: Weights, example: list[Conversation]
) -> None:
    """On 200 conversations of the example, gate and kinds agree with the analyzer to 1e-4."""
    assert len(example) == 200
    texts = Renderer(weights.tokenizer, **weights.manifest.view).texts(example)
    verdicts = list(analyzer.label(example))
    gate, categories = (plain_pipeline(folder, texts) for folder in exported)
    for verdict, scores, kinds in zip(verdicts, gate, categories, strict=True):
        assert scores["Refusal"] == pytest.approx(verdict.refusal_probability, abs=1e-4)
        expected = dict(zip(weights.taxonomy.keys, verdict.category_probabilities, strict=True))
        assert kinds == pytest.approx(expected, abs=1e-4)
