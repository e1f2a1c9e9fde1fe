"""The command line end to end with a tiny model: what it writes, what it prints, and how it fails."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from demur import audit
from demur.cli.auditing import print_summary
from demur.stats.numbers import percent
from demur.stats.shares import Share

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Demur = Callable[..., tuple[int, str, str]]
    Interrupted = Callable[[], AbstractContextManager[None]]

OUTPUTS = {"composition.json", "report.html", "report.md", "verdicts.parquet"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Write six conversations and one broken line."""
    lines = [
        json.dumps({"prompt": f"Please draw a {thing}.", "response": reply})
        for thing in ("lock", "song", "bread")
        for reply in ("Sorry, I am unable to draw.", "Sure, here is how you draw it.")
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*lines[:3], '{"prompt": "cut off', *lines[3:]]) + "\n", encoding="utf-8")
    return path


def test_an_audit_writes_verdicts_composition_and_reports(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """Six replies are judged, and the broken row is counted as unscored at its position."""
    code, printed, errors = demur("audit", source, "--out", tmp_path / "audit", "--weights", tiny_weights)
    assert code == 0, errors
    composition = json.loads((tmp_path / "audit" / "composition.json").read_text())
    assert printed.startswith(f"{composition['refusals']} of 6 scored replies refuse")
    share = Share(composition["refusals"], 6, composition["design_effect"])
    assert f": {percent(share.share, share.interval)} (" in printed
    assert "unscored: unreadable_row 1" in printed
    assert {file.name for file in (tmp_path / "audit").iterdir()} >= OUTPUTS
    table = pq.read_table(tmp_path / "audit" / "verdicts.parquet").to_pylist()
    assert [row["row_id"] for row in table] == list(range(7))
    assert [row["verdict"] for row in table].count("unscored") == 1
    assert table[3]["unscored_reason"] == "unreadable_row"
    assert composition["rows"] == 7
    assert composition["refusals"] == sum(row["verdict"] in ("full", "partial") for row in table)
    assert sum(kind["count"] for kind in composition["categories"].values()) == composition["refusals"]


def test_the_package_is_a_command_too() -> None:
    """`python -m demur` is `demur`."""
    command = [sys.executable, "-m", "demur", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.strip().endswith(version("demur"))


def test_a_second_audit_does_not_mix_with_the_first(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """A folder that holds another audit is refused, unless it is to be replaced."""
    words = ("audit", source, "--out", tmp_path / "audit", "--weights", tiny_weights)
    assert demur(*words)[0] == 0
    code, _, errors = demur(*words, "--limit", 2)
    assert code == 1
    assert "--overwrite" in errors
    assert demur(*words, "--limit", 2, "--overwrite")[0] == 0


def test_strict_stops_at_the_broken_row(demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path) -> None:
    """The error names file and line."""
    code, _, errors = demur("audit", source, "--out", tmp_path / "audit", "--weights", tiny_weights, "--strict")
    assert code == 1
    assert f"{source}:4" in errors


def test_a_threshold_of_one_finds_no_refusals(demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path) -> None:
    """The threshold decides, not the weights' own."""
    out = tmp_path / "audit"
    assert demur("audit", source, "--out", out, "--weights", tiny_weights, "--threshold", "1")[0] == 0
    assert json.loads((out / "composition.json").read_text())["refusals"] == 0


@pytest.mark.parametrize("policy", ["strict", "standard", "broad"])
def test_a_policy_is_recorded_shown_and_counted_by(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path, policy: str
) -> None:
    """In the manifest, the composition and the report; refusals are the outcomes that count, whatever was said."""
    out = tmp_path / "audit"
    code, printed, errors = demur("audit", source, "--out", out, "--weights", tiny_weights, "--policy", policy)
    assert code == 0, errors
    assert (f"policy {policy}" in printed) is (policy != "standard")
    assert json.loads((out / "manifest.json").read_text())["policy"] == policy
    outcomes = [row["verdict"] for row in pq.read_table(out / "verdicts.parquet").to_pylist()]
    composition = json.loads((out / "composition.json").read_text())
    n_partial = outcomes.count("partial") if policy != "strict" else 0
    assert composition["refusals"] == outcomes.count("full") + n_partial
    assert composition["policy"] == policy
    assert f"- Policy: {policy}" in (out / "report.md").read_text(encoding="utf-8")


def test_classify_and_evaluate_take_a_policy(demur: Demur, labelled_file: Path, tiny_weights: Path) -> None:
    """Classify says whether the reply counts; evaluate measures under the policy, keywords too."""
    words = ("classify", "--json", "--policy", "strict", "--weights", tiny_weights, "Sorry, I cannot tell.")
    found = json.loads(demur(*words)[1])
    assert (found["policy"], found["is_refusal"]) == ("strict", found["verdict"] == "full")
    for options in (("--weights", tiny_weights), ("--labeler", "keywords")):
        code, printed, errors = demur("evaluate", labelled_file, *options, "--policy", "strict", "--json")
        assert code == 0, errors
        evaluated = json.loads(printed)
        assert evaluated["policy"] == "strict"
        # Of the 64 hand-made rows, 8 of the 32 refusals are partial.
        counts = evaluated["gate"]["counts"]
        assert counts["true_positives"] + counts["false_negatives"] == 24


def test_broad_is_asked_of_the_classifier_alone(
    demur: Demur, labelled_file: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """A keyword list and a judge have no threshold that it could lower."""
    code, printed, errors = demur("evaluate", labelled_file, "--weights", tiny_weights, "--policy", "broad", "--json")
    assert (code, json.loads(printed)["policy"]) == (0, "broad"), errors
    code, _, errors = demur("evaluate", labelled_file, "--labeler", "keywords", "--policy", "broad")
    assert code == 2
    assert "broad lowers a threshold" in errors
    words = ("judge", labelled_file, "--model", "m", "--out", tmp_path / "out", "--policy", "broad")
    code, _, errors = demur(*words)
    assert code == 2
    assert "is not one of 'strict', 'standard'" in errors


@pytest.mark.parametrize("threshold", ["2", "-0.1"])
def test_a_threshold_that_is_no_probability_is_refused(
    demur: Demur, source: Path, tmp_path: Path, threshold: str
) -> None:
    """Usage errors exit with 2, as everywhere."""
    code, _, errors = demur("audit", source, "--out", tmp_path / "audit", "--threshold", threshold)
    assert code == 2
    assert "probability" in errors


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("missing.jsonl", None, "missing.jsonl"),
        ("empty.jsonl", b"", "empty"),
        ("garbage.jsonl", bytes(range(256)) * 40, "garbage.jsonl"),
        ("columns.jsonl", b'{"alpha": 1, "beta": 2}\n', "alpha"),
        ("table.xlsx", b"x", "xlsx"),
    ],
    ids=["a missing file", "an empty file", "garbage bytes", "unknown columns", "an unknown ending"],
)
def test_a_source_that_cannot_be_audited_is_answered_clearly(
    demur: Demur, tiny_weights: Path, tmp_path: Path, name: str, content: bytes | None, expected: str
) -> None:
    """One line of error that names what was met; no traceback, and exit code 1."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    code, _, errors = demur("audit", path, "--out", tmp_path / "audit", "--weights", tiny_weights)
    assert code == 1
    assert expected in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}]}, "no_assistant_turn"),
        ({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None}]}, "null_content"),
        ({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": " "}]}, "empty_reply"),
    ],
    ids=["no assistant turn", "null content", "blank reply"],
)
def test_a_row_that_cannot_be_judged_is_unscored_with_its_reason(
    demur: Demur, tiny_weights: Path, tmp_path: Path, row: dict[str, object], reason: str
) -> None:
    """The row is counted, and the good rows beside it are judged."""
    good = {
        "messages": [{"role": "user", "content": "Hi \ud800"}, {"role": "assistant", "content": "Sure. " * 350_000}]
    }
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(row) + "\n", encoding="utf-8")
    out = tmp_path / "audit"
    code, _, errors = demur("audit", path, "--out", out, "--weights", tiny_weights)
    assert code == 0, errors
    composition = json.loads((out / "composition.json").read_text())
    assert composition["rows"] == 2
    assert composition["unscored"] == {reason: 1}


def test_an_unknown_encoder_is_answered_clearly(demur: Demur, source: Path, tmp_path: Path) -> None:
    """A name that is neither a folder nor a hub id is an error that says what would be one."""
    code, _, errors = demur("audit", source, "--out", tmp_path / "audit", "--encoder", "no-such-encoder")
    assert code == 1
    assert "no-such-encoder" in errors
    assert "owner/name" in errors


def test_damaged_weights_are_answered_clearly(demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path) -> None:
    """A weights file whose digest is not its manifest's is not loaded."""
    damaged = tmp_path / "weights"
    damaged.mkdir()
    for file in tiny_weights.iterdir():
        (damaged / file.name).write_bytes(file.read_bytes())
    (damaged / "weights.safetensors").write_bytes(b"cut off")
    code, _, errors = demur("audit", source, "--out", tmp_path / "audit", "--weights", damaged)
    assert code == 1
    assert "damaged" in errors


def test_a_taxonomy_with_a_duplicate_key_is_answered_clearly(demur: Demur, tmp_path: Path) -> None:
    """The error names the file and the key."""
    shipped = (Path(__file__).parents[2] / "taxonomy" / "refusals.yaml").read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(shipped.replace("key: privacy", "key: nsfw_content"), encoding="utf-8")
    code, _, errors = demur("taxonomy", "validate", path)
    assert code == 1
    assert "mine.yaml" in errors
    assert "nsfw_content" in errors


def test_classify_answers_for_one_conversation(demur: Demur, tiny_weights: Path) -> None:
    """The JSON holds verdict, probability and one probability a kind."""
    words = ("--prompt", "Please draw a lock.", "Sorry, I am unable to draw.", "--json", "--weights", tiny_weights)
    code, printed, errors = demur("classify", *words)
    assert code == 0, errors
    found = json.loads(printed)
    assert found["verdict"] in ("full", "partial", "none")
    assert 0 <= found["refusal_probability"] <= 1
    assert sum(found["category_probabilities"].values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("given", ["\ufeff{}", '"{}"', " {}\n"])
def test_classify_takes_off_what_is_around_a_reply(
    given: str, demur: Demur, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark that some shells begin a pipe with, and the quotation marks of a JSON string."""
    reply = "Sorry, I am unable to draw."
    words = ("classify", "--json", "--weights", tiny_weights)
    expected = demur(*words, reply)
    stream = io.TextIOWrapper(io.BytesIO(given.format(reply).encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert demur(*words) == expected


def test_a_warning_is_said_once(tmp_path: Path) -> None:
    """Though a short source is read to count its rows, and again to judge them."""
    (tmp_path / "rows.jsonl").write_text('{"prompt": "Q", "response": "No."}\n', encoding="utf-8")
    (tmp_path / "more.jsonl.bz2").touch()
    run = subprocess.run(
        [sys.executable, "-m", "demur", "audit", str(tmp_path), "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stderr.count("is left out") == 1


@pytest.fixture
def older_weights(tiny_weights: Path, tmp_path: Path) -> Path:
    """Return weights of before there were sets of kinds."""
    return _with_scores(tiny_weights, tmp_path / "older", None)


@pytest.fixture
def stating_weights(tiny_weights: Path, tmp_path: Path) -> Path:
    """Return weights that met 200 refusals, the true kind of each at a probability of 1."""
    return _with_scores(tiny_weights, tmp_path / "stating", [1.0] * 200)


def _with_scores(weights: Path, folder: Path, scores: list[float] | None) -> Path:
    shutil.copytree(weights, folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "held_out_kinds": scores}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("coverage", ["0.4999", "1", "nan", "-0.9"])
@pytest.mark.parametrize("command", ["audit", "classify", "evaluate"])
def test_a_coverage_that_cannot_be_stated_is_refused(
    demur: Demur, labelled_file: Path, tmp_path: Path, command: str, coverage: str
) -> None:
    """Usage errors exit with 2, say what would be right, and write nothing."""
    given = "No." if command == "classify" else labelled_file
    words = (command, given, *(("--out", tmp_path / "audit") if command == "audit" else ()))
    code, _, errors = demur(*words, "--coverage", coverage)
    assert code == 2
    assert "a number from 0.5 to 0.999" in " ".join(errors.replace("│", " ").split())
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize("command", ["audit", "classify", "evaluate"])
def test_weights_that_cannot_state_a_coverage_say_so(
    demur: Demur, labelled_file: Path, older_weights: Path, tmp_path: Path, command: str
) -> None:
    """Only where one is asked for: without the option, older weights do what they did."""
    out = ("--out", tmp_path / "audit") if command == "audit" else ()
    given = "No." if command == "classify" else labelled_file
    words = (command, given, "--weights", older_weights, *out)
    code, _, errors = demur(*words, "--coverage", "0.9")
    assert code == 1
    assert "older than sets of kinds" in errors
    code, _, errors = demur(*words)
    assert code == 0, errors


@pytest.mark.parametrize("labeler", ["keywords", "judge:m", "recorded:said.jsonl"])
@pytest.mark.parametrize(
    "words",
    [
        ("--coverage", "0.9"),
        ("--encoder", "embedded"),
        ("--engine", "torch"),
        ("--exact",),
        ("--threshold", "0.5"),
        ("--weights", "there"),
        ("--workers", "1"),
    ],
    ids=lambda words: words[0],
)
def test_what_only_the_classifier_heeds_is_not_ignored(
    demur: Demur, labelled_file: Path, labeler: str, words: tuple[str, ...]
) -> None:
    """Not even where it says what would hold anyway: who gives it believes that it does something."""
    code, printed, errors = demur("evaluate", labelled_file, "--labeler", labeler, *words)
    assert (code, printed) == (2, "")
    said = " ".join(errors.replace("│", " ").split())
    assert f"{words[0]}: only the labeler 'demur' heeds it, and what is measured is {labeler!r}" in said


@pytest.mark.parametrize(
    "command", [("evaluate", "--labeler"), ("benchmark", "--labelers")], ids=lambda words: words[0]
)
@pytest.mark.parametrize("labeler", ["demur", "keywords", "recorded:said.jsonl"])
@pytest.mark.parametrize(
    "words",
    [
        ("--base-url", "http://localhost:1/v1"),
        ("--batch",),
        ("--cache", "answers.sqlite"),
        ("--concurrency", "8"),
        ("--key-env", "KEY"),
        ("--max-cost", "1"),
        ("--max-rows", "1"),
        ("--parameter", "seed=7"),
        ("--poll", "1"),
        ("--price", "1,2"),
        ("--prices", "prices.yaml"),
        ("--prompt", "short"),
        ("--retries", "1"),
        ("--timeout", "9"),
    ],
    ids=lambda words: words[0],
)
def test_what_only_a_judge_heeds_is_not_ignored(
    demur: Demur, labelled_file: Path, command: tuple[str, str], labeler: str, words: tuple[str, ...]
) -> None:
    """A limit that limits nothing would be believed in."""
    name, option = command
    code, printed, errors = demur(name, labelled_file, option, labeler, *words)
    assert (code, printed) == (2, "")
    said = " ".join(errors.replace("│", " ").split())
    assert f"{words[0]}: only a judge (judge:MODEL) heeds it, and what is measured is {labeler!r}" in said


def test_a_judge_in_the_environment_is_none_that_is_asked_for(
    demur: Demur, labelled_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that stand there for `demur judge` are no options of this command."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("DEMUR_CACHE", str(tmp_path / "answers.sqlite"))
    code, _, errors = demur("evaluate", labelled_file, "--labeler", "keywords", "--resamples", "20")
    assert code == 0, errors


@pytest.mark.parametrize("command", ["agree", "benchmark"])
def test_a_kind_of_annotator_goes_with_a_crosswalk(demur: Demur, labelled_file: Path, command: str) -> None:
    """Rows of ours say themselves who annotated them."""
    code, printed, errors = demur(command, labelled_file, "--annotator-kind", "llm")
    assert (code, printed) == (2, "")
    assert "only labels that a crosswalk maps need it" in " ".join(errors.replace("│", " ").split())


def test_classify_judges_no_names_of_files(demur: Demur) -> None:
    """Whether or not the file is there."""
    code, printed, errors = demur("classify", "replies.jsonl")
    assert (code, printed) == (2, "")
    assert "'replies.jsonl' is named like a file" in " ".join(errors.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "opnai"), "no layout 'opnai'"),
        (("--field", "said=response"), "a conversation has no part 'said'"),
        (("--out", __file__), "is a file, and results need a folder"),
    ],
)
def test_mistakes_are_told_before_a_model_is_loaded(
    demur: Demur, labelled_file: Path, tmp_path: Path, words: tuple[str, str], said: str
) -> None:
    """To build an engine takes a minute; here, weights that are not there would be met first."""
    given = ("audit", labelled_file, "--weights", tmp_path / "none", "--out", tmp_path / "out")
    code, printed, errors = demur(*given, *words)
    assert (code, printed) == (1, "")
    assert said in errors


@pytest.mark.parametrize("command", ["agree", "benchmark", "evaluate"])
def test_one_form_is_printed(demur: Demur, labelled_file: Path, command: str) -> None:
    """The other would be dropped without a word."""
    code, printed, errors = demur(command, labelled_file, "--json", "--markdown")
    assert (code, printed) == (2, "")
    assert "--json, --markdown: one of them can be printed" in " ".join(errors.replace("│", " ").split())


def test_classify_shows_the_set_of_kinds(demur: Demur, stating_weights: Path, older_weights: Path) -> None:
    """From a probability of 1 on, the main kind alone; at 99.9 % 200 refusals are too few; older weights show none."""
    words = ("classify", "--prompt", "Please draw a lock.", "Sorry, I am unable to draw.", "--threshold", "0")
    found = json.loads(demur(*words, "--weights", stating_weights, "--json")[1])
    assert (found["category_set"], found["resolution"], found["coverage"]) == ([found["category"]], "kind", 0.9)
    assert f"\n{found['category']} at 90%: " in demur(*words, "--weights", stating_weights)[1]
    printed = demur(*words, "--weights", stating_weights, "--coverage", "0.999")[1]
    assert "undetermined at 99.9%: 200 held-out refusals, and it takes 999" in printed
    older = json.loads(demur(*words, "--weights", older_weights, "--json")[1])
    assert (older["category_set"], older["resolution"], older["coverage"]) == ([], None, None)


def test_an_audit_states_its_coverage_and_resumes_under_no_other(
    demur: Demur, source: Path, stating_weights: Path, tmp_path: Path
) -> None:
    """0.9 unless told otherwise; every refusal has a set, and their resolutions add up to the refusals."""
    words = ("audit", source, "--weights", stating_weights, "--out", tmp_path / "audit", "--threshold", "0")
    assert demur(*words)[0] == 0
    composition = json.loads((tmp_path / "audit" / "composition.json").read_text())
    assert composition["category_sets"] == {"coverage": 0.9, "n": 200, "least": 1.0}
    counts = {name: share["count"] for name, share in composition["resolutions"].items()}
    assert counts == {"kind": composition["refusals"], "group": 0, "undetermined": 0}
    rows = pq.read_table(tmp_path / "audit" / "verdicts.parquet").to_pylist()
    assert all(row["category_set"] == ([row["category"]] if row["category"] else []) for row in rows)
    code, _, errors = demur(*words, "--coverage", "0.8", "--resume")
    assert code == 1
    assert "category_sets.coverage was 0.9 and is 0.8" in errors


def test_evaluate_measures_the_sets(demur: Demur, labelled_file: Path, stating_weights: Path) -> None:
    """Sets of the main kind alone are as often right as the head."""
    words = ("evaluate", labelled_file, "--weights", stating_weights, "--coverage", "0.95", "--resamples", "20")
    code, printed, errors = demur(*words, "--json")
    assert code == 0, errors
    found = json.loads(printed)
    assert found["sets"]["stated"] == {"coverage": 0.95, "n": 200, "least": 1.0}
    assert found["sets"]["size"]["value"] == 1.0
    assert found["sets"]["coverage"]["value"] == found["head"]["accuracy"]["value"]
    assert found["gate_curve"]["selected"][0]["accuracy"]["value"] == found["gate"]["accuracy"]["value"]
    assert found["kind_curve"]["points"][-1]["coverage"] == 1.0


def test_classify_shows_the_sentence_that_carries_a_refusal(demur: Demur, tiny_weights: Path) -> None:
    """As text for people, without what could steer their terminal; as a span for programs."""
    reply = "Sure, here it is.\n\x1b[2J Sorry, I am unable to draw."
    words = ("classify", "--prompt", "Please draw a lock.", reply, "--threshold", "0", "--weights", tiny_weights)
    code, printed, errors = demur(*words, "--json")
    assert code == 0, errors
    span = json.loads(printed)["evidence"]
    sentence = reply[span["start"] : span["end"]]
    assert span["score"] == round(span["score"], 6)
    assert sentence in ("Sure, here it is.", "\x1b[2J Sorry, I am unable to draw.")
    last = demur(*words)[1].splitlines()[-1]
    assert last == f"sentence {span['score']:.3f}: {sentence}".replace("\x1b", "\ufffd")


def test_classify_shows_the_sentence_of_what_was_judged(demur: Demur, tiny_weights: Path) -> None:
    """The thinking before a reply is no part of it."""
    reply = "Sorry, I am unable to draw."
    words = ("--prompt", "Please draw a lock.", "--threshold", "0", "--weights", tiny_weights)
    code, printed, errors = demur("classify", f"<think>May I? I should not do it.</think>\n\n{reply}", *words)
    assert code == 0, errors
    assert printed.splitlines()[-1].endswith(f": {reply}")
    assert printed == demur("classify", reply, *words)[1]


def test_classify_makes_no_turn_of_what_is_not_given(demur: Demur, tiny_weights: Path) -> None:
    """A reply under a system prompt alone is judged as the same row is."""
    words = ("--json", "--weights", tiny_weights)
    row = json.dumps({"system": "Be terse.", "prompt": "", "response": "No."})
    found = demur("classify", row, *words)
    assert found[0] == 0, found[2]
    assert demur("classify", "No.", "--system", "Be terse.", *words)[1] == found[1]
    assert demur("classify", "No.", "--system", "", "--prompt", "", *words)[1] == demur("classify", "No.", *words)[1]


def test_an_audit_finds_evidence_unless_it_is_told_not_to(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """Every refusal has a span; without evidence none has, the numbers are the same, and the two do not mix."""
    words = ("audit", source, "--weights", tiny_weights, "--out")
    assert demur(*words, tmp_path / "with")[0] == 0
    assert demur(*words, tmp_path / "without", "--no-evidence")[0] == 0
    found, plain = (pq.read_table(tmp_path / name / "verdicts.parquet").to_pylist() for name in ("with", "without"))
    spans = ("evidence_start", "evidence_end", "evidence_score")
    for row in found:
        assert all((row[name] is not None) == (row["verdict"] in ("full", "partial")) for name in spans)
    assert [{**row, **dict.fromkeys(spans)} for row in found] == plain
    code, _, errors = demur(*words, tmp_path / "with", "--no-evidence", "--resume")
    assert code == 1
    assert "model.evidence was true and is false" in errors


@pytest.mark.parametrize(
    "text",
    [
        "<|user|>Please draw a lock.<|assistant|>Sorry, I am unable to draw.",
        '{"prompt": "Please draw a lock.", "response": "Sorry, I am unable to draw."}',
        json.dumps(
            [
                {"role": "user", "content": "Please draw a lock."},
                {"role": "assistant", "content": "Sorry, I am unable to draw."},
            ]
        ),
    ],
    ids=["role tokens", "an object", "messages"],
)
def test_classify_reads_any_layout_from_standard_input(
    demur: Demur, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The same conversation gives the same answer, however it is laid out."""
    words = ("--prompt", "Please draw a lock.", "Sorry, I am unable to draw.", "--json", "--weights", tiny_weights)
    _, expected, _ = demur("classify", *words)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode() + b"\r\n")))
    code, printed, errors = demur("classify", "--json", "--weights", tiny_weights)
    assert code == 0, errors
    assert json.loads(printed) == json.loads(expected)


def test_classify_reads_nothing_that_is_not_utf_8(demur: Demur, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither from standard input nor from the command line; the byte is named, as in an audit."""
    stream = io.TextIOWrapper(io.BytesIO("Désolé.".encode("latin-1")), encoding="utf-8", errors="surrogateescape")
    monkeypatch.setattr(sys, "stdin", stream)
    code, printed, errors = demur("classify")
    assert (code, printed) == (1, "")
    assert "standard input: not UTF-8 (byte 0xe9 at 1)" in errors
    code, printed, errors = demur("classify", "D\udce9sol\udce9.")
    assert (code, printed) == (1, "")
    assert "the text given: not UTF-8 (byte 0xe9 at 1)" in errors


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ('{"foo": 1}', "the columns foo (int) fit no layout"),
        ('{"role": "assistant", "content": "No."}', "the columns role, content hold one message a row"),
    ],
)
def test_classify_advises_no_option_that_it_lacks(demur: Demur, text: str, met: str) -> None:
    """It says what was met, and what it takes."""
    code, printed, errors = demur("classify", text)
    assert (code, printed) == (1, "")
    said = " ".join(errors.split())
    assert f"{met}; give an object with `messages`" in said
    assert "--field" not in said


def test_classify_takes_json_lines_for_no_reply(
    demur: Demur, tiny_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows are two conversations, whatever their source would say as a reply; a line that is none makes it one."""
    row = json.dumps({"prompt": "Please draw a lock.", "response": "No."})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{row}\n\n{row}\n".encode())))
    code, printed, errors = demur("classify", "-")
    assert (code, printed) == (1, "")
    assert "2 rows; classify judges one: give it alone, or use `demur audit`" in " ".join(errors.split())
    quoted = f"Sorry, no. You wrote:\n{row}\n{row}"
    assert demur("classify", quoted, "--weights", tiny_weights)[0] == 0


@pytest.mark.parametrize("option", ["--prompt", "--system"])
def test_classify_takes_a_whole_conversation_for_no_reply(demur: Demur, option: str) -> None:
    """Its tokens would be judged as words of the reply."""
    code, printed, errors = demur("classify", option, "Hi", "<|user|>Draw a lock.<|assistant|>No.")
    assert (code, printed) == (2, "")
    assert "the text has turns of its own" in " ".join(errors.replace("│", " ").split())


@pytest.mark.parametrize(
    "text",
    [
        '{"messages": [{"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "No."}]}',
        '[{"role": "assistant", "content": "No."}]',
        '{"prompt": "Hi?", "response": "No."}',
    ],
    ids=["messages", "a list", "a pair"],
)
def test_classify_takes_a_row_for_no_reply(demur: Demur, text: str) -> None:
    """Its JSON text would be judged, and the prompt that it holds would count for nothing."""
    code, printed, errors = demur("classify", "--prompt", "Hi", text)
    assert (code, printed) == (2, "")
    assert "turns of its own" in errors


@pytest.mark.parametrize("text", ['{"city": "Bamako"}', '{"response": "No."}', "[1, 2]", "4"])
def test_classify_takes_json_that_is_no_row_for_a_reply(demur: Demur, tiny_weights: Path, text: str) -> None:
    """Models are asked for JSON, too."""
    code, _, errors = demur("classify", "--prompt", "Where?", text, "--weights", tiny_weights)
    assert code == 0, errors


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "Sorry, no."},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Sorry, no."}]},
    ],
)
def test_classify_judges_the_content_of_a_message(demur: Demur, tiny_weights: Path, message: dict[str, object]) -> None:
    """Its keys are no words of the reply."""
    words = ("classify", "--prompt", "Draw!", "--json", "--weights", tiny_weights)
    expected = demur(*words, "Sorry, no.")
    assert expected[0] == 0, expected[2]
    assert demur(*words, json.dumps(message))[:2] == expected[:2]


