"""Write what a run made: the rows that count, the rejects with their reasons, and a report that adds up."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from demur.studies.writing import write_json, writing
from demur.synthesis.decisions import account
from demur.synthesis.diversity import diversity_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from demur.synthesis.decisions import Accounts, Decision
    from demur.synthesis.diversity import Diversity
    from demur.synthesis.generation import Generation
    from demur.synthesis.journal import Journal, Places
    from demur.synthesis.plan import Cell

__all__ = ["Results", "write_results"]

# Of rows that are planned evenly, so few are no longer an even set.
_LEAST_KEPT = 0.5
_VOICE = "voice"


@dataclass(frozen=True, slots=True)
class Results:
    """Say what came of a run.

    Attributes:
        accounts: What became of the planned rows.
        by_category: The same, of each category.
        diversity: How much the replies of each category differ.
        coverage: Rows planned and kept of each value of each axis; verdicts are an axis, too.
    """

    accounts: Accounts
    by_category: Mapping[str, Accounts]
    diversity: Mapping[str, Diversity]
    coverage: Mapping[str, Mapping[str, tuple[int, int]]]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what somebody who trains on the rows should know."""
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        for category, counts in self.by_category.items():
            n_decided = counts.planned - counts.pending
            if counts.kept < _LEAST_KEPT * n_decided:
                which = "rows decided so far" if counts.pending else "planned rows"
                yield f"{category}: only {counts.kept:,} of {n_decided:,} {which} are kept"
            yield from (f"{category}: {warning}" for warning in self.diversity[category].warnings())
        for axis, values in self.coverage.items():
            for value, (n_planned, n_kept) in values.items():
                if n_kept == 0 and n_planned and not self.accounts.pending:
                    yield f"{axis}: none of the {n_planned:,} rows planned as {value!r} is kept"

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for `json.dumps`."""
        coverage = {
            axis: {value: {"planned": planned, "kept": kept} for value, (planned, kept) in values.items()}
            for axis, values in self.coverage.items()
        }
        return {
            "accounts": self.accounts.to_json(),
            "by_category": {key: counts.to_json() for key, counts in self.by_category.items()},
            "coverage": coverage,
            "diversity": {key: found.to_json() for key, found in self.diversity.items()},
            "warnings": list(self.warnings),
        }


def write_results(generation: Generation, journal: Journal, places: Places) -> Results:
    """Write rows, rejects and report from what the journal holds.

    Rows stand in the order of the plan, as do rejects, those of a row by attempt: neither concurrency nor a stop in
    between changes their order.

    Raises:
        OutputError: A file cannot be written.
    """
    cells = {cell.id: cell for cell in generation.plan.cells}
    kept = {decision.id: decision for decision in journal.decisions if decision.fate == "kept"}
    rows = (_row(cell, kept[cell.id], generation) for cell in cells.values() if cell.id in kept)
    _write_lines(places.rows, rows)
    place = {name: number for number, name in enumerate(cells)}
    decisions = sorted(journal.decisions, key=lambda decision: (place[decision.id], decision.attempt))
    failed = (decision for decision in decisions if decision.fate != "kept")
    _write_lines(places.rejects, (_reject(cells[decision.id], decision, generation) for decision in failed))
    found = _results(generation, journal, kept)
    spending = {"writer": generation.writer.spending.to_json(), "judge": generation.checker.spending.to_json()}
    write_json(places.report, {"run": generation.manifest, **found.to_json(), "spending": spending})
    return found


def _results(generation: Generation, journal: Journal, kept: Mapping[str, Decision]) -> Results:
    attempts, by_category = generation.recipe.attempts, generation.plan.by_category()
    return Results(
        accounts=generation.accounts(journal),
        by_category={
            category: account(cells, journal.decisions, attempts=attempts) for category, cells in by_category.items()
        },
        diversity={category: _diversity(cells, kept) for category, cells in by_category.items()},
        coverage=_coverage(generation.plan.cells, kept),
    )


def _diversity(cells: Iterable[Cell], kept: Mapping[str, Decision]) -> Diversity:
    whole = list(cells)
    ours = [(cell, talk) for cell in whole if cell.id in kept and (talk := kept[cell.id].conversation) is not None]
    voices = [cell.axes[_VOICE] for cell, _ in ours if _VOICE in cell.axes]
    planned = Counter(cell.axes[_VOICE] for cell in whole if _VOICE in cell.axes)
    return diversity_of([talk.reply for _, talk in ours], voices, planned)


def _coverage(cells: Iterable[Cell], kept: Mapping[str, Decision]) -> dict[str, dict[str, tuple[int, int]]]:
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for cell in cells:
        for axis, value in {"verdict": cell.verdict, **cell.axes}.items():
            n_planned, n_kept = found.setdefault(axis, {}).get(value, (0, 0))
            found[axis][value] = (n_planned + 1, n_kept + (cell.id in kept))
    return found


def _row(cell: Cell, decision: Decision, generation: Generation) -> dict[str, Any]:
    """Return a row as training reads it, with its provenance."""
    judged = {} if decision.judged is None else decision.judged
    voice = {"style": cell.axes[_VOICE]} if _VOICE in cell.axes else {}
    return {
        "id": cell.id,
        "category": cell.category,
        "leaf": cell.leaf,
        "language": cell.language,
        "messages": decision.to_json()["messages"],
        "verdict": cell.verdict,
        "labels": judged.get("labels", []),
        **voice,
        "provenance": _provenance(cell, decision, generation),
    }


def _reject(cell: Cell, decision: Decision, generation: Generation) -> dict[str, Any]:
    """Return an attempt that does not count, with its reason."""
    planned = {"category": cell.category, "leaf": cell.leaf, "verdict": cell.verdict}
    return {**decision.to_json(), "planned": planned, "provenance": _provenance(cell, decision, generation)}


def _provenance(cell: Cell, decision: Decision, generation: Generation) -> dict[str, Any]:
    seed = generation.row_prompt.seed(cell, decision.attempt)
    own = {"seed": seed, "attempt": decision.attempt, "axes": cell.axes}
    return {**generation.provenance, **own}


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with writing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
