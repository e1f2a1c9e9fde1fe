"""A batch is made once, waited for however long it takes, and found again by a run that was killed."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from demur.errors import BudgetError, EndpointError
from demur.llm.batch_files import batch_files, read_batch_file
from demur.llm.budget import Budget
from demur.llm.client import Client
from demur.llm.dialect import Dialect
from demur.llm.endpoint import Endpoint
from demur.llm.exchange import Answer, ChatRequest, Failure, Message
from demur.llm.prices import Price, PriceList
from demur.llm.store import Store
from tests.llm_server import LlmServer, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Open = Callable[..., Client]

# 1 USD for each token that is written, half of it by the Batch API.
PRICES = PriceList(date(2026, 1, 1), {"m": Price(input=0.0, output=1_000_000.0, batch_share=0.5)})


@pytest.fixture
def opened(llm_server: LlmServer, tmp_path: Path) -> Iterator[Open]:
    """Open clients on the server, and close them."""
    clients: list[Client] = []

    def open_client(*, retries: int = 0, **options: Any) -> Client:
        given = {"cache": tmp_path / "c.sqlite", "prices": PRICES, "is_batch": True, "poll_seconds": 0.01}
        clients.append(Client(Endpoint("m", llm_server.url, max_retries=retries), **{**given, **options}))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


def request(row: int, case: str = "right") -> ChatRequest:
    """Ask about one row."""
    return ChatRequest(
        (Message("user", f"case={case} row={row} ⟦f end⟧"),), "p", {"type": "object"}, {"max_tokens": 50}
    )


ROWS = [request(i) for i in range(6)]


def usable(answer: Answer) -> bool:
    """Keep what has a text."""
    return bool(answer.text)


def interrupted(client: Client, server: LlmServer) -> None:
    """Make a batch, and stop while it is waited for."""
    look = server.look
    server.look = lambda batch_id: Response(500, {"batch": batch_id})  # type: ignore[method-assign]
    with pytest.raises(EndpointError) as error:
        list(client.ask(ROWS, usable))
    server.look = look  # type: ignore[method-assign]
    assert any("goes on at the provider" in note for note in error.value.__notes__)


def test_a_run_that_stopped_fetches_its_batch(llm_server: LlmServer, opened: Open) -> None:
    """The batch of the first run answers the second: it is made once, and paid for once."""
    interrupted(opened(run="a"), llm_server)
    assert len(llm_server.batches) == 1
    told: list[str] = []
    client = opened(run="a", tell=told.append)
    replies = list(client.ask(ROWS, usable))
    assert all(isinstance(reply, Answer) for reply in replies)
    assert len(llm_server.batches) == 1
    assert set(llm_server.paid.values()) == {1}
    assert client.spending.answers == len(ROWS)
    assert told == ["batch batch_0: in_progress", "batch batch_0: completed, 5 of 5 done"]


def test_answers_without_a_count_cost_their_most_in_a_batch_of_before_too(llm_server: LlmServer, opened: Open) -> None:
    """50 tokens at half a USD each; were that unknown, the limit would have no room for anything any more."""
    llm_server.has_usage = False
    interrupted(opened(run="a"), llm_server)
    client = opened(run="a", budget=Budget(max_cost=1000.0))
    # Of two rows that are asked for no more, nothing but the key is known.
    assert len(list(client.ask(ROWS[:4], usable))) == 4
    # The first was asked directly, at the whole price.
    assert client.spending.uncounted_cost == pytest.approx(50 + 5 * 25)
    assert isinstance(next(client.ask([request(len(ROWS))], usable)), Answer)


def test_what_is_under_way_in_a_batch_is_not_asked_apart(llm_server: LlmServer, opened: Open) -> None:
    """It would be paid for twice; other requests are asked, and by batch all of it is fetched."""
    interrupted(opened(), llm_server)
    direct = opened(is_batch=False)
    with pytest.raises(EndpointError, match=r"under way .* in batch batch_0, .* go on with --batch"):
        list(direct.ask(ROWS, usable))
    list(direct.ask([ROWS[0], request(len(ROWS))], usable))
    assert len(list(opened().ask(ROWS, usable))) == len(ROWS)
    assert len(list(direct.ask(ROWS, usable))) == len(ROWS)
    assert set(llm_server.paid.values()) == {1}


def test_another_run_does_not_pay_for_the_batch_that_it_fetches(llm_server: LlmServer, opened: Open) -> None:
    """One row of the batch is asked for by a run that may pay for none: the run that made it is charged for all."""
    interrupted(opened(run="a"), llm_server)
    client = opened(run="b", budget=Budget(max_rows=0))
    (reply,) = client.ask(ROWS[1:2], usable)
    assert isinstance(reply, Answer)
    assert (client.spending.answers, client.spending.reused, client.spending.cost) == (0, 1, 0)
    assert opened(run="b").spending.answers == 0
    maker = opened(run="a").spending
    assert maker.answers == len(ROWS)
    assert maker.cost == pytest.approx(PRICES.models["m"].cost(maker.usage, is_batch=True), rel=0.2)
    assert len(llm_server.batches) == 1


def test_only_a_batch_of_its_own_is_said_to_go_on(llm_server: LlmServer, opened: Open, tmp_path: Path) -> None:
    """Neither another run's, nor one that the provider would not make."""
    Store(tmp_path / "c.sqlite").plan_batch("other", llm_server.url, {"some": "p"}, run="a")
    llm_server.make_batch = lambda body: Response(400, {"error": {"message": body and "no batches today"}})  # type: ignore[method-assign]
    with pytest.raises(EndpointError, match="no batches today") as error:
        list(opened().ask(ROWS, usable))
    assert not getattr(error.value, "__notes__", [])


