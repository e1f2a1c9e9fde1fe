"""Read the turns of a conversation from a list of messages, whatever its keys, roles and content parts are called."""

from __future__ import annotations

import contextlib
import json
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard

from demur.data.json_text import decode_json, decode_object, decode_python
from demur.data.reasoning import joined_reasoning
from demur.errors import RowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from demur.conversation import Role

__all__ = [
    "CONTENT_KEYS",
    "ROLE_KEYS",
    "Message",
    "as_message_list",
    "as_text_list",
    "content_of",
    "has_message_keys",
    "is_completion",
    "is_damaged_messages",
    "is_message",
    "is_python_messages",
    "is_speaker",
    "read_messages",
    "role_of",
    "text_of",
]

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "bot", "chatbot", "model", "ai", "chatgpt", "bing", "bard"), "assistant"),
    **dict.fromkeys(("function_call", "tool_call"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "tool_response", "function_response"), "tool"),
}
ROLE_KEYS = ("role", "from")
# The role may stand behind other fields, and what these hold may have braces, too.
_PYTHON_MESSAGES = re.compile(rf"\s*\[?\{{(?=')(?s:.{{0,8000}}?)'(?:{'|'.join(ROLE_KEYS)})': '(?:{'|'.join(_ROLES)})'")
CONTENT_KEYS = ("content", "value", "text", "parts")
# Narrower than Python's: what a model writes when it is asked for JSON may be cut off, too.
_JSON_MESSAGES = re.compile(
    rf"""(?s:(?=.{{0,8000}}?"(?:{"|".join(CONTENT_KEYS)})"))\s*(?:\[\s*)?\{{\s*"""
    r"""(?:"\w+"\s*:\s*(?:"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"\[{,]+)\s*,\s*)*"""
    rf""""(?:{"|".join(ROLE_KEYS)})"\s*:\s*"(?i:{"|".join(_ROLES)})\""""
)
_CALL_KEYS = ("tool_calls", "function_call")
# How tables write that there are none.
_NO_CALLS = frozenset({"", "None", "nan", "NaN"})
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
_SPOKEN_KEYS = frozenset({*CONTENT_KEYS, *_CALL_KEYS, *_REASONING_KEYS, "refusal"})
_TEXT_KINDS = frozenset({"text", "input_text", "output_text"})
_TEXT_KEYS = ("text", "refusal", "thinking", "content")
_REASONING_PARTS = frozenset({"thinking", "reasoning", "redacted_thinking"})
_RESULT_PARTS = frozenset({"tool_result"})
# Bedrock and Gemini tell what a part is by its key.
_KEYED_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("toolUse", "functionCall"), "tool_use"),
    **dict.fromkeys(("toolResult", "functionResponse"), "tool_result"),
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data", "image"), "image"),
    "reasoningContent": "reasoning",
    "document": "document",
    "video": "video",
}
# What stands among the messages of OpenAI's responses, and has no role.
_ITEM_CALLS = frozenset({"function_call", "custom_tool_call"})
_ITEM_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_ITEM_THOUGHT = "reasoning"


@dataclass(frozen=True, slots=True)
class Message:
    """Keep one message as a file gives it: its content may be missing, and its thinking stands apart."""

    role: Role
    content: str | None
    reasoning: str | None = None


def as_message_list(value: object) -> list[object] | None:
    """Return the list of messages that the value is, or that its text holds as JSON or as Python prints it, or None."""
    if isinstance(value, str):
        value = _decoded(value)
    if isinstance(value, dict) and any(key in value for key in ROLE_KEYS):
        return _transposed(value) if any(_is_list(value.get(key)) for key in ROLE_KEYS) else [value]
    return list(value) if _is_list(value) else None


def as_text_list(value: object) -> list[str | None]:
    """Return the texts that a text holds as a list of JSON, null for one that was lost; none where it holds others."""
    # Asked of every prompt: what begins as no list is told from its first letter.
    items = _decoded(value) if isinstance(value, str) and value.lstrip().startswith("[") else None
    if not isinstance(items, list) or not all(item is None or isinstance(item, str) for item in items):
        return []
    return items


def is_python_messages(value: object) -> bool:
    """Tell whether the value is a text that begins as messages do that Python has printed."""
    return isinstance(value, str) and _PYTHON_MESSAGES.match(value) is not None


def is_completion(value: object) -> bool:
    """Tell whether the value is the text of an object as an API answers with it, the message among its choices."""
    if not isinstance(value, str) or "choices" not in value:
        return False
    choices = (decode_object(value) or {}).get("choices")
    return _is_list(choices) and any(isinstance(each, dict) and is_message(each.get("message")) for each in choices)


def is_damaged_messages(value: object) -> bool:
    """Tell whether the value is a text that begins as messages in JSON do, and breaks off: a cell that was cut.

    Where the JSON ends and words follow, it is a reply that speaks of messages.
    """
    # Asked of every reply: what begins as none is told from its first letter.
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return False
    if _JSON_MESSAGES.match(value) is None:
        return False
    with contextlib.suppress(ValueError, RecursionError):
        json.JSONDecoder().raw_decode(value.lstrip())
        return False
    return True


