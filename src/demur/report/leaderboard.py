"""Write a leaderboard out: a few lines for a terminal, Markdown, and a folder with every form of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.errors import OutputError
from demur.report import leaderboard_words as words
from demur.report.leaderboard_plots import frontier_plot
from demur.report.leaderboard_tables import short_table, tables
from demur.report.markdown import escaped, markdown_table
from demur.report.svg import write_svg
from demur.report.text import plain, text_table
from demur.studies.writing import read_object, require_room, write_json, writing

if TYPE_CHECKING:
    from pathlib import Path

    from demur.studies.leaderboard import Leaderboard

__all__ = ["leaderboard_markdown", "leaderboard_text", "require_board", "write_leaderboard"]

_PLOT = "frontier.svg"
_FILES = ("leaderboard.md", "leaderboard.csv", "leaderboard.html", "leaderboard.json", _PLOT)
_FORMULA = ("=", "+", "-", "@")


def leaderboard_text(found: Leaderboard) -> str:
    """Render the main figures as plain text."""
    said = map(plain, (words.headline(found), *words.notes(found)))
    return "\n\n".join([*said, text_table(short_table(found))]) + "\n"


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


def require_board(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder for a leaderboard that holds another one, or files of those names that no benchmark wrote.

    Args:
        folder: Where it is to be written.
        overwrite: Whether it may replace another leaderboard.

    Raises:
        OutputError: It may not be written there.
    """
    taken = [folder / name for name in _FILES if (folder / name).exists() or (folder / name).is_symlink()]
    if taken and not _is_board(folder):
        names = ", ".join(path.name for path in taken)
        message = (
            f"{str(folder)!r} holds {names}, which no benchmark wrote and --overwrite does not replace; move it away, "
            "or give another folder with --out (out=…)"
        )
        raise OutputError(message)
    require_room(taken, overwrite=overwrite)


def _is_board(folder: Path) -> bool:
    try:
        return read_object(folder / "leaderboard.json").keys() >= {"entries", "reference", "panel"}
    except OutputError:
        return False


def write_leaderboard(found: Leaderboard, folder: Path) -> None:
    """Write `leaderboard.json`, `.md`, `.csv` and `.html`, and `frontier.svg` where a cost is known, each whole.

    Raises:
        OutputError: The folder cannot be written.
    """
    from demur.report.leaderboard_html import render_leaderboard

    # First: by it, a folder is known for a leaderboard's, and one that was stopped halfway may be replaced.
    write_json(folder / "leaderboard.json", found.to_json())
    if not found.has_costs:
        # That of the leaderboard that is replaced would stand beside this one.
        (folder / _PLOT).unlink(missing_ok=True)
    else:
        with writing(folder / _PLOT) as temporary:
            write_svg(frontier_plot(found), temporary)
    for name, text in (
        ("leaderboard.md", leaderboard_markdown(found, plot=_PLOT)),
        ("leaderboard.csv", _csv(found)),
        ("leaderboard.html", render_leaderboard(found)),
    ):
        with writing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _csv(found: Leaderboard) -> str:
    """Render a row for each labeler; an apostrophe keeps spreadsheets from reading a name as a formula (OWASP)."""
    named = found.to_frame().rename(index=lambda name: f"'{name}" if name.startswith(_FORMULA) else name)
    return named.to_csv(lineterminator="\n")
