"""Read the turns of a conversation from a list of messages, whatever its keys, roles and content parts are called."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from demur.data.json_text import decode_json
from demur.data.reasoning import joined_reasoning
from demur.errors import RowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.conversation import Role

__all__ = ["Message", "as_message_list", "has_message_keys", "is_message", "read_messages", "role_of", "text_of"]

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "bot", "model", "ai", "chatgpt", "function_call"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "tool_response", "function_response"), "tool"),
}
_ROLE_KEYS = ("role", "from")
_CONTENT_KEYS = ("content", "value")
_CALL_KEYS = ("tool_calls", "function_call")
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
_REASONING_PARTS = frozenset({"thinking", "reasoning", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Message:
    """Keep one message as a file gives it: its content may be missing, and its thinking stands apart."""

    role: Role
    content: str | None
    reasoning: str | None = None


def as_message_list(value: object) -> list[object] | None:
    """Return the list of messages that the value is, or that its JSON text holds, or None."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = decode_json(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, dict) and any(key in value for key in _ROLE_KEYS):
        return _transposed(value) if any(_is_list(value.get(key)) for key in _ROLE_KEYS) else [value]
    return list(value) if _is_list(value) else None


def has_message_keys(fields: Mapping[str, object]) -> bool:
    """Tell whether there is one of `role` and `from`, and one of `content` and `value`."""
    return any(key in fields for key in _ROLE_KEYS) and any(key in fields for key in _CONTENT_KEYS)


def is_message(item: object) -> bool:
    """Tell whether the item is a message of a role that is known; one that calls a tool may have no content."""
    if not isinstance(item, dict) or not (has_message_keys(item) or any(key in item for key in _CALL_KEYS)):
        return False
    roles = [item[key] for key in _ROLE_KEYS if key in item]
    return bool(roles) and isinstance(roles[0], str) and roles[0].strip().lower() in _ROLES


def read_messages(value: object, where: str) -> tuple[Message, ...]:
    """Read a list of `{role, content}` or `{from, value}`.

    Raises:
        RowError: It is no such list, or a role is not known.
    """
    items = as_message_list(value)
    if items is None:
        message = f"messages is {_short(value)}; give a list of {{role, content}} or {{from, value}}"
        raise RowError(message, where=where)
    return tuple(_message(item, where) for item in items)


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


def _transposed(columns: Mapping[str, object]) -> list[object] | None:
    """Turn a list for each key, as `datasets` keeps sequences of objects, into a list of messages."""
    lists = {key: value for key, value in columns.items() if _is_list(value)}
    if not has_message_keys(lists) or len({len(value) for value in lists.values()}) > 1:
        return None
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _message(item: object, where: str) -> Message:
    if not isinstance(item, dict):
        message = f"a message is {_short(item)}; give {{role, content}} or {{from, value}}"
        raise RowError(message, where=where)
    role = role_of(next((item[key] for key in _ROLE_KEYS if item.get(key) is not None), None), where)
    content, thoughts = _content(next((item[key] for key in _CONTENT_KEYS if key in item), None), where)
    calls = _calls(item.get("tool_calls") or item.get("function_call"))
    # Some providers put a refusal beside an empty content.
    said = [part for part in (content, item.get("refusal"), *calls) if isinstance(part, str) and part]
    fields = [item[key] for key in _REASONING_KEYS if isinstance(item.get(key), str)]
    text = "\n".join(said) if said else content
    reasoning = joined_reasoning(*fields, *thoughts) if role == "assistant" else None
    # A reply that was cut while it thought has no content, and is empty rather than unknown.
    return Message(role, "" if text is None and reasoning is not None else text, reasoning)


def _content(value: object, where: str) -> tuple[str | None, list[str]]:
    """Return the text of a content and the thinking among its parts."""
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return text_of(value, where, "content"), []
    thoughts = [_part_text(part) for part in value if _kind(part) in _REASONING_PARTS]
    said = [_part_text(part) for part in value if _kind(part) not in _REASONING_PARTS]
    return "\n".join(said), thoughts


def _kind(part: object) -> str:
    return str(part.get("type")) if isinstance(part, dict) else "text"


def _part_text(part: object) -> str:
    """Return a part's text, or the name of what it is in brackets, such as `[image]`."""
    if not isinstance(part, dict):
        return str(part)
    kind = _kind(part)
    if kind == "tool_use":
        return _call(part)
    texts = (part.get(key) for key in ("text", "refusal", "thinking", "content"))
    name = kind.removeprefix("input_").removesuffix("_url")
    return next((text for text in texts if isinstance(text, str)), f"[{name}]")


def _calls(value: object) -> list[str]:
    """Return each tool call as one short line of text."""
    calls = value if isinstance(value, list) else [value]
    functions = [call.get("function", call) for call in calls if isinstance(call, dict)]
    return [_call(function) for function in functions if isinstance(function, dict)]


def _call(call: Mapping[str, object]) -> str:
    arguments = call.get("arguments", call.get("input", ""))
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[tool call: {call.get('name')}({written})]"


def _short(value: object, n_shown: int = 60) -> str:
    text = repr(value)
    shown = text if len(text) <= n_shown else f"{text[:n_shown]}…"
    return f"{type(value).__name__} {shown}"
