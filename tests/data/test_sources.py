"""Sources stream rows from files, folders, patterns, standard input, the hub and the bundled example."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demur.data import files, tables
from demur.data.formats import Opened, json_document
from demur.data.sources import BrokenRow, Row, open_source
from demur.errors import SourceError
from demur.studies.folder import AuditFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROWS: list[dict[str, object]] = [
    {"prompt": "How tall is Everest?", "response": "8,849 m."},
    {"prompt": "Say “hi”", "response": "hi, with a comma\nand a new line"},
    {"prompt": "你好", "response": "No."},
]


def jsonl(rows: Sequence[object]) -> bytes:
    """Write one JSON value a line."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def delimited(rows: Sequence[Mapping[str, object]], delimiter: str) -> bytes:
    """Write a header and a line for each row."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def parquet(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Write a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def twins() -> bytes:
    """Write a Parquet file of two columns of one name, as a join does."""
    sink = io.BytesIO()
    pq.write_table(pa.table([["Yes."], ["No."]], names=["a", "a"]), sink)
    return sink.getvalue()


def zstd(content: bytes) -> bytes:
    """Pack as one zstd frame, as a stream is packed."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def fields_of(spec: Path | str) -> list[dict[str, object]]:
    """Read the fields of all rows, none of which may be broken."""
    rows = list(open_source(str(spec)).rows())
    assert all(isinstance(row, Row) for row in rows)
    return [dict(row.fields) for row in rows if isinstance(row, Row)]


def broken(spec: Path | str) -> list[BrokenRow]:
    """Read the broken rows."""
    return [row for row in open_source(str(spec)).rows() if isinstance(row, BrokenRow)]


CONTENTS = {
    "a.jsonl": jsonl(ROWS),
    "a.ndjson": jsonl(ROWS),
    "array.json": json.dumps(ROWS, indent=2).encode(),
    "object.json": json.dumps({"version": 1, "data": ROWS}).encode(),
    "pretty_object.json": json.dumps({"version": 1, "data": ROWS}, indent=2).encode(),
    "lines.json": jsonl(ROWS),
    "a.csv": delimited(ROWS, ","),
    "semicolons.csv": delimited(ROWS, ";"),
    "a.tsv": delimited(ROWS, "\t"),
    "a.parquet": parquet(ROWS),
}


