"""Know which replies answer the same request: their errors depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from demur.conversation import Conversation

__all__ = ["folded", "opening", "opening_request", "request_clusters"]


def request_clusters(conversations: Iterable[Conversation]) -> list[str | int]:
    """Name each reply's cluster: the request that its conversation begins with; a reply without one stands alone.

    Later requests may be as short as *go on*, and replies in one chat depend on each other through all that is said.
    """
    openings = [folded(opening(conversation) or "") for conversation in conversations]
    return [request or place for place, request in enumerate(openings)]


def opening_request(conversation: Conversation) -> str:
    """Name the request that a conversation begins with, which its sides and turns and others of the same words share.

    Without a user's turn, the row of the source stands for it.
    """
    return folded(opening(conversation) or "") or f"\0row {conversation.row_id}"


def opening(conversation: Conversation) -> str | None:
    """Return what the user says first; None where no user speaks."""
    return next((turn.content for turn in conversation.context if turn.role == "user"), None)


def folded(text: str) -> str:
    """Return a text without case and spacing, which do not make it another one."""
    return " ".join(text.casefold().split())
