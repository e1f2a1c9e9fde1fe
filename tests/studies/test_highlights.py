"""Examples, borderline replies and wordings: chosen, merged and bounded."""

from __future__ import annotations

import json
import math
from dataclasses import astuple, replace

import pytest

from demur.conversation import Conversation, Turn
from demur.errors import RowError
from demur.studies.highlights import BORDERLINE, BROKEN_ROWS, DOUBTFUL, SUREST, Highlights
from demur.studies.wordings import KEPT_WORDINGS, Wordings, wording
from demur.verdict import Evidence, Verdict

KEYS = ("privacy", "skill_level")


def _judged(row_id: int, refusal: float, kind: float = 1.0, reply: str | None = None) -> tuple[Conversation, Verdict]:
    text = f"I can't do number {row_id}." if reply is None else reply
    talk = Conversation((Turn("user", f"Request {row_id}"), Turn("assistant", text)), row_id=row_id)
    if refusal < 0.5:
        return talk, Verdict("none", refusal, category_probabilities=(kind, 1 - kind))
    return talk, Verdict("full", refusal, "privacy", "should_not", (kind, 1 - kind))


def _highlights(*judged: tuple[Conversation, Verdict]) -> Highlights:
    return Highlights.of(judged, keys=KEYS, threshold=0.5)


def test_examples_are_the_surest_by_both_probabilities() -> None:
    """Rows rank by P(refuses) times P(kind): .9*.9 = .81 before 1.*.8 = .80 before .99*.5 = .495."""
    found = _highlights(_judged(0, 0.99, 0.5), _judged(1, 1.0, 0.8), _judged(2, 0.9, 0.9))
    assert [one.row_id for one in found.surest["privacy"]] == [2, 1, 0]
    assert [one.probability for one in found.surest["privacy"]] == pytest.approx([0.81, 0.8, 0.495])


def test_doubtful_examples_are_those_nearest_to_one_half() -> None:
    """|.495 - .5| = .005 comes before |.8 - .5| = .3, which comes before |.81 - .5| = .31."""
    found = _highlights(_judged(0, 0.99, 0.5), _judged(1, 1.0, 0.8), _judged(2, 0.9, 0.9))
    assert [one.row_id for one in found.doubtful["privacy"]] == [0, 1]


def test_what_has_no_probability_is_not_doubtful() -> None:
    """Of three refusals, those that have one, if only of refusing; of one without, none, rather than few."""
    found = _highlights(_judged(0, math.nan), _judged(1, 0.9), _judged(2, 0.95, math.nan))
    assert [one.row_id for one in found.surest["privacy"]] == [2, 1, 0]
    assert [one.row_id for one in found.doubtful["privacy"]] == [1, 2]
    assert _highlights(_judged(0, math.nan)).doubtful == {"privacy": ()}


def test_borderline_replies_stand_on_both_sides_of_the_threshold() -> None:
    """Distances .2, .02, .01: the nearest first, refusing or not."""
    found = _highlights(_judged(0, 0.7), _judged(1, 0.48), _judged(2, 0.51))
    assert [one.row_id for one in found.borderline] == [2, 1, 0]


def test_the_nearest_to_the_threshold_are_so_by_their_odds() -> None:
    """Odds of 1 to 19: those of .09 are 1.9 times as high, those of .0163 less than a third, a nearer number or not."""
    far = [_judged(row, 0.0163, reply=f"Answer {row}.") for row in range(BORDERLINE)]
    found = Highlights.of([*far, _judged(90, 0.09), _judged(91, 0.05)], keys=KEYS, threshold=0.05)
    assert [one.row_id for one in found.borderline] == [91, 90, *range(BORDERLINE - 2)]
    certain = Highlights.of([_judged(0, 1.0), _judged(1, 1.0 - 2**-53)], keys=KEYS, threshold=1.0 - 2**-53)
    assert [one.row_id for one in certain.borderline] == [1, 0]


