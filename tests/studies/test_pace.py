"""Speed and cost are of the run that is measured."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.errors import LabelerError
from demur.labelers.judge import Judge
from demur.llm.prices import Price, PriceList
from demur.studies.pace import run
from demur.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from tests.llm_server import LlmServer

# 1 USD for each token that is read, so that a longer row costs more.
PRICES = PriceList(date(2026, 1, 1), {"m": Price(input=1_000_000.0, output=0.0)})


def test_what_a_judge_did_before_is_no_part_of_its_pace(llm_server: LlmServer, tmp_path: Path) -> None:
    """Rows that it has judged give no speed, for nothing is waited for; the cost is that of these rows alone."""
    short = [Conversation.of(f"case=right row={row}", "No.") for row in range(3)]
    long = [Conversation.of("case=right row=9", "No. " * 2_000)]
    alone = Judge.at("m", base_url=llm_server.url, cache=tmp_path / "a.sqlite", prices=PRICES)
    expected = run(alone, short, usd_per_hour=None).pace
    used = Judge.at("m", base_url=llm_server.url, cache=tmp_path / "b.sqlite", prices=PRICES)
    assert all(verdict.is_scored for verdict in used.label([*short, *long]))
    found = run(used, short, usd_per_hour=None).pace
    assert expected.rows_per_second > 0
    assert math.isnan(found.rows_per_second)
    assert found.usd_per_million == pytest.approx(expected.usd_per_million)
    alone.client.close()
    used.client.close()


@pytest.mark.parametrize("given", [["full"], None, Verdict("full")], ids=repr)
def test_what_is_no_verdict_is_named_with_who_gave_it(given: Any) -> None:
    """As an audit names it."""

    class Own:
        name = "own"

        def label(self, _: object) -> Any:
            return given

    with pytest.raises(LabelerError, match=r"labeler 'own' gave .*; right would be one demur\.Verdict for each"):
        run(Own(), [Conversation.of("Q", "No.")], usd_per_hour=None)
