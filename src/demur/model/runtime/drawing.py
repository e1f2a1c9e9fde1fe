"""Draw the frozen texts that engines are held to, from what lies in `synth/`.

    python -m demur.model.runtime.drawing synth

writes `parity.jsonl.gz` beside this module. That file was drawn once and stays, whatever is added to `synth/`: another
set would make figures of parity hard to compare. Labels play no part: engines are compared with fp32, right or wrong.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demur.conversation import Conversation
from demur.data.labelled import labelled_files, read_labelled
from demur.data.rendering import Renderer, plain_text
from demur.model.encoders import Encoder
from demur.model.runtime.parity import FrozenTexts, write_frozen_texts
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["draw"]

# Lengths that a text after others grows to, in characters: some 160 to 560 tokens, of which 512 are left in the end.
_LENGTHS = (700, 950, 1_200, 1_450, 1_700, 1_950, 2_400)


@dataclass(frozen=True, slots=True)
class _Share:
    """Say how many texts are drawn from a file: as they are, after others, and with another's request."""

    alone: int
    after_others: int
    crossed: int


_CALIBRATION = _Share(4, 4, 0)
_OF_A_KIND = _Share(24, 24, 16)
_OF_ROBUSTNESS = _Share(64, 48, 48)


def draw(synth: Path, taxonomy: Taxonomy, encoder: Encoder) -> FrozenTexts:
    """Draw texts from each file of the corpus and from the robustness rows; the same files give the same texts.

    A row is drawn once: none of those to calibrate on is among those to compare on. Most replies of the corpus are
    clear. One under a request that is not its own often is not, and engines differ where the gate is unsure.

    Args:
        synth: The folder of that name.
        taxonomy: That the rows are labelled in.
        encoder: Its tokenizer says what fits the window.
    """
    renderer = Renderer(encoder.tokenizer())
    parity: list[Conversation] = []
    calibration: list[Conversation] = []
    for file in (*labelled_files(synth / "corpus"), synth / "robustness.jsonl"):
        rows = (row.conversation for row in read_labelled(file, taxonomy, split=None))
        shuffled = iter(sorted(rows, key=_place))
        share = _OF_A_KIND if file.parent.name == "corpus" else _OF_ROBUSTNESS
        calibration += _drawn(shuffled, _CALIBRATION)
        parity += _drawn(shuffled, share)
    return FrozenTexts(tuple(renderer.texts(parity)), tuple(renderer.texts(calibration)))


def _place(conversation: Conversation) -> str:
    """Shuffle by what is said."""
    return hashlib.sha256(plain_text(conversation).encode("utf-8", "replace")).hexdigest()


def _drawn(rows: Iterator[Conversation], share: _Share) -> Iterator[Conversation]:
    for _ in range(share.alone):
        yield next(rows)
    for number in range(share.after_others):
        yield _joined(rows, _LENGTHS[number % len(_LENGTHS)])
    for _ in range(share.crossed):
        yield Conversation((*next(rows).context, next(rows).turns[-1]))


def _joined(rows: Iterator[Conversation], length: int) -> Conversation:
    """Put conversations one after the other until they are as long as asked, and judge the last reply."""
    joined = next(rows)
    while len(plain_text(joined)) < length:
        joined = Conversation((*joined.turns, *next(rows).turns))
    return joined


def main(arguments: Sequence[str]) -> None:
    """Write the frozen texts that the folder given holds."""
    (synth,) = arguments
    texts = draw(Path(synth), Taxonomy.load(), Encoder.find())
    write_frozen_texts(texts, Path(__file__).parent)


if __name__ == "__main__":
    main(sys.argv[1:])
