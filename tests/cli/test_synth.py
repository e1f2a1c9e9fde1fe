"""`demur synth vary` and `demur synth check` from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Demur = Callable[..., tuple[int, str, str]]


def read(path: Path) -> list[dict[str, Any]]:
    """Read JSONL."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_variants_are_written_and_the_same_seed_writes_the_same(
    demur: Demur, labelled_file: Path, tmp_path: Path
) -> None:
    """64 rows, two variants each; the counts of what was done add up to them."""
    words = ("synth", "vary", labelled_file, "--per-row", 2, "--out")
    code, printed, errors = demur(*words, tmp_path / "a.jsonl", "--seed", 1)
    assert code == 0, errors
    assert "64 rows varied, 0 of them without a variant, 0 unreadable" in printed
    counts = [int(part.split()[-1]) for part in printed.splitlines()[-1].removeprefix("changes: ").split(", ")]
    assert sum(counts) == len(read(tmp_path / "a.jsonl")) == 128
    demur(*words, tmp_path / "b.jsonl", "--seed", 1)
    demur(*words, tmp_path / "c.jsonl", "--seed", 2)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.jsonl").read_bytes() != (tmp_path / "c.jsonl").read_bytes()


def test_variants_of_what_is_evaluated_on_are_all_dropped(demur: Demur, labelled_file: Path, tmp_path: Path) -> None:
    """Each with its reason and partner, in the output and in the file beside the one that is kept."""
    variants = tmp_path / "variants.jsonl"
    demur("synth", "vary", labelled_file, "--seed", 3, "--mutations", "typos,markdown", "--out", variants)
    code, printed, errors = demur(
        "synth", "check", variants, "--avoid", labelled_file, "--out", tmp_path / "kept.jsonl"
    )
    assert code == 0, errors
    n_rows = len(read(variants))
    assert f"{n_rows} rows, 0 kept, {n_rows} dropped" in printed
    assert "compared with 64 rows to be avoided and 0 of the corpus" in printed
    dropped = read(tmp_path / "kept.dropped.jsonl")
    assert len(dropped) == n_rows
    assert {row["dropped"]["reason"] for row in dropped} == {"evaluation_row"}
    assert all(str(labelled_file) in row["dropped"]["partner"] for row in dropped)
    assert read(tmp_path / "kept.jsonl") == []


def test_a_file_cannot_be_avoided_by_itself(demur: Demur, labelled_file: Path, tmp_path: Path) -> None:
    """Left out, it would be compared with nothing; nothing is written."""
    for given in (labelled_file, labelled_file.parent):
        code, _, errors = demur("synth", "check", labelled_file, "--avoid", given, "--out", tmp_path / "kept.jsonl")
        assert code == 2
        assert "no row of it could be kept" in " ".join(errors.split())
    assert not list(tmp_path.iterdir())


def test_what_is_kept_is_as_it_was(demur: Demur, labelled_file: Path, tmp_path: Path) -> None:
    """A copy of the file and one more of its rows: the file comes back, the row does not; broken lines are counted."""
    lines = labelled_file.read_text(encoding="utf-8").splitlines()
    twice = tmp_path / "twice.jsonl"
    twice.write_text("\n".join([*lines, lines[40], "{"]) + "\n", encoding="utf-8")
    code, printed, _ = demur(
        "synth", "check", twice, "--corpus", tmp_path, "--out", tmp_path / "kept.jsonl", "--threshold", 1
    )
    assert code == 0
    assert f"{twice}:65: exact_duplicate: exchange as in {twice}:41, Jaccard 1.00" in printed
    assert f"{twice}:66: unreadable" in printed
    assert "66 rows, 64 kept, 2 dropped" in printed
    assert read(tmp_path / "kept.jsonl") == [json.loads(line) for line in lines]


def test_a_file_and_its_folder_may_both_be_given(demur: Demur, labelled_file: Path, tmp_path: Path) -> None:
    """Its rows count once, and the same option may name them twice."""
    rows = tmp_path / "rows.jsonl"
    rows.touch()
    (tmp_path / "gold").mkdir()
    gold = tmp_path / "gold" / "gold.jsonl"
    gold.write_bytes(labelled_file.read_bytes())
    both = [word for option in ("--avoid", "--corpus") for path in (gold, gold.parent) for word in (option, path)]
    code, printed, errors = demur("synth", "check", rows, *both)
    assert code == 0, errors
    assert "compared with 64 rows to be avoided and 64 of the corpus" in printed


