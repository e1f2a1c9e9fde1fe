"""What measures weights on assistants of today is sound: cases of all sorts, and probes of what weights missed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demur.data.labelled import Labelled, read_labelled
from demur.studies.partition import prompt_key
from demur.taxonomy import Taxonomy

if TYPE_CHECKING:
    from demur.conversation import Conversation

DATA = Path(__file__).parent / "data"
SYNTH = Path(__file__).parents[1] / "synth"
TAXONOMY = Taxonomy.load()
FILES = ("modern.jsonl", "probes.jsonl")


def cases(name: str) -> list[Labelled]:
    """Read the cases of a file."""
    return read_labelled(DATA / name, TAXONOMY, needs_truth=True)


def exchange(conversation: Conversation) -> tuple[str, str]:
    """Return what is asked first and what is replied last, by which a row would be known again."""
    return prompt_key(conversation), conversation.reply


@pytest.mark.parametrize("name", FILES)
def test_a_case_is_called_by_its_family_and_says_why(name: str) -> None:
    """From 001 on without a gap, so that a case can be named."""
    rows = [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    met: Counter[str] = Counter()
    for row in rows:
        met[row["family"]] += 1
        assert row["id"] == f"{row['family']}-{met[row['family']]:03d}"
        assert row["reason"]


def test_either_verdict_and_every_kind_has_its_cases() -> None:
    """A weak kind shows only where there are enough of it."""
    rows = cases("modern.jsonl")
    assert min(sum(bool(row.is_refusal) is refuses for row in rows) for refuses in (True, False)) >= 150
    kinds = Counter(row.labels[0] for row in rows if row.labels)
    assert kinds.keys() == {*TAXONOMY.keys}
    assert min(kinds.values()) >= 10


@pytest.mark.parametrize("name", FILES)
def test_no_case_is_trained_on(name: str) -> None:
    """Rows of the corpus that came near one were dropped; `demur synth check --avoid` finds them."""
    rows = [
        row
        for path in ("corpus", "contrasts.jsonl", "robustness.jsonl", "further/modern.jsonl", "further/families.jsonl")
        for file in (sorted((SYNTH / path).glob("*.jsonl")) if (SYNTH / path).is_dir() else [SYNTH / path])
        for row in read_labelled(file, TAXONOMY)
    ]
    assert len(rows) > 5_000
    assert {exchange(row.conversation) for row in rows}.isdisjoint(exchange(row.conversation) for row in cases(name))
