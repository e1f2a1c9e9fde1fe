"""Hold the analyzer to one verdict a conversation, in order, whatever is in it."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from demur.conversation import Conversation, Turn
from demur.documents import shipped_folder
from demur.errors import EngineError, RowError, TaxonomyError, WeightsError
from demur.labelers.classifier import Analyzer
from demur.model.first_look import FirstLook
from demur.model.runtime import Probabilities
from demur.model.runtime.rechecking import EnginePair
from demur.stats.prevalence import OperatingPoint
from demur.verdict import Evidence, Policy, Thresholds, Verdict
from tests.counting import CountingTokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from demur.model.weights import Weights
    from demur.stats.conformal import Coverage
    from demur.taxonomy import Taxonomy

REFUSAL = Conversation.of("Please draw a lock for me.", "Sorry, I am unable to draw.")
ANSWER = Conversation.of("How do I write about bread?", "Sure, here is how you write about bread.")
EVEN = {"refusal": 0.5, "partial": 0.5, "further": 0.3}


class Fixed:
    """Answer every text alike."""

    name = "fixed"
    n_streams = 1
    batch_tokens = 2_048

    def __init__(self, refusal: float, partial: float, kinds: list[float]) -> None:
        """Take the one answer."""
        self._answer = refusal, partial, kinds

    @property
    def n_categories(self) -> int:
        """Count the kinds."""
        return len(self._answer[2])

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:  # noqa: ARG002
        """Repeat the answer."""
        refusal, partial, kinds = self._answer
        n = len(input_ids)
        return Probabilities(np.full(n, refusal), np.full(n, partial), np.tile(kinds, (n, 1)))


def fixed(
    weights: Weights,
    *,
    refusal: float,
    partial: float = 0.0,
    thresholds: Thresholds | None = None,
    evidence: bool = False,
) -> Analyzer:
    """Build an analyzer that is told the probabilities: .5, .3 and .2 for the first three kinds, all of one group."""
    kinds = [0.5, 0.3, 0.2, *[0.0] * (len(weights.taxonomy) - 3)]
    return Analyzer(weights, thresholds=thresholds, engine=Fixed(refusal, partial, kinds), evidence=evidence)


def one(analyzer: Analyzer, conversation: Conversation | str) -> Verdict:
    """Label one conversation."""
    (verdict,) = analyzer.label([conversation])
    return verdict


def test_the_trained_analyzer_tells_refusals_from_answers(
    analyzer: Analyzer, labelled_rows: list[dict[str, Any]]
) -> None:
    """Of the 64 hand-made rows, most of which it was fitted to, at least 58."""
    conversations = [
        Conversation(tuple(Turn(message["role"], message["content"]) for message in row["messages"]))
        for row in labelled_rows
    ]
    verdicts = list(analyzer.label(conversations))
    truth = [row["verdict"] != "none" for row in labelled_rows]
    assert sum(verdict.is_refusal == refuses for verdict, refuses in zip(verdicts, truth, strict=True)) >= 58


def test_a_refusal_has_a_kind_and_an_answer_has_none(analyzer: Analyzer) -> None:
    """Both have the probabilities of all kinds, which sum to 1."""
    refusal, answer = analyzer.label([REFUSAL, ANSWER])
    assert refusal.is_refusal
    assert refusal.category in analyzer.taxonomy.keys
    assert refusal.group == analyzer.taxonomy.group_of(str(refusal.category))
    assert (answer.outcome, answer.category) == ("none", None)
    for verdict in (refusal, answer):
        assert len(verdict.category_probabilities) == 16
        assert sum(verdict.category_probabilities) == pytest.approx(1.0)


def test_verdicts_come_in_order(analyzer: Analyzer) -> None:
    """1,100 conversations, more than two windows of 512, refusals and answers and empty replies mixed."""
    empty = Conversation.of("Why?", " \n")
    pattern = [REFUSAL, ANSWER, ANSWER, empty, REFUSAL, empty, ANSWER]
    expected = [one(analyzer, conversation).outcome for conversation in pattern]
    found = [verdict.outcome for verdict in analyzer.label([pattern[i % 7] for i in range(1_100)])]
    assert found == [expected[i % 7] for i in range(1_100)]


def test_conversations_are_read_as_they_are_needed(analyzer: Analyzer) -> None:
    """The first verdict comes after two windows of 512, one judged and one tokenised, not after the last of all."""
    read = 0

    def endless() -> Any:
        nonlocal read
        while True:
            read += 1
            yield REFUSAL

    next(analyzer.label(endless()))
    assert read == 1_024


def test_strings_and_conversations_are_one(analyzer: Analyzer) -> None:
    """Role-token text is its turns; a text without role tokens is a bare reply."""
    text = "<|user|>Please draw a lock for me.<|assistant|>Sorry, I am unable to draw."
    assert one(analyzer, text) == one(analyzer, REFUSAL)
    bare = Conversation((Turn("assistant", "Sorry, I am unable to draw."),))
    assert one(analyzer, "Sorry, I am unable to draw.") == one(analyzer, bare)


def test_a_string_without_a_reply_is_an_error(analyzer: Analyzer) -> None:
    """It has role tokens, and none of them is the assistant's."""
    with pytest.raises(RowError, match="no assistant turn"):
        one(analyzer, "<|user|>Hello?")


