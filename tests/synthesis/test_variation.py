"""Variants carry labels and provenance, and training keeps them on the side of their origin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.data.labelled import Labelled, read_labelled
from demur.errors import RowError
from demur.studies.partition import partition, prompt_key
from demur.synthesis.mutations import MUTATIONS
from demur.synthesis.variation import Variation, vary

if TYPE_CHECKING:
    from pathlib import Path

    from demur.taxonomy import Taxonomy


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSONL."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def made(path: Path, variation: Variation) -> list[dict[str, Any]]:
    """Return all variants of a file whose rows are sound."""
    return [row for rows in vary(path, variation) if not isinstance(rows, RowError) for row in rows]


def row(name: str, request: str, reply: str, verdict: str = "none", **fields: Any) -> dict[str, Any]:
    """Build a row."""
    messages = [{"role": "user", "content": request}, {"role": "assistant", "content": reply}]
    return {"id": name, "messages": messages, "verdict": verdict, "labels": [], **fields}


def test_a_variant_keeps_labels_and_names_its_origin(tmp_path: Path, labelled_file: Path, taxonomy: Taxonomy) -> None:
    """All fields of the row but its text; and the file of variants reads as labelled rows."""
    path = write(
        tmp_path / "rows.jsonl", [row("a", "Paint the boat!", "It's red now.", "none", leaf="boats", style="x")]
    )
    variants = made(path, Variation(seed=3, per_row=4))
    assert len(variants) == 4
    for number, variant in enumerate(variants, start=1):
        assert variant["id"] == f"a~{number}"
        assert (variant["verdict"], variant["labels"], variant["leaf"], variant["style"]) == ("none", [], "boats", "x")
        assert (variant["origin"], variant["origin_prompt"]) == ("a", "paint the boat!")
        assert variant["mutation_seed"] == 3
        assert set(variant["mutations"]) <= set(MUTATIONS)
    assert len({tuple(variant["mutations"]) for variant in variants}) == 4
    all_rows = made(labelled_file, Variation(per_row=2))
    read = read_labelled(write(tmp_path / "variants.jsonl", all_rows), taxonomy)
    origins = read_labelled(labelled_file, taxonomy)
    assert len(read) > len(origins)
    assert {(each.outcome, each.labels) for each in read} == {(each.outcome, each.labels) for each in origins}


def test_variants_follow_from_seed_and_id_alone(tmp_path: Path) -> None:
    """Turning the file around changes none; another seed does. `0` is an id like any other."""
    rows = [
        row(str(i), f"Tell me about the harbour number {i}.", "It's lovely there, and the boats are red.")
        for i in range(9)
    ]
    forth, back = write(tmp_path / "forth.jsonl", rows), write(tmp_path / "back.jsonl", rows[::-1])
    by_id = {each["id"]: each for each in made(back, Variation(seed=1))}
    assert {each["id"]: each for each in made(forth, Variation(seed=1))} == by_id
    assert made(forth, Variation(seed=1)) != made(forth, Variation(seed=2))


@pytest.mark.parametrize("given", [{}, {"id": None}, {"id": None, "origin": None}])
def test_rows_without_ids_are_named_by_their_texts(tmp_path: Path, given: dict[str, None]) -> None:
    """Absent or null is the same; each row is another's origin, and turning the file around changes no variant."""
    bare = [row("", f"Tell me about the harbour number {i}.", "It's lovely there.") for i in range(9)]
    rows = [{**{key: value for key, value in each.items() if key != "id"}, **given} for each in bare]
    forth = made(write(tmp_path / "forth.jsonl", rows), Variation(seed=1))
    back = made(write(tmp_path / "back.jsonl", rows[::-1]), Variation(seed=1))
    assert len({each["origin"] for each in forth}) == 9
    assert all(each["id"] == f"{each['origin']}~1" for each in forth)
    assert {each["id"]: each["messages"] for each in forth} == {each["id"]: each["messages"] for each in back}


