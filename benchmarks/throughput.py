"""Measure, side by side on the same rows, how fast Demur judges beside what the field uses: see README.md here.

Every contestant runs in a process of its own, several rounds in turn, and loads and warms up before its clock starts.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from demur.conversation import Conversation
from demur.data.reading import read_conversations
from demur.data.rendering import MAX_TOKENS, Renderer, plain_text
from demur.data.sources import open_source
from demur.labelers.classifier import Analyzer
from demur.model.runtime.choice import open_engine
from demur.model.runtime.machine import has_bf16, overflows_in_int8, processor
from demur.model.runtime.rechecking import EnginePair
from demur.model.runtime.threads import cores
from demur.model.weights import Weights
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Gives the gate's verdict on each row, or nothing where there is none.
    Judge = Callable[[Sequence[Conversation]], list[bool]]

ENGINES = ("torch", "torch-bf16", "onnx", "openvino")
# Where bf16 is not quick, torch takes up to twenty times as long in it as in fp32.
USUAL_ENGINES = [engine for engine in ENGINES if engine != "torch-bf16" or has_bf16()]
BASELINES = ("pipeline-1", "pipeline-32", "sorted-32")
LIMITS = ("reading", "tokenising")
MARKS = ("<!-- throughput -->", "<!-- /throughput -->")
_WARM_UP = 16


@dataclass(frozen=True)
class Run:
    """Keep one run of one contestant.

    Attributes:
        seconds: From the first row in to the last verdict out.
        rows: How many were judged.
        peak_mb: Most memory that the process held, in MiB.
        refuses: The gate's verdict on each row, where it gives one.
    """

    seconds: float
    rows: int
    peak_mb: float
    refuses: list[bool]


def conversations_of(source: str) -> list[Conversation]:
    """Read a source whole; rows that give no conversation are left out."""
    return [found for found in read_conversations(open_source(source)) if isinstance(found, Conversation)]


def sampled(source: str, number: int) -> list[Conversation]:
    """Draw rows from all over a source, always the same ones, in their order."""
    found = conversations_of(source)
    chosen = np.random.default_rng(0).permutation(len(found))[:number]
    return [found[place] for place in sorted(chosen.tolist())]


def first(source: str, number: int) -> list[Conversation]:
    """Read the first rows of a source, and no more."""
    found = (each for each in read_conversations(open_source(source)) if isinstance(each, Conversation))
    return list(itertools.islice(found, number))


def contest(name: str, arguments: argparse.Namespace) -> Run:
    """Run one contestant once, in this process."""
    source, gate, workers, limit = arguments.source, arguments.gate, arguments.workers, arguments.audit_rows
    # The audit streams the source itself: the rest of it, in memory, would count as what the audit holds.
    rows = first(source, _WARM_UP) if name == "audit" else sampled(source, arguments.rows)
    warm_up, judge = judge_of(name, source, gate, workers, limit)
    warm_up(rows[:_WARM_UP])
    start = time.perf_counter()
    refuses = judge(rows)
    seconds = time.perf_counter() - start
    # Linux counts in KiB, macOS in bytes.
    unit = 1024 if platform.system() == "Darwin" else 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / unit
    return Run(seconds, len(refuses) or len(rows), peak, refuses)


def judge_of(name: str, source: str, gate: Path, workers: int, limit: int | None) -> tuple[Judge, Judge]:
    """Return what takes rows and gives verdicts, an empty list where the contestant gives none: to warm up, to time."""
    import torch

    torch.set_num_threads(workers)
    if name.startswith("pipeline-"):
        return _twice(_pipeline(gate, int(name.removeprefix("pipeline-"))))
    if name == "sorted-32":
        return _twice(_sorted(gate, 32))
    if name == "reading":
        return _nothing, lambda _: [False for _ in conversations_of(source)]
    if name == "tokenising":
        weights = Weights.load(None, taxonomy=Taxonomy.load())
        renderer = Renderer(weights.tokenizer, **weights.manifest.view)

        def tokenise(rows: Sequence[Conversation]) -> list[bool]:
            renderer.tokens(rows)
            return []

        return _twice(tokenise)
    if name == "audit":
        return _audit(source, limit)
    engine, _, look = name.partition("+")
    analyzer = _analyzer(engine, first_look=bool(look))
    return _twice(lambda rows: [bool(verdict.is_refusal) for verdict in analyzer.label(rows)])


def _twice(judge: Judge) -> tuple[Judge, Judge]:
    """Warm up by what is measured."""
    return judge, judge


def _nothing(rows: Sequence[Conversation]) -> list[bool]:
    del rows
    return []


def _analyzer(name: str, *, first_look: bool, evidence: bool = False) -> Analyzer:
    """Open an engine with all that it has: the one that reads again is else opened at the first text in doubt."""
    weights = Weights.load(None, taxonomy=Taxonomy.load())
    engine = open_engine(name, weights, thresholds=weights.thresholds)
    if isinstance(engine, EnginePair):
        _ = engine.careful
    return Analyzer(weights, engine=engine, first_look=first_look, evidence=evidence)


def _pipeline(gate: Path, batch_size: int) -> Judge:
    from transformers import pipeline

    classify = pipeline("text-classification", model=str(gate), device="cpu")

    def judge(rows: Sequence[Conversation]) -> list[bool]:
        texts = [plain_text(row) for row in rows]
        found = classify(texts, batch_size=batch_size, truncation=True, max_length=MAX_TOKENS)
        return [answer["label"] == "Refusal" for answer in found]

    return judge


def _sorted(gate: Path, batch_size: int) -> Judge:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gate)
    model = AutoModelForSequenceClassification.from_pretrained(gate).eval()

    def judge(rows: Sequence[Conversation]) -> list[bool]:
        texts = [plain_text(row) for row in rows]
        order, refuses = sorted(range(len(texts)), key=lambda place: len(texts[place])), [False] * len(texts)
        with torch.inference_mode():
            for start in range(0, len(order), batch_size):
                places = order[start : start + batch_size]
                batch = [texts[place] for place in places]
                inputs = tokenizer(batch, truncation=True, max_length=MAX_TOKENS, padding=True, return_tensors="pt")
                for place, label in zip(places, model(**inputs).logits.argmax(-1).tolist(), strict=True):
                    refuses[place] = label == 1
        return refuses

    return judge


def _audit(source: str, limit: int | None) -> tuple[Judge, Judge]:
    """Return the whole command's work on the source: reading, judging, evidence, shards, report."""
    import demur

    analyzer = _analyzer("auto", first_look=True, evidence=True)

    def warm_up(rows: Sequence[Conversation]) -> list[bool]:
        return [bool(verdict.is_refusal) for verdict in analyzer.label(rows)]

    def judge(_: Sequence[Conversation]) -> list[bool]:
        with tempfile.TemporaryDirectory() as folder:
            found = demur.audit(source, labeler=analyzer, out=Path(folder) / "audit", limit=limit)
            return [False] * found.rows

    return warm_up, judge