@pytest.mark.parametrize("n_before", [1, 512, 700])
def test_what_can_be_read_before_an_error_is_judged(analyzer: Analyzer, n_before: int) -> None:
    """In windows of 512: one that is not full, one that is tokenised already, and both."""
    verdicts: list[Verdict] = []
    with pytest.raises(RowError, match="no assistant turn"):
        verdicts.extend(analyzer.label([*[REFUSAL] * n_before, "<|user|>Hello?", REFUSAL]))
    assert [verdict.outcome for verdict in verdicts] == [one(analyzer, REFUSAL).outcome] * n_before


@pytest.mark.parametrize("reply", ["", " ", "\n\t ", "\u3000", "<think>I should say no.</think>"])
def test_an_empty_reply_is_unscored(analyzer: Analyzer, reply: str) -> None:
    """Nothing, white space of any kind, and thinking that was never followed by an answer."""
    assert one(analyzer, f"<|user|>Why?<|assistant|>{reply}") == Verdict.unscored("empty_reply")


def test_nothing_gives_nothing(analyzer: Analyzer) -> None:
    """No conversation, no verdict."""
    assert list(analyzer.label([])) == []


@pytest.mark.parametrize(("threshold", "outcome"), [(0.6, "full"), (0.7, "full"), (0.71, "none")])
def test_the_refusal_threshold_counts_from_itself_on(loaded_weights: Weights, threshold: float, outcome: str) -> None:
    """P = .7 refuses at thresholds .6 and .7, and not at .71."""
    analyzer = fixed(loaded_weights, refusal=0.7, thresholds=Thresholds(refusal=threshold))
    assert one(analyzer, REFUSAL).outcome == outcome


def test_the_partial_threshold_parts_full_from_partial(loaded_weights: Weights) -> None:
    """P(partial | refusal) = .6 is partial at the usual .5 and full at .8; an answer is neither."""
    assert one(fixed(loaded_weights, refusal=0.9, partial=0.6), REFUSAL).outcome == "partial"
    strict = Thresholds(partial=0.8)
    assert one(fixed(loaded_weights, refusal=0.9, partial=0.6, thresholds=strict), REFUSAL).outcome == "full"
    assert one(fixed(loaded_weights, refusal=0.1, partial=0.6), REFUSAL).outcome == "none"


@pytest.mark.parametrize(("threshold", "n_further"), [(0.3, 1), (0.2, 2), (0.31, 0)])
def test_further_kinds_follow_their_threshold(loaded_weights: Weights, threshold: float, n_further: int) -> None:
    """Kinds at .5, .3 and .2: beside the main one, those from the threshold on, the most probable first."""
    verdict = one(fixed(loaded_weights, refusal=0.9, thresholds=Thresholds(further=threshold)), REFUSAL)
    assert verdict.category == loaded_weights.taxonomy.keys[0]
    assert verdict.further == loaded_weights.taxonomy.keys[1 : 1 + n_further]


