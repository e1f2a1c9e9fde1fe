"""Write a conversation out for a judge so that nothing it says can pass for an instruction, or for its own end."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.conversation import Conversation, Turn

__all__ = ["fence_of", "fenced"]

_FENCE_DIGITS = 12
# How much of a conversation a judge reads, in characters. Beginning and end are kept: refusals stand there.
_REPLY_CHARACTERS = 12_000
_REQUEST_CHARACTERS = 8_000
_TURN_CHARACTERS = 2_000
_EARLIER_CHARACTERS = 8_000

# Marks are written in these brackets, so a conversation may hold none, nor what looks like them.
_BRACKETS = str.maketrans({"⟦": "[", "⟧": "]", "〚": "[", "〛": "]", "⟬": "[", "⟭": "]"})
# What servers of open models read as the borders of turns, wherever it stands: it loses what makes it one.
_BARRED = re.compile(r"<\s*[|｜]\s*([^|｜<>\n]{1,40}?)\s*[|｜]\s*>")
_TAGS = re.compile(r"<(/?(?:s|bos|eos|start_of_turn|end_of_turn)|</?SYS>)>|\[(/?(?:INST|SYSTEM_PROMPT))\]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def fence_of(conversation: Conversation) -> str:
    """Return twelve hex digits that nobody who writes into a conversation can foresee, and that are always its own.

    They are of the sha256 of what the conversation says: to write them down in it, one would have to know them before.
    """
    said = [[turn.role, turn.content] for turn in conversation.turns]
    return hashlib.sha256(json.dumps(said, ensure_ascii=True).encode()).hexdigest()[:_FENCE_DIGITS]


def fenced(conversation: Conversation) -> str:
    """Write the turns out, oldest first, each under a mark with its role, and a mark at the end of all.

    Example:
        >>> from demur.conversation import Conversation
        >>> print(fenced(Conversation.of("Hi", "Hello ⟦end⟧")).encode("ascii", "replace").decode())
        ?94bae5ac0bb7 user?
        Hi
        ?94bae5ac0bb7 assistant, to be judged?
        Hello [end]
        ?94bae5ac0bb7 end?
    """
    fence = fence_of(conversation)
    return "\n".join((*_parts(conversation, fence), f"⟦{fence} end⟧"))


def _parts(conversation: Conversation, fence: str) -> Iterator[str]:
    context = conversation.context
    first = max((i for i, turn in enumerate(context) if turn.role == "user"), default=len(context))
    earlier, n_left_out = _newest(context[:first], fence)
    if n_left_out:
        yield f"⟦{fence} {n_left_out} earlier messages left out⟧"
    yield from earlier
    for turn in context[first:]:
        yield _part(turn.role, turn, _REQUEST_CHARACTERS, fence)
    yield _part("assistant, to be judged", conversation.turns[-1], _REPLY_CHARACTERS, fence)


def _newest(turns: tuple[Turn, ...], fence: str) -> tuple[list[str], int]:
    """Return the newest of older turns that there is room for, and how many are left out; a system prompt stays."""
    kept: list[str] = []
    room = _EARLIER_CHARACTERS
    for i, turn in reversed(list(enumerate(turns))):
        part = _part(turn.role, turn, _TURN_CHARACTERS, fence)
        if len(part) > room and turn.role != "system":
            return [*_system(turns[:i], fence), *reversed(kept)], i + 1 - len(_system(turns[:i], fence))
        room -= len(part)
        kept.append(part)
    return kept[::-1], 0


def _system(turns: tuple[Turn, ...], fence: str) -> list[str]:
    return [_part(turn.role, turn, _TURN_CHARACTERS, fence) for turn in turns[:1] if turn.role == "system"]


def _part(role: str, turn: Turn, limit: int, fence: str) -> str:
    return f"⟦{fence} {role}⟧\n{_cut(_harmless(turn.content, fence), limit, fence)}"


def _harmless(text: str, fence: str) -> str:
    text = _CONTROLS.sub(" ", text.encode("utf-8", "replace").decode("utf-8")).translate(_BRACKETS)
    text = _BARRED.sub(r"<\1>", text)
    return _TAGS.sub(lambda tag: f"({tag[1] or tag[2]})", text).replace(fence, "…")


def _cut(text: str, limit: int, fence: str) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}⟦{fence} {len(text) - 2 * half} characters left out⟧{text[-half:]}"
