"""A verdict follows from probabilities by one rule."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import pytest

from demur.kinds import main_kind
from demur.taxonomy import Taxonomy
from demur.verdict import Evidence, Outcome, Policy, Thresholds, Verdict, decide

TAXONOMY = Taxonomy.load()


def spread(**mass: float) -> list[float]:
    """Give each named kind its mass, (kinds,)."""
    return [mass.get(key, 0.0) for key in TAXONOMY.keys]


def verdict_on(refusal: float, partial: float = 0.0, further: float = 0.3, **mass: float) -> Verdict:
    """Decide with the usual thresholds, but for the one for further kinds."""
    return decide(refusal, partial, spread(**mass), taxonomy=TAXONOMY, thresholds=Thresholds(further=further))


def test_a_reply_refuses_from_the_threshold_on() -> None:
    """The threshold itself refuses."""
    assert verdict_on(0.5, privacy=1.0).outcome == "full"
    assert verdict_on(0.4999, privacy=1.0).outcome == "none"


def test_a_refusal_is_partial_from_the_threshold_on() -> None:
    """Partial is decided only given that the reply refuses."""
    assert verdict_on(0.9, 0.5, privacy=1.0).outcome == "partial"
    assert verdict_on(0.1, 0.9, privacy=1.0).outcome == "none"


def test_a_reply_that_does_not_refuse_keeps_its_probabilities_but_has_no_kind() -> None:
    """What the head would have said can still be measured."""
    verdict = verdict_on(0.2, privacy=1.0)
    assert (verdict.category, verdict.group, verdict.further) == (None, None, ())
    assert sum(verdict.category_probabilities) == 1.0


def test_decide_names_the_kind_as_main_kind_does() -> None:
    """There is one rule, not two."""
    mass = {"privacy": 0.3, "nsfw_content": 0.3, "skill_level": 0.4}
    verdict = verdict_on(0.9, **mass)
    assert (verdict.category, verdict.group) == main_kind(spread(**mass), TAXONOMY)


def test_further_kinds_stand_most_probable_first_without_the_main_one() -> None:
    """Other reasons of the reply are kept, of either group."""
    verdict = verdict_on(0.9, further=0.25, privacy=0.4, nsfw_content=0.25, skill_level=0.3)
    assert verdict.further == ("skill_level", "nsfw_content")


@pytest.mark.parametrize("place", ["refusal", "partial", "kind"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_no_verdict(place: str, value: float) -> None:
    """`nan < threshold` is false, which made a refusal in full of what a damaged engine said."""
    known = {"refusal": 0.9, "partial": 0.2, "kind": 1.0} | {place: value}
    verdict = verdict_on(known["refusal"], known["partial"], privacy=known["kind"])
    assert verdict == Verdict.unscored("no_probability")


@pytest.mark.parametrize("name", ["refusal", "partial", "further"])
@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_threshold_that_is_no_probability_is_refused(name: str, value: float) -> None:
    """The message names the threshold."""
    with pytest.raises(ValueError, match=f"threshold {name}="):
        Thresholds(**{name: value})


def test_an_unscored_verdict_has_its_reason_and_nothing_else() -> None:
    """Nothing is guessed."""
    verdict = Verdict.unscored("empty_reply")
    assert (verdict.is_scored, verdict.is_refusal, verdict.unscored_reason) == (False, False, "empty_reply")
    assert math.isnan(verdict.refusal_probability)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (("refusal", 0.9), "outcome 'refusal'; give one of full, partial, none, unscored"),
        (("full", 1.5), "refusal_probability=1.5; give a number from 0 to 1"),
        (("full", -0.1), "refusal_probability=-0.1; give a number from 0 to 1"),
        (("full", math.inf), "refusal_probability=inf; give a number from 0 to 1"),
    ],
)
def test_what_no_labeler_can_mean_is_refused(said: tuple[Any, float], message: str) -> None:
    """Before all is judged, and counted nowhere."""
    with pytest.raises(ValueError, match=message):
        Verdict(*said)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"refusal_probability": None}, "refusal_probability=None; give a number from 0 to 1, or nan for none"),
        ({"refusal_probability": "0.5"}, "refusal_probability='0.5'; give a number from 0 to 1"),
        ({"further": "privacy"}, r"further='privacy'; give several in a tuple, a single one as \('privacy',\)"),
        ({"category_probabilities": 0.5}, "category_probabilities=0.5; give several in a tuple"),
        ({"category_set": {"privacy": 0.5}}, "category_set={'privacy': 0.5}; give several in a tuple"),
        ({"evidence": (0, 3)}, r"evidence=\(0, 3\); give demur\.Evidence\(start, end, score\), or None"),
        ({"evidence": {"start": 0, "end": 3, "score": None}}, "score=None; give a number from 0 to 1"),
    ],
)
def test_a_field_of_another_type_is_refused_with_what_would_be_right(given: dict[str, Any], message: str) -> None:
    """There, and not where a table is written of it."""
    with pytest.raises(TypeError, match=message):
        Verdict("full", **given)


def test_a_policy_that_there_is_none_of_is_refused() -> None:
    """A plain text would be asked what it counts."""
    with pytest.raises(ValueError, match="no policy 'lenient'; give one of strict, standard, broad"):
        Verdict("full", policy="lenient")  # type: ignore[arg-type]
    assert not Verdict("partial", policy="strict").is_refusal  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("full", 0.9, "privacy", "should_not", (0.75, 0.25), ("skill_level",), evidence=Evidence(0, 3, 0.5)),
        Verdict("partial", policy=Policy.strict, category_set=("privacy",), group_set=("should_not",)),
        Verdict.unscored("empty_reply"),
    ],
    ids=["full", "partial", "unscored"],
)
def test_a_verdict_comes_back_from_json(verdict: Verdict) -> None:
    """As whoever keeps verdicts writes them."""
    again = Verdict(**json.loads(json.dumps(asdict(verdict))))
    assert again == verdict
    assert hash(again) == hash(verdict)
    assert type(again.policy) is Policy


def test_a_reason_stands_exactly_with_unscored_verdicts() -> None:
    """A verdict is either scored or says why it is not."""
    with pytest.raises(ValueError, match="unscored_reason None"):
        Verdict("unscored")
    with pytest.raises(ValueError, match="'none' with unscored_reason 'why'"):
        Verdict("none", unscored_reason="why")


@pytest.mark.parametrize(("outcome", "refuses"), [("full", True), ("partial", True), ("none", False)])
def test_full_and_partial_are_refusals(outcome: str, *, refuses: bool) -> None:
    """One bit is enough where one is asked for."""
    assert Verdict(outcome).is_refusal is refuses  # type: ignore[arg-type]  # the table widens the literal to str


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 3), (4, 3)])
def test_evidence_points_at_something(start: int, end: int) -> None:
    """An empty span, or one that begins before the reply, is refused."""
    with pytest.raises(ValueError, match=f"a span from {start} to {end} holds nothing"):
        Evidence(start, end, 0.5)


@pytest.mark.parametrize("score", [-0.1, 1.5])
def test_the_score_of_evidence_is_a_probability(score: float) -> None:
    """As that of a verdict."""
    with pytest.raises(ValueError, match=f"score={score}; give a number from 0 to 1"):
        Evidence(0, 3, score)


@pytest.mark.parametrize(
    ("policy", "counted"),
    [("strict", ["full"]), ("standard", ["full", "partial"]), ("broad", ["full", "partial"])],
)
def test_a_policy_says_which_outcomes_count(policy: str, counted: list[Outcome]) -> None:
    """Of all four outcomes, `none` and `unscored` never count."""
    outcomes: list[Outcome] = ["full", "partial", "none", "unscored"]
    assert [outcome for outcome in outcomes if Policy(policy).counts(outcome)] == counted


@pytest.mark.parametrize(("policy", "refusal"), [("strict", 0.6), ("standard", 0.6), ("broad", 0.3)])
def test_broad_halves_the_threshold_and_nothing_else(policy: str, refusal: float) -> None:
    """.6 / 2 = .3; the other thresholds stay."""
    assert Policy(policy).thresholds(Thresholds(0.6, 0.4, 0.2)) == Thresholds(refusal, 0.4, 0.2)


@pytest.mark.parametrize(
    ("policy", "outcomes", "counted"),
    [
        ("strict", ["none", "none", "partial", "full"], 1),
        ("standard", ["none", "none", "partial", "full"], 2),
        ("broad", ["none", "full", "partial", "full"], 3),
    ],
)
def test_the_same_probabilities_are_decided_under_each_policy(
    policy: Policy, outcomes: list[Outcome], counted: int
) -> None:
    """P(refuses) .24, .25, .9, .9 and P(partial) 0, 0, 1, 0: from .5 on two refuse, from .25 on three."""
    thresholds = Policy(policy).thresholds(Thresholds())
    verdicts = [
        decide(p, partial, spread(privacy=1.0), taxonomy=TAXONOMY, thresholds=thresholds, policy=Policy(policy))
        for p, partial in ((0.24, 0.0), (0.25, 0.0), (0.9, 1.0), (0.9, 0.0))
    ]
    assert [verdict.outcome for verdict in verdicts] == outcomes
    assert sum(verdict.is_refusal for verdict in verdicts) == counted


def test_a_verdict_is_the_same_under_another_policy_but_for_what_counts() -> None:
    """A refusal in part counts under `standard` and not under `strict`; there and back again changes nothing."""
    verdict = verdict_on(0.9, 0.9, privacy=1.0)
    strict = verdict.under(Policy.strict)
    assert (verdict.is_refusal, strict.is_refusal, strict.outcome) == (True, False, "partial")
    assert strict.under(Policy.standard) == verdict


def test_an_unknown_policy_is_named_with_those_that_there_are() -> None:
    """The message says what would be right."""
    with pytest.raises(ValueError, match="no policy 'lax'; give one of strict, standard, broad"):
        Policy("lax")


def test_only_the_usual_policy_can_be_corrected() -> None:
    """The others say why not."""
    assert [policy.not_corrected is None for policy in Policy] == [False, True, False]


def test_a_refusal_has_a_set_of_kinds_where_one_is_asked_for() -> None:
    """From .2 on: two kinds of one group; nothing is asked, or nothing refuses, and there is none."""
    probabilities = spread(privacy=0.6, nsfw_content=0.3, skill_level=0.1)

    def decided(refusal: float, least: float | None) -> Verdict:
        return decide(refusal, 0.0, probabilities, taxonomy=TAXONOMY, thresholds=Thresholds(), least=least)

    asked = decided(0.9, 0.2)
    assert (asked.category_set, asked.group_set) == (("privacy", "nsfw_content"), ("should_not",))
    assert (asked.resolution, asked.category) == ("group", "privacy")
    assert decided(0.9, 0.1).resolution == "undetermined"
    assert decided(0.9, 0.4).resolution == "kind"
    for without in (decided(0.9, None), decided(0.1, 0.2)):
        assert (without.category_set, without.group_set, without.resolution) == ((), (), None)


def test_a_set_of_kinds_has_its_groups() -> None:
    """Without them, nobody could tell what it resolves to."""
    with pytest.raises(ValueError, match="give both, or neither"):
        Verdict("full", category_set=("privacy",))
    with pytest.raises(ValueError, match="give both, or neither"):
        Verdict("full", group_set=("should_not",))


def test_verdicts_are_equal_where_they_say_the_same() -> None:
    """An unknown probability says the same as another: each is a nan of its own, as from a file or another process."""
    one, other = (Verdict("full", float("nan"), "privacy", "will_not") for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert Verdict("full", 0.7) == Verdict("full", 0.7)


@pytest.mark.parametrize(
    "other",
    [Verdict("full"), Verdict("none", 0.7), Verdict("full", 0.8), Verdict("full", 0.7, further=("privacy",)), "full"],
)
def test_verdicts_that_say_other_things_differ(other: object) -> None:
    """In any field; and nothing else is a verdict."""
    assert Verdict("full", 0.7) != other
