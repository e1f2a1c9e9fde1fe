"""`demur synth`: make training rows, and check them before they are believed."""

from __future__ import annotations

import typer

from demur.cli.synth_check import check
from demur.cli.synth_generate import generate
from demur.cli.synth_vary import vary

__all__ = ["app"]

app = typer.Typer(
    help="Make training rows, and check them before they are believed.", no_args_is_help=True, rich_markup_mode=None
)
app.command("check")(check)
app.command("generate")(generate)
app.command("vary")(vary)
