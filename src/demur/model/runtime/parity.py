"""Hold an engine to fp32: on a frozen set of texts it may flip hardly any verdict.

The set comes with the package: texts of ours, of all 16 kinds and of what trips classifiers, of up to 512 tokens, drawn
from `synth/` by `python -m demur.model.runtime.drawing`. They are cut to the window of the weights and not rendered
anew: some hold more of earlier turns than weights read in use. Apart from it lie texts to calibrate quantisation on.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from demur.kinds import main_kind
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demur.model.runtime.answers import Probabilities
    from demur.taxonomy import Taxonomy
    from demur.verdict import Thresholds

__all__ = ["MAX_CATEGORY_SHARE", "MAX_GATE_SHARE", "FrozenTexts", "Parity", "frozen_texts", "write_frozen_texts"]

MAX_GATE_SHARE = 0.003
"""Share of gate verdicts that an engine may flip."""
MAX_CATEGORY_SHARE = 0.01
"""Share of the categories of fp32's refusals that an engine may change."""

_FILE = "parity.jsonl.gz"


@dataclass(frozen=True, slots=True)
class FrozenTexts:
    """Keep rendered texts in the role-token format.

    Attributes:
        parity: What engines are compared on.
        calibration: What quantisation is fitted on, and never compared on.
    """

    parity: tuple[str, ...]
    calibration: tuple[str, ...]


@cache
def frozen_texts() -> FrozenTexts:
    """Read the set that comes with the package."""
    packed = (resources.files("demur.model.runtime") / _FILE).read_bytes()
    rows = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    parity, calibration = (tuple(row["text"] for row in rows if row["use"] == use) for use in ("parity", "calibration"))
    return FrozenTexts(parity, calibration)


def write_frozen_texts(texts: FrozenTexts, folder: Path) -> Path:
    """Write the set into a folder and return the file: the same texts give the same bytes."""
    rows = [{"use": use, "text": text} for use, of_use in asdict(texts).items() for text in of_use]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path = folder / _FILE
    path.write_bytes(gzip.compress(lines.encode("utf-8"), mtime=0))
    return path


@dataclass(frozen=True, slots=True)
class Parity:
    """Count where an engine decides otherwise than fp32 does: on verdicts and main kinds, not on kinds beside these.

    Attributes:
        texts: How many were compared.
        gate_flips: Texts that one calls a refusal, under one policy or another, and the other does not; or one in full
            what the other calls one in part.
        refusals: Texts that refuse by fp32.
        category_flips: Those of them to which the engine gives another main kind.
        gate_error: Root mean square of the differences between the gate's probabilities.
    """

    texts: int
    gate_flips: int
    refusals: int
    category_flips: int
    gate_error: float

    @classmethod
    def of(cls, exact: Probabilities, found: Probabilities, *, taxonomy: Taxonomy, thresholds: Thresholds) -> Self:
        """Compare what an engine found with what fp32 finds, on the same texts in the same order."""
        refuses = exact.refusal >= thresholds.refusal
        kinds = [[main_kind(row, taxonomy)[0] for row in of.kinds[refuses].tolist()] for of in (exact, found)]
        flips = refuses & ((exact.partial >= thresholds.partial) != (found.partial >= thresholds.partial))
        for refusal in Policy.refusal_thresholds(thresholds):
            flips |= (exact.refusal >= refusal) != (found.refusal >= refusal)
        return cls(
            texts=len(refuses),
            gate_flips=int(np.count_nonzero(flips)),
            refusals=int(np.count_nonzero(refuses)),
            category_flips=sum(one != other for one, other in zip(*kinds, strict=True)),
            gate_error=_root_mean_square(exact.refusal - found.refusal),
        )

    @property
    def is_held(self) -> bool:
        """Tell whether the engine flips no more than it may."""
        return (
            self.gate_flips <= MAX_GATE_SHARE * self.texts and self.category_flips <= MAX_CATEGORY_SHARE * self.refusals
        )

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Read what `to_json` returned."""
        return cls(**{field.name: stored[field.name] for field in fields(cls)})

    def to_json(self) -> dict[str, Any]:
        """Return the counts and whether they are within bounds."""
        return {**asdict(self), "is_held": self.is_held}

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"{self.gate_flips} of {self.texts} verdicts and {self.category_flips} of {self.refusals} categories "
            "differ from fp32"
        )


def _root_mean_square(differences: Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(np.sqrt(np.mean(np.square(differences)))) if len(differences) else 0.0
