"""Say in sentences what an agreement is and how it was measured: terminal, Markdown and HTML say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.report.examples import Shown
from demur.stats.numbers import count, of_splits, probability, with_noun
from demur.stats.resampling import LEAST_CLUSTERS

if TYPE_CHECKING:
    from demur.data.annotated import Annotation
    from demur.studies.agreement import Agreement
    from demur.studies.disputes import Disputed

__all__ = ["METHODS", "discussion", "headline", "interval_note", "left_out_note", "shown", "who_note"]

METHODS = (
    ("Agreement", "share of equal answers among the pairs of answers to a reply, averaged over replies with two."),
    ("Cohen's kappa", "of two annotators (Cohen 1960); of more, the mean over those pairs that have one (Light 1971)."),
    (
        "Fleiss' kappa",
        (
            "Fleiss 1971, which is defined for equally many answers to each reply; where they are not equally many, it "
            "is Gwet's generalisation (2014), in which each reply counts once."
        ),
    ),
    ("Krippendorff's alpha", "Krippendorff 2011, nominal; of label sets, with the distance that is named."),
    ("Gwet's AC1", "Gwet 2008, over all classes that could be answered; it holds where one class is rare."),
    (
        "MASI and Jaccard",
        "distances of label sets (Passonneau 2006; Jaccard 1912); similarity is 1 - the mean distance of two answers.",
    ),
    ("Each against all other replies", "whether a reply is a refusal of the group or main kind, over all replies."),
    ("Majority", "more than half of the answers; where there is none, a reply is left out and counted."),
    (
        "Mean of the panel",
        "how far people agree with the majority of the other people is the human ceiling; of language models, theirs.",
    ),
    (
        "Dawid and Skene",
        (
            "true answers and errors estimated together by expectation maximisation (1979), as if annotators erred "
            "independently of each other; what they get wrong together is taken for the truth."
        ),
    ),
    (
        "Disagreement on a reply",
        (
            "mean over pairs: 1 where they differ on whether it refuses, else the MASI distance of the kinds, a half "
            "at least where one says in full and one in part, and a third at least where the main kinds differ. The "
            "order of further kinds is no difference, nor is a kind that one of them did not name."
        ),
    ),
)


def headline(found: Agreement) -> str:
    """Return what there is in one sentence."""
    verdicts = with_noun(sum(found.answers), "verdict")
    replies = with_noun(len(found.items), "reply", "replies")
    differ = f"on {count(found.n_disputed)} of them two annotators differ" if found.n_disputed else "no two differ"
    return f"{found.who}: {verdicts} on {replies}; {differ}."


def who_note(found: Agreement) -> str:
    """Say what agreement among language models does not mean; nothing where all annotators are people."""
    kinds = {annotator.kind for annotator in found.annotators}
    if kinds == {"human"}:
        return ""
    mixed = (
        " Figures over all annotators mix them with people; those of each sort stand apart." if len(kinds) > 1 else ""
    )
    return (
        "LLM annotators are language models: they share training and errors, so how far they agree with each other is "
        f"no measure of how far people would.{mixed}"
    )


def interval_note(found: Agreement) -> str:
    """Say what the intervals hold."""
    of_what, those = "requests", "requests"
    if found.requests is None:
        of_what, those = "requests, or, where a text is not known, its reply", "of these"
    draws = f"Intervals are 95% and resample {of_what} ({with_noun(found.resamples, 'draw')}, seed {found.seed})."
    equal = (
        " There is none where all answers are equal, or nearly so: what was never met cannot be drawn. Nor is there "
        f"one from fewer than {LEAST_CLUSTERS} {those}, for which it would be too narrow, nor, where chance is "
        "allowed for, from fewer with an answer that is not the commonest one."
    )
    if found.requests is None:
        return f"{draws}{equal} Not every text is known: replies to one request may depend on each other."
    if found.requests == len(found.items):
        return draws + equal
    few = f"{with_noun(found.requests, 'different request')} had {with_noun(len(found.items), 'reply', 'replies')}"
    return f"{draws}{equal} {few}."


def left_out_note(found: Agreement) -> str:
    """Say what could not be asked, and which splits were not to be; nothing where all was."""
    reasons = dict.fromkeys(found.left_out.values())
    kinds = [f"Nothing is said of kinds: {'; '.join(reasons)}."] if reasons else []
    rows = [f"Left out: {of_splits(found.other_splits)}."] if found.other_splits else []
    return " ".join(rows + kinds)


def discussion(found: Agreement) -> str:
    """Say which of the disputed replies are shown."""
    if not found.n_disputed:
        return "No two annotators differ on any reply."
    return (
        f"The {count(len(found.disputed))} most disputed of {count(found.n_disputed)} replies; of equals, those first "
        "on which annotators were surer. Long texts are cut in the middle."
    )


def shown(one: Disputed) -> Shown:
    """Return a disputed reply with what everybody said of it."""
    place = [one.id, one.source, f"disagreement {probability(one.disagreement)}", *(_said(each) for each in one.said)]
    text = "not in the file; give the file that holds the messages by id" if one.reply is None else one.reply
    return Shown(" · ".join(place), one.request or "", text)


def _said(annotation: Annotation) -> str:
    verdict = "no verdict" if annotation.outcome is None else annotation.outcome
    kinds = f" {', '.join(annotation.labels)}" if annotation.labels else ""
    sure = "" if annotation.sure is None else f" (sure {annotation.sure:g})"
    return f"{annotation.annotator}: {verdict}{kinds}{sure}"