class TestKinds:
    """Every supported ending gives the same rows."""

    @pytest.mark.parametrize("name", CONTENTS)
    def test_each_kind_gives_the_rows_that_were_written(self, tmp_path: Path, name: str) -> None:
        """Fields are equal, positions count from 0."""
        (tmp_path / name).write_bytes(CONTENTS[name])
        rows = list(open_source(str(tmp_path / name)).rows())
        assert [row.position for row in rows] == [0, 1, 2]
        assert fields_of(tmp_path / name) == ROWS

    @pytest.mark.parametrize("name", [name for name in CONTENTS if name != "a.parquet"])
    @pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstd), (".zstd", zstd)])
    def test_each_kind_but_parquet_may_be_packed(
        self, tmp_path: Path, name: str, ending: str, pack: Callable[[bytes], bytes]
    ) -> None:
        """Gzip and zstd are unpacked by ending."""
        (tmp_path / (name + ending)).write_bytes(pack(CONTENTS[name]))
        assert fields_of(tmp_path / (name + ending)) == ROWS

    @pytest.mark.parametrize("name", ["a.jsonl", "array.json", "a.csv", "a.tsv"])
    def test_a_byte_order_mark_is_no_content(self, tmp_path: Path, name: str) -> None:
        """Windows programs write U+FEFF at the beginning of UTF-8 files."""
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + CONTENTS[name])
        assert fields_of(tmp_path / name) == ROWS

    def test_endings_are_read_in_any_case(self, tmp_path: Path) -> None:
        """`.JSONL` is `.jsonl`."""
        (tmp_path / "A.JSONL").write_bytes(jsonl(ROWS))
        assert fields_of(tmp_path / "A.JSONL") == ROWS

    @pytest.mark.parametrize(
        "above", [b"\n", b" \r\n\n", b",\n", b";;\n"], ids=["blank", "several", "commas", "semicolons"]
    )
    def test_blank_lines_above_a_header_are_no_header(self, tmp_path: Path, above: bytes) -> None:
        """Programs leave them; lines are still counted from the beginning of the file."""
        (tmp_path / "a.csv").write_bytes(above + delimited(ROWS, ",") + b"a,b,c\n")
        *rows, odd = open_source(str(tmp_path / "a.csv")).rows()
        assert [row.fields for row in rows if isinstance(row, Row)] == ROWS
        assert isinstance(odd, BrokenRow)
        # The header, the rows, of which one has two lines, and the odd line itself.
        assert odd.line == above.count(b"\n") + 6

    def test_joined_gzip_files_are_read_to_the_end(self, tmp_path: Path) -> None:
        """`cat a.gz b.gz` is a gzip file of two members."""
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(jsonl(ROWS[:1])) + gzip.compress(jsonl(ROWS[1:])))
        assert fields_of(tmp_path / "a.jsonl.gz") == ROWS

    def test_one_conversation_in_a_json_file_is_one_row(self, tmp_path: Path) -> None:
        """A list of turns inside an object is no table."""
        row = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
        (tmp_path / "a.json").write_text(json.dumps(row, indent=1))
        assert fields_of(tmp_path / "a.json") == [row]

    @pytest.mark.parametrize(
        "row",
        [
            {"prompt": "a", "response": "b", "annotations": [{"text": "bad", "score": 1}]},
            {"question": "a", "answer": "b", "contexts": [{"title": "c", "text": "d"}], "votes": [{"by": "e"}]},
            {
                "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
                "tools": [{"x": 1}],
            },
            {"chosen": "a", "rejected": None, "raters": [{"id": 1}]},
        ],
        ids=["annotations", "passages", "tools", "pair"],
    )
    def test_one_conversation_in_a_json_file_is_the_row_whatever_lists_lie_beside_it(
        self, tmp_path: Path, row: dict[str, object]
    ) -> None:
        """They are no tables, though each is a list of objects."""
        (tmp_path / "a.json").write_text(json.dumps(row, indent=1))
        assert fields_of(tmp_path / "a.json") == [row]

    @pytest.mark.parametrize(
        "said", [{}, {"messages": [], "errors": []}, {"response": None}], ids=["nothing", "empty", "null"]
    )
    def test_a_table_in_an_object_that_says_nothing_itself_is_read(
        self, tmp_path: Path, said: dict[str, object]
    ) -> None:
        """Services wrap their rows so."""
        (tmp_path / "a.json").write_text(json.dumps({**said, "result": ROWS}))
        assert fields_of(tmp_path / "a.json") == ROWS

    @pytest.mark.parametrize("keys", [("role", "content"), ("from", "value")], ids="-".join)
    def test_one_chat_as_a_whole_json_file_is_one_row(self, tmp_path: Path, keys: tuple[str, str]) -> None:
        """A list of messages is a conversation, not a table of bare replies; a call may have no content."""
        said = [("user", "a"), ("assistant", "b")]
        chat: list[dict[str, object]] = [dict(zip(keys, one, strict=True)) for one in said]
        chat.append({keys[0]: "assistant", "tool_calls": []})
        (tmp_path / "a.json").write_text(json.dumps(chat, indent=1))
        assert fields_of(tmp_path / "a.json") == [{"messages": chat}]

    @pytest.mark.parametrize(
        "more",
        [{"conversation_id": 1}, {"role": "nurse"}, {"role": ["user"]}],
        ids=["several conversations", "another role", "no name"],
    )
    def test_a_table_with_a_role_column_stays_a_table(self, tmp_path: Path, more: dict[str, object]) -> None:
        """Only messages of known roles that belong to nothing else are one conversation."""
        rows = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", **more}]
        (tmp_path / "a.json").write_text(json.dumps(rows))
        assert fields_of(tmp_path / "a.json") == rows

    def test_a_list_under_a_private_key_is_no_table(self, tmp_path: Path) -> None:
        """`datasets` writes the names of its files so."""
        state = {"_data_files": [{"filename": "data.arrow"}], "_split": None}
        (tmp_path / "state.json").write_text(json.dumps(state))
        assert fields_of(tmp_path / "state.json") == [state]

    def test_many_blank_lines_in_front_are_looked_at_a_few_times_each(self) -> None:
        """Three looks at each; counting the filled lines anew at every line took half a million for these thousand."""
        n_looks = 0

        class Blank(bytes):
            def strip(self, *of: Any) -> bytes:
                nonlocal n_looks
                n_looks += 1
                return super().strip(*of)

        stream: Any = [*(Blank(b"\n") for _ in range(1_000)), *jsonl(ROWS).splitlines(keepends=True)]
        assert [record.value for record in json_document(Opened("a.json", stream, lambda: 0.0))] == ROWS
        assert 1_000 <= n_looks <= 3_000

    def test_a_text_among_the_objects_of_an_array_is_a_broken_row(self, tmp_path: Path) -> None:
        """Judged as a reply it would count as one."""
        (tmp_path / "a.json").write_text(json.dumps([ROWS[0], "a remark", ROWS[1]]))
        (row,) = broken(tmp_path / "a.json")
        assert (
            str(row.error)
            == f"{tmp_path}/a.json:2: a row is a text among objects; write a JSON object with named fields"
        )

    def test_a_string_is_a_row_with_a_text(self, tmp_path: Path) -> None:
        """A JSON string a line is a reply or role-token text a line."""
        (tmp_path / "a.jsonl").write_bytes(jsonl(["<|user|>a<|assistant|>b", "No."]))
        assert fields_of(tmp_path / "a.jsonl") == [{"text": "<|user|>a<|assistant|>b"}, {"text": "No."}]

    def test_a_lone_surrogate_becomes_the_replacement_character(self, tmp_path: Path) -> None:
        r"""`"\ud800"` is valid JSON that cannot be encoded; a pair is a character and stays."""
        (tmp_path / "a.jsonl").write_bytes(b'{"a\\udfff": ["x\\ud800y", {"b": "\\ud83d\\ude00"}]}\n')
        assert fields_of(tmp_path / "a.jsonl") == [{"a\ufffd": ["x\ufffdy", {"b": "😀"}]}]

    @pytest.mark.parametrize("missing", ["nan", "NaN", "<NA>", "NULL", ""])
    def test_a_missing_cell_is_no_reply(self, tmp_path: Path, missing: str) -> None:
        """So pandas and data bases write it; `None` is what a model may say."""
        (tmp_path / "a.csv").write_text(f"prompt,response\na,{missing}\nb,None\n")
        said = [row.fields["response"] for row in open_source(str(tmp_path / "a.csv")).rows() if isinstance(row, Row)]
        assert said == [missing and None, "None"]

    @pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.json", "a.parquet"])
    def test_a_reply_of_two_megabytes_is_read_whole(self, tmp_path: Path, name: str) -> None:
        """No reader cuts large cells, and the process keeps its own limit on CSV cells."""
        limit = csv.field_size_limit()
        rows = [{"response": "word " * 400_000}]
        writers = {"a.jsonl": jsonl(rows), "a.csv": delimited(rows, ","), "a.json": jsonl(rows)}
        (tmp_path / name).write_bytes(writers.get(name, parquet(rows)))
        assert fields_of(tmp_path / name) == rows
        assert csv.field_size_limit() == limit


