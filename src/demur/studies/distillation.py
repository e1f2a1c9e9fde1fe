"""Ask finished weights about the training rows, so that others may learn from their mean (Hinton et al. 2015)."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit, logit, softmax

from demur.errors import OutputError, TrainingError, WeightsError
from demur.labelers.classifier import Analyzer
from demur.model.targets import Opinion
from demur.model.weights import Manifest
from demur.studies.lineage import met_prompts, require_held_out, require_taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from demur.conversation import Conversation
    from demur.studies.recipe import Recipe
    from demur.taxonomy import Taxonomy
    from demur.verdict import Verdict

__all__ = ["Teachers"]

# Rows that are asked about between two writes: half a minute's work of a CPU.
_CHUNK = 1_024

# Sure probabilities come as 0 and 1 in 32 bits, and have no log-odds.
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Teachers:
    """Keep finished weights whose mean opinion training rows are given.

    Attributes:
        folders: Where they lie.
        manifests: Theirs.
    """

    folders: tuple[Path, ...]
    manifests: tuple[Manifest, ...]

    @classmethod
    def load(cls, folders: Sequence[Path], recipe: Recipe, taxonomy: Taxonomy) -> Self:
        """Read the manifests of weights; they may be of any encoder.

        Args:
            folders: Weights folders, one at least.
            recipe: What is to be trained on.
            taxonomy: Names the kinds.

        Raises:
            WeightsError: A folder holds no weights; or they are of another taxonomy, or may have been trained on
                prompts that the recipe holds out; the message says which.
        """
        manifests = [Manifest.load(folder) for folder in folders]
        for folder, manifest in zip(folders, manifests, strict=True):
            require_taxonomy(folder, manifest, taxonomy)
            require_held_out(folder, manifest, recipe)
        digests = [manifest.tensors_sha256 for manifest in manifests]
        if len(set(digests)) < len(digests):
            message = f"two of the teachers {', '.join(str(folder) for folder in folders)} are the same; give each once"
            raise WeightsError(message)
        return cls(tuple(folders), tuple(manifests))

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
                "recipe": None if (recipe := manifest.training.get("recipe")) is None else recipe.get("name"),
            }
            for manifest in self.manifests
        ]

    def opinions(
        self,
        conversations: Sequence[Conversation],
        *,
        taxonomy: Taxonomy,
        kept_in: Path,
        on_answer: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> list[Opinion | None]:
        """Return the mean opinion on each conversation; None where there is no reply to have one on.

        The mean is one of log-odds and log-probabilities, made to sum to 1: the logarithmic pool, in which one that is
        sure outweighs several that are not. Answers are kept every thousand rows, and taken from there next time.

        Args:
            conversations: What to ask about.
            taxonomy: That of the teachers.
            kept_in: A folder for their answers.
            on_answer: Called now and then with the number of answers so far, and of all.

        Raises:
            WeightsError: Weights or their encoder are damaged or missing.
            TrainingError: What is kept in the folder is damaged.
            OutputError: Answers cannot be kept.
        """
        total = len(conversations) * len(self.folders)
        rows = [_digest(conversation) for conversation in conversations]
        heard: list[_Answers] = []
        for place, (folder, manifest) in enumerate(zip(self.folders, self.manifests, strict=True)):
            answers = _Answers.open(_kept_at(kept_in, manifest))
            open_places = [i for i, row in enumerate(rows) if row not in answers.by_row]
            done = (place + 1) * len(rows) - len(open_places)
            on_answer(done, total)
            if open_places:
                teacher = Analyzer.load(folder, taxonomy=taxonomy, coverage=None)
                for start in range(0, len(open_places), _CHUNK):
                    some = open_places[start : start + _CHUNK]
                    verdicts = teacher.label([conversations[i] for i in some])
                    answers.add([rows[i] for i in some], verdicts, n_kinds=len(taxonomy))
                    done += len(some)
                    on_answer(done, total)
            heard.append(answers)
        return _pooled([answers.of(rows) for answers in heard])

    def forget(self, kept_in: Path) -> None:
        """Remove the answers that a folder keeps."""
        for manifest in self.manifests:
            _kept_at(kept_in, manifest).unlink(missing_ok=True)


def _kept_at(folder: Path, manifest: Manifest) -> Path:
    return folder / f"teacher-{manifest.tensors_sha256[:12]}.npz"


def _digest(conversation: Conversation) -> bytes:
    return hashlib.sha256(repr(conversation.turns).encode("utf-8", "replace")).digest()


@dataclass(slots=True)
class _Answers:
    """Keep what one teacher answered so far, in a file.

    Attributes:
        path: The file.
        by_row: P(refusal), then P(kind | refusal), by the digest of the conversation; nan where there is no reply.
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

    def of(self, rows: Sequence[bytes]) -> NDArray[np.float64]:
        """Return the answers on rows. *Shape:* `(n, 1 + n_kinds)`."""
        return np.array([self.by_row[row] for row in rows])

    def add(self, rows: Sequence[bytes], verdicts: Iterable[Verdict], *, n_kinds: int) -> None:
        """Take answers, and write all that there are."""
        nothing = np.full(1 + n_kinds, np.nan)
        for row, verdict in zip(rows, verdicts, strict=True):
            kinds = verdict.category_probabilities
            self.by_row[row] = np.array([verdict.refusal_probability, *kinds]) if kinds else nothing
        part = self.path.with_suffix(".part.npz")
        digests = np.frombuffer(b"".join(self.by_row), dtype=np.uint8).reshape(len(self.by_row), -1)
        try:
            np.savez(part, rows=digests, answers=np.array(list(self.by_row.values())))
            part.replace(self.path)
        except OSError as error:
            message = f"cannot write to {str(self.path)!r}: {error.strerror or error}; make room, and go on"
            raise OutputError(message) from error


def _pooled(heard: Sequence[NDArray[np.float64]]) -> list[Opinion | None]:
    answers = np.array(heard)
    refusals = expit(logit(answers[..., 0].clip(_LEAST, 1 - _LEAST)).mean(axis=0))
    kinds = softmax(np.log(answers[..., 1:].clip(_LEAST, 1)).mean(axis=0), axis=-1)
    return [
        None if np.isnan(refusal) else Opinion(float(refusal), tuple(map(float, by_kind)))
        for refusal, by_kind in zip(refusals, kinds, strict=True)
    ]
