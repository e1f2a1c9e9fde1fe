"""Labelers are opened by name."""

from __future__ import annotations

import pytest

from demur.errors import LabelerError
from demur.labelers.opening import parse_labelers


def test_names_are_read_one_by_one_or_with_commas() -> None:
    """What stands behind the first colon is the model or the file, colons and slashes among it."""
    specs = parse_labelers(["demur, keywords", "judge:org/model:free,recorded:a/b.jsonl", "annotators"])
    assert [tuple(spec) for spec in specs] == [
        ("demur", ""),
        ("keywords", ""),
        ("judge", "org/model:free"),
        ("recorded", "a/b.jsonl"),
        ("annotators", ""),
    ]
    assert [str(spec) for spec in specs][1:3] == ["keywords", "judge:org/model:free"]


@pytest.mark.parametrize("word", ["gpt-5", "judge", "judge:", "recorded", "demur:x", "keywords:", "Judge:m"])
def test_what_names_no_labeler_is_said_with_what_would(word: str) -> None:
    """A word of its own, one without its target, one with a target that it cannot have."""
    with pytest.raises(
        LabelerError, match=f"{word!r} names no labeler; give one of demur, keywords, annotators, judge:"
    ):
        parse_labelers([word])


def test_nothing_names_no_labeler() -> None:
    """Nor do commas."""
    for words in ([], [" , "]):
        with pytest.raises(LabelerError, match="no labeler is named"):
            parse_labelers(words)