def matrix_rates(workers: int) -> dict[str, float]:
    """Measure the rate of matrix products in the encoder's shapes, in GFLOP/s, a multiply-add being two operations."""
    import torch

    torch.set_num_threads(workers)
    rates: dict[str, float] = {}
    for name, kind in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("int8", torch.int8)):
        best = 0.0
        for m, k, n in ((2048, 384, 1536), (2048, 1536, 384), (1024, 1024, 1024)):
            if kind is torch.int8:
                a, b = (torch.randint(-100, 100, shape, dtype=kind) for shape in ((m, k), (k, n)))
                product: Callable[[], Any] = lambda a=a, b=b: torch._int_mm(a, b)  # type: ignore[misc]  # noqa: E731, SLF001  # the only door to it
            else:
                a, b = (torch.randn(shape).to(kind) for shape in ((m, k), (k, n)))
                product = lambda a=a, b=b: a @ b  # type: ignore[misc]  # noqa: E731
            for _ in range(5):
                product()
            start, turns = time.perf_counter(), 60
            for _ in range(turns):
                product()
            best = max(best, 2 * m * k * n * turns / (time.perf_counter() - start) / 1e9)
        rates[name] = best
    return rates


def work_of(lengths: Sequence[int], weights: Weights) -> float:
    """Return the floating-point operations of the encoder's products over texts of these lengths, padding left out."""
    config = weights.network.encoder.config
    width, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    linear = 2 * (4 * width * width + 2 * width * inner)
    return float(sum(layers * (linear * n + 4 * width * n * n) for n in lengths))


def in_process(name: str, arguments: argparse.Namespace, gate: Path) -> Run:
    """Run a contestant once in a process of its own."""
    command = [
        sys.executable, __file__, arguments.source, "--rows", str(arguments.rows), "--workers", str(arguments.workers),
        "--contestant", name, "--gate", str(gate),
        *(["--audit-rows", str(arguments.audit_rows)] if arguments.audit_rows else []),
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.workers), "RAYON_NUM_THREADS": str(arguments.workers)}
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)  # itself
    return Run(**json.loads(answer.stdout.splitlines()[-1]))


