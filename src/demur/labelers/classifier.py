"""Judge replies with the trained encoder."""

from __future__ import annotations

import itertools
import numbers
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from demur.data.intake import as_conversations
from demur.data.rendering import Renderer
from demur.errors import WeightsError
from demur.labelers.evidence import evidence_of
from demur.model.engine_names import EngineName
from demur.model.first_look import FirstLook, judged_in_looks
from demur.model.runtime import AnyEngine, TorchEngine, judged, unchecked
from demur.model.runtime.choice import open_engine
from demur.model.weights import Weights
from demur.stats.conformal import DEFAULT_COVERAGE, CategorySets, require_coverage
from demur.stats.prevalence import OperatingPoint
from demur.taxonomy import Taxonomy
from demur.verdict import Policy, Thresholds, Verdict, decide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from demur.conversation import Conversation
    from demur.stats.conformal import Coverage

__all__ = ["Analyzer"]

# Of the shipped encoder, whose vocabulary has little of other scripts, and of nearly all that weights are trained on.
_LANGUAGE = "English"
# How much is read where evidence is looked for: a sentence, and the ends of the request. For 131 of 137 refusals of
# hh-rlhf it was the same sentence as in 512 tokens, for a third of the tokens; with as much of earlier turns as fits in
# 96 tokens, for 128.
_EVIDENCE_VIEW = {"max_tokens": 96, "earlier_tokens": 0}
# Conversations that are rendered and sorted together: enough to fill batches of even length, few enough to stay small.
_WINDOW = 512


@dataclass(frozen=True, slots=True)
class _Window:
    """Hold conversations that are judged together, tokenised.

    Attributes:
        conversations: All of them.
        places: Which of them have a reply to judge.
        tokens: Ids of those, special tokens included.
        shortened: Ids of those that get a first look, in the first window, by their place among `tokens`.
    """

    conversations: Sequence[Conversation]
    places: Sequence[int]
    tokens: Sequence[Sequence[int]]
    shortened: Mapping[int, Sequence[int]]


