"""Say in sentences what a leaderboard is and how it was measured: terminal, Markdown and HTML say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.report.leaderboard_tables import ANNOTATOR
from demur.stats.numbers import count, of_splits, with_noun
from demur.stats.resampling import LEAST_CLUSTERS

if TYPE_CHECKING:
    from demur.studies.leaderboard import Leaderboard

__all__ = ["METHODS", "headline", "notes", "plot_caption"]

METHODS = (
    (
        "Consensus",
        (
            "more than half of the annotators of the panel, on whether a reply refuses (in full or in part) and, where "
            "it does, on the main kind. An annotator of the panel is measured against the others of it."
        ),
    ),
    (
        "Replies read",
        "what a labeler on record labelled; all figures of it rest on these, and so do comparisons with it.",
    ),
    ("Unscored", "read, and not judged: a failed, refused or unusable answer. In no figure, and never guessed."),
    (
        "Measured on",
        (
            "the replies behind the figures of the gate, which the labeler judged and on which those whom it is "
            "measured against have a majority. For whoever is not of the panel, that is the whole panel: with two "
            "annotators, only where both agree, on the easier replies."
        ),
    ),
    (
        "Kinds, Group, Macro-F1",
        (
            "over the replies whose consensus is a refusal of a clear main kind. To miss the refusal, or to leave its "
            "kind unnamed, is an error."
        ),
    ),
    (
        "Against the median annotator",
        (
            "each annotator and the labeler are set against the majority of all others, on the replies that both read; "
            "neither has a say in it. The difference is the median of those to the single annotators, beside it their "
            "mean: a median of a few coarse figures may hardly move, and where it stays the same in most draws there "
            "is no interval. Better or worse is what the interval of the median says; else the two are not told apart. "
            "Each is one interval of 95%: of many labelers, some are told apart by chance."
        ),
    ),
    (
        "Against the reference",
        (
            "differences on the replies that both labelled, with McNemar's exact test, which takes replies for "
            "independent, and Holm's correction for the number of labelers, for each of the two questions."
        ),
    ),
    (
        "Intervals",
        (
            "95%, percentiles of a bootstrap over different requests; for AUROC, whose percentiles begin too high, its "
            "standard deviation over these draws, on the scale of its logit. They hold the draw of requests, and not "
            f"that of annotators. There is none from fewer than {LEAST_CLUSTERS}, for which they would be too narrow "
            "(AUROC needs as many on either side, kappa and alpha as many with an answer that is not the commonest "
            "one), nor where most draws give the same figure."
        ),
    ),
    (
        "Agreement",
        "Cohen's kappa (1960) and Krippendorff's alpha (nominal, 2011) of labeler and consensus.",
    ),
    (
        "Calibration error",
        (
            "over 15 bins of the probability of refusal; only where a labeler gives probabilities. Beside it stands "
            "what noise alone would give if they were perfectly calibrated, replies to one request depending on each "
            "other as far as they do here."
        ),
    ),
    (
        "Cost of a million rows",
        (
            "of judges by dated prices and the tokens that the server counted; of programs by the price of the "
            "machine's hour; of labelers on record as stated. Where there is none of these, it is not known."
        ),
    ),
    (
        "Speed",
        (
            "of programs over all rows as given, on the machine at hand; of judges, answers that were waited for. "
            "Latency is the median of single replies."
        ),
    ),
    ("Frontier", "no other labeler of known cost is as cheap and higher in F1, or cheaper and as high."),
)


def headline(found: Leaderboard) -> str:
    """Return what there is in one sentence."""
    panel = with_noun(len(found.panel), ANNOTATOR[found.panel_kind], _plural(found))
    return (
        f"{with_noun(len(found.entries), 'labeler')} on {with_noun(found.rows, 'reply', 'replies')} to "
        f"{with_noun(found.requests, 'different request')}, against the consensus of {panel}: "
        f"clear on whether it refuses for {count(found.gated)}, on the main kind for {count(found.kinds)}."
    )


def notes(found: Leaderboard) -> tuple[str, ...]:
    """Say what has to be known before the figures are read."""
    return tuple(note for note in (_who(found), _fewer(found), _left_out(found), *_stopped(found)) if note)


def plot_caption(found: Leaderboard) -> str:
    """Say what the plot shows, and who is not in it."""
    members = {str(member) for member in found.panel}
    unknown = [
        entry.name
        for entry in found.entries
        if entry.name not in found.frontier and entry.pace.basis == "not known" and entry.name not in members
    ]
    left_out = f" Not drawn, since their cost is not known: {', '.join(unknown)}." if unknown else ""
    band = (
        f" Shaded: from the lowest to the highest {ANNOTATOR[found.panel_kind]}, with a line at the median."
        if members & {entry.name for entry in found.entries}
        else ""
    )
    line = "; the line is the frontier" if found.has_frontier_line else ""
    return f"Accuracy over cost{line}.{band}{left_out}"


def _plural(found: Leaderboard) -> str:
    return "people" if found.panel_kind == "human" else "LLM annotators"


def _who(found: Leaderboard) -> str:
    if found.panel_kind == "human":
        return ""
    return (
        "LLM annotators are language models, and no people: they share training and errors with each other, and with "
        "every judge that is one. Whoever agrees with them best need not agree best with people."
    )


def _fewer(found: Leaderboard) -> str:
    if any(entry.read < found.rows for entry in found.entries):
        why = "Not everybody read all replies"
    elif len({entry.gate.accuracy.n for entry in found.entries}) > 1:
        why = "Not everybody is measured on the same replies, for want of a majority or of a verdict"
    else:
        return ""
    return (
        f"{why}: figures of different rows are not comparable digit by digit. What is on the "
        "same replies stands under the median annotator and the reference."
    )


def _left_out(found: Leaderboard) -> str:
    parts = [
        *([f"{with_noun(found.without_text, 'reply', 'replies')} without text"] if found.without_text else []),
        *(f"{with_noun(number, 'row')} ({reason})" for reason, number in found.unread.items()),
        *([of_splits(found.other_splits)] if found.other_splits else []),
    ]
    return f"Left out: {', '.join(parts)}." if parts else ""


def _stopped(found: Leaderboard) -> list[str]:
    return [f"{entry.name} did not come to all rows: {entry.stopped}." for entry in found.entries if entry.stopped]
