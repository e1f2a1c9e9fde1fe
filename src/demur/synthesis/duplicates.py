"""Find what was written before: in the same run, in the corpus, or in a file that must not leak into training."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from demur.data.label_fields import conversation_of, label_lines
from demur.data.labelled import labelled_files
from demur.errors import RowError, SourceError
from demur.synthesis.near_duplicates import NearDuplicates
from demur.synthesis.wording import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demur.conversation import Conversation

__all__ = ["Seen", "read_seen"]

# "I'm sorry, I can't help with that." answers many a request: short replies are alike by nature.
_FEWEST_REPLY_WORDS = 12


class Seen:
    """Know rows by what is asked in them, and by their replies where these are long enough to be anybody's own.

    A row that nearly repeats one, by the Jaccard index of `NearDuplicates`, repeats it.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._requests, self._replies = NearDuplicates(), NearDuplicates()
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Return what changes when other rows are known: sha256, in hex, over their texts in order."""
        return self._hash.hexdigest()

    def add(self, key: str, conversation: Conversation) -> None:
        """Take a row under a name."""
        texts = [[turn.role, turn.content] for turn in conversation.turns]
        self._hash.update(json.dumps(texts, ensure_ascii=True).encode())
        self._requests.add(key, _asked(conversation))
        if _is_own(conversation):
            self._replies.add(key, conversation.reply)

    def find(self, conversation: Conversation) -> str | None:
        """Say which row a conversation repeats, and in what; None where it repeats none."""
        replies = self._replies.find(conversation.reply) if _is_own(conversation) else []
        for part, found in (("request", self._requests.find(_asked(conversation))), ("reply", replies)):
            if found:
                key, likeness = max(found, key=lambda pair: pair[1])
                return f"{part} of {key} ({likeness:.2f})"
        return None


def read_seen(paths: list[Path]) -> tuple[Seen, int, list[RowError]]:
    """Read JSONL files, or folders of them, whose rows must not be written again.

    Returns:
        The rows; how many they are; and those that could not be read.

    Raises:
        SourceError: A file is missing, or none of its rows can be read.
    """
    seen, n_rows = Seen(), 0
    broken: list[RowError] = []
    # A folder and a file in it may both be given.
    for path in {file.resolve(): file for given in paths for file in labelled_files(given)}.values():
        if not path.is_file():
            message = f"no file at {str(path)!r}; give JSONL files, or folders of them, whose rows have `messages`"
            raise SourceError(message)
        n_before = n_rows
        for found in _conversations(path):
            if isinstance(found, RowError):
                broken.append(found)
            else:
                n_rows += 1
                seen.add(*found)
        if n_rows == n_before:
            first = next((error for error in broken if error.where.startswith(str(path))), None)
            message = f"{path}: holds no row that can be read" + ("" if first is None else f" ({first})")
            raise SourceError(message)
    return seen, n_rows, broken


def _conversations(path: Path) -> Iterator[tuple[str, Conversation] | RowError]:
    for line in label_lines(path):
        try:
            yield line if isinstance(line, RowError) else (line.where, conversation_of(line))
        except RowError as error:
            yield error


def _asked(conversation: Conversation) -> str:
    return "\n".join(turn.content for turn in conversation.context if turn.role == "user")


def _is_own(conversation: Conversation) -> bool:
    return len(tokens(conversation.reply)) >= _FEWEST_REPLY_WORDS
