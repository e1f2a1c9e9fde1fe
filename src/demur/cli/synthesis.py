"""What `demur synth generate` opens, shows and prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from demur.cli.auditing import say
from demur.cli.judging import SpentColumn, estimate_lines, spending_line
from demur.errors import BudgetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rich.console import Console

    from demur.llm.client import Client
    from demur.synthesis.decisions import Accounts, Decision
    from demur.synthesis.duplicates import Seen
    from demur.synthesis.generation import Generation
    from demur.synthesis.plan import Plan
    from demur.synthesis.recipe import SynthesisRecipe
    from demur.synthesis.results import Results

__all__ = ["Role", "plan_lines", "print_results", "read_avoided", "show_decisions", "size_lines", "synthesis_bar"]


@dataclass(frozen=True, slots=True)
class Role:
    """Say who writes, or who judges, as the options have it.

    Attributes:
        part: `writer` or `judge`; what each of them spends adds up on its own.
        model: Name of the model.
        base_url: Where its API begins.
        key_variable: Environment variable with the key, or None.
        price: INPUT,OUTPUT, or None.
    """

    part: str
    model: str
    base_url: str
    key_variable: str | None
    price: str | None

    def client(self, patience: tuple[int, float, int], prices: Path | None, run: str | None, **options: Any) -> Client:  # noqa: ANN401  # those of the client, which has their types
        """Open the client, given concurrency, timeout and retries, the file of prices, and the name of the run."""
        from demur.cli.judging import read_prices
        from demur.llm.client import Client
        from demur.llm.endpoint import Endpoint

        endpoint = Endpoint(self.model, self.base_url, self.key_variable, *patience)
        named = None if run is None else f"{run}#{self.part}"
        try:
            return Client(endpoint, prices=read_prices(self.model, prices, self.price), run=named, **options)
        except BudgetError as error:
            if self.part == "judge":
                error.add_note("the price of another judge than the writer is given with --judge-price")
            raise


def read_avoided(paths: list[Path] | None, out: Path | None, console: Console) -> Seen | None:
    """Read the rows that must not be written again, and say how many they are.

    What the run itself has written is not among them where it stands in a folder: it could not be gone on with.

    Raises:
        BadParameter: A file is given that the run itself writes.
    """
    from demur.synthesis.duplicates import read_seen
    from demur.synthesis.journal import Places

    if not paths:
        return None
    own = set() if out is None else {path.resolve() for path in Places(out).written}
    if given := next((path for path in paths if path.resolve() in own), None):
        message = f"{str(given)!r} is written by this run, which cannot avoid its own rows; name other files"
        raise typer.BadParameter(message, param_hint="--avoid")
    seen, n_rows, broken = read_seen(paths, apart_from=own)
    unread = f"; {len(broken):,} could not be read, the first: {broken[0]}" if broken else ""
    say(console, f"avoiding {n_rows:,} rows of {', '.join(map(str, paths))}{unread}")
    return seen


def plan_lines(plan: Plan, recipe: SynthesisRecipe) -> Iterator[str]:
    """Show a plan: rows by category, and how often each value of each axis is met in a category."""
    from demur.data.label_fields import OUTCOMES

    yield f"{recipe.name}: {len(plan):,} rows in {len(plan.by_category()):,} categories, recipe {recipe.sha256[:12]}"
    verdicts, leaves = plan.counts("verdict"), plan.counts("leaf")
    for category, cells in plan.by_category().items():
        met = ", ".join(f"{verdicts[category][verdict]:,} {verdict}" for verdict in recipe.verdicts.weights())
        yield f"  {category:<24} {len(cells):>6,} rows: {met}; {len(leaves[category]):,} leaves"
    for axis in recipe.axes:
        counts = plan.counts(axis.key)
        only = "" if len(axis.verdicts) == len(OUTCOMES) else f" ({', '.join(axis.verdicts)})"
        values = ", ".join(f"{key} {_range([found[key] for found in counts.values()])}" for key in axis.weights())
        yield f"  {axis.key}{only}, rows of a category: {values}"


def _range(counts: list[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least:,}" if least == most else f"{least:,}-{most:,}"


def size_lines(generation: Generation) -> Iterator[str]:
    """Say what writing and judging each row once would come to."""
    for part, estimate in zip(("write", "judge"), generation.estimates(), strict=True):
        yield from (f"{part}: {line}" for line in estimate_lines(estimate, n_blank=0, n_broken=0))
    n = generation.recipe.attempts
    yield f"a row that is rejected is written and judged again, {n} times at most in all; that comes on top"


def synthesis_bar(console: Console, *clients: Client) -> Progress:
    """Return the bar of a run."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[kept]:,} kept, {task.fields[failed]:,} attempts failed"),
        *map(SpentColumn, clients),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def show_decisions(progress: Progress, before: Accounts, *, attempts: int) -> Callable[[Decision], None]:
    """Return what moves the bar: rows are done when they are kept or have no attempt left."""
    counts = Counter(kept=before.kept, failed=sum(before.reasons.values()), done=before.planned - before.pending)
    tried = Counter(before.tried)
    task = progress.add_task("writing", total=before.planned, kept=0, failed=0)

    def show(decision: Decision | None = None) -> None:
        if decision is not None:
            is_kept = decision.fate == "kept"
            counts["kept" if is_kept else "failed"] += 1
            tried[decision.id] += 1
            counts["done"] += is_kept or tried[decision.id] >= attempts
        progress.update(task, completed=counts["done"], kept=counts["kept"], failed=counts["failed"])

    show()
    return show


def print_results(found: Results, generation: Generation, out: Path) -> None:
    """Print what became of the planned rows, and what was paid."""
    for category, counts in found.by_category.items():
        diversity = found.diversity[category]
        alike = f", self-BLEU {diversity.self_bleu:.2f}" if counts.kept > 1 else ""
        print(f"  {category:<24} {counts.kept:>6,} of {counts.planned:,} kept{alike}")
    counts = found.accounts
    pending = f" + {counts.pending:,} pending" if counts.pending else ""
    print(
        f"{counts.planned:,} planned = {counts.kept:,} kept + {counts.rejected:,} rejected + "
        f"{counts.given_up:,} given up{pending}"
    )
    if counts.reasons:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in Counter(counts.reasons).most_common())
        print(f"attempts that failed: {reasons}")
    for warning in found.warnings:
        print(f"warning: {warning}")
    for part, client in (("writer", generation.writer), ("judge", generation.checker)):
        print(f"{part}: {spending_line(client.spending)}")
    print(f"rows: {out}")
