"""Know every text that an audit has judged, and what was said of it, so that none is judged twice.

It is kept on disk: memory would grow with the rows, and an audit that is gone on with must know the same texts, and the
same verdicts to the last bit, as one that was never stopped.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING

from demur.errors import OutputError
from demur.verdict import Evidence, Policy, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from demur.conversation import Conversation

__all__ = ["Repeats", "text_key"]

_KEY_BYTES = 16
# Rows are appended, and only the index of keys, 30 MB for a million of them, is written to all over.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS chunks (number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY, chunk INTEGER NOT NULL, verdict TEXT NOT NULL, kinds BLOB NOT NULL
);
"""


def text_key(conversation: Conversation) -> bytes:
    """Return 16 bytes that two conversations share only if a labeler is shown the same: roles and words of all turns.

    A conversation whose thinking was not set apart yet is another one: its reply may still lose its beginning.
    """
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    digest.update(b"\0" if conversation.reasoning is None else b"\1")
    for turn in conversation.turns:
        # Lone surrogates, which JSON escapes leave behind, are text too.
        content = turn.content.encode("utf-8", "surrogatepass")
        # The length keeps a turn that imitates the next one apart from two turns.
        digest.update(f"{turn.role}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.digest()


class Repeats:
    """Keep the verdict on each text by its key, in an SQLite file, and with each the chunk that it was judged in.

    Memory is that of SQLite's cache, 2 MB, however many texts there are; the file takes some 300 bytes a text.
    """

    def __init__(self, path: Path, finished: int) -> None:
        """Open the file, or make it, and forget what was judged after the finished chunks.

        Args:
            path: Where it is.
            finished: Number of the chunks that an earlier run has finished.

        Raises:
            OutputError: It cannot be used, is damaged, or lacks texts of the finished chunks.
        """
        self._path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None)
        try:
            with self._explained():
                self._prepare(finished)
        except BaseException:
            self.close()
            raise

    def _prepare(self, finished: int) -> None:
        connection = self._connection
        # A killed process loses nothing that was committed; what a power cut loses shows as a missing chunk.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_SCHEMA)
        with self._transaction():
            connection.execute("DELETE FROM answers WHERE chunk >= ?", (finished,))
            connection.execute("DELETE FROM chunks WHERE number >= ?", (finished,))
        (known,) = connection.execute("SELECT COUNT(*) FROM chunks").fetchone()
        if known < finished:
            message = (
                f"{self._path}: knows the texts of {known} chunks, and {finished} are finished; "
                "run the audit anew with --overwrite (overwrite=True)"
            )
            raise OutputError(message)

    def __enter__(self) -> Self:
        """Lend itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; what was kept stays."""
        self._connection.close()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, Verdict]:
        """Return the verdicts on those of the texts that were judged, as they were given.

        Raises:
            OutputError: The file is damaged, or gone.
        """
        query = "SELECT verdict, kinds FROM answers WHERE key = ?"
        with self._explained():
            rows = {key: self._connection.execute(query, (key,)).fetchone() for key in keys}
            return {key: _decoded(*row) for key, row in rows.items() if row is not None}

    def keep(self, chunk: int, verdicts: Mapping[bytes, Verdict]) -> None:
        """Keep the verdicts on the new texts of a chunk, all or none.

        Raises:
            OutputError: They cannot be written.
        """
        rows = ((key, chunk, *_encoded(verdict)) for key, verdict in verdicts.items())
        with self._explained(), self._transaction():
            self._connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", rows)
            self._connection.execute("INSERT INTO chunks VALUES (?)", (chunk,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what to do where the file cannot be used."""
        try:
            yield
        except (OSError, sqlite3.Error, ValueError, TypeError) as error:
            message = (
                f"{self._path}: cannot be used to find repeated texts ({error}); make room, or run the audit anew with "
                "--overwrite (overwrite=True) or --no-dedup (dedup=False)"
            )
            raise OutputError(message) from error


def _encoded(verdict: Verdict) -> tuple[str, bytes]:
    """Return a verdict as it can be stored without loss: the probabilities of kinds as doubles, the rest as JSON."""
    one = verdict.evidence
    rest = [
        verdict.outcome,
        verdict.refusal_probability,
        verdict.category,
        verdict.group,
        verdict.further,
        verdict.unscored_reason,
        None if one is None else (one.start, one.end, one.score),
        verdict.policy,
        verdict.category_set,
        verdict.group_set,
    ]
    return json.dumps(rest, separators=(",", ":")), array("d", verdict.category_probabilities).tobytes()


def _decoded(stored: str, kinds: bytes) -> Verdict:
    outcome, refusal, category, group, further, reason, evidence, policy, category_set, group_set = json.loads(stored)
    return Verdict(
        outcome,
        refusal,
        category=category,
        group=group,
        category_probabilities=tuple(array("d", kinds)),
        further=tuple(further),
        unscored_reason=reason,
        evidence=None if evidence is None else Evidence(*evidence),
        policy=Policy(policy),
        category_set=tuple(category_set),
        group_set=tuple(group_set),
    )
