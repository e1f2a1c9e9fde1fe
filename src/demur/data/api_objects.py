"""Take messages out of the objects that APIs are asked with and answer with, as logs of requests keep them.

Known are the forms of OpenAI (chat completions, completions, responses), Anthropic, Gemini, Bedrock and Ollama. What a
model wrote when it was asked for JSON stays as it is: a text is taken for an API's only where it bears its marks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.data.column_names import folded, is_named_as_reply
from demur.data.columns import REPLIES
from demur.data.json_text import decode_object
from demur.data.messages import ROLE_KEYS, is_message, is_speaker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["unwrapped"]

_REPLY, _PROMPT = "response", "request"
# Where an object was asked or answered with, by the usual name of what it holds.
_REQUESTS = frozenset({"body", "model_input", "request", "request_body"})
_FURTHER_REQUESTS = frozenset({"input", "inputs", "prompt"})
_ANSWERS = frozenset({"body", "completion", "output", "response", "response_body", "result"})
_UNUSUAL = frozenset({"body", "model_input", "request_body", "response_body", "result"})
_CHOICES = ("choices", "candidates")
# The keys by which a row is itself what an API answered with.
_PARTS = (*_CHOICES, "message", "output")
_WRAPPERS = ("body", "response", "output", "message")
_SYSTEMS = ("system", "systemInstruction", "system_instruction", "instructions")
_MARKS = frozenset(
    {
        *("created", "done", "finish_reason", "id", "model", "modelVersion", "object", "status_code", "stopReason"),
        "usage",
    }
)
_DEEPEST = 3


def unwrapped(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return a row with messages in place of the objects of an API that hold them.

    What stands under a name that is no reply's or prompt's, or under a key of the row itself, as where the row is what
    an API answered with, stands under `response` or `request`, too, unless there is such a column or another reply. Of
    several answers none is taken: nobody said which one is judged.
    """
    answers: dict[str, object] = {}
    requests: dict[str, object] = {}
    for name, value in fields.items():
        # Asked of every cell: what is no object is told from its first letter.
        if isinstance(value, dict | list) or (isinstance(value, str) and value.lstrip()[:1] == "{"):
            if _is_answer(name) and (said := _answer(_decoded(value, is_marked=folded(name) in _UNUSUAL))) is not None:
                answers[name] = said
            elif (asked := _asked(name, value, fields)) is not None:
                requests[name] = asked
    if any(part in fields and part not in answers for part in _PARTS):
        answers |= _of_row(fields)
    if not answers and not requests:
        return fields
    found = {**fields, **answers, **requests}
    replies = [said for name, said in answers.items() if folded(name) in _UNUSUAL or name in _PARTS]
    if replies and found.get(_REPLY) is None and not _has_reply(fields):
        found[_REPLY] = replies[0]
    prompts = [asked for name, asked in requests.items() if folded(name) in _UNUSUAL]
    if prompts and found.get(_PROMPT) is None:
        found[_PROMPT] = prompts[0]
    return found


def _is_answer(name: str) -> bool:
    return folded(name) in _ANSWERS or is_named_as_reply(name)


def _has_reply(fields: Mapping[str, object]) -> bool:
    """Tell whether a column that is named as a reply holds a text."""
    return any(
        isinstance(value, str) and value and (folded(name) in REPLIES or is_named_as_reply(name))
        for name, value in fields.items()
    )


def _decoded(value: object, *, is_marked: bool) -> object:
    """Return what a text holds if that, or its name, bears the marks of an API, and any other value as it is."""
    if not isinstance(value, str):
        return value
    found = decode_object(value)
    if found is None or is_marked or not found.keys().isdisjoint(_MARKS):
        return found
    ones = filter(None, (_only(found.get(name)) for name in _CHOICES))
    return found if any(isinstance(one.get("message", one.get("content")), dict) for one in ones) else None


def _asked(name: str, value: object, fields: Mapping[str, object]) -> object:
    """Return what a model was asked with in an object; a prompt beside an instruction is its input."""
    if folded(name) in _REQUESTS:
        return _request(_decoded(value, is_marked=True))
    if folded(name) not in _FURTHER_REQUESTS:
        return None
    if any(folded(other) in ("instruction", "prompt") for other in fields if other != name):
        return None
    return _request(_decoded(value, is_marked=folded(name) != "prompt"))


def _request(value: object) -> list[object] | None:
    """Return the messages that a model was asked with, under the system prompt that some keep beside them."""
    if not isinstance(value, dict):
        return None
    said = next((value[key] for key in ("messages", "contents", "input", "prompt") if key in value), None)
    said = [{"role": "user", "content": said}] if isinstance(said, str) else said
    if not isinstance(said, list) or not said:
        return None
    # Gemini may be asked by parts alone.
    messages = [{"role": "user", **each} if isinstance(each, dict) and "parts" in each else each for each in said]
    if not all(map(is_message, messages)):
        return None
    system = next((value[key] for key in _SYSTEMS if value.get(key)), None)
    return messages if system is None else [{"role": "system", "content": system}, *messages]


def _of_row(fields: Mapping[str, object]) -> dict[str, object]:
    """Return what a row answers itself, under the key that holds it."""
    for part in _PARTS:
        value = fields.get(part)
        is_marked = part != "message" or not fields.keys().isdisjoint((*_MARKS, "messages"))
        if isinstance(value, dict | list) and is_marked and (said := _answer({part: value})) is not None:
            return {part: said}
    return {}


def _answer(value: object, depth: int = 0) -> object:
    """Return the one message, or the messages, that an API answered with; None where there is none, or several."""
    if isinstance(value, list):
        return _items(value)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    if _is_reply(value):
        return value
    if (one := next((_only(value[name]) for name in _CHOICES if name in value), None)) is not None:
        return _choice(one)
    inner = next((value[name] for name in _WRAPPERS if isinstance(value.get(name), dict | list)), None)
    return _answer(inner, depth + 1)


def _only(choices: object) -> Mapping[str, object] | None:
    only = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    return only if isinstance(only, dict) else None


def _choice(choice: Mapping[str, object]) -> object:
    """Return the message of a choice; of Gemini's, where it names no role, as the model's."""
    for name in ("message", "content"):
        said = choice.get(name)
        if isinstance(said, dict):
            whole = said if any(key in said for key in ROLE_KEYS) else {"role": "assistant", **said}
            return whole if _is_reply(whole) else None
    text = choice.get("text")
    is_completion = isinstance(text, str) and not choice.keys().isdisjoint(("finish_reason", "index", "logprobs"))
    return {"role": "assistant", "content": text} if is_completion else None


def _items(items: list[object]) -> Sequence[object] | None:
    """Return the messages among the items of a response if they end with one; what stands between them is no word."""
    said = [item for item in items if isinstance(item, dict) and item.get("type") == "message" and _is_reply(item)]
    return said if said and said[-1] is items[-1] else None


def _is_reply(value: object) -> bool:
    if not is_message(value) or not isinstance(value, dict):
        return False
    return is_speaker(value.get("role"), "assistant")
