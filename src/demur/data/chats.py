"""Read the values of a row as what was said: one reading for each layout.

Null is read alike everywhere: a null or empty prompt or system cell is no turn, a null message of the context is an
empty turn, and a null reply is an error of the row once that reply is to be judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from demur.conversation import SIDES
from demur.data.likeness import is_history, is_messages, is_nothing, is_side
from demur.data.messages import (
    Message,
    as_message_list,
    as_text_list,
    content_of,
    is_completion,
    is_damaged_messages,
    is_python_messages,
    read_messages,
    text_of,
)
from demur.data.transcripts import has_role_tokens, is_answered_hh, is_hh, read_transcript
from demur.errors import RowError

__all__ = [
    "TAKE_THE_TEXT",
    "Spoken",
    "Values",
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

# As clients of OpenAI, Anthropic and LangChain print what a model answered.
_PRINTED_ANSWER = re.compile(
    r"\s*\[?(?:ChatCompletion\w*|TextBlock|ModelResponse|GenerateContentResponse|AIMessage)\(\w+="
    r"|content=(?P<quote>['\"])(?=.*(?P=quote) additional_kwargs=)",
    re.DOTALL,
)

# The side of a preference pair, or None, and the messages of one conversation.
Spoken = tuple[str | None, tuple[Message, ...]]


def read_chat(values: Values, where: str) -> list[Spoken]:
    """Read a list of messages, under the system prompt beside it where it has none of its own."""
    return [(_side(values), _under_system(values, read_messages(values["messages"], where), where))]


def read_message(values: Values, where: str) -> list[Spoken]:
    """Read a single message, which is the reply where the assistant said it."""
    return [(None, read_messages([{"role": values["role"], "content": values["content"]}], where))]


def read_pair(values: Values, where: str) -> list[Spoken]:
    """Read a prompt, the context that it speaks of, and its response: the first two are one user turn.

    Where the cells of both hold a text a turn, as those of battles of LMSYS do, that is the whole conversation.
    """
    if said := _exchanges(values, "response"):
        return [(_side(values), said)]
    opening = _opening(values, where)
    return [(_side(values), _answered(opening, values["response"], where, "response"))]


def read_other_reply(values: Values, where: str) -> list[Spoken]:
    """Read a conversation with another reply in place of its last turn."""
    said = _opening(values, where)
    before = said[:-1] if said and said[-1].role == "assistant" else said
    return [(_side(values), _answered(before, values["response"], where, "response"))]


def read_alpaca(values: Values, where: str) -> list[Spoken]:
    """Read an instruction, the input that it speaks of, and the output: the first two are one user turn."""
    opening = _opening(values, where, "instruction")
    return [(_side(values), _answered(opening, values["output"], where, "output"))]


def read_text(values: Values, where: str) -> list[Spoken]:
    """Read a transcript, or a bare reply where the text is none."""
    return [(_side(values), _spoken(values["text"], where, "text"))]


def read_reply(values: Values, where: str) -> list[Spoken]:
    """Read a bare reply, or the transcript that stands where a reply should."""
    return [(_side(values), _spoken(values["response"], where, "response"))]


def read_preference(values: Values, where: str) -> list[Spoken]:
    """Read both sides of a preference pair; a bare reply is put under the prompt beside it."""
    exchanges = {side: _exchanges(values, side) for side in SIDES}
    if all(exchanges.values()):
        return list(exchanges.items())
    opening = _opening(values, where)
    sides = [(side, _spoken(values[side], where, side, opening)) for side in SIDES]
    return [
        (side, _under_system(values, said, where) if _has_user(said) else (*opening, *said)) for side, said in sides
    ]


def _holds_messages(value: object) -> bool:
    if is_messages(value) or is_damaged_messages(value):
        return True
    return is_python_messages(value) and not is_completion(value)


def _has_user(messages: Sequence[Message]) -> bool:
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
    if is_messages(values.get(part)):
        return read_messages(values[part], where)
    asked, about = (text_of(values.get(each), where, each) or "" for each in (part, "input"))
    text = asked or about
    if not (has_role_tokens(text) or is_hh(text)):
        # The input that an instruction speaks of, or a question's context, is said in the same turn.
        text = "\n\n".join(each for each in (asked, about) if each)
        said, asked_now = _history(values, where), ((Message("user", text),) if text else ())
        # Some keep the prompt as the last of what was said, too.
        return (*(said[:-1] if said[-1:] == asked_now else said), *asked_now)
    said = read_transcript(text, where)
    # A prompt that is a transcript ends with the reply's own heading, which the reply fills.
    said = said[:-1] if said[-1].role == "assistant" and not said[-1].content else said
    if asked and about and said and said[-1].role == "user":
        return (*said[:-1], Message("user", f"{said[-1].content}\n\n{about}"))
    return said


def _exchanges(values: Values, reply: str) -> tuple[Message, ...]:
    """Return the turns of a cell of prompts and one of replies, a list of texts each; nothing where they are no such.

    Beside anything else that was said, a list is what is asked about. Lists that are no text of a cell may be batches
    as well, and no layout takes them.
    """
    asked = as_text_list(values.get("prompt"))
    if not any(asked) or any(not is_nothing(values.get(part)) for part in ("input", "history", "system")):
        return ()
    answered = as_text_list(values[reply])
    if len(asked) != len(answered):
        return ()
    pairs = zip(asked, answered, strict=True)
    return tuple(message for ask, answer in pairs for message in (Message("user", ask), Message("assistant", answer)))


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


def _answered(opening: tuple[Message, ...], value: object, where: str, column: str) -> tuple[Message, ...]:
    """Put a reply behind what it answers; one that repeats this, as some engines give it, is the whole conversation."""
    said: tuple[Message, ...] = ()
    if _holds_messages(value) and not _is_written(value, where, opening):
        said = read_messages(value, where)
    elif isinstance(value, str) and (has_role_tokens(value) or is_answered_hh(value)):
        transcript = read_transcript(value, where)
        said = transcript if _place_of(transcript, opening) is not None else ()
    if not said:
        return (*opening, Message("assistant", _reply_text(value, where, column)))
    place = _place_of(said, opening)
    if place is None:
        return (*opening, *said)
    before = opening[:place]
    has_system = any(message.role == "system" for message in before)
    return (*before, *(message for message in said if not has_system or message.role != "system"))


def _place_of(said: Sequence[Message], opening: Sequence[Message]) -> int | None:
    """Return where in an opening stands the user's turn that what was said begins with; None where it does not."""
    first = next((message for message in said if message.role != "system"), None)
    if first is None or first.role != "user" or not first.content:
        return None
    asked = _squeezed(first.content)
    places = [i for i, message in enumerate(opening) if message.role == "user" and _squeezed(message.content) == asked]
    return places[-1] if places else None


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
    if isinstance(value, str) and (printed := _PRINTED_ANSWER.match(value)) is not None:
        message = (
            f"{column} is an object as Python prints it ({printed.group()}…), and a column is taken as a whole: of the "
            f"reply within it, {TAKE_THE_TEXT}"
        )
        raise RowError(message, where=where)
    return text_of(value, where, column)


def _is_written(value: object, where: str, opening: Sequence[Message]) -> bool:
    """Tell whether a text of messages is what the assistant wrote when it was asked for a conversation.

    Its user says something else than the one who is answered; what only holds a table's cells repeats that.
    """
    if not isinstance(value, str) or not _has_user(opening):
        return False
    said = read_messages(value, where)
    return _has_user(said) and not _repeats(said, opening)


def _repeats(said: Sequence[Message], opening: Sequence[Message]) -> bool:
    """Tell whether a user's turn among what was said holds one of the opening, or lies within it."""
    users, asked = (
        {_squeezed(message.content) for message in messages if message.role == "user"} for messages in (said, opening)
    )
    return any(one in other or other in one for one in users for other in asked)


def _squeezed(text: str | None) -> str:
    return " ".join((text or "").split())


def _spoken(value: object, where: str, column: str, opening: Sequence[Message] = ()) -> tuple[Message, ...]:
    if _holds_messages(value):
        if _is_written(value, where, opening):
            return (Message("assistant", text_of(value, where, column)),)
        return read_messages(value, where)
    text = _reply_text(value, where, column)
    return (Message("assistant", None),) if text is None else read_transcript(text, where)
