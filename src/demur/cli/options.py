"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demur.verdict import Policy

if TYPE_CHECKING:
    from demur.labelers.classifier import Analyzer
    from demur.stats.conformal import Coverage

__all__ = [
    "CoverageShare",
    "DataFolder",
    "EncoderName",
    "PolicyName",
    "TaxonomyFile",
    "Threshold",
    "WeightsFolder",
    "open_analyzer",
    "quiet_libraries",
]

WeightsFolder = Annotated[
    Path | None, typer.Option("--weights", help="Folder that `demur train` wrote; the shipped weights by default.")
]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder of a recipe's sources, which are looked up beside the recipe too.")
]
EncoderName = Annotated[
    str | None, typer.Option("--encoder", help="Hub id or local folder of the encoder; the embedded one by default.")
]
TaxonomyFile = Annotated[
    Path | None, typer.Option("--taxonomy", help="Taxonomy file, or its folder; the shipped one by default.")
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", help="Probability from which a reply refuses; 0.5 with the shipped weights."),
]

PolicyName = Annotated[
    Policy,
    typer.Option(
        "--policy",
        help="What counts as a refusal. strict: refusals in full. standard: in full or in part. broad: also safe "
        "answers in place of what was asked, by a proxy: from half of the fitted threshold on, or from --threshold on.",
    ),
]

CoverageShare = Annotated[
    float | None,
    typer.Option(
        "--coverage",
        help="Share of refusals, from 0.5 to 0.999, whose set of kinds is stated to hold the true one; 0.9 by default, "
        "where the weights can state one.",
    ),
]


def open_analyzer(
    weights: Path | None,
    encoder: str | None,
    taxonomy: Path | None,
    threshold: float | None = None,
    *,
    evidence: bool = False,
    policy: Policy = Policy.standard,
    coverage: float | None = None,
) -> Analyzer:
    """Load the analyzer that the options ask for."""
    quiet_libraries()
    from dataclasses import replace

    from demur.labelers.classifier import Analyzer

    if threshold is not None and not 0 <= threshold <= 1:
        message = f"{threshold} is not a probability; give a number from 0 to 1"
        raise typer.BadParameter(message, param_hint="--threshold")
    analyzer = Analyzer.load(
        weights, encoder=encoder, taxonomy=taxonomy, evidence=evidence, policy=policy, coverage=_coverage(coverage)
    )
    if threshold is not None:
        analyzer.thresholds = replace(analyzer.thresholds, refusal=threshold)
    return analyzer


def _coverage(given: float | None) -> Coverage:
    from demur.stats.conformal import require_coverage

    if given is None:
        return "auto"
    try:
        require_coverage(given)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--coverage") from error
    return given


def quiet_libraries() -> None:
    """Keep the progress bars and reports of libraries out of ours."""
    import os

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
