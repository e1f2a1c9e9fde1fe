"""Count the cores that there are for this process."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """Return how many cores this process may use: `OMP_NUM_THREADS`, or else those that the system gives it."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
