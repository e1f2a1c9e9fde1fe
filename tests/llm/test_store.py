"""What is paid for is on disk, whatever happens to the process."""

from __future__ import annotations

import math
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from demur.errors import OutputError
from demur.llm.budget import Spending
from demur.llm.exchange import Answer, ChatRequest, Message, Usage
from demur.llm.prices import Price
from demur.llm.store import Charge, Store

if TYPE_CHECKING:
    from pathlib import Path

USAGE = Usage(100, 40, 0, 10)


def charge(key: str, *, is_usable: bool = True, usage: Usage | None = USAGE, cost: float | None = 0.25) -> Charge:
    """Return an answer that was paid for."""
    return Charge(key, Answer(f"to {key}", "stop", None, usage), is_usable, "m", "p", cost)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a place in a folder that is not there yet."""
    return tmp_path / "deep" / "answers.sqlite"


def test_an_answer_that_is_usable_is_found_again_and_no_other(path: Path) -> None:
    """By another opening of the file, too; one that is not usable is charged all the same."""
    Store(path).record("run", [charge("a"), charge("b", is_usable=False)])
    store = Store(path)
    assert store.find("a") == Answer("to a", "stop", None, USAGE)
    assert store.find("b") is None
    assert store.spending("run") == Spending(2, 1, 0, 0, 0, USAGE + USAGE, 0.5)
    assert store.spending("another") == Spending()
    content = path.read_bytes() + path.with_name(f"{path.name}-wal").read_bytes()
    assert b"to a" in content
    assert b"to b" not in content


def test_charges_without_price_or_count_are_told_apart(path: Path) -> None:
    """A price that is not known makes the sum unknown; an answer without a count has a sum of its own."""
    store = Store(path)
    store.record("uncounted", [charge("a"), charge("b", usage=None, cost=2.0)])
    assert store.spending("uncounted") == Spending(2, 0, 0, 0, 1, USAGE, 0.25, 2.0)
    store.record("uncounted", [charge("b", usage=None, cost=None)])
    assert store.spending("uncounted").cost == 0.25
    assert math.isnan(store.spending("uncounted").uncounted_cost)
    store.record("unpriced", [charge("c"), charge("d", cost=None)])
    assert math.isnan(store.spending("unpriced").cost)
    assert not store.spending("unpriced").is_cost_known


def test_what_was_charged_without_a_price_is_priced_by_a_later_one(path: Path) -> None:
    """100 tokens in at 1 USD for a million and 10 out at 10: 0.0002 USD, beside the 0.25 that were known."""
    store = Store(path)
    store.record("run", [charge("a"), charge("b", cost=None), charge("c", usage=None, cost=None)])
    found = store.spending("run", price=Price(input=1.0, output=10.0))
    assert found.cost == pytest.approx(0.25 + 0.0002)
    assert math.isnan(found.uncounted_cost)


def test_a_run_that_begins_anew_keeps_its_answers(path: Path) -> None:
    """Only what it was charged is forgotten, and nothing of another run."""
    store = Store(path)
    store.record("run", [charge("a")])
    store.record("other", [charge("b")])
    store.forget("run")
    assert store.spending("run") == Spending()
    assert store.spending("other").answers == 1
    assert store.find("a") is not None


def test_a_batch_is_known_until_its_results_are_written(path: Path) -> None:
    """By its token at first, by the provider's name then."""
    store = Store(path)
    store.plan_batch("t", "http://here", {"a": "p", "b": "p"}, run="run")
    assert (store.batch_run("t"), store.batch_run("u")) == ("run", None)
    assert store.batches("http://here") == {"t": None}
    assert store.batches("http://there") == {}
    store.name_batch("t", "batch_1")
    assert Store(path).batches("http://here") == {"t": "batch_1"}
    assert store.batch_prompts("t") == {"a": "p", "b": "p"}
    store.record("run", [charge("a")], batch="t")
    assert store.batches("http://here") == {}
    assert store.batch_prompts("t") == {}


def test_the_batch_of_a_request_is_found_without_reading_every_row(path: Path) -> None:
    """It is asked for before each request, and batches hold tens of thousands."""
    store, asked = Store(path), list[str]()
    store.plan_batch("t", "http://here", {"a": "p"}, run="run")
    store._connection.set_trace_callback(asked.append)
    assert [store.batch_of(key) for key in ("a", "b")] == ["t", None]
    store._connection.set_trace_callback(None)
    plan = [step for *_, step in store._connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}")]
    (rows,) = (step for step in plan if "batch_rows" in step)
    assert "(token=? AND key=?)" in rows
    store.name_batch("t", "batch_1")
    assert store.batch_of("a") == "batch_1"


def test_several_threads_and_openings_write_at_once(path: Path) -> None:
    """8 threads, 4 openings, 25 answers each, half of them of the same requests: 100 answers, 200 charges."""
    stores = [Store(path) for _ in range(4)]

    def write(number: int) -> None:
        for i in range(25):
            stores[number % 4].record("run", [charge(f"{number // 2}-{i}")])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].spending("run").answers == 200
    assert all(stores[1].find(f"{half}-{i}") is not None for half in range(4) for i in range(25))


