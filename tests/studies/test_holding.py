"""A place is held by one process at a time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from demur.cli.rows_out import rows_writer
from demur.errors import OutputError
from demur.labelers.keywords import KeywordLabeler
from demur.studies.audit import audit
from demur.studies.folder import AuditFolder
from demur.studies.holding import held

if TYPE_CHECKING:
    from pathlib import Path

    from demur.taxonomy import Taxonomy

_HOLD = """
import sys
from pathlib import Path
from demur.studies.holding import held
with held(Path(sys.argv[1]), Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_place_is_held_until_its_process_ends_or_is_killed(tmp_path: Path) -> None:
    """The second is told so at once; what a killed process leaves behind holds nothing."""
    lock = tmp_path / "rows.lock"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with (
            pytest.raises(OutputError, match="rows' is being written by another run"),
            held(tmp_path / "rows", lock),
        ):
            pass
        other.kill()
    assert lock.exists()
    with held(tmp_path / "rows", lock):
        assert lock.exists()
    assert not lock.exists()


def test_a_folder_of_an_audit_under_way_is_refused_and_left_alone(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Not even `overwrite` clears away what another process is writing."""
    with AuditFolder(tmp_path).held():
        (tmp_path / "manifest.json").write_text("{}")
        for resume in (True, False):
            with pytest.raises(OutputError, match="by another run"):
                audit(["No."], labeler=KeywordLabeler(taxonomy), out=tmp_path, resume=resume, overwrite=not resume)
        assert {path.name for path in tmp_path.iterdir()} == {".lock", "manifest.json"}
        (tmp_path / "manifest.json").unlink()
    assert audit(["No."], labeler=KeywordLabeler(taxonomy), out=tmp_path).rows == 1
    assert not (tmp_path / ".lock").exists()


def test_two_writers_of_one_file_do_not_mix_their_lines(tmp_path: Path) -> None:
    """The second is refused, and the first one's file is whole."""
    out = tmp_path / "rows.jsonl"
    with rows_writer(out, overwrite=True, apart_from=[]) as write:
        write("first")
        with (
            pytest.raises(OutputError, match="by another run"),
            rows_writer(out, overwrite=True, apart_from=[]),
        ):
            pass
        write("second")
    assert out.read_text() == "first\nsecond\n"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
