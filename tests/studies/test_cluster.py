"""Audits on a real Ray of two workers: the same bytes as on one machine, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import secrets
import signal
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest

from demur.errors import ClusterError, RowError
from demur.studies import run
from demur.studies.audit import audit
from demur.studies.cluster import Cluster
from demur.studies.shards import Shards
from demur.verdict import Thresholds, Verdict

ray = pytest.importorskip("ray")

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from demur.conversation import Conversation
    from demur.labelers.classifier import Analyzer
    from demur.studies.progress import Progress
    from demur.taxonomy import Taxonomy

RESULTS = ("verdicts.parquet", "composition.json", "tally.json", "manifest.json")
STORE_BYTES = 200 * 1024**2
STARTS = 5
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Otherwise Ray leaves a token in the user's home.
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_register_timeout_seconds": "600",
    "RAY_gcs_server_request_timeout_seconds": "600",
    "RAY_health_check_failure_threshold": "100",
}


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Cluster]:
    """Start a Ray of two cores on the loopback, with all the time that a busy machine takes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        # Ray sets this one itself, for the whole process; now it is taken back at the end.
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.delenv("RAY_AUTH_MODE")
        _start()
        yield Cluster(workers=2)
        ray.shutdown()


def _start() -> None:
    # Ray gives itself thirty seconds, which no setting makes more.
    for tries_left in reversed(range(STARTS)):
        try:
            ray.init(
                address="local", num_cpus=2, object_store_memory=STORE_BYTES, include_dashboard=False,
                log_to_driver=False, logging_level="ERROR", _node_ip_address="127.0.0.1",
            )  # fmt: skip
        except Exception:  # Ray raises nothing narrower
            ray.shutdown()
            if not tries_left:
                raise
        else:
            return


class Marked:
    """Refuse what begins with "No"; at one reply, fail as told, once or always, and note who was asked for it."""

    name = "marked"
    chunk = 2
    thresholds = Thresholds()

    def __init__(self, notes: Path | None = None, *, at: int = -1, deed: str = "none", always: bool = False) -> None:
        """Take where to note, the row to fail at, and how: `kill` or `raise`."""
        self.notes = notes
        self.at = at
        self.deed = deed
        self.always = always

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Yield one verdict for each conversation."""
        for conversation in conversations:
            if conversation.row_id == self.at:
                self._do()
            is_refusal = conversation.reply.startswith("No")
            yield Verdict("full", 0.9) if is_refusal else Verdict("none", 0.1 + conversation.row_id / 1000)

    def _do(self) -> None:
        assert self.notes is not None
        tries = self.notes / f"{self.deed}-{os.getpid()}-{len(list(self.notes.iterdir()))}"
        tries.touch()
        if self.always or len(list(self.notes.iterdir())) == 1:
            if self.deed == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            message = "the disk is gone"
            raise OSError(message)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Write 21 rows, one of them broken: with a chunk of two, 11 shards."""
    lines = [json.dumps({"prompt": f"Q{i}", "response": "No." if i % 3 else f"Yes, {i}."}) for i in range(20)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*lines[:4], "{broken", *lines[4:]]) + "\n")
    return path


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Make a folder that workers and test both see."""
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def _bytes(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


def test_results_are_those_of_one_machine_byte_for_byte(rows: Path, tmp_path: Path, two_workers: Cluster) -> None:
    """The broken row among them; layouts are told once, and the bar comes to its end."""
    audit(str(rows), labeler=Marked(), out=tmp_path / "here")
    told: list[tuple[str, str]] = []
    seen: list[Progress] = []
    found = audit(
        str(rows), labeler=Marked(), out=tmp_path / "ray", on=two_workers, progress=seen.append,
        on_layout=lambda *layout: told.append(layout),
    )  # fmt: skip
    assert _bytes(tmp_path / "ray") == _bytes(tmp_path / "here")
    assert (found.rows, found.refusals) == (21, 13)
    assert told == [(str(rows), "prompt_response: prompt=prompt response=response")]
    assert len(seen) == 11
    assert (seen[-1].replies, seen[-1].refusals, seen[-1].unscored) == (21, 13, 1)
    assert seen[-1].fraction == pytest.approx(1.0)
    assert not (tmp_path / "ray" / "shards").exists()


def test_the_analyzer_finds_the_same_on_ray(
    analyzer: Analyzer, tmp_path: Path, two_workers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Network, tokenizer and thresholds travel; the bundled example has several files, pairs and reasoning."""
    monkeypatch.setattr(run, "CHUNK", 40)
    here = audit("example", labeler=analyzer, out=tmp_path / "here", dedup=False)
    audit("example", labeler=analyzer, out=tmp_path / "ray", on=two_workers)
    assert here.rows > 3 * 40
    assert _bytes(tmp_path / "ray") == _bytes(tmp_path / "here")


