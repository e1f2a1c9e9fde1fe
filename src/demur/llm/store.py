"""Keep answers, charges and batches under way on disk, so that what has been paid for is never asked for again.

One SQLite file. An answer and its charge are written in one transaction as soon as they are there: a process that is
killed loses what is in flight, and nothing else. Several threads and processes may use one file; two that ask the same
at once both pay for it. Nothing of a conversation is in it but what a model says of it, and no key.
"""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
import weakref
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from demur.errors import OutputError
from demur.llm.budget import Spending
from demur.llm.exchange import Answer, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from demur.llm.prices import Price

__all__ = ["Charge", "Store"]

_VERSION = 2
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, prompt TEXT NOT NULL, at REAL NOT NULL, answer TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS charges (
    run TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL, is_usable INTEGER NOT NULL, is_counted INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, written_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cost REAL
);
CREATE INDEX IF NOT EXISTS charges_of_run ON charges (run);
CREATE TABLE IF NOT EXISTS batches (
    token TEXT PRIMARY KEY, url TEXT NOT NULL, id TEXT, at REAL NOT NULL, run TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch_rows (
    token TEXT NOT NULL, key TEXT NOT NULL, prompt TEXT NOT NULL, PRIMARY KEY (token, key)
) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
# Batches of before were charged to whoever fetched them.
_FROM_1 = f"ALTER TABLE batches ADD COLUMN run TEXT; PRAGMA user_version = {_VERSION};"
_BUSY_SECONDS = 60
_PAUSE_SECONDS = 0.05
_ROOM = "make room on its disk, then go on with --resume: by another --cache, what it holds would be paid for again"


class Charge(NamedTuple):
    """Keep one answer as it was paid for.

    Attributes:
        key: Identifies the request.
        answer: What came.
        is_usable: Whether it is worth keeping; one that is not is charged, and asked for again another time.
        model: Who answered.
        prompt: Name and version of the prompt.
        cost: What it cost, or may have cost at most where it came without a count of tokens, in USD; None where that
            is not known.
    """

    key: str
    answer: Answer
    is_usable: bool
    model: str
    prompt: str
    cost: float | None


class Store:
    """Keep answers, charges and batches under way in one SQLite file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            OutputError: It cannot be used, is no cache of answers, or is one of another version.
        """
        self.path = path
        self._lock = threading.Lock()
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._close = weakref.finalize(self, self._connection.close)
            self._prepare()

    def _prepare(self) -> None:
        if self._is_foreign():
            message = f"{self.path}: is a database of something else; give another file with --cache"
            raise OutputError(message)
        if self._version() not in (0, 1, _VERSION):
            message = (
                f"{self.path}: is a cache of version {self._version()}, not {_VERSION}; give another file with --cache"
            )
            raise OutputError(message)
        self._write_ahead()
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if self._version() == _VERSION:
            return
        with self._writing() as connection:
            # Looked at again: another process may have been first.
            script = {0: _SCHEMA, 1: _FROM_1}.get(self._version(), "")
            for statement in filter(str.strip, script.split(";")):
                connection.execute(statement)

    def _write_ahead(self) -> None:
        """Give the file a log of its own: readers never wait for writers then, and it outlives a killed process.

        SQLite does not always wait where several processes do so to a new file at once.
        """
        give_up = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def _is_foreign(self) -> bool:
        """Tell whether something is in the file, and no version; asked at once, as another process may make it now."""
        query = "SELECT user_version = 0 AND EXISTS (SELECT * FROM sqlite_master) FROM pragma_user_version"
        (is_foreign,) = self._connection.execute(query).fetchone()
        return bool(is_foreign)

    def _version(self) -> int:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        return int(version)

    def close(self) -> None:
        """Close the file; nothing can be kept after that."""
        self._close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what to do where the file cannot be used."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            remedy = _ROOM if _is_for_want_of_room(error) else "give another file with --cache"
            message = f"{self.path}: cannot be used as a cache of answers ({error}); {remedy}"
            raise OutputError(message) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for one transaction."""
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                # On a full disk, SQLite has done so itself, and another time is an error that would hide its own.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, self._explained():
            return self._connection.execute(query, values).fetchall()

    def find(self, key: str) -> Answer | None:
        """Return the answer to a request that was usable when it came, the last one; None where there is none."""
        found = self._rows("SELECT answer FROM answers WHERE key = ?", key)
        if not found:
            return None
        stored = json.loads(found[0][0])
        usage = None if stored["usage"] is None else Usage(**stored["usage"])
        return Answer(**{**stored, "usage": usage})

    def record(self, run: str, charges: Iterable[Charge], *, batch: str | None = None) -> None:
        """Write down what was paid for, keep what is usable, and forget the batch that it came with: all or nothing."""
        with self._writing() as connection:
            for charge in charges:
                self._charge(connection, run, charge)
            if batch is not None:
                _drop_batch(connection, batch)

    def _charge(self, connection: sqlite3.Connection, run: str, charge: Charge) -> None:
        now, answer = time.time(), charge.answer
        usage = Usage() if answer.usage is None else answer.usage
        counts = (usage.prompt_tokens, usage.cached_tokens, usage.written_tokens, usage.completion_tokens)
        connection.execute(
            "INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (run, charge.key, now, charge.is_usable, answer.usage is not None, *counts, charge.cost),
        )
        if charge.is_usable:
            written = json.dumps(asdict(answer), ensure_ascii=True)
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
                (charge.key, charge.model, charge.prompt, now, written),
            )

    def spending(self, run: str, *, price: Price | None = None) -> Spending:
        """Add up what a run was charged.

        Args:
            run: Name of the run.
            price: Prices the tokens that were charged while none was known, in full, whether or not they came by the
                Batch API; None leaves their cost unknown.
        """
        query = (
            "SELECT is_counted, cost IS NOT NULL AS is_priced, COUNT(*), TOTAL(is_usable), TOTAL(cost), "
            "TOTAL(prompt_tokens), TOTAL(cached_tokens), TOTAL(written_tokens), TOTAL(completion_tokens) "
            "FROM charges WHERE run = ? GROUP BY is_counted, is_priced"
        )
        total = Spending()
        for is_counted, is_priced, answers, usable, cost, *tokens in self._rows(query, run):
            usage = Usage(*(int(n) for n in tokens))
            known = cost if is_priced else math.nan
            if price is not None and is_counted and not is_priced:
                known = price.cost(usage)
            total += Spending(
                answers=answers,
                unusable=answers - int(usable),
                uncounted=0 if is_counted else answers,
                usage=usage,
                cost=known if is_counted else 0.0,
                uncounted_cost=0.0 if is_counted else known,
            )
        return total

    def forget(self, run: str) -> None:
        """Forget what a run was charged, because another one begins under its name; its answers stay.

        Its batches stay, too, as those of nobody: whoever fetches them is charged.
        """
        with self._writing() as connection:
            connection.execute("DELETE FROM charges WHERE run = ?", (run,))
            connection.execute("UPDATE batches SET run = NULL WHERE run = ?", (run,))

    def plan_batch(self, token: str, url: str, prompts: Mapping[str, str], *, run: str) -> None:
        """Note that a run is about to make a batch, and the requests in it: name of the prompt by key."""
        with self._writing() as connection:
            connection.execute("INSERT INTO batches VALUES (?, ?, NULL, ?, ?)", (token, url, time.time(), run))
            rows = [(token, key, prompt) for key, prompt in prompts.items()]
            connection.executemany("INSERT INTO batch_rows VALUES (?, ?, ?)", rows)

    def name_batch(self, token: str, batch_id: str) -> None:
        """Note what the provider calls a batch."""
        with self._writing() as connection:
            connection.execute("UPDATE batches SET id = ? WHERE token = ?", (batch_id, token))

    def drop_batch(self, token: str) -> None:
        """Forget a batch that brings nothing."""
        with self._writing() as connection:
            _drop_batch(connection, token)

    def batches(self, url: str) -> dict[str, str | None]:
        """Return the batches under way at an endpoint: the provider's id, None where it is not known, by our token."""
        return dict(self._rows("SELECT token, id FROM batches WHERE url = ? ORDER BY at", url))

    def batch_of(self, key: str) -> str | None:
        """Return the batch that holds a request, our token for it where its id is not known; None where none does."""
        # CROSS keeps the order: each batch is looked into by the primary key, and not every row of all batches read.
        query = "SELECT COALESCE(id, token) FROM batches CROSS JOIN batch_rows USING (token) WHERE key = ?"
        found = self._rows(query, key)
        return str(found[0][0]) if found else None

    def batch_run(self, token: str) -> str | None:
        """Return the run that made a batch; None where that was not noted, or has been forgotten."""
        found = self._rows("SELECT run FROM batches WHERE token = ?", token)
        return None if not found or found[0][0] is None else str(found[0][0])

    def batch_prompts(self, token: str) -> dict[str, str]:
        """Return the requests in a batch: name of the prompt by key."""
        return dict(self._rows("SELECT key, prompt FROM batch_rows WHERE token = ?", token))


def _is_for_want_of_room(error: OSError | sqlite3.Error) -> bool:
    """Tell errors of a full disk: SQLite meets one in the file itself, or in the log and the index beside it."""
    # The low byte is the kind of an error; what Python itself says of a connection has no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _drop_batch(connection: sqlite3.Connection, token: str) -> None:
    connection.execute("DELETE FROM batches WHERE token = ?", (token,))
    connection.execute("DELETE FROM batch_rows WHERE token = ?", (token,))