@pytest.mark.parametrize("words", [("check",), ("vary", "--seed", "1")])
def test_rows_of_which_none_can_be_read_are_an_error(demur: Demur, tmp_path: Path, words: tuple[str, ...]) -> None:
    """The file is of another layout; an empty one is none."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "Hi?", "response": "No."}\n', encoding="utf-8")
    code, printed, _ = demur("synth", words[0], rows, *words[1:], "--out", tmp_path / "out.jsonl")
    assert code == 1
    assert "unreadable" in printed


def test_texts_that_lie_elsewhere_are_found_by_id(demur: Demur, labelled_file: Path, tmp_path: Path) -> None:
    """In a folder of them, for a corpus and for the file; without them the row is named. No text is written out."""
    rows = read(labelled_file)
    folder, corpus, kept = tmp_path / "texts", tmp_path / "corpus.jsonl", tmp_path / "kept.jsonl"
    folder.mkdir()
    named = [{**row, "id": f"r-{i}"} for i, row in enumerate(rows)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named), encoding="utf-8")
    bare = [{"id": row["id"], "verdict": "none"} for row in named]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in bare[1:]), encoding="utf-8")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in bare[:2]), encoding="utf-8")
    words = ("synth", "check", file, "--corpus", corpus, "--out", kept, "--threshold", 1)
    code, _, errors = demur(*words)
    assert code == 1
    assert "corpus.jsonl:1: no messages" in errors
    code, printed, errors = demur(*words, "--texts", folder)
    assert code == 0, errors
    assert f"{file}:2 (r-1): exact_duplicate: exchange as in {corpus}:1 (r-1)" in printed
    assert read(kept) == bare[:1]


@pytest.mark.parametrize("option", ["--avoid", "--corpus"])
@pytest.mark.parametrize("name", ["kept.jsonl", "kept.dropped.jsonl"])
def test_what_is_compared_with_is_never_written_to(
    demur: Demur, labelled_file: Path, tmp_path: Path, option: str, name: str
) -> None:
    """Neither by the rows that are kept nor by the others, though --overwrite is given; a folder names its files.

    What was dropped before is none of them, unless it is named itself.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    read_from = folder / name
    read_from.write_bytes(labelled_file.read_bytes())
    for given in (read_from, folder) if name == "kept.jsonl" else (read_from,):
        words = ("synth", "check", labelled_file, option, given, "--out", folder / "kept.jsonl", "--overwrite")
        code, _, errors = demur(*words)
        assert code == 1
        assert f"{name}' is read from" in " ".join(errors.split())
        assert read_from.read_bytes() == labelled_file.read_bytes()
        assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vary", "{file}", "--out", "{file}", "--seed", 1), "is read from"),
        (("vary", "{file}", "--out", "{taken}", "--seed", 1), "is there already; give another file, or --overwrite"),
        (("vary", "{folder}/none.jsonl", "--out", "{folder}/o.jsonl", "--seed", 1), "no file at"),
        (("vary", "{file}", "--out", "{folder}/none/o.jsonl", "--seed", 1), "give a file in a folder that exists"),
        (("vary", "{broken}", "--out", "{folder}/o.jsonl", "--seed", 1, "--strict"), "broken.jsonl:1"),
        (("check", "{folder}/none.jsonl"), "no file at"),
        (("check", "{file}", "--avoid", "{folder}/none.jsonl"), "no file at"),
        (("check", "{file}", "--avoid", "{broken}"), "broken.jsonl:1"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    demur: Demur, labelled_file: Path, tmp_path: Path, words: tuple[str | int, ...], said: str
) -> None:
    """And leaves no file behind."""
    taken, broken = tmp_path / "taken.jsonl", tmp_path / "broken.jsonl"
    taken.touch()
    broken.write_text("{\n", encoding="utf-8")
    places = {"file": labelled_file, "taken": taken, "broken": broken, "folder": tmp_path}
    code, _, errors = demur("synth", *(str(word).format(**places) for word in words))
    assert code == 1
    assert said in errors
    assert {path.name for path in tmp_path.iterdir()} == {"taken.jsonl", "broken.jsonl"}


def test_an_unknown_mutation_is_answered_with_the_known_ones(demur: Demur, labelled_file: Path, tmp_path: Path) -> None:
    """Before anything is written."""
    code, _, errors = demur(
        "synth", "vary", labelled_file, "--out", tmp_path / "o.jsonl", "--seed", 1, "--mutations", "typo"
    )
    assert code == 2
    assert "'typo' is no mutation" in " ".join(errors.split())
    assert not (tmp_path / "o.jsonl").exists()
