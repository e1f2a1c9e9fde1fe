"""Open the objects that APIs take and answer with, as logs of requests keep them: what was asked, and what was said.

Known are the forms of OpenAI (chat completions, completions, responses), Anthropic, Gemini, Bedrock and Ollama.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from demur.data.column_names import folded, is_named_as_reply
from demur.data.json_text import decode_json, decode_python
from demur.data.messages import ROLE_KEYS, is_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["opened"]

_REQUESTS = frozenset({"body", "input", "inputs", "prompt", "request", "request_body"})
_ANSWERS = frozenset({"body", "completion", "output", "response", "response_body", "result"})
# Under these, an object or list is what an API answers with itself, whatever stands beside it.
_CHOICES = ("choices", "candidates")
_WRAPPERS = ("body", "response", "output")
_PARTS_OF_ANSWERS = (*_CHOICES, "message", "output")
_REPLY, _PROMPT = "response", "request"
# Names that are neither a reply's nor a prompt's.
_WRAPPED = frozenset({"body", "request_body", "response_body", "result"})
_DEEPEST = 3


def opened(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return a row with messages in place of the objects of an API that hold them.

    What stands under a name that is no reply's or prompt's, or under several keys of the row itself, as where the row
    is what an API answered with, is put under `response` or `request`, unless there is such a column. Of several
    answers none is taken: nobody said which one is judged.
    """
    objects = {name: inner for name, value in fields.items() if (inner := _object(name, value)) is not None}
    answers = {name: said for name, inner in objects.items() if _is_answer(name) and (said := _answer(inner))}
    requests = {name: asked for name, inner in objects.items() if name not in answers and (asked := _request(inner))}
    found = {**fields, **answers, **requests}
    replies = [name for name, value in fields.items() if _is_answer(name) and not isinstance(value, dict | list)]
    parts = {name: fields[name] for name in _PARTS_OF_ANSWERS if name in fields}
    if not replies and not answers and (said := _answer(parts)):
        answers = {_REPLY: said}
        found = {name: value for name, value in found.items() if name not in _PARTS_OF_ANSWERS} | answers
    for usual, names in ((_REPLY, answers), (_PROMPT, requests)):
        for name in names:
            if folded(name) in _WRAPPED and usual not in found:
                found[usual] = found.pop(name)
    return found


def _object(name: object, value: object) -> object:
    """Return an object or list under a name of what was asked or answered, be it written as JSON; else None."""
    if not isinstance(value, dict | list | str) or not (_is_request(name) or _is_answer(name)):
        return None
    # Asked of every reply: what is no object is told from its first letter.
    return value if not isinstance(value, str) else _decoded(value) if value.startswith("{") else None


def _is_request(name: object) -> bool:
    return isinstance(name, str) and folded(name) in _REQUESTS


def _is_answer(name: object) -> bool:
    return isinstance(name, str) and (folded(name) in _ANSWERS or is_named_as_reply(name))


def _decoded(text: str) -> object:
    decode = decode_python if text.startswith("{'") else decode_json
    with contextlib.suppress(ValueError, RecursionError):
        return decode(text)
    return None


def _request(value: object) -> list[object] | None:
    """Return the messages that a model was asked with, under the system prompt that some keep beside them."""
    if not isinstance(value, dict):
        return None
    messages = value.get("messages", value.get("contents"))
    if not isinstance(messages, list) or not messages or not all(map(is_message, messages)):
        return None
    system = value.get("system")
    return [{"role": "system", "content": system}, *messages] if system else messages


def _answer(value: object, depth: int = 0) -> object:
    """Return the one message, or the messages, that an API answered with; None where there is none, or several."""
    if isinstance(value, list):
        return _items(value)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    if (one := next((_only(value[name]) for name in _CHOICES if name in value), None)) is not None:
        return _choice(one)
    for said in (value.get("message"), value):
        if _is_reply(said):
            return said
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
    return {"role": "assistant", "content": text} if isinstance(text, str) else None


def _items(items: list[object]) -> Sequence[object] | None:
    """Return the messages among the items of a response if they end with one; what stands between them is no word."""
    said = [item for item in items if isinstance(item, dict) and item.get("type") == "message" and _is_reply(item)]
    return said if said and said[-1] is items[-1] else None


def _is_reply(value: object) -> bool:
    return is_message(value) and isinstance(value, dict) and value.get("role") in ("assistant", "model", "chatbot")
