"""Let a labeler label, and watch how fast it is."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demur.errors import BudgetError, EndpointError
from demur.labelers.judge import Judge
from demur.labelers.recorded import NOT_LABELLED, RecordedLabeler
from demur.llm.heard import Heard
from demur.studies.judging import require_one_each, verdicts_of
from demur.studies.leaderboard import Pace
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.conversation import Conversation
    from demur.verdict import Labeler

__all__ = ["OnVerdict", "Run", "run"]

OnVerdict = Callable[[str, int, int], None]
"""Told the name of the labeler, how many verdicts it has given, and how many rows there are."""

# Replies that are labelled once more, each alone, to see how long one takes.
_N_SINGLE = 32
_SECONDS_PER_HOUR = 3600
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """Keep what a labeler said of each row, and how fast.

    Attributes:
        verdicts: One for each row; `not_labelled` for those that it did not come to.
        pace: Speed and cost.
        stopped: Why it did not come to all; None where it did.
    """

    verdicts: tuple[Verdict, ...]
    pace: Pace
    stopped: str | None


def run(
    labeler: Labeler, talks: Sequence[Conversation], *, usd_per_hour: float | None, on_verdict: OnVerdict | None = None
) -> Run:
    """Let a labeler label all rows; one whose budget is spent, or whose endpoint fails on the way, keeps what it has.

    Args:
        labeler: Who labels.
        talks: What is labelled.
        usd_per_hour: Price of this machine; None where it is not known, and so what programs on it cost.
        on_verdict: Told of each verdict.

    Raises:
        EndpointError: The endpoint fails before the first verdict.
        LabelerError: The labeler gives what is no verdict.
        ValueError: The labeler gives more or fewer verdicts than there are rows.
    """
    verdicts: list[Verdict] = []
    stopped = None
    n_before = _begin_to_hear(labeler) if isinstance(labeler, Judge) else 0
    begun = time.perf_counter()
    try:
        for verdict in verdicts_of(labeler, talks):
            verdicts.append(verdict)
            if on_verdict is not None:
                on_verdict(labeler.name, len(verdicts), len(talks))
    except BudgetError as error:
        stopped = str(error)
    except EndpointError as error:
        if not verdicts:
            raise
        stopped = str(error)
    seconds = time.perf_counter() - begun
    if stopped is None or len(verdicts) > len(talks):
        require_one_each(labeler, len(verdicts), len(talks))
    rest = itertools.repeat(Verdict.unscored(NOT_LABELLED), len(talks) - len(verdicts))
    if isinstance(labeler, RecordedLabeler):
        pace = Pace(math.nan, math.nan, math.nan, "not known")
    elif isinstance(labeler, Judge):
        pace = _pace_of_judge(labeler, labeler.client.spending.answers - n_before, seconds)
    else:
        # Who came to an end is not asked again to see how long one takes.
        latency = math.nan if stopped is not None else _latency(labeler, talks)
        pace = _pace(len(verdicts), seconds, latency, usd_per_hour)
    return Run((*verdicts, *rest), pace, stopped)


def _begin_to_hear(judge: Judge) -> int:
    """Forget what was heard of a judge before, which is another measurement; return how many answers were paid for."""
    judge.client.heard = Heard()
    return judge.client.spending.answers


def _pace(n_labelled: int, seconds: float, latency: float, usd_per_hour: float | None) -> Pace:
    """Say how fast so many replies were labelled in so many seconds, and what a million costs."""
    rate = n_labelled / seconds if n_labelled and seconds > 0 else math.nan
    if usd_per_hour is None:
        return Pace(rate, latency, math.nan, "not known")
    cost = usd_per_hour / _SECONDS_PER_HOUR / rate * _MILLION
    return Pace(rate, latency, cost, f"{usd_per_hour:g} USD an hour")


def _pace_of_judge(judge: Judge, asked: int, seconds: float) -> Pace:
    """Take speed from answers that were waited for now, latency and tokens from all, kept ones among them."""
    client = judge.client
    known = client.price is not None and client.heard.counted > 0
    return Pace(
        rows_per_second=asked / seconds if asked and seconds > 0 else math.nan,
        latency_seconds=statistics.median(client.heard.seconds) if client.heard.seconds else math.nan,
        usd_per_million=client.cost_per_answer * _MILLION,
        basis="prices and counted tokens" if known else "not known",
    )


def _latency(labeler: Labeler, talks: Sequence[Conversation]) -> float:
    """Return the median time that a reply takes alone."""
    taken = []
    for talk in talks[:: max(1, len(talks) // _N_SINGLE)][:_N_SINGLE]:
        begun = time.perf_counter()
        list(labeler.label([talk]))
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) if taken else math.nan