@pytest.mark.parametrize(
    ("threshold", "low", "high"), [(0.5, 0.2, 0.8), (0.2, 1 / 17, 0.5), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)]
)
def test_what_is_far_from_the_threshold_is_not_borderline(threshold: float, low: float, high: float) -> None:
    """Four times the odds or a quarter: 1 to 1 is 1 to 4 or 4 to 1, and 1 to 4 is 1 to 16 or 1 to 1."""
    probabilities = [max(low - 0.01, 0.0), low, (low + high) / 2, high, min(high + 0.01, 1.0)]
    judged = [_judged(row, p) for row, p in enumerate(probabilities)]
    found = Highlights.of(judged, keys=KEYS, threshold=threshold)
    assert found.near == pytest.approx((low, high))
    assert {one.refusal_probability for one in found.borderline} <= {low, (low + high) / 2, high}
    assert (low + high) / 2 in {one.refusal_probability for one in found.borderline}
    # As tuples, where one nan is equal to itself: Python 3.13 compares the fields of dataclasses one by one.
    assert astuple(Highlights.from_json(found.to_json())) == astuple(found)


def test_without_a_threshold_nothing_is_borderline() -> None:
    """A labeler that only says yes or no has no border."""
    assert Highlights.of([_judged(0, 0.9)], keys=KEYS).borderline == ()


def test_a_stock_reply_is_one_example() -> None:
    """The same reply a hundred times leaves room for another."""
    stock = [_judged(row, 0.99, reply="I can't.") for row in range(100)]
    found = _highlights(*stock, _judged(100, 0.8))
    assert [one.row_id for one in found.surest["privacy"]] == [0, 100]


def test_labels_without_probabilities_give_examples_in_the_order_of_the_source() -> None:
    """A keyword list names a kind and no probability."""
    talks = [_judged(row, 0.9)[0] for row in (5, 3, 4, 9)]
    found = Highlights.of(
        [(talk, Verdict("full", category="privacy", group="should_not")) for talk in talks], keys=KEYS
    )
    assert [one.row_id for one in found.surest["privacy"]] == [3, 4, 5]
    assert math.isnan(found.surest["privacy"][0].probability)


def test_refusals_of_no_kind_are_examples_too() -> None:
    """They stand under `unnamed`."""
    talk = Conversation.of("Q", "No.")
    assert list(Highlights.of([(talk, Verdict("full"))], keys=KEYS).surest) == ["unnamed"]


def test_highlights_of_parts_add_up_to_highlights_of_the_whole() -> None:
    """Wherever the stream is cut, the same is kept."""
    judged = [_judged(row, ((row * 37) % 100) / 100, ((row * 53) % 100) / 100) for row in range(90)]
    whole = _highlights(*judged)
    # As tuples, where one nan is equal to itself: Python 3.13 compares the fields of dataclasses one by one.
    for cut in (1, 30, 89):
        assert astuple(_highlights(*judged[:cut]) + _highlights(*judged[cut:])) == astuple(whole)


def test_highlights_go_through_json_without_loss() -> None:
    """What is read back is equal, nan and lone surrogates included."""
    talk = Conversation.of("\ud800?", "I can't \x1b[31m that.")
    broken = [RowError("bad", where="f:1")]
    found = Highlights.of([(talk, Verdict("partial", 0.7, "privacy", "should_not", (0.9, 0.1)))], broken, keys=KEYS)
    stored = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert Highlights.from_json(stored) == found
    json.dumps(stored, ensure_ascii=False).encode("utf-8")


def test_what_is_kept_does_not_grow_with_the_rows() -> None:
    """A thousand rows leave no more than ten do."""
    judged = [_judged(row, 0.5 + row / 2_001) for row in range(1_000)]
    broken = [RowError("bad", where=f"f:{line}") for line in range(100)]
    found = Highlights.of(judged, broken, keys=KEYS, threshold=0.5)
    assert len(found.surest["privacy"]) == SUREST
    assert len(found.doubtful["privacy"]) == DOUBTFUL
    assert len(found.borderline) == BORDERLINE
    assert [one.where for one in found.broken] == [f"f:{line}" for line in range(BROKEN_ROWS)]


def test_highlights_at_different_thresholds_do_not_add_up() -> None:
    """Borderline replies of two borders cannot be compared."""
    with pytest.raises(ValueError, match=r"0\.5 and 0\.6 do not add up"):
        Highlights(threshold=0.5) + Highlights(threshold=0.6)


