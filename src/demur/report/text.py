"""Write tables as plain text in aligned columns, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.studies.excerpts import excerpt, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.report.tables import Table

__all__ = ["plain", "text_table"]

_CELL = 300


def text_table(table: Table) -> str:
    """Return a table under its caption."""
    rows = [[excerpt(plain(cell), _CELL) for cell in row] for row in (table.head, *table.rows)]
    return f"{plain(table.caption)}:\n{_aligned(rows, table.n_text)}"


def plain(text: str) -> str:
    """Return text of the data on one line that cannot steer the terminal."""
    return printable(" ".join(text.split()))


def _aligned(rows: Sequence[Sequence[str]], n_text: int) -> str:
    """Return rows with cells below each other, those of the first columns to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(width) if column < n_text else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
