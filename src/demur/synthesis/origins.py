"""Name rows, and the rows that variants came from, in the same way wherever they are varied or compared."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from demur.conversation import Conversation
    from demur.data.rows import Row

__all__ = ["id_of", "name_of", "origin_of", "text_digest"]


def id_of(row: Row) -> str | None:
    """Return the id of a row; None where it is absent or null."""
    name = row.fields.get("id")
    return None if name is None else str(name)


def name_of(row: Row, conversation: Conversation) -> str:
    """Return the id of a row; of one without, what follows from its text, in whichever file and line it stands."""
    name = id_of(row)
    return f"text-{text_digest(conversation)[:16]}" if name is None else name


def origin_of(row: Row) -> str | None:
    """Return the name of the row that this one is a variant of; None where it is no variant."""
    origin = row.fields.get("origin")
    return None if origin is None else str(origin)


def text_digest(conversation: Conversation) -> str:
    """Return sha256, in hex, over roles and texts of all turns."""
    turns = [[turn.role, turn.content] for turn in conversation.turns]
    return hashlib.sha256(json.dumps(turns).encode()).hexdigest()
