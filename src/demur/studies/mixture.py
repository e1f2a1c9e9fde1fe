"""Bring a recipe's sources together: found, read, sampled, and each row with its weight."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from demur.data.label_fields import require_files
from demur.data.labelled import labelled_files, read_labelled, read_texts
from demur.errors import SourceError
from demur.labelers.keywords import KeywordLabeler

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demur.data.labelled import Labelled, Texts
    from demur.studies.recipe import Recipe, Source
    from demur.taxonomy import Taxonomy

__all__ = ["Mixture", "files_of", "harder", "located", "mix"]

# What is trained on; a row that says nothing of splits was given to be.
_SPLITS = (None, "train")
# A label that came indirectly is a little wrong: its target is softened, and it weighs less beside one that was read.
_WEAK_CONFIDENCE = 0.95
_WEAK_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Mixture:
    """Keep what a recipe's files hold.

    Attributes:
        rows: Labelled rows in the order of the sources, each with its weight and confidence.
        avoided: Rows whose prompts must not be trained on.
        files: Where the rows come from.
        avoided_files: Where the avoided rows come from.
        other_splits: Number of rows that are of another split than `train`, and so left out, by their split.
        text_files: Where the texts of rows come from that carry none.
    """

    rows: tuple[Labelled, ...]
    avoided: tuple[Labelled, ...]
    files: tuple[Path, ...]
    avoided_files: tuple[Path, ...]
    other_splits: Mapping[str, int] = field(default_factory=dict)
    text_files: tuple[Path, ...] = ()


def located(path: str, folders: Sequence[Path]) -> Path:
    """Find a path in the first of the folders that has it; with no folders, it is taken as it stands.

    Raises:
        SourceError: None of them has it.
    """
    candidates = [folder / path for folder in folders] or [Path(path)]
    found = next((candidate for candidate in candidates if candidate.exists()), None)
    if found is None and folders:
        message = (
            f"no file at {path!r} in {str(folders[0])!r}, nor in the folder of the recipe and those above; "
            "give the folder that holds it with --data"
        )
        raise SourceError(message)
    return candidates[0] if found is None else found


def mix(recipe: Recipe, taxonomy: Taxonomy, *, folders: Sequence[Path] = ()) -> Mixture:
    """Read what a recipe names.

    Args:
        recipe: What to read.
        taxonomy: Names the kinds.
        folders: Where paths are looked up, first to last; with none, they are taken as they stand.

    Raises:
        SourceError: A file is missing or cannot be read.
    """
    rows: list[Labelled] = []
    files: list[Path] = []
    other_splits: Counter[str] = Counter()
    by_id: dict[tuple[str, ...], Texts] = {}
    for source in recipe.sources:
        if source.texts not in by_id:
            by_id[source.texts] = read_texts(_files(source.texts, folders))
        found, texts = _files([source.path], folders), by_id[source.texts]
        every = [row for file in found for row in read_labelled(file, taxonomy, texts=texts)]
        read = [row for row in every if row.split in _SPLITS]
        others = Counter(row.split for row in every if row.split is not None and row.split not in _SPLITS)
        if not read:
            listed = ", ".join(map(repr, sorted(others)))
            message = f"{located(source.path, folders)}: no labelled row of split 'train'; there are rows of {listed}"
            raise SourceError(message)
        other_splits += others
        files += found
        number = math.ceil(recipe.share * min(len(read), source.sample or len(read)))
        rows += [_weighed(row, source) for row in _sampled(read, number, recipe.settings.seed)]
    avoided_files = _files(recipe.avoid, folders)
    # Their texts may lie with those of any source.
    if avoided_files and recipe.texts not in by_id:
        by_id[recipe.texts] = read_texts(_files(recipe.texts, folders))
    avoided = [row for file in avoided_files for row in read_labelled(file, taxonomy, texts=by_id[recipe.texts])]
    texts_of = dict.fromkeys(file for paths in by_id for file in _files(paths, folders))
    return Mixture(
        tuple(rows),
        tuple(avoided),
        tuple(files),
        tuple(avoided_files),
        dict(sorted(other_splits.items())),
        tuple(texts_of),
    )


def files_of(recipe: Recipe, folders: Sequence[Path]) -> list[Path]:
    """Return every file that a recipe reads: sources, texts, and what is avoided.

    Raises:
        SourceError: One of them is missing.
    """
    found = _files([*(source.path for source in recipe.sources), *recipe.texts, *recipe.avoid], folders)
    require_files(found, "JSONL files of labelled conversations, or folders of them")
    return found


def harder(rows: Sequence[Labelled], weight: float, taxonomy: Taxonomy) -> list[Labelled]:
    """Multiply the weight of hard negatives: replies that comply, and that the keyword list calls refusals."""
    if weight == 1:
        return list(rows)
    verdicts = KeywordLabeler(taxonomy).label(row.conversation for row in rows)
    return [
        replace(row, weight=row.weight * weight) if row.is_refusal is False and verdict.is_refusal else row
        for row, verdict in zip(rows, verdicts, strict=True)
    ]


def _files(paths: Sequence[str], folders: Sequence[Path]) -> list[Path]:
    return [file for path in paths for file in labelled_files(located(path, folders))]


def _weighed(row: Labelled, source: Source) -> Labelled:
    weight = source.weight if source.weight is not None else _WEAK_WEIGHT if row.is_weak else 1.0
    confidence = source.confidence if source.confidence is not None else _WEAK_CONFIDENCE if row.is_weak else 1.0
    return replace(row, weight=weight, confidence=confidence, teacher_share=source.teacher_share)


def _sampled(rows: list[Labelled], number: int, seed: int) -> list[Labelled]:
    """Keep the rows with the smallest draws, in their order; a draw depends on the conversation and the seed alone."""
    if number >= len(rows):
        return rows
    texts = ("".join(f"\0{turn.role}\0{turn.content}" for turn in row.conversation.turns) for row in rows)
    draws = [hashlib.sha256(f"{seed}{text}".encode("utf-8", "replace")).digest() for text in texts]
    kept = sorted(range(len(rows)), key=draws.__getitem__)[:number]
    return [rows[place] for place in sorted(kept)]
