"""Find what was written before: in the same run, in the corpus, or in a file that must not leak into training."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from demur.data.label_fields import conversation_of, label_lines, require_files
from demur.data.labelled import labelled_files
from demur.errors import RowError, SourceError
from demur.synthesis.near_duplicates import NearDuplicates, jaccard, normalised, shingles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from demur.conversation import Conversation

__all__ = ["Repeat", "Seen", "View", "exchange_text", "read_seen"]

View = Literal["exchange", "request", "reply"]

# A greeting or a thanks around a short request moves its shingles too far: up to so many further characters, a request
# that holds one to be avoided is that one.
_SHORT_REQUEST = range(8, 81)
_MOST_AROUND = 40
# Shorter ones are stock: "continue", "I can't help with that." An equal request is found whatever its length.
_LEAST_REQUEST = 20
_LEAST_REPLY = 80


def exchange_text(conversation: Conversation) -> str:
    """Return what two rows are compared by: the last request and the reply; earlier turns may be added to any row."""
    return f"{conversation.request}\n{conversation.reply}"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Say which row a conversation repeats, and in what.

    Attributes:
        view: What was compared.
        key: Name of the other row.
        similarity: Jaccard index of what was compared.
    """

    view: View
    key: str
    similarity: float

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.view} of {self.key} ({self.similarity:.2f})"


class Seen:
    """Know rows that must not come back, neither whole nor by what is asked last in them, nor by a reply of their own.

    A text repeats another one by the Jaccard index of `NearDuplicates`. Compared are the exchange of last request and
    reply; the last request from 20 characters on, a shorter one where it is equal; a request of 8 to 80 characters that
    stands within another one of at most 40 more; and the reply from 80 characters on. Lengths are of folded texts.
    """

    def __init__(self, *, threshold: float = 0.6) -> None:
        """Begin with none.

        Args:
            threshold: Jaccard index from which texts are near duplicates.
        """
        views: tuple[View, ...] = ("exchange", "request", "reply")
        self._near = {view: NearDuplicates(threshold=threshold) for view in views}
        self._requests: dict[str, str] = {}
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Return what changes when other rows are known: sha256, in hex, over their texts in order."""
        return self._hash.hexdigest()

    def add(self, key: str, conversation: Conversation) -> None:
        """Take a row under a name of its own."""
        texts = [[turn.role, turn.content] for turn in conversation.turns]
        self._hash.update(json.dumps(texts, ensure_ascii=True).encode())
        for view, text in _views(conversation):
            self._near[view].add(key, text)
        if request := normalised(conversation.request):
            self._requests.setdefault(request, key)

    def find(self, conversation: Conversation) -> Repeat | None:
        """Say which row a conversation repeats by its last request and reply; None where it repeats none."""
        for view, text in _views(conversation):
            if found := self._near[view].find(text):
                return Repeat(view, *found[0])
        request = normalised(conversation.request)
        known = next((part for part in (request, *_short_parts(request)) if part in self._requests), None)
        if known is None:
            return None
        return Repeat("request", self._requests[known], jaccard(shingles(request), shingles(known)))

    def find_in(self, conversation: Conversation) -> Repeat | None:
        """Say which row a conversation repeats at its end, or at an earlier turn; None where it repeats none."""
        replies = [i for i, turn in enumerate(conversation.turns) if turn.role == "assistant"]
        parts = (replace(conversation, turns=conversation.turns[: i + 1]) for i in reversed(replies))
        return next(filter(None, map(self.find, parts)), None)


def read_seen(paths: list[Path], *, apart_from: Iterable[Path] = ()) -> tuple[Seen, int, list[RowError]]:
    """Read JSONL files, or folders of them, whose rows must not be written again.

    Args:
        paths: The files and folders.
        apart_from: Files that are not read, wherever they are met.

    Returns:
        The rows; how many they are; and those that could not be read.

    Raises:
        SourceError: A file is missing, or none of its rows can be read.
    """
    seen, n_rows = Seen(), 0
    broken: list[RowError] = []
    # A folder and a file in it may both be given.
    files = {file.resolve(): file for given in paths for file in labelled_files(given)}
    for place in apart_from:
        files.pop(place.resolve(), None)
    for path in files.values():
        require_files([path], "JSONL files, or folders of them, whose rows have `messages`")
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


def _views(conversation: Conversation) -> Iterator[tuple[View, str]]:
    """Yield what of a row must not stand in another one."""
    yield "exchange", exchange_text(conversation)
    if len(normalised(conversation.request)) >= _LEAST_REQUEST:
        yield "request", conversation.request
    if len(normalised(conversation.reply)) >= _LEAST_REPLY:
        yield "reply", conversation.reply


def _short_parts(request: str) -> Iterator[str]:
    """Yield the short requests that a normalised one may be, with a few words around it: its runs of words.

    To look them up takes as long however many requests are known.
    """
    least = max(_SHORT_REQUEST.start, len(request) - _MOST_AROUND)
    if least not in _SHORT_REQUEST:
        return
    words = request.split(" ")
    for start in range(len(words)):
        for stop in range(len(words), start, -1):
            part = " ".join(words[start:stop])
            if len(part) < least:
                break
            if len(part) in _SHORT_REQUEST:
                yield part
