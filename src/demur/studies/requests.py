"""Know which replies answer the same request: their errors depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from demur.conversation import Conversation

__all__ = ["request_clusters"]


def request_clusters(conversations: Iterable[Conversation]) -> list[str | int]:
    """Name each reply's cluster: its request without case and spacing; a reply without a request stands alone."""
    requests = [" ".join(conversation.request.casefold().split()) for conversation in conversations]
    return [request if request != "" else place for place, request in enumerate(requests)]
