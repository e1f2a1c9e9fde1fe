"""Write a conversation out for a judge so that nothing it says can pass for an instruction, or for its own end."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demur.conversation import Conversation, Turn

__all__ = ["fence_of", "fenced"]

_FENCE_DIGITS = 12
# How much of a conversation a judge reads, in characters. Beginning and end are kept: refusals stand there.
_REPLY_CHARACTERS = 12_000
_REQUEST_CHARACTERS = 8_000
# A turn before the request and one after it, and all before and all after it. System prompts have a room of their own.
_EARLIER_TURN, _LATER_TURN = 2_000, 8_000
_EARLIER_TURNS, _LATER_TURNS, _SYSTEM_TURNS = 8_000, 16_000, 8_000

# Marks are written in these brackets, so a conversation may hold none, nor what looks like them.
_BRACKETS = str.maketrans({"⟦": "[", "⟧": "]", "〚": "[", "〛": "]", "⟬": "[", "⟭": "]"})
# What servers of open models read as the borders of turns, wherever it stands: it loses what makes it one.
# The name within begins and ends with no space: if it could, a long run of spaces would be tried at every length.
_BARRED = re.compile(r"<\s*[|｜]\s*([^\s|｜<>](?:[^|｜<>\n]{0,38}[^\s|｜<>])?)\s*[|｜]\s*>")
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
    last = max((i for i, turn in enumerate(context) if turn.role == "user"), default=len(context))
    yield from _kept(context[:last], "earlier messages", _EARLIER_TURN, _EARLIER_TURNS, fence)
    for turn in context[last : last + 1]:
        yield _part(turn.role, turn, _REQUEST_CHARACTERS, fence)
    yield from _kept(context[last + 1 :], "messages", _LATER_TURN, _LATER_TURNS, fence)
    yield _part("assistant, to be judged", conversation.turns[-1], _REPLY_CHARACTERS, fence)


def _kept(turns: tuple[Turn, ...], what: str, limit: int, room: int, fence: str) -> Iterator[str]:
    """Yield how many turns are left out, and those kept: the newest, and the first system prompts beside them."""
    parts = [(place, _part(turn.role, turn, limit, fence)) for place, turn in enumerate(turns)]
    system = [part for part, turn in zip(parts, turns, strict=True) if turn.role == "system"]
    others = [part for part, turn in zip(parts, turns, strict=True) if turn.role != "system"]
    kept = sorted([*_that_fit(system, _SYSTEM_TURNS), *_that_fit(reversed(others), room)])
    if len(kept) < len(turns):
        yield f"⟦{fence} {len(turns) - len(kept)} {what} left out⟧"
    yield from (part for _, part in kept)


def _that_fit(parts: Iterable[tuple[int, str]], room: int) -> Iterator[tuple[int, str]]:
    """Yield the first ones, as long as there is room for them."""
    for place, part in parts:
        if len(part) > room:
            return
        room -= len(part)
        yield place, part


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