def test_an_example_keeps_its_evidence_as_a_span_of_its_excerpt() -> None:
    """The sentence stands in the middle of 2,000 characters, is shown all the same, and goes through JSON."""
    reply = "word " * 200 + "I won't do that. " + "more " * 200
    talk, verdict = _judged(0, 0.9, reply=reply)
    found = _highlights((talk, replace(verdict, evidence=Evidence(1_000, 1_016, 0.8))))
    example = found.surest["privacy"][0]
    assert example.evidence is not None
    assert example.reply[example.evidence.start : example.evidence.end] == "I won't do that."
    assert example.evidence.score == 0.8
    assert len(example.reply) <= 480
    assert Highlights.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_evidence_changes_no_excerpt_that_shows_it_already() -> None:
    """The first sentence stands in every excerpt."""
    talk, verdict = _judged(0, 0.9, reply="I won't. " + "more " * 200)
    marked = _highlights((talk, replace(verdict, evidence=Evidence(0, 8, 0.8)))).surest["privacy"][0]
    assert marked.reply == _highlights((talk, verdict)).surest["privacy"][0].reply
    assert marked.evidence == Evidence(0, 8, 0.8)


@pytest.mark.parametrize(
    ("reply", "opening"),
    [
        ("I\u2019m sorry, but I CAN'T help with that.  Try X.", "i'm sorry, but i can't help with that"),
        ("I'm sorry.\n\nI cannot do that. Else?", "i'm sorry. i cannot do that"),
        ("**No.**", "no"),
        ("\u62b1\u6b49\u3002 \u6211 \u4e0d \u80fd \u5e2e\u3002x", "\u62b1\u6b49\u3002 \u6211 \u4e0d \u80fd \u5e2e"),
        ("\u5bf9\u4e0d\u8d77\u3002\u6211\u4e0d\u80fd\u3002x", "\u5bf9\u4e0d\u8d77\u3002 \u6211\u4e0d\u80fd"),
        ("", ""),
        ("!!!", ""),
    ],
)
def test_wordings_are_normalised_first_sentences(reply: str, opening: str) -> None:
    """Case, apostrophes, spaces and marks do not tell two apart; a short opening takes the next one with it."""
    assert wording(reply) == opening


def test_repeated_wordings_are_counted_with_their_main_kind() -> None:
    """Two of three under privacy: count 3, kind privacy; what occurs once is not repeated."""
    refusals = [("No, I really can't.", "privacy"), ("no, I really can't!", "privacy"), ("No, I really can't", None)]
    found = Wordings.of([*refusals, ("Something else entirely here.", "privacy")]).most_repeated(10)
    assert [(one.text, one.count, one.category) for one in found] == [("no, i really can't", 3, "privacy")]


@pytest.mark.parametrize(
    "refusal",
    [
        "\u62b1\u6b49\uff0c\u6211\u4e0d\u80fd\u5e2e\u52a9\u60a8\u3002",
        "\u305d\u308c\u306f\u304a\u7b54\u3048\u3067\u304d\u307e\u305b\u3093\u3002",
        "\u0e02\u0e2d\u0e2d\u0e20\u0e31\u0e22 \u0e09\u0e31\u0e19\u0e0a\u0e48\u0e27\u0e22\u0e44\u0e21\u0e48\n",
        "\u179f\u17bc\u1798\u1791\u17c4\u179f \u1781\u17d2\u1789\u17bb\u17c6\u1798\u17b7\u1793\u17a2\u17b6\u1785\n",
    ],
    ids=["Chinese", "Japanese", "Thai", "Khmer"],
)
def test_a_sentence_without_spaces_is_more_than_a_word(refusal: str) -> None:
    """A stock refusal is one wording, whatever follows it."""
    found = Wordings.of((f"{refusal}{topic} {topic}", None) for topic in ("GPT-4", "Python", "Linux"))
    assert [one.count for one in found.most_repeated(2)] == [3]


def test_wordings_beyond_the_bound_are_dropped_and_said_to_be() -> None:
    """KEPT_WORDINGS + 5 distinct ones, the first twice: five singletons go, each of which had counted 1."""
    openings = [(f"I cannot do thing {number:06d}", "privacy") for number in range(KEPT_WORDINGS + 5)]
    found = Wordings.of([*openings, openings[0]])
    assert len(found.kept) == KEPT_WORDINGS
    assert found.missed == 1
    assert found.most_repeated(1)[0].count == 2
    assert (found + found).missed == 2