class TestPlaces:
    """A source is one file, many, standard input, or the example."""

    def test_a_folder_gives_all_its_files_sorted(self, tmp_path: Path) -> None:
        """Positions run through; hidden, private, empty and foreign files are left out."""
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "b.csv").write_bytes(CONTENTS["a.csv"])
        (tmp_path / "a.jsonl").write_bytes(CONTENTS["a.jsonl"])
        for name in (".hidden.jsonl", "_private.jsonl", "README.md"):
            (tmp_path / name).write_text("no data")
        (tmp_path / "empty.jsonl").touch()
        rows = list(open_source(str(tmp_path)).rows())
        assert [row.position for row in rows] == list(range(6))
        assert [row.where for row in rows if isinstance(row, Row)] == [
            *(f"{tmp_path}/a.jsonl:{line}" for line in (1, 2, 3)),
            # The second row of the table has two lines.
            *(f"{tmp_path}/sub/b.csv:{line}" for line in (2, 3, 5)),
        ]

    def test_an_audit_inside_of_the_folder_is_no_data(self, tmp_path: Path) -> None:
        """Else the second run of `demur audit . --out audit` would read the first one's verdicts."""
        (tmp_path / "a.jsonl").write_bytes(jsonl(ROWS))
        before = open_source(str(tmp_path)).fingerprint()
        shards = tmp_path / "sub" / "audit" / "shards"
        shards.mkdir(parents=True)
        (shards / "part-000000.parquet").write_bytes(parquet(ROWS))
        (shards.parent / "manifest.json").write_text('{"source": {}, "model": {}, "options": {}, "demur": "1"}')
        assert fields_of(tmp_path) == fields_of(tmp_path / "[as]*") == ROWS
        assert open_source(str(tmp_path)).fingerprint() == before

    def test_the_results_of_an_audit_are_no_data_wherever_they_are_met(self, tmp_path: Path) -> None:
        """By a pattern, and in the folder itself, whose other files are read; one that is named is meant."""
        out = tmp_path / "audit"
        (out / "shards").mkdir(parents=True)
        for name in ("composition.json", "tally.json", "spending.json", "shards/part-000000.json"):
            (out / name).write_text('{"text": "No."}')
        for name in ("verdicts.parquet", "shards/part-000000.parquet"):
            (out / name).write_bytes(parquet([{"text": "No."}]))
        (out / "manifest.json").write_text('{"source": {}, "model": {}, "options": {}}')
        with pytest.raises(SourceError, match=r"no file to read in the folder .* but those of an audit; put"):
            open_source(str(out))
        with pytest.raises(SourceError, match=r"no match of .* is data that can be read"):
            open_source(str(out / "**" / "*.parquet"))
        (out / "a.jsonl").write_bytes(jsonl(ROWS))
        assert fields_of(out) == fields_of(tmp_path / "**" / "*.*") == ROWS
        assert fields_of(out / "verdicts.parquet") == [{"text": "No."}]

    def test_the_results_of_an_audit_are_known_by_name(self, tmp_path: Path) -> None:
        """All that it writes and that could be read as data."""
        written = {path.name for path in AuditFolder(tmp_path)._files() if files.is_supported(path)}
        assert written == files._AUDIT_FILES

    @pytest.mark.parametrize("spec", [".", "*"], ids=["folder", "pattern"])
    def test_what_is_left_out_of_a_folder_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, spec: str
    ) -> None:
        """A file that is packed in a way that is not read, or of a folder that is; a picture was never data."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.jsonl").write_bytes(jsonl(ROWS))
        for name in ("b.jsonl.bz2", "c.csv.XZ", "d.md", "e.tar.xz", "f.arrow"):
            (tmp_path / name).write_bytes(b"x")
        assert fields_of(spec) == ROWS
        assert sorted(record.getMessage().partition(":")[0] for record in caplog.records) == [
            "b.jsonl.bz2 is left out",
            "c.csv.XZ is left out",
            "f.arrow is left out",
        ]

    def test_a_folder_that_is_a_link_is_left_out_with_a_warning(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It may lead back to where it lies; as a source of its own it is read."""
        for folder in ("real", "data"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "a.jsonl").write_bytes(jsonl(ROWS))
        (tmp_path / "data" / "link").symlink_to(tmp_path / "real", target_is_directory=True)
        assert fields_of(tmp_path / "data") == ROWS
        assert f"{tmp_path}/data/link is a link to a folder and is left out" in caplog.text
        assert fields_of(tmp_path / "data" / "link") == ROWS

    @pytest.mark.parametrize("spec", ["data", "data/**/*.jsonl", "data/*"])
    def test_a_file_that_links_name_again_is_read_once(
        self, tmp_path: Path, spec: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A hub's cache holds an unchanged file as a link in each snapshot, and patterns follow links to folders."""
        for folder in ("a", "b"):
            (tmp_path / "data" / folder).mkdir(parents=True)
        (tmp_path / "blob").write_bytes(jsonl(ROWS))
        for link in ("a/train.jsonl", "b/train.jsonl"):
            (tmp_path / "data" / link).symlink_to(tmp_path / "blob")
        (tmp_path / "data" / "c").symlink_to(tmp_path / "data" / "a", target_is_directory=True)
        assert fields_of(tmp_path / spec) == ROWS
        first, again = (tmp_path / "data" / folder / "train.jsonl" for folder in "ab")
        assert f"{again} is {first} again, by a link, and is left out" in caplog.text

    @pytest.mark.parametrize("manifest", ['{"source": "x"}', "[]", "{", "\xff"], ids=["other", "list", "cut", "latin"])
    def test_a_manifest_of_another_tool_hides_nothing(self, tmp_path: Path, manifest: str) -> None:
        """Only what we write ourselves is known not to be data."""
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "a.jsonl").write_bytes(jsonl(ROWS))
        (tmp_path / "sub" / "manifest.json").write_bytes(manifest.encode("latin-1"))
        (source,) = {row.file for row in open_source(str(tmp_path)).rows(limit=3) if isinstance(row, Row)}
        assert source.endswith("sub/a.jsonl")

    def test_a_pattern_gives_the_files_that_match(self, tmp_path: Path) -> None:
        """Foreign files among the matches are left out."""
        for name in ("a-1.jsonl", "a-2.jsonl", "b.jsonl", "a.md"):
            (tmp_path / name).write_bytes(jsonl([{"name": name}]))
        assert fields_of(tmp_path / "a*") == [{"name": "a-1.jsonl"}, {"name": "a-2.jsonl"}]

    def test_a_file_whose_name_looks_like_a_pattern_is_a_file(self, tmp_path: Path) -> None:
        """What exists is taken literally."""
        (tmp_path / "a[1].jsonl").write_bytes(jsonl(ROWS))
        assert fields_of(tmp_path / "a[1].jsonl") == ROWS

    @pytest.mark.parametrize("content", [jsonl(ROWS), json.dumps(ROWS, indent=1).encode()], ids=["lines", "array"])
    def test_a_hyphen_is_standard_input(self, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
        """JSON Lines and JSON are told apart; how much is read cannot be known."""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        source = open_source("-")
        rows = list(source.rows())
        assert [row.fields for row in rows if isinstance(row, Row)] == ROWS
        assert source.fraction_read is None
        assert source.fingerprint() is None

    def test_empty_standard_input_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing to read is not an empty result."""
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n")))
        with pytest.raises(SourceError, match="'-' holds no rows"):
            list(open_source("-").rows())

    def test_the_example_is_bundled_without_its_answers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`labels.jsonl` is the answer key of the example, not data."""
        monkeypatch.chdir(tmp_path)
        files = {row.file for row in open_source("example").rows() if isinstance(row, Row)}
        assert "example/prompts.csv" in files
        assert "example/labels.jsonl" not in files

    def test_a_folder_named_example_comes_before_the_bundled_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The user's own data wins."""
        monkeypatch.chdir(tmp_path)
        Path("example").mkdir()
        Path("example/labels.jsonl").write_bytes(jsonl(ROWS))
        assert fields_of("example") == ROWS


class TestBrokenRows:
    """A row that cannot be read takes its position, says where and why, and stops nothing."""

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b'{"a": 1', r"not JSON \(Expecting ',' delimiter at column 8\)"),
            (b"[1, 2]", "a row is list"),
            (b"42", "a row is int"),
            (b'"a remark"', "a row is a text among objects"),
            (b'{"a": "\xff"}', "not UTF-8 .byte 0xff at 7."),
            (b'{"a": "x\x00y"}', r"not JSON \(Invalid control character at column 9\)"),
            (b"[" * 100_000, "cannot be read"),
            (b'{"a": ' + b"9" * 5000 + b"}", "cannot be read"),
        ],
        ids=["cut", "array", "number", "text", "latin-1", "nul", "nested", "long number"],
    )
    def test_a_broken_line_is_one_broken_row(self, tmp_path: Path, line: bytes, message: str) -> None:
        """Blank lines count as lines, but not as rows."""
        (tmp_path / "a.jsonl").write_bytes(jsonl(ROWS[:1]) + b"\n" + line + b"\n" + jsonl(ROWS[1:]))
        rows = list(open_source(str(tmp_path / "a.jsonl")).rows())
        assert [type(row) for row in rows] == [Row, BrokenRow, Row, Row]
        (row,) = broken(tmp_path / "a.jsonl")
        assert row.position == 1
        assert row.error.reason == ("not_utf8" if b"\xff" in line else "unreadable_row")
        assert row.error.where == f"{tmp_path}/a.jsonl:3"
        with pytest.raises(SourceError, match=message):
            raise row.error

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b"a,b,c", "3 cells, 2 in the header"),
            (b"a", "1 cells, 2 in the header"),
            (b"a,\x00", "a NUL byte"),
            (b"a,caf\xe9", "not UTF-8 .0xe9.; save the file as UTF-8, in Excel as CSV UTF-8"),
            (b'a,"b" c', "check the quotes"),
        ],
        ids=["too many", "too few", "nul", "latin-1", "quotes"],
    )
    def test_a_broken_table_row_is_one_broken_row(self, tmp_path: Path, line: bytes, message: str) -> None:
        """The rows before and after it are read."""
        (tmp_path / "a.csv").write_bytes(b"prompt,response\r\na,b\r\n" + line + b"\r\nc,d\r\n")
        rows = list(open_source(str(tmp_path / "a.csv")).rows())
        assert [type(row) for row in rows] == [Row, BrokenRow, Row]
        (row,) = broken(tmp_path / "a.csv")
        assert row.error.where == f"{tmp_path}/a.csv:3"
        with pytest.raises(SourceError, match=message):
            raise row.error

    def test_a_quote_that_is_never_closed_is_said(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """Else it would swallow the rest of the file without a word: how much it took in is said."""
        (tmp_path / "a.csv").write_bytes(b'prompt,response\na,b\nc,"d\ne,f\ng,h\n')
        (row,) = broken(tmp_path / "a.csv")
        assert row.error.where == f"{tmp_path}/a.csv:3"
        assert str(row.error).endswith("one that is open took in the lines up to 5")
        assert "took in further lines, which are not counted as rows: 2 of them" in caplog.text

    def test_a_quote_that_is_never_closed_takes_in_no_more_than_a_cell_may_hold(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Memory stays flat, and the rows after it are read."""
        monkeypatch.setattr(tables, "_LARGEST_CELL", 20)
        (tmp_path / "a.csv").write_bytes(b'prompt,response\nc,"d\n' + b"eeee,ffff\n" * 4)
        first, *rows = open_source(str(tmp_path / "a.csv")).rows()
        assert isinstance(first, BrokenRow)
        # After `d` and its end of line, the first line has 10 characters, and the second makes them more than 20.
        assert str(first.error).endswith("took in the lines up to 4")
        assert [row.fields for row in rows if isinstance(row, Row)] == [{"prompt": "eeee", "response": "ffff"}] * 2

    @pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstd)])
    @pytest.mark.parametrize("share", [0.5, 0.9])
    @pytest.mark.parametrize("write", [jsonl, functools.partial(delimited, delimiter=",")])
    def test_a_packed_file_that_was_cut_off_keeps_the_rows_before(
        self, tmp_path: Path, write: Callable[..., bytes], share: float, ending: str, pack: Callable[[bytes], bytes]
    ) -> None:
        """None is lost but those of the missing part, none is halved, and the place of the cut is said."""
        # Digits that do not pack well, so that what is cut off of the file is cut off of the rows.
        digits = os.urandom(700_000).hex()
        rows = [{"prompt": "Q", "response": f"ä{digits[700 * i : 700 * (i + 1)]}"} for i in range(2000)]
        name = "a.jsonl" if write is jsonl else "a.csv"
        packed = pack(write(rows))
        path = tmp_path / f"{name}.{ending}"
        path.write_bytes(packed[: int(len(packed) * share)])
        *found, cut = open_source(str(path)).rows()
        assert [row.fields for row in found if isinstance(row, Row)] == rows[: len(found)]
        # Zstd packs 128 KiB at a time, which are there whole or not at all.
        assert 2000 * share - 400 < len(found) < 2000 * share + 100
        assert isinstance(cut, BrokenRow)
        assert cut.error.reason == "file_cut_off"
        assert f"{name}.{ending}: " in str(cut.error)
        assert f"ends too early, after row {len(found):,}; what followed is lost" in str(cut.error)

    def test_a_packed_file_without_its_last_bytes_keeps_all_its_rows(self, tmp_path: Path) -> None:
        """They hold the length and a checksum."""
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(jsonl(ROWS))[:-8])
        *found, cut = open_source(str(tmp_path / "a.jsonl.gz")).rows()
        assert [row.fields for row in found if isinstance(row, Row)] == ROWS
        assert isinstance(cut, BrokenRow)

    def test_an_item_of_an_array_that_is_no_object_is_broken(self, tmp_path: Path) -> None:
        """The number of the item stands for the line."""
        (tmp_path / "a.json").write_text(json.dumps([ROWS[0], 7, ROWS[1]]))
        (row,) = broken(tmp_path / "a.json")
        assert (row.position, row.error.where) == (1, f"{tmp_path}/a.json:2")

    def test_a_damaged_text_in_parquet_costs_its_row(self, tmp_path: Path) -> None:
        """Parquet does not check its strings."""
        texts = pa.array([b"a", b"\xff", b"c"], pa.binary()).view(pa.string())
        pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
        rows = list(open_source(str(tmp_path / "a.parquet")).rows())
        assert [type(row) for row in rows] == [Row, BrokenRow, Row]

    def test_a_time_zone_that_python_has_not_costs_nothing(self, tmp_path: Path) -> None:
        """No column of times is a reply."""
        time = pa.timestamp("us", "Nowhere/At_All")
        turns = pa.array([[{"said": "b", "at": 0}]], pa.list_(pa.struct([("said", pa.string()), ("at", time)])))
        pq.write_table(pa.table({"text": ["a"], "at": pa.array([0], time), "turns": turns}), tmp_path / "a.parquet")
        (fields,) = fields_of(tmp_path / "a.parquet")
        at = datetime(1970, 1, 1)  # noqa: DTZ001  # as it is read
        assert fields == {"text": "a", "at": at, "turns": [{"said": "b", "at": at}]}

    @pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
    def test_texts_that_were_written_as_bytes_are_texts(self, tmp_path: Path, kind: pa.DataType) -> None:
        """Older programs do not mark them as UTF-8; pictures stay bytes."""
        columns = {"text": [b"Nein, \xc3\xbcberhaupt nicht.", None], "picture": [b"\xff\xd8\xff", b"\xff\xd8\xff"]}
        table = pa.table({name: pa.array(values, kind) for name, values in columns.items()})
        pq.write_table(table, tmp_path / "a.parquet")
        first, second = fields_of(tmp_path / "a.parquet")
        assert first == {"text": "Nein, überhaupt nicht.", "picture": b"\xff\xd8\xff"}
        assert second["text"] is None

    @pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
    def test_bytes_that_are_no_text_cost_no_other(self, tmp_path: Path, kind: pa.DataType) -> None:
        """Arrow decodes all values of a batch or none; within messages, too."""
        said = [b"No.", b"caf\xe9", None]
        columns = {"text": pa.array(said, kind), "turns": pa.array([[{"said": each}] for each in said])}
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        found = ["No.", b"caf\xe9", None]
        assert fields_of(tmp_path / "a.parquet") == [{"text": each, "turns": [{"said": each}]} for each in found]

    @pytest.mark.parametrize(
        ("kind", "late"), [(pa.timestamp("us"), 2**62), (pa.timestamp("ms"), 2**50), (pa.date32(), 10**7)], ids=str
    )
    def test_a_date_that_python_has_not_costs_its_row(self, tmp_path: Path, kind: pa.DataType, late: int) -> None:
        """Dates in Parquet go beyond the year 9999; the other rows are read."""
        dates = pa.array([0, late, 0], kind)
        pq.write_table(pa.table({"text": ["a", "b", "c"], "at": dates}), tmp_path / "a.parquet")
        rows = list(open_source(str(tmp_path / "a.parquet")).rows())
        assert [type(row) for row in rows] == [Row, BrokenRow, Row]
        (row,) = broken(tmp_path / "a.parquet")
        assert row.error.where == f"{tmp_path}/a.parquet:2"
        assert "write dates of the years 1 to 9999" in str(row.error)


class TestErrors:
    """A source that cannot be read says what was met and what would be right."""

    def test_a_missing_file_names_what_is_near(self, tmp_path: Path) -> None:
        """A slip of the finger is pointed out."""
        (tmp_path / "chats.jsonl").write_bytes(jsonl(ROWS))
        with pytest.raises(SourceError, match=r"did you mean 'chats\.jsonl'"):
            open_source(str(tmp_path / "chat.jsonl"))

    def test_a_missing_file_with_nothing_near_says_what_is_there(self, tmp_path: Path) -> None:
        """The folder's files are named, but not all of them."""
        for number in range(7):
            (tmp_path / f"part-{number}.jsonl").touch()
        with pytest.raises(SourceError, match=r"it holds part-0\.jsonl, .* and 2 more"):
            open_source(str(tmp_path / "zebra"))

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_pipe_is_told_how_to_be_read(self, tmp_path: Path) -> None:
        """As `<(…)` is one: it is there, and can be read only once."""
        os.mkfifo(tmp_path / "rows")
        with pytest.raises(SourceError, match=r"rows' is a pipe or a device, and no file; give - and pipe it in"):
            open_source(str(tmp_path / "rows"))

    def test_a_missing_folder_is_named_with_the_place_seen_from(self) -> None:
        """Relative paths go wrong by the working folder."""
        with pytest.raises(SourceError, match=r"there is no folder 'nowhere' seen from '.+'"):
            open_source("nowhere/a.jsonl")

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.jsonl", b"", r"is empty \(0 bytes\)"),
            ("a.jsonl", b"\n \n", "holds no rows"),
            ("a.json", b"[]", "holds no rows"),
            ("a.csv", b"prompt,response\n", "holds no rows"),
            ("a.parquet", parquet(ROWS)[:0] + parquet([{"a": 1}])[:40], "damaged"),
            ("a.parquet", jsonl(ROWS), "damaged"),
            (
                "a.jsonl.gz",
                gzip.compress(os.urandom(5000).hex().encode())[:2000],
                "the gzip file ends too early, before a row",
            ),
            ("a.csv.gz", gzip.compress(delimited(ROWS, ","))[:1], "the gzip file ends too early, before a row"),
            ("a.json.gz", gzip.compress(json.dumps(ROWS).encode())[:-1], "the gzip file ends too early, before a row"),
            ("a.jsonl", gzip.compress(jsonl(ROWS)), "packed as gzip; unpack it"),
            ("a.json", zstd(jsonl(ROWS)), "packed as zstd; unpack it"),
            ("a.jsonl.gz", jsonl(ROWS), "cannot be read as gzip"),
            ("a.jsonl.zst", zstd(os.urandom(5000).hex().encode())[:2000], "the zstd file ends too early, before a row"),
            ("a.jsonl.zst", jsonl(ROWS), "cannot be read as zstd"),
            ("a.jsonl", b"\x89PNG\r\n\x1a\n\xff\xd8\n" * 200, "none of its first 100 rows can be read"),
            ("a.jsonl", b"just some prose\n", "none of its first 1 rows can be read"),
            ("a.jsonl", jsonl(ROWS).decode().encode("utf-16"), "UTF-16; save it as UTF-8"),
            ("a.json", b'[{"a": 1},\n {"a": }]', r"a\.json:2: not JSON"),
            ("a.json", b"[" * 100_000, "JSON that cannot be read"),
            ("a.json", b'["\xff"]', "not UTF-8 .byte 0xff at 2."),
            ("a.json", b"3", "holds 3; give an array"),
            ("a.json", b'{"train": [{"a": 1}], "test": [{"a": 2}]}', "several lists of objects .train, test."),
            (
                "a.json",
                b'{"text": "a", "votes": [{"by": 1}]}',
                "a text under 'text' and a list of objects under 'votes'",
            ),
            ("a.csv", b"\x00\x01\x02,\x03\n1,2\n", "the header holds a NUL byte"),
            ("a.csv", b"caf\xe9,b\n1,2\n", "the header holds bytes that are not UTF-8"),
            ("a.csv", b'"a"b,c\n', "the header is not a row of cells"),
            ("a.csv", b"a,a\n1,2\n", "names 'a' twice"),
            ("a.parquet", twins(), r"a\.parquet: the header names 'a' twice"),
            ("a.txt", b"No.\n", r"ending '\.txt' is not supported; give \.jsonl"),
            ("a.parquet.gz", gzip.compress(parquet(ROWS)), "not supported"),
            ("a", b"{}\n", "ending '' is not supported"),
        ],
    )
    def test_a_file_without_rows_is_an_error(self, tmp_path: Path, name: str, content: bytes, message: str) -> None:
        """Empty, damaged, garbage and unsupported files are told apart."""
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=message):
            list(open_source(str(tmp_path / name)).rows())

    def test_a_folder_without_data_is_an_error(self, tmp_path: Path) -> None:
        """The supported endings are listed."""
        (tmp_path / "README.md").touch()
        with pytest.raises(SourceError, match=r"no file to read in the folder .* put \.jsonl"):
            open_source(str(tmp_path))

    @pytest.mark.parametrize("above", ["", "sub"], ids=["itself", "its parent"])
    def test_a_folder_of_save_to_disk_is_told_how_to_be_read(self, tmp_path: Path, above: str) -> None:
        """Its Arrow files are read through `datasets`; what lies beside them is no data."""
        saved = tmp_path / above
        saved.mkdir(exist_ok=True)
        for name in ("data-00000-of-00001.arrow", "dataset_info.json", "state.json"):
            (saved / name).write_text("{}")
        with pytest.raises(SourceError, match=f"written by save_to_disk; read it as hf://{saved}$"):
            open_source(str(tmp_path))

    @pytest.mark.parametrize(("pattern", "message"), [("*.xyz", "nothing matches"), ("*", "no match of")])
    def test_a_pattern_without_data_is_an_error(self, tmp_path: Path, pattern: str, message: str) -> None:
        """No match and no match that can be read are told apart."""
        (tmp_path / "README.md").touch()
        with pytest.raises(SourceError, match=message):
            open_source(str(tmp_path / pattern))

    def test_a_file_that_may_not_be_read_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Said at opening, before anything is judged."""
        (tmp_path / "a.jsonl").write_bytes(jsonl(ROWS))
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(SourceError, match="no permission to read"):
            open_source(str(tmp_path / "a.jsonl"))

    def test_a_folder_that_may_not_be_listed_is_an_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A folder that is passed over in silence would be rows that are missing."""

        def refuse(path: Path) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(os, "scandir", refuse)
        with pytest.raises(SourceError, match="no permission to list"):
            open_source(str(tmp_path))

    @pytest.mark.parametrize("spec", ["x" * 5000, "folder/" * 2000], ids=["name", "path"])
    def test_a_name_that_cannot_be_one_is_an_error(self, spec: str) -> None:
        """The system's own words are passed on."""
        with pytest.raises(SourceError, match=r"cannot look at .*too long"):
            open_source(spec)

    def test_a_few_broken_rows_in_one_file_of_many_stop_nothing(self, tmp_path: Path) -> None:
        """A file with a hundred broken rows in front is no data, and one broken row itself."""
        (tmp_path / "a.jsonl").write_bytes(jsonl(ROWS))
        (tmp_path / "b.jsonl").write_bytes(b"prose\n" * 99)
        assert len(broken(tmp_path)) == 99
        (tmp_path / "b.jsonl").write_bytes(b"prose\n" * 100)
        (row,) = broken(tmp_path)
        assert (row.position, row.error.reason) == (len(ROWS), "damaged_file")
        assert str(row.error).startswith(f"{tmp_path}/b.jsonl: none of its first 100 rows can be read; the first: ")

    @pytest.mark.parametrize(
        ("name", "content", "where", "message"),
        [
            ("b.parquet", parquet(ROWS)[:-20], "b.parquet", "damaged, or not what its ending says"),
            (
                "b.csv",
                "text\nNo.\n".encode("utf-16"),
                "b.csv",
                "encoded as UTF-16; save it as UTF-8, in Excel as CSV UTF-8",
            ),
            ("b.json", b"[{]", "b.json:1", "not JSON"),
            ("b.jsonl.gz", gzip.compress(b"{}")[:5], "b.jsonl.gz", "the gzip file ends too early"),
        ],
        ids=["a Parquet file that was cut off", "UTF-16", "no JSON", "a packed file that was cut off"],
    )
    @pytest.mark.parametrize("good", ["a.jsonl", "c.jsonl"], ids=["after", "before"])
    def test_one_damaged_file_is_one_broken_row_among_good_files(
        self, tmp_path: Path, good: str, name: str, content: bytes, where: str, message: str
    ) -> None:
        """Wherever it stands; as the only file it is an error, and so are several files that are all damaged."""
        (tmp_path / name).write_bytes(content)
        (tmp_path / good).write_bytes(jsonl(ROWS))
        rows = list(open_source(str(tmp_path)).rows())
        (row,) = (row for row in rows if isinstance(row, BrokenRow))
        assert [row.position for row in rows] == list(range(len(ROWS) + 1))
        assert (row.error.where, row.error.reason) == (f"{tmp_path}/{where}", "damaged_file")
        assert row.error.message.startswith(message)
        (tmp_path / good).write_bytes(b"prose\n" * 100)
        with pytest.raises(SourceError):
            list(open_source(str(tmp_path)).rows())


