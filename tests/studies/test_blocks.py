"""Blocks, in one process: what is read, labelled and packed is what an audit on one machine writes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demur.errors import ClusterError, RowError
from demur.labelers.keywords import KeywordLabeler
from demur.studies.blocks import Block, BlockJudge, End, Reading, Shard, Stopped
from demur.studies.inputs import ReadingOptions
from demur.studies.judging import Judging
from demur.studies.run import threshold
from demur.studies.shards import Shards
from demur.studies.tally import Tally
from demur.verdict import Policy

if TYPE_CHECKING:
    from demur.taxonomy import Taxonomy


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Write seven rows, the fifth broken; every other reply refuses."""
    replies = ["I can't help with that.", "Sure."] * 3
    lines = [json.dumps({"prompt": "Q", "response": reply}) for reply in replies]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*lines[:4], "{broken", *lines[4:]]) + "\n")
    return path


def reading(source: object, *, finished: frozenset[int] = frozenset(), **given: object) -> Reading:
    """Read two replies a block."""
    fixed = {"folder": str(Path.cwd()), "fingerprint": None, "chunk": 2, "strict": False, **given}
    return Reading(source, ReadingOptions(), finished=finished, **fixed)  # type: ignore[arg-type]


def test_a_source_is_cut_where_shards_are(rows: Path) -> None:
    """Blocks of two, the last of one; the end says how many there are, and how the file was read."""
    *blocks, end = reading(str(rows)).blocks()
    assert [len(block.items) for block in blocks if isinstance(block, Block)] == [2, 2, 2, 1]
    assert [block.number for block in blocks if isinstance(block, Block)] == [0, 1, 2, 3]
    layout = "prompt_response: prompt=prompt response=response"
    assert isinstance(blocks[0], Block)
    assert blocks[0].layouts == ((str(rows), layout),)
    assert end == End(4, (), {layout: 1})


def test_finished_shards_are_read_over_and_their_share_counts(rows: Path) -> None:
    """The shares of what is left still make a whole: a bar that begins at 0 ends at 1."""
    *blocks, end = reading(str(rows), finished=frozenset({0, 2})).blocks()
    assert [block.number for block in blocks if isinstance(block, Block)] == [1, 3]
    assert sum(block.share or 0 for block in blocks if isinstance(block, Block)) == pytest.approx(1.0)
    assert isinstance(end, End)
    assert end.n_blocks == 4


def test_a_relative_path_is_one_from_the_folder_of_the_audit(rows: Path, tmp_path: Path) -> None:
    """And the process is where it was when all is read."""
    before = Path.cwd()
    found = list(reading(rows.name, folder=str(tmp_path)).blocks())
    assert isinstance(found[-1], End)
    assert Path.cwd() == before


def test_another_source_under_the_same_name_is_refused(rows: Path) -> None:
    """A cluster that sees another file would audit that."""
    (found,) = reading(str(rows), fingerprint="0" * 64).blocks()
    assert isinstance(found, Stopped)
    assert isinstance(found.error, ClusterError)
    assert "is not the same on the cluster as here" in str(found.error)


def test_the_first_broken_row_ends_a_strict_reading(rows: Path) -> None:
    """After what was full before that row was met; the error tells place and reason on the other side, too."""
    *blocks, found = reading(str(rows), strict=True).blocks()
    assert len(blocks) == 1
    there = pickle.loads(pickle.dumps(found))  # noqa: S301  # made one line above
    assert isinstance(there, Stopped)
    assert isinstance(there.error, RowError)
    assert (there.error.where, there.error.reason) == (f"{rows}:5", "unreadable_row")


def test_a_shard_holds_the_bytes_that_a_run_on_one_machine_writes(
    rows: Path, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Verdicts and tally of the third block, a broken row among its two, after a journey as pickles."""
    labeler = KeywordLabeler()
    block = list(reading(str(rows)).blocks())[2]
    assert isinstance(block, Block)
    local = list(Judging(labeler, taxonomy, Policy.standard, None).judge(0, block.items))
    shards = Shards(tmp_path / "shards", taxonomy)
    shards.write(2, local, Tally.of(local, taxonomy, threshold=threshold(labeler)))
    found = BlockJudge(labeler, taxonomy, Policy.standard)(pickle.loads(pickle.dumps(block)))  # noqa: S301  # likewise
    assert isinstance(found, Shard)
    assert found.packed == shards.packed(2)
    assert (found.replies, found.refusals, found.unscored) == (2, 1, 1)
    other = Shards(tmp_path / "other", taxonomy)
    other.put(2, found.packed)
    assert (other.numbers(), other.finished()) == ({2}, 0)
    assert other.packed(2) == found.packed
