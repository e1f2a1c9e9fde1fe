"""`demur audit`: audit a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from demur.cli.auditing import (
    Dedup,
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
    check_one_of,
    parse_fields,
    print_summary,
    say,
    show_layouts,
    show_progress,
)
from demur.cli.options import (
    CoverageShare,
    EncoderName,
    EngineOption,
    Exact,
    PolicyName,
    Runtime,
    TaxonomyFile,
    Threshold,
    WeightsFolder,
    Workers,
    open_analyzer,
)
from demur.model.engine_names import EngineName
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
    dedup: Dedup = True,
    strict: Strict = False,
    resume: Resume = False,
    overwrite: Overwrite = False,
    weights: WeightsFolder = None,
    encoder: EncoderName = None,
    taxonomy: TaxonomyFile = None,
    engine: EngineOption = EngineName.auto,
    exact: Exact = False,
    workers: Workers = None,
    on: OnCluster = None,
) -> None:
    """Judge every reply of a data set, and write what it holds."""
    check_one_of(resume=resume, overwrite=overwrite)
    fields = parse_fields(field)
    from demur.data.shapes import require_parts
    from demur.documents import user_path
    from demur.studies.cluster import Cluster
    from demur.studies.folder import AuditFolder

    # Before an engine is built, which takes a minute or more.
    require_parts(fields, layout)
    cluster = None if on is None else Cluster.of(on, workers=workers)
    out = user_path(out)
    AuditFolder(out).require_room(resume=resume, overwrite=overwrite)
    if on is not None and engine is EngineName.auto:
        # Engines that are built for this machine do not travel.
        runtime = Runtime.of(EngineName.torch, workers, exact=exact)
    else:
        runtime = _runtime(engine, workers, source=source, limit=limit, exact=exact, resumed=out if resume else None)
    analyzer = open_analyzer(
        weights, encoder, taxonomy, threshold, evidence=evidence, policy=policy, coverage=coverage, runtime=runtime
    )
    from demur.api import audit as run

    console = Console(stderr=True)
    say(console, _model_line(analyzer, weights))
    with audit_bar(console) as progress:
        found = run(
            source, labeler=analyzer, out=out, limit=limit, layout=layout, fields=fields, turns=turns.value,
            dedup=dedup, strict=strict, resume=resume, overwrite=overwrite, progress=show_progress(progress),
            on_layout=show_layouts(console), on=cluster,
        )  # fmt: skip
    print_summary(found, out)
    if found.why_not_scored is not None:
        raise typer.Exit(1)


def _runtime(
    engine: EngineName, workers: int | None, *, source: str, limit: int | None, exact: bool, resumed: Path | None
) -> Runtime:
    """Read the options; what `auto` chose once is what an audit goes on with."""
    from demur.model.runtime.choice import few_texts
    from demur.studies.folder import AuditFolder
    from demur.studies.inputs import rows_up_to

    if engine is EngineName.auto and not exact:
        recorded = None if resumed is None else AuditFolder(resumed).engine
        if recorded is not None:
            return Runtime(EngineName.recorded(recorded), workers, first_look=True)
        few = few_texts()
        is_short = limit is not None and limit < few
        n_texts = limit if is_short else rows_up_to(source, few)
        return Runtime(engine, workers, n_texts, first_look=True)
    return Runtime.of(engine, workers, exact=exact)


def _model_line(analyzer: Analyzer, weights: Path | None) -> str:
    from demur.model.encoders import EMBEDDED

    found = analyzer.describe()
    encoder = f"{EMBEDDED} ({_EMBEDDED_MODEL})" if found["encoder"] == EMBEDDED else found["encoder"]
    folder = "shipped" if weights is None else str(weights)
    return f"encoder: {encoder}; weights: {folder} ({found['weights_sha256'][:_DIGEST]})"