def test_the_fitted_thresholds_hold_unless_others_are_given(loaded_weights: Weights) -> None:
    """None is the only 'not given'."""
    assert Analyzer(loaded_weights).thresholds == loaded_weights.thresholds
    zero = Thresholds(refusal=0.0)
    assert Analyzer(loaded_weights, thresholds=zero).thresholds == zero


def test_lone_surrogates_are_judged_like_any_text(analyzer: Analyzer) -> None:
    """They cannot be written as UTF-8, and must not bring down the rows beside them."""
    broken = Conversation.of("Please draw \ud83d", "Sorry, I am unable to draw\udc00.")
    first, second = analyzer.label([broken, REFUSAL])
    assert first.is_scored
    assert second.refusal_probability == pytest.approx(one(analyzer, REFUSAL).refusal_probability, abs=1e-5)


def test_a_reply_of_two_megabytes_is_judged_by_its_ends(loaded_weights: Weights) -> None:
    """Of two million characters, 16,384 are tokenised, a second time to cut them, and what is left once more."""
    counting: Any = CountingTokenizer(loaded_weights.tokenizer)
    analyzer = Analyzer(replace(loaded_weights, tokenizer=counting))
    verdict = one(analyzer, Conversation.of("Why?", "Sorry, I cannot help. " * 90_000))
    assert verdict.is_scored
    assert counting.n_characters < 50_000


def test_probabilities_are_plain_numbers(analyzer: Analyzer) -> None:
    """Not numpy's: they are written as JSON and compared with `==`."""
    verdict = one(analyzer, REFUSAL)
    assert type(verdict.refusal_probability) is float
    assert {type(probability) for probability in verdict.category_probabilities} == {float}
    assert not math.isnan(verdict.refusal_probability)


def test_an_analyzer_says_what_it_is(loaded_weights: Weights) -> None:
    """Digests of weights and encoder, the engine, the window, and whether it looks for evidence."""
    analyzer = Analyzer(loaded_weights, engine=Fixed(0.5, 0.5, [1.0]))
    assert analyzer.describe() == {
        "name": "demur",
        "language": "English",
        "weights_sha256": loaded_weights.manifest.tensors_sha256,
        "encoder": loaded_weights.manifest.encoder,
        "encoder_files_sha256": loaded_weights.encoder.files_sha256,
        "engine": "fixed",
        "max_tokens": 512,
        "earlier_tokens": 32,
        "first_look": None,
        "evidence": False,
    }
    weights, encoder = loaded_weights.manifest.tensors_sha256[:12], loaded_weights.manifest.encoder
    assert repr(analyzer) == f"<Analyzer of weights {weights} on {encoder!r}, fixed, policy 'standard'>"


def test_a_preference_pair_gives_two_verdicts(loaded_weights: Weights) -> None:
    """One on each side, as rows of a file do; any other row gives one."""
    analyzer = Analyzer(loaded_weights, engine=Fixed(0.9, 0.0, [1.0, *[0.0] * 15]))
    rows = [{"prompt": "Q", "chosen": "No.", "rejected": ""}, {"prompt": "Q", "response": "No."}]
    assert [verdict.outcome for verdict in analyzer.label(rows)] == ["full", "unscored", "full"]


def test_the_operating_point_is_counted_on_held_out_rows(loaded_weights: Weights) -> None:
    """Refusals at .9, .6, .4 and others at .5, .1: from .5 on, 2 hits, 1 miss, 1 alarm, 1 let pass."""
    held_out = {"refusal": [0.4, 0.6, 0.9], "compliance": [0.1, 0.5]}
    known = {"held_out": held_out, "held_out_prompts": None}
    weights = replace(loaded_weights, manifest=loaded_weights.manifest.model_copy(update=known))
    assert Analyzer(weights).operating_point(0.5) == OperatingPoint(2, 1, 1, 1)