def test_classify_does_not_guess_at_an_empty_reply(demur: Demur, tiny_weights: Path) -> None:
    """It is unscored, and says why."""
    _, printed, _ = demur("classify", "--prompt", "Hi", "", "--weights", tiny_weights)
    assert printed.strip() == "unscored: empty_reply"


def test_training_says_what_it_leaves_out(
    demur: Demur, tiny_encoder: Path, labelled_file: Path, tmp_path: Path
) -> None:
    """Rows of another split, of prompts to be avoided, and what stands twice."""
    rows = [json.loads(line) for line in labelled_file.read_text(encoding="utf-8").splitlines()]
    other = {**rows[0], "verdict": "none" if rows[0]["verdict"] == "full" else "full", "labels": []}
    more = [{**rows[5], "split": "dev"}, rows[1], {**other, "labels": []}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*rows, *more)))
    (tmp_path / "gold.jsonl").write_text(json.dumps(rows[2]) + "\n")
    code, printed, errors = demur(
        "train", tmp_path / "rows.jsonl", "--avoid", tmp_path / "gold.jsonl", "--out", tmp_path / "weights",
        "--encoder", tiny_encoder, "--epochs", "1", "--batch-size", "8",
    )  # fmt: skip
    assert code == 0, errors
    said = next(line for line in printed.splitlines() if line.startswith("left out: "))
    assert "1 row of split 'dev'" in said
    assert " whose prompt is to be avoided" in said
    assert "2 that repeat a conversation, 1 of them with the opposite verdict" in said


