"""Write a leaderboard out: a few lines for a terminal, Markdown, and a folder with every form of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.report import leaderboard_words as words
from demur.report.leaderboard_plots import frontier_plot
from demur.report.leaderboard_tables import short_table, tables
from demur.report.markdown import escaped, markdown_table
from demur.report.text import text_table
from demur.studies.writing import write_json, writing

if TYPE_CHECKING:
    from pathlib import Path

    from demur.studies.leaderboard import Leaderboard

__all__ = ["leaderboard_markdown", "leaderboard_text", "write_leaderboard"]

_PLOT = "frontier.svg"


def leaderboard_text(found: Leaderboard) -> str:
    """Render the main figures as plain text."""
    return "\n\n".join([words.headline(found), *words.notes(found), text_table(short_table(found))]) + "\n"


def leaderboard_markdown(found: Leaderboard, *, plot: str | None = None) -> str:
    """Render everything as Markdown.

    Args:
        found: What was measured.
        plot: Where the drawing of the frontier lies; None for none.
    """
    blocks = [f"# Leaderboard on {escaped(found.name)}", escaped(words.headline(found))]
    blocks += [escaped(note) for note in words.notes(found)]
    first, *others = tables(found)
    blocks += [markdown_table(first)]
    if plot is not None and found.has_costs:
        blocks += [f"![Accuracy over cost]({plot})", escaped(words.plot_caption(found))]
    blocks += [markdown_table(table) for table in others]
    blocks += ["## How it was measured", "\n".join(f"- {term}: {escaped(said)}" for term, said in words.METHODS)]
    return "\n\n".join(blocks) + "\n"


def write_leaderboard(found: Leaderboard, folder: Path) -> None:
    """Write `leaderboard.md`, `.csv`, `.html` and `.json`, and `frontier.svg` where a cost is known, each whole.

    Raises:
        OutputError: The folder cannot be written.
    """
    from demur.report.leaderboard_html import render_leaderboard

    if found.has_costs:
        with writing(folder / _PLOT) as temporary:
            frontier_plot(found).savefig(temporary, format="svg", metadata={"Date": None})
    for name, text in (
        ("leaderboard.md", leaderboard_markdown(found, plot=_PLOT)),
        ("leaderboard.csv", found.to_frame().to_csv(lineterminator="\n")),
        ("leaderboard.html", render_leaderboard(found)),
    ):
        with writing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    write_json(folder / "leaderboard.json", found.to_json())
