"""Tell what the value of a cell looks like, be it a chat, a transcript, a text or nothing: layouts go by it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from demur.conversation import SIDES
from demur.data.messages import (
    ROLE_KEYS,
    as_message_list,
    is_damaged_messages,
    is_message,
    is_python_messages,
    read_messages,
    role_of,
)
from demur.data.transcripts import has_role_tokens, is_hh
from demur.errors import RowError

if TYPE_CHECKING:
    from demur.conversation import Role

__all__ = [
    "ASKING_ROLES",
    "is_answered_chat",
    "is_assistant",
    "is_chat",
    "is_conversation",
    "is_filled_history",
    "is_filled_text",
    "is_hh_text",
    "is_history",
    "is_kind_message",
    "is_lost_chat",
    "is_marked_text",
    "is_messages",
    "is_nothing",
    "is_number",
    "is_open_chat",
    "is_parts",
    "is_passage",
    "is_said_in",
    "is_sharegpt",
    "is_side",
    "is_system",
    "is_text_about",
    "is_textual",
    "is_textual_but_no_number",
]

ASKING_ROLES = ("user", "tool")
"""Who waits for a reply: a tool has answered the assistant's call, and the assistant goes on."""


def is_chat(value: object) -> bool:
    """Tell whether the value is a list of `{role, content}`, or the JSON of one."""
    return _has_turns(value, "role")


def is_sharegpt(value: object) -> bool:
    """Tell whether the value is a list of `{from, value}`, or the JSON of one."""
    return _has_turns(value, "from")


def is_messages(value: object) -> bool:
    """Tell whether the value is a list of messages, whatever their keys."""
    return is_chat(value) or is_sharegpt(value)


def is_open_chat(value: object) -> bool:
    """Tell whether the value is a list of messages that waits for its reply, so that this stands elsewhere."""
    return _last_role(value) in ASKING_ROLES


def is_answered_chat(value: object) -> bool:
    """Tell whether the value is a list of messages that ends with the assistant's, or one such message."""
    return _last_role(value) == "assistant"


def is_hh_text(value: object) -> bool:
    """Tell whether the value is a transcript of `Human:` and `Assistant:`."""
    return isinstance(value, str) and is_hh(value)


def is_marked_text(value: object) -> bool:
    """Tell whether the value is a text with role tokens."""
    return isinstance(value, str) and has_role_tokens(value)


def is_conversation(value: object) -> bool:
    """Tell whether the value is a conversation, as messages or as a transcript."""
    return is_messages(value) or is_hh_text(value) or is_marked_text(value)


def is_said_in(conversation: object, text: object) -> bool:
    """Tell whether a text is said in a conversation, word for word, be it within a longer message."""
    if not isinstance(text, str):
        return False
    if as_message_list(conversation) is None:
        return isinstance(conversation, str) and text.strip() in conversation
    with contextlib.suppress(RowError):
        return any(text.strip() in (message.content or "") for message in read_messages(conversation, "messages"))
    return False


def is_textual(value: object) -> bool:
    """Tell whether the value can stand for what somebody said; null can, for in another row it will be text."""
    return value is None or isinstance(value, str | int | float) or is_chat(value) or is_sharegpt(value)


def is_system(value: object) -> bool:
    """Tell whether the value can stand for a system prompt: a text, or parts of content, as some providers take it."""
    parts = value if isinstance(value, list) else [value]
    return is_textual(value) or all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts)


def is_nothing(value: object) -> bool:
    """Tell whether a cell is null or empty."""
    return value is None or value in ([], "")


def is_number(value: object) -> bool:
    """Tell whether the value is a number, which may be a score as well as something said."""
    return isinstance(value, int | float)


def is_filled_text(value: object) -> bool:
    """Tell whether the value is what somebody said, and neither empty nor a number."""
    return is_textual_but_no_number(value) and not is_nothing(value)


def is_passage(value: object) -> bool:
    """Tell whether the value can stand for a text that is asked about, and not for what was said before."""
    return value is None or (isinstance(value, str) and not is_conversation(value))


def is_textual_but_no_number(value: object) -> bool:
    """Tell whether the value can stand for what somebody said, and hardly for anything else."""
    return is_textual(value) and not is_number(value)


def is_text_about(value: object) -> bool:
    """Tell whether the value can stand for what is asked about: a text, and neither a number nor messages."""
    return is_textual_but_no_number(value) and not is_messages(value)


def is_lost_chat(value: object) -> bool:
    """Tell whether the value is null, empty, or a list that Python has printed or that was cut, in place of a chat."""
    return is_nothing(value) or is_python_messages(value) or is_damaged_messages(value)


def is_assistant(value: object) -> bool:
    """Tell whether the value is the role of a model."""
    return value == "assistant"


def is_kind_message(value: object) -> bool:
    """Tell whether the value says that the row is a message as an API answers with it."""
    return value == "message"


def is_parts(value: object) -> bool:
    """Tell whether the value is a list of parts of a content, each with its type."""
    return isinstance(value, list) and all(isinstance(part, dict) and "type" in part for part in value)


def is_history(value: object) -> bool:
    """Tell whether the value is what was said before the prompt: messages, or pairs of a question and its answer."""
    items = as_message_list(value)
    return items is not None and all(is_message(item) or _is_exchange(item) for item in items)


def is_filled_history(value: object) -> bool:
    """Tell whether the value is what was said before the prompt, and anything was."""
    return bool(value) and is_history(value)


def is_side(value: object) -> bool:
    """Tell whether the value names a side of a preference pair."""
    return value in SIDES


def _has_turns(value: object, key: str) -> bool:
    items = as_message_list(value)
    return bool(items) and isinstance(items[0], dict) and key in items[0]  # type: ignore[index]  # bool() excludes None


def _last_role(value: object) -> Role | None:
    items = as_message_list(value) if is_messages(value) else None
    last = items[-1] if items else None
    names = [last[key] for key in ROLE_KEYS if last.get(key) is not None] if isinstance(last, dict) else []
    with contextlib.suppress(RowError):
        return role_of(names[0], "role") if names else None
    return None


def _is_exchange(item: object) -> bool:
    if not isinstance(item, list | tuple) or len(item) != 2:  # noqa: PLR2004
        return False
    return all(said is None or isinstance(said, str) for said in item)
