"""Render a taxonomy as the guide that people who annotate work from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.taxonomy import Category, HardCase, Taxonomy

__all__ = ["category_guide", "guide"]

UNDECIDED = "as usual"
"""What stands in the table of hard cases where a case leaves the verdict or the kind to the usual rules."""


def guide(taxonomy: Taxonomy) -> str:
    """Render the annotation guide as Markdown, ending in a newline."""
    lines = [
        f"# Annotation guide: {_plain(taxonomy.name)} {_plain(taxonomy.version)}",
        "",
        "Rendered from the taxonomy's YAML file by `demur.report.guide`: edit that file, not this page.",
        "",
        *_gate(taxonomy),
        *_procedure(taxonomy),
        *_overview(taxonomy),
    ]
    for group in taxonomy.groups:
        lines += [f"## {_plain(group.name)} (`{group.key}`)", "", _plain(group.definition), ""]
        for key in taxonomy.members(group.key):
            lines += _category(taxonomy[key])
    if taxonomy.hard_cases:
        lines += _hard_cases(taxonomy.hard_cases)
    return "\n".join(lines).rstrip("\n") + "\n"


def category_guide(category: Category) -> str:
    """Render one category's section of the guide as Markdown."""
    return "\n".join(_category(category))


def _gate(taxonomy: Taxonomy) -> Iterator[str]:
    yield from ("## Does it refuse?", "")
    yield f"- **full**: {_plain(taxonomy.gate.full)}"
    yield f"- **partial**: {_plain(taxonomy.gate.partial)}"
    yield f"- **none**: {_plain(taxonomy.gate.none)}"
    yield from ("", "Both *full* and *partial* count as a refusal where one bit is asked for.", "")
    yield "People label an empty reply *none*. Demur's audits leave it unscored (`empty_reply`): it is in no share."
    yield ""


def _procedure(taxonomy: Taxonomy) -> Iterator[str]:
    if taxonomy.procedure:
        yield from ("## In which order to decide", "")
        yield from (f"{number}. {_plain(step)}" for number, step in enumerate(taxonomy.procedure, start=1))
        yield ""


def _overview(taxonomy: Taxonomy) -> Iterator[str]:
    yield from ("## The kinds", "", "| group | kind | key |", "| --- | --- | --- |")
    names = {group.key: group.name for group in taxonomy.groups}
    for category in taxonomy:
        yield f"| {_cell(names[category.group])} | {_cell(category.name)} | `{category.key}` |"
    yield ""


def _category(category: Category) -> Iterator[str]:
    yield from (f"### {_plain(category.name)} (`{category.key}`)", "", _plain(category.definition), "")
    if category.boundaries:
        yield from ("**Where it ends**", "")
        yield from (f"- against `{each.against}`: {_plain(each.rule)}" for each in category.boundaries)
        yield ""
    if category.examples:
        yield from ("**It is this**", "")
        yield from (_exchange(each.request, each.reply) for each in category.examples)
        yield ""
    if category.counter_examples:
        yield from ("**It is not this**", "")
        for each in category.counter_examples:
            yield f"{_exchange(each.request, each.reply)}\\\n  → `{each.instead}`: {_plain(each.why)}"
        yield ""
    if category.leaves:
        yield from (f"<details><summary>{len(category.leaves)} leaves</summary>", "")
        yield from (f"- {_plain(leaf)}" for leaf in category.leaves)
        yield from ("", "</details>", "")


def _exchange(request: str, reply: str) -> str:
    return f"- *User:* {_plain(request)}\\\n  *Assistant:* {_plain(reply)}"


def _hard_cases(hard_cases: tuple[HardCase, ...]) -> Iterator[str]:
    yield from ("## Hard cases, decided", "", "| case | verdict | kinds | why |", "| --- | --- | --- | --- |")
    for each in hard_cases:
        verdict = UNDECIDED if each.decision.verdict is None else each.decision.verdict
        kinds = ", ".join(f"`{key}`" for key in each.decision.labels)
        if not kinds:
            kinds = "" if verdict == "none" else UNDECIDED
        yield f"| {_cell(each.case)} | {verdict} | {kinds} | {_cell(each.rule)} |"


def _plain(text: str) -> str:
    """Put text on one line, and keep Markdown from reading markup into it."""
    return re.sub(r"([\\`*<])", r"\\\1", " ".join(text.split()))


def _cell(text: str) -> str:
    """Keep text inside one cell of a table."""
    return _plain(text).replace("|", "\\|")
