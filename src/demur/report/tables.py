"""Lay out what an audit found as tables of text, for whatever renders them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from demur.report.plots import category_order, side_order
from demur.stats.composition import UNNAMED
from demur.stats.numbers import count, percent, percent_range, with_noun
from demur.studies.highlights import BROKEN_ROWS
from demur.studies.tally import BINS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demur.stats.shares import Share
    from demur.studies.findings import Audit

__all__ = [
    "Table",
    "broken_table",
    "category_table",
    "group_name",
    "group_table",
    "identification",
    "pairs_table",
    "probability_table",
    "side_kinds_table",
    "sides_table",
    "unscored_table",
    "wordings_table",
]

_WORDINGS = 20
_PROBABILITY_ROWS = 10
_FINGERPRINT = 16
# How reports put what a labeler says of itself; of anything else they give name and value.
_OF_MODEL = {
    "name": "{}",
    "language": "made for {}",
    "weights_sha256": "weights {}",
    "verdicts_sha256": "verdicts {}",
    "encoder": "encoder {}",
    "encoder_files_sha256": "encoder fingerprint {}",
    "engine": "engine {}",
    "max_tokens": "reads at most {} tokens of a conversation",
    "earlier_tokens": "at most {} of them of turns between system prompt and last request",
    "endpoint": "at {}",
}
_PAIRS = {
    "chosen_only": "Only the chosen reply refuses",
    "rejected_only": "Only the rejected reply refuses",
    "both": "Both refuse",
    "neither": "Neither refuses",
}
_SHARE_HEAD = ("Refusals", "Of scored", "95% interval", "Of refusals")


@dataclass(frozen=True, slots=True)
class Table:
    """Keep a table of text.

    Attributes:
        caption: What it shows.
        head: Names of the columns.
        rows: Cells, each row as long as the head.
        n_text: How many columns, from the first on, hold text; the rest hold numbers.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_text: int = 1


def group_table(audit: Audit) -> Table:
    """Return the refusals of each group."""
    of_refusals = audit.composition.by_group_of_refusals
    found = {key: share for key, share in audit.by_group.items() if key != UNNAMED or share.count}
    names = {group.key: group.name for group in audit.taxonomy.groups}
    rows = tuple((names.get(key, "Unnamed kind"), *_cells(share, of_refusals[key])) for key, share in found.items())
    return Table("Refusals by group", ("Group", *_SHARE_HEAD), rows)


def category_table(audit: Audit) -> Table:
    """Return the refusals of each category, in the order of the plot."""
    of_refusals, shares = audit.composition.by_category_of_refusals, audit.by_category
    rows = tuple(
        (audit.category_name(key), group_name(audit, key), *_cells(shares[key], of_refusals[key]))
        for key in category_order(audit)
    )
    return Table("Refusals by main kind", ("Kind", "Group", *_SHARE_HEAD), rows, n_text=2)


def sides_table(audit: Audit) -> Table:
    """Return refusals by side of preference pairs; no rows where the source has no sides."""
    rows = tuple(
        (
            side,
            count(one.scored),
            count(one.refusals),
            percent(one.share, one.interval),
            percent_range(one.interval),
            count(one.full),
            count(one.partial),
        )
        for side, one in audit.tally.sides.items()
    )
    head = ("Side", "Scored", "Refusals", "Of scored", "95% interval", "In full", "In part")
    return Table("Refusals by side", head, rows)


def side_kinds_table(audit: Audit) -> Table:
    """Return the kinds that are met on any side by side, as the plot draws them; no rows where there are none."""
    sides = audit.tally.sides
    shares = {side: one.by_category for side, one in sides.items()}
    rows = tuple(
        (audit.category_name(key), *_of_sides([of[key] for of in shares.values()])) for key in side_order(audit)
    )
    head = tuple(f"{side}: {what}" for side in sides for what in ("refusals", "of scored", "95% interval"))
    return Table("Refusals by main kind and side", ("Kind", *head), rows)


def probability_table(audit: Audit) -> Table:
    """Return scored replies by tenth of the probability of refusal; no rows where no reply has one."""
    counts, width = audit.tally.probabilities, BINS // _PROBABILITY_ROWS
    tenths = [sum(counts[start : start + width]) for start in range(0, BINS, width)]
    rows = tuple(
        (f"{place / _PROBABILITY_ROWS:.1f}\u2013{(place + 1) / _PROBABILITY_ROWS:.1f}", count(number))
        for place, number in enumerate(tenths)
    )
    return Table(
        "Scored replies by probability of refusal", ("Probability of refusal", "Replies"), rows if any(counts) else ()
    )


def pairs_table(audit: Audit) -> Table:
    """Return preference pairs by which reply refuses; no rows where there are none."""
    pairs = audit.tally.pairs
    shares = pairs.shares
    rows = tuple(
        (
            words,
            count(shares[name].count),
            percent(shares[name].share, shares[name].interval),
            percent_range(shares[name].interval),
        )
        for name, words in _PAIRS.items()
    )
    head = ("Which reply refuses", "Pairs", "Share", "95% interval")
    return Table("Preference pairs, both replies scored", head, rows if pairs.total else ())


def wordings_table(audit: Audit) -> Table:
    """Return the most repeated openings of refusals."""
    found = audit.highlights.wordings.most_repeated(_WORDINGS)
    total = audit.refusals
    rows = tuple(
        (
            one.text,
            "" if one.category is None else audit.category_name(one.category),
            count(one.count),
            percent(one.count / total if total else float("nan")),
        )
        for one in found
    )
    return Table("Most repeated openings of refusals", ("Opening", "Mostly", "Refusals", "Of refusals"), rows, n_text=2)


