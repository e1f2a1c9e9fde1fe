"""`demur benchmark` end to end: what it prints and writes, what judges cost, and how it fails."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from tests.llm_server import KEY, LlmServer, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Demur = Callable[..., tuple[int, str, str]]

N = 12


@pytest.fixture
def gold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write twelve replies that three models read; the server fails on one, and a line is broken."""
    monkeypatch.setenv("DEMUR_CACHE", str(tmp_path / "answers.sqlite"))
    lines = []
    for row in range(N):
        case = "refusal" if row == 5 else "right"
        labels = [kind_of(row)]
        said = [{"annotator": f"m_{n}", "kind": "llm", "verdict": "full", "labels": labels} for n in range(3)]
        if row % 4 == 3:
            said[0] = {"annotator": "m_0", "kind": "llm", "verdict": "none", "labels": []}
        messages = [
            {"role": "user", "content": f"Do it! case={case} row={row}"},
            {
                "role": "assistant",
                "content": "I'm sorry, but I can't help with that." if row % 2 else "Sure, here it is.",
            },
        ]
        lines.append(json.dumps({"id": f"r-{row}", "messages": messages, "annotations": said}))
    path = tmp_path / "gold.jsonl"
    path.write_text("\n".join([*lines, '{"id": "cut']) + "\n", encoding="utf-8")
    return path


def judged(server: LlmServer) -> tuple[str, ...]:
    """Return the options that lead to the server."""
    return ("--base-url", server.url, "--price", "1,4", "--resamples", "20")


def test_a_judge_stands_beside_keywords_and_annotators(
    demur: Demur, gold: Path, tmp_path: Path, llm_server: LlmServer
) -> None:
    """All forms are written; the cost is that of the tokens the server counted; kept answers are not paid again."""
    words = ("benchmark", gold, "--labelers", "keywords,judge:m,annotators", "--out", tmp_path / "board")
    code, printed, errors = demur(*words, *judged(llm_server))
    assert code == 0, errors
    assert "Leaderboard, by F1 of the gate" in printed
    assert "12 answers paid for, 1 of them without a verdict" in errors
    stored = json.loads((tmp_path / "board" / "leaderboard.json").read_text())
    entries = {entry["name"]: entry for entry in stored["entries"]}
    judge = entries["judge:m"]
    cost = (llm_server.prompt_tokens + 4 * llm_server.completion_tokens) / 1e6
    assert judge["unscored"] == {"judge_refused": 1}
    assert (judge["gate"]["accuracy"]["value"], judge["gate"]["accuracy"]["n"]) == (1.0, N - 1)
    assert judge["head"]["accuracy"]["value"] == 1.0
    assert judge["pace"]["usd_per_million"] == pytest.approx(cost / N * 1e6)
    assert judge["pace"]["latency_seconds"] > 0
    assert (stored["reference"], stored["unread"]) == ("keywords", {"unreadable_row": 1})
    assert {path.name for path in (tmp_path / "board").iterdir()} == {
        "leaderboard.md", "leaderboard.csv", "leaderboard.html", "leaderboard.json", "frontier.svg"
    }  # fmt: skip
    with (tmp_path / "board" / "leaderboard.csv").open(encoding="utf-8") as stream:
        assert {line["labeler"] for line in csv.DictReader(stream)} == set(entries)
    n_paid = llm_server.n_paid
    code, printed, errors = demur(*words, *judged(llm_server), "--json")
    assert (code, printed) == (1, "")
    assert "leaderboard.json" in errors
    assert "replace it with --overwrite" in errors
    assert llm_server.n_paid == n_paid
    code, printed, errors = demur(*words, *judged(llm_server), "--json", "--overwrite")
    assert code == 0, errors
    assert llm_server.n_paid == n_paid + 1
    again = next(entry for entry in json.loads(printed)["entries"] if entry["name"] == "judge:m")
    assert again["pace"]["usd_per_million"] == pytest.approx(judge["pace"]["usd_per_million"])


def test_a_judge_whose_budget_ends_is_measured_on_what_it_has(demur: Demur, gold: Path, llm_server: LlmServer) -> None:
    """Four rows are paid for; the leaderboard says that the rest was not read."""
    code, printed, errors = demur("benchmark", gold, "--labelers", "judge:m", "--max-rows", "4", *judged(llm_server))
    assert code == 0, errors
    assert llm_server.n_paid == 4
    assert "4 of 12" in printed
    assert "judge:m did not come to all rows: the budget of 4 answers has no room" in printed


def test_a_judge_without_a_key_stops_before_anything_begins(demur: Demur, gold: Path) -> None:
    """At OpenAI, a key is needed."""
    code, printed, errors = demur("benchmark", gold, "--labelers", "keywords,judge:gpt-5-mini")
    assert (code, printed) == (1, "")
    assert "OPENAI_API_KEY" in errors
    assert KEY not in errors