def test_a_run_that_was_killed_before_it_had_the_id_finds_the_batch(
    llm_server: LlmServer, opened: Open, tmp_path: Path
) -> None:
    """By the token that went with it."""
    interrupted(opened(), llm_server)
    store = Store(tmp_path / "c.sqlite")
    ((token, _),) = store.batches(llm_server.url).items()
    with store._writing() as connection:
        connection.execute("UPDATE batches SET id = NULL")
    assert store.batches(llm_server.url) == {token: None}
    assert len(list(opened().ask(ROWS, usable))) == len(ROWS)
    assert len(llm_server.batches) == 1
    assert store.batches(llm_server.url) == {}


@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.0], ids=["502", "dropped"])
def test_a_batch_is_made_once_though_the_answer_to_it_is_lost(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch, *, share: float, is_made: bool
) -> None:
    """It is looked for by its token before it is made again, and only what is not there is made."""
    monkeypatch.setattr("demur.llm.batch_api._PAUSE_SECONDS", 0)
    make, asked = llm_server.make_batch, list[dict[str, Any]]()

    def lose_first(body: dict[str, Any]) -> Response:
        asked.append(body)
        made = make(body) if is_made or len(asked) > 1 else None
        return (
            Response(502, {"error": {"message": "bad gateway"}}, share=share) if len(asked) == 1 or not made else made
        )

    llm_server.make_batch = lose_first  # type: ignore[method-assign]
    assert all(isinstance(reply, Answer) for reply in opened(retries=2).ask(ROWS, usable))
    assert len(llm_server.batches) == 1
    assert len(asked) == (1 if is_made else 2)
    assert set(llm_server.paid.values()) == {1}


