"""Audits: counted by hand, interrupted, resumed, refused."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import demur
from demur.conversation import Conversation, Turn
from demur.data.judged import Turns
from demur.errors import LayoutError, OutputError, RowError, SourceError, TaxonomyError
from demur.labelers.keywords import KeywordLabeler
from demur.stats.conformal import CategorySets
from demur.stats.prevalence import OperatingPoint, corrected_share
from demur.stats.shares import Share
from demur.studies import run
from demur.studies.audit import audit
from demur.studies.findings import open_audit
from demur.studies.inputs import chunks
from demur.studies.tally import Judged, Pairs
from demur.taxonomy import Taxonomy
from demur.verdict import Evidence, Policy, Thresholds, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from demur.studies.findings import Audit
    from demur.studies.progress import Progress

TAXONOMY = Taxonomy.load()
EVIDENCE = ("evidence_start", "evidence_end", "evidence_score")
SETS = ("category_set", "resolution")
RESULTS = ("verdicts.parquet", "composition.json", "tally.json")


class Scripted:
    """Refuse what begins with "No", in part what begins with "Part"; fail at the reply that it is told to fail at."""

    name = "scripted"
    taxonomy = TAXONOMY
    thresholds = Thresholds()

    def __init__(self, fail_at: int | None = None, error: BaseException | None = None, engine: str = "pen") -> None:
        """Take the reply to fail at, the error to fail with, and a name for what it runs on."""
        self.fail_at = fail_at
        self.error = error
        self.engine = engine
        self.labelled = 0

    def describe(self) -> dict[str, Any]:
        """Return what identifies it."""
        return {"name": self.name, "engine": self.engine}

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Yield one verdict for each conversation."""
        for conversation in conversations:
            if self.labelled == self.fail_at and self.error is not None:
                raise self.error
            self.labelled += 1
            yield self._verdict(conversation.reply)

    def _verdict(self, reply: str) -> Verdict:
        kinds = tuple(0.7 if key == "privacy" else 0.02 for key in TAXONOMY.keys)
        if not reply:
            return Verdict.unscored("empty_reply")
        if reply.startswith("No"):
            evidence = Evidence(0, len(reply), 0.8)
            return Verdict("full", 0.9, "privacy", "should_not", kinds, ("skill_level",), evidence=evidence)
        if reply.startswith("Part"):
            return Verdict("partial", 0.6, "skill_level", "cannot", kinds)
        return Verdict("none", 0.1, category_probabilities=kinds)


class Measured(Scripted):
    """Know how often it errs."""

    def operating_point(self, threshold: float) -> OperatingPoint:
        """Return 90 of 100 refusals found, and 95 of 100 others let pass."""
        assert threshold == 0.5
        return OperatingPoint(90, 10, 95, 5)


class Stating(Scripted):
    """State a coverage of sets: one kind where the whole reply is "No!", two groups where it refuses otherwise."""

    def __init__(self, coverage: float = 0.9, least: float = 0.1, **given: Any) -> None:
        """Take what is stated."""
        super().__init__(**given)
        self.category_sets = CategorySets(coverage, 50, least)

    def _verdict(self, reply: str) -> Verdict:
        verdict = super()._verdict(reply)
        if not verdict.is_refusal:
            return verdict
        kinds = ("privacy",) if reply == "No!" else ("privacy", "skill_level")
        return replace(verdict, category_set=kinds, group_set=tuple(TAXONOMY.group_of(kind) for kind in kinds))


class Eager:
    """Look like a DataFrame of polars, which gives columns where it is gone through."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows."""
        return []

    def __iter__(self) -> Iterator[Any]:
        """Go through the columns."""
        return iter([pd.Series(["No."])])


class Lazy:
    """Look like a LazyFrame of polars."""

    def collect(self) -> None:
        """Compute."""

    def collect_schema(self) -> None:
        """Name the columns."""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Write ten rows, one of them broken, one with an empty reply: 4 of 8 scored replies refuse, 1 of them in part."""
    replies = ["No, I can't say.", "Yes.", "No, I can't say.", "", "Fine.", "Part of it.", "Sure.", "No!", "Done."]
    lines = [json.dumps({"prompt": f"Q{number}", "response": reply}) for number, reply in enumerate(replies)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*lines[:4], "{broken", *lines[4:]]) + "\n")
    return path


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a shard after every two replies."""
    monkeypatch.setattr(run, "CHUNK", 2)


