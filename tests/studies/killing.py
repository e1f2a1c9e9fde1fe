"""Run audits in processes of their own, and kill them: `python killing.py ROWS FOLDER SEED N`.

Prints the exit codes of `N` audits that were killed at seeded moments, each in a folder of its own, and those of the
runs that went on with them; the audit in `FOLDER/whole` was left alone.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

# All that an audit needs is imported before the first process begins, so that moments are moments of the audit.
import pyarrow.parquet  # noqa: F401

from demur.studies import run
from demur.studies.audit import audit
from demur.verdict import Evidence, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demur.conversation import Conversation


class Batched:
    """Give probabilities that depend on what is judged together, as those of a network do in their last digits."""

    name = "batched"
    judges_text_alone = True

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Yield one verdict for each conversation."""
        talks = list(conversations)
        for place, talk in enumerate(talks):
            probability = 1 / (1.1 + place / (3 * len(talks)) + len(talk.reply) % 7)
            if probability < 0.5:
                yield Verdict("none", probability)
            else:
                yield Verdict("full", probability, "privacy", "should_not", evidence=Evidence(0, 1, probability / 3))


def in_process(rows: Path, out: Path, kill_at: int | None = None) -> int:
    """Audit in a forked process, and return its exit code: -9 where it was killed.

    Args:
        rows: What is audited.
        out: Where to; where calls are counted, their number stands in a file beside it at the end.
        kill_at: The function call, Python's own among them, at which it is killed; 0 only counts them.
    """
    child = os.fork()
    if child == 0:
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1
            if calls == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        if kill_at is not None:
            sys.setprofile(count)
        audit(rows, labeler=Batched(), out=out, resume=True)
        sys.setprofile(None)
        out.with_suffix(".calls").write_text(str(calls))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(rows: Path, folder: Path, seed: int, n: int) -> None:
    """Audit once in peace, and `n` times with a kill; print the exit codes."""
    run.CHUNK = 16
    start = functools.partial(in_process, rows)
    codes = [start(folder / "whole", 0)]
    n_calls = int((folder / "whole.calls").read_text())
    moments = random.Random(seed).sample(range(1, n_calls), n)
    killed = [start(folder / f"cut-{i}", moment) for i, moment in enumerate(moments)]
    resumed = [start(folder / f"cut-{i}") for i in range(n)]
    sys.stdout.write(json.dumps({"whole": codes, "killed": killed, "resumed": resumed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
