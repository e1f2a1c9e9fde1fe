"""Write a comparison of variants out as a Markdown table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demur.stats.numbers import decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.studies.ablation import Line

__all__ = ["ablation_markdown"]


def ablation_markdown(name: str, lines: Sequence[Line], *, seeds: Sequence[int], command: str) -> str:
    """Render one row a variant, mean and spread over the seeds in each cell, and the command that makes it again.

    Args:
        name: Of the plan.
        lines: At least one, all with the same columns.
        seeds: That each line was trained with.
        command: The command line.
    """
    columns = list(lines[0].figures)
    header = ["variant", *columns]
    rows = [[line.title, *(_cell(line, column) for column in columns)] for line in lines]
    return "\n".join(
        [
            f"# Ablations: {name}",
            "",
            _legend(seeds),
            "",
            "```console",
            command,
            "```",
            "",
            _row(header),
            "|" + " --- |" + " ---: |" * len(columns),
            *map(_row, rows),
            "",
        ]
    )


def _legend(seeds: Sequence[int]) -> str:
    named = ", ".join(str(seed) for seed in seeds)
    if len(seeds) == 1:
        return f"Seed {named}; one seed has no spread. Made by:"
    return f"Mean ± standard deviation over the seeds {named}. Made by:"


def _cell(line: Line, column: str) -> str:
    mean, spread = line.mean(column), line.spread(column)
    if math.isnan(mean):
        return "-"
    return decimal(mean) if math.isnan(spread) else f"{decimal(mean)} ± {decimal(spread)}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
