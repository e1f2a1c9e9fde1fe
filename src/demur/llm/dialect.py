"""Know which parts of the API a server understands, and learn it from what the server rejects."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from demur.llm.parameters import FORMAT

if TYPE_CHECKING:
    from demur.llm.exchange import ChatRequest

__all__ = ["Dialect"]

# What servers write into a rejection, by the part of a request that they do not know. The last is for servers that only
# say that something is wrong: an answer without a schema is worth more than none.
_LIMIT = re.compile(r"max_completion_tokens", re.IGNORECASE)
_TEMPERATURE = re.compile(r"temperature", re.IGNORECASE)
_SCHEMA = re.compile(r"response_format|json_schema|structured output|guided|grammar", re.IGNORECASE)
_SYSTEM = re.compile(r"system (?:role|message|prompt)|roles must alternate", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dialect:
    """Say which parts of the API a server understands.

    Attributes:
        has_schema: Takes `response_format`.
        has_temperature: Takes a temperature; some models that think take none.
        has_system: Takes a system message; without, it is put before the first message of the user.
        limit: What it calls the length of an answer. Most servers know the older name, OpenAI's newer models do not.
    """

    has_schema: bool = True
    has_temperature: bool = True
    has_system: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def body(self, request: ChatRequest, *, model: str) -> dict[str, Any]:
        """Return the JSON that asks a server of this dialect."""
        parameters = dict(request.parameters)
        if not self.has_temperature:
            parameters.pop("temperature", None)
        if "max_tokens" in parameters:
            parameters[self.limit] = parameters.pop("max_tokens")
        if request.schema is not None:
            schema = {"name": "answer", "strict": True, "schema": dict(request.schema)}
            parameters.setdefault(FORMAT, {"type": "json_schema", "json_schema": schema})
        if not self.has_schema or parameters.get(FORMAT) is None:
            parameters.pop(FORMAT, None)
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        if not self.has_system:
            messages = _without_system(messages)
        return {"model": model, "messages": messages, **parameters}

    def after(self, rejection: str) -> Self | None:
        """Return the dialect that a rejection asks for; None where it asks for nothing that could be left out."""
        if self.limit == "max_tokens" and _LIMIT.search(rejection):
            return replace(self, limit="max_completion_tokens")
        if self.has_temperature and _TEMPERATURE.search(rejection):
            return replace(self, has_temperature=False)
        if self.has_schema and _SCHEMA.search(rejection):
            return replace(self, has_schema=False)
        if self.has_system and _SYSTEM.search(rejection):
            return replace(self, has_system=False)
        return None

    @property
    def lacks(self) -> str:
        """Name what the server does without."""
        parts = [
            *([] if self.has_schema else [FORMAT]),
            *([] if self.has_temperature else ["temperature"]),
            *([] if self.has_system else ["a system message"]),
            *([] if self.limit == "max_tokens" else ["max_tokens"]),
        ]
        return ", ".join(parts)


def _without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Put what the system says before what the user says first."""
    system = [message["content"] for message in messages if message["role"] == "system"]
    others = [dict(message) for message in messages if message["role"] != "system"]
    if system and others:
        others[0]["content"] = "\n\n".join([*system, others[0]["content"]])
    return others
