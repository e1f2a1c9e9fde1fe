"""Labels of others are mapped by a crosswalk, wherever they stand; what it lacks stops the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import demur
from demur.crosswalk import Crosswalk
from demur.data.foreign import LabelColumns, read_foreign
from demur.errors import RowError, SourceError, TaxonomyError
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TAXONOMY = Taxonomy.load()
WALK = """\
name: theirs
source: "a test"
labels:
  Privacy: {verdict: refusal, categories: [privacy]}
  Modalities: {verdict: refusal, categories: [input_modality, output_modality]}
  Skill Level: {verdict: partial, categories: [skill_level]}
  "Not a refusal": none
"""


@pytest.fixture
def walk(tmp_path: Path) -> Crosswalk:
    """Write a crosswalk of four labels."""
    path = tmp_path / "theirs.yaml"
    path.write_text(WALK, encoding="utf-8")
    return Crosswalk.load(path, TAXONOMY)


def write(tmp_path: Path, rows: list[dict[str, Any]]) -> str:
    """Write rows as a JSONL file, each a prompt with its response and what is given."""
    path = tmp_path / "theirs.jsonl"
    lines = [json.dumps({"prompt": f"Q {n}", "response": f"A {n}", **row}) for n, row in enumerate(rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def said(source: str, walk: Crosswalk, **options: Any) -> list[dict[str, Any]]:
    """Return what each annotator says of each reply."""
    rows = read_foreign(source, walk, kind="human", **options).rows
    return [{one.annotator.name: (one.outcome, one.labels) for one in row.annotations} for row in rows]


PRIVATE, NONE = ("full", ("privacy",)), ("none", ())


def test_a_column_for_each_annotator(tmp_path: Path, walk: Crosswalk) -> None:
    """A label or a list of them; a coarse label names no kind, and a partial one is partial."""
    rows = [
        {"ada": "Privacy", "bo": ["Privacy", "Skill Level"]},
        {"ada": "Not a refusal", "bo": ["Modalities"]},
        {"ada": "Skill Level", "bo": []},
    ]
    assert said(write(tmp_path, rows), walk) == [
        {"ada": PRIVATE, "bo": ("full", ("privacy", "skill_level"))},
        {"ada": NONE, "bo": ("full", ())},
        {"ada": ("partial", ("skill_level",)), "bo": (None, ())},
    ]


def test_a_row_for_each_annotator(tmp_path: Path, walk: Crosswalk) -> None:
    """Rows of one text are one reply; the annotator stands in a column."""
    rows = [
        {"prompt": "Q", "response": "A", "annotator_id": 1, "label": "Privacy"},
        {"prompt": "Q", "response": "A", "annotator_id": 2, "label": "Not a refusal"},
    ]
    assert said(write(tmp_path, rows), walk) == [{"1": PRIVATE, "2": NONE}]


@pytest.mark.parametrize("nobody", [None, ""])
def test_labels_that_nobody_gave_are_counted_as_unread(tmp_path: Path, walk: Crosswalk, nobody: str | None) -> None:
    """A name made of nothing would be an annotator to all measures of agreement; a row without labels needs none."""
    given = [("ada", "Privacy"), (nobody, "Privacy"), (nobody, [])]
    rows = [{"annotator": name, "label": label} for name, label in given]
    found = read_foreign(write(tmp_path, rows), walk, kind="human")
    assert [len(row.annotations) for row in found.rows] == [1, 0]
    assert [error.message for error in found.broken] == [f"annotator is {nobody!r}; write who gave Privacy"]


def test_an_entry_without_a_name_is_known_by_its_place(tmp_path: Path, walk: Crosswalk) -> None:
    """An empty name is none."""
    entries = [{"annotator": "ada", "label": "Privacy"}, {"annotator": "", "label": "Not a refusal"}]
    assert said(write(tmp_path, [{"annotations": entries}]), walk) == [{"ada": PRIVATE, "annotations_2": NONE}]


@pytest.mark.parametrize("pair", [("user", "assistant"), ("prompt", "response")], ids=" and ".join)
def test_a_column_that_the_reply_answers_names_no_annotator(
    tmp_path: Path, walk: Crosswalk, pair: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """A `user` beside a prompt is an annotator, and one that is answered is none."""
    asked, answered = pair
    who = {} if asked == "user" else {"user": "ada"}
    path = tmp_path / "talk.jsonl"
    replies = ["A", "A", "B", "C"]
    lines = [{asked: f"Q {n}", answered: reply, "label": "Privacy", **who} for n, reply in enumerate(replies)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = read_foreign(str(path), walk, kind="human").rows
    name = "ada" if who else "label"
    assert [[one.annotator.name for one in row.annotations] for row in rows] == [[name]] * 4
    assert [row.conversation and row.conversation.turns[0].content for row in rows] == [f"Q {n}" for n in range(4)]
    warning = "'user' is read as what was asked, for hardly a reply has several; if it names who annotated, call it 'a"
    assert (warning in caplog.text) == (not who)


@pytest.mark.parametrize("ids", [("r1", "r1"), (None, None), ("r1", "r2")], ids=["one id", "no ids", "two ids"])
def test_a_user_beside_a_bare_reply_annotated_it_where_it_has_several(
    tmp_path: Path, walk: Crosswalk, ids: tuple[str | None, str | None], caplog: pytest.LogCaptureFixture
) -> None:
    """Of two replies, each has its user, and these may have asked."""
    rows = [
        {"id": name, "response": "A", "user": user, "label": "Privacy"}
        for name, user in zip(ids, ("ada", "bo"), strict=True)
    ]
    path = tmp_path / "bare.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    expected = [{"ada": PRIVATE, "bo": PRIVATE}] if ids != ("r1", "r2") else [{"label": PRIVATE}] * 2
    assert said(str(path), walk) == expected
    assert len(caplog.records) == len(expected) - 1


def test_a_list_with_an_entry_for_each_annotator(tmp_path: Path, walk: Crosswalk) -> None:
    """Entries are objects that name the annotator, or lists that do not."""
    entries = [{"user": "ada", "categories": ["Privacy"]}, {"user": "bo", "categories": ["Not a refusal"]}]
    assert said(write(tmp_path, [{"classifications": entries}]), walk) == [{"ada": PRIVATE, "bo": NONE}]
    lists = [["Privacy"], ["Not a refusal"]]
    found = said(write(tmp_path, [{"labels": lists}]), walk)
    assert found == [{"labels_1": PRIVATE, "labels_2": NONE}]


def test_numbers_are_labels_whole_or_not(tmp_path: Path) -> None:
    """A null beside whole numbers makes pandas write all of them as 1.0; nan, like null, is no label."""
    rows = [{"ada": 1, "bo": 0.0, "cy": 1.0}, {"ada": 0, "bo": 1.0, "cy": float("nan")}]
    full, none, nothing = ("full", ()), ("none", ()), (None, ())
    assert said(write(tmp_path, rows), Crosswalk.load("binary", TAXONOMY)) == [
        {"ada": full, "bo": none, "cy": full},
        {"ada": none, "bo": full, "cy": nothing},
    ]


def test_what_the_crosswalk_lacks_is_listed_and_stops_the_run(tmp_path: Path, walk: Crosswalk) -> None:
    """All of it, with the column and how often; spelling counts."""
    rows = [{"ada": label} for label in ("Privacy", "Not a refusal", "privacy", "Rudeness", "Rudeness")]
    with pytest.raises(TaxonomyError, match=r"lacks labels: 'Rudeness' in ada \(2\), 'privacy' in ada \(1\); add"):
        said(write(tmp_path, rows), walk)


def test_columns_without_labels_are_shown(tmp_path: Path, walk: Crosswalk) -> None:
    """With what stands in them; columns that are named are taken."""
    source = write(tmp_path, [{"ada": "Crime"}, {"ada": "Secrets"}, {"ada": "Privacy"}])
    with pytest.raises(SourceError, match=r"no column holds labels of crosswalk 'theirs'; .* ada: Crime, Privacy"):
        said(source, walk)
    with pytest.raises(TaxonomyError, match="'Crime' in ada"):
        said(source, walk, columns=LabelColumns(("ada",), None))


def test_a_row_that_contradicts_itself_is_counted(tmp_path: Path, walk: Crosswalk) -> None:
    """Two labels, one of a refusal and one of none; with `strict` it is the end."""
    source = write(tmp_path, [{"ada": ["Privacy", "Not a refusal"]}, {"ada": ["Privacy"]}])
    found = read_foreign(source, walk, kind="human")
    assert (len(found.rows), [error.reason for error in found.broken]) == (1, ["conflicting_labels"])
    with pytest.raises(RowError, match="gives labels of a refusal beside one of none"):
        read_foreign(source, walk, kind="human", strict=True)


@pytest.mark.parametrize("options", [{"split": "dev"}, {"texts": ["texts.jsonl"]}])
@pytest.mark.parametrize("study", [demur.agree, demur.benchmark])
def test_what_a_crosswalk_cannot_heed_is_not_ignored(
    tmp_path: Path, walk: Crosswalk, study: Callable[..., object], options: dict[str, Any]
) -> None:
    """All rows would be measured as if they were those of a split; nothing given is as good as left out."""
    del walk
    source, theirs = write(tmp_path, [{"ada": "Privacy", "bo": "Privacy"}]), tmp_path / "theirs.yaml"
    (said,) = options
    with pytest.raises(SourceError, match=rf"{said} '.*' beside a crosswalk, .*; leave"):
        study(source, crosswalk=theirs, resamples=5, **options)
    assert demur.agree(source, crosswalk=theirs, resamples=5, texts=[]).items


@pytest.mark.parametrize("study", [demur.agree, demur.benchmark])
def test_a_crosswalk_maps_one_source(tmp_path: Path, walk: Crosswalk, study: Callable[..., object]) -> None:
    """Of several, all are named; what is no name of a source is another mistake."""
    del walk
    theirs = tmp_path / "theirs.yaml"
    with pytest.raises(SourceError, match=r"2 sources \(a.csv, b.csv\) beside a crosswalk, .*; give them one after"):
        study(["a.csv", "b.csv"], crosswalk=theirs)
    with pytest.raises(TypeError, match="of a named source, such as hf://owner/name; met dict"):
        study([{"ada": "Privacy"}], crosswalk=theirs)


def test_a_folder_of_parquet_is_read_through_datasets(tmp_path: Path, walk: Crosswalk) -> None:
    """As a set of the hub would be, down to the agreement of its people."""
    pytest.importorskip("datasets")
    folder = tmp_path / "set"
    folder.mkdir()
    lists = [[["Privacy"], ["Privacy"]], [["Not a refusal"], ["Not a refusal"]], [["Privacy"], ["Not a refusal"]]]
    frame = pd.DataFrame({"prompt": ["a", "b", "c"], "response": ["x", "y", "z"], "labels": lists})
    frame.to_parquet(folder / "train.parquet")
    del walk
    found = demur.agree(f"hf://{folder}", crosswalk=tmp_path / "theirs.yaml", resamples=5)
    assert found.who == "2 human annotators"
    assert found.figure("gate", "agreement").estimate.value == pytest.approx(2 / 3)
