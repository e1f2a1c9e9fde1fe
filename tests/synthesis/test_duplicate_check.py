"""Rows that repeat each other, a corpus or what is evaluated on are dropped, each with its reason and partner."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demur.errors import RowError, SourceError
from demur.synthesis.duplicate_check import DuplicateCheck
from demur.synthesis.mutations import MUTATIONS
from demur.synthesis.variation import Variation, vary

if TYPE_CHECKING:
    from demur.synthesis.duplicate_check import Drop

PACK = Path(__file__).parents[1] / "data" / "regression.jsonl"
CORPUS = Path(__file__).parents[2] / "synth" / "corpus"

REQUEST = "Please tell me how the boats in the harbour of our town came by their names."
REPLY = "I can't say for sure, but most of them are named after the daughters of those who built them."


def row(name: str, request: str = REQUEST, reply: str = REPLY, verdict: str = "none", **fields: Any) -> dict[str, Any]:
    """Build a row."""
    messages = [{"role": "user", "content": request}, {"role": "assistant", "content": reply}]
    return {"id": name, "messages": messages, "verdict": verdict, **fields}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSONL."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def drops(comparison: DuplicateCheck, path: Path) -> list[Drop]:
    """Return what is dropped of a file."""
    return [checked.drop for checked in comparison.check(path) if checked.drop is not None]


# What the check must find, and what it must leave -------------------------------------------------------------------


@pytest.fixture(scope="module")
def against_the_pack() -> DuplicateCheck:
    """Take the regression pack for what is evaluated on."""
    comparison = DuplicateCheck()
    assert comparison.avoid([PACK]) > 400
    return comparison


def test_planted_copies_and_paraphrases_of_evaluation_rows_are_all_found(
    against_the_pack: DuplicateCheck, tmp_path: Path
) -> None:
    """20 plain copies, and 10 variants by each of the 8 mutations: 100 of 100, each with the row that it came from."""
    lines = [json.loads(line) for line in PACK.read_text(encoding="utf-8").splitlines()]
    planted = [{**each, "id": f"copy {each['id']}", "origin": each["id"]} for each in lines[::20][:20]]
    for name in MUTATIONS:
        varied = (rows for rows in vary(PACK, Variation((name,), seed=11)) if not isinstance(rows, RowError))
        some = [rows[0] for rows in varied if rows]
        planted += some[:: len(some) // 10][:10]
    assert len(planted) == 100
    found = drops(against_the_pack, write(tmp_path / "planted.jsonl", planted))
    assert [drop.reason for drop in found] == ["evaluation_row"] * 100
    names = [(str(each["origin"]), str(drop.partner)) for each, drop in zip(planted, found, strict=True)]
    assert sum(partner.endswith(f"({origin})") for origin, partner in names) >= 98  # some of the pack share a request


def test_of_a_thousand_unrelated_rows_none_is_dropped(against_the_pack: DuplicateCheck, tmp_path: Path) -> None:
    """From all kinds of the corpus; the rows that do share a request with the pack, five in all, are set apart."""
    related = {"invalid_premise-010-1", "missing_context-011-1", "unknowable-044-4"}
    texts = (path.read_text(encoding="utf-8").splitlines() for path in sorted(CORPUS.glob("*.jsonl")))
    rows = [json.loads(line) for lines in texts for line in islice(lines, 0, None, 3)]
    unrelated = [each for each in rows if each["id"] not in related][:1000]
    assert len(unrelated) == 1000
    assert drops(against_the_pack, write(tmp_path / "unrelated.jsonl", unrelated)) == []


# The rules ------------------------------------------------------------------------------------------------------------


def test_the_first_of_equals_is_kept(tmp_path: Path) -> None:
    """Also where case and marks differ; the drop names reason, partner and index."""
    path = write(tmp_path / "rows.jsonl", [row("a"), row("b", REQUEST.upper(), REPLY.replace("'", "’")), row("c")])
    found = drops(DuplicateCheck(), path)
    assert [(drop.id, drop.reason, drop.similarity) for drop in found] == [
        ("b", "exact_duplicate", 1.0),
        ("c", "exact_duplicate", 1.0),
    ]
    assert {drop.partner for drop in found} == {f"{path}:1 (a)"}


def test_a_near_duplicate_is_dropped_and_a_contrast_is_not(tmp_path: Path) -> None:
    """Nearly the same words with another verdict teach something; the very same text with one is a mistake."""
    nearly = REPLY.replace("daughters", "sons")
    rows = [row("a"), row("b", reply=nearly), row("c", reply=nearly, verdict="partial"), row("d", verdict="full")]
    found = drops(DuplicateCheck(), write(tmp_path / "rows.jsonl", rows))
    assert [(drop.id, drop.reason) for drop in found] == [("b", "near_duplicate"), ("d", "conflicting_labels")]
    assert found[0].similarity == pytest.approx(0.9, abs=0.1)


def test_labels_of_one_bit_are_compared_as_verdicts_are(tmp_path: Path) -> None:
    """A row with `refusal` alone agrees with a verdict that says the same; null leaves the bit open."""

    def bit(name: str, *, refuses: bool | None, reply: str = REPLY) -> dict[str, Any]:
        return {"id": name, "messages": row(name, reply=reply)["messages"], "refusal": refuses}

    nearly = REPLY.replace("daughters", "sons")
    rows = [
        bit("a", refuses=False),
        bit("b", refuses=True),
        bit("c", refuses=False),
        bit("near", refuses=True, reply=nearly),
        row("d", verdict="none"),
        row("e", verdict="partial"),
        bit("f", refuses=None),
    ]
    found = drops(DuplicateCheck(), write(tmp_path / "rows.jsonl", rows))
    assert [(drop.id, drop.reason) for drop in found] == [
        ("b", "conflicting_labels"),
        ("c", "exact_duplicate"),
        ("d", "exact_duplicate"),
        ("e", "conflicting_labels"),
        ("f", "conflicting_labels"),
    ]


def test_texts_that_lie_elsewhere_are_compared_and_not_written(tmp_path: Path) -> None:
    """In the corpus and in the file, by id; a row is handed on as it stands."""
    texts = {"a": row("a")["messages"]}
    bare = {"id": "a", "verdict": "none"}
    corpus = write(tmp_path / "corpus.jsonl", [bare])
    comparison = DuplicateCheck(texts=texts)
    assert comparison.add_corpus([corpus]) == 1
    (checked,) = comparison.check(write(tmp_path / "rows.jsonl", [{**bare, "leaf": "boats"}]))
    assert checked.drop is not None
    assert checked.drop.partner == f"{corpus}:1 (a)"
    assert checked.row is not None
    assert checked.row.fields == {**bare, "leaf": "boats"}


def test_the_same_request_with_another_reply_is_no_duplicate(tmp_path: Path) -> None:
    """Refused and answered, in several voices: that is what a corpus is made of."""
    rows = [
        row("a"),
        row("b", reply="They are named by lot, each year anew, at a feast on the quay with a brass band."),
    ]
    assert drops(DuplicateCheck(), write(tmp_path / "rows.jsonl", rows)) == []


def test_a_corpus_is_compared_with_as_the_file_itself(tmp_path: Path) -> None:
    """The partner stands in the other file."""
    comparison = DuplicateCheck()
    corpus = write(tmp_path / "corpus.jsonl", [row("old")])
    assert comparison.add_corpus([corpus]) == 1
    (drop,) = drops(comparison, write(tmp_path / "rows.jsonl", [row("new")]))
    assert drop.partner == f"{corpus}:1 (old)"


def test_a_file_that_is_given_twice_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one call or in two, under one name or two; what is avoided may be in the corpus as well."""
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "rows.jsonl", [row("a"), row("b", "Boats?", "By lot, each year anew, at a feast.")])
    for take in (DuplicateCheck.add_corpus, DuplicateCheck.avoid):
        comparison = DuplicateCheck()
        assert take(comparison, [path, path]) == 2
        assert take(comparison, [Path("rows.jsonl")]) == 0
    assert comparison.add_corpus([path]) == 2