def _bytes(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


def test_counts_are_those_counted_by_hand(rows: Path, tmp_path: Path) -> None:
    """10 rows, 8 scored, 3 in full and 1 in part: 4 / 8 = .5; 3 of privacy, 1 of skill level."""
    found = audit(str(rows), labeler=Scripted(), out=tmp_path / "out")
    assert (found.rows, found.composition.scored, found.refusals) == (10, 8, 4)
    assert (found.composition.full, found.composition.partial) == (3, 1)
    assert found.share == 0.5
    assert found.by_category["privacy"].count == 3
    assert found.by_group["cannot"].share == 1 / 8
    assert found.composition.unscored == {"empty_reply": 1, "unreadable_row": 1}
    assert found.highlights.wordings.most_repeated(1)[0].text == "no, i can't say"


def test_verdicts_say_where_their_rows_stand(tmp_path: Path) -> None:
    """In which file of a folder, and in which line, broken rows too; examples say so as well."""
    for name, content in (("a.jsonl", '{"text": "No."}\n\n{oops\n'), ("b.csv", 'text\n"Yes,\nof course."\nNo way.\n')):
        (tmp_path / name).write_text(content)
    found = audit(str(tmp_path), labeler=Scripted(), out=tmp_path / "out")
    frame = found.to_frame()
    places = [f"{Path(file).name}:{line}" for file, line in zip(frame["file"], frame["line"], strict=True)]
    assert places == ["a.jsonl:1", "a.jsonl:3", "b.csv:2", "b.csv:4"]
    shown = {one.where for examples in found.highlights.surest.values() for one in examples}
    assert shown == {f"{tmp_path}/a.jsonl:1", f"{tmp_path}/b.csv:4"}
    in_memory = audit(["No.", {"text": "Yes."}, Conversation.of("Q", "No.")], labeler=Scripted()).to_frame()
    assert list(in_memory["line"]) == [1, 2, 3]
    assert set(in_memory["file"]) == {"conversations in memory"}


def test_verdicts_have_the_promised_columns(rows: Path, tmp_path: Path) -> None:
    """One row for each item of the source in order, the broken one among them."""
    frame = audit(str(rows), labeler=Scripted(), out=tmp_path / "out").to_frame()
    first = ["row_id", "file", "line", "side", "turn", "verdict", "refusal_probability", "category", "group"]
    assert list(frame.columns) == [*first, *TAXONOMY.keys, "unscored_reason", "further", *EVIDENCE, *SETS]
    assert list(frame["row_id"]) == list(range(10))
    assert set(frame["file"]) == {str(rows)}
    assert list(frame["line"]) == list(range(1, 11))
    assert list(frame["verdict"][3:6]) == ["unscored", "unscored", "none"]
    assert list(frame["unscored_reason"][3:5]) == ["empty_reply", "unreadable_row"]
    assert frame["refusal_probability"][3:5].isna().all()
    assert frame["privacy"][0] == pytest.approx(0.7)
    assert list(frame["further"][0]) == ["skill_level"]
    assert tuple(frame.loc[0, list(EVIDENCE)]) == (0, 16, 0.8)
    assert frame.loc[[1, 3, 4, 6], list(EVIDENCE)].isna().all(axis=None)
    assert [list(kinds) for kinds in frame["category_set"]] == [[]] * 10
    assert frame["resolution"].isna().all()


def test_evidence_cuts_a_sentence_out_of_a_reply() -> None:
    """Where other replies have none, too: its offsets stay integers, and so does a line beside rows without one."""
    replies = ["Yes.", "No, I can't.", "Fine."]
    frame = audit(replies, labeler=Scripted()).to_frame()
    assert [str(frame[name].dtype) for name in ("line", "evidence_start", "evidence_end")] == ["Int64"] * 3
    [found] = frame[frame["evidence_start"].notna()].to_dict(orient="records")
    assert replies[found["row_id"]][found["evidence_start"] : found["evidence_end"]] == "No, I can't."


def test_the_composition_file_says_what_the_audit_says(rows: Path, tmp_path: Path) -> None:
    """Shares, intervals, reasons and where the broken row stands."""
    found = audit(str(rows), labeler=Scripted(), out=tmp_path / "out")
    written = json.loads((tmp_path / "out" / "composition.json").read_text())
    assert written["share"] == 0.5
    assert written["interval"] == [round(end, 8) for end in found.interval]
    assert written["categories"]["privacy"]["share_of_refusals"] == 0.75
    assert written["unscored"] == {"empty_reply": 1, "unreadable_row": 1}
    assert written["broken_rows"][0]["where"].endswith("rows.jsonl:5")
    assert written["corrected"]["share"] is None
    assert written["corrected"]["why_not"] == found.why_not_corrected == "the error rates of 'scripted' are not known"
    assert written["source"]["layouts"] == {"prompt_response: prompt=prompt response=response": 1}
    assert sum(written["probabilities"]["counts"]) == 8
    assert not (tmp_path / "out" / "shards").exists()


def test_a_labeler_that_knows_its_errors_gets_a_corrected_share(rows: Path, tmp_path: Path) -> None:
    """(4/8 + .95 - 1) / (.9 + .95 - 1) = .45 / .85 = .5294."""
    found = audit(str(rows), labeler=Measured(), out=tmp_path / "out")
    assert found.corrected == corrected_share(Share(4, 8), OperatingPoint(90, 10, 95, 5))
    assert found.corrected is not None
    assert found.corrected.share == pytest.approx(0.45 / 0.85)
    assert found.why_not_corrected is None
    assert open_audit(tmp_path / "out").corrected == found.corrected


def test_a_kind_that_is_named_like_a_column_is_met_before_the_first_reply(rows: Path, tmp_path: Path) -> None:
    """Judging may cost money."""
    text = (Path(__file__).parents[2] / "taxonomy" / "refusals.yaml").read_text(encoding="utf-8")
    (tmp_path / "other.yaml").write_text(re.sub(r"\bprivacy\b", "verdict", text), encoding="utf-8")
    labeler = Scripted()
    with pytest.raises(TaxonomyError, match="named like columns"):
        audit(str(rows), labeler=labeler, taxonomy=Taxonomy.load(tmp_path / "other.yaml"), out=tmp_path / "out")
    assert labeler.labelled == 0


@pytest.mark.usefixtures("small_chunks")
def test_sets_are_written_counted_and_stated(rows: Path, tmp_path: Path) -> None:
    """Four refusals in several shards: one resolves to a kind, three are undetermined; other replies have none."""
    found = audit(str(rows), labeler=Stating(), out=tmp_path / "out")
    frame = found.to_frame()
    by_row = {row: (list(frame["category_set"][row]), frame["resolution"][row]) for row in (0, 8)}
    assert by_row == {0: (["privacy", "skill_level"], "undetermined"), 8: (["privacy"], "kind")}
    assert frame["resolution"].notna().sum() == 4
    assert found.composition.resolution_counts == {"kind": 1, "group": 0, "undetermined": 3}
    assert found.category_sets == CategorySets(0.9, 50, 0.1)
    assert open_audit(tmp_path / "out").category_sets == found.category_sets
    written = json.loads((tmp_path / "out" / "composition.json").read_text())
    assert written["category_sets"] == {"coverage": 0.9, "n": 50, "least": 0.1}
    assert (written["resolutions"]["kind"]["count"], written["resolutions"]["kind"]["share_of_sets"]) == (1, 0.25)


def test_a_labeler_without_sets_states_none(rows: Path, tmp_path: Path) -> None:
    """Null, not a coverage of 0; no share of nothing."""
    assert audit(str(rows), labeler=Scripted(), out=tmp_path / "out").category_sets is None
    written = json.loads((tmp_path / "out" / "composition.json").read_text())
    assert written["category_sets"] is None
    empty = {"count": 0, "share_of_sets": None, "interval_of_sets": [None, None]}
    assert written["resolutions"] == dict.fromkeys(("kind", "group", "undetermined"), empty)


@pytest.mark.usefixtures("small_chunks")
def test_another_coverage_refuses_to_resume(rows: Path, tmp_path: Path) -> None:
    """As another threshold does; so do the same coverage from other scores, and none at all."""
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Stating(fail_at=5, error=RuntimeError()), out=tmp_path / "out")
    with pytest.raises(OutputError, match=r"category_sets\.coverage was 0\.9 and is 0\.8"):
        audit(str(rows), labeler=Stating(0.8), out=tmp_path / "out", resume=True)
    with pytest.raises(OutputError, match=r"category_sets\.least was 0\.1 and is 0\.2"):
        audit(str(rows), labeler=Stating(least=0.2), out=tmp_path / "out", resume=True)
    with pytest.raises(OutputError, match=r"category_sets was .* and is null"):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", resume=True)
    assert audit(str(rows), labeler=Stating(), out=tmp_path / "out", resume=True).rows == 10


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("error", [RuntimeError("engine lost"), KeyboardInterrupt()], ids=["failure", "ctrl-c"])
def test_a_resumed_audit_ends_with_the_same_bytes(rows: Path, tmp_path: Path, error: BaseException) -> None:
    """Interrupted at the sixth reply, which is in the fourth chunk: three chunks are kept, the rest is labelled."""
    audit(str(rows), labeler=Scripted(), out=tmp_path / "whole")
    with pytest.raises(type(error)) as caught:
        audit(str(rows), labeler=Scripted(5, error), out=tmp_path / "cut")
    assert "--resume" in caught.value.__notes__[0]
    assert not (tmp_path / "cut" / "composition.json").exists()
    second = Scripted()
    seen: list[Progress] = []
    audit(str(rows), labeler=second, out=tmp_path / "cut", resume=True, progress=seen.append)
    assert _bytes(tmp_path / "cut") == _bytes(tmp_path / "whole")
    assert second.labelled == 4
    assert (seen[0].resumed, seen[-1].replies, seen[-1].refusals, seen[-1].fraction) == (6, 10, 4, 1.0)


@pytest.mark.usefixtures("small_chunks")
def test_a_shard_without_its_tally_is_labelled_again(rows: Path, tmp_path: Path) -> None:
    """A run killed between the two files has not finished that chunk."""
    audit(str(rows), labeler=Scripted(), out=tmp_path / "whole")
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Scripted(5, RuntimeError()), out=tmp_path / "cut")
    (tmp_path / "cut" / "shards" / "part-000001.json").unlink()
    second = Scripted()
    audit(str(rows), labeler=second, out=tmp_path / "cut", resume=True)
    assert second.labelled == 7
    assert _bytes(tmp_path / "cut") == _bytes(tmp_path / "whole")


