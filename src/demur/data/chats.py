"""Read the values of a row as what was said: one reading for each layout, and the tests that tell layouts apart.

Null is read alike everywhere: a null or empty prompt or system cell is no turn, a null message of the context is an
empty turn, and a null reply is an error of the row once that reply is to be judged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from demur.conversation import SIDES
from demur.data.messages import (
    ROLE_KEYS,
    Message,
    as_message_list,
    content_of,
    is_completion,
    is_damaged_messages,
    is_message,
    is_python_messages,
    read_messages,
    role_of,
    text_of,
)
from demur.data.transcripts import has_role_tokens, is_hh, read_transcript
from demur.errors import RowError

if TYPE_CHECKING:
    from demur.conversation import Role

__all__ = [
    "ASKING_ROLES",
    "TAKE_THE_TEXT",
    "Spoken",
    "Values",
    "is_answered_chat",
    "is_assistant",
    "is_chat",
    "is_conversation",
    "is_hh_text",
    "is_history",
    "is_kind_message",
    "is_lost_chat",
    "is_marked_text",
    "is_nothing",
    "is_number",
    "is_open_chat",
    "is_parts",
    "is_said_in",
    "is_sharegpt",
    "is_side",
    "is_textual",
    "is_textual_but_no_number",
    "read_alpaca",
    "read_chat",
    "read_message",
    "read_other_reply",
    "read_pair",
    "read_preference",
    "read_reply",
    "read_text",
]

# The parts of one row by name; a part whose column the row does not have is absent.
Values = Mapping[str, object]

TAKE_THE_TEXT = "write its text into a column of its own, as from choices[0].message.content"
"""What to do with a reply that stands within an object: a column is taken as a whole."""

ASKING_ROLES = ("user", "tool")
"""Who waits for a reply: a tool has answered the assistant's call, and the assistant goes on."""

# The side of a preference pair, or None, and the messages of one conversation.
Spoken = tuple[str | None, tuple[Message, ...]]


def is_chat(value: object) -> bool:
    """Tell whether the value is a list of `{role, content}`, or the JSON of one."""
    return _has_turns(value, "role")


def is_sharegpt(value: object) -> bool:
    """Tell whether the value is a list of `{from, value}`, or the JSON of one."""
    return _has_turns(value, "from")


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
    return _is_messages(value) or is_hh_text(value) or is_marked_text(value)


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


def is_side(value: object) -> bool:
    """Tell whether the value names a side of a preference pair."""
    return value in SIDES


def read_chat(values: Values, where: str) -> list[Spoken]:
    """Read a list of messages, under the system prompt beside it where it has none of its own."""
    return [(_side(values), _under_system(values, read_messages(values["messages"], where), where))]


def read_message(values: Values, where: str) -> list[Spoken]:
    """Read a single message, which is the reply where the assistant said it."""
    return [(None, read_messages([{"role": values["role"], "content": values["content"]}], where))]


def read_pair(values: Values, where: str) -> list[Spoken]:
    """Read a prompt, the context that it speaks of, and its response: the first two are one user turn."""
    opening = _opening(values, where)
    return [(_side(values), (*opening, *_reply(values["response"], where, "response", opening)))]


def read_other_reply(values: Values, where: str) -> list[Spoken]:
    """Read a conversation with another reply in place of its last turn."""
    said = _opening(values, where)
    before = said[:-1] if said and said[-1].role == "assistant" else said
    return [(_side(values), (*before, *_reply(values["response"], where, "response", before)))]


def read_alpaca(values: Values, where: str) -> list[Spoken]:
    """Read an instruction, the input that it speaks of, and the output: the first two are one user turn."""
    opening = _opening(values, where, "instruction")
    return [(_side(values), (*opening, *_reply(values["output"], where, "output", opening)))]


def read_text(values: Values, where: str) -> list[Spoken]:
    """Read a transcript, or a bare reply where the text is none."""
    return [(_side(values), _spoken(values["text"], where, "text"))]


def read_reply(values: Values, where: str) -> list[Spoken]:
    """Read a bare reply, or the transcript that stands where a reply should."""
    return [(_side(values), _spoken(values["response"], where, "response"))]


def read_preference(values: Values, where: str) -> list[Spoken]:
    """Read both sides of a preference pair; a bare reply is put under the prompt beside it."""
    opening = _opening(values, where)
    sides = [(side, _spoken(values[side], where, side, opening)) for side in SIDES]
    return [
        (side, _under_system(values, said, where) if _has_user(said) else (*opening, *said)) for side, said in sides
    ]


def _has_turns(value: object, key: str) -> bool:
    items = as_message_list(value)
    return bool(items) and isinstance(items[0], dict) and key in items[0]  # type: ignore[index]  # bool() excludes None


