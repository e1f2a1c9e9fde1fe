"""Say in sentences what an audit found: HTML and Markdown say the same."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from demur.stats.numbers import count, percent, percent_range, probability, with_noun
from demur.stats.shares import Interval
from demur.studies.highlights import BORDERLINE, BORDERLINE_ODDS
from demur.verdict import Policy

if TYPE_CHECKING:
    from demur.studies.findings import Audit

__all__ = [
    "NO_REFUSAL",
    "PROBABILITIES",
    "borderline_note",
    "correction",
    "examples_note",
    "headline",
    "language_note",
    "no_wordings",
    "pairs_sentence",
    "raw_note",
    "resolutions",
    "unscored_note",
    "wordings_note",
]

NO_REFUSAL = "There is no refusal to show."
PROBABILITIES = "Replies in the middle are those that a person should look at."

# A hundredth of the replies in other scripts is worth a sentence.
_NOTABLE = 100
# Independent replies that say next to nothing.
_FEW = 2

_POLICIES = {
    Policy.strict: ", which does not count (policy strict)",
    Policy.standard: "",
    Policy.broad: ", safe answers in place of what was asked among them as far as a low threshold finds them "
    "(policy broad)",
}


def headline(audit: Audit) -> str:
    """Return the finding in one sentence."""
    found = audit.composition
    if not found.scored:
        return "No reply could be judged, so there is no share to report."
    parts = f"{count(found.full)} in full, {count(found.partial)} in part{_POLICIES[audit.policy]}"
    unscored = found.rows - found.scored
    verb_of_unscored = "counts" if unscored == 1 else "count"
    left_out = (
        f"; {with_noun(unscored, 'reply', 'replies')} could not be judged and {verb_of_unscored} nowhere"
        if unscored
        else ""
    )
    scored = [side.scored for side in audit.tally.sides.values()]
    together = ", both sides together" if all(scored) and sum(scored) == found.scored and len(scored) > 1 else ""
    return f"{audit.counted}{together}: {parts}{left_out}."


def language_note(audit: Audit) -> str:
    """Warn of replies in other scripts than the labeler's; empty where there are few, or it names no language."""
    number, language = audit.tally.other_scripts, audit.manifest["model"].get("language")
    if language is None or _NOTABLE * number < max(audit.composition.scored, 1):
        return ""
    scored = with_noun(audit.composition.scored, "scored reply", "scored replies")
    return (
        f"{count(number)} of {scored} {'is' if number == 1 else 'are'} mostly written in another script than Latin. "
        f"{audit.labeler} is made for {language}, and takes many a plain answer in such scripts for a refusal: leave "
        "these rows out, or have a language model judge them (demur judge)."
    )


def raw_note(audit: Audit) -> str:
    """Say what the raw interval does and does not hold, or why there is none."""
    if audit.why_not_scored is not None:
        return _sentence(audit.why_not_scored)
    note = f"95% interval {percent_range(audit.interval)}: of sampling alone, as if every verdict were right."
    return note + _dependence(audit)


def correction(audit: Audit) -> str:
    """Say how the share was corrected for the labeler's errors, or why it was not."""
    if audit.why_not_scored is not None:
        return _sentence(audit.why_not_scored)
    corrected, at = audit.corrected, audit.operating_point
    if corrected is None or at is None or not corrected.is_defined:
        return f"Not corrected: {audit.why_not_corrected}. The share beside carries the labeler's errors with it."
    reference = with_noun(at.refusals + at.others, "labelled reply", "labelled replies")
    return (
        f"95% interval {percent_range(Interval(corrected.low, corrected.high))}. Corrected for the labeler's errors "
        f"({corrected.method}): on {reference} it found {percent(at.sensitivity)} of the refusals and let "
        f"{percent(at.specificity)} of the others pass. It holds where the labeler errs here as often as there."
        f"{_dependence(audit)}"
    )


def pairs_sentence(audit: Audit) -> str:
    """Say what a preference model would learn about refusing from the pairs; empty where there are none."""
    pairs = audit.tally.pairs
    if not pairs.total:
        return ""
    return (
        f"Of {with_noun(pairs.total, 'pair')}, {_prefer(pairs.chosen_only)} a refusal to an answer, and "
        f"{_prefer(pairs.rejected_only)} an answer to a refusal."
    )


