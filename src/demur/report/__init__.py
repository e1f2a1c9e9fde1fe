"""Render what studies found: tables, plots, HTML and Markdown."""

from demur.report.audit import write_reports

__all__ = ["write_reports"]
