"""Know which replies answer the same request: their errors depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from demur.conversation import Conversation

__all__ = ["opening_request", "request_clusters"]


def request_clusters(conversations: Iterable[Conversation]) -> list[str | int]:
    """Name each reply's cluster: its request without case and spacing; a reply without a request stands alone."""
    requests = [_plain(conversation.request) for conversation in conversations]
    return [request if request != "" else place for place, request in enumerate(requests)]


def opening_request(conversation: Conversation) -> str:
    """Name the request that a conversation begins with, which its sides and turns and others of the same words share.

    Without a user's turn, the row of the source stands for it.
    """
    opening = next((turn.content for turn in conversation.context if turn.role == "user"), "")
    return _plain(opening) or f"\0row {conversation.row_id}"


def _plain(request: str) -> str:
    return " ".join(request.casefold().split())