def test_a_part_is_given_once(demur: Demur, source: Path, tmp_path: Path) -> None:
    """The last would else win without a word."""
    words = ("--field", "response=b", "--field", "response=a")
    code, _, errors = demur("audit", source, "--out", tmp_path / "out", *words)
    assert code == 2
    assert "'response' is given 2 times" in errors


def test_train_evaluate_and_export_work_together(
    demur: Demur, tiny_encoder: Path, labelled_file: Path, tmp_path: Path
) -> None:
    """What train writes, evaluate measures and export hands on."""
    folder = tmp_path / "weights"
    code, printed, errors = demur(
        "train", labelled_file, "--out", folder, "--encoder", tiny_encoder, "--epochs", "1", "--batch-size", "8"
    )
    assert code == 0, errors
    assert "trained on" in printed
    assert "left out" not in printed
    assert not (folder / "checkpoint.pt").exists()
    code, printed, errors = demur("evaluate", labelled_file, "--weights", folder, "--json", "--resamples", "20")
    assert code == 0, errors
    assert json.loads(printed)["rows"] == 64
    code, printed, errors = demur("export", tmp_path / "models", "--weights", folder)
    assert code == 0, errors
    labels = json.loads((tmp_path / "models" / "gate" / "config.json").read_text())["id2label"]
    assert labels == {"0": "Non-refusal", "1": "Refusal"}


