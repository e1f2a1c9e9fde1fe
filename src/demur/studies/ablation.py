"""Train and evaluate the variants of a plan, cell by cell; what is finished stays on disk and is not done again."""

from __future__ import annotations

import json
import logging
import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from demur.data.labelled import read_labelled
from demur.errors import OutputError
from demur.labelers.classifier import Analyzer
from demur.labelers.frozen import frozen_analyzer
from demur.model.encoders import Encoder, sha256_of
from demur.studies.evaluation import evaluate
from demur.studies.holding import held
from demur.studies.lesson import Lesson
from demur.studies.mixture import files_of, located
from demur.studies.partition import prompt_key
from demur.studies.training import train_recipe
from demur.studies.writing import made, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.data.labelled import Labelled
    from demur.model.training import Step, Validation
    from demur.studies.plan import Dev, Plan, Variant
    from demur.studies.recipe import Recipe
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler, Verdict

__all__ = ["Cell", "Line", "ablate"]

_LOG = logging.getLogger(__name__)

# Written when a cell's training has ended, beside its weights: what these were trained on, and how.
_TRAINED = "trained.json"


@dataclass(frozen=True, slots=True)
class Cell:
    """Point at one cell: a variant with a seed, and its number among all."""

    variant: Variant
    seed: int
    number: int
    total: int

    @property
    def name(self) -> str:
        """Return what the cell's files are called."""
        return f"{self.variant.key}-{self.seed}"


@dataclass(frozen=True, slots=True)
class Line:
    """Keep the figures of a variant: one for each seed, by column; nan where a figure is undefined."""

    title: str
    figures: Mapping[str, tuple[float, ...]]

    def mean(self, column: str) -> float:
        """Return the mean over the seeds."""
        return statistics.fmean(self.figures[column])

    def spread(self, column: str) -> float:
        """Return the standard deviation over the seeds, sqrt(Σ (x - mean)² / (n - 1)); nan for a single seed."""
        values = self.figures[column]
        return statistics.stdev(values) if len(values) > 1 and not any(map(math.isnan, values)) else math.nan


def ablate(  # noqa: PLR0913  # the callbacks are mostly left out
    plan: Plan,
    base: Recipe,
    out: Path,
    *,
    folders: Sequence[Path],
    taxonomy: Taxonomy,
    encoder: Encoder,
    resamples: int = 200,
    on_cell: Callable[[Cell], None] = lambda _: None,
    on_step: Callable[[Step], None] = lambda _: None,
    on_epoch: Callable[[Validation], None] = lambda _: None,
) -> list[Line]:
    """Train and evaluate what is not yet on disk, and return one line for each variant.

    Args:
        plan: What is compared.
        base: The recipe that the variants vary.
        out: Folder of the cells (`cells/`) and of their weights (`weights/`).
        folders: Where sources and dev files are looked up, first to last.
        taxonomy: Names the kinds.
        encoder: What to train on.
        resamples: Bootstrap draws behind the intervals that a cell keeps.
        on_cell: Called before each cell that is not yet finished.
        on_step: Called after each step of a training.
        on_epoch: Called after each epoch of a training.

    Raises:
        OutputError: The folder cannot be written to; a cell on disk is of another recipe, other data or another
            encoder; or another process works in the folder.
        DemurError: As of training.
    """
    bench = _Bench(plan, base, out, folders, taxonomy, encoder, resamples)
    made(out)
    with held(out, out / ".lock"):
        due = [cell for cell in bench.cells() if bench.finished(cell) is None]
        if due:
            # What is missing, or learnt by heart, is better met before the first cell has trained for an hour.
            bench.warn_of_what_is_trained_on()
        for cell in due:
            on_cell(cell)
            try:
                # Before it trains: what files hold afterwards is not what it was made from.
                identity = bench.identity(cell)
                bench.keep(cell, bench.labeler(cell, on_step=on_step, on_epoch=on_epoch), identity)
            except KeyboardInterrupt as interrupt:
                interrupt.add_note(f"finished cells are kept in {out / 'cells'}; the same command goes on after them")
                raise
    return [bench.line(variant) for variant in plan.variants]