@pytest.mark.usefixtures("small_chunks")
def test_chunks_of_any_size_give_the_same_verdicts(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How often a shard is written is no part of the finding."""
    small = audit(str(rows), labeler=Scripted(), out=tmp_path / "small")
    monkeypatch.setattr(run, "CHUNK", 1_000)
    large = audit(str(rows), labeler=Scripted(), out=tmp_path / "large")
    assert small.tally == large.tally
    assert small.to_frame().equals(large.to_frame())


@pytest.mark.usefixtures("small_chunks")
def test_a_change_refuses_to_resume_and_is_named(rows: Path, tmp_path: Path) -> None:
    """Another engine or limit, or other rows, would mix two audits in one."""
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Scripted(5, RuntimeError()), out=tmp_path / "out")
    with pytest.raises(OutputError, match=r'model\.engine was "pen" and is "brush"'):
        audit(str(rows), labeler=Scripted(engine="brush"), out=tmp_path / "out", resume=True)
    with pytest.raises(OutputError, match=r"options\.limit was null and is 3"):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", limit=3, resume=True)
    rows.write_text(rows.read_text().replace("Done.", "Gone."))
    with pytest.raises(OutputError, match=r"source\.fingerprint was"):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", resume=True)


def test_a_folder_that_holds_an_audit_is_left_alone(rows: Path, tmp_path: Path) -> None:
    """Without a flag nothing is overwritten; with `overwrite`, all of it is."""
    audit(str(rows), labeler=Scripted(), out=tmp_path / "out")
    before = _bytes(tmp_path / "out")
    with pytest.raises(
        OutputError, match=r"already holds comp.*--resume \(resume=T.*--overwrite \(overwrite=T.*--out \(out="
    ):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", limit=3)
    assert _bytes(tmp_path / "out") == before
    assert audit(str(rows), labeler=Scripted(), out=tmp_path / "out", limit=3, overwrite=True).rows == 3


def test_resuming_a_finished_audit_labels_nothing(rows: Path, tmp_path: Path) -> None:
    """It is opened as it is."""
    first = audit(str(rows), labeler=Scripted(), out=tmp_path / "out")
    idle = Scripted()
    assert audit(str(rows), labeler=idle, out=tmp_path / "out", resume=True) == first
    assert idle.labelled == 0


def test_resuming_where_nothing_began_begins(rows: Path, tmp_path: Path) -> None:
    """One command line serves the first try and every later one."""
    assert audit(str(rows), labeler=Scripted(), out=tmp_path / "out", resume=True).rows == 10


def test_an_audit_that_failed_before_its_first_chunk_is_not_in_the_way(tmp_path: Path) -> None:
    """Nothing is lost by beginning anew, even with other options."""
    with pytest.raises(RuntimeError):
        audit(["Yes."], labeler=Scripted(0, RuntimeError()), out=tmp_path / "out")
    assert audit(["Yes.", "No."], labeler=Scripted(), out=tmp_path / "out").rows == 2


def test_a_manifest_of_something_else_is_left_alone(rows: Path, tmp_path: Path) -> None:
    """A folder of weights has a manifest.json too."""
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(OutputError, match=r"already holds manifest\.json, which no audit wrote; move it away, or give"):
        audit(str(rows), labeler=Scripted(), out=tmp_path)
    with pytest.raises(OutputError, match="cannot be resumed"):
        audit(str(rows), labeler=Scripted(), out=tmp_path, resume=True)


def test_a_file_in_place_of_the_folder_is_refused(rows: Path, tmp_path: Path) -> None:
    """The message names the place and the way out."""
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(OutputError, match=r"cannot be used as a folder.*--out"):
        audit(str(rows), labeler=Scripted(), out=taken)
    assert taken.read_text() == "mine"


def test_strict_raises_on_the_first_broken_row(rows: Path, tmp_path: Path) -> None:
    """Line 5 is not JSON."""
    with pytest.raises(RowError, match=r"rows\.jsonl:5"):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", strict=True)


def test_an_empty_source_is_an_error(tmp_path: Path) -> None:
    """A file without rows is more likely a mistake than a finding."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(SourceError, match="give a source"):
        audit(str(empty), labeler=Scripted(), out=tmp_path / "out")


def test_no_conversations_give_nan_and_an_empty_frame() -> None:
    """Nothing out of nothing is no share; the columns are there all the same."""
    found = audit([], labeler=Scripted())
    assert math.isnan(found.share)
    assert found.to_frame().empty
    assert "privacy" in found.to_frame().columns


def test_without_a_folder_the_results_go_with_the_audit() -> None:
    """The temporary folder lives as long as what points to it, and no longer."""
    found = audit(["<|user|>Where?<|assistant|>No idea, I can't say.", "Yes."], labeler=Scripted())
    folder = found.path
    assert found.refusals == 1
    assert list(found.to_frame()["row_id"]) == [0, 1]
    copy = replace(found)
    del found
    assert not folder.exists()
    assert copy.refusals == 1
    with pytest.raises(OutputError, match=r"no verdicts at .*verdicts\.parquet'.*keep them with out="):
        copy.to_frame()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_leaves_the_temporary_folder_to_the_process_that_made_it() -> None:
    """A child ends with a copy of the audit, as workers of a data loader do."""
    code = (
        "import demur, os, sys; found = demur.audit(['No.'], labeler='keywords'); child = os.fork(); "
        "child or sys.exit(0); os.waitpid(child, 0); print(len(found.to_frame()))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout == "1\n"


def test_a_failed_audit_leaves_no_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What nobody can reach is removed, and nobody is told to resume it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(RuntimeError) as caught:
        audit(["Yes."], labeler=Scripted(0, RuntimeError("engine lost")))
    assert not hasattr(caught.value, "__notes__")
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_name_is_no_utf8_is_audited(rows: Path, tmp_path: Path) -> None:
    """Given alone and in a folder; its odd byte stands escaped in every result."""
    name = os.fsdecode(b"bad\xff.jsonl")
    try:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / name).write_bytes(rows.read_bytes())
    except OSError:
        pytest.skip("this file system takes no such name")
    for source in (tmp_path / "in" / name, tmp_path / "in"):
        found = audit(source, labeler=Scripted(), out=tmp_path / f"out-{source.name[:3]}")
        assert found.rows == 10
        assert found.to_frame()["file"].unique().tolist() == [f"{tmp_path}/in/bad\\udcff.jsonl"]
        audit(source, labeler=Scripted(), out=tmp_path / f"out-{source.name[:3]}", resume=True)


def test_what_can_be_read_only_once_cannot_be_resumed(tmp_path: Path) -> None:
    """Nothing says that a second generator gives the same."""
    audit((one for one in ["Yes."]), labeler=Scripted(), out=tmp_path / "out")
    with pytest.raises(OutputError, match="can be read only once"):
        audit((one for one in ["Yes."]), labeler=Scripted(), out=tmp_path / "out", resume=True)


class Listing:
    """Rows that can be gone through again, and are no list: what `datasets.Dataset` is."""

    def __init__(self, rows: list[Any]) -> None:
        """Take the rows."""
        self.rows = rows

    def __len__(self) -> int:
        """Count them."""
        return len(self.rows)

    def __getitem__(self, place: int) -> object:
        """Return one."""
        return self.rows[place]

    def __iter__(self) -> Iterator[Any]:
        """Go through them."""
        return iter(self.rows)

    def __contains__(self, row: object) -> bool:
        """Tell whether there is such a row."""
        return row in self.rows


@pytest.mark.parametrize("kind", [Listing, pd.Series, np.array])
def test_what_can_be_gone_through_again_is_resumed(kind: Callable[[list[str]], Any], tmp_path: Path) -> None:
    """A change in it is met, as in a list."""
    audit(kind(["Yes.", "No."]), labeler=Scripted(), out=tmp_path / "out")
    assert audit(kind(["Yes.", "No."]), labeler=Scripted(), out=tmp_path / "out", resume=True).rows == 2
    with pytest.raises(OutputError, match=r"source\.fingerprint was"):
        audit(kind(["Yes.", "Yes."]), labeler=Scripted(), out=tmp_path / "out", resume=True)


def test_rows_are_known_again_by_what_they_hold(tmp_path: Path) -> None:
    """Neither by where an object lies in memory, nor by the beginning and the end of a long array."""

    def row(*, middle: str = "M") -> dict[str, Any]:
        turns = [{"role": ("user", "assistant")[i % 2], "content": middle if i == 600 else "No."} for i in range(1200)]
        return {"messages": np.array(turns, dtype=object), "image": object()}

    audit([row()], labeler=Scripted(), out=tmp_path / "out")
    assert audit([row()], labeler=Scripted(), out=tmp_path / "out", resume=True).rows == 1
    with pytest.raises(OutputError, match=r"source\.fingerprint was"):
        audit([row(middle="W")], labeler=Scripted(), out=tmp_path / "out", resume=True)


def _pair(row_id: int, chosen: str, rejected: str) -> list[Conversation]:
    return [
        Conversation((Turn("user", "Q"), Turn("assistant", reply)), row_id=row_id, side=side)
        for side, reply in (("chosen", chosen), ("rejected", rejected))
    ]


def test_pairs_are_counted_by_which_reply_refuses() -> None:
    """Four pairs, one of each sort, and one with an empty reply that counts in none."""
    talks = [*_pair(0, "No.", "Yes."), *_pair(1, "Yes.", "No."), *_pair(2, "No.", "No."), *_pair(3, "Yes.", "Yes.")]
    found = audit([*talks, *_pair(4, "No.", "")], labeler=Scripted())
    pairs = found.tally.pairs
    assert (pairs.chosen_only, pairs.rejected_only, pairs.both, pairs.neither) == (1, 1, 1, 1)
    assert found.tally.sides["chosen"].refusals == 3
    assert found.tally.sides["rejected"].scored == 4


def test_pairs_of_one_request_widen_their_intervals() -> None:
    """Twenty requests with three pairs each, and of the first five each pair prefers a refusal: 5 of 20, nearly."""
    talks = [
        replace(talk, turns=(Turn("user", f"Q{row // 3}"), talk.turns[-1]))
        for row in range(60)
        for talk in _pair(row, "No." if row < 15 else "Yes.", "Yes.")
    ]
    found = audit(talks, labeler=Scripted())
    shares = found.tally.pairs.shares
    assert (shares["chosen_only"].count, shares["chosen_only"].total) == (15, 60)
    # With Student's t of 19 degrees and of 59.
    assert shares["chosen_only"].effect == pytest.approx(3 * 20 / 19 * 59 / 60 * (2.09302 / 2.00100) ** 2, rel=1e-5)
    assert shares["both"].interval == Share(0, 20).interval
    assert open_audit(found.path).tally.pairs == found.tally.pairs


@pytest.mark.usefixtures("small_chunks")
def test_an_audit_of_pairs_is_resumed_to_the_same_bytes(tmp_path: Path) -> None:
    """The requests of its pairs add up over what two runs judged."""
    talks = [talk for row in range(8) for talk in _pair(row, "No." if row % 3 else "Yes.", "Yes.")]
    audit(talks, labeler=Scripted(), out=tmp_path / "whole", dedup=False)
    with pytest.raises(RuntimeError):
        audit(talks, labeler=Scripted(9, RuntimeError()), out=tmp_path / "parts", dedup=False)
    audit(talks, labeler=Scripted(), out=tmp_path / "parts", dedup=False, resume=True)
    for name in RESULTS:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_pairs_of_one_request_add_up_over_chunks() -> None:
    """Whichever chunk a pair is in, and so whichever run judged it."""
    judged = [
        Judged(talk, Verdict("full" if row % 4 == 0 else "none"))
        for row in range(24)
        for talk in _pair(row, "No.", "Yes.")
    ]
    whole = Pairs.of(judged)
    assert (whole.both, whole.neither) == (6, 18)
    parts = sum((Pairs.of(judged[start : start + 10]) for start in range(0, len(judged), 10)), Pairs())
    assert parts == whole
    assert Pairs.from_json(json.loads(json.dumps(asdict(whole)))) == whole


def test_only_the_last_replies_of_a_row_are_its_pair() -> None:
    """What both sides say before is no preference, and the sides may be of different lengths."""
    row = {
        "chosen": [
            {"role": "user", "content": "Q"},
            {"role": "assistant", "content": "No."},
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "Yes."},
        ],
        "rejected": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "No."}],
    }
    for turns in get_args(Turns):
        found = audit([row], labeler=Scripted(), turns=turns).tally
        assert (found.pairs.rejected_only, found.pairs.total) == (1, 1)
    assert found.sides["chosen"].refusals == 1


