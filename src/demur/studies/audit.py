"""Audit a data set: label every reply, count, and keep what is worth reading."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.documents import user_path
from demur.errors import LabelerError, OutputError
from demur.studies.cluster import Cluster, judge_on
from demur.studies.findings import Audit, open_audit
from demur.studies.folder import AuditFolder
from demur.studies.inputs import ReadingOptions, open_input
from demur.studies.judging import judges_text_alone
from demur.studies.progress import Progress
from demur.studies.release import release
from demur.studies.run import Run, chunk_size, stamp, threshold
from demur.studies.shards import schema
from demur.studies.writing import read_object
from demur.taxonomy import Taxonomy
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd

    from demur.conversation import Conversation
    from demur.data.judged import Turns
    from demur.data.sources import Source
    from demur.studies.inputs import Input, OnLayout
    from demur.verdict import Labeler

__all__ = ["Audit", "Progress", "audit"]

_FORMAT = 6
_HOW_TO_GO_ON = "What is finished is kept in {path}; the same call goes on after it with --resume (resume=True)."
_CANNOT_GO_ON = (
    "{name} can be read only once, or its hub tells no revision, so this run cannot be resumed: put the rows in a file "
    "to be able to, or begin anew with --overwrite (overwrite=True)."
)
_NOTHING_FINISHED = (
    "What is finished is kept in chunks of {chunk:,} replies, and none is full yet; the same call begins anew."
)
_PAID_FOR = "The answers that were paid for are kept; the same call goes on with them with --resume (resume=True)."


def audit(  # noqa: PLR0913  # each is one option of the command line
    source: str | Path | Source | Iterable[Conversation | str | Mapping[str, Any]] | pd.DataFrame,
    *,
    labeler: Labeler,
    taxonomy: Taxonomy | None = None,
    out: Path | str | None = None,
    limit: int | None = None,
    layout: str | None = None,
    fields: Mapping[str, str] | None = None,
    turns: Turns = "last",
    policy: str | None = None,
    dedup: bool = True,
    strict: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_layout: OnLayout | None = None,
    on: str | Cluster | None = None,
    report: Callable[[Audit], None] | None = None,
) -> Audit:
    """Label every reply of a source, and say what it holds.

    Verdicts are written chunk by chunk, and memory does not grow with the rows. A run that is interrupted keeps the
    finished chunks; the same call with `resume` goes on after them and ends with the same bytes, on as many cores.

    Args:
        source: What `open_source` opens, an open source, a pandas frame, or conversations, strings and rows in memory.
        labeler: Classifier, judge, keyword list or recorded labels.
        taxonomy: What the labels are in; None for the labeler's own, or else the shipped one.
        out: Folder for the results; None for a temporary one that goes with the returned audit.
        limit: How many rows to read.
        layout: Name of the layout; None to find it for each file.
        fields: Columns by part, where they are not the usual ones.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.
        policy: What counts as a refusal: `strict`, `standard`, or `broad` where the labeler decides under it; None for
            the labeler's own, if it has one, or else `standard`.
        dedup: Whether identical conversations are judged once across the whole run, each counting as often as it is
            there, by labelers that judge the text alone (`judges_text_alone`); others judge each one, and so does Ray.
        strict: Raise on the first row that cannot be read, instead of counting it as unscored.
        resume: Go on where an earlier run into the same folder stopped; begin if there was none.
        overwrite: Replace an audit that the folder holds, and nothing that no audit wrote.
        progress: Told how far it has come.
        on_layout: Told each file and the layout that it is read in, before the first of its replies is judged; on Ray,
            as soon as the first shard of it is there.
        on: Where to judge: `ray` for worker processes on this machine, `ray://HOST:PORT` or `ray://auto` for those of
            a cluster, or a `Cluster`, which also says how many; None for this process.
        report: Given what was found while no other audit can write to the folder, to put reports there.

    Raises:
        ClusterError: Ray is not installed or out of reach, cannot be given the source or the labeler, or gave a shard
            up after several tries.
        LabelerError: What the labeler says of itself, or gives, is not what a labeler says or gives.
        SourceError: The source cannot be read; with `strict`, one of its rows.
        LayoutError: The rows fit no layout, or not the one that was named.
        OutputError: The folder cannot be used, holds another audit or a file that is read, or cannot be resumed; or
            another process writes to it.
        TaxonomyError: A kind is named like a column of the verdicts.
        TypeError: What is given as data is neither the name of a source nor several conversations; or the fields are no
            mapping.
        ValueError: There is no such policy, or the labeler has another; or both `resume` and `overwrite` are asked for;
            or sides of several pairs say that they are of row 0.
    """
    if resume and overwrite:
        message = "resume goes on with what the folder holds, and overwrite replaces it; give one of them"
        raise ValueError(message)
    # What a labeler has wrong is better met before the first reply is judged.
    counted, chunk = Policy.of(labeler, policy), chunk_size(labeler)
    threshold(labeler)
    if taxonomy is None:
        own = getattr(labeler, "taxonomy", None)
        taxonomy = own if isinstance(own, Taxonomy) else Taxonomy.load()
    options = ReadingOptions(limit, layout, _columns(fields), turns)
    cluster = Cluster.of(on) if isinstance(on, str) else on
    opened = open_input(source, options, on_layout)
    stamps = {file: stamp(file) for file in opened.files}
    folder = AuditFolder(Path(tempfile.mkdtemp(prefix="demur-")) if out is None else user_path(out))
    try:
        with folder.held():
            # Workers judge blocks apart, and do not know what others met.
            is_once = dedup and cluster is None and judges_text_alone(labeler)
            # A kind that is named like a column is better met before the first reply is judged.
            schema(taxonomy.keys)
            manifest = _manifest(opened, labeler, taxonomy, counted, options, is_once=is_once)
            with folder.begun(manifest, resume=resume, overwrite=overwrite, sources=opened.files):
                if folder.is_finished:
                    # A run that was killed after its last result has left its shards.
                    folder.shards(taxonomy).remove()
                else:
                    run = Run(
                        opened=opened, labeler=labeler, taxonomy=taxonomy, folder=folder, policy=counted,
                        is_once=is_once, strict=strict, stamps=stamps, progress=progress,
                    )  # fmt: skip
                    if cluster is None:
                        run.complete()
                    else:
                        judge_on(cluster, run, source, options, on_layout)
            found = open_audit(folder.path, taxonomy)
            _require_verdicts(found)
            if report is not None:
                report(found)
    except BaseException as error:
        if out is None:
            shutil.rmtree(folder.path, ignore_errors=True)
        elif advice := _advice(error, folder, taxonomy, chunk, is_paid=hasattr(labeler, "spending")):
            error.add_note(advice)
        raise
    if out is None:
        weakref.finalize(found, _remove, folder.path, of=os.getpid())
    return found


def _columns(fields: Mapping[str, str] | None) -> dict[str, str]:
    if fields is not None and not isinstance(fields, Mapping):
        message = f"fields is {fields!r}; give a mapping of part to column, such as {{'response': 'answer'}}"
        raise TypeError(message)
    return {} if fields is None else dict(fields)


def _remove(folder: Path, *, of: int) -> None:
    """Remove a temporary folder, unless this is a fork of the process that made it, which ends with its own copy."""
    if os.getpid() == of:
        shutil.rmtree(folder, ignore_errors=True)


def _require_verdicts(found: Audit) -> None:
    """Refuse a finished audit whose verdicts were lost since.

    Raises:
        OutputError: They are not there, damaged, or others.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = AuditFolder(found.path).verdicts
    try:
        n_rows: int | None = pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException):
        n_rows = None
    if n_rows != found.rows:
        met = "are missing or damaged" if n_rows is None else f"hold {n_rows:,} rows"
        message = (
            f"{path}: the verdicts of {found.rows:,} rows {met}; run the audit anew with --overwrite (overwrite=True)"
        )
        raise OutputError(message)


