"""Write the reports of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from demur.report.html import render_html
from demur.report.markdown import render_markdown
from demur.studies.writing import writing

if TYPE_CHECKING:
    from demur.studies.findings import Audit

__all__ = ["write_reports"]


def write_reports(audit: Audit, out: Path | str | None = None) -> None:
    """Write `report.html` and `report.md`.

    Args:
        audit: What was found.
        out: Folder to write them to; None for that of the audit.

    Raises:
        OutputError: The folder cannot be written.
    """
    folder = audit.path if out is None else Path(out)
    for name, text in (("report.html", render_html(audit)), ("report.md", render_markdown(audit))):
        with writing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
