"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.console import Console

from demur.cli.auditing import say
from demur.model.engine_names import EngineName
from demur.verdict import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from demur.labelers.classifier import Analyzer
    from demur.labelers.opening import LabelerSpec
    from demur.stats.conformal import Coverage

__all__ = [
    "AnnotatorKindName",
    "AnnotatorSort",
    "CoverageShare",
    "CrosswalkName",
    "DataFolder",
    "EncoderName",
    "EngineOption",
    "Exact",
    "PolicyName",
    "Replace",
    "Runtime",
    "Split",
    "TaxonomyFile",
    "Threshold",
    "WeightsFolder",
    "Workers",
    "calibration_line",
    "chosen_split",
    "open_analyzer",
    "quiet_libraries",
    "require_crosswalk",
    "require_heeded",
    "require_one_form",
]

# Parameters of commands that say something to labelers of one sort alone.
_HEEDED_BY: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "demur": frozenset({"weights", "encoder", "threshold", "coverage", "engine", "exact", "workers"}),
        "judge": frozenset(
            {
                "base_url", "key_variable", "prompt", "parameter", "max_cost", "max_rows", "prices", "price", "batch",
                "poll", "concurrency", "timeout", "retries", "cache",
            }
        ),
    }
)  # fmt: skip
_WHO = {"demur": "only the labeler 'demur' heeds", "judge": "only a judge (judge:MODEL) heeds"}


class AnnotatorKindName(StrEnum):
    """Name what annotators are."""

    human = "human"
    llm = "llm"


CrosswalkName = Annotated[
    str | None,
    typer.Option(
        "--crosswalk",
        help="Crosswalk file, or name of a shipped one, for one data set (hf://owner/name, or a file) in labels of its "
        "own: its columns are found, and a label that the crosswalk lacks stops the run.",
    ),
]
AnnotatorSort = Annotated[
    AnnotatorKindName, typer.Option("--annotator-kind", help="With --crosswalk: who gave those labels.")
]
Replace = Annotated[
    bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there; without it, that is refused.")
]
Split = Annotated[
    str,
    typer.Option(
        "--split",
        metavar="NAME",
        help="Measure rows of this split (dev, train, test …), and rows without one; all for every row.",
    ),
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
        "answers in place of what was asked, by a proxy: half of the usual threshold, 0.25, or --threshold.",
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
EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        help="What runs the network. torch: in fp32. auto: the fastest that is installed and decides as fp32 does. All "
        "but torch are built at first use, in a minute or more; auto builds none where it counts less than 1,000 rows "
        "(25,000 where the processor has no quick int8).",
    ),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Judge in fp32, with torch, and read every reply in full: no first look.")
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Cores to use; by default all that this process may use."),
]


@dataclass(frozen=True, slots=True)
class Runtime:
    """Say what runs the network, on how many cores.

    Attributes:
        engine: What was asked for.
        n_threads: Cores to use; None for all that this process may use.
        n_texts: How many texts there are, where that is known.
        first_look: Whether long replies that clearly do not refuse are settled in a short window.
    """

    engine: EngineName = EngineName.torch
    n_threads: int | None = None
    n_texts: int | None = None
    first_look: bool = False

    @classmethod
    def of(cls, engine: EngineName, workers: int | None, *, exact: bool, n_texts: int | None = None) -> Self:
        """Read the options, of which `--exact` goes with no other engine than torch."""
        if exact and engine not in (EngineName.auto, EngineName.torch):
            message = f"--exact judges in fp32, with torch, in one look; leave it out, or --engine {engine}"
            raise typer.BadParameter(message, param_hint="--exact")
        return cls(EngineName.torch if exact else engine, workers, n_texts, first_look=not exact)


def chosen_split(name: str) -> str | None:
    """Return the split that `--split` names; None for all of them."""
    return None if name == "all" else name


