"""The command line: parse, call, print."""

from __future__ import annotations

import errno
import logging
import sys

import typer
from rich.console import Console

from demur.cli import (
    ablate,
    agree,
    audit,
    average,
    benchmark,
    classify,
    evaluate,
    export,
    judge,
    synth,
    taxonomy,
    train,
)
from demur.errors import DemurError

__all__ = ["app", "main"]

# What a shell expects of a program that was stopped with Ctrl-C: 128 + SIGINT.
_INTERRUPTED = 130
# No more can be written: of the disk, of the user's share of it, or of a file.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

app = typer.Typer(
    help="Audit how language models refuse.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("ablate")(ablate.ablate)
app.command("agree")(agree.agree)
app.command("audit")(audit.audit)
app.command("average")(average.average)
app.command("benchmark")(benchmark.benchmark)
app.command("classify")(classify.classify)
app.command("evaluate")(evaluate.evaluate)
app.command("export")(export.export)
app.command("judge")(judge.judge)
app.command("train")(train.train)
app.add_typer(synth.app, name="synth")
app.add_typer(taxonomy.app, name="taxonomy")


def _print_version(value: bool) -> None:
    if value:
        from demur import __version__

        print(f"demur {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_print_version, is_eager=True),
) -> None:
    del version  # the callback has printed it


class _Once(logging.Filter):
    """Let each warning through once: a source that is read twice, to count its rows first, would give its own twice."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._told
        self._told.add(text)
        return is_new


def main() -> None:
    """Run the command line; a failure on purpose ends in one clear line and exit code 1, Ctrl-C in 130."""
    shown = logging.StreamHandler(sys.stderr)
    shown.addFilter(_Once())
    logging.basicConfig(format="%(message)s", level=logging.WARNING, handlers=[shown])
    try:
        app()
    except DemurError as error:
        _complain(f"error: {error}", error)
        raise SystemExit(1) from error
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _complain(f"error: {error}; make room, and run it again", error)
        raise SystemExit(1) from error
    except SystemExit as stop:
        # typer turns Ctrl-C into this exit, and what we noted on the interruption would be lost.
        if stop.code == _INTERRUPTED and stop.__context__ is not None:
            _complain("stopped", stop.__context__.__cause__)
        raise


def _complain(message: str, error: BaseException | None) -> None:
    """Print a message, and what was noted on the error on its way up."""
    lines = [message, *getattr(error, "__notes__", [])]
    Console(stderr=True).print("\n".join(lines), style="red", markup=False, highlight=False, soft_wrap=True)
