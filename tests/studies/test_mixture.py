"""Hold mixtures to their recipe: which rows, from where, of what weight."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.data.labelled import Labelled
from demur.errors import SourceError
from demur.studies.mixture import harder, located, mix
from demur.studies.recipe import Recipe, Source

if TYPE_CHECKING:
    from pathlib import Path

    from demur.taxonomy import Taxonomy


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSONL, and the folders above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(name: str, **known: Any) -> dict[str, Any]:
    """Build a row about one refused request."""
    messages = [{"role": "user", "content": name}, {"role": "assistant", "content": "Sorry, no."}]
    return {"id": name, "messages": messages, "verdict": "full", "labels": [], **known}


def recipe(*sources: Source, **known: Any) -> Recipe:
    """Build a recipe."""
    return Recipe(name="mine", sources=sources, **known)


def test_weak_rows_weigh_less_and_are_softened(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """.3 and .95 where the source does not say; rows that were read weigh 1 and are certain."""
    write(tmp_path / "rows.jsonl", [row("a"), row("b", weak=True)])
    found = mix(recipe(Source("rows.jsonl")), taxonomy, folders=[tmp_path]).rows
    assert [(each.weight, each.confidence) for each in found] == [(1.0, 1.0), (0.3, 0.95)]


def test_rows_of_other_splits_are_counted(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """A folder may hold files of them; a source must hold a row to train on."""
    write(tmp_path / "rows" / "a.jsonl", [row("a"), row("b", split="train"), row("c", split="dev")])
    write(tmp_path / "rows" / "b.jsonl", [row("d", split="dev"), row("e", split="test")])
    found = mix(recipe(Source("rows")), taxonomy, folders=[tmp_path])
    assert [each.id for each in found.rows] == ["a", "b"]
    assert found.other_splits == {"dev": 2, "test": 1}
    with pytest.raises(
        SourceError, match=r"b\.jsonl: no labelled row of split 'train'; there are rows of 'dev', 'test'"
    ):
        mix(recipe(Source("rows/b.jsonl")), taxonomy, folders=[tmp_path])


def test_what_was_put_aside_is_not_learnt(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """It lies beside what was kept, and says why; a file that is named is read."""
    for name in ("kept", "kept.dropped", "rows.rejects", "rows.journal"):
        write(tmp_path / "rows" / f"{name}.jsonl", [row(name)])
    assert [each.id for each in mix(recipe(Source("rows")), taxonomy, folders=[tmp_path]).rows] == ["kept"]
    named = recipe(Source("rows/kept.dropped.jsonl"))
    assert [each.id for each in mix(named, taxonomy, folders=[tmp_path]).rows] == ["kept.dropped"]


def test_a_source_that_is_null_is_none(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Tables write it where files of several kinds are merged; synthetic rows have a leaf."""
    write(
        tmp_path / "rows.jsonl", [row("a", source=None, leaf="x"), row("b", source=None, leaf=None), row("c", leaf="x")]
    )
    found = mix(recipe(Source("rows.jsonl")), taxonomy, folders=[tmp_path]).rows
    assert [each.source for each in found] == ["synthetic", "unknown", "synthetic"]


