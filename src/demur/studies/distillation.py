"""Ask finished weights about the training rows, so that others may learn from their mean (Hinton et al. 2015)."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit, logit, softmax

from demur.errors import TrainingError, WeightsError
from demur.labelers.classifier import Analyzer
from demur.model.runtime.cache import digest
from demur.model.targets import Opinion
from demur.model.weights import Manifest
from demur.studies.lineage import avoided_files, met_prompts, require_held_out
from demur.studies.writing import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from demur.conversation import Conversation
    from demur.studies.recipe import Recipe
    from demur.taxonomy import Taxonomy
    from demur.verdict import Verdict

__all__ = ["Teachers"]

# Rows that are asked about between two writes, half a minute's work of a CPU, and between two words on it: answers come
# by so many at once, and nothing could be told of the rate from words in between.
_CHUNK = 1_024
_STEP = 512

# How the files of answers begin, beside a training's checkpoint.
_KEPT = "teacher-"

# Sure probabilities come as 0 and 1 in 32 bits, and have no log-odds.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Teachers:
    """Keep finished weights whose mean opinion training rows are given.

    Attributes:
        manifests: Theirs.
        labelers: The weights, loaded.
    """

    manifests: tuple[Manifest, ...]
    labelers: tuple[Analyzer, ...]

    @classmethod
    def load(cls, folders: Sequence[Path], recipe: Recipe, taxonomy: Taxonomy) -> Self:
        """Load weights; they may be of any encoder.

        Args:
            folders: Weights folders, one at least.
            recipe: What is to be trained on.
            taxonomy: Names the kinds.

        Raises:
            WeightsError: Weights or their encoder are missing or damaged, or are given twice; or they are of another
                taxonomy, or may have been trained on prompts that the recipe holds out; the message says which.
        """
        manifests = [Manifest.load(folder) for folder in folders]
        for folder, manifest in zip(folders, manifests, strict=True):
            require_held_out(folder, manifest, recipe)
        if len({digest(manifest.identity) for manifest in manifests}) < len(manifests):
            message = f"two of the teachers {', '.join(str(folder) for folder in folders)} are the same; give each once"
            raise WeightsError(message)
        return cls(tuple(manifests), tuple(Analyzer.load(each, taxonomy=taxonomy, coverage=None) for each in folders))

    @property
    def met(self) -> frozenset[str]:
        """Return digests of the prompts that one of them met although the seed would hold them out."""
        return met_prompts(self.manifests)

    @property
    def record(self) -> list[dict[str, Any]]:
        """Return what a manifest records of them."""
        return [
            {
                "weights_sha256": manifest.tensors_sha256,
                "encoder": manifest.encoder,
                **manifest.view,
                "recipe": None if (recipe := manifest.training.get("recipe")) is None else recipe.get("name"),
                "avoided_files": avoided_files(manifest.training),
            }
            for manifest in self.manifests
        ]

    def opinions(
        self,
        conversations: Sequence[Conversation],
        *,
        kept_in: Path,
        on_answer: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> list[Opinion | None]:
        """Return the mean opinion on each conversation; None where a teacher has none, as on an empty reply.

        The mean is one of log-odds and log-probabilities, made to sum to 1: the logarithmic pool, in which one that is
        sure outweighs several that are not. Answers are kept every thousand rows and when
        stopped, and taken from there next time.

        Args:
            conversations: What to ask about.
            kept_in: A folder for their answers.
            on_answer: Called with the number of answers so far, and of all: one of each teacher on each conversation.

        Raises:
            TrainingError: What is kept in the folder is damaged.
            OutputError: Answers cannot be kept.
        """
        rows = [_digest(conversation) for conversation in conversations]
        total = len(rows) * len(self.labelers)
        heard: list[NDArray[np.float64]] = []
        for place, (manifest, teacher) in enumerate(zip(self.manifests, self.labelers, strict=True), start=1):
            answers = _Answers.open(kept_in / f"{_KEPT}{digest(manifest.identity)}.npz")
            lacking = [i for i, row in enumerate(rows) if row not in answers.by_row]
            done = place * len(rows) - len(lacking)
            on_answer(done, total)
            for start in range(0, len(lacking), _CHUNK):
                try:
                    for i, verdict in _asked(teacher, conversations, lacking[start : start + _CHUNK]):
                        answers.add(rows[i], verdict, n_kinds=len(teacher.taxonomy))
                        done += 1
                        if done % _STEP == 0:
                            on_answer(done, total)
                finally:
                    # Also what was answered before Ctrl-C.
                    answers.write()
            on_answer(place * len(rows), total)
            heard.append(np.array([answers.by_row[row] for row in rows]))
        return _pooled(heard) if rows else []

    @staticmethod
    def forget(kept_in: Path) -> None:
        """Remove all answers that a folder keeps, of former teachers, too."""
        for path in kept_in.glob(f"{_KEPT}*.npz"):
            path.unlink(missing_ok=True)


def _asked(
    teacher: Analyzer, conversations: Sequence[Conversation], places: Sequence[int]
) -> Iterator[tuple[int, Verdict]]:
    return zip(places, teacher.label([conversations[i] for i in places]), strict=True)


def _digest(conversation: Conversation) -> bytes:
    return hashlib.sha256(repr(conversation.turns).encode("utf-8", "replace")).digest()


@dataclass(slots=True)
class _Answers:
    """Keep what one teacher answered so far, in a file.

    Attributes:
        path: The file.
        by_row: P(refusal), then P(kind | refusal), by the digest of the conversation; nan where the teacher has no
            opinion. *Shape:* `(1 + n_kinds,)`.
    """

    path: Path
    by_row: dict[bytes, NDArray[np.float64]]

    @classmethod
    def open(cls, path: Path) -> Self:
        if not path.exists():
            return cls(path, {})
        try:
            with path.open("rb") as file, np.load(file) as kept:
                rows, answers = kept["rows"], kept["answers"]
        except (EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
            message = f"{path} is damaged ({type(error).__name__}); remove it, and the teacher is asked again"
            raise TrainingError(message) from error
        return cls(path, {row.tobytes(): answer for row, answer in zip(rows, answers, strict=True)})

    def add(self, row: bytes, verdict: Verdict, *, n_kinds: int) -> None:
        kinds = verdict.category_probabilities
        self.by_row[row] = np.array([verdict.refusal_probability, *kinds]) if kinds else np.full(1 + n_kinds, np.nan)

    def write(self) -> None:
        if not self.by_row:
            return
        digests = np.frombuffer(b"".join(self.by_row), dtype=np.uint8).reshape(len(self.by_row), -1)
        with writing(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, rows=digests, answers=np.array(list(self.by_row.values())))


def _pooled(heard: Sequence[NDArray[np.float64]]) -> list[Opinion | None]:
    answers = np.array(heard)
    refusals = expit(logit(answers[..., 0].clip(_LEAST, 1 - _LEAST)).mean(axis=0))
    kinds = softmax(np.log(answers[..., 1:].clip(_LEAST, 1)).mean(axis=0), axis=-1)
    return [
        None if np.isnan(refusal) else Opinion(float(refusal), tuple(map(float, by_kind)))
        for refusal, by_kind in zip(refusals, kinds, strict=True)
    ]