def test_an_unscored_last_reply_leaves_its_row_without_a_pair() -> None:
    """No earlier reply takes its place."""
    said = "\n\nHuman: Q\n\nAssistant: No."
    row = {"chosen": f"{said}\n\nHuman: Q\n\nAssistant:", "rejected": said}
    found = audit([row], labeler=Scripted(), turns="all")
    assert (found.composition.scored, found.tally.pairs.total) == (2, 0)


def test_sides_of_several_pairs_are_not_all_taken_for_row_0() -> None:
    """Which chosen reply belongs to which rejected one is not guessed."""
    with pytest.raises(ValueError, match=r"memory:3: a further 'chosen' reply of row 0; give both sides .* row_id"):
        audit([*_pair(0, "No.", "Yes."), *_pair(0, "Yes.", "Yes.")], labeler=Scripted())
    assert audit(_pair(0, "No.", "Yes."), labeler=Scripted()).tally.pairs.total == 1


def test_pairs_of_two_sources_that_share_numbers_are_all_counted() -> None:
    """Each source numbers its rows; the second pair of a number is not taken for turns of the first."""
    pairs = (("No.", "Yes."), ("Yes.", "No."), ("Yes.", "Yes."), ("Yes.", "Yes."))
    talks = [talk for place, pair in enumerate(pairs) for talk in _pair(1 + place % 2, *pair)]
    found = audit(talks, labeler=Scripted()).tally.pairs
    assert (found.chosen_only, found.rejected_only, found.both, found.neither) == (1, 1, 0, 2)


def test_bare_replies_with_a_turn_stand_alone() -> None:
    """None of them says which row it is of; the first turns of a row that does stay together."""
    bare = [Conversation((Turn("assistant", "No." if place % 2 else "Yes."),), turn=1) for place in range(6)]
    found = audit(bare, labeler=Scripted())
    assert found.to_frame()["row_id"].tolist() == [0, 1, 2, 3, 4, 5]
    assert (found.composition.n_requests, found.composition.refused.effect) == (6, 1.0)
    turns = [replace(bare[0], turn=turn, row_id=row) for row in range(2) for turn in range(2)]
    assert audit(turns, labeler=Scripted()).to_frame()["row_id"].tolist() == [0, 0, 1, 1]


def test_a_pair_is_never_cut_by_a_chunk() -> None:
    """Chunks of three hold two pairs, or one and the last."""
    items = [talk for row_id in range(3) for talk in _pair(row_id, "No.", "Yes.")]
    assert [[item.row_id for item in chunk if isinstance(item, Conversation)] for chunk in chunks(items, 3)] == [
        [0, 0, 1, 1],
        [2, 2],
    ]


def test_a_labeler_that_gives_too_few_verdicts_is_named() -> None:
    """Verdicts must not slip onto the wrong rows."""

    class Lazy(Scripted):
        def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
            yield from list(super().label(conversations))[:-1]

    with pytest.raises(ValueError, match="labeler 'scripted' gave too few verdicts"):
        audit(["Yes.", "No."], labeler=Lazy())

    class Eager(Scripted):
        def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
            for verdict in super().label(conversations):
                yield from (verdict, verdict)

    for dedup in (True, False):
        with pytest.raises(ValueError, match="labeler 'scripted' gave too many verdicts"):
            audit(["Yes.", "No."], labeler=Eager(), dedup=dedup)


def test_a_labeler_that_says_no_name_of_its_own_is_called_by_it(tmp_path: Path) -> None:
    """What it describes is what its verdicts follow from, and may be anything."""

    class Terse(Scripted):
        def describe(self) -> dict[str, Any]:
            return {"model": "m"}

    found = audit(["Yes."], labeler=Terse(), out=tmp_path / "out")
    assert found.labeler == "scripted"
    assert found.manifest["model"] == {"name": "scripted", "model": "m"}


