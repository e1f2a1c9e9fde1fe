"""Hold the frozen baseline to what a logistic regression can know."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from demur.data.labelled import read_labelled
from demur.errors import WeightsError
from demur.labelers.frozen import frozen_analyzer
from demur.model.encoders import Encoder
from demur.model.frozen import FrozenEngine
from demur.model.targets import Example
from demur.studies.lesson import Lesson
from demur.studies.recipe import Recipe

if TYPE_CHECKING:
    from demur.model.settings import TrainingSettings
    from demur.taxonomy import Taxonomy


def test_it_learns_the_hand_made_rows(
    tiny_encoder: Path, labelled_file: Path, taxonomy: Taxonomy, tiny_settings: TrainingSettings
) -> None:
    """Most of what it was fitted on, though the encoder is random: the openings differ."""
    encoder = Encoder.find(str(tiny_encoder))
    lesson = Lesson.of(Recipe.of_files([labelled_file], settings=tiny_settings), taxonomy)
    training, _, _ = lesson.examples(taxonomy, encoder.tokenizer())
    analyzer = frozen_analyzer(encoder, training, taxonomy=taxonomy, settings=tiny_settings)
    rows = read_labelled(labelled_file, taxonomy)
    verdicts = list(analyzer.label(row.conversation for row in rows))
    assert np.mean([row.is_refusal == verdict.is_refusal for row, verdict in zip(rows, verdicts, strict=True)]) > 0.9
    for verdict in verdicts:
        assert sum(verdict.category_probabilities) == pytest.approx(1)


def test_an_encoder_without_room_for_the_window_is_refused(
    tiny_encoder: Path, taxonomy: Taxonomy, tiny_settings: TrainingSettings, tmp_path: Path
) -> None:
    """Rows may be short, and what is judged later long."""
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 511}), encoding="utf-8")
    with pytest.raises(WeightsError, match="has 511 positions"):
        frozen_analyzer(Encoder.find(str(folder)), [], taxonomy=taxonomy, settings=tiny_settings)


def test_kinds_that_were_not_met_have_no_probability(tiny_encoder: Path) -> None:
    """Of four kinds, the rows name one: it has all, and *partial*, which no row knows, has none."""
    encoder = Encoder.find(str(tiny_encoder))
    rows = [
        Example("<|assistant|>sorry", "", 1.0, kinds=(0.0, 0.0, 1.0, 0.0)),
        Example("<|assistant|>sure here it is", "", 0.0),
    ]
    engine = FrozenEngine.fit(encoder, rows, n_categories=4, max_tokens=64)
    ids = np.array([encoder.tokenizer().encode(rows[0].text).ids])
    found = engine.run(ids, np.ones_like(ids))
    assert found.kinds.tolist() == [[0.0, 0.0, 1.0, 0.0]]
    assert found.partial.tolist() == [0.0]
    assert 0.5 < found.refusal[0] < 1