def table(
    runs: dict[str, list[Run]],
    lengths: Sequence[int],
    baseline_lengths: Sequence[int],
    work: float,
    rates: dict[str, float],
) -> str:
    """Write the table; a figure is the median of the rounds, a ratio the median of the rounds' ratios.

    Args:
        runs: Those of each contestant.
        lengths: Tokens of each row that the weights read of it, and so the engines.
        baseline_lengths: Tokens of each row in the widest window, which the baselines read.
        work: Floating-point operations of what the engines read.
        rates: Those of matrix products, in GFLOP/s.
    """
    base = [run.rows / run.seconds for run in runs["pipeline-32"]]
    exact = runs["torch"][0].refuses
    lines = [
        "| what | rows/s | tokens/s | × pipeline, 32 | × pipeline, 1 | agrees with fp32 | of matrix rate | peak MiB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    single = [run.rows / run.seconds for run in runs["pipeline-1"]]
    for name, found in runs.items():
        speed = [run.rows / run.seconds for run in found]
        by_32, by_1 = (float(np.median(np.divide(speed, other))) for other in (base, single))
        agrees = np.mean(np.equal(found[0].refuses, exact)) if len(found[0].refuses) == len(exact) else np.nan
        share = work / len(lengths) * np.median(speed) / 1e9 / rates[_arithmetic(name)]
        is_judge = name not in (*LIMITS, "audit")
        has_share = is_judge and "+" not in name and name not in BASELINES
        read = baseline_lengths if name in BASELINES else lengths
        spread = f" ({min(speed):,.1f} to {max(speed):,.1f})" if len(speed) > 1 else ""
        lines.append(
            f"| {name} | {np.median(speed):,.1f}{spread} "
            f"| {np.median(speed) * np.mean(read):,.0f} | {by_32:.1f} | {by_1:.1f} "
            f"| {f'{agrees:.2%}' if is_judge else '-'} | {f'{share:.0%}' if has_share else '-'} "
            f"| {np.median([run.peak_mb for run in found]):,.0f} |"
        )
    return "\n".join(lines)


def _arithmetic(engine: str) -> str:
    if engine == "torch-bf16":
        return "bf16"
    return "fp32" if engine == "torch" or overflows_in_int8() else "int8"


def main() -> None:
    """Run all contestants, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", default="example", help="what `demur audit` reads; the example by default")
    parser.add_argument("--rows", type=int, default=512, help="rows drawn from the source for all but the audit")
    parser.add_argument("--audit-rows", type=int, help="rows that the audit reads from the beginning; all by default")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, in which all take turns")
    parser.add_argument("--workers", type=int, default=cores(), help="cores")
    parser.add_argument("--engines", nargs="*", default=USUAL_ENGINES, choices=ENGINES, help="engines that take part")
    parser.add_argument("--write", type=Path, help=f"Markdown file whose part between {MARKS[0]} and {MARKS[1]} is set")
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    parser.add_argument("--gate", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant == "rates":
        print(json.dumps(matrix_rates(arguments.workers)))
    elif arguments.contestant:
        run = contest(arguments.contestant, arguments)
        print(json.dumps(asdict(run)))
    else:
        _compare(arguments)


def _compare(arguments: argparse.Namespace) -> None:
    from demur.model.export import export_standard

    engines = list(dict.fromkeys(["torch", *arguments.engines]))
    names = [*BASELINES, *engines, *(f"{engine}+first-look" for engine in engines), "audit", *LIMITS]
    weights = Weights.load(None, taxonomy=Taxonomy.load())
    rows = sampled(arguments.source, arguments.rows)
    window = weights.manifest.max_tokens
    lengths, whole = (
        [len(ids) for ids in Renderer(weights.tokenizer, **view).tokens(rows)]
        for view in (weights.manifest.view, {"max_tokens": MAX_TOKENS})
    )
    runs: dict[str, list[Run]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        gate, _ = export_standard(weights, Path(folder))
        for turn in range(arguments.rounds):
            for name in names:
                runs[name].append(in_process(name, arguments, gate))
                last = runs[name][-1]
                print(f"round {turn + 1}: {name}: {last.rows / last.seconds:,.1f} rows/s", file=sys.stderr, flush=True)
        rates = _rates(arguments)
    machine = f"{arguments.workers} cores of {processor()}"
    n = arguments.rounds
    rounds = f"median of {n} rounds, least and most in brackets" if n > 1 else "one round"
    text = "\n\n".join([
        f"{len(rows):,} rows of `{Path(arguments.source).name}`, {np.mean(whole):.0f} tokens each on average up to "
        f"{MAX_TOKENS}, which the baselines read, and {np.mean(lengths):.0f} up to {window}, {_earlier(weights)}, "
        "which the engines read; "
        f"on {machine}, {dt.datetime.now(tz=dt.UTC).date()}; {rounds}. Matrix products reach "
        + ", ".join(f"{rate:,.0f} GFLOP/s in {kind}" for kind, rate in rates.items())
        + ".",
        table(runs, lengths, whole, work_of(lengths, weights), rates),
    ])  # fmt: skip
    print(text)
    if arguments.write:
        _write(arguments.write, text)


def _earlier(weights: Weights) -> str:
    most = weights.manifest.earlier_tokens
    return "all earlier turns among them" if most is None else f"at most {most} of them of earlier turns"


def _rates(arguments: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--workers", str(arguments.workers), "--contestant", "rates"]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # itself
    rates: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return rates


def _write(path: Path, text: str) -> None:
    before, mark, rest = path.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not mark or not end:
        message = f"{path} has no part between {MARKS[0]} and {MARKS[1]}; put both where the table belongs"
        raise SystemExit(message)
    path.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