def has_message_keys(fields: Mapping[str, object]) -> bool:
    """Tell whether there is one of `role` and `from`, and one of `content`, `value` and `text`."""
    return any(key in fields for key in ROLE_KEYS) and any(key in fields for key in CONTENT_KEYS)


def is_speaker(name: object, *roles: Role) -> bool:
    """Tell whether a value names one of these roles, in whatever way."""
    return isinstance(name, str) and _ROLES.get(name.strip().lower()) in roles


def is_message(item: object) -> bool:
    """Tell whether the item is a message of a role that is known; one that calls a tool may have no content."""
    if not isinstance(item, dict) or not (has_message_keys(item) or any(key in item for key in _CALL_KEYS)):
        return False
    role = _first(item, ROLE_KEYS)
    return isinstance(role, str) and role.strip().lower() in _ROLES


def read_messages(value: object, where: str) -> tuple[Message, ...]:
    """Read a list of `{role, content}` or `{from, value}`.

    Raises:
        RowError: It is no such list, or a role is not known.
    """
    items = as_message_list(value)
    if items is None:
        right = "give a list of {role, content} or {from, value}"
        if is_python_messages(value):
            right = "it is a list written by Python, and damaged; write it as JSON"
        elif is_damaged_messages(value):
            right = "it begins as JSON, and is damaged; get it whole (Excel cuts cells at 32,767 characters)"
        message = f"messages is {_short(value)}; {right}"
        raise RowError(message, where=where)
    return tuple(message for item in items for message in _messages(item, where))


def role_of(value: object, where: str) -> Role:
    """Return the role that a name stands for.

    Raises:
        RowError: It stands for none.
    """
    role = _ROLES.get(value.strip().lower()) if isinstance(value, str) else None
    if role is None:
        message = f"role {value!r} is not known; use one of {', '.join(_ROLES)}"
        raise RowError(message, where=where, reason="unknown_role")
    return role


def text_of(value: object, where: str, column: str) -> str | None:
    """Return the text of a cell: numbers are written out, and nan, the null of tables, is None.

    Raises:
        RowError: The value is neither text nor number.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int | float):
        return str(value)
    message = f"{column} is {_short(value)}; give a text"
    raise RowError(message, where=where)


def _is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def _decoded(text: str) -> object:
    """Return what a text holds, or None where it holds no list or object."""
    beginning = text.lstrip()
    decoders = {"[": decode_json, "{": _json_message, "[{'": decode_python, "{'": decode_python}
    for opening, decode in decoders.items():
        if beginning.startswith(opening):
            with contextlib.suppress(ValueError, RecursionError):
                return decode(text)
    return None


def _json_message(text: str) -> object:
    """Return the message that a text is; an object that is none is what somebody said."""
    found = decode_json(text)
    return found if is_message(found) else None


def _transposed(columns: Mapping[str, object]) -> list[object] | None:
    """Turn a list for each key, as `datasets` keeps sequences of objects, into a list of messages."""
    lists = {key: value for key, value in columns.items() if _is_list(value)}
    if not has_message_keys(lists) or len({len(value) for value in lists.values()}) > 1:
        return None
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _messages(item: object, where: str) -> Iterator[Message]:
    """Read one item of a list: mostly one message, and of a user's that gives tools' results, the tool's own."""
    kind = _kind(item) if isinstance(item, dict) and not any(key in item for key in ROLE_KEYS) else None
    if kind in _ITEM_CALLS and isinstance(item, dict):
        yield Message("assistant", _call(item))
    elif kind in _ITEM_RESULTS and isinstance(item, dict):
        yield Message("tool", content_of(item.get("output"), where, "output")[0])
    elif kind != _ITEM_THOUGHT:
        results, rest = _parted(item)
        if results:
            yield replace(_message(results, where), role="tool")
        if rest is not None:
            yield _message(rest, where)


def _parted(item: object) -> tuple[dict[str, object] | None, object]:
    """Part the results of tools, which Anthropic and Bedrock put into the user's turn, from what the user says."""
    parts = item.get("content") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(parts, list) or item.get("role") != "user":
        return None, item
    results = [part for part in parts if _kind(part) in _RESULT_PARTS]
    rest = [part for part in parts if _kind(part) not in _RESULT_PARTS]
    if not results:
        return None, item
    return {**item, "content": results}, {**item, "content": rest} if rest else None


