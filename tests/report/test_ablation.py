"""Hold the table of ablations to its lines."""

from __future__ import annotations

import math

from demur.report.ablation import ablation_markdown
from demur.studies.ablation import Line


def test_a_row_gives_mean_and_spread() -> None:
    """Of .8 and 1: .9 ± sqrt(.02) = .141; an undefined figure is a dash, and a bar in a title breaks no table."""
    lines = [Line("a | b", {"gold gate.f1": (0.8, 1.0), "gold end_to_end": (math.nan, 0.5)})]
    written = ablation_markdown("mine", lines, seeds=(1, 2), command="demur ablate mine.yaml --out out")
    assert written.splitlines() == [
        "# Ablations: mine",
        "",
        "Mean ± standard deviation over the seeds 1, 2. Made by:",
        "",
        "```console",
        "demur ablate mine.yaml --out out",
        "```",
        "",
        "| variant | gold gate.f1 | gold end_to_end |",
        "| --- | ---: | ---: |",
        r"| a \| b | 0.900 ± 0.141 | - |",
    ]


def test_a_single_seed_has_no_spread() -> None:
    """And the table says so."""
    written = ablation_markdown("mine", [Line("a", {"gate.f1": (0.8,)})], seeds=(1,), command="demur")
    assert "Seed 1; one seed has no spread." in written
    assert written.endswith("| a | 0.800 |\n")