def _advice(error: BaseException, folder: AuditFolder, taxonomy: Taxonomy, chunk: int, *, is_paid: bool) -> str | None:
    """Say what is left of an audit that ended early, and how to go on; None where the error says it itself."""
    if isinstance(error, OutputError):
        return None
    if not folder.shards(taxonomy).numbers():
        if not isinstance(error, KeyboardInterrupt) or folder.is_finished:
            return None
        return _PAID_FOR if is_paid else _NOTHING_FINISHED.format(chunk=chunk)
    source = read_object(folder.manifest)["source"] if folder.manifest.is_file() else {}
    if source.get("fingerprint", "") is None:
        return _CANNOT_GO_ON.format(name=repr(source["name"]))
    return _HOW_TO_GO_ON.format(path=folder.path)


def _manifest(
    opened: Input, labeler: Labeler, taxonomy: Taxonomy, policy: Policy, options: ReadingOptions, *, is_once: bool
) -> dict[str, Any]:
    """Return all that decides the outcome: what is equal here gives equal bytes."""
    manifest = {
        "format": _FORMAT,
        "demur": release(),
        "source": {"name": opened.name, "fingerprint": opened.fingerprint()},
        "model": {"name": labeler.name, **_described(labeler)},
        "taxonomy": {"name": taxonomy.name, "version": taxonomy.version, "fingerprint": taxonomy.fingerprint},
        "policy": policy,
        "thresholds": _recorded(labeler, "thresholds"),
        "category_sets": _recorded(labeler, "category_sets"),
        "options": {**asdict(options), "chunk": chunk_size(labeler), "dedup": is_once},
    }
    # What was written is compared with what is now: both as JSON has them, tuples and paths included.
    plain: dict[str, Any] = json.loads(json.dumps(manifest, default=str))
    return plain


def _described(labeler: Labeler) -> Mapping[str, Any]:
    """Return what a labeler says that its verdicts follow from."""
    describe = getattr(labeler, "describe", None)
    found = describe() if callable(describe) else {}
    try:
        json.dumps(found, default=str, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _no_description(labeler, found) from error
    if not isinstance(found, Mapping):
        raise _no_description(labeler, found)
    return found


def _no_description(labeler: Labeler, found: object) -> LabelerError:
    return LabelerError(
        f"describe() of labeler {labeler.name!r} gave {found!r}; right would be a dict of JSON values, such as "
        "{'model': 'm'}"
    )


def _recorded(labeler: Labeler, name: str) -> dict[str, Any] | None:
    """Return the fields of a dataclass that a labeler may have, and None where it has none."""
    found = getattr(labeler, name, None)
    return asdict(found) if is_dataclass(found) and not isinstance(found, type) else None