class Analyzer:
    """Give verdicts with a gate and a category head on one small encoder."""

    # But for rounding, which differs among batches; in ONNX Runtime's int8, whose ranges are those of a batch, by more.
    judges_text_alone = True

    def __init__(
        self,
        weights: Weights,
        *,
        thresholds: Thresholds | float | None = None,
        engine: AnyEngine | None = None,
        first_look: bool = False,
        evidence: bool = False,
        policy: str = Policy.standard,
        coverage: Coverage = "auto",
    ) -> None:
        """Take loaded weights; `load` is the usual door.

        Args:
            weights: Network, tokenizer, encoder, manifest and taxonomy.
            thresholds: Where probabilities become decisions; None for those of the weights, under the policy. A number
                is the probability from which a reply refuses, and leaves the others as the weights have them.
            engine: What runs the network; None for torch in fp32.
            first_look: Whether long replies that clearly do not refuse are settled in a short window, where the weights
                say which, and where the thresholds are not below all that the fit was for.
            evidence: Whether each refusal gets the sentence that carries it, for a short pass over its sentences.
            policy: What counts as a refusal: `strict`, `standard` or `broad`.
            coverage: Stated share of refusals whose set of kinds holds the true one, from 0.5 to 0.999; `auto` for 0.9
                where the weights can state one and no sets where they cannot; None for no sets.

        Raises:
            TypeError: The thresholds, or the coverage, are something else.
            ValueError: There is no such policy, or no such coverage can be stated; or a threshold is no probability.
            WeightsError: The weights cannot state the coverage that is asked for.
        """
        self._manifest = weights.manifest
        self._encoder = weights.encoder
        self._engine = TorchEngine(weights.network) if engine is None else engine
        self._with_evidence = evidence
        self._tokenizer = weights.tokenizer
        view = weights.manifest.view
        self._renderer = Renderer(weights.tokenizer, **view)
        brief = min(_EVIDENCE_VIEW["max_tokens"], weights.manifest.max_tokens)
        self._brief_renderer = Renderer(weights.tokenizer, **{**_EVIDENCE_VIEW, "max_tokens": brief})
        self.taxonomy = weights.taxonomy
        self.policy = Policy(policy)
        self.thresholds = self.policy.thresholds(weights.thresholds, thresholds)
        self._first = weights.manifest.first_look if first_look and FirstLook.serves(self.thresholds) else None
        self.category_sets = _category_sets(weights.manifest.held_out_kinds, coverage)

    @classmethod
    def load(  # noqa: PLR0913  # each is a choice of its own, and most are left out
        cls,
        weights: str | Path | None = None,
        *,
        encoder: str | Path | None = None,
        taxonomy: str | Path | Taxonomy | None = None,
        thresholds: Thresholds | float | None = None,
        evidence: bool = False,
        policy: str = Policy.standard,
        coverage: Coverage = "auto",
        engine: str = EngineName.torch,
        first_look: bool = False,
    ) -> Self:
        """Load weights, the shipped ones by default, onto their encoder.

        Args:
            weights: A folder that `demur train` wrote.
            encoder: `embedded`, a local folder or a hub id, if the encoder is not where the weights' manifest says.
            taxonomy: A taxonomy, or a file that holds one; None for the shipped one.
            thresholds: Where probabilities become decisions; None for those of the weights, under the policy. A number
                is the probability from which a reply refuses, and leaves the others as the weights have them.
            evidence: Whether each refusal gets the sentence that carries it, for a short pass over its sentences.
            policy: What counts as a refusal: `strict`, `standard` or `broad`.
            coverage: Stated share of refusals whose set of kinds holds the true one, as for the constructor.
            engine: What runs the network: `torch` for fp32, `torch-bf16`, `onnx`, `openvino`, or `auto` for the fastest
                that is installed and decides as fp32 does. All but `torch` are built at first use, in a minute or more.
            first_look: Whether long replies that clearly do not refuse are settled in a short window.

        Raises:
            TypeError: The thresholds, or the coverage, are something else.
            ValueError: There is no such policy, or no such coverage can be stated; or a threshold is no probability.
            EngineError: There is no such engine, its extra is not installed, or it does not decide as fp32 does.
            WeightsError: Weights or encoder are missing, damaged, or do not belong together; or these weights cannot
                state the coverage.
            TaxonomyError: The taxonomy file is missing or damaged.
        """
        if not isinstance(taxonomy, Taxonomy):
            taxonomy = Taxonomy.load(None if taxonomy is None else Path(taxonomy))
        folder = None if weights is None else Path(weights)
        loaded = Weights.load(folder, taxonomy=taxonomy, encoder=None if encoder is None else str(encoder))
        used = Policy(policy).thresholds(loaded.thresholds, thresholds)
        opened = None if engine == EngineName.torch else open_engine(engine, loaded, thresholds=used)
        return cls(
            loaded, thresholds=used, engine=opened, first_look=first_look,
            evidence=evidence, policy=policy, coverage=coverage,
        )  # fmt: skip

    def __repr__(self) -> str:
        """Return what judges, in one line."""
        weights, encoder = self._manifest.tensors_sha256[:12], self._manifest.encoder
        return f"<Analyzer of weights {weights} on {encoder!r}, {self._engine.name}, policy {self.policy.value!r}>"

    @property
    def name(self) -> str:
        """Return the name that reports use."""
        return "demur"

    def describe(self) -> dict[str, Any]:
        """Return what identifies this analyzer: weights, encoder, engine, windows, evidence."""
        return {
            "name": self.name,
            "language": _LANGUAGE,
            "weights_sha256": self._manifest.tensors_sha256,
            "encoder": self._manifest.encoder,
            "encoder_files_sha256": self._encoder.files_sha256,
            "engine": self._engine.name,
            **self._manifest.view,
            "first_look": None if self._first is None else asdict(self._first),
            "evidence": self._with_evidence,
        }

    def operating_point(self, threshold: float) -> OperatingPoint | None:
        """Count hits and errors at a threshold on the rows that training held out; None where there are none.

        These rows are known to refuse, in full or in part, or not to: the point is that of the policy `standard`.
        """
        held_out = self._manifest.held_out
        refusals, compliances = (held_out.get(name, []) for name in ("refusal", "compliance"))
        if not refusals or not compliances:
            return None
        prompts = self._manifest.held_out_prompts
        called = [p >= threshold for p in (*refusals, *compliances)]
        answered = range(len(called)) if prompts is None else [*prompts["refusal"], *prompts["compliance"]]
        return OperatingPoint.of([True] * len(refusals) + [False] * len(compliances), called, answered)

    def label(self, conversations: Iterable[Conversation | str | Mapping[str, Any]]) -> Iterator[Verdict]:
        """Yield one verdict for each reply, in order; an empty one is unscored, never guessed.

        Args:
            conversations: `Conversation`, plain strings and rows (dicts, laid out as in a file), or a pandas frame. A
                string is taken as role-token text (`<|user|>…<|assistant|>…`), or as a bare reply where it has no role
                tokens; a row that holds a preference pair gives two verdicts, on the chosen reply and then on the
                rejected one. Thinking at the beginning of a reply is set apart.

        Raises:
            LayoutError: A row fits no layout; the verdicts before it have been yielded.
            RowError: A plain string has role tokens, but no assistant turn, or a row no reply; likewise.
            TypeError: A single conversation is given in place of several, or one of them is of another type.
        """
        return self._verdicts(as_conversations(conversations))

    def _verdicts(self, conversations: Iterator[Conversation]) -> Iterator[Verdict]:
        failures: list[Exception] = []
        readable = _until_failure(conversations, failures)
        # While a window is judged, the next one is tokenised: both let go of Python's lock.
        with ThreadPoolExecutor(1) as pool:
            ahead: Future[_Window] | None = None
            while some := list(itertools.islice(readable, _WINDOW)):
                ready, ahead = ahead, pool.submit(self._tokenised, some)
                if ready is not None:
                    yield from self._judge(ready.result())
            if ahead is not None:
                yield from self._judge(ahead.result())
        if failures:
            raise failures[0]

    def _tokenised(self, conversations: Sequence[Conversation]) -> _Window:
        places = [place for place, conversation in enumerate(conversations) if conversation.reply.strip()]
        tokens = self._renderer.tokens([conversations[place] for place in places])
        if self._first is None:
            return _Window(conversations, places, tokens, {})
        longer = [i for i, ids in enumerate(tokens) if self._first.is_worth(len(ids))]
        renderer = Renderer(self._tokenizer, **{**self._manifest.view, "max_tokens": self._first.tokens})
        shortened = renderer.tokens([conversations[places[i]] for i in longer])
        return _Window(conversations, places, tokens, dict(zip(longer, shortened, strict=True)))

    def _judge(self, window: _Window) -> list[Verdict]:
        verdicts = [Verdict.unscored("empty_reply")] * len(window.conversations)
        if not window.places:
            return verdicts
        if self._first is None:
            found = judged(window.tokens, self._engine)
        else:
            found = judged_in_looks(window.tokens, window.shortened, self._engine, self._first)
        least = None if self.category_sets is None else self.category_sets.least
        for i, refusal, partial, kinds in zip(window.places, found.refusal, found.partial, found.kinds, strict=True):
            verdicts[i] = decide(
                refusal, partial, kinds,
                taxonomy=self.taxonomy, thresholds=self.thresholds, policy=self.policy, least=least,
            )  # fmt: skip
        return self._explained(window.conversations, verdicts) if self._with_evidence else verdicts

    def _explained(self, conversations: Sequence[Conversation], verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Give each reply that refuses, whether or not it counts, its evidence."""
        refusals = [i for i, verdict in enumerate(verdicts) if verdict.outcome in ("full", "partial")]
        found = evidence_of(
            [conversations[i] for i in refusals],
            [verdicts[i].refusal_probability for i in refusals],
            lambda reduced: judged(self._brief_renderer.tokens(reduced), unchecked(self._engine)).refusal.tolist(),
        )
        explained = list(verdicts)
        for i, evidence in zip(refusals, found, strict=True):
            explained[i] = replace(verdicts[i], evidence=evidence)
        return explained


def _until_failure(conversations: Iterator[Conversation], failures: list[Exception]) -> Iterator[Conversation]:
    """Yield conversations as long as they can be read, and keep what ended that: those before it are judged first."""
    try:
        yield from conversations
    except Exception as error:  # noqa: BLE001  # whatever it is, it is raised in its turn
        failures.append(error)


def _category_sets(scores: Sequence[float] | None, coverage: Coverage) -> CategorySets | None:
    if coverage is None or (coverage == "auto" and not scores):
        return None
    stated = DEFAULT_COVERAGE if coverage == "auto" else coverage
    if not isinstance(stated, numbers.Real):
        message = f"coverage {coverage!r}; give a number from 0.5 to 0.999, 'auto', or None for no sets"
        raise TypeError(message)
    require_coverage(stated)
    if scores is None:
        message = (
            f"coverage {stated!r}, but these weights are older than sets of kinds: nothing says how probable the true "
            "kinds of held-out rows are; train again with `demur train`, or ask for no coverage"
        )
        raise WeightsError(message)
    return CategorySets.of(scores, stated)