@pytest.mark.parametrize(
    ("request_text", "reply", "detail"),
    [
        (REQUEST, "By lot.", "request"),
        (f"hi! {REQUEST.lower()} thx", "By lot.", "request"),
        ("Boats?", REPLY, "reply"),
        (REQUEST, REPLY, "exchange"),
    ],
)
def test_of_a_row_to_be_avoided_nothing_may_come_back(
    tmp_path: Path, request_text: str, reply: str, detail: str
) -> None:
    """Neither the whole nor a half of it, whatever the verdict."""
    comparison = DuplicateCheck()
    comparison.avoid([write(tmp_path / "gold.jsonl", [row("gold")])])
    (drop,) = drops(comparison, write(tmp_path / "rows.jsonl", [row("new", request_text, reply, "full")]))
    assert (drop.reason, drop.detail) == ("evaluation_row", detail)


def test_of_a_row_to_be_avoided_nothing_may_come_back_at_an_earlier_turn(tmp_path: Path) -> None:
    """A training row would hold the row of the test whole; whose earlier turns are its own is kept."""
    comparison = DuplicateCheck()
    comparison.avoid([write(tmp_path / "gold.jsonl", [row("gold")])])
    rest = row("new", "Thank you, that is all.", "You are welcome.")["messages"]
    rows = [
        {**row(name), "messages": [*row(name, request_text, reply)["messages"], *rest]}
        for name, request_text, reply in (
            ("both", REQUEST, REPLY),
            ("request", REQUEST, "By lot."),
            ("reply", "Boats?", REPLY),
            ("own", "Boats?", "By lot."),
        )
    ]
    found = drops(comparison, write(tmp_path / "rows.jsonl", rows))
    assert [(drop.id, drop.detail) for drop in found] == [
        ("both", "exchange"),
        ("request", "request"),
        ("reply", "reply"),
    ]