def require_heeded(context: typer.Context, labelers: Iterable[LabelerSpec]) -> None:
    """Refuse options of the classifier, or of judges, where none of the labelers is one: nobody else would heed them.

    Raises:
        BadParameter: One of them was given; a default is fine, and so is what stands in the environment.
    """
    specs = list(labelers)
    sorts = {spec.sort for spec in specs}
    who = ", ".join(repr(str(spec)) for spec in specs)
    for sort, names in _HEEDED_BY.items():
        given = [
            option.opts[0]
            for option in context.command.params
            if option.name in names and _is_given(context, option.name)
        ]
        if given and sort not in sorts:
            them = "it" if len(given) == 1 else "them"
            message = f"{_WHO[sort]} {them}, and what is measured is {who}; leave {them} out"
            raise typer.BadParameter(message, param_hint=", ".join(given))


def require_crosswalk(context: typer.Context, crosswalk: str | None) -> None:
    """Refuse to be told who gave foreign labels where there are none: rows of ours say that themselves.

    Raises:
        BadParameter: `--annotator-kind` was given, and no crosswalk.
    """
    if crosswalk is None and _is_given(context, "annotator_kind"):
        message = "only labels that a crosswalk maps need it, rows with `annotations` say it themselves; leave it out"
        raise typer.BadParameter(message, param_hint="--annotator-kind")


def require_one_form(*, as_json: bool, markdown: bool) -> None:
    """Refuse to print two forms at once.

    Raises:
        BadParameter: Both were asked for.
    """
    if as_json and markdown:
        message = "one of them can be printed; leave the other out"
        raise typer.BadParameter(message, param_hint="--json, --markdown")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def open_analyzer(
    weights: Path | None,
    encoder: str | None,
    taxonomy: Path | None,
    threshold: float | None = None,
    *,
    evidence: bool = False,
    policy: Policy = Policy.standard,
    coverage: float | None = None,
    runtime: Runtime | None = None,
) -> Analyzer:
    """Load the analyzer that the options ask for, and say on standard error what runs it."""
    runtime = Runtime() if runtime is None else runtime
    quiet_libraries(n_threads=runtime.n_threads)
    from demur.labelers.classifier import Analyzer
    from demur.model.runtime.choice import open_engine
    from demur.model.weights import Weights
    from demur.taxonomy import Taxonomy

    if threshold is not None and not 0 <= threshold <= 1:
        message = f"{threshold} is not a probability; give a number from 0 to 1"
        raise typer.BadParameter(message, param_hint="--threshold")
    stated = _coverage(coverage)
    console = Console(stderr=True)
    loaded = Weights.load(weights, taxonomy=Taxonomy.load(taxonomy), encoder=encoder)
    thresholds = policy.thresholds(loaded.thresholds, threshold)
    engine = open_engine(
        runtime.engine,
        loaded,
        thresholds=thresholds,
        n_threads=runtime.n_threads,
        n_texts=runtime.n_texts,
        say=lambda line: say(console, line),
    )
    return Analyzer(
        loaded, thresholds=thresholds, engine=engine, first_look=runtime.first_look, evidence=evidence, policy=policy,
        coverage=stated,
    )  # fmt: skip


def _coverage(given: float | None) -> Coverage:
    from demur.stats.conformal import require_coverage

    if given is None:
        return "auto"
    try:
        require_coverage(given)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--coverage") from error
    return given


def quiet_libraries(*, n_threads: int | None = None) -> None:
    """Keep the progress bars and reports of libraries out of ours, and the tokenizer to its cores."""
    import os

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    if n_threads is not None:
        os.environ["RAYON_NUM_THREADS"] = str(n_threads)


def calibration_line(n_rows: int) -> str:
    """Say on how many held-out rows weights were calibrated, or that there were too few."""
    from demur.model.calibration import FEWEST_ROWS

    if n_rows < FEWEST_ROWS:
        return f"not calibrated, which takes {FEWEST_ROWS} held-out rows; validated on {n_rows}"
    return f"calibrated on {n_rows}"
