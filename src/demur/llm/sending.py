"""Send one request, and tell an answer, a row that has none, and an endpoint that cannot be used apart."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal

import openai

from demur.errors import EndpointError
from demur.llm.completions import read_completion
from demur.llm.exchange import Answer, Failure
from demur.llm.wire import Unheard

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.llm.dialect import Dialect
    from demur.llm.endpoint import Endpoint
    from demur.llm.exchange import ChatRequest, Reply
    from demur.llm.keys import ApiKey

__all__ = ["PATIENCE", "Sender", "failure_of", "is_passing"]

PATIENCE = 20
"""Requests in a row without any answer, each after all its attempts, after which the endpoint is taken for down."""
_PATIENCE_ONCE_USEFUL = 10 * PATIENCE

_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_LARGE, _UNPROCESSABLE, _TOO_MANY = (
    400, 401, 403, 404, 413, 422, 429,
)  # fmt: skip
# No key, no money, no such model: whatever is said with it, it is not of one row.
_OF_ALL = (_UNAUTHORIZED, 402, _NOT_FOUND)
_OF_THE_ACCOUNT = re.compile(r"\b(?:organi[sz]ation|account|access|api.?key|suspended|disabled)\b", re.IGNORECASE)
# It is of one row, whatever else is named. A request or content that is blocked is not: so do firewalls put it.
_OF_THE_CONTENT = re.compile(
    r"content violates usage guidelines|SAFETY_CHECK_|\b(?:content|request)\W+(?:was |has been )?flagged"
    r"|\b(?:input|prompt)\W+(?:was |has been )?(?:flagged|blocked)",
    re.IGNORECASE,
)
# In the words of OpenAI and others; of DeepSeek; of Alibaba; of Volcengine.
_FILTERED = re.compile(
    r"content.?(?:filter|policy)|moderation|flagged|safety|content exists risk"
    r"|data.?inspection.?failed|inappropriate content|sensitive.?content",
    re.IGNORECASE,
)
# In the words of OpenAI and others; of llama.cpp; of xAI; of TGI; of Moonshot; of Alibaba.
_TOO_LONG = re.compile(
    r"context.?(?:length|window)|too (?:long|many tokens)|maximum.{0,20}tokens|context size|maximum prompt length"
    r"|max_new_tokens\W{0,3}must be|model token limit|input length should",
    re.IGNORECASE,
)
_EMPTY_PURSE = re.compile(
    r"insufficient.?(?:quota|balance|credit|funds)|exceeded your current quota|credit balance|arrearage|good standing",
    re.IGNORECASE,
)
# Beyond it, the client library does not wait for what a server asks; a run should stop and be gone on with later.
_LONGEST_WAIT_SECONDS = 120
_SHORTER = "; where request and answer are too long together, --parameter max_tokens=N sets aside less for the answer"
# What a firewall answers is a whole page.
_LONGEST_TEXT = 1_000
_EXCERPT = 100
_SAID_FIRST = 300
# Texts have three to five bytes a token.
_MOST_BYTES_A_TOKEN = 8


def is_passing(status: int) -> bool:
    """Tell the status of a response after which another attempt may go well, as the client library has it."""
    return status >= 500 or status in (408, 409, _TOO_MANY)  # noqa: PLR2004  # what the client library retries


def failure_of(status: int, message: str) -> Failure:
    """Name why a provider gave no answer to a request, by the status of its response and by what it said."""
    reason: Literal["provider_unavailable", "provider_refused", "request_too_long", "request_rejected"]
    if is_passing(status):
        reason = "provider_unavailable"
    elif status in _OF_ALL:
        reason = "request_rejected"
    elif status == _FORBIDDEN and _OF_THE_CONTENT.search(message):
        reason = "provider_refused"
    elif status == _FORBIDDEN and _OF_THE_ACCOUNT.search(message):
        reason = "request_rejected"
    elif _FILTERED.search(message):
        reason = "provider_refused"
    elif status == _TOO_LARGE or _TOO_LONG.search(message):
        reason = "request_too_long"
    else:
        reason = "request_rejected"
    return Failure(reason, message)


class Sender:
    """Send requests over one client, and remember what its server understands.

    What only one request met is a `Failure`; what every other would meet, too, is raised.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        endpoint: Endpoint,
        key: ApiKey,
        *,
        dialect: Dialect,
        tell: Callable[[str], None],
        has_been_useful: bool,
    ) -> None:
        """Take an open client.

        Args:
            client: Does the retries.
            endpoint: Names the model.
            key: What must not be written anywhere.
            dialect: What is known of the server.
            tell: Told what somebody who waits would want to know.
            has_been_useful: Whether the server has given an answer of use before.
        """
        self._client = client
        self._endpoint = endpoint
        self._key = key
        self._tell = tell
        self._failed_in_a_row = 0
        self._rejected_in_a_row = 0
        self._n_useless = 0
        self._told: set[str] = set()
        self.dialect = dialect
        self.has_been_useful = has_been_useful

    async def send(self, request: ChatRequest) -> Reply:
        """Return the answer to a request, or why there is none.

        It is said as the server understands it: what it rejects by name is left out from then on.

        Raises:
            EndpointError: No other request would do better: the key, the model or the address is wrong, or the account
                is empty.
        """
        spoken = self.dialect
        reply = await self._attempt(request, spoken)
        while isinstance(reply, Failure) and reply.reason == "request_rejected":
            # Another request may have learnt it in the meantime.
            better = self.dialect if self.dialect != spoken else spoken.after(reply.message)
            if better is None:
                return await self._without_schema(request, spoken, reply)
            spoken = self._learnt(better)
            reply = await self._attempt(request, spoken)
        return reply

    async def _without_schema(self, request: ChatRequest, spoken: Dialect, rejection: Failure) -> Reply:
        """Try once more for a server that rejects a schema without naming it; it counts as learnt if that helps."""
        if not spoken.has_schema or request.schema is None:
            return rejection
        plainer = replace(spoken, has_schema=False)
        reply = await self._attempt(request, plainer)
        if isinstance(reply, Failure):
            return rejection
        self._learnt(plainer)
        return reply

    def _learnt(self, dialect: Dialect) -> Dialect:
        if dialect != self.dialect:
            self.dialect = dialect
            self._tell(f"{self._endpoint.url} is asked without {dialect.lacks}")
        return dialect

    async def _attempt(self, request: ChatRequest, dialect: Dialect) -> Reply:
        body = dialect.body(request, model=self._endpoint.model)
        model, messages = body.pop("model"), body.pop("messages")
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                model=model, messages=messages, extra_body=body
            )
            return self._redacted(read_completion(raw.http_response.text))
        except Unheard:
            message = f"no answer in time; give more than {self._endpoint.timeout_seconds:g} seconds with --timeout"
            return Failure("provider_unavailable", message, may_be_paid=True)
        except openai.APIConnectionError as error:
            return self._redacted(Failure("provider_unavailable", f"{error} ({type(error.__cause__).__name__})"))
        except openai.APIStatusError as error:
            rejection = error
        # Here, and not above: the library's errors carry the request, and with it the key, so ours must not carry them.
        return self._refused(rejection)

    def _refused(self, error: openai.APIStatusError) -> Failure:
        """Raise what stands against every request; return what stands against this one."""
        status, said = error.status_code, self._key.redacted(_text_of(error))[:_LONGEST_TEXT]
        if error.code is not None and error.code not in said:
            said = f"{said} ({self._key.redacted(error.code)})"
        # A model may be called after what it is for, as `content-safety`.
        unnamed = re.sub(rf"(?<!\w){re.escape(self._endpoint.model)}(?!\w)", "", said)
        found = replace(failure_of(status, unnamed), message=said)
        wait = _seconds(error.response.headers.get("retry-after"))
        # Further on, a rejection may repeat what was asked.
        is_empty = status in (_BAD_REQUEST, _TOO_MANY) and _EMPTY_PURSE.search(unnamed[:_SAID_FIRST]) is not None
        if is_empty or (is_passing(status) and wait > _LONGEST_WAIT_SECONDS):
            when = f"in {wait:.0f} seconds" if wait else "when the account has means again"
            message = f"{self._endpoint.url} takes no more requests for now; go on {when}: {said}"
            raise EndpointError(message)
        if found.reason == "request_rejected" and status not in (_BAD_REQUEST, _UNPROCESSABLE):
            raise EndpointError(self._why_unusable(status, said))
        return found

    def _why_unusable(self, status: int, said: str) -> str:
        where = f"{self._endpoint.url} answers {status} for model {self._endpoint.model!r}: {said}"
        if status == _NOT_FOUND:
            return f"{where}. Check the name of the model, and that the address ends where the API begins"
        if status not in (_UNAUTHORIZED, _FORBIDDEN):
            return where
        variable = self._key.variable
        held = "no key was sent; name the variable that holds it" if variable is None else f"the key is from {variable}"
        return f"{where}. Check the key ({held})"

    def _redacted(self, reply: Reply) -> Reply:
        """Hide the key in what a server says: it is written into the cache."""
        if isinstance(reply, Failure):
            return replace(reply, message=self._key.redacted(reply.message))
        refusal = None if reply.refusal is None else self._key.redacted(reply.refusal)
        return Answer(self._key.redacted(reply.text), reply.finish_reason, refusal, reply.usage)

    def heed(self, request: ChatRequest, reply: Reply, *, is_usable: bool) -> None:
        """Tell of a reply that is none, or of no use, and count those in a row.

        Raises:
            EndpointError: Nothing has been answered for a while, or nothing that is of use.
        """
        if isinstance(reply, Failure):
            self._count(reply)
            return
        self._failed_in_a_row = self._rejected_in_a_row = 0
        n_read = 0 if reply.usage is None else reply.usage.prompt_tokens
        if 0 < n_read * _MOST_BYTES_A_TOKEN < request.n_bytes:
            self._tell_once(
                "window",
                f"{self._endpoint.url} read {n_read:,} tokens of a prompt of {request.n_bytes:,} bytes: its context "
                "window is too small for it (of Ollama: OLLAMA_CONTEXT_LENGTH), and what was cut is not known",
            )
        if is_usable:
            self.has_been_useful = True
        elif not reply.is_refused:
            self._weigh(reply)

    def _weigh(self, answer: Answer) -> None:
        """Tell of an answer that is paid for and of no use, and give up where none was of any."""
        advice = ""
        if answer.is_cut:
            how, advice = "cut where it may be no longer", "; --parameter max_tokens=N allows more, thinking included"
        elif not answer.text.strip():
            how = "empty"
        else:
            how = f"not as asked: {answer.text.strip()[:_EXCERPT]!r}"
        self._tell_once(how.partition(":")[0], f"an answer is {how}{advice}")
        self._n_useless += 1
        if self._n_useless >= PATIENCE and not self.has_been_useful:
            message = (
                f"none of the first {PATIENCE} answers of {self._endpoint.url} can be used, and they are paid for; the "
                f"last one is {how}{advice}"
            )
            raise EndpointError(message)

    def _tell_once(self, what: str, message: str) -> None:
        if what not in self._told and len(self._told) < PATIENCE:
            self._told.add(what)
            self._tell(message)

    def _count(self, failure: Failure) -> None:
        is_of_one_row = failure.reason not in ("provider_unavailable", "request_rejected")
        # Of what is of a row, each may be told in other words: the first is enough to see what the server means.
        known = failure.reason if is_of_one_row else failure.message
        advice = _SHORTER if failure.reason == "request_too_long" else ""
        self._tell_once(known, f"no answer ({failure.reason}): {failure.message}{advice}")
        if is_of_one_row:
            return
        if failure.reason == "request_rejected" and self.has_been_useful:
            # It mostly rejects this one for what it holds, in words that nobody knew.
            self._rejected_in_a_row += 1
        else:
            self._failed_in_a_row += 1
        if self._failed_in_a_row >= PATIENCE or self._rejected_in_a_row >= _PATIENCE_ONCE_USEFUL:
            n = max(self._failed_in_a_row, self._rejected_in_a_row)
            message = (
                f"{self._endpoint.url} has answered none of the last {n} requests, the last one with: {failure.message}"
            )
            raise EndpointError(message)


def _text_of(error: openai.APIStatusError) -> str:
    """Return what a server said; the client library leaves out what is in no field `message`.

    OpenRouter keeps there what the provider behind it said.
    """
    said, body = str(error), error.body
    behind = body.get("metadata") if isinstance(body, dict) else None
    if isinstance(behind, dict) and (raw := behind.get("raw")):
        return f"{said} - {raw}"
    return f"{said} - {body}" if body and said == f"Error code: {error.status_code}" else said


def _seconds(header: str | None) -> float:
    """Read for how long a server asks to wait, in seconds or as a date; 0 where it does not say."""
    if header is None:
        return 0.0
    with contextlib.suppress(ValueError):
        return float(header)
    with contextlib.suppress(ValueError):
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    return 0.0