def test_a_limit_of_numpy_is_a_limit(tmp_path: Path) -> None:
    """It is written as Python's, which a resumed run gives."""
    rows = ["Yes.", "No.", "No."]
    found = audit(rows, labeler=Scripted(), out=tmp_path / "out", limit=int(np.int64(2)))
    again = audit(rows, labeler=Scripted(), out=tmp_path / "out", limit=np.int64(2), resume=True)  # type: ignore[arg-type]
    assert (found.rows, again.rows) == (2, 2)
    for limit in (0, True, 2.0, "2"):
        with pytest.raises(ValueError, match=f"limit {limit!r}; give a number of rows from 1 on"):
            audit(rows, labeler=Scripted(), limit=limit)  # type: ignore[arg-type]


def test_an_audit_finds_its_verdicts_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder was named from where one stood then."""
    monkeypatch.chdir(tmp_path)
    found = audit(["Yes."], labeler=Scripted(), out="out")
    monkeypatch.chdir("/")
    assert len(found.to_frame()) == 1


def test_the_home_folder_may_be_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it may be in the name of a source; of a user that is none, it is the name of a folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert audit(["No."], labeler=Scripted(), out="~/out").path == tmp_path / "out"
    assert open_audit("~/out").rows == 1
    assert audit(["No."], labeler=Scripted(), out=Path("~no-such-user/out")).path == tmp_path / "~no-such-user" / "out"


def test_a_folder_is_opened_in_the_taxonomy_of_a_file(tmp_path: Path) -> None:
    """As weights are."""
    audit(["Yes."], labeler=Scripted(), out=tmp_path / "out")
    file = Path(__file__).parents[2] / "taxonomy" / "refusals.yaml"
    assert open_audit(tmp_path / "out", file).rows == open_audit(tmp_path / "out", str(file)).rows == 1


def test_an_unfinished_audit_cannot_be_opened(tmp_path: Path) -> None:
    """Half a composition is no composition."""
    with pytest.raises(RuntimeError):
        audit(["Yes."], labeler=Scripted(0, RuntimeError()), out=tmp_path / "out")
    with pytest.raises(OutputError, match="not finished"):
        open_audit(tmp_path / "out")
    with pytest.raises(OutputError, match="cannot be read"):
        open_audit(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("manifest.json", "{}", "manifest.json: is damaged (no category_sets, model, options, policy, source)"),
        ("composition.json", "{}", "composition.json: is damaged (no 'corrected')"),
        ("composition.json", '{"corrected": null}', "composition.json: is damaged"),
    ],
)
def test_a_damaged_audit_is_said_to_be(name: str, content: str, why: str, tmp_path: Path) -> None:
    """What is missing is named, and what helps."""
    audit(["Yes."], labeler=KeywordLabeler(), out=tmp_path)
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(OutputError, match="overwrite") as raised:
        open_audit(tmp_path)
    assert why in str(raised.value)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_damaged_shard_is_judged_again(kind: str, rows: Path, tmp_path: Path) -> None:
    """A power cut may leave half of what was written last; to throw all away for it would be to lose hours."""
    audit(str(rows), labeler=Scripted(), out=tmp_path / "whole")
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Scripted(5, RuntimeError("engine lost")), out=tmp_path / "out")
    (shard, *_) = sorted((tmp_path / "out" / "shards").glob(f"*.{kind}"))
    shard.write_bytes(shard.read_bytes()[:100])
    audit(str(rows), labeler=Scripted(), out=tmp_path / "out", resume=True)
    for name in RESULTS:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("content", [None, b"PAR1"])
def test_a_finished_audit_whose_verdicts_are_lost_is_not_resumed(
    content: bytes | None, rows: Path, tmp_path: Path
) -> None:
    """Its numbers alone would be printed as if all were there."""
    audit(str(rows), labeler=Scripted(), out=tmp_path / "out")
    verdicts = tmp_path / "out" / "verdicts.parquet"
    verdicts.unlink() if content is None else verdicts.write_bytes(content)
    with pytest.raises(OutputError, match=r"the verdicts of 10 rows are missing or damaged; .* --overwrite"):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", resume=True)


def test_a_source_that_grows_while_it_is_audited_ends_in_an_error(rows: Path, tmp_path: Path) -> None:
    """The manifest would speak of a file that had fewer rows than verdicts."""

    class Growing(Scripted):
        def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
            with rows.open("a", encoding="utf-8") as stream:
                stream.write('{"prompt": "Q", "response": "Yes."}\n')
            return super().label(conversations)

    with pytest.raises(SourceError, match=r"rows\.jsonl changed while it was audited, .* --overwrite"):
        audit(str(rows), labeler=Growing(), out=tmp_path / "out")
    assert not (tmp_path / "out" / "composition.json").exists()


def test_reports_are_written_while_the_folder_is_held(rows: Path, tmp_path: Path) -> None:
    """Else another audit's numbers may come to lie beside them."""

    def report(found: Audit) -> None:
        with pytest.raises(OutputError, match="written by another"):
            audit(["No."], labeler=Scripted(), out=found.path, overwrite=True)

    audit(str(rows), labeler=Scripted(), out=tmp_path / "out", report=report)


def test_an_audit_shows_its_finding(rows: Path) -> None:
    """One line for a prompt, one row a kind for a notebook."""
    found = audit(str(rows), labeler=Scripted())
    assert "4 of 8 scored replies refuse, 50% [22%, 78%]" in repr(found)
    table = found.table()
    assert table.loc["privacy", "count"] == 3
    assert table.loc["privacy", "share_of_refusals"] == 0.75
    assert list(table.index) == [*TAXONOMY.keys, "unnamed"]


def test_overwriting_leaves_alone_what_no_audit_wrote(rows: Path, tmp_path: Path) -> None:
    """A folder of weights with shards of its own and a manifest of its own keeps every file."""
    out = tmp_path / "out"
    (out / "shards").mkdir(parents=True)
    (out / "shards" / "part-000000.parquet").write_text("mine")
    (out / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(OutputError, match=r"holds shards, manifest\.json, which no audit wrote.*--out"):
        audit(str(rows), labeler=Scripted(), out=out, overwrite=True)
    assert (out / "shards" / "part-000000.parquet").read_text() == "mine"
    assert (out / "manifest.json").exists()


def test_a_result_without_a_manifest_is_not_taken_for_an_audits(rows: Path, tmp_path: Path) -> None:
    """Somebody else's report.html, or a broken manifest, is no audit to replace."""
    (tmp_path / "report.html").write_text("mine")
    # What is advised has to work: with --overwrite, it is refused all the same.
    with pytest.raises(OutputError, match=r"already holds report\.html, which no audit wrote; move it away") as caught:
        audit(str(rows), labeler=Scripted(), out=tmp_path)
    assert "overwrite" not in str(caught.value)
    with pytest.raises(OutputError, match=r"holds report\.html, which no audit wrote"):
        audit(str(rows), labeler=Scripted(), out=tmp_path, overwrite=True)
    (tmp_path / "manifest.json").write_text("{broken")
    with pytest.raises(OutputError, match="which no audit wrote"):
        audit(str(rows), labeler=Scripted(), out=tmp_path, overwrite=True)
    assert (tmp_path / "report.html").read_text() == "mine"


@pytest.mark.usefixtures("small_chunks")
def test_a_stranger_among_the_shards_is_neither_overwritten_nor_cleared_at_the_end(rows: Path, tmp_path: Path) -> None:
    """Whoever put it there is told to move it; a resumed run leaves it, and removes its own shards only."""
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Scripted(5, RuntimeError()), out=out)
    (out / "shards" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds shards/notes\.txt"):
        audit(str(rows), labeler=Scripted(), out=out, overwrite=True)
    audit(str(rows), labeler=Scripted(), out=out, resume=True)
    assert [path.name for path in (out / "shards").iterdir()] == ["notes.txt"]


def test_linked_shards_are_not_followed(rows: Path, tmp_path: Path) -> None:
    """What a link points to lies outside of the folder."""
    out = tmp_path / "out"
    audit(str(rows), labeler=Scripted(), out=out)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "part-000000.json").write_text("mine")
    (out / "shards").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="holds shards, which no audit wrote"):
        audit(str(rows), labeler=Scripted(), out=out, overwrite=True)
    assert (tmp_path / "elsewhere" / "part-000000.json").read_text() == "mine"


