"""The door for Python: audit a data set with the analyzer loaded where none is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demur.studies.audit import audit as run_audit
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import pandas as pd

    from demur.conversation import Conversation
    from demur.data.shapes import Turns
    from demur.data.sources import Source
    from demur.stats.conformal import Coverage
    from demur.studies.audit import Progress
    from demur.studies.findings import Audit
    from demur.studies.inputs import OnLayout
    from demur.verdict import Labeler

__all__ = ["audit"]


def audit(  # noqa: PLR0913  # each is one option of the command line
    source: str | Path | Source | Iterable[Conversation | str | Mapping[str, Any]] | pd.DataFrame,
    *,
    labeler: Labeler | None = None,
    out: Path | str | None = None,
    limit: int | None = None,
    layout: str | None = None,
    fields: Mapping[str, str] | None = None,
    turns: Turns = "last",
    evidence: bool = True,
    policy: str | None = None,
    coverage: Coverage = "auto",
    strict: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_layout: OnLayout | None = None,
) -> Audit:
    """Label every reply of a source, and say what it holds.

    >>> import demur
    >>> found = demur.audit(["<|user|>Draw me a cat.<|assistant|>I can't draw.", "<|user|>2 + 2?<|assistant|>4."])
    >>> found.refusals
    1

    Args:
        source: A file, folder, pattern, `hf://owner/name`, `example`, an open source, a pandas frame, or several of
            `Conversation`, strings (role-token text, or a bare reply) and rows (dicts, laid out as in a file).
        labeler: Who judges; None loads the shipped analyzer.
        out: Folder for verdicts, composition and report; None keeps them in a temporary one, without a report.
        limit: How many rows to read.
        layout: Name of the layout; None to find it for each file.
        fields: Columns by part, where they are not the usual ones.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.
        evidence: Whether the shipped analyzer finds the sentence that carries each refusal, which costs a pass over
            their sentences; another labeler gives what it gives.
        policy: What counts as a refusal: `strict`, refusals in full; `standard`, in full or in part; `broad`, also safe
            answers in place of what was asked, by a proxy that `demur.verdict.Policy` explains. None for the labeler's
            own, or else `standard`.
        coverage: Stated share of refusals whose set of kinds holds the true one, from 0.5 to 0.999, of the shipped
            analyzer; `auto` for 0.9 where its weights can state one, None for no sets. Another labeler states its own.
        strict: Raise on the first row that cannot be read, instead of counting it as unscored.
        resume: Go on where an earlier run into the same folder stopped; begin if there was none.
        overwrite: Replace an audit that the folder holds, and nothing that no audit wrote.
        progress: Told how far it has come.
        on_layout: Told each file and the layout that it is read in, before the first of its replies is judged.

    Raises:
        SourceError: The source cannot be read; with `strict`, one of its rows.
        LayoutError: The rows fit no layout, or not the one that was named.
        OutputError: The folder cannot be used, holds another audit or a file that is read, or cannot be resumed.
        TypeError: What is given as data is neither the name of a source nor several conversations.
        ValueError: There is no such policy, or the labeler has another; no such coverage can be stated, or it is given
            with a labeler, which would not know of it.
        WeightsError: The shipped analyzer cannot be loaded, or cannot state the coverage.
    """
    if labeler is None:
        from demur.labelers.classifier import Analyzer

        labeler = Analyzer.load(
            evidence=evidence, policy=Policy.standard if policy is None else policy, coverage=coverage
        )
    elif coverage != "auto":
        message = f"coverage {coverage!r}, but the sets of {labeler.name!r} are its own; load it with that coverage"
        raise ValueError(message)
    found = run_audit(
        source, labeler=labeler, out=out, limit=limit, layout=layout, fields=fields, turns=turns, policy=policy,
        strict=strict, resume=resume, overwrite=overwrite, progress=progress, on_layout=on_layout,
    )  # fmt: skip
    if out is not None:
        from demur.report import write_reports

        write_reports(found, found.path)
    return found
