"""`demur synth generate` as people run it: planned, checked, stopped, killed and gone on with."""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from demur.data.labelled import read_labelled
from demur.studies.holding import held
from demur.synthesis.journal import Places
from demur.synthesis.plan import Plan
from demur.synthesis.recipe import SynthesisRecipe
from tests.llm_server import KEY, Door, LlmServer, Response
from tests.processes import start, wait_for
from tests.synthesis.bank import ALWAYS, GIVEN_UP, NEVER_KEPT, ONCE, PASSING, Bank

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from demur.taxonomy import Taxonomy

    Demur = Callable[..., tuple[int, str, str]]

PRICE = ("--price", "1,4")
CONCURRENCY = 8


def opened_bank(server: LlmServer, recipe: str, taxonomy: Taxonomy, **options: Any) -> Bank:
    """Let a server write and judge what a recipe plans."""
    bank = Bank(Plan.of(SynthesisRecipe.load(recipe, taxonomy)).cells, **options)
    server.rejects = bank
    return bank


def words_of(recipe: str, server: LlmServer, folder: Path) -> tuple[str | Path, ...]:
    """Return the command line that generates into a folder."""
    out = folder / "rows.jsonl"
    return ("synth", "generate", recipe, "--model", "m", "--base-url", server.url, *PRICE, "--out", out)


def lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def require_all_accounted_for(folder: Path, bank: Bank) -> dict[str, Any]:
    """Check rows and rejects against what the bank did with each planned row; return the report."""
    rows, rejects = lines(folder / "rows.jsonl"), lines(folder / "rows.rejects.jsonl")
    report: dict[str, Any] = json.loads((folder / "rows.report.json").read_text(encoding="utf-8"))
    lost = [name for name, case in bank.cases.items() if case in ALWAYS]
    assert [row["id"] for row in rows] == [name for name in bank.cells if name not in lost]
    failed = [(line["id"], line["attempt"], line["reason"]) for line in rejects]
    once = [(name, 1, ONCE[case]) for name, case in bank.cases.items() if case in ONCE]
    always = [(name, i, ALWAYS[bank.cases[name]]) for name in lost for i in (1, 2, 3)]
    assert sorted(failed) == sorted([*once, *always])
    assert all((line["fate"] == "given_up") == (line["reason"] in GIVEN_UP) for line in rejects)
    counts = report["accounts"]
    n_given_up = sum(case == "barred" for case in bank.cases.values())
    assert (counts["planned"], counts["kept"], counts["pending"]) == (len(bank.cells), len(rows), 0)
    assert (counts["rejected"], counts["given_up"]) == (len(lost) - n_given_up, n_given_up)
    assert counts["planned"] == counts["kept"] + counts["rejected"] + counts["given_up"]
    assert counts["reasons"] == Counter(line["reason"] for line in rejects)
    for part in ("planned", "kept", "rejected", "given_up"):
        assert sum(each[part] for each in report["by_category"].values()) == counts[part]
    return report


