"""A report warns of what is known so far, and of no more."""

from __future__ import annotations

import pytest

from demur.synthesis.decisions import Accounts
from demur.synthesis.diversity import diversity_of
from demur.synthesis.results import Results


@pytest.mark.parametrize(
    ("pending", "said"),
    [
        (0, ["privacy: only 3 of 10 planned rows are kept"]),
        (90, ["privacy: only 3 of 10 rows decided so far are kept"]),
    ],
)
def test_few_rows_kept_are_counted_of_those_that_were_decided(pending: int, said: list[str]) -> None:
    """At the end these are all that were planned; rows that a stopped run did not come to are no failures."""
    counts = Accounts(
        planned=10 + pending,
        kept=3,
        rejected=7,
        given_up=0,
        pending=pending,
        attempts={"kept": 3, "rejected": 7},
        reasons={"verdict_differs": 7},
    )
    found = Results(counts, {"privacy": counts}, {"privacy": diversity_of([], [], {})}, {})
    assert list(found.warnings) == said
