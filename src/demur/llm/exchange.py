"""Hold what is asked of a language model, and what comes back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, astuple, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from demur.llm.parameters import longest_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answer", "ChatRequest", "Failure", "Message", "Reply", "Usage"]

# In the words of the API that all speak, and in those of Gemini, which gateways to it pass on.
_REFUSED = frozenset(("content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii"))
_CUT = frozenset(("length", "max_tokens"))


@dataclass(frozen=True, slots=True)
class Message:
    """Keep one message to a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Ask one thing of a model; requests that are equal may share an answer.

    Attributes:
        messages: What is said to the model, oldest first.
        prompt: Name and version of the prompt that wrote the messages; another version is another request.
        schema: JSON schema that the answer is to follow; a server that knows none is asked without it.
        parameters: What goes with it under the names of the API: `temperature`, `max_tokens`, `seed` …
    """

    messages: tuple[Message, ...]
    prompt: str
    schema: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def key(self, *, url: str, model: str) -> str:
        """Identify the request to a model: sha256, in hex, over the canonical JSON of all that decides its answer."""
        whole = {"url": url, "model": model, **asdict(self)}
        canonical = json.dumps(whole, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def n_bytes(self) -> int:
        """Return the size of messages and schema, in bytes of UTF-8."""
        schema = "" if self.schema is None else json.dumps(self.schema, ensure_ascii=False)
        texts = (*(message.content for message in self.messages), schema)
        return sum(len(text.encode("utf-8", "replace")) for text in texts)

    @property
    def max_tokens(self) -> int | None:
        """Return the longest answer allowed, in tokens; None where no limit is set."""
        return longest_answer(self.parameters)


@dataclass(frozen=True, slots=True)
class Usage:
    """Count the tokens that a provider charges for.

    Attributes:
        prompt_tokens: All that was read.
        cached_tokens: Those among them that the provider had in its own cache.
        written_tokens: Those among them that the provider wrote into its cache.
        completion_tokens: All that was written, thinking included.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Self) -> Self:
        """Add two counts."""
        return type(self)(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Answer:
    """Keep what a model said; it is paid for, whether or not it can be used.

    Attributes:
        text: The answer as it came, thinking included; empty where there is none.
        finish_reason: Why the model stopped: `stop`, `length`, `content_filter` …, in the words of the server; None
            where it does not say.
        refusal: What the model said in place of an answer; None where it did not refuse.
        usage: What it cost in tokens; None where the server does not say.
        seconds: How long it took to come, pauses between attempts included; None where nobody waited for it alone, as
            by the Batch API. It is no part of what was said.
    """

    text: str
    finish_reason: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    seconds: float | None = field(default=None, compare=False)

    @property
    def is_refused(self) -> bool:
        """Tell whether the model, or a filter before or behind it, refused to answer."""
        return bool(self.refusal) or self._ended(_REFUSED)

    @property
    def is_cut(self) -> bool:
        """Tell whether the answer ends where it was allowed to be no longer."""
        return self._ended(_CUT)

    def _ended(self, reasons: frozenset[str]) -> bool:
        return self.finish_reason is not None and self.finish_reason.lower() in reasons


@dataclass(frozen=True, slots=True)
class Failure:
    """Keep why a request has no answer; nothing is paid for it, as far as is known.

    Attributes:
        reason: `provider_unavailable`, `provider_refused`, `request_too_long` or `request_rejected`.
        message: What the provider said.
        may_be_paid: Whether it was sent, and no answer came in time: providers mostly finish such requests, and bill
            them.
    """

    reason: Literal["provider_unavailable", "provider_refused", "request_too_long", "request_rejected"]
    message: str
    may_be_paid: bool = False


Reply = Answer | Failure