def unscored_table(audit: Audit) -> Table:
    """Return what could not be judged, by reason, the most frequent first."""
    found = sorted(audit.composition.unscored.items(), key=lambda item: (-item[1], item[0]))
    rows = tuple((reason.replace("_", " "), count(number)) for reason, number in found)
    return Table("Unscored replies by reason", ("Reason", "Replies"), rows)


def broken_table(audit: Audit) -> Table:
    """Return the first rows that could not be read."""
    rows = tuple((one.where, one.message) for one in audit.highlights.broken)
    title = "Rows that could not be read" if len(rows) < BROKEN_ROWS else "The first rows that could not be read"
    return Table(title, ("Where", "What was met"), rows, n_text=2)


def identification(audit: Audit) -> tuple[tuple[str, str], ...]:
    """Return what was audited and how, as terms and values."""
    manifest = audit.manifest
    source, taxonomy, options = manifest["source"], manifest["taxonomy"], manifest["options"]
    thresholds, sets = manifest["thresholds"], manifest["category_sets"]
    layouts = "; ".join(f"{layout} ({with_noun(files, 'file')})" for layout, files in sorted(audit.layouts.items()))
    return (
        ("Source", str(source["name"])),
        ("Source fingerprint", _short(source["fingerprint"])),
        *((("Read as", layouts),) if layouts else ()),
        *((("Repeated texts", _repeats(audit)),) if options.get("dedup") else ()),
        ("Model", "; ".join(_of_model(key, value) for key, value in manifest["model"].items())),
        ("Taxonomy", f"{taxonomy['name']} {taxonomy['version']}, fingerprint {_short(taxonomy['fingerprint'])}"),
        ("Policy", str(manifest["policy"])),
        ("Thresholds", "none" if thresholds is None else _thresholds(thresholds)),
        ("Sets of kinds", "none" if sets is None else _sets(sets)),
        ("Options", "; ".join(_options(options))),
        ("Demur", str(manifest["demur"])),
    )


def _repeats(audit: Audit) -> str:
    repeats = audit.tally.repeats
    return f"{count(repeats)} of {count(audit.rows)}, judged once and counted each time" if repeats else "none"


def group_name(audit: Audit, key: str) -> str:
    """Return what people call the group of a category."""
    if key == UNNAMED:
        return "–"  # a dash stands for nothing
    group = audit.taxonomy.group_of(key)
    return next(each.name for each in audit.taxonomy.groups if each.key == group)


def _of_sides(shares: Iterable[Share]) -> Iterator[str]:
    for share in shares:
        yield from (count(share.count), percent(share.share, share.interval), percent_range(share.interval))


def _cells(of_scored: Share, of_refusals: Share) -> tuple[str, str, str, str]:
    return (
        count(of_scored.count),
        percent(of_scored.share, of_scored.interval),
        percent_range(of_scored.interval),
        percent(of_refusals.share, of_refusals.interval),
    )


def _short(value: object) -> str:
    """Return a value, a fingerprint by its first digits."""
    text = str(value)
    is_fingerprint = len(text) > 2 * _FINGERPRINT and all(character in "0123456789abcdef" for character in text)
    return f"{text[:_FINGERPRINT]}…" if is_fingerprint else "none" if value is None else text


def _of_model(key: str, value: Any) -> str:  # noqa: ANN401  # labelers of others may say anything of themselves
    match key, value:
        case "first_look", None:
            return "no first look: every text is read in full"
        case "first_look", {"tokens": tokens, "below": float(below)}:
            settled = f"a probability of refusal below {below:.3g} is taken for an answer"
            return f"first look at {tokens} tokens of longer texts, where {settled}"
        case "earlier_tokens", None:
            return "reads as much of earlier turns as there is room for"
        case "evidence", bool():
            return f"{'finds' if value else 'does not look for'} the sentence that carries a refusal"
    if isinstance(value, Mapping):
        value = ", ".join(f"{name} {each}" for name, each in value.items())
    said = _short(value) if value not in ("", None) else "none"
    return _OF_MODEL[key].format(said) if key in _OF_MODEL else f"{key.replace('_', ' ')} {said}"


def _thresholds(found: Mapping[str, float]) -> str:
    return (
        f"a reply refuses from a probability of {found['refusal']:.3g} on; a refusal is partial from "
        f"{found['partial']:.3g} on; a further kind is a reason from {found['further']:.3g} on"
    )


def _sets(stated: Mapping[str, float]) -> str:
    share, basis = f"{100 * stated['coverage']:g}%", with_noun(int(stated["n"]), "held-out refusal")
    kinds = f"kinds with a probability of at least {stated['least']:.3g}" if stated["least"] else "all kinds"
    return f"{kinds}, stated to hold the main kind of {share} of refusals from {basis}"


def _options(options: Mapping[str, Any]) -> Iterator[str]:
    """Say how the source was read; deduplication and chunks are told elsewhere, or are nobody's choice."""
    yield "every reply of a row is judged" if options["turns"] == "all" else "the last reply of a row is judged"
    if options["limit"] is not None:
        yield f"the first {with_noun(options['limit'], 'row')} only"
    if options["layout"] is not None:
        yield f"layout given: {options['layout']}"
    if options["fields"]:
        yield f"columns given: {', '.join(f'{part}={column}' for part, column in options['fields'].items())}"