def test_a_killed_worker_costs_nothing_but_time(rows: Path, tmp_path: Path, notes: Path, two_workers: Cluster) -> None:
    """SIGKILL in the middle of the seventh shard: another worker judges it, and no shard is lost or other."""
    audit(str(rows), labeler=Marked(), out=tmp_path / "here")
    audit(str(rows), labeler=Marked(notes, at=13, deed="kill"), out=tmp_path / "ray", on=two_workers)
    tried_by = {path.name.split("-")[1] for path in notes.iterdir()}
    assert len(tried_by) == 2
    assert _bytes(tmp_path / "ray") == _bytes(tmp_path / "here")


def test_a_block_that_fails_once_is_tried_again(rows: Path, tmp_path: Path, notes: Path, two_workers: Cluster) -> None:
    """An error of the moment, not of the data."""
    audit(str(rows), labeler=Marked(), out=tmp_path / "here")
    audit(str(rows), labeler=Marked(notes, at=13, deed="raise"), out=tmp_path / "ray", on=two_workers)
    assert len(list(notes.iterdir())) == 2
    assert _bytes(tmp_path / "ray") == _bytes(tmp_path / "here")


@pytest.mark.parametrize(("deed", "why"), [("raise", r"failed at shard 10: OSError\(.*disk is gone"), ("kill", "")])
def test_a_block_that_always_fails_ends_the_run_and_what_is_finished_is_kept(
    rows: Path, tmp_path: Path, notes: Path, two_workers: Cluster, deed: str, why: str
) -> None:
    """After four tries; one machine goes on with it, and ends with the same bytes."""
    audit(str(rows), labeler=Marked(), out=tmp_path / "here")
    failing = Marked(notes, at=20, deed=deed, always=True)
    with pytest.raises(ClusterError, match=f"Ray gave up, after 4 tries .*{why}") as caught:
        audit(str(rows), labeler=failing, out=tmp_path / "ray", on=two_workers)
    assert len(list(notes.iterdir())) == 4
    assert "--resume" in caught.value.__notes__[0]
    assert list((tmp_path / "ray" / "shards").glob("*.json"))
    audit(str(rows), labeler=Marked(), out=tmp_path / "ray", resume=True)
    assert _bytes(tmp_path / "ray") == _bytes(tmp_path / "here")


def test_a_stopped_run_is_resumed_after_what_is_finished(
    rows: Path, tmp_path: Path, taxonomy: Taxonomy, two_workers: Cluster
) -> None:
    """Ctrl-C at the fourth shard, whichever it is: four are kept, gaps or not, and seven are judged."""
    audit(str(rows), labeler=Marked(), out=tmp_path / "here")
    seen: list[Progress] = []

    def stop(now: Progress) -> None:
        seen.append(now)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        audit(str(rows), labeler=Marked(), out=tmp_path / "ray", on=two_workers, progress=stop)
    assert "--resume" in caught.value.__notes__[0]
    shards = Shards(tmp_path / "ray" / "shards", taxonomy)
    kept = list(shards.tallies(shards.numbers()))
    assert len(kept) == 4
    seen.clear()
    audit(str(rows), labeler=Marked(), out=tmp_path / "ray", on=two_workers, progress=seen.append, resume=True)
    assert len(seen) == 7
    assert {now.resumed for now in seen} == {sum(tally.composition.rows for tally in kept)}
    assert _bytes(tmp_path / "ray") == _bytes(tmp_path / "here")


def test_a_strict_audit_raises_what_it_raises_on_one_machine(rows: Path, tmp_path: Path, two_workers: Cluster) -> None:
    """With its place."""
    with pytest.raises(RowError, match=r"rows\.jsonl:5"):
        audit(str(rows), labeler=Marked(), out=tmp_path / "ray", on=two_workers, strict=True)


def test_a_labeler_that_cannot_travel_is_named(rows: Path, tmp_path: Path, two_workers: Cluster) -> None:
    """A session, a connection, a lock: no other process can have it."""
    holding: Any = Marked()
    holding.lock = Lock()
    with pytest.raises(ClusterError, match=r"labeler 'marked' cannot be sent to workers \(cannot pickle .*lock"):
        audit(str(rows), labeler=holding, out=tmp_path / "ray", on=two_workers)


def test_rows_in_memory_travel_too(two_workers: Cluster) -> None:
    """A list of them; without a folder, as without Ray."""
    given = [{"prompt": "Q", "response": reply} for reply in ("No.", "Yes.", "No.")]
    assert audit(given, labeler=Marked(), on=two_workers).refusals == 2