class TestProgress:
    """A source knows how far it has come, and what it is known by."""

    @pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.parquet", "a.json"])
    def test_the_fraction_read_grows_from_nothing_to_one(self, tmp_path: Path, name: str) -> None:
        """A progress bar needs a fraction that never falls."""
        rows: list[dict[str, object]] = [{"text": os.urandom(2000).hex()} for _ in range(1000)]
        writers = {"a.csv": delimited(rows, ","), "a.parquet": parquet(rows), "a.json": json.dumps(rows).encode()}
        content = writers.get(name, jsonl(rows))
        (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith(".gz") else content)
        source = open_source(str(tmp_path))
        assert source.fraction_read == 0.0
        fractions = [fraction for _ in source.rows() if (fraction := source.fraction_read) is not None]
        assert fractions == sorted(fractions)
        assert 0.0 < fractions[0] < fractions[len(fractions) // 2] < fractions[-1] <= 1.0
        assert source.fraction_read == 1.0

    def test_a_limit_reads_so_many_rows(self, tmp_path: Path) -> None:
        """Broken rows count; a limit of 0 is no error."""
        (tmp_path / "a.jsonl").write_bytes(b"prose\n" + jsonl(ROWS))
        source = open_source(str(tmp_path / "a.jsonl"))
        assert [type(row) for row in source.rows(limit=2)] == [BrokenRow, Row]
        assert list(source.rows(limit=0)) == []
        assert len(list(source.rows())) == 4

    def test_the_fingerprint_follows_content_and_names(self, tmp_path: Path) -> None:
        """Moving a folder keeps it; changing or renaming a file does not."""
        for folder in ("one", "two"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "a.jsonl").write_bytes(jsonl(ROWS))
        first = open_source(str(tmp_path / "one")).fingerprint()
        assert first == open_source(str(tmp_path / "two")).fingerprint()
        (tmp_path / "two" / "a.jsonl").rename(tmp_path / "two" / "b.jsonl")
        assert first != open_source(str(tmp_path / "two")).fingerprint()
        (tmp_path / "one" / "a.jsonl").write_bytes(jsonl([*ROWS[:-1], {"prompt": "你好", "response": "On."}]))
        assert first != open_source(str(tmp_path / "one")).fingerprint()