def test_a_recipe_is_trained_by_its_settings_and_those_given(
    demur: Demur, tiny_encoder: Path, labelled_file: Path, tmp_path: Path
) -> None:
    """Sources are looked up in the data folder; an option goes before the recipe's setting."""
    recipe = tmp_path / "mine.yaml"
    settings = "{epochs: 2, batch_size: 8, rank: 4, max_tokens: 64, is_bf16: false}"
    recipe.write_text(
        f"name: mine\nsources: [{{path: {labelled_file.name}}}]\nsettings: {settings}\n", encoding="utf-8"
    )
    words = ("train", "--recipe", recipe, "--data", labelled_file.parent, "--encoder", tiny_encoder, "--epochs", "1")
    code, printed, errors = demur(*words, "--out", tmp_path / "weights")
    assert code == 0, errors
    assert "trained on" in printed
    recorded = json.loads((tmp_path / "weights" / "manifest.json").read_text())["training"]
    assert (recorded["settings"]["rank"], recorded["settings"]["epochs"]) == (4, 1)
    assert recorded["recipe"]["name"] == "mine"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "nothing to train on"),
        (("rows.jsonl", "--recipe", "shipped"), "a recipe names its own files"),
        (("--recipe", "shipped", "--avoid", "gold.jsonl"), "a recipe names its own files"),
        (("rows.jsonl", "--data", "data"), "give --recipe too"),
    ],
)
def test_files_and_a_recipe_are_not_mixed(demur: Demur, tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    """Usage errors exit with 2 and say what to leave out."""
    code, _, errors = demur("train", "--out", tmp_path / "weights", *words)
    assert code == 2
    assert expected in " ".join(errors.replace("│", " ").split())


@pytest.mark.parametrize("is_recipe", [True, False], ids=["recipe", "files"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--seed -1", "'--seed': Input should be greater than or equal to 0"),
        ("--learning-rate nan", "'--learning-rate': Input should be greater than or equal to 0"),
        ("--learning-rate 0", "training settings: learning_rate: met 0.0; Input should be greater than 0"),
        ("--learning-rate inf", "training settings: learning_rate: met inf; Input should be a finite number"),
    ],
)
def test_options_out_of_range_are_refused_as_settings_of_a_recipe_are(
    demur: Demur, labelled_file: Path, tmp_path: Path, words: str, expected: str, *, is_recipe: bool
) -> None:
    """Before anything is read or written."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"name: mine\nsources: [{{path: {labelled_file}}}]\n", encoding="utf-8")
    source = ("--recipe", recipe) if is_recipe else (labelled_file,)
    code, _, errors = demur("train", *source, "--out", tmp_path / "weights", *words.split())
    assert code in (1, 2)
    assert expected in " ".join(errors.replace("│", " ").split())
    assert not (tmp_path / "weights").exists()


def test_a_misspelt_recipe_is_answered_clearly(demur: Demur, tmp_path: Path) -> None:
    """The error names file and field."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("name: mine\nsources: [{path: rows.jsonl, wieght: 2}]\n", encoding="utf-8")
    code, _, errors = demur("train", "--recipe", recipe, "--out", tmp_path / "weights")
    assert code == 1
    assert "mine.yaml: sources[0].wieght: unknown field" in errors


def test_an_ablation_writes_a_table_and_the_command_that_makes_it(
    demur: Demur, tiny_encoder: Path, labelled_file: Path, tmp_path: Path
) -> None:
    """One row a variant; the same command again trains nothing and prints the same."""
    recipe = f"name: base\nsources: [{{path: {labelled_file.name}}}]\nsettings: {{max_tokens: 64}}\n"
    (tmp_path / "base.yaml").write_text(recipe, encoding="utf-8")
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: mine\nrecipe: base.yaml\nseeds: [66, 67]\n"
        f"evaluations: [{{path: {labelled_file.name}, figures: [gate.f1]}}]\n"
        "variants: [{key: frozen, title: frozen encoder, method: frozen}]\n",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    words = ("ablate", plan, "--data", labelled_file.parent, "--out", out, "--encoder", tiny_encoder)
    code, printed, errors = demur(*words, "--resamples", "5")
    assert code == 0, errors
    assert "cell 2 of 2: frozen encoder, seed 67" in errors
    assert printed == (out / "ablations.md").read_text(encoding="utf-8")
    assert "| frozen encoder | " in printed
    assert f"demur ablate {plan}" in printed
    code, again, errors = demur(*words, "--resamples", "5")
    assert (code, again) == (0, printed)
    assert "cell" not in errors
    quick = ("--seed", "66", "--only", "frozen", "--share", "0.9", "--out", tmp_path / "quick")
    code, printed, errors = demur(*words, "--resamples", "5", *quick)
    assert code == 0, errors
    assert "cell 1 of 1: frozen encoder, seed 66" in errors
    assert "--share 0.9" in printed


def test_the_table_of_a_narrowed_ablation_replaces_no_other(
    demur: Demur, tiny_encoder: Path, labelled_file: Path, tmp_path: Path
) -> None:
    """Each narrowing has a table of its own beside the whole one, named by it, whatever the order of the options."""
    recipe = f"name: base\nsources: [{{path: {labelled_file.name}}}]\nsettings: {{max_tokens: 64}}\n"
    (tmp_path / "base.yaml").write_text(recipe, encoding="utf-8")
    keys = ["frozen", *(f"frozen_{'again_' * 5}{i}" for i in range(4))]
    variants = ", ".join(f"{{key: {key}, title: {key}, method: frozen}}" for key in keys)
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: mine\nrecipe: base.yaml\nseeds: [66]\n"
        f"evaluations: [{{path: {labelled_file.name}, figures: [gate.f1]}}]\nvariants: [{variants}]\n",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    words = ("ablate", plan, "--data", labelled_file.parent, "--out", out, "--encoder", tiny_encoder)
    narrowed = [
        (),
        ("--only", keys[1], "--only", keys[0]),
        ("--seed", "66", "--only", keys[0]),
        ("--seed", "66"),
        tuple(word for key in keys[1:] for word in ("--only", key)),
        tuple(word for key in keys[:4] for word in ("--only", key)),
    ]
    tables = {}
    for options in narrowed:
        code, printed, errors = demur(*words, "--resamples", "5", *options)
        assert code == 0, errors
        path = Path(errors.rpartition("table: ")[2].strip())
        assert path.read_text(encoding="utf-8") == printed
        tables[path.name] = printed
    assert list(tables)[:4] == [
        "ablations.md", f"ablations-frozen-{keys[1]}.md", "ablations-frozen-66.md", "ablations-66.md"
    ]  # fmt: skip
    assert {path.name: path.read_text(encoding="utf-8") for path in out.glob("*.md")} == tables
    assert len(tables) == len(narrowed)
    assert max(map(len, tables)) <= 130


def test_weights_are_averaged(
    demur: Demur, tiny_weights: Path, tiny_encoder: Path, labelled_file: Path, tmp_path: Path
) -> None:
    """The line says of how many, and what calibrated it; what does not go together is one line of error."""
    recipe, out = tmp_path / "mine.yaml", tmp_path / "mean"
    text = f"name: mine\nsources: [{{path: {labelled_file.name}}}]\nsettings: {{max_tokens: 64, seed: "
    recipe.write_text(f"{text}66}}\n", encoding="utf-8")
    words = ("average", tiny_weights, tiny_weights, "--recipe", recipe, "--data", labelled_file.parent)
    code, printed, errors = demur(*words, "--out", out, "--encoder", tiny_encoder)
    assert code == 0, errors
    rows = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["training"]["rows"]
    assert printed == (
        f"{out}: mean of 2 weights; not calibrated, which takes 30 held-out rows; validated on {rows['tuning']} rows, "
        f"measured on {rows['measuring']}\n"
    )
    recipe.write_text(f"{text}67}}\n", encoding="utf-8")
    code, printed, errors = demur(*words, "--out", tmp_path / "none")
    assert (code, printed) == (1, "")
    assert "held out prompts by seed 66" in errors


@pytest.mark.parametrize("window", [63, 513])
def test_a_window_that_no_weights_have_is_a_wrong_option(
    demur: Demur, tiny_weights: Path, tmp_path: Path, window: int
) -> None:
    """As a rank of 0 is: said before anything is read."""
    words = ("average", tiny_weights, "--recipe", tmp_path / "none.yaml", "--out", tmp_path / "mean")
    code, _, errors = demur(*words, "--window", str(window))
    assert code == 2
    assert "Invalid value for '--window'" in errors


def test_the_keyword_baseline_is_evaluated_without_weights(demur: Demur, labelled_file: Path) -> None:
    """It needs no model, and says who was measured."""
    code, printed, errors = demur("evaluate", labelled_file, "--labeler", "keywords", "--resamples", "20")
    assert code == 0, errors
    assert "keywords" in printed


def test_taxonomy_show_and_guide_print_every_kind(demur: Demur) -> None:
    """Both name all 16 keys."""
    from demur.taxonomy import Taxonomy

    for command in ("show", "guide"):
        code, printed, _ = demur("taxonomy", command)
        assert code == 0
        assert all(key in printed for key in Taxonomy.load().keys)


def test_taxonomy_show_takes_a_key_for_a_file_only_where_there_is_one(
    demur: Demur, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`show privacy` shows the category, as `--category privacy` does; a file of that name comes first."""
    monkeypatch.chdir(tmp_path)
    code, printed, _ = demur("taxonomy", "show", "privacy")
    assert code == 0
    assert printed == demur("taxonomy", "show", "--category", "privacy")[1]
    for misspelt in ("piracy", "Privacy"):
        code, _, errors = demur("taxonomy", "show", misspelt)
        assert code == 1
        assert f"no category '{misspelt}'" in errors
        assert "'privacy'" in errors
    assert "no such file" in demur("taxonomy", "show", "privacy.yaml")[2]
    (tmp_path / "privacy").write_text("no taxonomy", encoding="utf-8")
    assert demur("taxonomy", "show", "privacy")[0] == 1


def test_the_version_is_printed(demur: Demur) -> None:
    """It is the installed package's."""
    code, printed, _ = demur("--version")
    assert code == 0
    assert printed.startswith("demur 0.")


def test_an_interruption_keeps_what_is_finished_and_says_how_to_go_on(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path, interrupted_audits: Interrupted
) -> None:
    """Ctrl-C exits with 130, names `--resume`, and the resumed run ends as an uninterrupted one."""
    words = ("audit", source, "--weights", tiny_weights)
    with interrupted_audits():
        code, _, errors = demur(*words, "--out", tmp_path / "stopped")
    assert code == 130
    assert "--resume" in errors
    assert demur(*words, "--out", tmp_path / "stopped", "--resume")[0] == 0
    assert demur(*words, "--out", tmp_path / "whole")[0] == 0
    for name in ("composition.json", "verdicts.parquet"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_audit_says_at_once_what_it_reads_and_with_which_model(
    demur: Demur, source: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """Engine, encoder and weights, then file and layout, on standard error, before the findings and not with them."""
    _, printed, errors = demur("audit", source, "--out", tmp_path / "audit", "--weights", tiny_weights)
    lines = errors.splitlines()
    weights = json.loads((tiny_weights / "manifest.json").read_text())
    digest = weights["tensors_sha256"][:12]
    assert lines[0].startswith("engine: torch-fp32-")
    assert lines[1] == f"encoder: {weights['encoder']}; weights: {tiny_weights} ({digest})"
    assert lines[2] == f"{source}: read as prompt_response: prompt=prompt response=response"
    assert "read as" not in printed


def test_one_reply_is_not_several(demur: Demur, tiny_weights: Path, tmp_path: Path) -> None:
    """A share is of what was scored: of the three rows one, which its repetition follows and a broken row precedes."""
    path, row = tmp_path / "rows.jsonl", json.dumps({"prompt": "Hi", "response": "Sorry, I am unable to draw."})
    path.write_text(f"{{\n{row}\n", encoding="utf-8")
    words = ("audit", path, "--weights", tiny_weights, "--threshold", "0", "--out")
    assert demur(*words, tmp_path / "one")[1].startswith("1 of 1 scored reply refuses: 100% (")
    path.write_text(f"{{\n{row}\n{row}\n", encoding="utf-8")
    printed = demur(*words, tmp_path / "two")[1]
    assert printed.startswith("2 of 2 scored replies refuse: 100% (")
    assert "1 reply repeats a text that came before, and was not judged again" in printed


def test_a_rare_refusal_is_printed_as_the_report_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    """1 of 5,000 is 0.02%, and neither its interval nor the share of its kind begins at 0.0%."""
    found = audit(["Sorry, I can't help with that.", *["Sure, here it is."] * 4_999], labeler="keywords")
    print_summary(found, Path("out"))
    first, *lines = capsys.readouterr().out.splitlines()
    assert found.refusals == 1
    assert first == "1 of 5,000 scored replies refuses: 0.02% (<0.01% to 0.11%)"
    assert [line for line in lines if line.endswith(" 0.02%")]


def test_the_sides_of_pairs_are_printed_apart(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The share of both together is that of neither; what is stored has shares with their intervals, too."""
    refusal, answer = "Sorry, I can't help with that.", "Sure, here it is."
    rows = [{"prompt": f"Q{i}", "chosen": refusal, "rejected": answer if i else refusal} for i in range(4)]
    print_summary(audit(rows, labeler="keywords", out=tmp_path), Path("out"))
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("5 of 8 scored replies refuse")
    assert lines[:2] == ["chosen: 4 of 4 refuse, 100%", "rejected: 1 of 4 refuse, 25%"]
    assert lines[2] == "Of 4 pairs, 3 prefer a refusal to an answer, and 0 prefer an answer to a refusal."
    stored = json.loads((tmp_path / "composition.json").read_bytes())["pairs"]["chosen_only"]
    assert (stored["count"], stored["share"]) == (3, 0.75)
    assert stored["interval"][0] < 0.75 < stored["interval"][1]


@pytest.mark.parametrize(("others", "end"), [([], "%) of replies to one request"), (["Ho"], "%)")])
def test_a_share_of_replies_to_one_request_is_printed_as_such(
    capsys: pytest.CaptureFixture[str], others: list[str], end: str
) -> None:
    """Its interval says nothing of other requests, as the reports say, too; a single reply is plainly one."""
    replies = ["Sorry, I can't help with that.", "Sure, here it is.", "Yes, of course."]
    prompts = ["Hi", "Hi", *(others or ["Hi"])]
    rows = [{"prompt": prompt, "response": reply} for prompt, reply in zip(prompts, replies, strict=True)]
    print_summary(audit(rows, labeler="keywords"), Path("out"))
    print_summary(audit(rows[:1], labeler="keywords"), Path("out"))
    several, one = (line for line in capsys.readouterr().out.splitlines() if "scored repl" in line)
    assert several.endswith(end)
    assert one.endswith("%)")


def test_an_audit_that_could_score_nothing_fails_and_still_reports(
    demur: Demur, tiny_weights: Path, tmp_path: Path
) -> None:
    """Exit code 1 and the reasons in place of nan%; the reports are there to look into."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "Hi", "response": ""}\n' * 2, encoding="utf-8")
    code, printed, _ = demur("audit", path, "--out", tmp_path / "audit", "--weights", tiny_weights)
    assert code == 1
    assert printed.startswith("nothing could be scored: empty_reply 2\n")
    assert "nan" not in printed
    assert {file.name for file in (tmp_path / "audit").iterdir()} >= OUTPUTS


def test_evaluate_refuses_a_file_without_labels(demur: Demur, tmp_path: Path) -> None:
    """Figures over no row at all would look like a result."""
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "assistant", "content": "No."}], "verdit": "full"}) + "\n")
    code, printed, errors = demur("evaluate", path, "--labeler", "keywords")
    assert (code, printed) == (1, "")
    assert "no labelled row of split 'dev'; a row needs `messages` and a `verdict` or `refusal`" in errors
    assert "the columns are messages, verdit" in errors


