"""Cases in languages besides English, written by a language model and never trained on, are sound."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path

from demur.data.labelled import Labelled, read_labelled
from demur.data.scripts import is_latin
from demur.studies.partition import prompt_key
from demur.taxonomy import Taxonomy

CASES = Path(__file__).parent / "data" / "languages.jsonl"
SYNTH = Path(__file__).parents[1] / "synth"


@cache
def cases() -> tuple[Labelled, ...]:
    """Read every case; a damaged one is an error."""
    return tuple(read_labelled(CASES, Taxonomy.load()))


def test_each_family_of_scripts_has_refusals_and_answers() -> None:
    """No constant answer is right more often than in three cases of four; each request stands once."""
    sides: dict[str | None, list[bool | None]] = defaultdict(list)
    for case in cases():
        sides[case.family].append(case.is_refusal)
    assert len(sides) == 5
    assert all(4 * min(found.count(True), found.count(False)) >= len(found) for found in sides.values())
    assert len({prompt_key(case.conversation) for case in cases()}) == len(cases()) >= 100


def test_the_families_are_what_the_scripts_of_the_replies_are() -> None:
    """Two replies translate into another script, as they were asked to."""
    odd = {case.id for case in cases() if is_latin(case.conversation.reply) != (case.family == "latin")}
    assert odd == {"languages-sr-01", "languages-zh-04"}


def test_no_case_is_trained_on() -> None:
    """No message of theirs stands among the synthetic rows."""
    lines = (line for file in SYNTH.rglob("*.jsonl") for line in file.read_text(encoding="utf-8").splitlines())
    known = {message["content"] for line in lines for message in json.loads(line).get("messages", ())}
    assert known
    assert not known & {turn.content for case in cases() for turn in case.conversation.turns}
