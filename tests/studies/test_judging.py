"""Equal texts are judged once, across chunks and resumes, and counted as often as they are there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from demur.conversation import Conversation
from demur.errors import OutputError
from demur.labelers.keywords import KeywordLabeler
from demur.studies import run
from demur.studies.audit import audit
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# Eleven replies, five texts: "No." seven times (once after another question), "Yes." twice, an empty one twice.
REPLIES = ("No.", "No.", "Yes.", "No.", "", "No.", "No.", "Yes.", "", "No.")
TALKS = [*(Conversation.of("Q", reply) for reply in REPLIES), Conversation.of("Another Q", "No.")]


class Changing:
    """Give each conversation a probability that no other gets, so that a verdict tells when it was given."""

    name = "changing"

    def __init__(self, *, is_alone: bool = True, stop_at: int = 99) -> None:
        """Say whether it judges the text alone, and at which conversation to stop."""
        self.judges_text_alone = is_alone
        self.judged: list[str] = []
        self._stop_at = stop_at

    def label(self, conversations: Iterable[Conversation]) -> Iterator[Verdict]:
        """Yield one verdict for each conversation."""
        for talk in conversations:
            if talk.row_id == self._stop_at:
                raise KeyboardInterrupt
            self.judged.append(talk.reply)
            if talk.reply:
                yield Verdict("full" if talk.reply == "No." else "none", 1 / (2 + talk.row_id))
            else:
                yield Verdict.unscored("empty_reply")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a shard after every three replies."""
    monkeypatch.setattr(run, "CHUNK", 3)


def test_a_text_is_judged_where_it_comes_first(tmp_path: Path) -> None:
    """Four texts are judged, seven repeat: all eleven count, and have the verdict of the first."""
    labeler = Changing()
    found = audit(TALKS, labeler=labeler, out=tmp_path)
    assert labeler.judged == ["No.", "Yes.", "", "No."]
    assert (found.rows, found.refusals, found.composition.unscored) == (11, 7, {"empty_reply": 2})
    assert found.tally.repeats == 7
    frame = found.to_frame()
    assert list(frame["refusal_probability"][[0, 1, 3, 5, 6, 9]]) == [1 / 2] * 6
    assert list(frame["refusal_probability"][[2, 7, 10]]) == [1 / 4, 1 / 4, 1 / 12]
    assert list(frame["row_id"]) == list(range(11))
    written = json.loads((tmp_path / "composition.json").read_text())
    assert (written["repeats"], written["options"]["dedup"]) == (7, True)
    assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize(("labeler", "dedup"), [(Changing(), False), (Changing(is_alone=False), True)])
def test_each_one_is_judged_where_texts_are_not_compared(labeler: Changing, dedup: bool, tmp_path: Path) -> None:
    """Because the caller, or the labeler, wants it so; how many repeat is then not known."""
    audit(TALKS, labeler=labeler, out=tmp_path, dedup=dedup)
    assert len(labeler.judged) == 11
    written = json.loads((tmp_path / "composition.json").read_text())
    assert (written["repeats"], written["options"]["dedup"]) == (None, False)


@pytest.mark.parametrize("stop_at", [2, 4, 10])
def test_a_resumed_audit_knows_the_texts_of_the_first_run(stop_at: int, tmp_path: Path) -> None:
    """In the second, second and fourth chunk: nothing that is finished is judged again, and the bytes are the same."""
    audit(TALKS, labeler=Changing(), out=tmp_path / "whole")
    first, second = Changing(stop_at=stop_at), Changing()
    with pytest.raises(KeyboardInterrupt):
        audit(TALKS, labeler=first, out=tmp_path / "cut")
    audit(TALKS, labeler=second, out=tmp_path / "cut", resume=True)
    for name in ("composition.json", "tally.json", "verdicts.parquet"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(second.judged) < 4 or stop_at < 3


def test_comparing_texts_or_not_is_part_of_what_must_stay_the_same(tmp_path: Path) -> None:
    """It decides which texts go through the network together."""
    with pytest.raises(KeyboardInterrupt):
        audit(TALKS, labeler=Changing(stop_at=10), out=tmp_path)
    with pytest.raises(OutputError, match=r"options\.dedup was true and is false"):
        audit(TALKS, labeler=Changing(), out=tmp_path, dedup=False, resume=True)


def test_texts_that_were_lost_refuse_to_resume(tmp_path: Path) -> None:
    """To count repeats anew would give other bytes."""
    with pytest.raises(KeyboardInterrupt):
        audit(TALKS, labeler=Changing(stop_at=10), out=tmp_path)
    (tmp_path / "shards" / "texts.sqlite").unlink()
    with pytest.raises(OutputError, match="knows the texts of 0 chunks, and 3 are finished"):
        audit(TALKS, labeler=Changing(), out=tmp_path, resume=True)
    assert audit(TALKS, labeler=Changing(), out=tmp_path, overwrite=True).rows == 11


def test_shards_that_a_killed_run_left_behind_its_results_are_cleared(tmp_path: Path) -> None:
    """It had nothing left to do but this."""
    audit(TALKS, labeler=Changing(), out=tmp_path)
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "part-000000.json").write_text("{}")
    audit(TALKS, labeler=Changing(), out=tmp_path, resume=True)
    assert not (tmp_path / "shards").exists()


def test_scored_replies_in_other_scripts_are_counted(tmp_path: Path) -> None:
    """Repeats, too, over all chunks; not requests, nor what is unscored."""
    talks = [*TALKS, *(Conversation.of("Who?", reply) for reply in ("Не знаю.", "不知道", "不知道"))]
    found = audit([*talks, Conversation.of("谁?", "No.")], labeler=Changing(), out=tmp_path)
    assert found.tally.other_scripts == 3
    assert json.loads((tmp_path / "composition.json").read_text())["other_scripts"] == 3


def test_keywords_find_repeats_and_say_the_same_as_without() -> None:
    """The verdicts are equal, and so are all counts but that of repeats."""
    talks = [Conversation.of("Q", reply) for reply in ("I can't help with that.", "Sure.", "") * 3]
    once, each = audit(talks, labeler=KeywordLabeler()), audit(talks, labeler=KeywordLabeler(), dedup=False)
    assert once.composition == each.composition
    assert once.to_frame().equals(each.to_frame())
    assert (once.tally.repeats, each.tally.repeats) == (6, 0)
