"""`demur agree` end to end: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Demur = Callable[..., tuple[int, str, str]]


@pytest.fixture
def annotated(tmp_path: Path) -> Path:
    """Write nine replies that two people read, alike but for one of each three, and a broken line."""
    lines = []
    for number in range(9):
        verdicts = (("full", "none"), ("full", "full"), ("none", "none"))[number % 3]
        said = [
            {"annotator": name, "kind": "human", "verdict": verdict, "labels": ["privacy"] if verdict == "full" else []}
            for name, verdict in zip(("ada", "bo"), verdicts, strict=True)
        ]
        lines.append(json.dumps({"id": f"r-{number}", "split": "dev" if number < 6 else "train", "annotations": said}))
    path = tmp_path / "annotated.jsonl"
    path.write_text("\n".join([*lines, '{"id": "cut']) + "\n", encoding="utf-8")
    return path


def test_agree_prints_tables_and_counts_what_it_cannot_read(demur: Demur, annotated: Path) -> None:
    """By default for a terminal."""
    code, printed, errors = demur("agree", annotated, "--resamples", "20")
    assert code == 0, errors
    assert "2 human annotators: 18 verdicts on 9 replies; on 3 of them two annotators differ." in printed
    assert "0.667" in printed
    assert f"{annotated}:10" in printed
    assert printed.endswith("\n")


def test_agree_prints_json_and_markdown(demur: Demur, annotated: Path, tmp_path: Path) -> None:
    """Standard output is nothing but the object, even where a page is written."""
    page = tmp_path / "page.html"
    code, printed, errors = demur("agree", annotated, "--json", "--resamples", "20", "--split", "dev", "--html", page)
    assert code == 0, errors
    stored = json.loads(printed)
    assert (stored["replies"], stored["unread"]) == (6, {"unreadable_row": 1})
    assert str(page) in errors
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    code, printed, errors = demur("agree", annotated, "--resamples", "20", "--html", page)
    assert (code, printed) == (1, "")
    assert "there already; replace it with --overwrite" in errors
    code, _, errors = demur("agree", annotated, "--resamples", "20", "--html", page, "--overwrite")
    assert code == 0, errors
    code, printed, _ = demur("agree", annotated, "--markdown", "--resamples", "20")
    assert code == 0
    assert "### Overall" in printed


def test_agree_finds_texts_in_a_folder(demur: Demur, annotated: Path, tmp_path: Path) -> None:
    """Rows whose messages lie elsewhere are shown with them."""
    folder = tmp_path / "texts"
    folder.mkdir()
    messages = [{"role": "user", "content": "Where does she live?"}, {"role": "assistant", "content": "I won't say."}]
    (folder / "texts.jsonl").write_text(json.dumps({"id": "r-0", "messages": messages}) + "\n")
    code, printed, errors = demur("agree", annotated, "--texts", folder, "--resamples", "5")
    assert code == 0, errors
    assert "I won't say." in printed


def test_agree_stops_where_it_is_asked_to(demur: Demur, annotated: Path, tmp_path: Path) -> None:
    """With `--strict` at the broken line; always where there is nothing to measure."""
    code, _, errors = demur("agree", annotated, "--strict")
    assert code == 1
    assert f"{annotated}:10" in errors
    code, _, errors = demur("agree", tmp_path / "missing.jsonl")
    assert code == 1
    assert "missing.jsonl" in errors
    assert "Traceback" not in errors
