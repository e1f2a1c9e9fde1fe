"""`demur audit`: audit a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from demur.cli.auditing import (
    Fields,
    Layout,
    Limit,
    OnCluster,
    Out,
    Overwrite,
    Resume,
    SourceName,
    Strict,
    Turns,
    TurnsName,
    audit_bar,
    parse_fields,
    print_summary,
    say,
    show_layouts,
    show_progress,
)
from demur.cli.options import (
    CoverageShare,
    EncoderName,
    PolicyName,
    TaxonomyFile,
    Threshold,
    WeightsFolder,
    open_analyzer,
)
from demur.verdict import Policy

if TYPE_CHECKING:
    from demur.labelers.classifier import Analyzer

__all__ = ["audit"]

# What the embedded encoder is.
_EMBEDDED_MODEL = "all-MiniLM-L6-v2"
_DIGEST = 12


def audit(
    source: SourceName,
    out: Out,
    limit: Limit = None,
    layout: Layout = None,
    field: Fields = None,
    turns: TurnsName = Turns.last,
    policy: PolicyName = Policy.standard,
    threshold: Threshold = None,
    coverage: CoverageShare = None,
    evidence: Annotated[
        bool, typer.Option(help="Find the sentence that carries each refusal: one more pass over their sentences.")
    ] = True,
    strict: Strict = False,
    resume: Resume = False,
    overwrite: Overwrite = False,
    weights: WeightsFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
    on: OnCluster = None,
) -> None:
    """Judge every reply of a data set, and write what it holds."""
    fields = parse_fields(field)
    analyzer = open_analyzer(weights, encoder, taxonomy, threshold, evidence=evidence, policy=policy, coverage=coverage)
    from demur.api import audit as run

    console = Console(stderr=True)
    say(console, _model_line(analyzer, weights))
    with audit_bar(console) as progress:
        found = run(
            source, labeler=analyzer, out=out, limit=limit, layout=layout, fields=fields, turns=turns.value,
            strict=strict, resume=resume, overwrite=overwrite, progress=show_progress(progress),
            on_layout=show_layouts(console), on=on,
        )  # fmt: skip
    print_summary(found, out)
    if found.why_not_scored is not None:
        raise typer.Exit(1)


def _model_line(analyzer: Analyzer, weights: Path | None) -> str:
    from demur.model.encoders import EMBEDDED

    found = analyzer.describe()
    encoder = f"{EMBEDDED} ({_EMBEDDED_MODEL})" if found["encoder"] == EMBEDDED else found["encoder"]
    folder = "shipped" if weights is None else str(weights)
    return f"encoder: {encoder}; weights: {folder} ({found['weights_sha256'][:_DIGEST]})"
