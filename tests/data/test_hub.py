"""Hub data sets are streamed through `datasets`; a local folder stands for one here."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING

import pytest

from demur.data.hub import HubPart, _parsed
from demur.data.sources import Row, Source, open_source
from demur.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ROWS: list[Mapping[str, object]] = [{"prompt": f"Question {n}?", "response": f"Answer {n}."} for n in range(3)]


@pytest.fixture
def hub_folder(tmp_path: Path) -> Path:
    """Lay a local folder out as a hub data set of two configurations."""
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (tmp_path / "test.jsonl").write_text(json.dumps(ROWS[0]))
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n"
        "- config_name: both\n  data_files:\n"
        "  - split: test\n    path: test.jsonl\n  - split: train\n    path: train.jsonl\n"
        "- config_name: small\n  data_files:\n  - split: validation\n    path: test.jsonl\n---\n"
    )
    return tmp_path


class TestHub:
    """A data set is opened by name, and its rows are streamed."""

    @pytest.mark.parametrize(
        ("tail", "n_rows", "split"),
        [(":both", 3, "train"), (":both/test", 1, "test"), (":small", 1, "validation")],
        ids=["default split", "named split", "only split"],
    )
    def test_configuration_and_split_are_chosen_by_name(
        self, hub_folder: Path, tail: str, n_rows: int, split: str
    ) -> None:
        """The default split is `train`, else the first."""
        pytest.importorskip("datasets")
        source = open_source(f"hf://{hub_folder}{tail}")
        rows = list(source.rows())
        assert [row.fields for row in rows if isinstance(row, Row)] == ROWS[:n_rows]
        assert source.name.endswith(f"/{split}")
        assert source.fraction_read is None
        assert len(source.fingerprint() or "") == 64

    def test_a_split_that_was_not_named_is_said(self, hub_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        """What is read is never a surprise."""
        pytest.importorskip("datasets")
        with caplog.at_level(logging.WARNING, logger="demur"):
            open_source(f"hf://{hub_folder}:both")
        assert "reading the split 'train' of test, train" in caplog.text

    @pytest.mark.parametrize(
        ("tail", "message"),
        [(":both/dev", "no split 'dev'; there is test, train"), ("", "cannot open it"), (":x", "cannot open it")],
        ids=["split", "no configuration", "configuration"],
    )
    def test_a_wrong_name_lists_the_right_ones(self, hub_folder: Path, tail: str, message: str) -> None:
        """Errors of `datasets` come as ours."""
        pytest.importorskip("datasets")
        with pytest.raises(SourceError, match=message):
            open_source(f"hf://{hub_folder}{tail}")

    def test_a_folder_of_save_to_disk_is_read(self, tmp_path: Path) -> None:
        """`load_dataset` refuses it where it holds a single split."""
        datasets = pytest.importorskip("datasets")
        datasets.disable_progress_bars()
        datasets.Dataset.from_list(ROWS).save_to_disk(str(tmp_path))
        datasets.enable_progress_bars()
        source = open_source(f"hf://{tmp_path}")
        assert [row.fields for row in source.rows() if isinstance(row, Row)] == ROWS
        assert source.name == f"hf://{tmp_path}/train"

    def test_a_folder_that_is_not_there_is_an_error(self) -> None:
        """It is not looked for on the hub."""
        pytest.importorskip("datasets")
        with pytest.raises(SourceError, match="names no data set"):
            open_source("hf:///nowhere/at/all")

    def test_an_absent_library_is_named_with_its_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The message is the command that repairs it."""
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(SourceError, match=r'pip install "demur\[hub\]"'):
            open_source("hf://owner/name")

    def test_a_stream_that_breaks_off_is_an_error(self) -> None:
        """Rows before the break are given."""

        def rows() -> Iterator[Mapping[str, object]]:
            yield ROWS[0]
            message = "connection reset"
            raise ConnectionError(message)

        part = HubPart("owner/name", None, "train", "abc", rows())
        records = part.records()
        assert next(records).value == ROWS[0]
        with pytest.raises(SourceError, match=r"breaks off .ConnectionError: connection reset."):
            next(records)
        assert part.identity() == "hf://owner/name/train\0abc"

    def test_what_the_hub_tells_no_revision_of_has_no_fingerprint(self) -> None:
        """Other rows may stand under the same name the next time; a revision tells two of them apart."""

        def fingerprint(revision: str | None) -> str | None:
            return Source("hf://owner/name/train", [HubPart("owner/name", None, "train", revision, ROWS)]).fingerprint()

        assert fingerprint(None) is None
        assert fingerprint("abc") == fingerprint("abc") != fingerprint("def")

    @pytest.mark.parametrize(
        ("spec", "parsed"),
        [
            ("hf://owner/name", ("owner/name", None, None)),
            ("hf://owner/name/test", ("owner/name", None, "test")),
            ("hf://owner/name:en", ("owner/name", "en", None)),
            ("hf://owner/name:en/test", ("owner/name", "en", "test")),
            ("hf://squad", ("squad", None, None)),
            ("hf://C:\\data", ("C:\\data", None, None)),
            ("hf:///C:/data:en/test", ("C:/data", "en", "test")),
        ],
        ids=["name", "split", "configuration", "both", "no owner", "drive", "drive and both"],
    )
    def test_a_name_is_taken_apart(self, spec: str, parsed: tuple[str, str | None, str | None]) -> None:
        """`hf://owner/name[:config][/split]`."""
        assert _parsed(spec) == parsed