def _last_role(value: object) -> Role | None:
    items = as_message_list(value) if _is_messages(value) else None
    last = items[-1] if items else None
    names = [last[key] for key in ROLE_KEYS if last.get(key) is not None] if isinstance(last, dict) else []
    with contextlib.suppress(RowError):
        return role_of(names[0], "role") if names else None
    return None


def _is_messages(value: object) -> bool:
    return is_chat(value) or is_sharegpt(value)


def _holds_messages(value: object) -> bool:
    if _is_messages(value) or is_damaged_messages(value):
        return True
    return is_python_messages(value) and not is_completion(value)


def _is_exchange(item: object) -> bool:
    if not isinstance(item, list | tuple) or len(item) != 2:  # noqa: PLR2004
        return False
    return all(said is None or isinstance(said, str) for said in item)


def _has_user(messages: tuple[Message, ...]) -> bool:
    return any(message.role == "user" for message in messages)


def _side(values: Values) -> str | None:
    side = values.get("side")
    return str(side) if is_side(side) else None


def _under_system(values: Values, messages: tuple[Message, ...], where: str) -> tuple[Message, ...]:
    """Put the system prompt of its own column before messages that have none."""
    system, _ = content_of(values.get("system"), where, "system")
    if not system or any(message.role == "system" for message in messages):
        return messages
    return (Message("system", system), *messages)


def _opening(values: Values, where: str, part: str = "prompt") -> tuple[Message, ...]:
    """Return what stands before the reply: the system prompt, and the prompt, which may be a conversation itself."""
    return _under_system(values, _prompt(values, where, part), where)


def _prompt(values: Values, where: str, part: str) -> tuple[Message, ...]:
    if _is_messages(values.get(part)):
        return read_messages(values[part], where)
    asked, about = (text_of(values.get(each), where, each) or "" for each in (part, "input"))
    text = asked or about
    if not (has_role_tokens(text) or is_hh(text)):
        # The input that an instruction speaks of, or a question's context, is said in the same turn.
        text = "\n\n".join(each for each in (asked, about) if each)
        return (*_history(values, where), *((Message("user", text),) if text else ()))
    said = read_transcript(text, where)
    # A prompt that is a transcript ends with the reply's own heading, which the reply fills.
    said = said[:-1] if said[-1].role == "assistant" and not said[-1].content else said
    if asked and about and said and said[-1].role == "user":
        return (*said[:-1], Message("user", f"{said[-1].content}\n\n{about}"))
    return said


def _history(values: Values, where: str) -> tuple[Message, ...]:
    """Return what was said before the prompt.

    Raises:
        RowError: It holds something that is neither a message nor a question with its answer.
    """
    value = values.get("history")
    if is_nothing(value):
        return ()
    if not is_history(value):
        message = (
            f"history cannot be read ({type(value).__name__}); give messages, or pairs of a question and its answer"
        )
        raise RowError(message, where=where)
    said: list[Message] = []
    for item in as_message_list(value) or ():
        if isinstance(item, list | tuple):
            # A question that waits for its answer stands with a null, as Gradio has it.
            question, answer = item
            said += [] if question is None else [Message("user", question)]
            said += [] if answer is None else [Message("assistant", answer)]
        else:
            said += read_messages([item], where)
    return tuple(said)


def _reply(value: object, where: str, column: str, opening: Sequence[Message]) -> tuple[Message, ...]:
    if _holds_messages(value) and not _is_written(value, where, opening):
        return read_messages(value, where)
    return (Message("assistant", _reply_text(value, where, column)),)


def _reply_text(value: object, where: str, column: str) -> str | None:
    """Return the text of a reply.

    Raises:
        RowError: It is no text, or that of an object with the reply somewhere within.
    """
    if is_completion(value):
        message = (
            f"{column} is the text of an object with choices, and a column is taken as a whole: of the reply within "
            f"it, {TAKE_THE_TEXT}"
        )
        raise RowError(message, where=where)
    return text_of(value, where, column)


def _is_written(value: object, where: str, opening: Sequence[Message]) -> bool:
    """Tell whether a text of messages is what the assistant wrote when it was asked for a conversation.

    Its user says something else than the one who is answered; what only holds a table's cells repeats that.
    """
    asked = {_squeezed(message.content) for message in opening if message.role == "user"}
    if not isinstance(value, str) or not asked:
        return False
    users = {_squeezed(message.content) for message in read_messages(value, where) if message.role == "user"}
    return bool(users) and not any(said in one or one in said for said in users for one in asked)


def _squeezed(text: str | None) -> str:
    return " ".join((text or "").split())


def _spoken(value: object, where: str, column: str, opening: Sequence[Message] = ()) -> tuple[Message, ...]:
    if _holds_messages(value):
        if _is_written(value, where, opening):
            return (Message("assistant", text_of(value, where, column)),)
        return read_messages(value, where)
    text = _reply_text(value, where, column)
    return (Message("assistant", None),) if text is None else read_transcript(text, where)