def test_a_batch_that_may_not_be_looked_for_is_not_made_again(
    llm_server: LlmServer, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer was lost, and the key may list none: it stays noted, and a key that may fetches it."""
    monkeypatch.setattr("demur.llm.batch_api._PAUSE_SECONDS", 0)
    make, list_batches = llm_server.make_batch, llm_server.list_batches

    def lose(body: dict[str, Any]) -> Response:
        make(body)
        return Response(500, {"error": {"message": "lost"}})

    llm_server.make_batch = lose  # type: ignore[method-assign]
    llm_server.list_batches = lambda: Response(403, {"error": {"message": "not allowed"}})  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(EndpointError, match="not allowed") as error:
            list(opened(retries=2).ask(ROWS, usable))
        assert error.value.__context__ is None
        assert len(llm_server.batches) == 1
        assert list(Store(tmp_path / "c.sqlite").batches(llm_server.url).values()) == [None]
    llm_server.list_batches = list_batches  # type: ignore[method-assign]
    assert all(isinstance(reply, Answer) for reply in opened().ask(ROWS, usable))
    assert len(llm_server.batches) == 1
    assert set(llm_server.paid.values()) == {1}


@pytest.mark.parametrize(("status", "n_expected"), [(503, 3), (400, 1)])
def test_a_batch_that_is_never_made_is_tried_as_often_as_is_said(
    llm_server: LlmServer,
    opened: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    n_expected: int,
) -> None:
    """Two further attempts, and none after a rejection, which leaves nothing behind that stands in the way.

    The error leads to none of the library, which holds the key.
    """
    monkeypatch.setattr("demur.llm.batch_api._PAUSE_SECONDS", 0)
    asked: list[object] = []

    def reject(body: dict[str, Any]) -> Response:
        asked.append(body)
        return Response(status, {"error": {"message": "no batches today"}})

    llm_server.make_batch = reject  # type: ignore[method-assign]
    with pytest.raises(EndpointError, match="no batches today") as error:
        list(opened(retries=2).ask(ROWS, usable))
    assert len(asked) == n_expected
    assert error.value.__context__ is None
    is_left_behind = bool(Store(tmp_path / "c.sqlite").batches(llm_server.url))
    assert is_left_behind == (status == 503)


@pytest.mark.parametrize("is_left_behind", [True, False])
def test_a_batch_that_two_wait_for_is_paid_for_once(
    llm_server: LlmServer, opened: Open, *, is_left_behind: bool
) -> None:
    """Whoever comes second takes the answers from the cache; whoever made it is charged, and nothing is set aside."""
    if is_left_behind:
        interrupted(opened(), llm_server)
    others = [opened()]

    def fetch(told: str) -> None:
        """Let the other one be first."""
        assert told
        if others:
            list(others.pop().ask(ROWS, usable))

    client = opened(budget=Budget(max_rows=len(ROWS)), tell=fetch)
    assert all(isinstance(reply, Answer) for reply in client.ask(ROWS, usable))
    assert len(llm_server.batches) == 1
    assert set(llm_server.paid.values()) == {1}
    n_paid = 0 if is_left_behind else len(ROWS)
    assert client.spending.answers == n_paid
    n_left = len(ROWS) - n_paid
    assert len(list(client.ask([request(len(ROWS) + i) for i in range(n_left)], usable))) == n_left


def test_a_batch_that_the_provider_knows_no_more_is_given_up_by_who_begins_anew(
    llm_server: LlmServer, opened: Open, tmp_path: Path
) -> None:
    """Nobody else: it may be there under another key."""
    interrupted(opened(run="a"), llm_server)
    look = llm_server.look
    llm_server.look = lambda batch_id: (  # type: ignore[method-assign]
        Response(404, {"error": {"message": "no such batch"}}) if batch_id == "batch_0" else look(batch_id)
    )
    store = Store(tmp_path / "c.sqlite")
    for run in ("a", "b"):
        with pytest.raises(EndpointError, match=r"does not know batch batch_0 .* --overwrite") as error:
            list(opened(run=run).ask(ROWS, usable))
        assert not getattr(error.value, "__notes__", [])
        assert set(store.batches(llm_server.url).values()) == {"batch_0"}
    client = opened(run="a")
    client.begin()
    assert all(isinstance(reply, Answer) for reply in client.ask(ROWS, usable))
    assert len(llm_server.batches) == 2
    assert store.batches(llm_server.url) == {}
    assert set(llm_server.paid.values()) == {1}


def test_a_batch_of_before_is_charged_to_the_run_that_was_begun_anew(llm_server: LlmServer, opened: Open) -> None:
    """It is fetched, not made again: five answers beside the first, which was paid for before and is kept."""
    interrupted(opened(run="a"), llm_server)
    client = opened(run="a")
    client.begin()
    assert len(list(client.ask(ROWS, usable))) == len(ROWS)
    assert (client.spending.answers, client.spending.reused) == (5, 1)
    assert len(llm_server.batches) == 1


def test_a_batch_that_was_planned_and_never_made_is_made(llm_server: LlmServer, opened: Open, tmp_path: Path) -> None:
    """The provider lists none with its token."""
    client = opened()
    keys = {one.key(url=llm_server.url, model="m"): "p" for one in ROWS}
    Store(tmp_path / "c.sqlite").plan_batch("lost", llm_server.url, keys, run="a")
    assert len(list(client.ask(ROWS, usable))) == len(ROWS)
    assert len(llm_server.batches) == 1


def test_the_batch_of_other_requests_is_left_alone(llm_server: LlmServer, opened: Open, tmp_path: Path) -> None:
    """It is another run's."""
    Store(tmp_path / "c.sqlite").plan_batch("other", llm_server.url, {"some": "p"}, run="a")
    list(opened().ask(ROWS[:2], usable))
    assert Store(tmp_path / "c.sqlite").batches(llm_server.url) == {"other": None}


def test_a_batch_that_the_provider_does_not_take_is_an_error_and_forgotten(
    llm_server: LlmServer, opened: Open, tmp_path: Path
) -> None:
    """It says why; the next run makes another one."""
    make = llm_server.make_batch

    def fail(body: dict[str, Any]) -> Response:
        response = make(body)
        errors = {"object": "list", "data": [{"code": "token_limit_exceeded", "message": "too many enqueued"}]}
        response.body.update(status="failed", errors=errors)
        return response

    llm_server.make_batch = fail  # type: ignore[method-assign]
    with pytest.raises(EndpointError, match="token_limit_exceeded: too many enqueued"):
        list(opened().ask(ROWS, usable))
    assert Store(tmp_path / "c.sqlite").batches(llm_server.url) == {}
    llm_server.make_batch = make  # type: ignore[method-assign]
    assert len(list(opened().ask(ROWS, usable))) == len(ROWS)


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_batch_comes_back_without_has_no_answer(llm_server: LlmServer, opened: Open, status: str) -> None:
    """It is not asked again unasked: somebody cancelled it, or it took a day already. What came is kept."""
    work = llm_server._work

    def half(batch: dict[str, Any]) -> None:
        work(batch)
        name = batch["output_file_id"]
        llm_server.files[name] = "\n".join(llm_server.files[name].splitlines()[:2])
        batch["status"] = status

    llm_server._work = half  # type: ignore[method-assign]
    client = opened()
    replies = list(client.ask(ROWS, usable))
    assert sum(isinstance(reply, Answer) for reply in replies) == 3
    assert {reply.reason for reply in replies if isinstance(reply, Failure)} == {"provider_unavailable"}
    assert len(llm_server.batches) == 1
    assert (client.spending.answers, client.spending.failures) == (3, 3)


def test_what_the_provider_fails_at_is_asked_again_and_not_for_ever(llm_server: LlmServer, opened: Open) -> None:
    """Three batches, and no more, for a row that never gets an answer."""
    llm_server.rejects = lambda body: (
        Response(500, {"error": {"message": "no"}}) if "row=3 " in body["messages"][-1]["content"] else None
    )
    replies = list(opened().ask(ROWS, usable))
    assert [isinstance(reply, Answer) for reply in replies] == [True, True, True, False, True, True]
    assert [len(llm_server.files[b["input_file_id"]].splitlines()) for b in llm_server.batches.values()] == [5, 1, 1]
    assert set(llm_server.paid.values()) == {1}


def test_the_first_request_shows_what_the_server_understands(llm_server: LlmServer, opened: Open) -> None:
    """The lines of the batch leave out what the direct one was rejected for."""
    rejection = Response(400, {"error": {"message": "'temperature' is not supported"}})
    llm_server.rejects = lambda body: rejection if "temperature" in body else None
    rows = [ChatRequest(one.messages, "p", None, {"temperature": 0.0, "max_tokens": 50}) for one in ROWS]
    assert all(isinstance(reply, Answer) for reply in opened().ask(rows, usable))
    assert "temperature" not in llm_server.files["file-0"]


def test_a_request_without_answer_shows_nothing(llm_server: LlmServer, opened: Open) -> None:
    """The next one does, before a batch goes out as the server does not understand it."""
    down = [Response(503, {"error": {"message": "busy"}})]

    def rejects(body: dict[str, Any]) -> Response | None:
        if down:
            return down.pop()
        unknown = Response(400, {"error": {"message": "Unsupported parameter: use max_completion_tokens instead"}})
        return unknown if "max_tokens" in body else None

    llm_server.rejects = rejects
    replies = list(opened().ask(ROWS, usable))
    assert [type(reply) for reply in replies] == [Answer] * 6
    (made,) = llm_server.batches.values()
    assert len(llm_server.files[made["input_file_id"]].splitlines()) == 5


def test_a_cost_is_never_exceeded_by_batches(llm_server: LlmServer, opened: Open) -> None:
    """The first for some 20 USD, others for 10 and 25 at most: of 100, less than 25 are left when it stops."""
    client = opened(budget=Budget(max_cost=100.0))
    replies: list[object] = []
    with pytest.raises(BudgetError):
        replies.extend(client.ask([request(i) for i in range(30)], usable))
    assert 75 < client.spending.cost <= 100
    assert len(replies) == client.spending.answers == llm_server.n_paid


def test_what_the_provider_fails_at_is_asked_again_however_often_the_budget_made_a_new_batch(
    llm_server: LlmServer, opened: Open
) -> None:
    """100 USD have room for 3, 2 and 1 rows after the first: the one that fails in the third batch is in a fourth."""
    rows = [request(i, "broken" if i == 6 else "right") for i in range(30)]
    replies: list[object] = []
    with pytest.raises(BudgetError):
        replies.extend(opened(budget=Budget(max_cost=100.0)).ask(rows, usable))
    lines = [llm_server.files[batch["input_file_id"]].count("custom_id") for batch in llm_server.batches.values()]
    assert lines[:4] == [3, 2, 1, 1]
    assert len(replies) == 7
    assert all(isinstance(reply, Answer) for reply in replies)


def test_a_provider_without_a_batch_api_is_answered_clearly(
    llm_server: LlmServer, opened: Open, tmp_path: Path
) -> None:
    """Nothing is left behind that a later run would look for."""

    def missing(content: str) -> Response:
        return Response(404, {"error": {"message": f"no such route for {len(content)} bytes"}})

    llm_server.upload = missing  # type: ignore[method-assign]
    with pytest.raises(EndpointError, match="ask without --batch"):
        list(opened().ask(ROWS, usable))
    assert Store(tmp_path / "c.sqlite").batches(llm_server.url) == {}
    assert len(list(opened(is_batch=False).ask(ROWS, usable))) == len(ROWS)


def test_files_are_as_large_as_a_provider_takes() -> None:
    """Lines of less than 300 bytes in files of 600: two each, and one that is larger stands alone."""
    rows = [(f"k{i}", request(i)) for i in range(5)]
    rows[2] = ("k2", ChatRequest((Message("user", "x" * 1_000),), "p"))
    files = list(batch_files(rows, dialect=Dialect(), model="m", max_bytes=600))
    assert [keys for keys, _ in files] == [["k0", "k1"], ["k2"], ["k3", "k4"]]
    assert [content.count(b"\n") for _, content in files] == [2, 1, 2]
    assert list(batch_files([], dialect=Dialect(), model="m")) == []


@pytest.mark.parametrize("breaker", ["\u2028", "\u2029", "\x85"])
def test_an_answer_may_hold_what_else_breaks_lines(breaker: str) -> None:
    """JSON has them bare in its strings; only a newline ends a line of results."""
    completion = {"choices": [{"message": {"content": f"a{breaker}b"}, "finish_reason": "stop"}]}
    lines = [
        json.dumps({"custom_id": key, "response": {"status_code": 200, "body": completion}}, ensure_ascii=False)
        for key in ("k", "l")
    ]
    assert dict(read_batch_file("\r\n".join(lines))) == dict.fromkeys("kl", Answer(f"a{breaker}b", "stop"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"custom_id": "k", "response": null, "error": {"code": "batch_expired"}}', "provider_unavailable"),
        ('{"custom_id": "k", "response": {"status_code": 429, "body": {"error": "slow"}}}', "provider_unavailable"),
        ('{"custom_id": "k", "response": {"status_code": 400, "body": {"error": "bad"}}}', "request_rejected"),
        ('{"custom_id": "k", "response": {"status_code": 200, "body": {}}}', "provider_unavailable"),
        ('{"custom_id": "k", "response": {"status_code": "200", "body": "x"}}', "provider_unavailable"),
        ('{"custom_id": 3}', None),
        ("not json", None),
        ("[]", None),
        ("", None),
    ],
)
def test_lines_of_results_are_read_without_believing_them(line: str, expected: str | None) -> None:
    """What names no request is passed over; its request counts as one without an answer."""
    found = [reply.reason if isinstance(reply, Failure) else "answer" for _, reply in read_batch_file(line)]
    assert found == ([] if expected is None else [expected])
