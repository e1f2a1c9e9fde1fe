"""Hold what annotators agree on, and know its numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from demur.data.annotated import ANNOTATOR_KINDS
from demur.stats.numbers import NOT_AVAILABLE, decimal
from demur.studies import agreement_frames as frames
from demur.studies.writing import without_nan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from demur.data.annotated import Annotator
    from demur.stats.agreement import Coefficient
    from demur.studies.agreement_figures import Between, Ceiling, Consensus, Figure, Reliability
    from demur.studies.disputes import Confused, Disputed
    from demur.studies.examples import BrokenSample
    from demur.taxonomy import Taxonomy

__all__ = ["Agreement"]


@dataclass(frozen=True, slots=True, repr=False)
class Agreement:
    """Keep how far annotators agree, and on what they do not.

    Attributes:
        name: What was read.
        taxonomy: What the kinds are in.
        annotators: Who labelled, people first.
        answers: Number of replies that each of them gave a verdict on.
        items: Names of the replies.
        requests: Number of different requests among them; None where not every text is known.
        unread: Rows that could not be read, by reason; they are in no figure.
        broken: The first of them, with place and message.
        other_splits: Number of rows that were left out, by their split.
        left_out: Questions that could not be asked, and why.
        named: By `is_group` and `is_kind`, number of replies that anybody called a refusal of the group or kind.
        figures: All coefficients.
        between: Each two annotators, on each question.
        ceilings: Annotators against the majority of the rest.
        reliabilities: Annotators by the estimates of Dawid and Skene.
        confused: Answers that were given to the same replies.
        disputed: The replies of most disagreement, the most disputed first.
        n_disputed: Number of replies on which any two annotators differ.
        consensus: By question, what is said together of each of `items`.
        resamples: Draws of requests behind each interval.
        seed: Of those draws.
    """

    name: str
    taxonomy: Taxonomy
    annotators: tuple[Annotator, ...]
    answers: tuple[int, ...]
    items: tuple[str, ...]
    requests: int | None
    unread: Mapping[str, int]
    broken: tuple[BrokenSample, ...]
    other_splits: Mapping[str, int]
    left_out: Mapping[str, str]
    named: Mapping[str, Mapping[str, int]]
    figures: tuple[Figure, ...]
    between: tuple[Between, ...]
    ceilings: tuple[Ceiling, ...]
    reliabilities: tuple[Reliability, ...]
    confused: tuple[Confused, ...]
    disputed: tuple[Disputed, ...]
    n_disputed: int
    consensus: Mapping[str, Sequence[Consensus]]
    resamples: int
    seed: int

    @property
    def who(self) -> str:
        """Return how many annotators there are of which sort, as `2 human annotators`."""
        counts = [sum(one.kind == kind for one in self.annotators) for kind in ANNOTATOR_KINDS]
        named = " and ".join(f"{n} {name}" for n, name in zip(counts, ("human", "LLM"), strict=True) if n)
        return f"{named} annotator{'' if sum(counts) == 1 else 's'}"

    def figure(self, question: str, name: str, *, part: str = "all", of: str = "") -> Coefficient:
        """Return one coefficient.

        Raises:
            KeyError: There is none of that question, name and part.
        """
        for one in self.figures:
            if (one.question, one.coefficient.name, one.part, one.of) == (question, name, part, of):
                return one.coefficient
        message = f"no {name!r} of {question!r} for {part!r} {of!r}; `table()` lists all figures"
        raise KeyError(message)

    def table(self) -> pd.DataFrame:
        """Return one row for each coefficient: question, part, of, coefficient, value, low, high, n, undefined."""
        return frames.figures_frame(self.figures)

    def pair_table(self) -> pd.DataFrame:
        """Return the agreement and Cohen's kappa of each two annotators, on each question."""
        return frames.between_frame(self.between)

    def matrix(self, question: str = "gate", name: str = "cohen") -> pd.DataFrame:
        """Return who agrees with whom, (annotators, annotators).

        Args:
            question: `gate`, `outcome`, `group` or `kind`.
            name: `cohen` for Cohen's kappa, or `agreement`.

        Raises:
            KeyError: There is no such question or figure.
        """
        return frames.matrix_frame(self.annotators, self.between, question, name)

    def ceiling_table(self) -> pd.DataFrame:
        """Return how each annotator stands against the majority of the rest, by question and panel."""
        return frames.ceilings_frame(self.annotators, self.ceilings)

    def reliability_table(self) -> pd.DataFrame:
        """Return how reliable each annotator is by the estimates of Dawid and Skene, overall and by class."""
        return frames.reliabilities_frame(self.annotators, self.reliabilities)

    def confusion_table(self) -> pd.DataFrame:
        """Return which answers were given to the same replies, and how often."""
        return frames.confused_frame(self.confused)

    def disputed_table(self) -> pd.DataFrame:
        """Return the replies of most disagreement, one row for each annotator of each."""
        return frames.disputed_frame(self.disputed)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each reply: what its annotators say together, by majority and by estimate."""
        return frames.consensus_frame(self.items, self.consensus)

    def to_json(self) -> dict[str, Any]:
        """Return everything, ready for `json.dumps`; a figure that is undefined is null, with the reason beside it."""
        tables = {
            "figures": self.table(),
            "pairs": self.pair_table(),
            "ceilings": self.ceiling_table(),
            "reliabilities": self.reliability_table(),
            "confusions": self.confusion_table(),
            "disputed": self.disputed_table(),
            "consensus": self.to_frame().reset_index(),
        }
        whole: dict[str, Any] = without_nan({
            "name": self.name,
            "taxonomy": self.taxonomy.fingerprint,
            "annotators": [{**asdict(annotator), "answers": n} for annotator, n in self._given()],
            "replies": len(self.items),
            "requests": self.requests,
            "unread": dict(self.unread),
            "broken": [asdict(one) for one in self.broken],
            "other_splits": dict(self.other_splits),
            "left_out": dict(self.left_out),
            "named": {question: dict(counts) for question, counts in self.named.items()},
            "n_disputed": self.n_disputed,
            "resamples": self.resamples,
            "seed": self.seed,
            **{name: table.to_dict("records") for name, table in tables.items()},
        })  # fmt: skip
        return whole

    def _given(self) -> Iterator[tuple[Annotator, int]]:
        return zip(self.annotators, self.answers, strict=True)

    def __repr__(self) -> str:
        """Return the finding in one line."""
        alpha = self.figure("gate", "alpha")
        said = "undefined" if alpha.undefined is not None else decimal(alpha.estimate.value)
        return f"<Agreement of {self.who} on {len(self.items):,} replies: alpha of the gate {said}>"

    def _repr_html_(self) -> str:
        """Return the figures over all answers as a table for notebooks; what the data say stands in it as text."""
        import html

        shown = self.table().query("part == 'all'").drop(columns=["part", "of"])
        shown = shown.assign(undefined=shown["undefined"].fillna(""))
        table = shown.to_html(index=False, float_format=decimal, na_rep=NOT_AVAILABLE)
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{table}"
