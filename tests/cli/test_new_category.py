"""The worked example of synth/README.md, end to end with a tiny model: a 17th kind, from its stub to a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from demur.data.labelled import read_labelled
from demur.model.encoders import Encoder
from demur.model.settings import TrainingSettings
from demur.model.weights import Manifest
from demur.stats.composition import UNNAMED
from demur.studies.training import train
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable

    Demur = Callable[..., tuple[int, str, str]]

EXAMPLES = Path(__file__).parents[2] / "synth" / "examples"
ROWS = EXAMPLES / "usage_limits.jsonl"
KEY = "usage_limits"


def fill(path: Path) -> None:
    """Put the category of the example in the place of its stub, as a person would by hand."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    start = lines.index(f"  - key: {KEY}\n")
    stop = next(i for i in range(start, len(lines)) if lines[i] == "    leaves:\n") + 2
    filled = (EXAMPLES / "usage_limits.yaml").read_text(encoding="utf-8")
    path.write_text("".join([*lines[:start], filled, *lines[stop:]]), encoding="utf-8")


@pytest.fixture
def mine(demur: Demur, tmp_path: Path) -> Path:
    """Extend a copy of the taxonomy."""
    folder = tmp_path / "my-taxonomy"
    code, printed, errors = demur("taxonomy", "new-category", KEY, "--group", "cannot", "--out", folder)
    assert code == 0, errors
    assert f"the stub of {KEY!r}; fill its placeholders" in printed
    code, _, errors = demur("taxonomy", "validate", folder)
    assert code == 1
    assert "is still the placeholder" in errors
    fill(folder / "refusals.yaml")
    code, printed, errors = demur("taxonomy", "validate", folder)
    assert code == 0, errors
    assert "17 categories in 2 groups" in printed
    return folder


def test_the_rows_of_the_example_are_sound(mine: Path) -> None:
    """24 of them: for each of the category's six leaves two full refusals, one partial, and one that is none."""
    taxonomy = Taxonomy.load(mine)
    rows = read_labelled(ROWS, taxonomy)
    raw = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    assert tuple(dict.fromkeys(row["leaf"] for row in raw)) == taxonomy[KEY].leaves
    assert [row.outcome for row in rows] == ["full", "full", "partial", "none"] * 6
    assert all(row.labels == ((KEY,) if row.outcome != "none" else ()) for row in rows)
    assert all(row.source == "synthetic" for row in rows)
    assert len({row.id for row in rows}) == 24


def test_the_worked_example_runs_end_to_end(
    demur: Demur, mine: Path, labelled_file: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """Check the rows, train on from weights, classify, audit and evaluate: 17 kinds all the way."""
    code, printed, errors = demur("synth", "check", ROWS, "--avoid", labelled_file)
    assert code == 0, errors
    assert "24 rows, 24 kept, 0 dropped" in printed
    weights = tmp_path / "weights"
    code, printed, errors = demur(
        "train", labelled_file, ROWS, "--from-weights", tiny_weights, "--taxonomy", mine, "--out", weights,
        "--epochs", 2, "--batch-size", 8, "--learning-rate", "0.003",
    )  # fmt: skip
    assert code == 0, errors
    assert "going on from weights with 16 of the 17 kinds; new: usage_limits" in errors
    assert "calibrated as before" in printed
    manifest = Manifest.load(weights)
    assert manifest.categories == Taxonomy.load(mine).keys
    assert manifest.training["from_weights"]["tensors_sha256"] == Manifest.load(tiny_weights).tensors_sha256
    options = ("--weights", weights, "--taxonomy", mine)
    code, printed, errors = demur(
        "classify", "--json", *options, "--prompt", "one more", "No more today, limit reached."
    )
    assert code == 0, errors
    probabilities = json.loads(printed)["category_probabilities"]
    assert list(probabilities) == list(manifest.categories)
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-3)
    check_audit(demur, ROWS, options, tmp_path / "audit")
    check_evaluation(demur, ROWS, options)


def test_weights_of_other_kinds_are_refused(demur: Demur, mine: Path, tiny_weights: Path) -> None:
    """The old weights know nothing of the 17th kind."""
    code, _, errors = demur("classify", "--weights", tiny_weights, "--taxonomy", mine, "No.")
    assert code == 1
    assert "were trained under another taxonomy (16 categories" in errors


def test_seventeen_kinds_are_calibrated_measured_and_counted(
    demur: Demur, mine: Path, tiny_encoder: Path, labelled_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Trained afresh, with held-out rows of the new kind: nothing down to the report knows how many kinds there are."""
    messages = [{"role": "user", "content": "Give me more {}."}, {"role": "assistant", "content": "No more {} today."}]
    made = [
        {
            "source": "hand", "verdict": "full", "labels": [KEY],
            "messages": [{**each, "content": each["content"].format(f"song {i}")} for each in messages],
        }
        for i in range(60)
    ]  # fmt: skip
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in [*labelled_rows, *made]), encoding="utf-8")
    settings = TrainingSettings(epochs=2, batch_size=8, learning_rate=1e-2, rank=4, max_tokens=64, is_bf16=False)
    taxonomy, weights = Taxonomy.load(mine), tmp_path / "weights"
    manifest = train(
        [rows], weights, taxonomy=taxonomy, encoder=Encoder.find(str(tiny_encoder)), settings=settings
    )  # fmt: skip
    assert manifest.calibration["n_rows_with_kind"] > 0
    assert manifest.held_out_kinds
    options = ("--weights", weights, "--taxonomy", mine, "--coverage", "0.5")
    check_audit(demur, rows, options, tmp_path / "audit")
    check_evaluation(demur, rows, options)


def check_audit(demur: Demur, rows: Path, options: tuple[str | Path, ...], out: Path) -> None:
    """Audit, and find the 17th kind counted and reported, and the kinds of each group adding up to it."""
    code, _, errors = demur("audit", rows, "--out", out, *options, "--threshold", "0")
    assert code == 0, errors
    composition = json.loads((out / "composition.json").read_text(encoding="utf-8"))
    assert [key for key in composition["categories"] if key != UNNAMED][-1] == KEY
    assert len(composition["categories"].keys() - {UNNAMED}) == 17
    by_group: dict[str, int] = {}
    for each in pq.read_table(out / "verdicts.parquet").to_pylist():
        if each["group"] is not None:
            by_group[each["group"]] = by_group.get(each["group"], 0) + 1
    counted = {key: of_group["count"] for key, of_group in composition["groups"].items() if of_group["count"]}
    assert counted == by_group
    assert sum(kind["count"] for kind in composition["categories"].values()) == sum(by_group.values())
    assert "Usage limits" in (out / "report.html").read_text(encoding="utf-8")


def check_evaluation(demur: Demur, rows: Path, options: tuple[str | Path, ...]) -> None:
    """Evaluate, and find the 17th kind measured."""
    code, printed, errors = demur("evaluate", rows, "--split", "all", "--json", *options)
    assert code == 0, errors
    assert KEY in printed