def _message(item: object, where: str) -> Message:
    if not isinstance(item, dict):
        message = f"a message is {_short(item)}; give {{role, content}} or {{from, value}}"
        raise RowError(message, where=where)
    if not any(key in item for key in ROLE_KEYS):
        message = f"a message has {', '.join(map(str, item))}, and neither role nor from; give {{role, content}}"
        raise RowError(message, where=where, reason="unknown_role")
    role = role_of(_first(item, ROLE_KEYS), where)
    if not _SPOKEN_KEYS & item.keys() and not item.keys() <= {*ROLE_KEYS}:
        message = (
            f"a message has {', '.join(map(str, item))}, and no content; give {{role, content}} or {{from, value}}"
        )
        raise RowError(message, where=where)
    content, thoughts = content_of(_first(item, CONTENT_KEYS), where, "content")
    calls = _calls(item, where)
    # Some providers put a refusal beside an empty content.
    said = [part for part in (content, item.get("refusal"), *calls) if isinstance(part, str) and part]
    fields = [item[key] for key in _REASONING_KEYS if isinstance(item.get(key), str)]
    text = "\n".join(said) if said else content
    reasoning = joined_reasoning(*fields, *thoughts) if role == "assistant" else None
    # A reply that was cut while it thought has no content, and is empty rather than unknown.
    return Message(role, "" if text is None and reasoning is not None else text, reasoning)


def _first(item: Mapping[str, object], keys: Sequence[str]) -> object:
    """Return what stands under the first key that is not null: tables that were merged have the keys of both."""
    return next((item[key] for key in keys if item.get(key) is not None), None)


def content_of(value: object, where: str, column: str) -> tuple[str | None, list[str]]:
    """Return the text of a content, be it one text or parts, and the thinking among its parts.

    Raises:
        RowError: It is neither a text nor made of parts that can be read.
    """
    if isinstance(value, dict):
        value = value["parts"] if isinstance(value.get("parts"), list) else [value]
    if not isinstance(value, list):
        return text_of(value, where, column), []
    said: list[str] = []
    thoughts: list[str] = []
    for part in value:
        text = _part_text(part, where)
        if text is not None:
            (thoughts if _kind(part) in _REASONING_PARTS else said).append(text)
    return (None if value and not (said or thoughts) else "\n".join(said)), thoughts


def _kind(part: object) -> str:
    """Return what a part is: its type, or where it has none, the key that says so."""
    if not isinstance(part, dict):
        return "text"
    if part.get("thought") is True:
        return "thinking"
    keyed = (_KEYED_PARTS[key] for key in part if key in _KEYED_PARTS)
    return str(part["type"]) if part.get("type") is not None else next(keyed, "text")


def _part_text(part: object, where: str) -> str | None:
    """Return a part's text, or the name of what it is in brackets, such as `[image]`; None for a text that is null."""
    if not isinstance(part, dict):
        return text_of(part, where, "a part of content")
    kind = _kind(part)
    inner = next((part[key] for key in part if key in _KEYED_PARTS and isinstance(part[key], dict)), part)
    if kind == "tool_use":
        return _call(inner)
    if kind in _RESULT_PARTS and inner is not part:
        given = inner["content"] if "content" in inner else json.dumps(inner.get("response"), default=str)
        return _part_text({"type": kind, "content": given}, where)
    if part.get("type") is None and not part.keys() & {*_TEXT_KEYS, *_KEYED_PARTS}:
        message = f"a part of content has {', '.join(map(str, part))}, and neither type nor text; give {{type, text}}"
        raise RowError(message, where=where)
    text = _first(part, _TEXT_KEYS)
    if isinstance(text, list):
        # What a tool gave back has parts of its own.
        text, _ = content_of(text, where, kind)
    if kind in _TEXT_KINDS:
        return text_of(text, where, "the text of a part")
    return text if isinstance(text, str) else f"[{kind.removeprefix('input_').removesuffix('_url')}]"


def _calls(item: Mapping[str, object], where: str) -> list[str]:
    """Return each tool call as one short line of text."""
    return next((calls for key in _CALL_KEYS if (calls := _calls_under(key, item.get(key), where))), [])


def _calls_under(key: str, value: object, where: str) -> list[str]:
    """Read calls as a list, as one, or as the text that a table holds in place of either."""
    if isinstance(value, str):
        value = _written_calls(value, where, key)
    listed = value if _is_list(value) else [value]
    calls = [_written_calls(call, where, key) if isinstance(call, str) else call for call in listed]
    functions = [call.get("function", call) for call in calls if isinstance(call, dict) and call]
    return [_call(function) for function in functions if isinstance(function, dict)]


def _written_calls(text: str, where: str, key: str) -> object:
    """Read what a text holds: a call, a list of calls, or nothing."""
    if text.strip() in _NO_CALLS:
        return None
    for decode in (decode_json, decode_python):
        with contextlib.suppress(ValueError, RecursionError):
            found = decode(text)
            if found is None or isinstance(found, dict | list):
                return found
    message = f"{key} is {_short(text)}; give a list of {{name, arguments}}, or the JSON of one"
    raise RowError(message, where=where)


def _call(call: Mapping[str, object]) -> str:
    arguments = call.get("arguments", call.get("input", call.get("args", "")))
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[tool call: {call.get('name')}({written})]"


def _short(value: object, n_shown: int = 60) -> str:
    text = repr(value)
    shown = text if len(text) <= n_shown else f"{text[:n_shown]}…"
    return f"{type(value).__name__} {shown}"
