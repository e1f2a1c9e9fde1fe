"""Equal texts are judged once, and counted as often as they are there; a labeler's faults are said with its name."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.errors import LabelerError, OutputError
from demur.labelers.keywords import KeywordLabeler
from demur.studies import run
from demur.studies.audit import audit
from demur.taxonomy import Taxonomy
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


class Own:
    """Give whatever it is told to."""

    name = "own"
    taxonomy = Taxonomy.load()

    def __init__(self, *given: Any) -> None:
        """Take what `label` gives, in order."""
        self.given = given

    def label(self, conversations: Iterable[Conversation]) -> Iterable[Verdict]:
        """Give it in a list, for as many conversations as there are."""
        return list(self.given)[: len(list(conversations))]


@pytest.mark.parametrize("said", ["full", True, {"outcome": "full"}, None], ids=repr)
def test_what_is_no_verdict_is_named_with_who_gave_it(said: Any) -> None:
    """And what would be right."""
    with pytest.raises(LabelerError, match=r"labeler 'own' gave .*; right would be one demur\.Verdict for each"):
        audit(["No."], labeler=Own(said))


class Asynchronous(Own):
    """Be written as a client is."""

    async def label(self, conversations: Iterable[Conversation]) -> Any:  # type: ignore[override]  # that is the fault
        """Return a coroutine, which nobody waits for."""
        return list(conversations)


class Single(Own):
    """Take conversations for one."""

    def label(self, _: Iterable[Conversation]) -> Any:
        """Return what it was told to, and no list of it."""
        return self.given[0]


@pytest.mark.parametrize(
    "labeler", [Single(None), Single(Verdict("full")), Asynchronous()], ids=lambda one: repr(one.given)
)
def test_what_cannot_be_gone_through_is_named_with_who_gave_it(labeler: Any) -> None:
    """Nothing, one verdict, or a coroutine, of which Python gives no warning."""
    with pytest.raises(
        LabelerError, match=r"labeler 'own' gave .*; right would be one demur\.Verdict for each .* async"
    ):
        audit(["No."], labeler=labeler)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (Verdict("full", category="rudeness"), "the kind 'rudeness'; the taxonomy 'refusals' has .*privacy"),
        (Verdict("full", category="privacy", further=("rude",)), "the kind 'rude'; the taxonomy"),
        (
            Verdict("full", category="privacy", group="cannot"),
            "the group 'cannot' of the kind 'privacy'; .* should_not",
        ),
        (Verdict("full", group="may_not"), "the group 'may_not'; right would be should_not or cannot, or None"),
        (Verdict("full", category_probabilities=(0.5, 0.5)), "2 category_probabilities; give one for each of the 16"),
    ],
)
def test_what_the_taxonomy_does_not_have_is_named_with_who_gave_it(verdict: Verdict, said: str) -> None:
    """Two tables would contradict each other, or the verdicts could not be written."""
    with pytest.raises(LabelerError, match=f"'own' gave {said}"):
        audit(["No."], labeler=Own(verdict))


def test_a_kind_brings_its_group() -> None:
    """Where the labeler leaves it out: tables, counts and verdicts say the same."""
    found = audit(["No.", "No!"], labeler=Own(Verdict("full", category="privacy"), Verdict("full", group="cannot")))
    assert list(found.to_frame()["group"]) == ["should_not", "cannot"]
    assert {key: share.count for key, share in found.by_group.items()} == {"should_not": 1, "cannot": 1, "unnamed": 0}
    assert found.table().loc["privacy", "group"] == "should_not"


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("policy", "lax", "has policy 'lax'; right would be one of strict, standard, broad, or none"),
        ("policy", 3, "has policy 3; right would be one of strict"),
        ("thresholds", 0.4, r"has thresholds 0\.4; right would be demur\.Thresholds\(refusal=…\), or none"),
        ("chunk", 0, "has chunk 0; right would be a number of replies from 1 on, or none"),
        ("chunk", -1, "has chunk -1; right would be"),
        ("describe", lambda: None, r"gave None; right would be a dict of JSON values, such as \{'model': 'm'\}"),
        ("describe", lambda: {(1, 2): 3}, r"gave .*; right would be a dict of JSON values"),
        ("describe", lambda: {"p": math.nan}, r"gave .*; right would be a dict of JSON values"),
    ],
)
def test_what_a_labeler_has_wrong_is_met_before_it_is_asked(name: str, given: Any, said: str, tmp_path: Path) -> None:
    """It was ignored, or ended in an error that named nobody."""
    labeler = Own(Verdict("full"))
    setattr(labeler, name, given)
    with pytest.raises(LabelerError, match=f"labeler 'own' {said}"):
        audit(["No."], labeler=labeler, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_name_of_a_policy_is_a_policy() -> None:
    """A class attribute of one's own is mostly a text."""
    labeler = Own(Verdict("partial"))
    labeler.policy = "strict"  # type: ignore[attr-defined]  # which a labeler may have
    assert audit(["No."], labeler=labeler).refusals == 0
    with pytest.raises(ValueError, match="'own' decides under 'strict'"):
        audit(["No."], labeler=labeler, policy="standard")