def test_sixteen_kinds_of_fifty_rows_survive_a_kill_with_every_reject_accounted_for(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """The shipped recipe against a server that misbehaves in every way; killed in the middle, and gone on with."""
    bank = opened_bank(llm_server, "balanced", taxonomy)
    assert {*PASSING, *ONCE, *ALWAYS, "plain"} == set(bank.cases.values())
    words = words_of("balanced", llm_server, tmp_path)
    door = Door(llm_server, 700, bank.paid.total)
    with start(tmp_path, *words) as process:
        wait_for(lambda: bool(door.waiting), seconds=600)
        door.let_in()
        process.send_signal(signal.SIGKILL)
    door.take_away()
    before = bank.paid.copy()
    code, printed, errors = demur(*words, "--resume")
    assert code == 0, errors
    report = require_all_accounted_for(tmp_path, bank)
    assert f"800 planned = {report['accounts']['kept']} kept + " in printed
    # Nothing that can be used is paid for twice, but for what was under way when the process was killed.
    twice = [asked for asked, n in bank.paid.items() if n > 1]
    assert max(bank.paid.values()) == 2
    assert {asked for asked in twice if asked.attempt == 1} <= before.keys()
    assert sum(bank.cases[asked.id] not in NEVER_KEPT for asked in twice) <= CONCURRENCY
    kept = {row["id"]: row for row in lines(tmp_path / "rows.jsonl")}
    for name, row in kept.items():
        cell = bank.cells[name]
        assert (row["category"], row["leaf"], row["verdict"]) == (cell.category, cell.leaf, cell.verdict)
        assert row["labels"] == ([] if cell.verdict == "none" else [cell.category])
        assert row["provenance"]["axes"] == cell.axes
    assert len(read_labelled(tmp_path / "rows.jsonl", taxonomy)) == len(kept)
    assert {each["planned"] for each in report["by_category"].values()} == {50}
    assert all(each["kept"] for values in report["coverage"].values() for each in values.values())
    assert report["warnings"] == []


def test_rows_carry_their_provenance_and_secrets_are_written_nowhere(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recipe, prompt, taxonomy, models, seed, attempt and axes; another model judges, with a key of its own."""
    bank = opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    monkeypatch.setenv("MY_KEY", KEY)
    further = ("--key-env", "MY_KEY", "--judge-model", "j", "--judge-price", "2,8")
    code, printed, errors = demur(*words_of("small", llm_server, tmp_path), *further)
    assert code == 0, errors
    recipe = SynthesisRecipe.load("small", taxonomy)
    rows = lines(tmp_path / "rows.jsonl")
    assert len(rows) == 8
    for row in rows:
        cell, found = bank.cells[row["id"]], row["provenance"]
        assert found["recipe"] == {"name": "small", "sha256": recipe.sha256}
        assert found["prompt"].startswith("row-1/")
        assert found["check"].startswith("check-1/")
        assert (found["model"], found["judge"]) == ("m", "j")
        assert found["taxonomy"] == taxonomy.fingerprint
        assert (found["seed"], found["attempt"], found["axes"]) == (cell.seed, 1, cell.axes)
    assert bank.models == {("writer", "m"): 8, ("judge", "j"): 8}
    sent = [body for body in llm_server.bodies if body["model"] == "m"]
    assert {body["seed"] for body in sent} == {cell.seed for cell in bank.cells.values()}
    assert "harmful_detail" in json.dumps(next(body for body in llm_server.bodies if body["model"] == "j"))
    assert llm_server.authorizations == {f"Bearer {KEY}"}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    # 8 answers of 100 tokens in and 10 out: 8 (100 + 4 · 10) / 10⁶ USD, and twice that.
    assert "0.0011 USD" in printed
    assert "0.0022 USD" in printed


@pytest.mark.parametrize(("given", "seed"), [("null", None), ("7", 7)])
def test_provenance_names_the_seed_that_was_sent(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy, given: str, seed: int | None
) -> None:
    """None, or one for all, where a parameter says so."""
    opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    code, _, errors = demur(*words_of("small", llm_server, tmp_path), "--parameter", f"seed={given}")
    assert code == 0, errors
    sent = [body.get("seed") for body in llm_server.bodies if "harmful_detail" not in json.dumps(body)]
    assert sent == [seed] * 8
    assert {row["provenance"]["seed"] for row in lines(tmp_path / "rows.jsonl")} == {seed}


def test_a_budget_is_one_for_both_models_and_a_larger_one_goes_on(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Eight rows written, and three judged; then all; the rows so far can be read in between."""
    bank = opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    words = words_of("small", llm_server, tmp_path)
    code, printed, errors = demur(*words, "--max-answers", 11)
    assert code == 1
    assert "11 answers were paid for" in errors
    assert bank.paid.total() == 11
    assert "8 planned = 3 kept + 0 rejected + 0 given up + 5 pending" in printed
    assert len(lines(tmp_path / "rows.jsonl")) == 3
    code, _, errors = demur(*words, "--max-answers", 16)
    assert code == 1
    assert "go on with --resume, or replace it with --overwrite" in errors
    code, printed, errors = demur(*words, "--max-answers", 16, "--resume")
    assert code == 0, errors
    assert "8 planned = 8 kept + 0 rejected + 0 given up\n" in printed
    assert set(bank.paid.values()) == {1}
    # A limit of cost holds for both, too: a row of 4,096 tokens at 4 USD for a million may cost 0.016 USD and more.
    code, _, errors = demur(*words, "--max-cost", 0.01, "--overwrite", "--cache", tmp_path / "other.sqlite")
    assert code == 1
    assert "0 answers were paid for" in errors
    assert bank.paid.total() == 16


def test_a_small_budget_is_not_spent_on_writing_alone(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Two rows are written and judged, then four are written and two judged."""
    opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    code, printed, _ = demur(*words_of("small", llm_server, tmp_path), "--concurrency", 2, "--max-answers", 10)
    assert code == 1
    assert "8 planned = 4 kept + 0 rejected + 0 given up + 4 pending" in printed


def test_a_missing_price_is_asked_for_by_its_option(demur: Demur, tmp_path: Path) -> None:
    """That of the writer was given; the one of another judge has its own."""
    words = (
        "synth",
        "generate",
        "small",
        "--model",
        "m",
        "--judge-model",
        "j",
        "--price",
        "1,4",
        "--out",
        tmp_path / "r.jsonl",
    )
    code, _, errors = demur(*words, "--max-cost", 1)
    assert code == 1
    assert "no price of model 'j' is known" in errors
    assert "is given with --judge-price" in errors
    _, printed, errors = demur(*words, "--dry-run")
    assert "give --judge-price INPUT,OUTPUT" in printed + errors


def test_a_dry_run_shows_the_plan_and_asks_nothing(demur: Demur, llm_server: LlmServer) -> None:
    """Rows by category, values by axis, tokens and cost; no key is needed."""
    words = ("synth", "generate", "balanced", "--dry-run", "--base-url", llm_server.url)
    code, printed, errors = demur(*words, "--model", "gpt-4o-mini")
    assert code == 0, errors
    assert "balanced: 800 rows in 16 categories" in printed
    assert "privacy                      50 rows: 25 full, 13 partial, 12 none; 50 leaves" in printed
    assert "register, rows of a category: plain 10, polite 10, casual 10, upset 10, professional 10" in printed
    assert "alternative (full), rows of a category: offered 12-13, absent 12-13" in printed
    costs = [line for line in printed.splitlines() if "cost: about" in line]
    assert [line.split(":")[0] for line in costs] == ["write", "judge"]
    assert all(0.1 < float(line.split()[3]) < 2 for line in costs)
    assert not llm_server.bodies


def test_a_dry_run_holds_both_models_to_one_budget(demur: Demur, llm_server: LlmServer) -> None:
    """Eight rows to write and eight to judge: of twelve answers, four are judgements, though either part would fit."""
    words = ("synth", "generate", "small", "--dry-run", "--model", "m", "--base-url", llm_server.url, *PRICE)

    def budget_lines(*limit: object) -> list[str]:
        code, printed, errors = demur(*words, *limit)
        assert code == 0, errors
        return [line for line in printed.splitlines() if "budget" in line]

    assert budget_lines("--max-answers", 12) == ["judge: budget: stops after 4 of 8 answers"]
    assert budget_lines("--max-answers", 16) == []
    costs = [line.split() for line in demur(*words)[1].splitlines() if "cost: about" in line]
    usual, most = (sum(float(words[i]) for words in costs) for i in (3, 7))
    assert [line.split(",")[0] for line in budget_lines("--max-cost", most - 0.001)] == ["judge: budget: holds for all"]
    assert budget_lines("--max-cost", most + 0.001) == []
    assert usual < most


def test_a_dry_run_that_would_begin_anew_does_not_count_what_was_spent(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Sixteen answers were paid for: they count with --resume alone."""
    opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    words = words_of("small", llm_server, tmp_path)
    assert demur(*words)[0] == 0
    others = (*words, "--parameter", "top_p=0.5", "--judge-parameter", "top_p=0.5", "--max-answers", 16, "--dry-run")
    assert "budget" not in demur(*others, "--overwrite")[1]
    assert "write: budget: stops after 0 of 8 answers" in demur(*others, "--resume")[1]


def test_by_the_batch_api_rows_are_written_and_then_judged(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """The first of each is asked directly, the rest as a batch each; half price is the provider's."""
    bank = opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    code, printed, errors = demur(*words_of("small", llm_server, tmp_path), "--batch", "--poll", "0.01")
    assert code == 0, errors
    assert "8 planned = 8 kept" in printed
    assert [len(llm_server.files[each["input_file_id"]].splitlines()) for each in llm_server.batches.values()] == [7, 7]
    assert set(bank.paid.values()) == {1}


def test_what_was_given_up_is_asked_for_again(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Barred by the provider one day, and not the next."""
    bank = opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    first = next(iter(bank.cells))
    bank.cases[first] = "barred"
    words = words_of("small", llm_server, tmp_path)
    _, printed, _ = demur(*words)
    assert "8 planned = 7 kept + 0 rejected + 1 given up" in printed
    assert "attempts that failed: 2 provider_refused" in printed
    bank.cases[first] = "plain"
    _, printed, _ = demur(*words, "--resume")
    assert "8 planned = 8 kept + 0 rejected + 0 given up" in printed
    assert not (tmp_path / "rows.rejects.jsonl").read_text()
    assert bank.paid.total() == 16


def test_what_was_given_up_before_it_was_rejected_is_asked_for_again(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Barred at the first attempt and rejected at the last: the first is made again, and the other is not."""
    bank = opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    first = next(iter(bank.cells))

    def changeable(body: dict[str, Any]) -> Response:
        question = body["messages"][-1]["content"]
        if question.startswith(f"Plan of row {first}, version "):
            bank.cases[first] = "barred" if question.startswith(f"Plan of row {first}, version 1:") else "stubborn"
        return bank(body)

    llm_server.rejects = changeable
    words = words_of("small", llm_server, tmp_path)
    _, printed, _ = demur(*words)
    assert "8 planned = 7 kept + 1 rejected + 0 given up" in printed
    assert "attempts that failed: 1 provider_refused, 1 verdict_differs" in printed
    llm_server.rejects = bank
    bank.cases[first] = "plain"
    _, printed, _ = demur(*words, "--resume")
    assert "8 planned = 8 kept + 0 rejected + 0 given up" in printed
    assert [(line["id"], line["attempt"]) for line in lines(tmp_path / "rows.rejects.jsonl")] == [(first, 2)]
    assert set(bank.paid.values()) == {1}


def test_rejects_stand_in_the_order_of_the_plan_however_often_a_run_was_stopped(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Those that no judge sees are decided first, and a stop comes between the others: the bytes are the same."""
    bank = opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    names = list(bank.cells)
    bank.cases.update({names[1]: "stubborn", names[3]: "long", names[5]: "verdict"})
    found = []
    for name, limits in (("whole", ()), ("stopped", ("--max-answers", 11))):
        folder = tmp_path / name
        folder.mkdir()
        words = (*words_of("small", llm_server, folder), "--cache", folder / "answers.sqlite")
        assert demur(*words, *limits)[0] == (1 if limits else 0)
        if limits:
            code, _, errors = demur(*words, "--resume")
            assert code == 0, errors
        rejects = folder / "rows.rejects.jsonl"
        attempts = [(names.index(line["id"]), line["attempt"]) for line in lines(rejects)]
        assert attempts == [(1, 1), (1, 2), (3, 1), (5, 1)]
        found.append(rejects.read_bytes())
    assert found[0] == found[1]


def test_rows_of_given_files_are_not_written_again(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """What an earlier run wrote is avoided before anybody judges it; a resumed run avoids the same, or is none."""
    opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    words = words_of("small", llm_server, tmp_path)
    assert demur(*words)[0] == 0
    corpus = (tmp_path / "rows.jsonl").rename(tmp_path / "corpus.jsonl")
    with corpus.open("a") as file:
        file.write('{"id": "textless"}\n')
    code, printed, errors = demur(*words, "--avoid", corpus, "--overwrite")
    assert code == 0, errors
    assert "avoiding 8 rows of" in errors
    assert "1 could not be read" in errors
    # A second attempt is another text, which the corpus does not hold.
    assert "8 planned = 8 kept" in printed
    assert "attempts that failed: 8 avoided" in printed
    assert lines(tmp_path / "rows.rejects.jsonl")[0]["detail"].startswith(f"exchange of {corpus}:1 (1.00)")
    code, _, errors = demur(*words, "--resume")
    assert code == 1
    assert "something changed: 'avoided'" in errors


def test_a_run_into_a_folder_to_be_avoided_goes_on(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Its own rows are not among those to be avoided, nor are they where it begins anew; what else is there is."""
    opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    (tmp_path / "other.jsonl").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    words = (*words_of("small", llm_server, tmp_path), "--avoid", tmp_path)
    assert demur(*words, "--max-answers", 11)[0] == 1
    assert lines(tmp_path / "rows.jsonl")
    for further in ("--resume", "--overwrite"):
        code, printed, errors = demur(*words, further)
        assert code == 0, errors
        assert "avoiding 1 rows of" in errors
        assert "8 planned = 8 kept" in printed
        assert "attempts that failed" not in printed


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.rejects.jsonl", "rows.journal.jsonl"])
def test_a_run_cannot_avoid_what_it_writes(
    demur: Demur, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """By whatever path it is named; nothing is sent or written."""
    monkeypatch.chdir(tmp_path)
    words = ("synth", "generate", "small", "--model", "m", "--out", "rows.jsonl", "--avoid", tmp_path / name)
    code, _, errors = demur(*words)
    assert code == 2
    assert f"{name}' is written by this run" in " ".join(errors.split())
    assert not list(tmp_path.glob("rows*"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("small", "--model", "m"), 2, "--out"),
        (("small", "--out", "rows.jsonl"), 2, "names no model"),
        (("small", "--model", "m", "--out", "rows.csv"), 1, "ends in .jsonl"),
        (("small", "--model", "m", "--out", "rows.jsonl"), 1, "OPENAI_API_KEY is not set"),
        (("tiny", "--model", "m", "--out", "rows.jsonl"), 1, "'balanced', 'small'"),
        (("none.yaml", "--model", "m", "--out", "rows.jsonl"), 1, "none.yaml: no such file"),
        (("small", "--model", "m", "--out", "rows.jsonl", "--avoid", "none"), 1, "no file at 'none'"),
        (("small", "--model", "m", "--out", "rows.jsonl", "--max-cost", "1"), 1, "no price of model 'm' is known"),
    ],
)
def test_what_cannot_be_run_is_answered_before_anything_is_sent(
    demur: Demur, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, said: str
) -> None:
    """Usage errors exit with 2, others with 1; nothing is written."""
    monkeypatch.chdir(tmp_path)
    found, _, errors = demur("synth", "generate", *words)
    assert found == code
    assert said in errors
    assert not list(tmp_path.glob("rows*"))


def test_a_run_that_is_under_way_is_joined_by_no_other(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """A second one would not know what the first decides, and what that was charged would be forgotten."""
    bank = opened_bank(llm_server, "small", taxonomy, is_wayward=False)
    words = words_of("small", llm_server, tmp_path)
    assert demur(*words, "--max-answers", 11)[0] == 1
    journal = (tmp_path / "rows.journal.jsonl").read_bytes()
    with held(tmp_path / "rows.jsonl", Places(tmp_path / "rows.jsonl").lock):
        for further in ("--resume", "--overwrite"):
            code, _, errors = demur(*words, further)
            assert code == 1
            assert "is being written by another run" in errors
    assert (tmp_path / "rows.journal.jsonl").read_bytes() == journal
    code, printed, errors = demur(*words, "--resume")
    assert code == 0, errors
    assert "8 planned = 8 kept" in printed
    assert bank.paid.total() == 16


def test_a_file_that_no_run_wrote_is_never_replaced(
    demur: Demur, llm_server: LlmServer, tmp_path: Path, taxonomy: Taxonomy
) -> None:
    """Neither rows nor a journal of somebody else's; not even with --overwrite."""
    opened_bank(llm_server, "small", taxonomy)
    words = words_of("small", llm_server, tmp_path)
    (tmp_path / "rows.jsonl").write_text("mine")
    for further in ((), ("--resume",), ("--overwrite",)):
        code, _, errors = demur(*words, *further)
        assert code == 1
        assert "not written by a run" in errors
    (tmp_path / "rows.journal.jsonl").write_text('{"mine": 1}\n')
    for further in ((), ("--resume",), ("--overwrite",)):
        code, _, errors = demur(*words, *further)
        assert code == 1
        assert "is no journal" in errors
    assert (tmp_path / "rows.jsonl").read_text() == "mine"
    assert not llm_server.bodies
