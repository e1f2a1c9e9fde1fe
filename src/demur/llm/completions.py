"""Read what a chat completions endpoint sends, believing nothing of it."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from demur.data.json_text import decode_json
from demur.llm.exchange import Answer, Failure, Reply, Usage

__all__ = ["error_status", "read_completion"]

T = TypeVar("T")

_SHOWN_CHARACTERS = 200
_BAD_GATEWAY = 502


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:  # noqa: ANN401  # whatever a server sends
    try:
        return read(value)
    except ValidationError:
        return None


# What cannot be read counts as not there: an answer is paid for, however odd what stands beside it.
_Maybe = Annotated[T | None, WrapValidator(_or_none)]
# What is larger is no count, and SQLite keeps none from 2^63 on.
_Count = Annotated[int, Field(ge=0, lt=2**53)]
# Nobody answers what was not read: gateways that count nothing say so by zeros, and no limit of cost would hold.
_CountRead = Annotated[int, Field(gt=0, lt=2**53)]


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Part(_Lenient):
    text: _Maybe[str] = None


class _Message(_Lenient):
    content: _Maybe[str | list[_Part]] = None
    refusal: _Maybe[str] = None

    @property
    def text(self) -> str:
        """Return what is said; of a list of parts, those that are text."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.text is not None)
        return "" if self.content is None else self.content


class _Error(_Lenient):
    code: _Maybe[Annotated[int, Field(ge=400, lt=600)]] = None


class _Choice(_Lenient):
    message: _Maybe[_Message] = None
    finish_reason: _Maybe[str] = None
    error: Any = None

    def answer(self, usage: Usage | None) -> Answer | None:
        """Return what is said; None where there is no message, and no end that says why."""
        said = _Message() if self.message is None else self.message
        answer = Answer(said.text, self.finish_reason, said.refusal, usage)
        return answer if self.message is not None or answer.is_refused or answer.is_cut else None


class _PromptDetails(_Lenient):
    cached_tokens: _Maybe[_Count] = None
    cache_write_tokens: _Maybe[_Count] = None


class _CompletionDetails(_Lenient):
    reasoning_tokens: _Maybe[_Count] = None


class _Usage(_Lenient):
    prompt_tokens: _CountRead
    completion_tokens: _Count
    total_tokens: _Maybe[_Count] = None
    prompt_tokens_details: _Maybe[_PromptDetails] = None
    completion_tokens_details: _Maybe[_CompletionDetails] = None


class _Completion(_Lenient):
    choices: _Maybe[list[_Maybe[_Choice]]] = None
    usage: _Maybe[_Usage] = None
    error: Any = None

    @property
    def readable(self) -> list[_Choice]:
        """Return the choices; one that cannot be read costs itself alone."""
        return [] if self.choices is None else [choice for choice in self.choices if choice is not None]

    @property
    def answers(self) -> list[Answer]:
        """Return what is said in the choices, with what all of them cost together."""
        usage = _usage(self.usage)
        return [answer for choice in self.readable if (answer := choice.answer(usage)) is not None]

    @property
    def is_error(self) -> bool:
        """Tell whether an error stands in place of an answer; one beside a text or a refusal is none."""
        return bool(self.error) and not any(answer.text or answer.is_refused for answer in self.answers)


def read_completion(text: str) -> Reply:
    """Read the body of a response that was a success by its status; one that is no completion is a `Failure`.

    A count of tokens that cannot be read is none, and what came with a count is an answer, if an empty one: it is paid
    for. An error in place of an answer is none, whatever is counted beside it.

    >>> read_completion('{"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}').text
    'Yes.'
    """
    found = _found(text)
    if found.is_error:
        said = json.dumps(found.error, ensure_ascii=False)[:_SHOWN_CHARACTERS]
        return Failure("provider_unavailable", f"the server sent an error: {said}")
    if found.answers:
        return found.answers[0]
    if (usage := _usage(found.usage)) is not None:
        return Answer("", usage=usage)
    start = json.dumps(text[:_SHOWN_CHARACTERS], ensure_ascii=False)
    return Failure("provider_unavailable", f"the server sent what is no chat completion: {start}")


def error_status(text: str) -> int | None:
    """Return the status that a response should have had which is a success by its status alone; None if it is one.

    Routers such as OpenRouter have sent the status when the provider behind them fails: the error stands in the body,
    in place of an answer or beside a broken one. One whose code is no status may pass, like that of a gateway.

    >>> error_status('{"error": {"code": 429, "message": "slow down"}}')
    429
    """
    if '"error"' not in text:
        return None
    found = _found(text)
    if found.is_error:
        return _status_of(found.error)
    if found.readable and found.readable[0].finish_reason == "error":
        return _status_of(found.readable[0].error)
    return None


def _status_of(error: object) -> int:
    try:
        code = _Error.model_validate(error).code
    except ValidationError:
        code = None
    return _BAD_GATEWAY if code is None else code


def _found(text: str) -> _Completion:
    try:
        return _Completion.model_validate(decode_json(text))
    except (ValueError, RecursionError, ValidationError):
        return _Completion()


def _usage(found: _Usage | None) -> Usage | None:
    if found is None:
        return None
    details = _PromptDetails() if found.prompt_tokens_details is None else found.prompt_tokens_details
    cached, written = (0 if n is None else n for n in (details.cached_tokens, details.cache_write_tokens))
    return Usage(found.prompt_tokens, cached, written, found.completion_tokens + _thought_beside(found))


def _thought_beside(found: _Usage) -> int:
    """Count the thinking that a provider charges for and leaves out of what was written; most have it there.

    xAI, and gateways to Gemini, give the sum of both with what was read as the total.
    """
    details = found.completion_tokens_details
    thought = 0 if details is None or details.reasoning_tokens is None else details.reasoning_tokens
    total = 0 if found.total_tokens is None else found.total_tokens
    return thought if total >= found.prompt_tokens + found.completion_tokens + thought else 0
