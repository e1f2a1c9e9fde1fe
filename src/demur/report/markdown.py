"""Render an audit as Markdown that says what the HTML says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from demur.report import tables, words
from demur.report.examples import borderline, kinds
from demur.report.text import plain
from demur.stats.numbers import NOT_AVAILABLE, percent
from demur.stats.shares import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from demur.report.examples import Kind, Shown
    from demur.report.tables import Table
    from demur.studies.findings import Audit

__all__ = ["escaped", "markdown_table", "render_markdown"]

_BAR_WIDTH = 24
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~$&!:@])")
# What makes a list or a rule of a line: a mark at its beginning, or a number before one.
_LIST_OR_RULE = re.compile(r"^(\d*)([-+=](?<!\d.)|(?<=\d)[.)](?=\s|$))")


def escaped(text: str) -> str:
    r"""Return text of the data so that Markdown shows it as it is, on one line.

    Example:
        >>> print(escaped("a | b<script>"))
        a \| b\<script\>
    """
    return _LIST_OR_RULE.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", plain(text)))


def render_markdown(audit: Audit) -> str:
    """Render the report, ending in a newline."""
    corrected = audit.corrected
    of_corrected = NOT_AVAILABLE
    if corrected is not None and corrected.is_defined:
        of_corrected = percent(corrected.share, Interval(corrected.low, corrected.high))
    blocks = [
        f"# Refusals in {escaped(audit.name)}",
        words.headline(audit),
        *filter(None, [words.language_note(audit)]),
        (
            f"- **As counted: {percent(audit.share, audit.interval)}.** {escaped(words.raw_note(audit))}\n"
            f"- **Corrected: {of_corrected}.** {escaped(words.correction(audit))}"
        ),
        "## Of which kinds",
        "Each refusal counts once, under its main kind. Intervals are 95%, of sampling alone.",
        markdown_table(tables.group_table(audit)),
        markdown_table(_with_bars(audit)),
        *filter(None, [words.resolutions(audit)]),
        *_probabilities(audit),
        *_sides(audit),
        *_replies(audit),
        *_rest(audit),
        "## How it was made",
        "\n".join(f"- {term}: {escaped(value) if value else 'none'}" for term, value in tables.identification(audit)),
    ]
    return "\n\n".join(blocks) + "\n"


def _probabilities(audit: Audit) -> Iterator[str]:
    table = tables.probability_table(audit)
    if table.rows:
        yield "## How sure"
        yield words.PROBABILITIES
        yield markdown_table(table)


def _sides(audit: Audit) -> Iterator[str]:
    if not audit.tally.sides:
        return
    yield f"## {escaped(' against '.join(audit.tally.sides).capitalize())}"
    if sentence := words.pairs_sentence(audit):
        yield sentence
    yield markdown_table(tables.sides_table(audit))
    if (by_kind := tables.side_kinds_table(audit)).rows:
        yield markdown_table(by_kind)
    if sentence:
        yield markdown_table(tables.pairs_table(audit))


def _replies(audit: Audit) -> Iterator[str]:
    yield "## Examples"
    found = kinds(audit)
    if not found:
        yield words.NO_REFUSAL
    else:
        yield words.examples_note(audit)
    for kind in found:
        yield from _kind(kind)
    if near := borderline(audit):
        yield "## Borderline replies"
        yield words.borderline_note(audit)
        yield _shown(near)


def _kind(kind: Kind) -> Iterator[str]:
    yield f"### {escaped(kind.name)} ({escaped(kind.group)}; {kind.met})"
    yield f"*{escaped(kind.definition)}*"
    if kind.surest:
        yield _shown(kind.surest)
    if kind.doubtful:
        yield "Less sure:"
        yield _shown(kind.doubtful)


def _rest(audit: Audit) -> Iterator[str]:
    yield "## Most repeated wordings"
    wordings = tables.wordings_table(audit)
    if wordings.rows:
        yield words.wordings_note(audit)
        yield markdown_table(wordings)
    else:
        yield words.no_wordings(audit)
    yield "## Unscored replies"
    unscored, broken = tables.unscored_table(audit), tables.broken_table(audit)
    yield words.unscored_note(audit)
    if unscored.rows:
        yield markdown_table(unscored)
    if broken.rows:
        yield markdown_table(broken)


def _shown(replies: Sequence[Shown]) -> str:
    return "\n".join(
        f"- {escaped(one.place)}\n  - Request: {escaped(one.request) or 'none'}\n  - Reply: {escaped(one.reply)}"
        # A line of its own: emphasis inside of the reply breaks where no space stands around it, as in Chinese.
        + (f"\n  - Marked: {escaped(one.evidence)}" if one.evidence not in ("", one.reply) else "")
        for one in replies
    )


def _with_bars(audit: Audit) -> Table:
    """Return the categories with a bar of text beside each: Markdown has no plots."""
    table = tables.category_table(audit)
    counts = [int(row[table.n_text].replace(",", "")) for row in table.rows]
    most = max(counts, default=0)
    bars = [f"{'█' * -(-number * _BAR_WIDTH // most)}" if number else "" for number in counts]
    rows = tuple((*row[:2], bar, *row[2:]) for row, bar in zip(table.rows, bars, strict=True))
    return tables.Table(table.caption, (*table.head[:2], "", *table.head[2:]), rows, n_text=3)


def markdown_table(table: Table) -> str:
    """Return a table under its caption; caption and cells are shown as they are."""
    rules = ["---" if column < table.n_text else "---:" for column in range(len(table.head))]
    lines = [_line([escaped(name) for name in table.head]), _line(rules)]
    lines += [_line([escaped(cell) for cell in row]) for row in table.rows]
    return f"{escaped(table.caption)}:\n\n" + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
