"""Hold the count that comes before an audit to reading no more than it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from demur.errors import SourceError
from demur.studies.inputs import rows_up_to

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_are_counted_up_to_a_number(tmp_path: Path) -> None:
    """Of two files with three rows each, one of which is broken."""
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n' * 3, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "x"}\n{\n{"text": "x"}\n', encoding="utf-8")
    assert [rows_up_to(str(tmp_path), most) for most in (4, 6, 100)] == [4, 6, 6]


def test_what_can_be_read_only_once_is_not_read() -> None:
    """Standard input would be gone."""
    assert rows_up_to("-", 10) is None


def test_a_source_without_rows_is_an_error(tmp_path: Path) -> None:
    """As it is when it is audited."""
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(SourceError):
        rows_up_to(str(tmp_path / "a.jsonl"), 10)
