"""Judge the shards of an audit on Ray, on this machine or on a cluster, as a run on one machine would judge them."""

from __future__ import annotations

import importlib.util
import os
import pickle
import warnings
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from demur.errors import ClusterError
from demur.studies.blocks import End, Reading, Shard, Stopped
from demur.studies.progress import Progress
from demur.studies.release import release
from demur.studies.run import chunk_size, threshold
from demur.studies.tally import Tally
from demur.studies.writing import read_object

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from demur.studies.inputs import OnLayout, ReadingOptions
    from demur.studies.run import Run

__all__ = ["Cluster", "judge_on"]

_NAME = "ray"
_HOW = "give ray, ray://HOST:PORT or ray://auto"
_INSTALL = 'audits on Ray need the library `ray`; run: pip install "demur[ray]"'
# What a Ray of our own holds in shared memory: the labeler, and a few blocks for each worker.
_STORE_BYTES = 512 * 1024**2


@dataclass(frozen=True, slots=True)
class Cluster:
    """Say where workers judge, and how many.

    Attributes:
        address: `ray://HOST:PORT` of a cluster's Ray Client server; `auto` for the cluster that this machine is a node
            of; None for this machine alone.
        workers: Processes that judge, with a core each; None for one a core of the cluster, or one a GPU where the
            labeler runs on one.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        """Refuse a number of workers that does nothing."""
        if self.workers is not None and self.workers < 1:
            message = f"{self.workers} workers judge nothing; give at least 1"
            raise ValueError(message)

    @classmethod
    def of(cls, on: str, *, workers: int | None = None) -> Self:
        """Read `ray`, `ray://HOST:PORT` or `ray://auto`.

        Raises:
            ClusterError: It is none of these.
        """
        if on == _NAME:
            return cls(None, workers)
        address = on.removeprefix(f"{_NAME}://")
        if address in (on, ""):
            message = f"{on!r} is no place to run an audit; {_HOW}"
            raise ClusterError(message)
        return cls(address if address == "auto" else on, workers)


def judge_on(
    cluster: Cluster, run: Run, source: object, options: ReadingOptions, on_layout: OnLayout | None = None
) -> None:
    """Judge on a cluster what is not judged yet, and write the results here.

    Shards are written as they come back, in any order; each is one that `run.complete()` would write.

    Args:
        cluster: Where.
        run: The run, its folder begun.
        source: What `run.opened` was opened from.
        options: How it is read.
        on_layout: Told each file and the layout that it is read in, as soon as the first shard of it is there.

    Raises:
        ClusterError: Ray is not installed or out of reach, cannot be given the source or the labeler, gave a block up,
            or did not hand back every shard.
    """
    fingerprint = _fingerprint(run)
    shards = run.folder.shards(run.taxonomy)
    shards.drop_damaged()
    finished = shards.numbers()
    with _connected(cluster):
        reading = _reading(run, source, options, finished, fingerprint)
        with closing(_judged(cluster, run, reading)) as found:
            end = _collect(found, run, finished, _silent if on_layout is None else on_layout)
    if end is None or finished != set(range(end.n_blocks)):
        missing = "the end of the source" if end is None else f"{end.n_blocks - len(finished)} shards"
        message = (
            f"{missing} did not come back from Ray; what did is kept, and --resume (resume=True) asks for the rest"
        )
        raise ClusterError(message)
    tally = Tally.of((), run.taxonomy, threshold=threshold(run.labeler))
    for stored in shards.tallies():
        tally += stored
    run.finish(tally, end.n_files)


def _fingerprint(run: Run) -> str:
    """Return that of the source, which only what can be read again has."""
    fingerprint = read_object(run.folder.manifest)["source"]["fingerprint"]
    if fingerprint is None:
        message = (
            f"{run.opened.name!r} can be read only once, and by this process alone, or its hub tells no revision; "
            "put it in a file, or in a list, to audit it on Ray"
        )
        raise ClusterError(message)
    return str(fingerprint)


def _reading(run: Run, source: object, options: ReadingOptions, finished: set[int], fingerprint: str) -> Reading:
    """Say what is to be read; outside of this machine, also what it must be."""
    return Reading(
        source,
        options,
        folder=str(Path.cwd()),
        fingerprint=fingerprint if _is_apart() else None,
        chunk=chunk_size(run.labeler),
        strict=run.strict,
        finished=frozenset(finished),
    )


def _collect(found: Iterable[Shard | End | Stopped], run: Run, finished: set[int], on_layout: OnLayout) -> End | None:
    """Write what comes back, add its numbers to the finished ones, and return the end, if it came."""
    shards, bar, end = run.folder.shards(run.taxonomy), _Bar(run, finished), None
    for one in found:
        if isinstance(one, Stopped):
            raise one.error
        for file, layout in one.layouts:
            on_layout(file, layout)
        if isinstance(one, End):
            end = one
            continue
        shards.put(one.number, one.packed)
        finished.add(one.number)
        bar.count(one)
    return end


def _silent(file: str, layout: str) -> None:
    """Tell nobody."""


class _Bar:
    """Tell how far it has come, shard by shard."""

    def __init__(self, run: Run, finished: set[int]) -> None:
        self._tell = run.progress
        self._resumed = self._replies = self._refusals = self._unscored = 0
        for tally in run.folder.shards(run.taxonomy).tallies(finished):
            counts = tally.composition
            self._resumed += counts.rows
            self._refusals += counts.refusals
            self._unscored += counts.rows - counts.scored
        self._replies = self._resumed
        self._fraction: float | None = 0.0

    def count(self, shard: Shard) -> None:
        """Count one shard."""
        self._replies += shard.replies
        self._refusals += shard.refusals
        self._unscored += shard.unscored
        if self._fraction is not None:
            self._fraction = None if shard.share is None else min(self._fraction + shard.share, 1.0)
        if self._tell is not None:
            self._tell(Progress(self._replies, self._resumed, self._refusals, self._unscored, self._fraction))


@contextmanager
def _connected(cluster: Cluster) -> Iterator[None]:
    """Connect to Ray, and part from it again; a connection that the caller already has is used as it is.

    Raises:
        ClusterError: Ray is not installed, or there is no cluster at the address.
    """
    if importlib.util.find_spec("ray") is None:
        raise ClusterError(_INSTALL)
    # Read when Ray is imported or started.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    address = os.environ.get("RAY_ADDRESS", "local") if cluster.address is None else cluster.address
    if address == "local":
        # On the loopback alone: nobody else is to send it work.
        quiet |= {
            "num_cpus": cluster.workers, "include_dashboard": False, "object_store_memory": _STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
        }  # fmt: skip
    try:
        with warnings.catch_warnings(action="ignore"):
            ray.init(address=address, **quiet)
    except Exception as error:  # Ray raises a dozen unrelated types, bare `Exception` among them
        ray.shutdown()
        raise ClusterError(_unreached(address, error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _unreached(address: str, error: Exception) -> str:
    why = _first_line(error)
    if address == "local":
        return f"Ray does not start here ({why}); try again when this machine is less busy, or audit without --on"
    # A Ray Client server that misses its token does not answer, and Ray tells that as a lost connection.
    token = "" if os.environ.get("RAY_AUTH_MODE") == "token" else ", with RAY_AUTH_MODE=token if it asks for a token"
    return f"no Ray cluster can be reached at {address!r} ({why}); {_HOW}{token}"


def _judged(cluster: Cluster, run: Run, reading: Reading) -> Generator[Shard | End | Stopped, None, None]:
    """Yield what workers found, as it comes.

    Raises:
        ClusterError: Source or labeler cannot travel, or Ray gave a block up.
    """
    import ray

    from demur.studies.ray_pipeline import FAILED, TRIES, Conductor

    n_gpus = _gpus(run.labeler)
    n_workers = cluster.workers if cluster.workers is not None else _places("GPU" if n_gpus else "CPU")
    begin = ray.remote(Conductor).options(num_cpus=0, **_here()).remote
    # In a list, the reference travels on to the workers; bare, Ray would put what it names in its place.
    judging = [ray.put(_pickled(run.labeler, run.taxonomy, run.policy, of=f"labeler {run.labeler.name!r}"))]
    conductor = begin(
        _pickled(reading, of=f"source {run.opened.name!r}"),
        judging, n_workers=n_workers, n_gpus=n_gpus, expected=release(),
    )  # fmt: skip
    try:
        while (found := ray.get(conductor.next.remote())) is not None:
            yield pickle.loads(found)  # noqa: S301  # our own workers wrote it
    except ray.exceptions.RayError as error:
        message = f"Ray gave up, after {TRIES} tries where a worker failed or was lost: {_reason(error, FAILED)}"
        raise ClusterError(message) from error
    finally:
        ray.kill(conductor)


def _pickled(*values: object, of: str) -> bytes:
    """Pickle as Ray does, which sends classes of notebooks and scripts along; of one value, that alone."""
    from ray import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(values if len(values) > 1 else values[0])
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        message = f"{of} cannot be sent to workers ({_first_line(error)}); audit it without Ray"
        raise ClusterError(message) from error
    return packed


def _is_apart() -> bool:
    """Tell whether this process is outside of the cluster, on a machine that may see other files."""
    import ray

    return bool(ray.util.client.ray.is_connected())


def _here() -> dict[str, Any]:
    """Return what keeps an actor on this machine, where the source is; nothing where this is no node."""
    import ray

    if _is_apart():
        return {}
    return {"label_selector": {"ray.io/node-id": ray.get_runtime_context().get_node_id()}}


def _gpus(labeler: object) -> int:
    """Return how many GPUs a worker takes: the labeler runs there on what it runs on here."""
    describe = getattr(labeler, "describe", None)
    engine = str(describe().get("engine", "")) if callable(describe) else ""
    return int(engine.endswith("cuda"))


def _places(resource: str) -> int:
    import ray

    places = int(ray.cluster_resources().get(resource, 0))
    if places < 1:
        message = f"the Ray cluster has no {resource}, and each worker is to have one"
        raise ClusterError(message)
    return places


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _reason(error: BaseException, mark: str) -> str:
    """Return the line that a worker left, among all that Ray says; else the first that is no part of a stack."""
    found = [line[line.index(mark) :] for line in str(error).splitlines() if mark in line]
    return found[-1] if found else _first_line(error)