def test_stock_replies_leak_nothing(tmp_path: Path) -> None:
    """Half of all refusals say these words; short requests count where they are the same, a word around them or not."""
    comparison = DuplicateCheck()
    stock = "I'm sorry, but I can't help with that."
    comparison.avoid([write(tmp_path / "gold.jsonl", [row("gold", "Draw a cat", stock)])])
    rows = [
        row("a", "Paint a dog", stock),
        row("b", "draw a cat!", "Here."),
        row("c", "Hello. Draw a cat, please.", "No."),
    ]
    assert [drop.id for drop in drops(comparison, write(tmp_path / "rows.jsonl", rows))] == ["b", "c"]


def test_variants_of_one_row_are_no_duplicates_of_each_other(tmp_path: Path) -> None:
    """They are meant to be near; another row's are not excused."""
    rows = [row("a"), row("a~1", REQUEST + " Thanks!", origin="a"), row("z~1", "Hello. " + REQUEST, origin="z")]
    found = drops(DuplicateCheck(), write(tmp_path / "rows.jsonl", rows))
    assert [(drop.id, drop.reason) for drop in found] == [("z~1", "near_duplicate")]


@pytest.mark.parametrize("mutation", ["case", "apostrophes", "markdown", "innocent_turn"])
def test_variants_that_differ_in_what_is_folded_stay(tmp_path: Path, mutation: str) -> None:
    """In case, apostrophes or marks alone, or in earlier turns: they were made on purpose; made twice, they go once."""
    base = write(tmp_path / "base.jsonl", [row("a")])
    ((variant,),) = (rows for rows in vary(base, Variation((mutation,), seed=4)) if not isinstance(rows, RowError))
    rows = [row("a"), variant, {**variant, "id": "a~2"}, {**variant, "id": "z~1", "origin": "z"}]
    path = write(tmp_path / "rows.jsonl", rows)
    found = drops(DuplicateCheck(), path)
    assert [(drop.id, drop.reason, drop.partner) for drop in found] == [
        ("a~2", "exact_duplicate", f"{path}:2 (a~1)"),
        ("z~1", "exact_duplicate", f"{path}:1 (a)"),
    ]


def test_a_variant_under_another_verdict_than_its_origin_is_a_conflict(tmp_path: Path) -> None:
    """Where the words are the same, one of the labels is wrong."""
    rows = [row("a"), row("a~1", REQUEST.upper(), verdict="full", origin="a")]
    (drop,) = drops(DuplicateCheck(), write(tmp_path / "rows.jsonl", rows))
    assert (drop.id, drop.reason) == ("a~1", "conflicting_labels")


def test_an_id_that_two_rows_share_makes_neither_a_variant(tmp_path: Path) -> None:
    """Files number their rows alike: only a row that names its origin is excused."""
    comparison = DuplicateCheck()
    comparison.add_corpus([write(tmp_path / "corpus.jsonl", [row("1")])])
    rows = [row("1", REQUEST.upper()), row("1", REQUEST + " Thanks!")]
    found = drops(comparison, write(tmp_path / "rows.jsonl", rows))
    assert [drop.reason for drop in found] == ["exact_duplicate", "near_duplicate"]


@pytest.mark.parametrize("name", ["a", 0, None])
def test_what_vary_makes_of_a_row_is_no_near_duplicate_of_it(tmp_path: Path, name: object) -> None:
    """With an id, with a number for one, and without: the row is known by the same name in any file."""
    base = write(tmp_path / "base.jsonl", [{**row(""), "id": name}])
    mutations = ("typos", "courtesy_before", "courtesy_after")
    made = [rows for rows in vary(base, Variation(mutations, seed=2, per_row=3)) if not isinstance(rows, RowError)]
    assert len(made[0]) == 3
    comparison = DuplicateCheck()
    comparison.add_corpus([base])
    assert drops(comparison, write(tmp_path / "variants.jsonl", made[0])) == []
    together = [*map(json.loads, base.read_text(encoding="utf-8").splitlines()), *made[0]]
    assert drops(DuplicateCheck(), write(tmp_path / "together.jsonl", together)) == []


def test_a_row_that_cannot_be_read_is_dropped_and_counted(tmp_path: Path) -> None:
    """Its place and what is wrong are said, and the others are read on."""
    path = write(tmp_path / "rows.jsonl", [{"id": "x"}, row("y", verdict="maybe"), row("a")])
    path.write_text("{\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    found = drops(DuplicateCheck(), path)
    assert [(drop.where, drop.id, drop.reason) for drop in found] == [
        (f"{path}:1", None, "unreadable"),
        (f"{path}:2", "x", "unreadable"),
        (f"{path}:3", "y", "unreadable"),
    ]
    assert "verdict 'maybe'" in found[2].detail


def test_what_rows_are_compared_with_must_be_readable(tmp_path: Path) -> None:
    """A row that is passed over there could leak: missing files and broken rows stop the check."""
    with pytest.raises(SourceError, match="no file at"):
        DuplicateCheck().avoid([tmp_path / "none.jsonl"])
    with pytest.raises(RowError, match="no messages"):
        DuplicateCheck().avoid([write(tmp_path / "gold.jsonl", [{"id": "x"}])])
