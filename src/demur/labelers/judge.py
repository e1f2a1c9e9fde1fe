"""Let a language model judge replies."""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, Any

from demur.data.intake import as_conversations
from demur.errors import BudgetError
from demur.labelers.judge_answers import read_verdict
from demur.labelers.judge_prompt import JudgePrompt, Variant
from demur.llm.client import Client
from demur.llm.endpoint import OPENAI_URL, Endpoint
from demur.llm.parameters import sent_parameters
from demur.taxonomy import Taxonomy
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from demur.conversation import Conversation
    from demur.llm.budget import Spending
    from demur.llm.client import Estimate
    from demur.llm.exchange import Answer, ChatRequest

__all__ = ["Judge"]

_PARAMETERS: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 4096}
# A sentence and a few keys, as JSON.
_ANSWER_TOKENS = 60
# Conversations given at once: an audit writes down what is finished of so many. A batch takes hours, however large.
_CHUNK, _BATCH_CHUNK = 256, 10_000


class Judge:
    """Give verdicts by asking a language model, with the taxonomy for instructions.

    A verdict has no probability. What the model does not answer, or does not answer in the taxonomy, is unscored with
    its reason, and asked again by the next run; what it answers is kept in the cache, and never paid for again.

    Attributes:
        taxonomy: What is judged by.
        client: Asks the model.
        prompt: What the model is told.
    """

    def __init__(
        self,
        client: Client,
        *,
        taxonomy: Taxonomy | None = None,
        prompt: Variant = "full",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Take an open client; `at` is the usual door.

        Args:
            client: Asks the model.
            taxonomy: What is judged by; None for the shipped one.
            prompt: How much the model is told: `short` or `full`.
            parameters: What is sent beside the messages, under the names of the API, over temperature 0 and
                4,096 tokens at most; one that is None is not sent.

        Raises:
            ValueError: There is no such prompt.
            EndpointError: A parameter is none to give.
            BudgetError: A cost is limited, and the length of an answer is not.
        """
        self.taxonomy = Taxonomy.load() if taxonomy is None else taxonomy
        self.client = client
        self.prompt = JudgePrompt(self.taxonomy, prompt)
        self._parameters = sent_parameters(_PARAMETERS, parameters)
        client.require_bound(self._parameters)

    @classmethod
    def at(
        cls,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        key_variable: str | None = None,
        concurrency: int = 8,
        taxonomy: Taxonomy | None = None,
        prompt: Variant = "full",
        parameters: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401  # those of the client, which has their types
    ) -> Judge:
        """Build the judge that a model at an OpenAI-compatible endpoint makes.

        Args:
            model: Name of the model, as the server has it.
            base_url: Where the API begins.
            key_variable: The environment variable with the key; None for `OPENAI_API_KEY` at OpenAI, none elsewhere.
            concurrency: Requests at a time.
            taxonomy: What is judged by; None for the shipped one.
            prompt: How much the model is told: `short` or `full`.
            parameters: What is sent beside the messages; see `Judge`.
            **options: Those of `demur.llm.client.Client`: cache, prices, budget, run, is_batch, tell …

        Raises:
            EndpointError: The address is none, or a parameter is none to give.
            BudgetError: A cost is limited, and no price is known, or the length of an answer is not limited.
            OutputError: The cache cannot be used.
        """
        endpoint = Endpoint(model, base_url, key_variable, concurrency)
        return cls(Client(endpoint, **options), taxonomy=taxonomy, prompt=prompt, parameters=parameters)

    def __repr__(self) -> str:
        """Return whom it asks, in one line."""
        return f"<Judge {self.name!r} at {self.client.endpoint.url}, prompt {self.prompt.name}>"

    @property
    def name(self) -> str:
        """Return the name that reports use."""
        return f"judge:{self.client.endpoint.model}"

    @property
    def chunk(self) -> int:
        """Return how many conversations are best given at once."""
        return _BATCH_CHUNK if self.client.is_batch else _CHUNK

    @property
    def spending(self) -> Spending:
        """Return what was asked and paid so far."""
        return self.client.spending

    def describe(self) -> dict[str, Any]:
        """Return what identifies this judge: model, endpoint, prompt, parameters."""
        return {
            "name": self.name,
            "endpoint": self.client.endpoint.url,
            "prompt": self.prompt.name,
            "parameters": " ".join(f"{name}={value!r}" for name, value in sorted(self._parameters.items())),
        }

    def label(self, conversations: Iterable[Conversation | str | Mapping[str, Any]]) -> Iterator[Verdict]:
        """Yield one verdict for each reply, in order; an empty one is unscored without asking.

        A conversation, a plain string and a row are taken as by `Analyzer.label`.

        Raises:
            BudgetError: There is no room for the next conversation; the verdicts before it have been yielded.
            EndpointError: The model cannot be asked.
            LayoutError: A row fits no layout.
            RowError: A plain string has role tokens, but no assistant turn, or a row no reply.
            TypeError: A single conversation is given in place of several, or one of them is of another type.
        """
        return self._verdicts(as_conversations(conversations))

    def estimate(self, conversations: Iterable[Conversation | str | Mapping[str, Any]]) -> Estimate:
        """Say what judging conversations would come to, without asking anything."""
        requests = self._requests(as_conversations(conversations), deque(maxlen=0))
        return self.client.estimate(requests, answer_tokens=_ANSWER_TOKENS, is_usable=self._is_usable)

    def _verdicts(self, conversations: Iterator[Conversation]) -> Iterator[Verdict]:
        # Requests are read ahead of the replies to them: which conversations had none is remembered until their turn.
        blanks: deque[bool] = deque()
        try:
            for reply in self.client.ask(self._requests(conversations, blanks), self._is_usable):
                while blanks.popleft():
                    yield Verdict.unscored("empty_reply")
                yield read_verdict(reply, self.taxonomy)
        except BudgetError:
            # Those right before the conversation that there is no room for cost nothing.
            yield from (Verdict.unscored("empty_reply") for _ in itertools.takewhile(bool, blanks))
            raise
        yield from (Verdict.unscored("empty_reply") for _ in blanks)

    def _requests(self, conversations: Iterator[Conversation], blanks: deque[bool]) -> Iterator[ChatRequest]:
        for conversation in conversations:
            is_blank = not conversation.reply.strip()
            blanks.append(is_blank)
            if not is_blank:
                yield self.prompt.request(conversation, self._parameters)

    def _is_usable(self, answer: Answer) -> bool:
        return read_verdict(answer, self.taxonomy).is_scored
