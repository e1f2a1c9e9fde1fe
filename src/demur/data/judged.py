"""Pick the replies that are judged out of the messages of a row, with what is said before each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from demur.conversation import Turn
from demur.data.likeness import ASKING_ROLES
from demur.data.nested import holds_a_reply, nested_reply
from demur.data.reasoning import joined_reasoning, set_reasoning_apart
from demur.errors import RowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from demur.data.messages import Message

__all__ = ["Turns", "check_turns", "judged"]

Turns = Literal["last", "all"]


def check_turns(turns: str) -> None:
    """Refuse what is no choice of judged turns: a slip would be taken for the other one.

    Raises:
        ValueError: It is neither `last` nor `all`.
    """
    if turns not in get_args(Turns):
        message = f"turns is {turns!r}; give {' or '.join(map(repr, get_args(Turns)))}"
        raise ValueError(message)


def judged(
    messages: Sequence[Message], where: str, turns: Turns, fields: Mapping[str, object]
) -> Iterator[tuple[int, tuple[Turn, ...] | RowError, str | None]]:
    """Yield the index among the assistant's turns, the turns up to there and the thinking, for each judged reply.

    What stands in place of the turns where there is no such reply says why, and where in the row there may be one.

    Args:
        messages: What a row says.
        where: The row, as errors name it.
        turns: Whether the last assistant turn is judged, or `all` of them, each with what stands before it.
        fields: What else the row has, where the reply may stand if the messages end without it.
    """
    replies = [index for index, message in enumerate(messages) if message.role == "assistant"]
    # An earlier reply is not judged in place of the last one.
    is_elsewhere = turns == "last" and bool(replies) and messages[-1].role in ASKING_ROLES and holds_a_reply(fields)
    if not replies or is_elsewhere:
        met = (
            f"the messages end with the {messages[-1].role}'s"
            if is_elsewhere
            else f"no assistant turn among {len(messages)} messages; a row needs a reply to judge"
        )
        yield 0, RowError(met + nested_reply(fields), where=where, reason="no_assistant_turn"), None
        return
    heard = [_heard(message) for message in messages[: replies[-1] + 1]]
    spoken = tuple(turn for turn, _ in heard)
    first = len(replies) - 1 if turns == "last" else 0
    for number, index in enumerate(replies[first:], start=first):
        if messages[index].content is None:
            message = "the reply to judge is null; leave the row out, or write an empty text where the reply was empty"
            yield number, RowError(message, where=where, reason="null_content"), None
        else:
            yield number, spoken[: index + 1], heard[index][1]


def _heard(message: Message) -> tuple[Turn, str | None]:
    """Return what was said aloud, and apart from it what the assistant thought."""
    content = "" if message.content is None else message.content
    if message.role != "assistant":
        return Turn(message.role, content), None
    reply, reasoning = set_reasoning_apart(content)
    return Turn(message.role, reply), joined_reasoning(message.reasoning, reasoning)
