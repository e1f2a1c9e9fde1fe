"""Labelled conversations are read with what is known of their last reply."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Turn
from demur.data.labelled import read_labelled, read_split, read_texts
from demur.errors import RowError, SourceError
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from pathlib import Path

MESSAGES = [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "<think>hm</think>No."}]


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    """Load the taxonomy that is shipped."""
    return Taxonomy.load()


def write(path: Path, *rows: object) -> Path:
    """Write one JSON value a line."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_row_is_read_with_all_that_it_says(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """The conversation is read as in an audit: its thinking stands apart."""
    main, further = taxonomy.keys[:2]
    row = {
        "id": "r-1",
        "source": "somewhere",
        "messages": MESSAGES,
        "verdict": "full",
        "labels": [main, further],
        "annotations": [{"annotator": "a", "labels": [main]}, {"annotator": "b", "labels": []}],
        "agreed": False,
        "weak": True,
        "split": "dev",
    }
    (labelled,) = read_labelled(write(tmp_path / "a.jsonl", row), taxonomy)
    assert labelled.conversation.turns == (Turn("user", "Hi?"), Turn("assistant", "No."))
    assert labelled.conversation.reasoning == "hm"
    assert (labelled.id, labelled.source, labelled.split) == ("r-1", "somewhere", "dev")
    assert (labelled.outcome, labelled.is_refusal) == ("full", True)
    assert (labelled.labels, labelled.readings) == ((main, further), ((main,),))
    assert (labelled.is_weak, labelled.is_agreed) == (True, False)


@pytest.mark.parametrize(
    ("row", "outcome", "is_refusal"),
    [
        ({"verdict": "none"}, "none", False),
        ({"verdict": "partial"}, "partial", True),
        ({"verdict": None, "refusal": True}, None, None),
        ({"refusal": True}, None, True),
        ({"refusal": False}, None, False),
        ({}, None, None),
    ],
    ids=["none", "partial", "people differ", "source says yes", "source says no", "nobody says"],
)
def test_the_verdict_decides_before_the_source(
    tmp_path: Path, taxonomy: Taxonomy, row: dict[str, object], outcome: str | None, *, is_refusal: bool | None
) -> None:
    """What nobody said is not known."""
    (labelled,) = read_labelled(write(tmp_path / "a.jsonl", {"messages": MESSAGES, **row}), taxonomy)
    assert (labelled.outcome, labelled.is_refusal) == (outcome, is_refusal)


def test_a_misspelt_label_column_is_an_error_where_labels_are_needed(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Nothing can be measured by rows of which nobody knows whether they refuse; one known row is enough."""
    unknown: list[dict[str, object]] = [
        {"messages": MESSAGES, "verdit": "full"},
        {"messages": MESSAGES, "verdict": None},
    ]
    path = write(tmp_path / "a.jsonl", *unknown)
    with pytest.raises(SourceError, match=r"a\.jsonl: no labelled row; .* the columns are messages, verdit, verdict$"):
        read_labelled(path, taxonomy, needs_truth=True)
    path = write(tmp_path / "b.jsonl", *unknown, {"messages": MESSAGES, "verdict": "none"})
    assert len(read_labelled(path, taxonomy, needs_truth=True)) == 3


