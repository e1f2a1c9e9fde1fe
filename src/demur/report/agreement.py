"""Write an agreement out: as plain text for a terminal, as Markdown for a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.report import agreement_tables as figures
from demur.report import agreement_words as words
from demur.report import annotator_tables as annotators
from demur.report.markdown import escaped, markdown_table
from demur.report.text import plain, text_table
from demur.studies.excerpts import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.report.examples import Shown
    from demur.report.tables import Table
    from demur.studies.agreement import Agreement

__all__ = ["Section", "agreement_markdown", "agreement_text", "opening", "sections"]

_LINE = 1_000


@dataclass(frozen=True, slots=True)
class Section:
    """Keep one part of the report.

    Attributes:
        key: Names it, for links and plots.
        title: What people call it.
        notes: Sentences before the tables.
        tables: Tables that have rows.
        replies: Replies to show after them.
    """

    key: str
    title: str
    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    replies: tuple[Shown, ...] = ()


def sections(found: Agreement) -> tuple[Section, ...]:
    """Return the parts of the report in order, without those that have nothing to show."""
    return tuple(one for one in _sections(found) if one.tables or one.replies)


def agreement_text(found: Agreement) -> str:
    """Render an agreement as plain text."""
    blocks = [plain(f"Agreement in {found.name}"), *map(plain, opening(found))]
    for section in sections(found):
        blocks += [section.title.upper(), *map(plain, section.notes), *(text_table(table) for table in section.tables)]
        blocks += [_text_reply(reply) for reply in section.replies]
    blocks += ["HOW IT WAS MEASURED", "\n".join(f"{term}: {said}" for term, said in words.METHODS)]
    return "\n\n".join(blocks) + "\n"


def agreement_markdown(found: Agreement) -> str:
    """Render an agreement as Markdown."""
    blocks = [f"## Agreement in {escaped(found.name)}", *(escaped(line) for line in opening(found))]
    for section in sections(found):
        blocks += [f"### {section.title}", *map(escaped, section.notes), *map(markdown_table, section.tables)]
        blocks += [_markdown_reply(reply) for reply in section.replies]
    blocks += ["### How it was measured", "\n".join(f"- {term}: {escaped(said)}" for term, said in words.METHODS)]
    return "\n\n".join(blocks) + "\n"


def opening(found: Agreement) -> list[str]:
    """Return what stands before the parts: what there is, whose it is, and what the intervals hold."""
    notes = (words.headline(found), words.who_note(found), words.interval_note(found), words.left_out_note(found))
    return [note for note in notes if note]


def _sections(found: Agreement) -> Iterator[Section]:
    sources = figures.source_tables(found)
    yield Section("overall", "Overall", (), _filled(figures.overall_table(found), figures.sets_table(found)))
    yield Section("sources", "By source", (), sources)
    yield Section("kinds", "By group and kind", (), _filled(figures.one_against_rest_table(found)))
    pairs = _filled(annotators.matrix_table(found), annotators.pairs_table(found))
    yield Section("pairs", "Who disagrees with whom", (), pairs)
    yield Section("confused", "What is confused", (), _filled(annotators.confused_table(found)))
    standings = [annotators.ceiling_table(found, one) for one in found.ceilings]
    each = _filled(annotators.annotators_table(found), *standings, annotators.reliability_table(found))
    yield Section("annotators", "Each annotator", (), each)
    yield Section("consensus", "Consensus", (), _filled(annotators.consensus_table(found)))
    replies = tuple(words.shown(one) for one in found.disputed)
    yield Section("discuss", "Replies to discuss", (words.discussion(found),), (), replies)
    yield Section("unread", "What could not be read", (), _filled(*_unread(found)))


def _unread(found: Agreement) -> tuple[Table, Table]:
    return annotators.unread_table(found), annotators.broken_table(found)


def _filled(*tables: Table) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)


def _text_reply(reply: Shown) -> str:
    lines = (reply.place, f"Request: {reply.request or 'none'}", f"Reply: {reply.reply}")
    return "\n  ".join(excerpt(" ".join(line.split()), _LINE) for line in lines)


def _markdown_reply(reply: Shown) -> str:
    request = escaped(reply.request) or "none"
    return f"- {escaped(reply.place)}\n  - Request: {request}\n  - Reply: {escaped(reply.reply)}"