def resolutions(audit: Audit) -> str:
    """Say what the sets of kinds resolve to, with the coverage that is stated; empty where there are no sets."""
    stated, found = audit.category_sets, audit.composition.by_resolution
    total = found["kind"].total
    if stated is None or not total:
        return ""
    share, basis = f"{100 * stated.coverage:g}%", with_noun(stated.n, "held-out refusal")
    if not stated.has_enough:
        return (
            f"Only sets of all kinds can be stated to hold the main kind of {share} of refusals: there are {basis} to "
            f"state it from, and it takes {count(stated.needed)}. So {count(total)} of {count(total)} are undetermined."
        )
    shown = {key: f"{count(one.count)} ({percent(one.share, one.interval)})" for key, one in found.items()}
    return (
        f"Sets of kinds, stated to hold the main kind of {share} of refusals like the {basis} they stand on: of "
        f"{with_noun(total, 'refusal')}, {shown['kind']} resolve to one kind, {shown['group']} to a group, and "
        f"{shown['undetermined']} are undetermined."
    )


def examples_note(audit: Audit) -> str:
    """Say what the examples are, and what is marked in them where something is."""
    shown = [one for examples in audit.highlights.surest.values() for one in examples]
    what = "The surest refusals of each kind, and a few that are less sure"
    if shown and all(math.isnan(one.probability) for one in shown):
        what = "The first refusals of each kind, the labeler giving no probabilities"
    note = f"{what}; long texts are cut in the middle."
    if not any(one.evidence for one in shown):
        return note
    return (
        f"{note} Marked is the sentence that refuses most surely when it is read as the whole reply, with the "
        "probability that it does: it explains the verdict and does not prove it."
    )


def borderline_note(audit: Audit) -> str:
    """Say which replies are shown as borderline; empty where the labeler has no threshold."""
    near = audit.highlights.near
    if near is None:
        return ""
    low, high = (probability(value) for value in near)
    return (
        f"Replies with a probability of refusal near the threshold of {audit.threshold:g}, the nearest first: "
        f"from {low} to {high}, where the odds are within a factor of {BORDERLINE_ODDS} of the threshold's. "
        f"Each text is shown once, and {BORDERLINE} at most: the verdicts hold them all."
    )


def no_wordings(audit: Audit) -> str:
    """Say why no wording is shown."""
    if not audit.composition.refusals:
        return NO_REFUSAL
    return "No opening was kept that repeats." if audit.highlights.wordings.missed else "No two refusals open alike."


def wordings_note(audit: Audit) -> str:
    """Say how exact the counts of wordings are."""
    missed = audit.highlights.wordings.missed
    exact = "The counts are exact." if not missed else f"Each count may be low by up to {count(missed)}."
    return (
        "How refusals open: the first sentence of each, with the next where that is short, in lower case and without "
        f"its closing mark. {exact}"
    )


def unscored_note(audit: Audit) -> str:
    """Say where unscored replies count; an empty one is among them, although the codebook labels it `none`."""
    if not audit.rows:
        return "There were no rows."
    if audit.composition.scored == audit.rows:
        return "Every reply could be judged."
    return (
        "What could not be judged is in no share above. That holds for an empty reply, too: it is unscored "
        "(empty_reply), and not counted as one that does not refuse."
    )


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _prefer(number: int) -> str:
    return f"{count(number)} {'prefers' if number == 1 else 'prefer'}"


def _dependence(audit: Audit) -> str:
    """Say what replies to one request do to the interval; empty where no request is answered twice."""
    found = audit.composition
    number = found.n_requests
    if number == found.scored:
        return ""
    some = "" if found.requests.is_whole else "some "
    answered = f" {with_noun(found.scored, 'reply', 'replies')} answer {some}{with_noun(number, 'request')}"
    if number == 1:
        return f"{answered}: the interval is of replies to this one, and says nothing of others."
    independent = round(found.scored / found.refused.effect)
    if independent < _FEW:
        return f"{answered}: too few, or too unequal ones, to say much of others, which makes the interval wide."
    replies, requests = with_noun(independent, "reply", "replies"), with_noun(independent, "different request")
    width = f"the interval is as wide as for {replies} to {requests}"
    if independent >= found.scored:
        return f"{answered}. Replies to one request may depend on each other; nothing here shows that they do: {width}."
    return f"{answered}. Replies to one request depend on each other, so {width}."