def test_an_audit_is_not_resumed_and_replaced_at_once(rows: Path, tmp_path: Path) -> None:
    """Nobody can say which of the two was meant."""
    with pytest.raises(ValueError, match="give one of them"):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", resume=True, overwrite=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("small_chunks")
def test_what_is_left_after_ctrl_c_is_said_as_it_is(rows: Path, tmp_path: Path) -> None:
    """A file goes on; what can be read only once does not; before the first chunk there is nothing to go on from."""

    def notes(source: object, stop_at: int, name: str) -> list[str]:
        with pytest.raises(KeyboardInterrupt) as stopped:
            audit(source, labeler=Scripted(stop_at, KeyboardInterrupt()), out=tmp_path / name)  # type: ignore[arg-type]
        return list(getattr(stopped.value, "__notes__", []))

    (note,) = notes(str(rows), 5, "file")
    assert "the same call goes on after it with --resume" in note
    (note,) = notes((f"No. {number}" for number in range(9)), 5, "once")
    assert (
        "can be read only once, or its hub tells no revision, so this run cannot be resumed: put the rows in a file"
        in note
    )
    with pytest.raises(OutputError, match="can be read only once"):
        audit((f"No. {number}" for number in range(9)), labeler=Scripted(), out=tmp_path / "once", resume=True)
    assert notes(str(rows), 0, "begun") == [
        "What is finished is kept in chunks of 2 replies, and none is full yet; the same call begins anew."
    ]
    assert audit(str(rows), labeler=Scripted(), out=tmp_path / "begun").rows == 10


@pytest.mark.usefixtures("small_chunks")
def test_overwriting_replaces_an_audit_that_was_stopped(rows: Path, tmp_path: Path) -> None:
    """Its shards are ours."""
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Scripted(5, RuntimeError()), out=tmp_path / "out")
    assert audit(str(rows), labeler=Scripted(), out=tmp_path / "out", overwrite=True).rows == 10
    assert not (tmp_path / "out" / "shards").exists()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("error", [RuntimeError(), KeyboardInterrupt()])
def test_a_finished_audit_stays_until_what_replaces_it_has_begun(
    error: BaseException, rows: Path, tmp_path: Path
) -> None:
    """What fails at the first row replaces nothing; what has a finished chunk does."""
    out = tmp_path / "out"
    audit(str(rows), labeler=Scripted(), out=out)
    before = {name: (out / name).read_bytes() for name in RESULTS}
    with pytest.raises(type(error)) as raised:
        audit(["Yes.", "No."], labeler=Scripted(0, error), out=out, overwrite=True)
    assert getattr(raised.value, "__notes__", []) == [f"The audit that was in {out} is there as it was."]
    assert {name: (out / name).read_bytes() for name in RESULTS} == before
    assert open_audit(out).rows == 10
    assert not (out / ".before").exists()
    with pytest.raises(type(error)):
        audit(str(rows), labeler=Scripted(5, error, engine="brush"), out=out, overwrite=True)
    with pytest.raises(OutputError, match="not finished"):
        open_audit(out)
    assert not (out / ".before").exists()
    (out / ".before").mkdir()
    (out / ".before" / "mine.txt").touch()
    assert audit(str(rows), labeler=Scripted(engine="brush"), out=out, resume=True).rows == 10
    assert [path.name for path in (out / ".before").iterdir()] == ["mine.txt"]


@pytest.mark.usefixtures("small_chunks")
def test_an_audit_that_was_to_replace_another_is_resumed(rows: Path, tmp_path: Path) -> None:
    """Killed before its first chunk was done, it has the other one beside it, which is not what is gone on with."""
    out = tmp_path / "out"
    audit(["Yes.", "No."], labeler=Scripted(), out=out)
    audit(str(rows), labeler=Scripted(), out=tmp_path / "whole")
    (out / ".before").mkdir()
    for name in (*RESULTS, "manifest.json"):
        (out / name).rename(out / ".before" / name)
    shutil.copy(tmp_path / "whole" / "manifest.json", out)
    assert audit(str(rows), labeler=Scripted(), out=out, resume=True).rows == 10
    assert not (out / ".before").exists()


@pytest.mark.usefixtures("small_chunks")
def test_shards_that_a_finished_audit_left_are_not_the_next_ones(rows: Path, tmp_path: Path) -> None:
    """Killed before it removed them, and the next one while it set the results aside."""
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Scripted(5, RuntimeError()), out=out)
    shutil.copytree(out / "shards", tmp_path / "shards")
    audit(str(rows), labeler=Scripted(), out=out, resume=True)
    shutil.copytree(tmp_path / "shards", out / "shards")
    with pytest.raises(RuntimeError):
        audit(["Yes."], labeler=Scripted(0, RuntimeError()), out=out, overwrite=True)
    assert open_audit(out).rows == 10
    assert audit(["Yes."], labeler=Scripted(), out=out, overwrite=True).rows == 1


@pytest.mark.parametrize("n_moved", range(len(RESULTS) + 1))
def test_an_audit_that_was_half_set_aside_is_put_back(n_moved: int, rows: Path, tmp_path: Path) -> None:
    """By the next call, wherever the process was killed: nothing is lost between the two places."""
    out = tmp_path / "out"
    audit(str(rows), labeler=Scripted(), out=out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    (out / ".before").mkdir()
    for name in ("composition.json", "tally.json", "verdicts.parquet", "manifest.json")[: n_moved + 1]:
        (out / name).rename(out / ".before" / name)
    with pytest.raises(OutputError, match="already holds"):
        audit(str(rows), labeler=Scripted(), out=out)
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_names_of_files_are_not_judged(rows: Path) -> None:
    """A list holds conversations; one that names files is a mistake, which would be counted as answers."""
    with pytest.raises(TypeError, match=r"memory:1: '.*' is the name of a source"):
        audit([str(rows)], labeler=Scripted())
    assert audit(["No such file.jsonl"], labeler=Scripted()).rows == 1


@pytest.mark.parametrize(
    "name", ["a.jsonl", "nowhere/a.parquet", "hf://owner/name", "a.csv.gz", Path("a.jsonl"), Path("a")]
)
def test_a_mistyped_name_in_a_list_is_not_judged(name: Any) -> None:
    """It looks like one, and there is no such file, or none here: a share of such replies would be made up."""
    with pytest.raises(TypeError, match=r"memory:2: '.*' is the name of a source; give one name, a folder"):
        audit(["No.", name], labeler=Scripted())


@pytest.mark.parametrize("ending", ["package.json", "a\0b.json"])
def test_a_reply_that_ends_like_a_file_is_judged(ending: str) -> None:
    """Where no file could be called so, systems raise errors of their own."""
    assert audit([f"No. Save it {'where the program looks ' * 20}as {ending}"], labeler=Scripted()).refusals == 1


def test_a_side_that_is_null_is_counted_on_its_side(tmp_path: Path) -> None:
    """As an empty one is."""
    pairs = [{"prompt": "Q", "chosen": "No.", "rejected": said} for said in ("Yes.", None, "")]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    sides = audit(str(path), labeler=Scripted()).tally.sides
    assert {name: (side.rows, side.scored) for name, side in sides.items()} == {"chosen": (3, 3), "rejected": (3, 1)}


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}], ids=["plain", "overwrite", "resume"])
def test_a_source_where_results_would_be_written_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    """An audit must not eat what it reads: the verdicts of another audit, or a folder that holds one."""
    out = tmp_path / "out"
    audit(["Yes.", "No."], labeler=Scripted(), out=out)
    before = _bytes(out)
    with pytest.raises(OutputError, match=r"is to be audited, and lies where results.*--out"):
        audit(out / "verdicts.parquet", labeler=Scripted(), out=out, **options)
    with pytest.raises(SourceError, match=r"no file to read in the folder .* but those of an audit"):
        audit(out, labeler=Scripted(), out=out, **options)
    assert _bytes(out) == before


