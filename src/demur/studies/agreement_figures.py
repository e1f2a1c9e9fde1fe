"""Name the parts of an agreement: coefficients, pairs, ceilings, estimates and what is said together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.data.annotated import Annotator, AnnotatorKind
    from demur.stats.agreement import Coefficient
    from demur.stats.consensus import Standing

__all__ = ["Between", "Ceiling", "Consensus", "Figure", "Reliability"]


@dataclass(frozen=True, slots=True)
class Figure:
    """Keep one coefficient of one question over one part of the answers.

    Attributes:
        question: `gate`, `outcome`, `group`, `kind`, `kinds`, `is_group` or `is_kind`.
        part: `all`, `annotators` (of one sort, where there are people and language models), `source`, `group`, `kind`.
        of: Which sort of annotators, source, group or kind; nothing for `all`.
        coefficient: The figure.
    """

    question: str
    part: str
    of: str
    coefficient: Coefficient


@dataclass(frozen=True, slots=True)
class Between:
    """Keep how far two annotators agree on a question."""

    question: str
    first: Annotator
    second: Annotator
    agreement: Coefficient
    kappa: Coefficient


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Keep how annotators stand against the majority of the other annotators of one sort.

    Attributes:
        question: `gate`, `outcome` or `kind`.
        panel: Whose majority it is: that of people, or that of language models.
        standings: One for each annotator, whatever it is itself; it is never part of the majority that it meets.
        mean: Mean agreement of the panel's own members with the rest of it: what people reach among each other, or
            language models among each other.
    """

    question: str
    panel: AnnotatorKind
    standings: tuple[Standing, ...]
    mean: Coefficient


@dataclass(frozen=True, slots=True)
class Reliability:
    """Keep what the estimates of Dawid and Skene say of a question.

    Attributes:
        question: `gate`, `outcome` or `kind`.
        shares: Estimated shares of the true classes, by class.
        expected: Expected share of right answers, by place of the annotator; nan where it gave none.
        hits: P(the annotator says c | c is true), by place of the annotator, then by class; nan where nothing
            that it answered is expected to be c.
        undefined: Why there are no estimates; the others are then empty.
    """

    question: str
    shares: Mapping[str, float]
    expected: tuple[float, ...] = ()
    hits: tuple[Mapping[str, float], ...] = ()
    undefined: str | None = None


@dataclass(frozen=True, slots=True)
class Consensus:
    """Keep what annotators say together of one question about one reply.

    Attributes:
        majority: What more than half of the answers say; None where there is no majority.
        estimated: The most probable class by Dawid and Skene; None where there are no estimates.
        probability: Its probability; nan where there are no estimates.
    """

    majority: str | None
    estimated: str | None
    probability: float
