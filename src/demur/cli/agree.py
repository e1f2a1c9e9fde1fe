"""`demur agree`: measure how far annotators agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from demur.cli.options import (  # typer reads the types when it runs
    AnnotatorKindName,
    AnnotatorSort,
    CrosswalkName,
    Replace,
    Split,
    TaxonomyFile,
    chosen_split,
    require_crosswalk,
    require_one_form,
)

__all__ = ["agree"]


def agree(
    context: typer.Context,
    files: Annotated[list[str], typer.Argument(help="JSONL files of rows with `annotations`; one id is one reply.")],
    texts: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL file, or folder of some, with the messages, by id, of rows without. Repeatable."),
    ] = None,
    split: Split = "all",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with heat maps to this file.")] = None,
    overwrite: Replace = False,
    resamples: Annotated[int, typer.Option(min=1, help="Draws of requests behind each interval.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of those draws.")] = 0,
    discuss: Annotated[int, typer.Option(min=0, help="Show so many of the most disputed replies.")] = 10,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")] = False,
    crosswalk: CrosswalkName = None,
    annotator_kind: AnnotatorSort = AnnotatorKindName.human,
    taxonomy: TaxonomyFile = None,
) -> None:
    """Measure how far people, or language models, agree on refusals and their kinds, with bootstrap intervals."""
    from demur.api import agree as measure
    from demur.report.agreement import agreement_markdown, agreement_text
    from demur.taxonomy import Taxonomy

    require_crosswalk(context, crosswalk)
    require_one_form(as_json=as_json, markdown=markdown)
    found = measure(
        files, taxonomy=Taxonomy.load(taxonomy), texts=texts, split=chosen_split(split),
        resamples=resamples, seed=seed, discuss=discuss, strict=strict, crosswalk=crosswalk,
        annotator_kind=annotator_kind.value, html=html, overwrite=overwrite,
    )  # fmt: skip
    if as_json:
        print(json.dumps(found.to_json(), indent=1, ensure_ascii=False))
    else:
        print(agreement_markdown(found) if markdown else agreement_text(found), end="")
    if html is not None:
        # Standard output may be read as JSON.
        Console(stderr=True).print(f"report: {html}", markup=False, highlight=False, soft_wrap=True)
