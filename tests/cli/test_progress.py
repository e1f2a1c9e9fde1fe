"""The bar of a training tells a rate that is true, whatever goes on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from demur.cli.progress import TrainingProgress
from demur.model.training import Step


def test_the_rate_is_that_of_what_goes_on() -> None:
    """Teachers that answer 512 rows at once every 40 s answer 12.8 a second; steps of 16 rows every 2 s are 8."""
    progress = TrainingProgress(Console(file=io.StringIO()))
    bar, now = progress._progress, 0.0
    bar.get_time = lambda: now
    for done in range(0, 4 * 512, 512):
        progress.on_answer(done, 5_120)
        now += 40.0
    assert bar.tasks[0].description == "asking teachers"
    assert bar.tasks[0].fields["rate"] == pytest.approx(12.8)
    assert bar.tasks[0].time_remaining == pytest.approx((5_120 - 3 * 512) / 12.8, abs=1)
    for done in range(1, 5):
        progress.on_step(Step(done, 100, 16, 0.5))
        now += 2.0
    assert bar.tasks[0].description == "training"
    assert bar.tasks[0].fields["rate"] == pytest.approx(8.0)