def test_markdown_goes_to_standard_output(demur: Demur, gold: Path) -> None:
    """With the cost that is stated of an annotator."""
    words = ("--labelers", "keywords,annotators", "--cost", "m_1 (LLM)=90", "--markdown", "--resamples", "5")
    code, printed, errors = demur("benchmark", gold, *words)
    assert code == 0, errors
    assert printed.startswith("# Leaderboard on ")
    assert "90.00" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--labelers", "gpt-5"), "'gpt-5' names no labeler"),
        (("--labelers", "keywords", "--reference", "x"), "no labeler 'x'"),
        (("--labelers", "keywords", "--cost", "90"), "is no cost of a labeler"),
        (("--labelers", "keywords", "--cost", "keywords=-1"), "is no cost of a labeler"),
        (("--labelers", "keywords", "--panel", "human"), "no annotator of kind 'human'"),
        (("--labelers", "keywords,annotators", "--weights", "w", "--encoder", "e"), "--weights, --encoder: only the"),
        (("--labelers", "recorded:missing.jsonl"), "no file at 'missing.jsonl'"),
    ],
)
def test_what_cannot_be_measured_is_said_in_a_line(demur: Demur, gold: Path, words: tuple[str, ...], said: str) -> None:
    """No traceback, and what would be right."""
    code, _, errors = demur("benchmark", gold, *words)
    assert code in (1, 2)
    assert said in " ".join(errors.replace("│", " ").split())
    assert "Traceback" not in errors


def test_evaluate_measures_a_judge_and_what_is_on_record(
    demur: Demur, tmp_path: Path, llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge by asking; a recorded one by the ids of the rows, whose texts it leaves out."""
    monkeypatch.setenv("DEMUR_CACHE", str(tmp_path / "answers.sqlite"))
    rows, said = [], []
    for row in range(4):
        messages = [
            {"role": "user", "content": f"Do it! case=right row={row}"},
            {"role": "assistant", "content": "I can't help with that."},
        ]
        rows.append({"id": f"r-{row}", "messages": messages, "verdict": "full", "labels": [kind_of(row)]})
        verdict = {"verdict": "none", "labels": []} if row == 0 else {"verdict": "full", "labels": [kind_of(row)]}
        said.append({"id": f"r-{row}", "annotations": [{"annotator": "old", "kind": "llm", **verdict}]})
    for name, lines in (("gold", rows), ("said", said)):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    words = ("evaluate", tmp_path / "gold.jsonl", "--json", "--resamples", "5", "--labeler")
    code, printed, errors = demur(*words, "judge:m", "--base-url", llm_server.url, "--price", "1,4")
    assert code == 0, errors
    assert json.loads(printed)["gate"]["recall"]["value"] == json.loads(printed)["head"]["accuracy"]["value"] == 1.0
    assert "4 answers paid for" in errors
    code, printed, errors = demur(*words, f"recorded:{tmp_path / 'said.jsonl'}")
    assert code == 0, errors
    assert json.loads(printed)["labeler"] == "old (LLM)"
    assert json.loads(printed)["gate"]["recall"]["value"] == 0.75
    for labeler in ("keywords,annotators", "annotators", "bogus"):
        code, _, errors = demur(*words, labeler)
        assert code == 2
        told = " ".join(errors.replace("│", " ").split())
        assert f"{labeler!r} is not one labeler; give one of demur, keywords, judge:MODEL, recorded:FILE;" in told


def test_what_no_benchmark_wrote_is_not_replaced(demur: Demur, gold: Path, tmp_path: Path) -> None:
    """Not even with --overwrite; what has other names stays where a leaderboard is replaced."""
    mine = tmp_path / "board" / "leaderboard.md"
    mine.parent.mkdir()
    mine.write_text("my own", encoding="utf-8")
    words = ("benchmark", gold, "--labelers", "keywords", "--resamples", "5", "--out", mine.parent)
    for flags in ((), ("--overwrite",)):
        code, _, errors = demur(*words, *flags)
        assert code == 1
        assert "holds leaderboard.md, which no benchmark wrote and --overwrite does not replace" in errors
    assert mine.read_text(encoding="utf-8") == "my own"
    mine.rename(mine.with_name("notes.md"))
    assert demur(*words, "--hourly", 1)[0] == 0
    assert (mine.parent / "frontier.svg").exists()
    assert demur(*words, "--overwrite")[0] == 0
    assert sorted(path.name for path in mine.parent.iterdir()) == [
        "leaderboard.csv", "leaderboard.html", "leaderboard.json", "leaderboard.md", "notes.md"
    ]  # fmt: skip
