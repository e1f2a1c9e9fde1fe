"""Measure how the time and the memory of an audit grow with the rows.

    python benchmarks/scaling.py

audits 10³ to 10⁵ rows, each size in a process of its own, and prints a Markdown table; `--largest 6` goes on to 10⁶.
The rows are those of the bundled example over and over, each with a number of its own in request and reply, so that no
two are alike, and nothing is judged twice or left out because of it. What is measured is the whole process: start-up,
fingerprint, reading, judging, writing and report.

The process that measures imports nothing large itself: Linux hands the peak memory of a parent on to its children.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path

LABELERS = ("keywords", "demur")
# The kernel counts in KiB; that of macOS in bytes.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """Keep what one audit took.

    Attributes:
        rows: Rows audited.
        wall_seconds: From start to end of the process.
        cpu_seconds: In user and system mode, over all of its threads.
        peak_mib: Largest resident memory.
        rows_per_second: By the clock.
        cpu_ms_per_row: Milliseconds of processor time a row.
    """

    rows: int
    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    rows_per_second: float
    cpu_ms_per_row: float


def write_rows(path: Path, n: int) -> None:
    """Write `n` rows: those of the example in turn, each with its number."""
    import itertools
    import json

    from demur.conversation import Conversation
    from demur.data.reading import read_conversations
    from demur.data.sources import EXAMPLE, open_source

    talks = [item for item in read_conversations(open_source(EXAMPLE)) if isinstance(item, Conversation)]
    with path.open("w", encoding="utf-8") as stream:
        for number, talk in zip(range(n), itertools.cycle(talks), strict=False):
            # As many digits whatever the size, so that rows are as long.
            prompt, response = f"{talk.request} ({number:08d})", f"{number:08d}. {talk.reply}"
            stream.write(json.dumps({"prompt": prompt, "response": response}) + "\n")


def audit_rows(path: Path, out: Path, labeler: str, *, engine: str, dedup: bool) -> None:
    """Audit a file; with the network, as `demur audit` does: evidence, first look."""
    import demur

    judge: demur.Labeler = (
        demur.KeywordLabeler()
        if labeler == "keywords"
        else demur.Analyzer.load(evidence=True, engine=engine, first_look=True)
    )
    demur.audit(path, labeler=judge, out=out, dedup=dedup)


def measured(rows: int, options: list[str], path: Path, scratch: Path) -> Measured:
    """Audit a file of so many rows in a process of its own, and say what that took.

    Raises:
        CalledProcessError: The audit failed.
    """
    command = [sys.executable, __file__, "--step", "audit", *options, str(path), str(scratch / "out")]
    began = time.monotonic()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(rows, wall, cpu, usage.ru_maxrss * _RSS_UNIT / 2**20, rows / wall, 1000 * cpu / rows)


def table(found: list[Measured]) -> str:
    """Return a Markdown table."""
    lines = [
        "| rows | wall, s | CPU, s | peak memory, MiB | rows/s | CPU a row, ms |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {one.rows:,} | {one.wall_seconds:,.1f} | {one.cpu_seconds:,.1f} | {one.peak_mib:,.0f} "
        f"| {one.rows_per_second:,.0f} | {one.cpu_ms_per_row:.3f} |"
        for one in found
    ]
    return "\n".join(lines)


def write_csv(found: list[Measured], path: Path) -> None:
    """Write the same figures, unrounded."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([field.name for field in fields(Measured)])
        writer.writerows(astuple(one) for one in found)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description="Measure how the time and the memory of an audit grow with the rows.")
    parser.add_argument("--labeler", choices=LABELERS, default="keywords", help="keywords: the pipeline alone")
    parser.add_argument("--engine", default="auto", help="what runs the network of the labeler demur")
    parser.add_argument("--dedup", action="store_true", help="look for repeats, of which there are none")
    parser.add_argument("--smallest", type=int, default=3, help="exponent of the fewest rows (3: 1,000)")
    parser.add_argument("--largest", type=int, default=5, help="exponent of the most rows (6: 1,000,000)")
    parser.add_argument("--csv", type=Path, help="where to write the figures as CSV, too")
    parser.add_argument("--scratch", type=Path, help="folder for rows and results; a temporary one by default")
    parser.add_argument("--step", choices=("write", "audit"), help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "write":
        write_rows(Path(options.paths[0]), int(options.paths[1]))
    elif options.step == "audit":
        rows, out = map(Path, options.paths)
        audit_rows(rows, out, options.labeler, engine=options.engine, dedup=options.dedup)
    else:
        found = _all_sizes(options)
        # Imported after what is measured, as above.
        from demur.model.runtime.threads import cores

        today = dt.datetime.now(tz=dt.UTC).date().isoformat()
        who = options.labeler if options.labeler == "keywords" else f"{options.labeler}, engine {options.engine}"
        how = f"Labeler `{who}`, {'with' if options.dedup else 'without'} dedup"
        print(f"{how}, {cores()} cores, {platform.machine()}, {today}:\n\n{table(found)}")
        if options.csv is not None:
            write_csv(found, options.csv)


def _all_sizes(options: argparse.Namespace) -> list[Measured]:
    found = []
    for exponent in range(options.smallest, options.largest + 1):
        rows = 10**exponent
        with tempfile.TemporaryDirectory(prefix="demur-scaling-", dir=options.scratch) as folder:
            scratch = Path(folder)
            path = scratch / "rows.jsonl"
            subprocess.run([sys.executable, __file__, "--step", "write", str(path), str(rows)], check=True)
            asked = ["--labeler", options.labeler, "--engine", options.engine, *(["--dedup"] if options.dedup else [])]
            found.append(measured(rows, asked, path, scratch))
        one = found[-1]
        said = f"{one.rows:,} rows: {one.wall_seconds:.1f} s, {one.cpu_seconds:.1f} s of CPU, {one.peak_mib:.0f} MiB"
        print(said, file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