def test_bits_may_be_written_as_numbers_or_not_at_all(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Null is not given: nothing is weak, and annotators agree."""
    bits = {"refusal": 0, "weak": 1, "drawn_hard": None, "agreed": None, "labels": None, "annotations": None}
    (labelled,) = read_labelled(write(tmp_path / "a.jsonl", {"messages": MESSAGES, **bits}), taxonomy)
    assert (labelled.is_refusal, labelled.is_weak) == (False, True)
    assert (labelled.is_drawn_hard, labelled.is_agreed) == (False, True)


def test_a_split_leaves_the_other_out(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """It is counted; one that has no row is an error, which names those that have."""
    rows = [{"id": split, "messages": MESSAGES, "verdict": "none", "split": split} for split in ("train", "dev")]
    path = write(tmp_path / "a.jsonl", *rows)
    found = read_split(path, taxonomy, split="dev")
    assert ([row.id for row in found.rows], found.other_splits) == (["dev"], {"train": 1})
    assert found.rows == read_labelled(path, taxonomy, split="dev")
    assert read_split(path, taxonomy, split=None).other_splits == {}
    with pytest.raises(
        SourceError, match=r"no labelled row of split 'test'; there are rows of 'dev', 'train'; give --split dev"
    ):
        read_labelled(path, taxonomy, split="test")


def test_a_missing_file_is_an_error(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """It is named."""
    with pytest.raises(SourceError, match="no file at"):
        read_labelled(tmp_path / "a.jsonl", taxonomy)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"messages": MESSAGES, "verdict": "maybe"}, "verdict 'maybe'; write one of full, partial, none"),
        ({"messages": MESSAGES, "verdict": "full", "labels": ["nonsense"]}, "label 'nonsense' is not in the taxonomy"),
        ({"messages": MESSAGES, "refusal": "false"}, "refusal is 'false'; write true or false"),
        ({"messages": MESSAGES, "verdict": "none", "weak": 2}, "weak is 2; write true or false"),
        ({"messages": MESSAGES, "verdict": "none", "agreed": "no"}, "agreed is 'no'; write true or false"),
        ({"messages": MESSAGES, "verdict": "none", "drawn_hard": []}, r"drawn_hard is \[\]; write true or false"),
        ({"messages": MESSAGES, "labels": "privacy"}, "labels is 'privacy'; write a list of kinds"),
        ({"messages": MESSAGES, "labels": [1]}, r"labels is \[1\]; write a list of kinds"),
        ({"messages": MESSAGES, "annotations": [{"labels": "privacy"}]}, "labels is 'privacy'; write a list of kinds"),
        ({"messages": MESSAGES, "annotations": ["privacy"]}, r"annotations is \['privacy'\]; write a list of objects"),
        ({"verdict": "full"}, "no messages among verdict"),
        ({"messages": "No.", "verdict": "full"}, "messages is str"),
        ({"messages": MESSAGES[:1], "verdict": "full"}, "no assistant turn"),
        ({"messages": [{"role": "oracle", "content": "No."}], "verdict": "full"}, "role 'oracle' is not known"),
        ([1], "a row is list"),
    ],
    ids=[
        "verdict",
        "label",
        "refusal",
        "weak",
        "agreed",
        "drawn hard",
        "labels",
        "kind",
        "reading",
        "annotations",
        "no messages",
        "messages",
        "no reply",
        "role",
        "array",
    ],
)
def test_a_row_of_another_form_is_an_error_with_its_place(
    tmp_path: Path, taxonomy: Taxonomy, row: object, message: str
) -> None:
    """Labelled data is never read past a mistake."""
    path = write(tmp_path / "a.jsonl", {"messages": MESSAGES, "verdict": "none"}, row)
    with pytest.raises(RowError, match=rf"a\.jsonl:2: {message}"):
        read_labelled(path, taxonomy)


def test_bytes_that_are_no_utf8_are_an_error_with_their_place(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """They come as an error of the row, not of the codec."""
    (tmp_path / "a.jsonl").write_bytes(b'{"messages": "\xff"}\n')
    with pytest.raises(RowError, match=r"a\.jsonl:1: not UTF-8"):
        read_labelled(tmp_path / "a.jsonl", taxonomy)


def test_texts_that_lie_elsewhere_are_found_by_id(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """A label file may carry ids alone, where the texts are not ours to hand on."""
    texts = read_texts([write(tmp_path / "texts.jsonl", {"id": "r-1", "messages": MESSAGES}, {"id": "r-2"})])
    labels = write(tmp_path / "labels.jsonl", {"id": "r-1", "verdict": "none", "drawn_hard": True, "family": "f"})
    (labelled,) = read_labelled(labels, taxonomy, texts=texts)
    assert labelled.conversation.reply == "No."
    assert (labelled.is_drawn_hard, labelled.family) == (True, "f")


def test_an_id_with_two_texts_is_an_error_for_the_row_that_needs_it(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Two files number their rows from 1: neither text is taken for the other. Other ids are found as ever."""
    other = [MESSAGES[0], {"role": "assistant", "content": "Sure: 4."}]
    first = write(tmp_path / "a.jsonl", {"id": 1, "messages": MESSAGES}, {"id": 2, "messages": MESSAGES})
    second = write(tmp_path / "b.jsonl", {"id": 2, "messages": MESSAGES}, {"id": "1", "messages": other})
    texts = read_texts([first, second])
    labels = write(tmp_path / "labels.jsonl", {"id": 2, "verdict": "full"})
    assert read_labelled(labels, taxonomy, texts=texts)[0].conversation.reply == "No."
    own = write(tmp_path / "own.jsonl", {"id": 1, "messages": other, "verdict": "none"})
    assert read_labelled(own, taxonomy, texts=texts)[0].conversation.reply == "Sure: 4."
    labels = write(tmp_path / "labels.jsonl", {"id": 1, "verdict": "full"})
    with pytest.raises(RowError, match=r"labels\.jsonl:1: id 1 has .* at .*a\.jsonl:1 and another at .*b\.jsonl:2"):
        read_labelled(labels, taxonomy, texts=texts)


def test_null_is_no_id(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Texts without one are nobody's, not those of every row without one; such a row is named by its place."""
    texts = read_texts([write(tmp_path / "texts.jsonl", {"id": None, "messages": MESSAGES})])
    assert texts == {}
    for row in ({"verdict": "full"}, {"id": None, "verdict": "full"}):
        with pytest.raises(RowError, match="no messages among"):
            read_labelled(write(tmp_path / "a.jsonl", row), taxonomy, texts={"None": MESSAGES})
    (labelled,) = read_labelled(
        write(tmp_path / "a.jsonl", {"id": None, "messages": MESSAGES, "verdict": "full"}), taxonomy
    )
    assert labelled.id.endswith("a.jsonl:1")


def test_texts_are_read_of_a_folder(tmp_path: Path) -> None:
    """All files below it; a folder without one is an error."""
    (tmp_path / "texts" / "more").mkdir(parents=True)
    with pytest.raises(SourceError, match=r"no \.jsonl file below"):
        read_texts([tmp_path / "texts"])
    write(tmp_path / "texts" / "a.jsonl", {"id": "a", "messages": MESSAGES})
    write(tmp_path / "texts" / "more" / "b.jsonl", {"id": "b", "messages": MESSAGES})
    assert read_texts([tmp_path / "texts"]).keys() == {"a", "b"}


def test_a_text_that_is_nowhere_is_an_error_with_its_place(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """The error says which row has no messages, and what to give."""
    labels = write(tmp_path / "labels.jsonl", {"id": "r-9", "verdict": "none"})
    with pytest.raises(RowError, match=r"labels\.jsonl:1: no messages among id, verdict.*texts by id"):
        read_labelled(labels, taxonomy, texts={})


def test_a_row_in_another_layout_says_what_it_has_to_hold(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """An audit reads prompt and response; here, what is required is listed."""
    labels = write(tmp_path / "a.jsonl", {"prompt": "Hi?", "response": "No.", "label": "refusal"})
    message = (
        r"a\.jsonl:1: no messages among prompt, response, label \(labelled rows take messages only, not prompt and "
        r"response\); write a list of \{role, content\} that ends with the reply, and beside it verdict \(full, "
        r"partial or none\) or refusal \(true or false\), and labels; or"
    )
    with pytest.raises(RowError, match=message):
        read_labelled(labels, taxonomy)


def test_a_missing_file_of_texts_is_named(tmp_path: Path) -> None:
    """It is an error before anything is read."""
    with pytest.raises(SourceError, match="texts"):
        read_texts([tmp_path / "texts.jsonl"])


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.jsonl"])
def test_labels_that_are_packed_are_named(name: str, tmp_path: Path, taxonomy: Taxonomy) -> None:
    """They are read as they are, so another name would not help."""
    (tmp_path / name).write_bytes(gzip.compress(b"{}"))
    with pytest.raises(SourceError, match="packed as gzip; unpack it") as raised:
        read_labelled(tmp_path / name, taxonomy)
    assert ("end a source's name" in str(raised.value)) == (name == "rows.jsonl")