def test_a_chain_puts_changes_on_top_of_one_another(tmp_path: Path) -> None:
    """Up to three, each of another name, in the order in which they were done."""
    path = write(tmp_path / "rows.jsonl", [row("a", "Tell me about the harbour.", "It's lovely there.")])
    variants = made(path, Variation(per_row=6, chain=3))
    assert max(len(each["mutations"]) for each in variants) == 3
    assert all(len(set(each["mutations"])) == len(each["mutations"]) for each in variants)


def test_only_the_mutations_that_are_named_are_drawn(tmp_path: Path) -> None:
    """Here one: a row has one variant, however many are asked for, and none where nothing changes it."""
    rows = [row("a", "Who's there?", "It's me."), row("b", "Who is there?", "Nobody.")]
    variants = made(write(tmp_path / "rows.jsonl", rows), Variation(("apostrophes",), per_row=3))
    assert {each["origin"] for each in variants} == {"a"}
    assert all(each["mutations"] == ["apostrophes"] for each in variants)


LONG = "The harbour is lovely in the evening light. Boats come and go all day long. Gulls cry over the market hall."


def test_a_refusal_that_nobody_can_point_at_is_not_truncated(tmp_path: Path) -> None:
    """The keyword list sees none in these sentences: as an answer they may be cut, as a refusal they may not."""
    rows = [row("a", "?", f"{LONG} {LONG}", "full"), row("b", "?", f"{LONG} {LONG}", "none")]
    variants = made(write(tmp_path / "rows.jsonl", rows), Variation(("truncation",)))
    assert [each["origin"] for each in variants] == ["b"]


def test_an_id_that_stands_twice_is_varied_once(tmp_path: Path) -> None:
    """Else two variants of different rows would go by one id, and name one origin."""
    rows = [row("y", "Who's there?", "It's me."), row("y", "Who's here?", "It's you."), row("z", "Who's it?", "I'm.")]
    path = write(tmp_path / "rows.jsonl", rows)
    assert [each["id"] for each in made(path, Variation(("apostrophes",)))] == ["y~1", "z~1"]
    (error,) = (each for each in vary(path, Variation()) if isinstance(each, RowError))
    assert str(error).endswith(f"goes by 'y', as {path}:1 does; give each row an id of its own")
    assert error.where == f"{path}:2"


def test_a_row_that_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    """Broken JSON, no messages, a bad verdict, a variant of a variant: each named, the sound one varied."""
    sound = row("a", "Who's there?", "It's me.")
    path = write(tmp_path / "rows.jsonl", [{"id": "x"}, {**sound, "verdict": "maybe"}, {**sound, "origin": "z"}, sound])
    path.write_text("{\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    results = list(vary(path, Variation()))
    assert [isinstance(each, RowError) for each in results] == [True, True, True, True, False]
    assert [f"{path}:{line}" in str(each) for line, each in enumerate(results[:4], start=1)] == [True] * 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mutations": ("typo",)}, "'typo' is no mutation; right would be some of case, typos"),
        ({"mutations": ()}, "no name is no mutation"),
        ({"mutations": ("case", "case")}, "stands twice"),
        ({"per_row": 0}, "per_row 0"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_a_variation_that_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    """With what would be right."""
    with pytest.raises(ValueError, match=said):
        Variation(**given)


def test_a_variant_stands_where_its_origin_stands() -> None:
    """Variants of a held-out prompt neither train nor measure; those of an avoided one are avoided; no draw moves."""
    rows = [_labelled(f"Request {i}") for i in range(300)]
    variants = [_labelled(f"REQUEST {i} thanks", origin_prompt=f"request {i}") for i in range(300)]
    parts = partition([*rows, *variants], avoid=[_labelled("request 7")])
    alone = partition(rows, avoid=[_labelled("request 7")])
    assert (parts.tuning, parts.measuring) == (alone.tuning, alone.measuring)
    held_out = {prompt_key(each.conversation) for each in (*parts.tuning, *parts.measuring)}
    assert not held_out & {each.origin_prompt for each in parts.training}
    assert parts.n_withheld == len(held_out)
    assert parts.n_avoided == 2


def _labelled(request: str, origin_prompt: str | None = None) -> Labelled:
    return Labelled(
        Conversation.of(request, "no"), id=request, source="hand", outcome="full", is_refusal=True,
        origin_prompt=origin_prompt,
    )  # fmt: skip