WRITER = """
import sys
from pathlib import Path
from demur.llm.exchange import Answer, Usage
from demur.llm.store import Charge, Store
store = Store(Path(sys.argv[1]))
for i in range(1_000_000):
    store.record("run", [Charge(f"{i}", Answer("x" * 500, "stop", None, Usage(1, 0, 0, 1)), True, "m", "p", 1.0)])
    print(i, flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_answers(path: Path) -> None:
    """All that it had said to be written is there, each answer with its charge, and the file is sound."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(50)]
        writer.send_signal(signal.SIGKILL)
    store = Store(path)
    assert all(store.find(f"{i}") is not None for i in said)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (answers,) = connection.execute("SELECT COUNT(*) FROM answers").fetchone()
    connection.close()
    assert store.spending("run").answers == answers >= 50


@pytest.mark.parametrize("content", [b"no database at all, but a text of some length" * 30, None])
def test_a_file_that_cannot_be_used_is_answered_clearly(tmp_path: Path, content: bytes | None) -> None:
    """What is no database, and a folder where a file should be."""
    path = tmp_path / "cache"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(OutputError, match="--cache"):
        Store(path)


def test_a_full_disk_is_no_reason_for_another_file(path: Path) -> None:
    """What is paid for stays in this one, and is found there when there is room again; SQLite takes a limit for it."""
    store = Store(path)
    store.record("run", [charge("a")])
    store._connection.execute("PRAGMA max_page_count = 1")
    long = Charge("b", Answer("x" * 100_000), is_usable=True, model="m", prompt="p", cost=None)
    with pytest.raises(OutputError, match=r"\(database or disk is full\); make room .* --resume"):
        store.record("run", [long])
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.record("run", [long])
    assert [store.find(key) is None for key in "ab"] == [False, False]


def test_a_full_disk_is_known_by_what_fails_beside_the_file(path: Path) -> None:
    """No index of the log can be made there, which SQLite calls an error of the disk."""
    store = Store(path)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    with pytest.raises(OutputError, match=r"\(disk I/O error\); make room .* --resume"), store._explained():
        raise error


def test_a_file_that_is_busy_for_a_moment_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner lets go of it in the first pause; SQLite itself is told not to wait."""
    Store(path).close()
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("PRAGMA journal_mode = DELETE")
    owner.execute("BEGIN IMMEDIATE")
    connect = sqlite3.connect

    def impatient(*args: Any, **options: Any) -> sqlite3.Connection:
        found: sqlite3.Connection = connect(*args, **{**options, "timeout": 0})
        return found

    monkeypatch.setattr(sqlite3, "connect", impatient)
    monkeypatch.setattr("demur.llm.store.time.sleep", lambda _: owner.execute("COMMIT"))
    store = Store(path)
    assert not owner.in_transaction
    store.record("run", [charge("a")])
    owner.close()


def test_a_cache_of_the_version_before_is_gone_on_with(path: Path) -> None:
    """Its answers and batches stay; who made a batch is not known of those."""
    store = Store(path)
    store.record("run", [charge("a")])
    store.close()
    connection = sqlite3.connect(path)
    connection.executescript(
        "ALTER TABLE batches DROP COLUMN run; INSERT INTO batches VALUES ('t', 'u', NULL, 0); PRAGMA user_version = 1"
    )
    connection.close()
    for found in (Store(path), Store(path)):
        assert found.find("a") is not None
        assert (found.batches("u"), found.batch_run("t")) == ({"t": None}, None)


def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    """To the byte: neither tables nor a log are added."""
    path = tmp_path / "diary.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r"diary.sqlite: is a database of something else; .* --cache"):
        Store(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_cache_of_another_version_is_left_alone(path: Path) -> None:
    """It is not converted, and not written over."""
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(OutputError, match="version 99"):
        Store(path)


def test_a_request_is_another_one_where_anything_in_it_is() -> None:
    """Model, address, prompt, schema, parameters and messages are all in the key; the order of parameters is not."""
    plain = ChatRequest((Message("user", "Hi"),), "p", None, {"a": 1, "b": 2})
    others = [
        ChatRequest((Message("user", "Ho"),), "p", None, {"a": 1, "b": 2}),
        ChatRequest((Message("system", "Hi"),), "p", None, {"a": 1, "b": 2}),
        ChatRequest((Message("user", "Hi"),), "q", None, {"a": 1, "b": 2}),
        ChatRequest((Message("user", "Hi"),), "p", {}, {"a": 1, "b": 2}),
        ChatRequest((Message("user", "Hi"),), "p", None, {"a": 1, "b": 3}),
    ]
    keys = {one.key(url="http://here", model="m") for one in (plain, *others)}
    keys |= {plain.key(url="http://there", model="m"), plain.key(url="http://here", model="n")}
    assert len(keys) == 8
    same = ChatRequest((Message("user", "Hi"),), "p", None, {"b": 2, "a": 1})
    assert same.key(url="http://here", model="m") == plain.key(url="http://here", model="m")
