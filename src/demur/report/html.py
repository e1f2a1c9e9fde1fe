"""Render an audit as one HTML page that needs nothing else: no script, no request, no more bytes for more rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from demur.report import plots, tables, words
from demur.report.examples import borderline, kinds
from demur.report.svg import inline_svg
from demur.stats.composition import UNNAMED
from demur.stats.numbers import count, percent
from demur.stats.shares import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from jinja2 import Template
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from demur.studies.findings import Audit

__all__ = ["page", "render_html"]


@dataclass(frozen=True, slots=True)
class _Segment:
    """Keep one part of the bar over all scored replies."""

    name: str
    color: str
    share: str
    width: float


def render_html(audit: Audit) -> str:
    """Render the report; whatever the data hold stands in it as text, never as markup."""
    corrected = audit.corrected
    is_corrected = corrected is not None and corrected.is_defined
    return page("report.html.j2").render(
        audit=audit,
        tables=tables,
        words=words,
        raw=percent(audit.share, audit.interval),
        corrected=percent(corrected.share, Interval(corrected.low, corrected.high))
        if corrected is not None and is_corrected
        else None,
        facts=_facts(audit),
        segments=_segments(audit),
        plots=_plots(audit),
        kinds=kinds(audit),
        borderline=borderline(audit),
    )


def page(name: str) -> Template:
    """Return a template of a page; what it is given is escaped, and what it is not given is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("demur.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def _facts(audit: Audit) -> tuple[tuple[str, str], ...]:
    found = audit.composition
    return (
        ("replies", count(found.rows)),
        ("refuse in full", count(found.full)),
        ("refuse in part", count(found.partial)),
        ("do not refuse", count(found.none)),
        ("could not be judged", count(found.rows - found.scored)),
    )


def _segments(audit: Audit) -> tuple[_Segment, ...]:
    """Return the groups' parts of all scored replies, for the bar under the headline."""
    colors = plots.group_colors(audit)
    names = {group.key: group.name for group in audit.taxonomy.groups}
    return tuple(
        _Segment(names.get(key, "Unnamed kind"), colors[key], percent(share.share, share.interval), 100 * share.share)
        for key, share in audit.by_group.items()
        if share.count or key != UNNAMED
        if share.total
    )


def _plots(audit: Audit) -> dict[str, Markup]:
    """Draw what there is something to draw of."""
    from markupsafe import Markup

    wanted: dict[str, tuple[Callable[[Audit], Figure], str]] = {}
    if audit.composition.scored:
        wanted["kinds"] = (plots.composition_plot, "Share of scored replies that refuse, by kind, with 95% intervals")
    if any(audit.tally.probabilities):
        wanted["probabilities"] = (plots.probability_plot, "Number of replies by probability of refusal")
    if audit.tally.sides:
        wanted["sides"] = (plots.sides_plot, "Share of refusals by kind and side, with 95% intervals")
    # The drawings hold no text of the data: names of kinds and sides, which matplotlib escapes, and numbers.
    return {
        name: Markup(inline_svg(partial(draw, audit), title=title, salt=name))  # noqa: S704
        for name, (draw, title) in wanted.items()
    }
