"""The door for Python: what the commands do, with the usual choices made where none is given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from demur.documents import user_path
from demur.studies.audit import audit as run_audit
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pandas as pd

    from demur.conversation import Conversation
    from demur.data.annotated import AnnotatorKind
    from demur.data.judged import Turns
    from demur.data.sources import Source
    from demur.stats.conformal import Coverage
    from demur.studies.agreement import Agreement
    from demur.studies.audit import Progress
    from demur.studies.cluster import Cluster
    from demur.studies.findings import Audit
    from demur.studies.inputs import OnLayout
    from demur.studies.leaderboard import Leaderboard
    from demur.studies.pace import OnVerdict
    from demur.taxonomy import Taxonomy
    from demur.verdict import Labeler

__all__ = ["agree", "audit", "benchmark"]


def agree(  # noqa: PLR0913  # each is one option of the command line
    source: str | Path | Mapping[str, Any] | Iterable[str | Path] | Iterable[Mapping[str, Any]] | pd.DataFrame,
    *,
    taxonomy: Taxonomy | None = None,
    texts: Path | str | Iterable[Path | str] | None = None,
    split: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    discuss: int = 10,
    strict: bool = False,
    crosswalk: Path | str | None = None,
    annotator_kind: AnnotatorKind = "human",
    html: Path | str | None = None,
    overwrite: bool = False,
) -> Agreement:
    """Measure how far annotators, people or language models, agree on refusals and their kinds.

    >>> import demur
    >>> said = [[("full", "none"), ("full", "full"), ("none", "none")][row % 3] for row in range(30)]
    >>> who = [{"annotator": "ada", "kind": "human"}, {"annotator": "bo", "kind": "human"}]
    >>> rows = [{"annotations": [{**who[i], "verdict": two[i]} for i in (0, 1)]} for two in said]
    >>> found = demur.agree(rows)
    >>> round(found.figure("gate", "cohen").estimate.value, 3)
    0.4

    Args:
        source: One or more JSONL files, or rows as they stand in one, or a pandas frame of them: `annotations` is a
            list of objects with `annotator`, `kind` (`human` or `llm`), `verdict`, `labels` and, if you like, `sure`.
        taxonomy: Names the kinds; None for the shipped one.
        texts: One or more JSONL files, or folders of some, that hold the messages, by id, of rows without.
        split: Only rows of this split and those without one; None for all.
        resamples: Draws of requests behind each interval.
        seed: Of those draws.
        discuss: How many of the most disputed replies to keep.
        strict: Raise on the first row that cannot be read, instead of counting it.
        crosswalk: A crosswalk file, or the name of a shipped one: `source` is then a data set in labels of its own,
            such as `hf://owner/name`, whose columns are found, and whose labels it maps; one that it lacks is an error,
            and so are `split` and `texts` beside it.
        annotator_kind: Who gave such labels, `human` or `llm`.
        html: Where to write a page with heat maps; None for nowhere.
        overwrite: Replace what is there already.

    Raises:
        SourceError: A file is missing, or no row has annotations; with `strict`, a row cannot be read; or `split`,
            `texts` or a second source stand beside a crosswalk.
        OutputError: The page cannot be written, or something is there already.
        TypeError: What is given is neither files nor rows, the texts are no files, or a number is no whole one.
        ValueError: There is no such number of draws or replies, no such seed or kind of annotator.
    """
    from demur.studies.annotated_source import read_annotated_source
    from demur.studies.annotation import agree as run_agree
    from demur.taxonomy import Taxonomy

    _require_whole(resamples=resamples, seed=seed, discuss=discuss)
    if html is not None:
        from demur.studies.writing import require_room

        html = user_path(html)
        require_room([html], overwrite=overwrite)
    kinds = Taxonomy.load() if taxonomy is None else taxonomy
    rows, _ = read_annotated_source(
        source, kinds, split=split, texts=texts, strict=strict, crosswalk=crosswalk, annotator_kind=annotator_kind
    )
    found = run_agree(rows, kinds, resamples=resamples, seed=seed, discuss=discuss)
    if html is not None:
        from demur.report.agreement_html import write_agreement

        write_agreement(found, Path(html))
    return found


def audit(  # noqa: PLR0913  # each is one option of the command line
    source: str | Path | Source | Iterable[Conversation | str | Mapping[str, Any]] | pd.DataFrame,
    *,
    labeler: Labeler | str | None = None,
    out: Path | str | None = None,
    limit: int | None = None,
    layout: str | None = None,
    fields: Mapping[str, str] | None = None,
    turns: Turns = "last",
    evidence: bool = True,
    policy: str | None = None,
    coverage: Coverage = "auto",
    dedup: bool = True,
    strict: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_layout: OnLayout | None = None,
    on: str | Cluster | None = None,
) -> Audit:
    """Label every reply of a source, and say what it holds.

    >>> import demur
    >>> found = demur.audit(["<|user|>Draw me a cat.<|assistant|>I can't draw.", "<|user|>2 + 2?<|assistant|>4."])
    >>> found.refusals
    1

    Args:
        source: A file, folder, pattern, `hf://owner/name`, `example`, an open source, a pandas frame, or several of
            `Conversation`, strings (role-token text, or a bare reply) and rows (dicts, laid out as in a file).
        labeler: Who judges, or the name: `demur` for the shipped analyzer, which None loads too, `keywords`,
            `recorded:FILE` for the one annotator of a file, or `judge:MODEL` for a language model at OpenAI. Of one of
            your own, `resume` knows the name, and what its `describe()` returns where it has that.
        out: Folder for verdicts, composition and report; None keeps them, without a report, in a temporary one that
            goes with the returned audit.
        limit: How many rows to read.
        layout: Name of the layout; None to find it for each file.
        fields: Columns by part, where they are not the usual ones.
        turns: Whether the last assistant turn of a row is judged, or `all` of them.
        evidence: Whether the shipped analyzer finds the sentence that carries each refusal, which costs a pass over
            their sentences; another labeler gives what it gives.
        policy: What counts as a refusal: `strict`, refusals in full; `standard`, in full or in part; `broad`, also safe
            answers in place of what was asked, by a proxy that `demur.verdict.Policy` explains, and only of a labeler
            that decides under it, as the shipped one does. None for the labeler's own, or else `standard`.
        coverage: Stated share of refusals whose set of kinds holds the true one, from 0.5 to 0.999, of the shipped
            analyzer; `auto` for 0.9 where its weights can state one, None for no sets. Another labeler states its own.
        dedup: Whether identical conversations are judged once across the whole run, each counting as often as it is
            there; a labeler that does not say of itself that it judges the text alone judges each one.
        strict: Raise on the first row that cannot be read, instead of counting it as unscored.
        resume: Go on where an earlier run into the same folder stopped; begin if there was none.
        overwrite: Replace an audit that the folder holds, and nothing that no audit wrote.
        progress: Told how far it has come.
        on_layout: Told each file and the layout that it is read in, before the first of its replies is judged.
        on: `ray` to judge in worker processes on this machine, `ray://HOST:PORT` or `ray://auto` for those of a
            cluster, with the same verdicts; None for this process.

    Raises:
        ClusterError: Ray is not installed or out of reach, or its workers cannot do their part.
        EndpointError: The judge that is named cannot be asked.
        LabelerError: There is no labeler of that name, or the file that it names holds several annotators; or what the
            labeler says of itself, or gives, is not what a labeler says or gives.
        SourceError: The source cannot be read; with `strict`, one of its rows.
        LayoutError: The rows fit no layout, or not the one that was named.
        OutputError: The folder cannot be used, holds another audit or a file that is read, or cannot be resumed.
        TypeError: What is given as data is neither the name of a source nor several conversations; or the labeler is
            neither one nor the name of one.
        ValueError: The limit is less than 1; there is no such policy, the labeler has another, or `broad` is none for
            it; no such coverage can be stated, or it is given with a labeler, which would not know of it.
        WeightsError: The shipped analyzer cannot be loaded, or cannot state the coverage.
    """
    from demur.labelers.opening import require_labeler

    if labeler is None or (isinstance(labeler, str) and labeler.strip() == "demur"):
        from demur.labelers.classifier import Analyzer

        labeler = Analyzer.load(
            evidence=evidence, policy=Policy.standard if policy is None else policy, coverage=coverage
        )
    else:
        labeler = _named(labeler) if isinstance(labeler, str) else require_labeler(labeler)
        if coverage != "auto" and getattr(labeler, "category_sets", None) is not None:
            message = f"coverage {coverage!r}, but the sets of {labeler.name!r} are its own; load it with that coverage"
            raise ValueError(message)
        if coverage not in ("auto", None):
            message = f"coverage {coverage!r}, but {labeler.name!r} gives no sets of kinds; leave it out"
            raise ValueError(message)
    return run_audit(
        source, labeler=labeler, out=out, limit=limit, layout=layout, fields=fields, turns=turns, policy=policy,
        dedup=dedup, strict=strict, resume=resume, overwrite=overwrite, progress=progress, on_layout=on_layout, on=on,
        report=None if out is None else _write_reports,
    )  # fmt: skip


def _write_reports(found: Audit) -> None:
    from demur.report import write_reports

    write_reports(found, found.path)


def benchmark(  # noqa: PLR0913  # each is one option of the command line
    source: str | Path | Mapping[str, Any] | Iterable[str | Path] | Iterable[Mapping[str, Any]] | pd.DataFrame,
    labelers: Iterable[Labeler | str] | Labeler | str = ("demur", "keywords", "annotators"),
    *,
    taxonomy: Taxonomy | None = None,
    texts: Path | str | Iterable[Path | str] | None = None,
    split: str | None = None,
    panel: AnnotatorKind | None = None,
    reference: str | None = None,
    usd_per_hour: float | None = None,
    usd_per_million: Mapping[str, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    strict: bool = False,
    crosswalk: Path | str | None = None,
    annotator_kind: AnnotatorKind = "human",
    out: Path | str | None = None,
    overwrite: bool = False,
    on_verdict: OnVerdict | None = None,
) -> Leaderboard:
    """Measure labelers of all sorts on the same replies, against the consensus of those who annotated them.

    >>> import demur
    >>> said = [("I can't do that.", "full"), ("Sure: 4.", "none"), ("I won't help you.", "full")] * 10
    >>> who = [{"annotator": name, "kind": "human"} for name in ("ada", "bo", "cy")]
    >>> rows = [
    ...     {
    ...         "messages": [{"role": "user", "content": f"Case {n}?"}, {"role": "assistant", "content": reply}],
    ...         "annotations": [{**one, "verdict": verdict} for one in who],
    ...     }
    ...     for n, (reply, verdict) in enumerate(said)
    ... ]
    >>> demur.benchmark(rows, ["keywords", "annotators"])["keywords"].gate.f1.value
    1.0

    Args:
        source: One or more JSONL files, or rows as they stand in one, or a pandas frame of them: `messages`, and
            `annotations` as for `agree`.
        labelers: Labelers, or one, or names: `demur` for the shipped classifier, `keywords`, `annotators` for everybody
            who annotated the rows, each against the consensus of the others, `recorded:FILE` for everybody in another
            file of annotations, and `judge:MODEL` for a language model at OpenAI (`demur.Judge.at` opens one
            elsewhere).
        taxonomy: Names the kinds; None for the shipped one.
        texts: One or more JSONL files, or folders of some, that hold the messages, by id, of rows without.
        split: Only rows of this split and those without one; None for all.
        panel: Whose majority is the consensus, `human` or `llm`; None for people where there are any.
        reference: Name of the labeler that all others are compared with; None for the first one.
        usd_per_hour: Price of this machine, in USD: what programs on it cost; None where that is not known.
        usd_per_million: Stated cost of a million rows, in USD, by name of the labeler.
        resamples: Draws of whole requests behind each interval.
        seed: Of those draws.
        strict: Raise on the first row that cannot be read, instead of counting it.
        crosswalk: What the labels of a data set mean that has its own, as for `agree`.
        annotator_kind: Who gave such labels, `human` or `llm`.
        out: Folder for the leaderboard as Markdown, CSV, HTML and JSON; None for nowhere.
        overwrite: Replace a leaderboard that the folder holds, and nothing that no benchmark wrote.
        on_verdict: Told name, verdicts so far and rows in all, as they come.

    Raises:
        SourceError: A file is missing, no row has annotations or text; with `strict`, a row cannot be read; or `split`,
            `texts` or a second source stand beside a crosswalk.
        EndpointError: A judge cannot be asked.
        OutputError: The folder cannot be written, or holds a leaderboard already.
        LabelerError: There is no such labeler, two have one name, or one gives what is no verdict.
        TypeError: What is given is neither files nor rows, the texts are no files, a number is no whole one, or one of
            the labelers is neither a labeler nor a name.
        ValueError: A labeler decides under another policy than `standard`; there is no such number of draws, seed,
            price or kind of annotator.
    """
    from demur.labelers.opening import Opener, parse_labelers, require_labeler
    from demur.studies.annotated_source import read_annotated_source
    from demur.studies.benchmark import benchmark as run_benchmark
    from demur.taxonomy import Taxonomy

    _require_whole(resamples=resamples, seed=seed)
    if out is not None:
        from demur.report.leaderboard import require_board

        out = user_path(out)
        require_board(out, overwrite=overwrite)
    kinds = Taxonomy.load() if taxonomy is None else taxonomy
    rows, by_id = read_annotated_source(
        source, kinds, split=split, texts=texts, strict=strict, crosswalk=crosswalk, annotator_kind=annotator_kind
    )
    opener = Opener(kinds, rows.rows, by_id, lambda: _analyzer(kinds), lambda model: _judge(model, kinds))
    opened: list[Labeler] = []
    is_single = isinstance(labelers, str) or callable(getattr(labelers, "label", None))
    for given in cast("Iterable[Labeler | str]", [labelers] if is_single else labelers):
        if isinstance(given, str):
            opened += [labeler for spec in parse_labelers([given]) for labeler in opener.open(spec)]
        else:
            opened.append(require_labeler(given))
    found = run_benchmark(
        rows, opened, kinds, panel=panel, reference=reference, usd_per_hour=usd_per_hour,
        usd_per_million=usd_per_million, resamples=resamples, seed=seed, on_verdict=on_verdict,
    )  # fmt: skip
    if out is not None:
        from demur.report.leaderboard import write_leaderboard

        write_leaderboard(found, Path(out))
    return found


def _require_whole(**given: object) -> None:
    """Refuse what is no whole number; which numbers may be, statistics say."""
    for name, number in given.items():
        if isinstance(number, bool) or not isinstance(number, SupportsIndex):
            message = f"{name} {number!r}; give a whole number"
            raise TypeError(message)


def _named(name: str) -> Labeler:
    """Open the labeler of a name, the shipped analyzer apart."""
    from demur.labelers.keywords import KeywordLabeler
    from demur.labelers.opening import open_recorded, parse_labeler
    from demur.taxonomy import Taxonomy

    spec, taxonomy = parse_labeler(name), Taxonomy.load()
    if spec.sort == "judge":
        return _judge(spec.target, taxonomy)
    return KeywordLabeler(taxonomy) if spec.sort == "keywords" else open_recorded(Path(spec.target), taxonomy)


def _analyzer(taxonomy: Taxonomy) -> Labeler:
    from demur.labelers.classifier import Analyzer

    return Analyzer.load(taxonomy=taxonomy)


def _judge(model: str, taxonomy: Taxonomy) -> Labeler:
    from demur.labelers.judge import Judge

    judge = Judge.at(model, taxonomy=taxonomy)
    # Without a key, nothing is begun.
    judge.client.endpoint.key()
    return judge
