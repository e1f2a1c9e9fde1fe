"""Prices are read from a file, found by name, and multiplied as by hand."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from demur.errors import PriceError
from demur.llm.exchange import Usage
from demur.llm.prices import Price, PriceList

if TYPE_CHECKING:
    from pathlib import Path

USAGE = Usage(prompt_tokens=1_000_000, cached_tokens=400_000, written_tokens=100_000, completion_tokens=50_000)


def test_a_cost_is_that_computed_by_hand() -> None:
    """500,000 plain at 2, 400,000 cached at .5, 100,000 written at 3, 50,000 out at 8: 1 + .2 + .3 + .4 = 1.9 USD."""
    price = Price(input=2.0, output=8.0, cached_input=0.5, cache_write=3.0, batch_share=0.5)
    assert price.cost(USAGE) == pytest.approx(1.9, rel=1e-12)
    assert price.cost(USAGE, is_batch=True) == pytest.approx(0.95, rel=1e-12)


def test_what_is_not_priced_apart_costs_what_input_costs() -> None:
    """1,000,000 in at 2 and 50,000 out at 8: 2 + .4 = 2.4 USD, by the Batch API too."""
    assert Price(input=2.0, output=8.0).cost(USAGE) == pytest.approx(2.4, rel=1e-12)
    assert Price(input=2.0, output=8.0).cost(USAGE, is_batch=True) == pytest.approx(2.4, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "is_listed"),
    [("m", True), ("m-2026-01-31", True), ("m-20260131", True), ("m-large", False), ("other", False), ("M", False)],
)
def test_a_dated_version_costs_what_its_model_costs_and_nothing_else_does(model: str, *, is_listed: bool) -> None:
    """A name that only begins the same may be ten times as dear: nothing is guessed."""
    prices = PriceList(date(2026, 1, 1), {"m": Price(1.0, 2.0)})
    assert (prices.find(model) is not None) is is_listed


def test_the_shipped_list_is_dated_and_cheaper_in_batches() -> None:
    """What is out costs more than what is in, and what is cached less."""
    prices = PriceList.load()
    assert prices.dated >= date(2026, 11, 21)
    for price in prices.models.values():
        assert price.output > price.input > 0
        assert price.cached_input is None or price.cached_input < price.input
        assert price.batch_share == 0.5
        assert price.read is not None
        assert price.read <= prices.dated


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {}\n", "dated: is missing"),
        ("dated: 2026-01-01\nmodels: {m: {input: 1}}\n", "output: is missing"),
        ("dated: 2026-01-01\nmodels: {m: {input: -1, output: 2}}\n", "input: met -1"),
        ("dated: 2026-01-01\nmodels: {m: {input: 1, output: 2, cached: 1}}\n", "unknown field 'cached'"),
        ("dated: 2026-01-01\nmodels: {m: {input: 1, output: 2}, m: {input: 3, output: 4}}\n", "'m' stands twice"),
    ],
)
def test_a_file_of_prices_is_checked(tmp_path: Path, text: str, said: str) -> None:
    """The message names file and field."""
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PriceError, match=said) as error:
        PriceList.load(path)
    assert str(path) in str(error.value)