def test_rows_in_memory_are_read_as_rows_of_a_file() -> None:
    """The layout is found, told and counted; a row that cannot be read is unscored in its place."""
    met: list[tuple[str, str]] = []
    given: list[dict[str, object]] = [
        {"prompt": "Q", "response": "No."},
        {"prompt": "Q"},
        {"prompt": "Q", "response": None},
        {"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "Yes."}]},
    ]
    found = audit(given, labeler=Scripted(), on_layout=lambda file, layout: met.append((file, layout)))
    assert list(found.to_frame()["verdict"]) == ["full", "unscored", "unscored", "none"]
    assert found.composition.unscored == {"null_content": 1, "unreadable_row": 1}
    assert met == [("conversations in memory", "prompt_response: prompt=prompt response=response")]
    assert found.highlights.broken[0].where == "conversations in memory:2"


def test_layout_fields_and_turns_hold_for_rows_in_memory() -> None:
    """As for a file: other columns, a named layout, and every assistant turn."""
    asked = [{"a": "Q", "b": "No."}]
    named = audit(asked, labeler=Scripted(), layout="prompt_response", fields={"prompt": "a", "response": "b"})
    assert named.refusals == 1
    talk = "<|user|>Q<|assistant|>No.<|user|>Q<|assistant|>Yes."
    for given in ([talk], [{"text": talk}]):
        assert audit(given, labeler=Scripted(), turns="all").composition.scored == 2
    with pytest.raises(LayoutError, match="fit not the layout 'openai'"):
        audit(asked, labeler=Scripted(), layout="openai")
    with pytest.raises(LayoutError, match="no layout 'opneai'"):
        audit([], labeler=Scripted(), layout="opneai")


def test_a_frame_is_read_row_by_row(tmp_path: Path) -> None:
    """Not by its column names: arrays are lists, a missing cell is null, and it can be resumed."""
    frame = pd.DataFrame({"prompt": ["Q", "Q", "Q"], "response": ["No.", None, "Yes."]})
    found = audit(frame, labeler=Scripted(), out=tmp_path / "out")
    assert list(found.to_frame()["verdict"]) == ["full", "unscored", "none"]
    assert found.composition.unscored == {"null_content": 1}
    idle = Scripted()
    audit(frame.copy(), labeler=idle, out=tmp_path / "out", resume=True)
    assert idle.labelled == 0
    talk = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "No."}]
    path = tmp_path / "chats.parquet"
    pd.DataFrame({"messages": [talk, talk]}).to_parquet(path)
    assert audit(pd.read_parquet(path), labeler=Scripted()).refusals == 2


def test_strings_and_conversations_and_rows_may_be_mixed() -> None:
    """Each keeps its place; a string with turns and no reply is unscored like any row without one."""
    given: list[Any] = ["No.", Conversation.of("Q", "Yes."), {"response": "No."}, "<|user|>Q"]
    found = audit(given, labeler=Scripted())
    assert list(found.to_frame()["row_id"]) == [0, 1, 2, 3]
    assert (found.refusals, found.composition.unscored) == (2, {"no_assistant_turn": 1})
    with pytest.raises(RowError, match="conversations in memory:4"):
        audit(given, labeler=Scripted(), strict=True)


@pytest.mark.parametrize("missing", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT], ids=repr)
def test_a_missing_reply_in_memory_costs_itself_alone(missing: Any) -> None:
    """As a null in a file does, alone in a list or in a row, and first or not."""
    for given in (["No.", missing, "Yes."], [missing, "No.", "Yes."]):
        found = audit(given, labeler=Scripted())
        assert (found.refusals, found.composition.scored) == (1, 2)
        assert found.composition.unscored == {"null_content": 1}
    found = audit([{"response": one} for one in ("No.", missing)], labeler=Scripted())
    assert (found.refusals, found.composition.unscored) == (1, {"null_content": 1})
    column = pd.DataFrame({"response": ["No.", missing, "Yes."]})["response"]
    assert audit(column, labeler=Scripted()).composition.unscored == {"null_content": 1}


@pytest.mark.parametrize(
    "given",
    [{"prompt": "Q", "response": "No."}, Conversation.of("Q", "No."), b"No.", 3, None, [3], ["No.", 3]],
    ids=["a row", "a conversation", "bytes", "a number", "nothing", "a list of numbers", "a list with a number"],
)
def test_what_is_no_data_is_answered_with_what_would_be(given: Any) -> None:
    """Never judged by its keys or letters."""
    with pytest.raises(TypeError, match=r"demur\.Conversation, strings, or rows such as"):
        audit(given, labeler=Scripted())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prompt": ["Q", "R"], "response": ["No.", "Yes."]}, "of columns, give pandas.DataFrame(data)"),
        ({"prompt": "Q", "response": "No."}, "put a single one into a list"),
        ({side: [{"role": "user", "content": "Q"}] for side in ("chosen", "rejected")}, "put a single one into a list"),
        (pa.table({"response": ["No."]}), "of a table or column of Arrow, give data.to_pylist()"),
        (pa.array([{"response": "No."}]), "of a table or column of Arrow, give data.to_pylist()"),
        (pa.table({"a": [1]}).to_reader(), "of a reader of Arrow, give data.read_all().to_pylist()"),
        (Eager(), "of a polars DataFrame, give data.to_dicts()"),
        (Lazy(), "of a polars LazyFrame, give data.collect().to_dicts()"),
        (io.StringIO('{"response": "No."}'), "of a file, give the name"),
    ],
    ids=["columns", "a row", "a pair", "a table", "an array", "a reader", "polars", "lazy polars", "a file"],
)
def test_what_holds_rows_otherwise_is_answered_with_how(given: Any, said: str) -> None:
    """An open file would be judged line by line."""
    with pytest.raises(TypeError) as error:
        audit(given, labeler=Scripted())
    assert str(error.value).endswith(f"; {said}")


@pytest.mark.parametrize("given", [pa.array([{"response": "No."}]), Eager(), Lazy()], ids=["array", "polars", "lazy"])
def test_labelers_and_agreement_say_how_rows_are_given_too(given: Any) -> None:
    """In the words of an audit."""
    with pytest.raises(TypeError, match=r"of a .*, give data\..*\(\)"):
        KeywordLabeler().label(given)
    with pytest.raises(TypeError, match=r"of a .*, give data\..*\(\)"):
        demur.agree(given)


def test_a_list_of_messages_is_a_conversation() -> None:
    """Among several, as a client keeps them."""
    said = ("I can't help with that.", "Yes.")
    chats: Any = [[{"role": "user", "content": "Q"}, {"role": "assistant", "content": one}] for one in said]
    assert list(audit(chats, labeler=KeywordLabeler()).to_frame()["verdict"]) == ["full", "none"]
    assert [one.outcome for one in KeywordLabeler().label(chats)] == ["full", "none"]


def test_a_reply_that_is_taken_for_a_name_is_told_where_it_goes() -> None:
    """A file that is missing is not."""
    with pytest.raises(SourceError, match=r"; a single reply goes into a list, as in demur\.audit\(\[reply\]\)"):
        audit("I can't help with that", labeler=Scripted())
    with pytest.raises(SourceError) as error:
        audit("my file.jsonl", labeler=Scripted())
    assert "into a list" not in str(error.value)


