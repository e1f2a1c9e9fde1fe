"""Read what a chat completions endpoint sends, believing nothing of it."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from demur.data.json_text import decode_json
from demur.llm.exchange import Answer, Failure, Reply, Usage

__all__ = ["read_completion"]

_LENIENT = ConfigDict(extra="ignore")
_SHOWN_CHARACTERS = 200


class _Message(BaseModel):
    model_config = _LENIENT
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    model_config = _LENIENT
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(BaseModel):
    model_config = _LENIENT
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(BaseModel):
    model_config = _LENIENT
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(BaseModel):
    model_config = _LENIENT
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def read_completion(text: str) -> Reply:
    """Read the body of a response that was a success by its status; one that is no completion is a `Failure`.

    >>> read_completion('{"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}').text
    'Yes.'
    """
    try:
        found = _Completion.model_validate(decode_json(text))
    except (ValueError, RecursionError, ValidationError):
        start = json.dumps(text[:_SHOWN_CHARACTERS], ensure_ascii=False)
        return Failure("provider_unavailable", f"the server sent what is no chat completion: {start}")
    choice = found.choices[0]
    said = choice.message
    return Answer("" if said.content is None else said.content, choice.finish_reason, said.refusal, _usage(found.usage))


def _usage(found: _Usage | None) -> Usage | None:
    if found is None:
        return None
    details = _PromptDetails() if found.prompt_tokens_details is None else found.prompt_tokens_details
    cached, written = (0 if n is None else n for n in (details.cached_tokens, details.cache_write_tokens))
    return Usage(found.prompt_tokens, cached, written, found.completion_tokens)