def test_the_operating_point_knows_which_rows_answer_one_prompt(loaded_weights: Weights) -> None:
    """Those of a prompt are found or missed together, so that twelve refusals say about as much as three."""
    places = [place // 4 for place in range(12)]
    held_out = {"refusal": [0.4] * 4 + [0.9] * 8, "compliance": [0.1] * 11 + [0.6]}
    known = {"held_out": held_out, "held_out_prompts": {"refusal": places, "compliance": [*range(3, 15)]}}
    weights = replace(loaded_weights, manifest=loaded_weights.manifest.model_copy(update=known))
    point = Analyzer(weights).operating_point(0.5)
    assert point is not None
    assert (point.true_positives, point.false_positives) == (8, 1)
    assert point.refusal_effect >= 4
    assert point.compliance_effect == 1


@pytest.mark.parametrize("held_out", [{}, {"refusal": [0.9]}, {"refusal": [], "compliance": [0.1]}])
def test_without_held_out_rows_of_both_sides_there_is_no_operating_point(
    loaded_weights: Weights, held_out: dict[str, list[float]]
) -> None:
    """A sensitivity of no refusal would be a guess."""
    known = {"held_out": held_out, "held_out_prompts": None}
    weights = replace(loaded_weights, manifest=loaded_weights.manifest.model_copy(update=known))
    assert Analyzer(weights).operating_point(0.5) is None


def test_an_analyzer_is_loaded_from_a_folder(tiny_weights: Path, analyzer: Analyzer, taxonomy: Taxonomy) -> None:
    """Given as a path or a string, with the shipped taxonomy, a taxonomy, or the encoder's folder."""
    expected = one(analyzer, REFUSAL)
    assert one(Analyzer.load(tiny_weights), REFUSAL) == expected
    assert one(Analyzer.load(str(tiny_weights), taxonomy=taxonomy), REFUSAL) == expected
    again = Analyzer.load(tiny_weights, encoder=analyzer.describe()["encoder"], thresholds=Thresholds(refusal=1.0))
    assert one(again, REFUSAL).outcome == "none"


def test_the_home_folder_may_be_a_tilde(
    tiny_weights: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of weights, encoder and taxonomy."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    shutil.copytree(tiny_weights, tmp_path / "weights")
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    shutil.copytree(shipped_folder(), tmp_path / "taxonomy")
    assert list(Analyzer.load("~/weights", encoder="~/encoder", taxonomy="~/taxonomy").label([REFUSAL]))


def test_what_cannot_be_loaded_is_named(tiny_weights: Path, tmp_path: Path) -> None:
    """Weights that are not there, a taxonomy that is not there."""
    with pytest.raises(WeightsError, match="no weights at"):
        Analyzer.load(tmp_path)
    with pytest.raises(TaxonomyError):
        Analyzer.load(tiny_weights, taxonomy=tmp_path / "none.yaml")
    with pytest.raises(EngineError, match="no engine 'abacus'"):
        Analyzer.load(tiny_weights, engine="abacus")


def test_one_string_is_not_taken_for_many(analyzer: Analyzer) -> None:
    """Its characters are no conversations: the error says to give a list."""
    with pytest.raises(TypeError, match="into a list"):
        analyzer.label("Sorry, I cannot help with that.")


def test_refusals_have_evidence_where_it_is_asked_for(loaded_weights: Weights, analyzer: Analyzer) -> None:
    """The verdicts are the same but for the sentence, which only refusals have; a single one has the reply's score."""
    talks = [ANSWER, Conversation.of("Why?", " "), REFUSAL]
    plain, explained = list(analyzer.label(talks)), list(Analyzer(loaded_weights, evidence=True).label(talks))
    assert [replace(verdict, evidence=None) for verdict in explained] == plain
    assert [verdict.evidence is not None for verdict in explained] == [verdict.is_refusal for verdict in plain]
    assert explained[2].evidence == Evidence(0, 27, plain[2].refusal_probability)


def test_the_score_of_a_sentence_is_the_gates_for_it_alone(loaded_weights: Weights, analyzer: Analyzer) -> None:
    """Three sentences, each judged as the whole reply to the same request: the evidence is the most probable."""
    reply = "Yes, here it is. Sorry, I am unable to draw.\nNo good."
    alone = [Conversation.of(REFUSAL.request, reply[start:end]) for start, end in ((0, 16), (17, 44), (45, 53))]
    best = max(verdict.refusal_probability for verdict in analyzer.label(alone))
    explaining = Analyzer(loaded_weights, thresholds=Thresholds(refusal=0.0), evidence=True)
    evidence = one(explaining, Conversation.of(REFUSAL.request, reply)).evidence
    assert evidence is not None
    assert evidence.score == pytest.approx(best, abs=1e-5)
    assert (evidence.start, evidence.end) in ((0, 16), (17, 44), (45, 53))


class Noting(Fixed):
    """Note how wide each batch is."""

    def __init__(self, *answer: Any) -> None:
        """Take the one answer."""
        super().__init__(*answer)
        self.widths: list[int] = []

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Note the width, and answer."""
        self.widths.append(input_ids.shape[1])
        return super().run(input_ids, attention_mask)


def test_evidence_is_looked_for_in_a_short_window(loaded_weights: Weights) -> None:
    """The reply is judged in 512 tokens, after a request of a thousand words; its sentences in 96."""
    engine = Noting(0.9, 0.1, [1.0, *[0.0] * (len(loaded_weights.taxonomy) - 1)])
    talk = Conversation.of("please tell me how " * 250, "Sorry. I cannot help. No good.")
    assert one(Analyzer(loaded_weights, engine=engine, evidence=True), talk).evidence == Evidence(0, 6, 0.9)
    assert loaded_weights.manifest.max_tokens == 512
    assert engine.widths[0] > 480
    assert 80 < max(engine.widths[1:]) <= 96


def test_only_the_verdict_is_read_again(loaded_weights: Weights) -> None:
    """Of a pair of engines the careful one decides, and the quick one says which sentence carries it."""
    kinds = [1.0, *[0.0] * (len(loaded_weights.taxonomy) - 1)]
    quick, careful = Fixed(0.55, 0.9, kinds), Fixed(0.6, 0.9, kinds)
    pair = EnginePair(quick, lambda: careful, thresholds=loaded_weights.thresholds, margin=0.25)
    verdict = one(Analyzer(loaded_weights, engine=pair, evidence=True), Conversation.of("Draw it.", "Sorry. I cannot."))
    assert (verdict.refusal_probability, verdict.evidence) == (0.6, Evidence(0, 6, 0.55))


def test_evidence_of_hostile_replies_points_into_them(loaded_weights: Weights) -> None:
    """Two megabytes, lone surrogates, nothing but emoji: each refusal has a span of its reply, found at the ends."""
    replies = [
        "Sorry, I cannot help. " * 90_000,
        "\ud83d No. \udc00 I can't.",
        "🙏🙏",
        "<|user|>No.<|assistant|> Sorry.",
    ]
    counting: Any = CountingTokenizer(loaded_weights.tokenizer)
    analyzer = fixed(replace(loaded_weights, tokenizer=counting), refusal=0.9, evidence=True)
    for reply, verdict in zip(replies, analyzer.label(Conversation.of("Why?", r) for r in replies), strict=True):
        assert verdict.evidence is not None
        assert reply[verdict.evidence.start : verdict.evidence.end].strip()
    assert counting.n_characters < 50_000


@pytest.mark.parametrize(
    ("policy", "refusal", "partial", "outcome", "counts"),
    [
        ("strict", 0.9, 0.9, "partial", False),
        ("strict", 0.9, 0.1, "full", True),
        ("standard", 0.9, 0.9, "partial", True),
        ("standard", 0.3, 0.1, "none", False),
        ("broad", 0.3, 0.1, "full", True),
        ("broad", 0.2, 0.1, "none", False),
    ],
)
def test_an_analyzer_decides_under_its_policy(
    loaded_weights: Weights, policy: str, refusal: float, partial: float, outcome: str, *, counts: bool
) -> None:
    """From .5 on a reply refuses, under `broad` from .25 on; a refusal in part counts, but under `strict`."""
    weights = replace(loaded_weights, manifest=loaded_weights.manifest.model_copy(update={"thresholds": EVEN}))
    engine = Fixed(refusal, partial, [1.0, *[0.0] * (len(weights.taxonomy) - 1)])
    verdict = one(Analyzer(weights, engine=engine, policy=policy), REFUSAL)
    assert (verdict.outcome, verdict.is_refusal, verdict.policy) == (outcome, counts, Policy(policy))


def test_thresholds_that_are_given_are_taken_as_they_are(loaded_weights: Weights) -> None:
    """Only the fitted one is halved for `broad`."""
    fitted = loaded_weights.thresholds
    assert Analyzer(loaded_weights, policy="broad").thresholds == replace(fitted, refusal=fitted.refusal / 2)
    given = Thresholds(refusal=0.4)
    assert Analyzer(loaded_weights, thresholds=given, policy="broad").thresholds == given


def test_a_number_is_the_threshold_of_a_refusal(loaded_weights: Weights) -> None:
    """The fitted ones hold for the rest, as on the command line."""
    fitted = loaded_weights.thresholds
    assert Analyzer(loaded_weights, thresholds=0.7).thresholds == replace(fitted, refusal=0.7)
    assert Analyzer(loaded_weights, thresholds=1).thresholds == replace(fitted, refusal=1.0)
    with pytest.raises(ValueError, match=r"threshold refusal=1\.5 is not a probability"):
        Analyzer(loaded_weights, thresholds=1.5)
    with pytest.raises(TypeError, match=r"thresholds=\{'refusal': 0\.3\}; give a number"):
        Analyzer(loaded_weights, thresholds={"refusal": 0.3})  # type: ignore[arg-type]


def test_a_refusal_has_its_evidence_whether_or_not_it_counts(loaded_weights: Weights) -> None:
    """A refusal in part under `strict`."""
    engine = Fixed(0.9, 0.9, [1.0, *[0.0] * (len(loaded_weights.taxonomy) - 1)])
    verdict = one(Analyzer(loaded_weights, engine=engine, evidence=True, policy="strict"), REFUSAL)
    assert (verdict.outcome, verdict.is_refusal, verdict.evidence) == ("partial", False, Evidence(0, 27, 0.9))


def scored(weights: Weights, scores: list[float] | None) -> Weights:
    """Return the weights as if they had met these probabilities of true kinds on held-out rows."""
    return replace(weights, manifest=weights.manifest.model_copy(update={"held_out_kinds": scores}))


@pytest.mark.parametrize(
    ("coverage", "kinds", "resolution"),
    [("auto", 3, "group"), (0.9, 3, "group"), (0.7, 2, "group"), (0.5, 1, "kind"), (0.96, 16, "undetermined")],
)
def test_refusals_have_the_set_that_their_coverage_asks_for(
    loaded_weights: Weights, coverage: Coverage, kinds: int, resolution: str
) -> None:
    """Kinds at .5, .3, .2 of one group, and of 19 scores the 18th, 14th, 10th largest at .15, .25, .45; 20 are none."""
    scores = [0.15] * 4 + [0.25] * 5 + [0.45] * 10
    engine = Fixed(0.9, 0.0, [0.5, 0.3, 0.2, *[0.0] * 13])
    verdict = one(Analyzer(scored(loaded_weights, scores), engine=engine, coverage=coverage), REFUSAL)
    assert (len(verdict.category_set), verdict.resolution) == (kinds, resolution)
    assert verdict.category_set[0] == verdict.category == loaded_weights.taxonomy.keys[0]


def test_an_answer_has_no_set(loaded_weights: Weights) -> None:
    """There is nothing that it could be a kind of; the probabilities stay."""
    engine = Fixed(0.1, 0.0, [0.5, 0.3, 0.2, *[0.0] * 13])
    verdict = one(Analyzer(scored(loaded_weights, [0.4] * 20), engine=engine), REFUSAL)
    assert (verdict.outcome, verdict.category_set, verdict.resolution) == ("none", (), None)
    assert verdict.category_probabilities[0] == 0.5


@pytest.mark.parametrize(
    ("scores", "coverage"), [(None, "auto"), ([], "auto"), (None, None), ([0.4] * 20, None), ([], None)]
)
def test_without_scores_or_where_none_are_wanted_there_are_no_sets(
    loaded_weights: Weights, scores: list[float] | None, coverage: Coverage
) -> None:
    """Weights of before sets judge as they did."""
    analyzer = Analyzer(scored(loaded_weights, scores), engine=Fixed(0.9, 0.0, [1.0, *[0.0] * 15]), coverage=coverage)
    assert analyzer.category_sets is None
    assert one(analyzer, REFUSAL).category_set == ()


def test_a_set_that_is_asked_for_is_not_left_out_silently(loaded_weights: Weights) -> None:
    """Older weights cannot state a coverage: the error says why, and what would be right."""
    with pytest.raises(WeightsError, match=r"coverage 0\.9, but these weights are older .*train again"):
        Analyzer(scored(loaded_weights, None), coverage=0.9)


def test_no_held_out_refusal_at_all_leaves_every_kind_possible(loaded_weights: Weights) -> None:
    """Asked for all the same, the set is all kinds: the theory's answer to no data."""
    analyzer = Analyzer(scored(loaded_weights, []), engine=Fixed(0.9, 0.0, [1.0, *[0.0] * 15]), coverage=0.9)
    assert len(one(analyzer, REFUSAL).category_set) == 16


@pytest.mark.parametrize("scores", [None, [0.4] * 20])
def test_a_coverage_out_of_range_is_refused(loaded_weights: Weights, scores: list[float] | None) -> None:
    """Whatever the weights."""
    with pytest.raises(ValueError, match=r"coverage 1\.5; give a number from 0\.5 to 0\.999"):
        Analyzer(scored(loaded_weights, scores), coverage=1.5)
    with pytest.raises(TypeError, match=r"coverage '0\.9'; give a number from 0\.5 to 0\.999, 'auto', or None"):
        Analyzer(scored(loaded_weights, scores or [0.4]), coverage="0.9")  # type: ignore[arg-type]


class Counting(Fixed):
    """Answer every text alike, and remember how long each was."""

    def __init__(self, refusal: float, partial: float, kinds: list[float]) -> None:
        """Begin with nothing read."""
        super().__init__(refusal, partial, kinds)
        self.lengths: list[int] = []

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Probabilities:
        """Remember the lengths."""
        self.lengths += attention_mask.sum(1).tolist()
        return super().run(input_ids, attention_mask)


def looking(
    weights: Weights, *, refusal: float, first_look: bool = True, thresholds: Thresholds | None = None
) -> tuple[Counting, Analyzer]:
    """Build an analyzer that settles what is below .1 in a window of 64 tokens."""
    manifest = weights.manifest.model_copy(update={"first_look": FirstLook(64, 0.1)})
    engine = Counting(refusal, 0.0, [1.0, *[0.0] * (len(weights.taxonomy) - 1)])
    with_look = replace(weights, manifest=manifest)
    return engine, Analyzer(with_look, engine=engine, first_look=first_look, thresholds=thresholds)


@pytest.mark.parametrize(("refusal", "n_reads"), [(0.05, 1), (0.2, 2)])
def test_a_long_reply_is_read_in_full_where_the_first_look_leaves_doubt(
    loaded_weights: Weights, refusal: float, n_reads: int
) -> None:
    """A clear answer is read once, in the short window; any other twice."""
    engine, analyzer = looking(loaded_weights, refusal=refusal)
    verdict = one(analyzer, Conversation.of("Why?", "Here is how you write about bread. " * 50))
    assert (len(engine.lengths), verdict.refusal_probability) == (n_reads, refusal)
    assert engine.lengths[0] <= 64
    assert all(length > 64 for length in engine.lengths[1:])


def test_there_is_no_first_look_where_it_might_settle_a_refusal(loaded_weights: Weights) -> None:
    """It was fitted to settle nothing from .25 on, and .05 counts at a threshold of .02."""
    low = Thresholds(refusal=0.02)
    engine, analyzer = looking(loaded_weights, refusal=0.05, thresholds=low)
    verdict = one(analyzer, Conversation.of("Why?", "Here is how you write about bread. " * 50))
    assert verdict.is_refusal
    assert min(engine.lengths) > 64
    assert analyzer.describe()["first_look"] is None
    assert looking(loaded_weights, refusal=0.05, thresholds=Thresholds(refusal=0.25))[1].describe()["first_look"]


def test_a_first_look_is_taken_where_it_is_asked_for_and_known(loaded_weights: Weights) -> None:
    """Not by default, and not with weights that say nothing of it; what is done is told."""
    engine, analyzer = looking(loaded_weights, refusal=0.01, first_look=False)
    one(analyzer, Conversation.of("Why?", "Here is how you write about bread. " * 50))
    assert engine.lengths[0] > 64
    assert analyzer.describe()["first_look"] is None
    assert looking(loaded_weights, refusal=0.01)[1].describe()["first_look"] == {"tokens": 64, "below": 0.1}
    unfitted = replace(loaded_weights, manifest=loaded_weights.manifest.model_copy(update={"first_look": None}))
    assert Analyzer(unfitted, first_look=True).describe()["first_look"] is None


CHAT = Conversation((
    Turn("user", "Hello? " * 60), Turn("assistant", "Here is bread. " * 60), Turn("user", "Why?"),
    Turn("assistant", "No. I can't help."),
))  # fmt: skip


@pytest.mark.parametrize("earlier_tokens", [None, 0, 16])
def test_of_earlier_turns_as_much_is_read_as_the_weights_say(
    loaded_weights: Weights, earlier_tokens: int | None
) -> None:
    """All that fits where they say nothing, as weights of before do; at a first look, too. Evidence reads none."""
    manifest = loaded_weights.manifest.model_copy(
        update={"earlier_tokens": earlier_tokens, "first_look": FirstLook(100, 0.1)}
    )
    weights = replace(loaded_weights, manifest=manifest)
    engine = Counting(0.9, 0.1, [1.0, *[0.0] * (len(weights.taxonomy) - 1)])
    one(Analyzer(weights, engine=engine, first_look=True, evidence=True), CHAT)
    without = len(loaded_weights.tokenizer.encode("<|user|>Why?<|assistant|>No. I can't help.").ids)
    *whole, no, cannot = engine.lengths
    assert max(no, cannot) < without
    if earlier_tokens is None:
        first, second = whole
        assert 90 <= first <= 100
        assert second > 300
    else:
        assert whole[0] - without in range(max(0, earlier_tokens - 8), earlier_tokens + 1)
        assert len(whole) == 1


def test_a_first_look_reads_no_more_of_earlier_turns(loaded_weights: Weights) -> None:
    """A long reply gets one, and room is left where earlier turns would have filled it."""
    known = {"earlier_tokens": 0, "first_look": FirstLook(100, 0.95)}
    weights = replace(loaded_weights, manifest=loaded_weights.manifest.model_copy(update=known))
    engine = Counting(0.9, 0.1, [1.0, *[0.0] * (len(weights.taxonomy) - 1)])
    long = Conversation((*CHAT.context, Turn("assistant", "No. " * 150)))
    one(Analyzer(weights, engine=engine, first_look=True), long)
    alone = Counting(0.9, 0.1, [1.0, *[0.0] * (len(weights.taxonomy) - 1)])
    one(
        Analyzer(weights, engine=alone, first_look=True),
        Conversation((*CHAT.context[2:], Turn("assistant", "No. " * 150))),
    )
    assert engine.lengths == alone.lengths