def test_a_source_sets_how_far_teachers_count(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """0 is no missing value."""
    write(tmp_path / "rows.jsonl", [row("a")])
    found = mix(recipe(Source("rows.jsonl", teacher_share=0.0)), taxonomy, folders=[tmp_path]).rows
    assert {each.teacher_share for each in found} == {0.0}


def test_a_source_sets_weight_and_confidence_of_all_its_rows(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Weak or not."""
    write(tmp_path / "rows.jsonl", [row("a"), row("b", weak=True)])
    found = mix(recipe(Source("rows.jsonl", weight=0.5, confidence=0.9)), taxonomy, folders=[tmp_path]).rows
    assert [(each.weight, each.confidence) for each in found] == [(0.5, 0.9)] * 2


def test_sources_and_the_files_of_a_folder_come_in_order(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Sources as the recipe lists them, files by name, and only training rows of them."""
    write(tmp_path / "z.jsonl", [row("z1", split="train"), row("z2", split="dev")])
    write(tmp_path / "folder" / "b.jsonl", [row("b")])
    write(tmp_path / "folder" / "a.jsonl", [row("a")])
    found = mix(recipe(Source("z.jsonl"), Source("folder")), taxonomy, folders=[tmp_path])
    assert [each.id for each in found.rows] == ["z1", "a", "b"]
    assert [file.name for file in found.files] == ["z.jsonl", "a.jsonl", "b.jsonl"]


def test_a_sample_is_drawn_by_the_seed(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """So many rows in their order, others for another seed, and all where there are fewer."""
    names = [str(i) for i in range(100)]
    write(tmp_path / "rows.jsonl", [row(name) for name in names])

    def drawn(number: int, seed: int = 0) -> list[str]:
        from demur.model.settings import TrainingSettings

        given = recipe(Source("rows.jsonl", sample=number), settings=TrainingSettings(seed=seed))
        return [each.id for each in mix(given, taxonomy, folders=[tmp_path]).rows]

    assert len(drawn(10)) == 10
    assert drawn(10) == sorted(drawn(10), key=int)
    assert set(drawn(10)) < set(drawn(20))
    assert drawn(10) != drawn(10, seed=1)
    assert drawn(1000) == names


def test_a_share_is_read_of_every_source(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Rounded up, so that no source is lost; of a source that is sampled, that share of the sample."""
    write(tmp_path / "many.jsonl", [row(str(i)) for i in range(40)])
    write(tmp_path / "few.jsonl", [row(f"few{i}") for i in range(3)])
    given = replace(recipe(Source("many.jsonl", sample=21), Source("few.jsonl")), share=0.25)
    found = mix(given, taxonomy, folders=[tmp_path]).rows
    assert sum(each.id.startswith("few") for each in found) == 1
    assert len(found) == 7


def test_texts_are_those_of_their_source(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """A folder of texts is read by id; a source that names none needs messages of its own."""
    bare = {key: value for key, value in row("a").items() if key != "messages"}
    write(tmp_path / "bare.jsonl", [bare])
    write(tmp_path / "texts" / "t.jsonl", [row("a")])
    found = mix(recipe(Source("bare.jsonl", texts=("texts",))), taxonomy, folders=[tmp_path]).rows
    assert found[0].conversation.request == "a"
    with pytest.raises(SourceError, match="no messages among"):
        mix(recipe(Source("bare.jsonl")), taxonomy, folders=[tmp_path])


def test_every_split_of_a_file_to_be_avoided_is_read(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """Its prompts must not be trained on, whatever they are for there."""
    write(tmp_path / "rows.jsonl", [row("a")])
    write(tmp_path / "gold.jsonl", [row("b", split="dev"), row("c", split="train")])
    found = mix(recipe(Source("rows.jsonl"), avoid=("gold.jsonl",)), taxonomy, folders=[tmp_path])
    assert [each.id for each in found.avoided] == ["b", "c"]


def test_texts_of_rows_to_be_avoided_are_those_of_all_sources(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """They may be labelled by id, as sources are; each text file is recorded once. No text is taken for another."""
    bare = {name: {key: value for key, value in row(name).items() if key != "messages"} for name in ("a", "b", "c")}
    write(tmp_path / "one.jsonl", [bare["a"]])
    write(tmp_path / "two.jsonl", [bare["b"]])
    write(tmp_path / "gold.jsonl", [bare["b"], bare["a"]])
    write(tmp_path / "texts" / "a.jsonl", [row("a")])
    write(tmp_path / "texts" / "b.jsonl", [row("b")])
    sources = (Source("one.jsonl", texts=("texts/a.jsonl",)), Source("two.jsonl", texts=("texts/b.jsonl",)))
    given = recipe(*sources, avoid=("gold.jsonl",))
    found = mix(given, taxonomy, folders=[tmp_path])
    assert [each.conversation.request for each in found.avoided] == ["b", "a"]
    assert found.text_files == (tmp_path / "texts" / "a.jsonl", tmp_path / "texts" / "b.jsonl")
    write(tmp_path / "texts" / "b.jsonl", [row("b"), {**row("c"), "id": "a"}])
    with pytest.raises(SourceError, match=r"gold\.jsonl:2: id 'a' has one text at .*a\.jsonl:1 and another"):
        mix(given, taxonomy, folders=[tmp_path])


def test_the_first_folder_that_has_a_file_gives_it(tmp_path: Path) -> None:
    """Data before what lies beside the recipe; without folders, a path is taken as it stands."""
    for name in ("data", "beside"):
        write(tmp_path / name / "both.jsonl", [])
    write(tmp_path / "beside" / "one.jsonl", [])
    folders = [tmp_path / "data", tmp_path / "beside"]
    assert located("both.jsonl", folders) == tmp_path / "data" / "both.jsonl"
    assert located("one.jsonl", folders) == tmp_path / "beside" / "one.jsonl"
    assert located(str(tmp_path / "x.jsonl"), []) == tmp_path / "x.jsonl"


def test_what_no_folder_has_is_named(tmp_path: Path, taxonomy: Taxonomy) -> None:
    """A missing file, and a folder that holds no rows."""
    with pytest.raises(SourceError, match=r"no file at 'none\.jsonl' in .*--data"):
        mix(recipe(Source("none.jsonl")), taxonomy, folders=[tmp_path])
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"no \.jsonl file below '.*empty'"):
        mix(recipe(Source("empty")), taxonomy, folders=[tmp_path])


def test_hard_negatives_are_what_keywords_take_for_refusals(taxonomy: Taxonomy) -> None:
    """Of a refusal, a hard negative and a plain answer, the second weighs .5 * 3 = 1.5."""
    replies = {"Sorry, I cannot help with that.": True, "I cannot do that in one line, so here are two.": False}
    replies["Here you are."] = False
    rows = [
        Labelled(Conversation.of("Why?", reply), id=reply, source="s", outcome=None, is_refusal=refuses, weight=0.5)
        for reply, refuses in replies.items()
    ]
    assert [each.weight for each in harder(rows, 3.0, taxonomy)] == [0.5, 1.5, 0.5]
    assert harder(rows, 1.0, taxonomy) == rows
