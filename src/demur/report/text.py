"""Write tables as plain text in aligned columns, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.studies.excerpts import excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.report.tables import Table

__all__ = ["aligned", "plain", "text_table"]

_CELL = 300


def aligned(rows: Sequence[Sequence[str]], n_text: int | None = None) -> str:
    """Return rows, the head among them, with cells below each other.

    Args:
        rows: Cells, each row as long as the first.
        n_text: How many columns, from the first on, are text; the rest stand to the right. None for all.
    """
    n_left = len(rows[0]) if n_text is None else n_text
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(width) if column < n_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def text_table(table: Table) -> str:
    """Return a table under its caption."""
    rows = [[plain(cell) for cell in row] for row in (table.head, *table.rows)]
    return f"{plain(table.caption)}:\n{aligned(rows, table.n_text)}"


def plain(text: str) -> str:
    """Return text of the data on one line, cut where it is very long, that cannot steer the terminal."""
    return excerpt(" ".join(text.split()), _CELL)