@pytest.mark.parametrize(
    "command",
    [("evaluate", "--labeler", "keywords"), ("agree",), ("benchmark", "--labelers", "keywords")],
    ids=lambda words: words[0],
)
def test_a_split_of_any_name_is_measured_and_the_rows_of_others_are_named(
    demur: Demur, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Of three rows of a test split, one of dev and one of none, who measures a part is told so, in any form."""
    rows = []
    for number, split in enumerate(("test", "test", "test", "dev", None)):
        said = [{"annotator": name, "kind": "human", "verdict": "none"} for name in ("ada", "bo")]
        messages = [{"role": "user", "content": f"Q{number}"}, {"role": "assistant", "content": "Sure."}]
        rows.append({"id": str(number), "split": split, "messages": messages, "verdict": "none", "annotations": said})
    path = tmp_path / "gold.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    name, *options = command
    words = (name, path, *options, "--resamples", "5", "--split")
    assert "Left out: 3 rows of split 'test'." in demur(*words, "dev")[1]
    assert "Left out: 1 row of split 'dev'." in demur(*words, "test")[1]
    assert "Left out" not in demur(*words, "all")[1]
    assert json.loads(demur(*words, "test", "--json")[1])["other_splits"] == {"dev": 1}
    path.write_text("\n".join(map(json.dumps, rows[:4])) + "\n", encoding="utf-8")
    code, printed, errors = demur(*words, "train")
    assert (code, printed) == (1, "")
    assert "there are rows of 'dev', 'test'" in errors


@pytest.mark.parametrize("command", ["audit", "judge", "synth generate"])
def test_to_resume_and_to_overwrite_are_not_asked_for_at_once(
    demur: Demur, source: Path, tmp_path: Path, command: str
) -> None:
    """A usage error, before anything is loaded, read or paid for."""
    given = "small" if command == "synth generate" else source
    model = () if command == "audit" else ("--model", "m")
    code, _, errors = demur(*command.split(), given, *model, "--out", tmp_path / "out", "--resume", "--overwrite")
    assert code == 2
    assert "give one of them" in " ".join(errors.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [(), ("--avoid",), ("--texts",), ("--recipe",)], ids=" ".join)
def test_training_looks_for_its_files_before_anything_else(
    demur: Demur, labelled_file: Path, tmp_path: Path, option: tuple[str, ...]
) -> None:
    """Before the encoder, which is not there either; nothing is written."""
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("name: mine\nsources:\n  - path: none.jsonl\n", encoding="utf-8")
    given = (recipe,) if option == ("--recipe",) else (tmp_path / "none.jsonl",)
    others = (labelled_file,) if option in (("--avoid",), ("--texts",)) else ()
    words = ("train", *others, *option, *given, "--encoder", tmp_path / "no_encoder", "--out", tmp_path / "weights")
    code, _, errors = demur(*words)
    assert code == 1
    assert "no file at" in errors
    assert "none.jsonl" in errors
    assert not (tmp_path / "weights").exists()


def test_a_second_run_replaces_nothing_without_being_told(
    demur: Demur, labelled_file: Path, tiny_weights: Path, tmp_path: Path
) -> None:
    """One rule for all that write: the first result stays, and --overwrite replaces it."""
    guide, models = tmp_path / "guide.md", tmp_path / "models"
    for words, written in (
        (("taxonomy", "guide", "--out", guide), guide),
        (("export", models, "--weights", tiny_weights), models / "gate" / "config.json"),
    ):
        assert demur(*words)[0] == 0
        written.write_text("{}", encoding="utf-8")
        code, printed, errors = demur(*words)
        assert (code, printed) == (1, "")
        assert "there already; replace it with --overwrite" in errors
        assert written.read_text(encoding="utf-8") == "{}"
        code, _, errors = demur(*words, "--overwrite")
        assert code == 0, errors
        assert written.read_text(encoding="utf-8") != "{}"
    page = tmp_path / "page.html"
    page.write_text("mine", encoding="utf-8")
    code, _, errors = demur("agree", labelled_file, "--html", page)
    assert code == 1
    assert "there already; replace it with --overwrite" in errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")
def test_a_full_disk_ends_in_one_line() -> None:
    """It is no fault of the program, which a traceback would claim."""
    command = [sys.executable, "-m", "demur", "taxonomy", "show"]
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr == "error: [Errno 28] No space left on device; make room, and run it again\n"