@dataclass(frozen=True, slots=True)
class _Bench:
    """Work on the cells of one plan in one folder."""

    plan: Plan
    base: Recipe
    out: Path
    folders: Sequence[Path]
    taxonomy: Taxonomy
    encoder: Encoder
    resamples: int

    def cells(self) -> list[Cell]:
        """Seed by seed, so that a whole table of one seed stands before the second begins."""
        pairs = [(variant, seed) for seed in self.plan.seeds for variant in self.plan.variants]
        return [Cell(*pair, number, len(pairs)) for number, pair in enumerate(pairs, start=1)]

    def finished(self, cell: Cell) -> dict[str, Any] | None:
        path = self._path(cell)
        if not path.is_file():
            return None
        try:
            content: dict[str, Any] = json.loads(path.read_bytes())
            is_of_this_plan = content["identity"] == self.identity(cell)
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path} is damaged ({type(error).__name__}); remove it to compute the cell again"
            raise OutputError(message) from error
        if not is_of_this_plan:
            was, now = content["identity"], self.identity(cell)
            changed = ", ".join(sorted(key for key in was.keys() | now.keys() if was.get(key) != now.get(key)))
            message = f"{path} differs in {changed} from what is asked for; remove it, or give another folder"
            raise OutputError(message)
        return content

    def rows(self, dev: Dev) -> list[Labelled]:
        """Read what the cells are evaluated on."""
        split = None if dev.split == "all" else dev.split
        return read_labelled(located(dev.path, self.folders), self.taxonomy, split=split)

    def warn_of_what_is_trained_on(self) -> None:
        """Say how many rows of which evaluation have a prompt that the recipe trains on."""
        rows_of = {dev.path: self.rows(dev) for dev in self.plan.evaluations}
        lesson = Lesson.of(self.base, self.taxonomy, folders=self.folders)
        trained = {prompt_key(row.conversation) for row in lesson.parts.training}
        for path, rows in rows_of.items():
            n_met = sum(prompt_key(row.conversation) in trained for row in rows)
            if n_met:
                _LOG.warning(
                    "%s: the prompts of %d of its %d rows are trained on, so its figures say little of other data; "
                    "give another split, or a file that the recipe avoids", path, n_met, len(rows),
                )  # fmt: skip

    def keep(self, cell: Cell, labeler: Labeler, identity: Mapping[str, object]) -> None:
        """Evaluate a labeler on the dev files and write the cell, whole or not at all, with what it was made from."""
        evaluations = {}
        for dev in self.plan.evaluations:
            found = evaluate(labeler, self.rows(dev), self.taxonomy, resamples=self.resamples)
            evaluations[dev.path] = found.to_json()
        write_json(self._path(cell), {"identity": identity, "seed": cell.seed, "evaluations": evaluations})

    def labeler(self, cell: Cell, **callbacks: Any) -> Labeler:  # noqa: ANN401  # handed on to training
        """Train a cell, or fit it on the frozen encoder, and return what judges as it was taught."""
        recipe = cell.variant.recipe(self.base, seed=cell.seed)
        view = _reply_alone if cell.variant.reads == "reply" else _whole
        if cell.variant.method == "frozen":
            lesson = Lesson.of(recipe, self.taxonomy, folders=self.folders, view=view)
            return _Seen(self._frozen(lesson), view)
        weights = self.out / "weights" / cell.name
        if not self._is_trained(cell, weights):
            for name in (_TRAINED, "manifest.json"):
                (weights / name).unlink(missing_ok=True)
            origin = self._origin(cell)
            train_recipe(
                recipe, weights, folders=self.folders, taxonomy=self.taxonomy, encoder=self.encoder, view=view,
                **callbacks,
            )  # fmt: skip
            write_json(weights / _TRAINED, origin)
        return _Seen(Analyzer.load(weights, encoder=self.encoder.name, taxonomy=self.taxonomy), view)

    def _is_trained(self, cell: Cell, weights: Path) -> bool:
        """Tell whether the weights that lie there are the cell's: then it was stopped while it was evaluated."""
        try:
            met = json.loads((weights / _TRAINED).read_bytes())
        except (OSError, ValueError):
            return False
        return (weights / "manifest.json").is_file() and bool(met == self._origin(cell))

    def _frozen(self, lesson: Lesson) -> Analyzer:
        training, _, _ = lesson.examples(self.taxonomy, self.encoder.tokenizer())
        return frozen_analyzer(self.encoder, training, taxonomy=self.taxonomy, settings=lesson.recipe.settings)

    def line(self, variant: Variant) -> Line:
        stored = [json.loads(self._path(Cell(variant, seed, 0, 0)).read_bytes()) for seed in self.plan.seeds]
        columns = {
            f"{dev.path.rpartition('/')[2].removesuffix('.jsonl')} {figure}": (dev.path, figure)
            for dev in self.plan.evaluations
            for figure in dev.figures
        }
        return Line(
            variant.title,
            {
                column: tuple(_figure(content["evaluations"][path], figure) for content in stored)
                for column, (path, figure) in columns.items()
            },
        )

    def _path(self, cell: Cell) -> Path:
        return self.out / "cells" / f"{cell.name}.json"

    def identity(self, cell: Cell) -> dict[str, Any]:
        """Return what decides which figures a cell has."""
        return {
            **self._origin(cell),
            "resamples": self.resamples,
            "evaluations": {
                dev.path: [dev.split, sha256_of(located(dev.path, self.folders))] for dev in self.plan.evaluations
            },
        }

    def _origin(self, cell: Cell) -> dict[str, Any]:
        """Return what decides which weights come out of a cell's training."""
        recipe = cell.variant.recipe(self.base, seed=cell.seed)
        return {
            "recipe": recipe.sha256,
            "reads": cell.variant.reads,
            "method": cell.variant.method,
            "encoder": self.encoder.files_sha256,
            "taxonomy": self.taxonomy.fingerprint,
            "sources": [sha256_of(file) for file in files_of(recipe, self.folders)],
        }


@dataclass(frozen=True, slots=True)
class _Seen:
    """Show a labeler its conversations through a view."""

    labeler: Labeler
    view: Callable[[Conversation], Conversation]

    @property
    def name(self) -> str:
        return self.labeler.name

    def label(self, conversations: Iterable[Conversation]) -> Iterable[Verdict]:
        return self.labeler.label(self.view(conversation) for conversation in conversations)


def _whole(conversation: Conversation) -> Conversation:
    return conversation


def _reply_alone(conversation: Conversation) -> Conversation:
    return replace(conversation, turns=conversation.turns[-1:])


def _figure(evaluation: dict[str, Any], name: str) -> float:
    found: Any = evaluation
    for part in name.split("."):
        found = found[part]
    return math.nan if found["value"] is None else float(found["value"])