def test_fields_that_are_no_mapping_are_refused() -> None:
    """A name alone says nothing of its part."""
    fields: Any = "answer"
    with pytest.raises(TypeError, match=r"fields is 'answer'; give a mapping of part to column"):
        audit([{"answer": "No."}], labeler=Scripted(), fields=fields)


def test_what_names_a_path_is_one(rows: Path) -> None:
    """Of whatever class."""

    class Named:
        def __fspath__(self) -> str:
            return str(rows)

    named: Any = Named()
    assert audit(named, labeler=Scripted()).rows == 10


def test_a_source_without_a_name_is_none() -> None:
    """To the system it is this folder, all of which would be audited where a script's variable is not set."""
    with pytest.raises(SourceError, match=r"the name of the source is empty; give a file, or \. for all"):
        audit("", labeler=Scripted())


def test_the_layout_is_told_before_a_reply_is_judged(rows: Path) -> None:
    """Whoever sees the wrong columns stops the run at once, not after an hour."""
    labeler = Scripted()
    met: list[tuple[str, str, int]] = []
    audit(str(rows), labeler=labeler, on_layout=lambda *told: met.append((*told, labeler.labelled)))
    assert met == [(str(rows), "prompt_response: prompt=prompt response=response", 0)]


def test_an_odd_first_row_in_memory_is_broken_alone() -> None:
    """As in a file: only where no row fits a layout, that is an error."""
    found = audit([{"id": 3}, {"id": 4}, {"prompt": "Q", "response": "No."}], labeler=Scripted())
    assert found.composition.unscored == {"unknown_layout": 2}
    assert found.refusals == 1
    assert audit([{"id": 3}, "No."], labeler=Scripted()).refusals == 1
    for n_rows in (2, 150):
        with pytest.raises(LayoutError, match=r"memory:1: the columns id \(int\) fit no layout"):
            audit([{"id": 3}] * n_rows, labeler=Scripted())


def test_an_audit_that_scored_nothing_says_why() -> None:
    """No nan% for a reader: the most frequent reasons first."""
    found = audit(["", "", "<|user|>Q"], labeler=Scripted())
    assert repr(found).endswith(": nothing could be scored: empty_reply 2, no_assistant_turn 1>")
    assert repr(audit([], labeler=Scripted())).endswith(": nothing could be scored: there were no rows>")
    assert audit(["Yes."], labeler=Scripted()).why_not_scored is None


def test_a_notebook_shows_an_audit_as_a_table(rows: Path, tmp_path: Path) -> None:
    """The kinds that were met, and the data's own words as text."""
    place = rows.rename(tmp_path / "<b>.jsonl")
    found = audit(str(place), labeler=Scripted())
    shown = found._repr_html_()
    assert "&lt;b&gt;.jsonl" in shown
    assert "<b>" not in shown
    assert "4 of 8 scored replies refuse" in shown
    kinds = [found.category_name(key) for key, share in found.by_category.items() if share.count]
    assert kinds
    assert all(f"<td>{kind}</td>" in shown for kind in kinds)
    assert shown.count("<td>") == 4 * len(kinds)
    assert "nan" not in audit([""], labeler=Scripted())._repr_html_().lower()


@pytest.mark.parametrize(
    ("n_refusing", "n", "said", "shown"),
    [
        (1, 5_000, "1 of 5,000 scored replies refuses, 0.02% [<0.01%, 0.11%]", ("0.02%", "&lt;0.01\u20130.11%")),
        (4_999, 5_000, "4,999 of 5,000 scored replies refuse, 99.98% [99.89%, >99.99%]", ("99.98%",)),
        (1, 1, "1 of 1 scored reply refuses, 100% [21%, 100%]", ("100%", "21\u2013100%")),
        (0, 1, "0 of 1 scored reply refuses, 0% [0%, 79%]", ()),
    ],
)
def test_python_shows_the_numbers_of_the_report(n_refusing: int, n: int, said: str, shown: tuple[str, ...]) -> None:
    """A share that is not 0 or 1 reads as neither, at the prompt and in a notebook."""
    found = audit(["No."] * n_refusing + ["Yes."] * (n - n_refusing), labeler=Scripted())
    assert said in repr(found)
    assert all(f"<td>{cell}</td>" in found._repr_html_() for cell in shown)


def test_under_strict_only_refusals_in_full_count(rows: Path, tmp_path: Path) -> None:
    """3 of 8 refuse in full; the fourth keeps its outcome and has no part in shares, kinds, examples and wordings."""
    found = audit(str(rows), labeler=Scripted(), out=tmp_path / "out", policy="strict")
    assert (found.policy, found.refusals, found.share) == (Policy.strict, 3, 3 / 8)
    assert (found.composition.full, found.composition.partial, found.composition.scored) == (3, 1, 8)
    assert found.by_category["skill_level"].count == 0
    assert list(found.highlights.surest) == ["privacy"]
    assert list(found.to_frame()["verdict"]).count("partial") == 1
    written = json.loads((tmp_path / "out" / "composition.json").read_text())
    assert (written["policy"], written["refusals"], written["partial"]) == ("strict", 3, 1)
    assert open_audit(tmp_path / "out") == found


def test_pairs_and_sides_are_counted_under_the_policy() -> None:
    """Chosen refuses in part, rejected not: under `strict`, neither refuses."""
    talks = _pair(0, "Part of it.", "Yes.")
    assert audit(talks, labeler=Scripted()).tally.pairs.chosen_only == 1
    strict = audit(talks, labeler=Scripted(), policy="strict")
    assert (strict.tally.pairs.neither, strict.tally.sides["chosen"].refusals) == (1, 0)


def test_a_lower_threshold_is_asked_of_nobody_who_has_none(tmp_path: Path) -> None:
    """What was decided without one cannot be decided below it: the report would say what is not so."""
    labeler = Scripted()
    with pytest.raises(ValueError, match=r"'broad' lowers a threshold, and 'scripted' has none .* 'strict' or 'stand"):
        audit(["No."], labeler=labeler, out=tmp_path / "out", policy="broad")
    assert labeler.labelled == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("policy", ["strict", "broad"])
def test_a_share_under_another_policy_is_not_corrected_and_says_why(rows: Path, tmp_path: Path, policy: str) -> None:
    """The errors were counted on replies known to refuse in full or in part."""
    labeler = Measured()
    labeler.policy = Policy(policy)  # type: ignore[attr-defined]  # as classifiers have one
    found = audit(str(rows), labeler=labeler, out=tmp_path / "out", policy=policy)
    assert found.corrected is None
    assert "do not say which refuse" in str(found.why_not_corrected)
    written = json.loads((tmp_path / "out" / "composition.json").read_text())
    assert written["corrected"]["why_not"] == found.why_not_corrected


@pytest.mark.usefixtures("small_chunks")
def test_an_audit_is_not_resumed_under_another_policy(rows: Path, tmp_path: Path) -> None:
    """Its shares would mix two meanings."""
    with pytest.raises(RuntimeError):
        audit(str(rows), labeler=Scripted(5, RuntimeError()), out=tmp_path / "out")
    with pytest.raises(OutputError, match='policy was "standard" and is "strict"'):
        audit(str(rows), labeler=Scripted(), out=tmp_path / "out", policy="strict", resume=True)


def test_a_labeler_that_decides_under_a_policy_is_counted_under_it() -> None:
    """Its own without a word; another one is refused, and one that does not exist too."""

    class Strict(Scripted):
        policy = Policy.strict

    assert audit(["Part.", "No."], labeler=Strict()).refusals == 1
    with pytest.raises(ValueError, match="policy 'broad', but 'scripted' decides under 'strict'"):
        audit(["No."], labeler=Strict(), policy="broad")
    with pytest.raises(ValueError, match="no policy 'lax'"):
        audit(["No."], labeler=Scripted(), policy="lax")
