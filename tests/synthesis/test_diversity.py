"""Figures of diversity agree with hand counts and with a second library; domination is warned of."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from demur.synthesis.diversity import distinct, diversity_of, self_bleu
from demur.synthesis.wording import tokens

CORPUS = Path(__file__).parents[2] / "synth" / "corpus"


def test_distinct_counts_each_gram_once() -> None:
    """'a b a', 'b c': 3 of 5 words differ; the pairs ab, ba, bc all do."""
    assert distinct([["a", "b", "a"], ["b", "c"]], 1) == 3 / 5
    assert distinct([["a", "b", "a"], ["b", "c"]], 2) == 1.0
    assert math.isnan(distinct([["a"]], 2))


def test_self_bleu_is_one_for_copies_and_nothing_for_strangers() -> None:
    """By hand, for 'a b c d e' twice: every precision is 1, and so is the penalty."""
    assert self_bleu([list("abcde"), list("abcde")]) == pytest.approx(1.0)
    assert self_bleu([list("abcd"), list("efgh")]) == 0.0
    assert math.isnan(self_bleu([list("abcd")]))
    # 'a b c d' against 'a b c d e f': precisions 1, penalty exp(1 - 6/4). The other way round: precisions 4/6, 3/5,
    # 2/4, 1/3, no penalty.
    backward = (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert self_bleu([list("abcd"), list("abcdef")]) == pytest.approx((math.exp(-0.5) + backward) / 2)


def test_self_bleu_agrees_with_a_second_library() -> None:
    """NLTK's sentence BLEU of each of 40 replies against the rest, smoothed by method 1; short and empty ones too."""
    bleu = pytest.importorskip("nltk.translate.bleu_score")
    lines = (CORPUS / "privacy.jsonl").read_text(encoding="utf-8").splitlines()[:40]
    replies = [tokens(json.loads(line)["messages"][-1]["content"]) for line in lines]
    replies += [["no"], ["no", "way"], [], replies[0]]
    smooth = bleu.SmoothingFunction().method1
    theirs = [
        bleu.sentence_bleu(replies[:i] + replies[i + 1 :], reply, smoothing_function=smooth)
        for i, reply in enumerate(replies)
    ]
    assert self_bleu(replies) == pytest.approx(sum(theirs) / len(theirs))


def test_one_voice_or_one_opening_is_warned_of() -> None:
    """Four of ten begin alike, and six have a voice that a quarter was planned for; of nine rows, nothing is said."""
    replies = [f"I cannot do {i} {i + 1} {i + 2}" for i in range(4)] + [f"{i} is {i + 7} now {i + 9}" for i in range(6)]
    voices = ["terse"] * 6 + ["warm"] * 4
    found = diversity_of(replies, voices, {"terse": 5, "warm": 15})
    assert (found.rows, found.opening, found.opening_share) == (10, "i cannot do", 0.4)
    assert (found.voice, found.voice_share, found.planned_voice_share) == ("terse", 0.6, 0.25)
    opening, voice = found.warnings()
    assert opening == "40% of the replies begin with 'i cannot do'"
    assert voice == "60% of the rows have the voice 'terse', where 25% were planned"
    assert not list(diversity_of(replies[:9], voices[:9], {"terse": 5, "warm": 15}).warnings())
    *_, alike = diversity_of(["so it is not to be"] * 5 + ["and that was it, then"] * 5, [], {}).warnings()
    assert alike == "replies are much alike: self-BLEU 1.00"
    empty = diversity_of([], [], {}).to_json()
    assert (empty["self_bleu"], empty["opening_share"], empty["rows"]) == (None, None, 0)


def test_the_corpus_is_as_diverse_as_the_thresholds_say() -> None:
    """What they were drawn from: no kind of it is warned of."""
    for path in sorted(CORPUS.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        full = [row["messages"][-1]["content"] for row in rows if row["verdict"] == "full"][:50]
        found = diversity_of(full, [], {})
        assert not list(found.warnings())
        assert 0.08 < found.self_bleu < 0.21
