"""An audit goes at the pace of its labeler."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation
from demur.errors import OutputError
from demur.studies import progress
from demur.studies.audit import audit
from demur.studies.folder import AuditFolder
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from demur.studies.progress import Progress

TALKS = [Conversation.of("Hi", f"No {i}.") for i in range(10)]


class Paced:
    """Ask for three conversations at a time, and stop at one of them."""

    name = "paced"
    chunk = 3

    def __init__(self, *, stop_at: int = 99) -> None:
        """Note how many were given at once."""
        self.given: list[int] = []
        self._stop_at = stop_at

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Refuse them all."""
        talks = list(conversations)
        self.given.append(len(talks))
        for talk in talks:
            if talk.row_id == self._stop_at:
                raise KeyboardInterrupt
            yield Verdict("full")


def test_a_labeler_that_names_a_chunk_is_given_so_many_at_once(tmp_path: Path) -> None:
    """What is finished of them is kept, and gone on after; the manifest says how many they are."""
    with pytest.raises(KeyboardInterrupt):
        audit(TALKS, labeler=Paced(stop_at=7), out=tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out" / "shards").glob("*.json")) == [
        "part-000000.json",
        "part-000001.json",
    ]
    second = Paced()
    found = audit(TALKS, labeler=second, out=tmp_path / "out", resume=True)
    assert second.given == [3, 1]
    assert found.refusals == 10
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["options"]["chunk"] == 3


def test_who_waits_for_a_slow_labeler_is_told_of_every_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick one is told of by the chunk."""
    told: list[Progress] = []
    audit(TALKS, labeler=Paced(), progress=told.append)
    assert [one.replies for one in told] == [3, 6, 9, 10]
    told.clear()
    monkeypatch.setattr(progress, "_TELL_AFTER_SECONDS", 0.0)
    audit(TALKS, labeler=Paced(), progress=told.append)
    assert [one.replies for one in told] == list(range(1, 11))


def test_what_a_judge_was_paid_goes_with_the_audit_that_it_is_of(tmp_path: Path) -> None:
    """It is cleared away with the rest, and stands in the way of another audit like the rest."""
    audit(TALKS, labeler=Paced(), out=tmp_path)
    AuditFolder(tmp_path).spending.write_text("{}")
    with pytest.raises(OutputError, match=r"already holds .*spending\.json"):
        audit(TALKS, labeler=Paced(), out=tmp_path)
    audit(TALKS, labeler=Paced(), out=tmp_path, overwrite=True)
    assert not AuditFolder(tmp_path).spending.exists()


class Meddling(Paced):
    """Clear a finished shard away while judging, as another process on the same folder would."""

    def __init__(self, shards: Path) -> None:
        """Name the shards' folder."""
        super().__init__()
        self._shards = shards

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Refuse them all, the first shard gone."""
        for path in self._shards.glob("part-000000.*"):
            path.unlink()
        yield from super().label(conversations)


def test_results_that_lack_a_shard_are_not_put_in_place(tmp_path: Path) -> None:
    """A table with rows missing must not stand for the whole audit."""
    out = tmp_path / "out"
    with pytest.raises(OutputError, match=r"holds 0 verdicts where 10 were reached: another process"):
        audit(TALKS, labeler=Meddling(out / "shards"), out=out)
    assert not (out / "verdicts.parquet").exists()
    assert not (out / "composition.json").exists()
