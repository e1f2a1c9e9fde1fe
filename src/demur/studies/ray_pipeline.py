"""Carry the blocks of an audit through Ray Data: read, label in a pool of actors, hand back.

Each block is one row of one Ray block, so that a shard is what Ray schedules, and tries again where a worker was lost.
The rows hold the blocks pickled: conversations are trees that Arrow columns would only take apart and put together.

A conductor, an actor itself, drives the pipeline from inside of the cluster: Ray Data cannot be driven through a Ray
Client, and its settings, bars and log lines stay out of the caller's process.
"""

from __future__ import annotations

import logging
import pickle
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray
from ray.data import ActorPoolStrategy, DataContext, Datasource, ReadTask
from ray.data.block import BlockMetadata

from demur.errors import ClusterError
from demur.studies.blocks import BlockJudge, Stopped
from demur.studies.release import release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.studies.blocks import Block, End, Reading, Shard

__all__ = ["FAILED", "TRIES", "Conductor"]

TRIES = 4
"""How often a block is tried before the run gives up: a worker may be lost, but a row that kills each one ends it."""

FAILED = "a worker failed at shard"
"""How the line begins that says why, among the stacks and hints that Ray makes of it on the way."""

_COLUMN = "block"
# One more than is judged, so that no worker waits for its next block.
_BLOCKS_PER_WORKER = 2


class Conductor:
    """Drive the pipeline, and hand back what comes out of it in the order in which it is done."""

    def __init__(self, reading: bytes, judging: list[Any], *, n_workers: int, n_gpus: int, expected: str) -> None:
        """Build the pipeline; nothing runs before `next`.

        Args:
            reading: The `Reading` that says what is read, pickled.
            judging: One reference to the arguments of `BlockJudge`, pickled.
            n_workers: Actors that judge, with a core each.
            n_gpus: GPUs that each of them takes.
            expected: The release of Demur that every worker must have.
        """
        _settle()
        source = _Source(pickle.loads(reading))  # noqa: S301  # the caller wrote it
        with warnings.catch_warnings():
            # Ray Data has no other way yet to bound how often it tries a block again.
            warnings.filterwarnings("ignore", message=".*ray_remote_args.*")
            found = ray.data.read_datasource(source, override_num_blocks=1, num_cpus=0).map_batches(
                _Worker,
                fn_constructor_args=(judging, expected),
                batch_size=1,
                batch_format="pyarrow",
                compute=ActorPoolStrategy(size=n_workers, max_tasks_in_flight_per_actor=_BLOCKS_PER_WORKER),
                num_cpus=1,
                num_gpus=n_gpus,
                max_task_retries=TRIES - 1,
            )
        self._rows: Iterator[dict[str, bytes]] = iter(found.iter_rows())

    def next(self) -> bytes | None:
        """Return the next `Shard`, `End` or `Stopped`, pickled; None after the last."""
        row = next(self._rows, None)
        return None if row is None else row[_COLUMN]


class _Source(Datasource):  # type: ignore[misc]  # Ray is not typed
    """Read blocks one after the other where the conductor is: only a reader from the start knows where shards end."""

    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self._reading = reading

    @property
    def supports_distributed_reads(self) -> bool:
        return False

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: DataContext | None = None
    ) -> list[ReadTask]:
        del parallelism, per_task_row_limit, data_context  # there is one order, and one reader
        unknown = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
        return [ReadTask(partial(_tables, self._reading), unknown)]


class _Worker:
    """Label blocks with a labeler that is loaded once."""

    def __init__(self, judging: list[Any], expected: str) -> None:
        self._judging = BlockJudge(*pickle.loads(ray.get(judging[0])))  # noqa: S301  # the caller wrote it
        self._expected = expected

    def __call__(self, table: pa.Table) -> pa.Table:
        (row,) = table[_COLUMN].to_pylist()
        return _table(self._judged(pickle.loads(row)))  # noqa: S301  # our own reader wrote it

    def _judged(self, block: Block | End | Stopped) -> Shard | End | Stopped:
        if release() != self._expected:
            message = f"a worker has Demur {release()}, and this is {self._expected}; install the same everywhere"
            return Stopped(ClusterError(message))
        try:
            return self._judging(block)
        except Exception as error:
            message = f"{FAILED} {getattr(block, 'number', '')}: {error!r}"
            raise RuntimeError(message) from error


def _tables(reading: Reading) -> Iterator[pa.Table]:
    return map(_table, reading.blocks())


def _table(block: Block | Shard | End | Stopped) -> pa.Table:
    return pa.table({_COLUMN: pa.array([pickle.dumps(block)], pa.large_binary())})


def _settle() -> None:
    """Set up Ray Data in this process, which does nothing else."""
    context = DataContext.get_current()
    # Any block is larger than a byte: none is joined with another, and each is on its way as soon as it is read.
    context.target_max_block_size = 1
    context.actor_task_retry_on_errors = True
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
