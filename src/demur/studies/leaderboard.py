"""Hold how labelers do on the same rows, and know its numbers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from demur.stats.numbers import NOT_AVAILABLE, decimal
from demur.studies.writing import without_nan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from demur.data.annotated import Annotator, AnnotatorKind
    from demur.stats.metrics import GateMetrics, HeadMetrics
    from demur.stats.paired import McNemar, Rivals
    from demur.stats.resampling import Estimate
    from demur.taxonomy import Taxonomy

__all__ = ["QUESTIONS", "Band", "Entry", "Leaderboard", "Pace", "Question", "Sort", "Versus"]

Sort = Literal["local", "judge", "human", "llm"]
"""What a labeler is: a program on this machine, a language model that is asked, a person or a model on record."""

Question = Literal["gate", "kind"]
QUESTIONS: tuple[Question, ...] = ("gate", "kind")
"""Whether a reply refuses; and of which main kind a refusal is."""


@dataclass(frozen=True, slots=True)
class Band:
    """Keep where a labeler stands among the annotators of the panel, on one question.

    It meets each of them on the replies that both read, and both are measured against the majority of all the others:
    neither of the two has a say in it.

    Attributes:
        question: Which one.
        rivals: The annotators that it meets; an annotator does not meet itself.
        found: How it stands to them: shares of right answers, and the difference to the median of them.
    """

    question: Question
    rivals: tuple[Annotator, ...]
    found: Rivals

    @property
    def standing(self) -> str:
        """Say `better` or `worse` where the interval of the difference to the median says so, else `not told apart`.

        Each is one interval of 95 %: of many labelers, some are told apart by chance. Without an interval it says so.
        """
        median = self.found.median
        if math.isnan(median.value):
            return "not compared"
        if math.isnan(median.low):
            return "no interval"
        return "better" if median.low > 0 else "worse" if median.high < 0 else "not told apart"


@dataclass(frozen=True, slots=True)
class Versus:
    """Keep how a labeler stands to the reference on the replies that both labelled, on one question.

    Attributes:
        question: Which one.
        difference: Its share of right answers minus that of the reference.
        f1_difference: Its F1 minus that of the reference; None for the kinds.
        test: Whether both are right equally often; the labeler is the first of the two.
    """

    question: Question
    difference: Estimate
    f1_difference: Estimate | None
    test: McNemar


@dataclass(frozen=True, slots=True)
class Pace:
    """Keep how fast a labeler is, and what that costs; nan for what is not known.

    Attributes:
        rows_per_second: Over all rows, as they were given; of a judge, over the answers that were waited for.
        latency_seconds: Median time for a single reply: of a judge, from sending to answer.
        usd_per_million: Cost of a million rows, in USD.
        basis: What that cost rests on.
    """

    rows_per_second: float
    latency_seconds: float
    usd_per_million: float
    basis: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Keep how one labeler did.

    Attributes:
        name: Of the labeler.
        sort: What it is.
        read: Rows that it labelled or could not judge. Of those on record, others may have been left unread.
        unscored: Those among them that it could not judge, by reason: they are in no figure.
        gate: Refusal or not, against the consensus; figures of probability only where there are probabilities.
        head: The kinds, over the refusals on whose main kind the consensus is clear. The verdict's own kind counts: a
            refusal that is missed or left unnamed is a miss, for a classifier as for a person.
        kappa: Cohen's kappa with the consensus, of the gate.
        alpha: Krippendorff's alpha of labeler and consensus, of the gate.
        kind_kappa: Cohen's kappa with the consensus over the replies of `head`, no kind being one more answer.
        kind_alpha: Krippendorff's alpha over the same.
        bands: How it stands to the annotators of the panel, by question.
        versus: How it stands to the reference, by question; nothing for the reference itself.
        pace: Speed and cost.
        stopped: Why it did not label all rows; None where it did.
    """

    name: str
    sort: Sort
    read: int
    unscored: Mapping[str, int]
    gate: GateMetrics
    head: HeadMetrics
    kappa: Estimate
    alpha: Estimate
    kind_kappa: Estimate
    kind_alpha: Estimate
    bands: tuple[Band, ...]
    versus: tuple[Versus, ...]
    pace: Pace
    stopped: str | None = None

    @property
    def unscored_share(self) -> float:
        """Return the share of what it read that it could not judge; nan where it read nothing."""
        return sum(self.unscored.values()) / self.read if self.read else math.nan

    def band(self, question: Question) -> Band:
        """Return how it stands to the annotators on a question."""
        return next(band for band in self.bands if band.question == question)

    @property
    def figures(self) -> dict[str, Estimate]:
        """Return all figures that have intervals, by name."""
        gate, head = self.gate, self.head
        return {
            "precision": gate.precision, "recall": gate.recall, "f1": gate.f1, "accuracy": gate.accuracy,
            "auroc": gate.auroc, "calibration_error": gate.calibration_error,
            "calibration_noise": gate.calibration_noise, "brier": gate.brier,
            "kappa": self.kappa, "alpha": self.alpha,
            "kind_accuracy": head.accuracy, "group_accuracy": head.group_accuracy, "macro_f1": head.macro_f1,
            "kind_kappa": self.kind_kappa, "kind_alpha": self.kind_alpha,
            **{f"{band.question}_to_median": band.found.median for band in self.bands},
            **{f"{band.question}_to_mean": band.found.mean for band in self.bands},
            **{f"{one.question}_to_reference": one.difference for one in self.versus},
            **{f"{one.question}_f1_to_reference": one.f1_difference for one in self.versus if one.f1_difference},
        }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Leaderboard:
    """Keep how labelers did on the same rows.

    Attributes:
        name: What was read.
        taxonomy: What the kinds are in.
        panel: The annotators whose majority is the measure, all of one sort.
        entries: The labelers, the highest F1 of the gate first.
        reference: Name of the labeler that all others are compared with.
        rows: Replies that were labelled.
        requests: Different requests among them; the intervals resample these.
        gated: Replies with a consensus on whether they refuse, the whole panel having a say.
        kinds: Those among them with a consensus on the main kind.
        without_text: Replies whose text is not known, which nobody could label.
        unread: Rows that could not be read, by reason; they are in no figure.
        other_splits: Number of rows that were left out, by their split.
        resamples: Draws of requests behind each interval.
        seed: Of those draws.
    """

    name: str
    taxonomy: Taxonomy
    panel: tuple[Annotator, ...]
    entries: tuple[Entry, ...]
    reference: str
    rows: int
    requests: int
    gated: int
    kinds: int
    without_text: int
    unread: Mapping[str, int]
    other_splits: Mapping[str, int]
    resamples: int
    seed: int

    @property
    def panel_kind(self) -> AnnotatorKind:
        """Return what the annotators of the panel are: `human` or `llm`."""
        return self.panel[0].kind

    @property
    def frontier(self) -> tuple[str, ...]:
        """Name the labelers of known cost to which none is preferred, the cheapest first.

        One is preferred that is as cheap and higher in F1 of the gate, or cheaper and as high; of two with equal cost
        and F1, both are named.
        """
        known = [(one.pace.usd_per_million, -one.gate.f1.value, one.name) for one in self.entries]
        priced = sorted(one for one in known if not math.isnan(one[0]) and not math.isnan(one[1]))
        found: list[tuple[float, float, str]] = []
        for one in priced:
            if not found or one[1] < found[-1][1] or one[:2] == found[-1][:2]:
                found.append(one)
        return tuple(name for *_, name in found)

    @property
    def has_frontier_line(self) -> bool:
        """Tell whether the frontier joins different costs: of one labeler alone, there is no line."""
        return len({self[name].pace.usd_per_million for name in self.frontier}) > 1

    @property
    def has_costs(self) -> bool:
        """Tell whether any cost is known, and so whether there is something to draw over it."""
        return not all(math.isnan(entry.pace.usd_per_million) for entry in self.entries)

    def __len__(self) -> int:
        """Count the labelers."""
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the labelers, as through those of a mapping, the best first."""
        return (entry.name for entry in self.entries)

    def __contains__(self, name: object) -> bool:
        """Tell whether a labeler has this name."""
        return any(entry.name == name for entry in self.entries)

    def __getitem__(self, name: str) -> Entry:
        """Return the entry of a labeler.

        Raises:
            KeyError: There is none of that name.
        """
        for entry in self.entries:
            if entry.name == name:
                return entry
        message = f"no labeler {name!r}; there are {', '.join(entry.name for entry in self.entries)}"
        raise KeyError(message)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each labeler: every figure with the ends of its interval and the rows that it rests on."""
        import pandas as pd

        return pd.DataFrame([_flat(entry) for entry in self.entries]).set_index("labeler")

    def band_table(self) -> pd.DataFrame:
        """Return one row for each labeler, question and annotator that it meets."""
        import pandas as pd

        columns = ["labeler", "question", "annotator", "share", "annotator_share", "difference", "low", "high", "n"]
        rows = [
            (entry.name, band.question, str(rival), share, rival_share, one.value, one.low, one.high, one.n)
            for entry in self.entries
            for band in entry.bands
            for rival, share, rival_share, one in zip(
                band.rivals, band.found.shares, band.found.rival_shares, band.found.differences, strict=True
            )
        ]
        return pd.DataFrame(rows, columns=columns)

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for `json.dumps`; a figure that is undefined is null."""
        whole: dict[str, Any] = without_nan({
            "name": self.name,
            "taxonomy": self.taxonomy.fingerprint,
            "panel": [asdict(annotator) for annotator in self.panel],
            "reference": self.reference,
            "rows": self.rows,
            "requests": self.requests,
            "gated": self.gated,
            "kinds": self.kinds,
            "without_text": self.without_text,
            "unread": dict(self.unread),
            "other_splits": dict(self.other_splits),
            "resamples": self.resamples,
            "seed": self.seed,
            "frontier": list(self.frontier),
            "entries": [asdict(entry) for entry in self.entries],
        })  # fmt: skip
        for stored, entry in zip(whole["entries"], self.entries, strict=True):
            for band, known in zip(stored["bands"], entry.bands, strict=True):
                band["standing"], band["beaten"] = known.standing, known.found.beaten
        return whole

    def __repr__(self) -> str:
        """Return what there is in one line."""
        first = self.entries[0]
        return f"<Leaderboard of {len(self.entries)} labelers on {self.rows:,} replies: first {first.name}>"

    def _repr_html_(self) -> str:
        """Return the main figures as a table for notebooks; what the data say stands in it as text."""
        import html

        columns = ["read", "unscored_share", "precision", "recall", "f1", "kind_accuracy", "gate_to_median"]
        shown = self.to_frame()[columns]
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{shown.to_html(float_format=decimal, na_rep=NOT_AVAILABLE)}"


def _flat(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "labeler": entry.name,
        "sort": entry.sort,
        "read": entry.read,
        "unscored": sum(entry.unscored.values()),
        "unscored_share": entry.unscored_share,
    }
    for name, one in entry.figures.items():
        row |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high, f"{name}_n": one.n}
    for band in entry.bands:
        row |= {
            f"{band.question}_standing": band.standing,
            f"{band.question}_beaten": band.found.beaten,
            f"{band.question}_rivals": band.found.compared,
        }
    for versus in entry.versus:
        test = versus.test
        row |= {f"{versus.question}_p_value": test.p_value, f"{versus.question}_p_adjusted": test.adjusted}
    return row | asdict(entry.pace) | {"stopped": entry.stopped}
