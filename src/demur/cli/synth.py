"""`demur synth`: make training rows, and check them before they are believed."""

from __future__ import annotations

import typer

from demur.cli.synth_generate import generate

__all__ = ["app"]

_HELP = "Make training rows, and check them before they are believed."

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)
# With a callback, a group of one command is a group still.
app.callback(help=_HELP)(lambda: None)
app.command("generate")(generate)
