"""Hold the check of parity to counts done by hand, and the frozen texts to what they are for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from demur.data.rendering import windowed
from demur.model.encoders import Encoder
from demur.model.runtime import Probabilities
from demur.model.runtime.drawing import draw
from demur.model.runtime.parity import FrozenTexts, Parity, frozen_texts, write_frozen_texts
from demur.verdict import Thresholds

if TYPE_CHECKING:
    from demur.taxonomy import Taxonomy

REPOSITORY = Path(__file__).parents[3]
THRESHOLDS = Thresholds(refusal=0.5)


def probabilities(refusal: list[float], kinds: list[int], taxonomy: Taxonomy) -> Probabilities:
    """Return answers of which each is sure of its kind."""
    return Probabilities(np.array(refusal), np.zeros(len(refusal)), np.eye(len(taxonomy))[kinds])


def test_flips_are_counted(taxonomy: Taxonomy) -> None:
    """Of .9, .6, .4, .1 the second and the third change sides; of the two refusals the first changes its kind."""
    exact = probabilities([0.9, 0.6, 0.4, 0.1], [0, 1, 2, 3], taxonomy)
    found = probabilities([0.8, 0.49, 0.5, 0.1], [4, 1, 5, 6], taxonomy)
    parity = Parity.of(exact, found, taxonomy=taxonomy, thresholds=THRESHOLDS)
    assert (parity.texts, parity.gate_flips, parity.refusals, parity.category_flips) == (4, 2, 2, 1)
    # Differences .1, .11, .1, 0: their squares .01, .0121, .01 and 0 make .0321, a fourth of which is .008025.
    assert parity.gate_error == pytest.approx(0.008025**0.5)
    assert not parity.is_held
    assert str(parity) == "2 of 4 verdicts and 1 of 2 categories differ from fp32"
    assert Parity.from_json(parity.to_json()) == parity


def test_verdicts_under_every_policy_count(taxonomy: Taxonomy) -> None:
    """.3 and .2 lie on two sides of .25, which `broad` decides by; a refusal in part is another than one in full."""
    exact, found = (probabilities(of, [0, 1, 2], taxonomy) for of in ([0.3, 0.9, 0.9], [0.2, 0.9, 0.9]))
    assert Parity.of(exact, found, taxonomy=taxonomy, thresholds=THRESHOLDS).gate_flips == 1
    in_part = replace(found, partial=np.array([0.0, 0.6, 0.4]))
    assert Parity.of(exact, in_part, taxonomy=taxonomy, thresholds=THRESHOLDS).gate_flips == 2


def test_no_text_and_no_refusal_hold(taxonomy: Taxonomy) -> None:
    """Nothing is flipped."""
    for refusal, kinds in (([], []), ([0.1], [0])):
        same = probabilities(refusal, kinds, taxonomy)
        assert Parity.of(same, same, taxonomy=taxonomy, thresholds=THRESHOLDS).is_held


@pytest.mark.parametrize(
    ("gate_flips", "category_flips", "is_held"), [(3, 5, True), (4, 0, False), (0, 6, False), (0, 0, True)]
)
def test_three_in_a_thousand_verdicts_and_one_in_a_hundred_categories_may_flip(
    gate_flips: int, category_flips: int, *, is_held: bool
) -> None:
    """Of 1,000 texts and 500 refusals: 3 and 5."""
    assert Parity(1_000, gate_flips, 500, category_flips, 0.0).is_held is is_held


def test_the_frozen_texts_are_many_and_of_all_lengths() -> None:
    """At least 1,000 to compare on, none of which is calibrated on; a fifth is long, and none beyond the window."""
    texts = frozen_texts()
    assert len(texts.parity) >= 1_000
    assert len(texts.calibration) >= 100
    assert len({*texts.parity, *texts.calibration}) == len(texts.parity) + len(texts.calibration)
    tokens = windowed(texts.parity, tokenizer=Encoder.find().tokenizer(), max_tokens=10_000)
    lengths = sorted(len(ids) for ids in tokens)
    assert lengths[0] < 40
    assert lengths[len(lengths) * 4 // 5] > 300
    assert lengths[-1] == 512


def test_texts_are_drawn_the_same_each_time(taxonomy: Taxonomy) -> None:
    """As many as the frozen ones, which stay as they are while `synth/` grows; none is drawn for both uses."""
    encoder = Encoder.find()
    drawn, frozen = draw(REPOSITORY / "synth", taxonomy, encoder), frozen_texts()
    assert draw(REPOSITORY / "synth", taxonomy, encoder) == drawn
    assert [len(drawn.parity), len(drawn.calibration)] == [len(frozen.parity), len(frozen.calibration)]
    assert not {*drawn.parity} & {*drawn.calibration}


def test_the_same_texts_are_written_as_the_same_bytes(tmp_path: Path) -> None:
    """Whenever that is."""
    texts = FrozenTexts(("<|user|>“Why?”<|assistant|>\n No.",), ("a", "b"))
    assert write_frozen_texts(texts, tmp_path).read_bytes() == write_frozen_texts(texts, tmp_path).read_bytes()
