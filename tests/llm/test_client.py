"""The client over real HTTP: within its budget, patient where that helps, and silent about keys."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import re
import threading
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from demur.errors import BudgetError, EndpointError
from demur.llm.budget import Budget
from demur.llm.client import Client
from demur.llm.direct import _Session
from demur.llm.endpoint import Endpoint
from demur.llm.exchange import Answer, ChatRequest, Failure, Message, Usage
from demur.llm.prices import Price, PriceList
from tests.llm_server import KEY, Door, LlmServer, Response, kind_of
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Open = Callable[..., Client]

# 1 USD for each token that is written, nothing for what is read: costs are easy to count.
PRICES = PriceList(date(2026, 1, 1), {"m": Price(input=0.0, output=1_000_000.0)})

# Both are of one request, though they name access and the account's key.
FLAGGED = "Access to this model was denied: your input was flagged by moderation"
FAILED_CHECK = (
    "Content violates usage guidelines. Team: 3e, API key ID: 25, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_CSAM"
)
# OpenRouter keeps there what the provider behind it said.
BEHIND = {"raw": '{"error": {"code": "content_filter"}}', "provider_name": "Azure"}


@pytest.fixture
def opened(llm_server: LlmServer, tmp_path: Path) -> Iterator[Open]:
    """Open clients on the server, and close them."""
    clients: list[Client] = []

    def open_client(*, concurrency: int = 4, retries: int = 2, seconds: float = 30.0, **options: Any) -> Client:
        endpoint = Endpoint("m", llm_server.url, None, concurrency, seconds, retries)
        clients.append(Client(endpoint, **{"cache": tmp_path / "c.sqlite", "prices": PRICES, **options}))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


def request(row: int, case: str = "right", **parameters: Any) -> ChatRequest:
    """Ask about one row."""
    said = f"case={case} row={row} ⟦f end⟧"
    return ChatRequest((Message("user", said),), "p", {"type": "object"}, {"max_tokens": 50, **parameters})


def usable(answer: Answer) -> bool:
    """Keep what has a text."""
    return bool(answer.text)


def test_replies_come_in_order_and_equal_requests_are_asked_once(llm_server: LlmServer, opened: Open) -> None:
    """The slow one is first, and stays so; of 30 requests 10 are different."""
    client = opened(concurrency=8)
    rows = [request(i % 10, "slow" if i % 10 == 0 else "right") for i in range(30)]
    replies = list(client.ask(rows, usable))
    said = [json.loads(reply.text)["labels"] for reply in replies if isinstance(reply, Answer)]
    assert said[:10] == said[10:20] == said[20:]
    assert len({tuple(labels) for labels in said[:4]}) == 4
    assert set(llm_server.requests.values()) == {1}
    assert client.spending.answers == 10
    assert 1 < llm_server.peak <= 8


def test_no_more_requests_are_under_way_than_allowed(llm_server: LlmServer, opened: Open) -> None:
    """Three at a time, and no fewer: the server answers none before three have come."""
    together = threading.Barrier(3)

    def gather(_: object) -> None:
        together.wait(timeout=60)

    llm_server.rejects = gather
    list(opened(concurrency=3).ask([request(i) for i in range(12)], usable))
    assert llm_server.peak == 3


def test_what_is_kept_is_not_asked_again_and_what_is_not_usable_is(llm_server: LlmServer, opened: Open) -> None:
    """By another client on the same cache; the empty answer is paid for twice, and never replayed."""
    rows = [request(0), request(1, "empty")]
    first, second = opened(), opened()
    assert list(first.ask(rows, usable)) == list(second.ask(rows, usable))
    assert llm_server.paid == {("right", 0): 1, ("empty", 1): 2}
    assert (first.spending.reused, second.spending.reused) == (0, 1)
    assert (second.spending.answers, second.spending.unusable) == (1, 1)


@pytest.mark.parametrize("is_batch", [False, True])
def test_what_was_kept_and_is_usable_no_more_is_asked_again(
    llm_server: LlmServer, opened: Open, *, is_batch: bool
) -> None:
    """Once: what comes then takes its place."""
    rows = [request(0), request(1)]
    list(opened().ask(rows, usable))
    n_read = len(llm_server.bodies)

    def stricter(answer: Answer) -> bool:
        return f'"{kind_of(0)}"' not in answer.text or len(llm_server.bodies) > n_read

    client = opened(is_batch=is_batch, poll_seconds=0.01)
    assert client.estimate(rows, answer_tokens=1, is_usable=stricter).known == 1
    assert len(list(client.ask(rows, stricter))) == 2
    assert llm_server.paid == {("right", 0): 2, ("right", 1): 1}
    assert (client.spending.answers, client.spending.reused) == (1, 1)
    assert len(list(opened().ask(rows, stricter))) == 2
    assert llm_server.n_paid == 3


def test_a_server_that_asks_for_patience_gets_it(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the second attempt come the .6 seconds that the server asked for; nothing is paid for the first."""
    waits: list[float] = []

    async def noted(seconds: float) -> None:  # stands in for one that waits
        waits.append(seconds)

    monkeypatch.setattr("anyio.sleep", noted)
    (reply,) = opened().ask([request(0, "limited")], usable)
    assert isinstance(reply, Answer)
    assert waits == [0.6]
    assert llm_server.requests == {("limited", 0): 2}
    assert llm_server.n_paid == 1


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response(500, {"error": {"message": "broken"}}, {"Retry-After-Ms": "1"}), "provider_unavailable"),
        (Response(429, {"error": {"message": "slow down"}}, {"Retry-After-Ms": "1"}), "provider_unavailable"),
        (Response(200, "<html>maintenance</html>"), "provider_unavailable"),
        (Response(400, {"error": {"message": "flagged", "code": "content_filter"}}), "provider_refused"),
        (Response(403, {"error": {"message": "needs moderation: your input was flagged"}}), "provider_refused"),
        (Response(403, {"error": {"message": FLAGGED}}), "provider_refused"),
        (Response(403, {"code": "The caller does not have permission", "error": FAILED_CHECK}), "provider_refused"),
        (Response(400, {"error": {"message": "This model's maximum context length is 9 tokens"}}), "request_too_long"),
        (Response(400, {"error": {"message": "exceeds the available context size (4096 tokens)"}}), "request_too_long"),
        (Response(400, {"error": {"message": "Content Exists Risk"}}), "provider_refused"),
        (Response(400, {"error": {"message": "Provider returned error", "metadata": BEHIND}}), "provider_refused"),
        (Response(413, {"error": {"message": "large"}}), "request_too_long"),
        (Response(422, {"error": {"message": "no"}}), "request_rejected"),
    ],
)
def test_a_request_without_answer_says_why_and_costs_nothing(
    llm_server: LlmServer, opened: Open, response: Response, reason: str
) -> None:
    """The others are answered, and the failure is not kept."""
    llm_server.rejects = lambda body: response if "row=1 " in body["messages"][-1]["content"] else None
    client = opened()
    replies = list(client.ask([request(0), request(1), request(2)], usable))
    assert [isinstance(reply, Answer) for reply in replies] == [True, False, True]
    assert isinstance(replies[1], Failure)
    assert replies[1].reason == reason
    assert (client.spending.answers, client.spending.failures) == (2, 1)
    llm_server.rejects = lambda _: None
    (reply,) = client.ask([request(1)], usable)
    assert isinstance(reply, Answer)


def test_what_a_router_says_within_a_success_is_heeded(llm_server: LlmServer, opened: Open) -> None:
    """The provider behind it is busy twice, said to have counted nothing once; a third time it breaks off."""
    counts = {"prompt_tokens": 0, "completion_tokens": 0}
    busy = Response(200, {"error": {"code": 429, "message": "busy"}}, {"Retry-After-Ms": "20"})
    full = Response(200, {"error": {"code": "busy"}, "choices": [], "usage": counts}, {"Retry-After-Ms": "20"})
    broken = {"message": {"role": "assistant", "content": ""}, "finish_reason": "error", "error": {"code": 502}}
    replies = [busy, full, Response(200, {"choices": [broken]}, {"Retry-After-Ms": "20"})]
    llm_server.rejects = lambda _: replies.pop() if replies else None
    client = opened(concurrency=1, retries=3)
    assert isinstance(next(client.ask([request(0)], usable)), Answer)
    assert (len(llm_server.bodies), client.spending.answers, client.spending.failures) == (4, 1, 0)


def test_of_what_is_of_one_row_the_first_message_is_told(llm_server: LlmServer, opened: Open) -> None:
    """It is what shows that all of them could be asked for less."""
    said = "maximum context length is 8192 tokens: 4096 > 8192 - 5200"
    llm_server.rejects = lambda body: Response(400, {"error": {"message": f"{said}, {len(body['messages'])}"}})
    told: list[str] = []
    client = opened(tell=told.append)
    replies = list(client.ask([request(i) for i in range(30)], usable))
    assert {reply.reason for reply in replies if isinstance(reply, Failure)} == {"request_too_long"}
    (line,) = told
    assert said in line
    assert line.endswith("--parameter max_tokens=N sets aside less for the answer")


def test_the_name_of_a_model_is_no_reason(llm_server: LlmServer, tmp_path: Path) -> None:
    """A server that knows no schema names the model that it serves."""
    model = "content-safety-4b"
    message = f"model {model} does not support response_format"
    llm_server.rejects = lambda body: (
        Response(400, {"error": {"message": message}}) if "response_format" in body else None
    )
    client = Client(Endpoint(model, llm_server.url, max_retries=0), cache=tmp_path / "c.sqlite")
    assert isinstance(next(client.ask([request(0)], usable)), Answer)
    client.close()


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (Response(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}), "401.*Check the key"),
        (Response(404, {"error": {"message": "no such model"}}), "404 for model 'm'.*Check the name"),
        (Response(401, {"error": {"message": "this key was flagged"}}), "401.*Check the key"),
        (Response(402, {"error": {"message": "no credits for maximum tokens"}}), "402.*no credits"),
        (Response(403, {"error": {"message": "Your organization was flagged for safety"}}), "403.*flagged for safety"),
        (Response(403, {"error": {"message": "Your request was blocked."}}), "403.*was blocked"),
        (Response(403, "Access to this content was blocked by your organization"), "403.*by your organization"),
        (Response(404, {"error": {"message": "model name too long"}}), "404 for model 'm'.*Check the name"),
        (
            Response(429, {"error": {"message": "x", "code": "insufficient_quota"}}, {"Retry-After-Ms": "1"}),
            "takes no more requests for now",
        ),
        (Response(429, {"error": {"message": "x"}}, {"Retry-After": "3600"}), "go on in 3600 seconds"),
        (Response(400, {"error": {"message": "Your credit balance is too low"}}), "takes no more requests for now"),
        (Response(503, {"error": {"message": "x"}}, {"Retry-After": "300"}), "go on in 300 seconds"),
        (
            Response(429, {"error": {"message": "x"}}, {"Retry-After": "Fri, 31 Dec 2060 23:59:59 GMT"}),
            r"go on in \d{9,} seconds",
        ),
    ],
)
def test_what_stands_against_every_request_stops_the_run(
    llm_server: LlmServer, opened: Open, response: Response, said: str
) -> None:
    """At once: no other request would do better."""
    llm_server.rejects = lambda _: response
    with pytest.raises(EndpointError, match=said):
        list(opened(concurrency=1).ask([request(i) for i in range(40)], usable))
    assert len(llm_server.bodies) <= 3


def test_what_stops_the_run_is_said_though_an_older_request_pauses(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pauses before another attempt when the next meets a key that was revoked: it is left, at once."""
    is_pausing = threading.Event()

    async def paused(_: float) -> None:
        is_pausing.set()
        await asyncio.sleep(20)

    def reject(body: dict[str, Any]) -> Response:
        if "row=0 " in body["messages"][-1]["content"]:
            return Response(429, {"error": {"message": "slow down"}})
        is_pausing.wait(timeout=60)
        return Response(401, {"error": {"message": "revoked"}})

    monkeypatch.setattr("anyio.sleep", paused)
    llm_server.rejects = reject
    with pytest.raises(EndpointError, match="revoked"):
        list(opened(concurrency=2).ask([request(i) for i in range(9)], usable))
    assert len(llm_server.bodies) == 2


def test_an_endpoint_that_answers_nothing_is_taken_for_down(llm_server: LlmServer, opened: Open) -> None:
    """After twenty failures in a row; what it had answered before is kept, and what it never got is not sent."""
    client = opened(concurrency=1, retries=0)
    list(client.ask([request(0)], usable))
    llm_server.rejects = lambda _: Response(500, {"error": {"message": "down"}})
    replies: list[object] = []
    with pytest.raises(EndpointError, match="none of the last 20 requests"):
        replies.extend(client.ask((request(i) for i in range(100)), usable))
    assert isinstance(replies[0], Answer)
    assert len(llm_server.bodies) == 21


def test_who_was_of_use_before_rejects_a_request_for_what_it_holds(llm_server: LlmServer, opened: Open) -> None:
    """Forty in a row, in words that nobody knows: those behind them are asked all the same."""
    words = Response(400, {"error": {"message": "mauvaise demande"}})
    llm_server.rejects = lambda body: words if re.search("row=[1-4]. ", body["messages"][-1]["content"]) else None
    client = opened(concurrency=1)
    replies = list(client.ask([request(i) for i in range(60)], usable))
    assert sum(isinstance(reply, Failure) for reply in replies) == 40
    llm_server.rejects = lambda _: words
    with pytest.raises(EndpointError, match="none of the last 200 requests"):
        list(client.ask([request(i) for i in range(100, 400)], usable))
    with pytest.raises(EndpointError, match="none of the last 20 requests"):
        list(opened(concurrency=1).ask([request(i) for i in range(100, 400)], usable))


@pytest.mark.parametrize(("case", "said"), [("cut", "cut where it may be no longer"), ("empty", "empty")])
def test_answers_of_no_use_are_not_paid_for_to_the_end(
    llm_server: LlmServer, opened: Open, case: str, said: str
) -> None:
    """What a model thinks may take all the room that its answers have; where one was of use, others may be, too."""
    told: list[str] = []
    with pytest.raises(EndpointError, match=f"none of the first 20 answers .* paid for; the last one is {said}"):
        list(opened(concurrency=1, tell=told.append).ask([request(i, case) for i in range(60)], lambda _: False))
    assert llm_server.n_paid == 20
    assert [line for line in told if "an answer is" in line] == [line for line in told if said in line]
    rows = [request(0), *(request(i, case) for i in range(100, 140))]
    assert (
        len(list(opened(concurrency=1).ask(rows, lambda answer: "verdict" in answer.text and not answer.is_cut))) == 41
    )


def test_a_prompt_that_was_cut_is_told(llm_server: LlmServer, opened: Open) -> None:
    """A server that reads less than it is sent says so only in what it counts."""
    told: list[str] = []
    long = request(0)
    long = replace(long, messages=(replace(long.messages[0], content="way " * 4_000 + long.messages[0].content),))
    message = {"role": "assistant", "content": "{}"}
    counts = {"prompt_tokens": 2_048, "completion_tokens": 2}
    llm_server.rejects = lambda _: Response(200, {"choices": [{"message": message}], "usage": counts})
    list(opened(tell=told.append).ask([request(1)], usable))
    assert told == []
    llm_server.rejects = lambda _: Response(
        200, {"choices": [{"message": message}], "usage": {**counts, "prompt_tokens": 1_024}}
    )
    list(opened(tell=told.append).ask([long], usable))
    assert ["1,024 tokens of a prompt of 16," in line for line in told] == [True]


@pytest.mark.parametrize(
    ("variable", "value"), [("ALL_PROXY", "socks5://127.0.0.1:9"), ("SSL_CERT_FILE", "/nowhere/at/all.pem")]
)
def test_what_the_environment_says_of_connections_is_named_where_it_is_of_no_use(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The libraries end in errors of their own, which name neither."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(EndpointError, match=f"no connection can be prepared.*{variable}"):
        list(opened().ask([request(0)], usable))
    assert llm_server.bodies == []


def test_an_address_where_nobody_listens_is_no_answer(tmp_path: Path) -> None:
    """A lost connection is passing until there are too many."""
    endpoint = Endpoint("m", "http://127.0.0.1:9/v1", max_retries=0)
    (reply,) = Client(endpoint, cache=tmp_path / "c").ask([request(0)], usable)
    assert isinstance(reply, Failure)
    assert reply.reason == "provider_unavailable"


def test_an_attempt_that_takes_too_long_is_no_answer_and_may_be_billed(llm_server: LlmServer, opened: Open) -> None:
    """The server takes .4 seconds, and is given .1; it is asked once, and what was set aside is charged, for good."""
    client = opened(retries=2, seconds=0.1, budget=Budget(max_cost=60.0), run="a")
    (reply,) = client.ask([request(0, "slow")], usable)
    assert isinstance(reply, Failure)
    assert reply.reason == "provider_unavailable"
    wait_for(lambda: llm_server.n_paid == 1, seconds=60)
    assert llm_server.requests == {("slow", 0): 1}
    for spent in (client.spending, opened(run="a").spending):
        assert (spent.answers, spent.unusable, spent.uncounted, spent.failures) == (1, 1, 1, 0)
        assert (spent.cost, spent.uncounted_cost) == (0, 50)
        assert spent.to_json()["uncounted_cost_usd"] == 50
    with pytest.raises(BudgetError, match=r"0\.0000 USD, and up to 50\.0000 USD for 1 without a count of tokens"):
        list(client.ask([request(1)], usable))


def test_blanks_do_not_keep_an_attempt_waiting_for_ever(llm_server: LlmServer, opened: Open) -> None:
    """A server sends one each .05 seconds until the answer is there: three pass, and a hundred do not in .2 seconds."""
    llm_server.blanks = 3
    assert isinstance(next(opened().ask([request(0)], usable)), Answer)
    llm_server.blanks = 100
    client = opened(seconds=0.2)
    (reply,) = client.ask([request(1)], usable)
    assert isinstance(reply, Failure)
    assert reply.may_be_paid
    assert client.spending.uncounted == 1


def test_several_threads_may_ask_by_one_client(llm_server: LlmServer, opened: Open) -> None:
    """Each gets its own replies in order, and the books hold all of them."""
    client, found = opened(), {}

    def ask(first: int) -> None:
        found[first] = list(client.ask([request(first + i) for i in range(20)], usable))

    threads = [threading.Thread(target=ask, args=(first,)) for first in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for first, replies in found.items():
        said = [json.loads(reply.text)["labels"] for reply in replies if isinstance(reply, Answer)]
        assert said == [[kind_of(first + i)] for i in range(20)]
    assert client.spending.answers == llm_server.n_paid == 60
    assert client.spending.usage.prompt_tokens == llm_server.prompt_tokens


def test_a_budget_of_rows_stops_cleanly(llm_server: LlmServer, opened: Open) -> None:
    """Five are paid for and yielded; kept ones cost nothing, so the next run of five comes further."""
    rows = [request(i) for i in range(20)]
    for run, n_expected in (("a", 5), ("b", 10)):
        client = opened(budget=Budget(max_rows=5), run=run)
        replies: list[object] = []
        with pytest.raises(BudgetError, match=r"budget of 5 answers .* 5 answers were paid for"):
            replies.extend(client.ask(rows, usable))
        assert len(replies) == n_expected == llm_server.n_paid


def test_a_budget_goes_on_with_the_run_that_it_is_for(llm_server: LlmServer, opened: Open) -> None:
    """Five in all, however often the run is begun; another run has its own."""
    rows = [request(i) for i in range(20)]
    for _ in range(2):
        with pytest.raises(BudgetError):
            list(opened(budget=Budget(max_rows=5), run="a").ask(rows, usable))
        assert llm_server.n_paid == 5
    client = opened(budget=Budget(max_rows=5), run="a")
    client.begin()
    with pytest.raises(BudgetError):
        list(client.ask(rows, usable))
    assert llm_server.n_paid == 10


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_cost_is_never_exceeded(llm_server: LlmServer, opened: Open, concurrency: int) -> None:
    """An answer costs some 20 USD, and 50 at most: of 300, less than 50 are left where there is no room for another."""
    client = opened(concurrency=concurrency, budget=Budget(max_cost=300.0))
    with pytest.raises(BudgetError, match="budget of 300 USD"):
        list(client.ask((request(i) for i in range(100)), usable))
    assert 250 < client.spending.cost <= 300
    assert client.spending.cost == pytest.approx(llm_server.completion_tokens)
    assert client.spending.answers == llm_server.n_paid


def test_a_cost_is_not_exceeded_by_what_the_provider_writes_into_its_cache(llm_server: LlmServer, opened: Open) -> None:
    """100 bytes are 50 tokens at most, for 2 USD each where they are written: 99 USD are none too many."""
    price = Price(input=1_000_000.0, output=0.0, cache_write=2_000_000.0)
    usage = {"prompt_tokens": 50, "completion_tokens": 1, "prompt_tokens_details": {"cache_write_tokens": 50}}
    answer = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    llm_server.rejects = lambda _: Response(200, answer)
    row = ChatRequest((Message("user", "x" * 100),), "p", None, {"max_tokens": 1})
    for limit, has_room in ((99.0, False), (100.0, True)):
        client = opened(prices=PriceList(date(2026, 1, 1), {"m": price}), budget=Budget(max_cost=limit))
        found = client.estimate([row], answer_tokens=1)
        assert (found.cost, found.ceiling_cost, found.least_room) == (25.0, 100.0, None if has_room else 0)
        with nullcontext() if has_room else pytest.raises(BudgetError):
            list(client.ask([row], usable))
    assert client.spending.cost == 100


def test_a_cost_is_not_exceeded_under_the_newer_name_of_the_limit(llm_server: LlmServer, opened: Open) -> None:
    """Answers of 20 USD, of 50 at most: of 110, less than 50 are left after four of them."""
    client = opened(budget=Budget(max_cost=110.0))
    rows = [ChatRequest(request(i).messages, "p", None, {"max_completion_tokens": 50}) for i in range(20)]
    with pytest.raises(BudgetError, match="budget of 110 USD"):
        list(client.ask(rows, usable))
    assert 60 < client.spending.cost <= 110
    assert client.spending.answers == llm_server.n_paid


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_limit_of_cost_needs_one_of_an_answer(llm_server: LlmServer, opened: Open, *, is_batch: bool) -> None:
    """Nothing is sent, and nothing is promised; without the limit of cost, the estimate has no upper end."""
    rows = [ChatRequest(request(i).messages, "p") for i in range(4)]
    client = opened(budget=Budget(max_cost=50.0), is_batch=is_batch)
    with pytest.raises(BudgetError, match="give max_tokens or max_completion_tokens"):
        list(client.ask(rows, usable))
    with pytest.raises(BudgetError, match="give max_tokens or max_completion_tokens"):
        client.estimate(rows, answer_tokens=20)
    assert not llm_server.requests
    found = opened(is_batch=is_batch).estimate(rows, answer_tokens=20)
    assert (found.cost, found.ceiling, found.ceiling_cost) == (80.0, None, None)


@pytest.mark.parametrize("counts", [{}, {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}])
def test_an_answer_without_a_count_weighs_what_was_set_aside(
    llm_server: LlmServer, opened: Open, counts: dict[str, object]
) -> None:
    """At 50 USD each, six of them are all that 300 USD allow, over all resumes; they are told apart from the sum."""
    answer = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], **counts}
    llm_server.rejects = lambda _: Response(200, answer)
    for _ in range(2):
        client = opened(concurrency=2, budget=Budget(max_cost=300.0), run="a")
        with pytest.raises(BudgetError, match="budget of 300 USD"):
            list(client.ask((request(i) for i in range(100)), usable))
        assert (client.spending.answers, client.spending.uncounted) == (6, 6)
        assert (client.spending.cost, client.spending.uncounted_cost) == (0, 300)
        assert len(llm_server.bodies) == 6


def test_what_was_paid_before_a_price_was_known_counts_against_a_limit(llm_server: LlmServer, opened: Open) -> None:
    """Three answers for 18 to 20 USD: beside them, 100 USD have no room for 50 more, and 120 USD have it once."""
    rows = [request(i) for i in range(10)]
    list(opened(prices=PriceList(date(2026, 1, 1)), run="a").ask(rows[:3], usable))
    for limit, n_paid in ((100.0, 3), (120.0, 4)):
        client = opened(budget=Budget(max_cost=limit), run="a")
        with pytest.raises(BudgetError, match=f"budget of {limit:g} USD"):
            list(client.ask(rows, usable))
        assert llm_server.n_paid == n_paid
        assert client.spending.cost == pytest.approx(llm_server.completion_tokens)


def test_a_limit_of_cost_holds_nothing_where_the_cost_so_far_is_not_known(llm_server: LlmServer, opened: Open) -> None:
    """Neither price nor count: what is kept is yielded, and nothing is asked until the books begin anew."""
    rows = [request(i) for i in range(4)]
    llm_server.has_usage = False
    list(opened(prices=PriceList(date(2026, 1, 1)), run="a").ask(rows[:2], usable))
    client = opened(budget=Budget(max_cost=300.0), run="a")
    replies: list[object] = []
    with pytest.raises(BudgetError, match=r"the 2 answers so far cost is not known: 2 of them .* --overwrite"):
        replies.extend(client.ask(rows, usable))
    assert len(replies) == llm_server.n_paid == 2
    client.begin()
    assert len(list(client.ask(rows, usable))) == llm_server.n_paid == 4


def test_equal_requests_are_asked_once_though_the_answer_is_not_kept(llm_server: LlmServer, opened: Open) -> None:
    """The empty answer was yielded long before the second of them is read; neither is what failed asked again."""
    refusal = Response(400, {"error": {"message": "no"}})
    llm_server.rejects = lambda body: refusal if "row=1 " in body["messages"][-1]["content"] else None
    client, found = opened(concurrency=1), list[Any]()

    def rows() -> Iterator[ChatRequest]:
        yield request(0, "empty")
        yield request(1)
        yield from (request(2 + i) for i in range(20))
        assert len(found) > 2
        yield request(0, "empty")
        yield request(1)

    for reply in client.ask(rows(), usable):
        found.append(reply)
    assert found[-2:] == found[:2]
    assert llm_server.paid["empty", 0] == 1
    assert client.spending.failures == 1


def test_a_reply_that_comes_while_there_is_no_room_makes_room(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """75 USD: the 50 set aside for the first leave no room for 50 more, and the 20 that it costs do."""
    refused = threading.Event()
    llm_server.rejects = lambda _: None if refused.wait(timeout=60) else Response(503, "")
    client, futures = opened(budget=Budget(max_cost=75.0)), list[concurrent.futures.Future[Any]]()
    ask, reserve = _Session.ask, client._ledger.reserve

    def noted(session: _Session, key: str, one: ChatRequest) -> concurrent.futures.Future[Any]:
        futures.append(ask(session, key, one))
        return futures[-1]

    def late(key: str, one: ChatRequest) -> bool:
        """Say that there is no room when all that is under way has come."""
        has_room = reserve(key, one)
        if not has_room:
            refused.set()
            concurrent.futures.wait(futures)
        return has_room

    monkeypatch.setattr(_Session, "ask", noted)
    monkeypatch.setattr(client._ledger, "reserve", late)
    assert len(list(client.ask([request(0), request(1)], usable))) == 2


def test_a_limit_of_cost_needs_a_price(opened: Open) -> None:
    """It says how to give one."""
    with pytest.raises(BudgetError, match="--price INPUT,OUTPUT"):
        opened(prices=PriceList(date(2026, 1, 1)), budget=Budget(max_cost=1.0))
    with pytest.raises(ValueError, match="max_rows=-1"):
        Budget(max_rows=-1)


def test_an_unknown_price_is_an_unknown_cost(opened: Open) -> None:
    """And no free one."""
    client = opened(prices=PriceList(date(2026, 1, 1)))
    list(client.ask([request(0)], usable))
    assert not client.spending.is_cost_known
    assert client.spending.to_json()["cost_usd"] is None
    assert client.spending.to_json()["prompt_tokens"] > 0


def test_an_estimate_asks_nothing(llm_server: LlmServer, opened: Open) -> None:
    """Of six requests one is kept and two are repeated; n bytes are n / 4 tokens, or n / 2 at most."""
    client = opened()
    list(client.ask([request(0)], usable))
    rows = [request(i) for i in (0, 1, 1, 2, 2, 3)]
    found = client.estimate(rows, answer_tokens=10)
    n_bytes = request(1).n_bytes
    assert n_bytes == len("case=right row=1 ⟦f end⟧".encode()) + len('{"type": "object"}')
    assert (found.requests, found.known, found.repeated, found.asked) == (6, 1, 2, 3)
    assert found.usage == Usage(3 * -(-n_bytes // 4), 0, 0, 30)
    assert found.ceiling == Usage(3 * -(-n_bytes // 2), 0, 0, 150)
    assert (found.cost, found.ceiling_cost) == (30.0, 150.0)
    assert llm_server.n_paid == 1


def test_an_estimate_says_how_far_the_budget_goes(llm_server: LlmServer, opened: Open) -> None:
    """Answers of 20 USD, of 50 at most: 130 USD have room for five, for while 80 are spent there is room for one of 50.

    At 50 each, they have room for two. By batches it comes as far: what one leaves of the budget goes into another.
    """
    rows = [request(i) for i in range(9)]
    for budget, is_batch, expected in (
        (Budget(max_cost=130.0), False, (5, 2)),
        (Budget(max_cost=130.0), True, (5, 2)),
        (Budget(max_cost=400.0), False, (None, 8)),
        (Budget(max_cost=450.0), False, (None, None)),
        (Budget(max_rows=3), False, (3, 3)),
        (Budget(max_rows=9), False, (None, None)),
    ):
        found = opened(budget=budget, is_batch=is_batch).estimate(rows, answer_tokens=20)
        assert (found.room, found.least_room) == expected
    assert not llm_server.requests


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("response_format", "response_format is not supported"),
        ("response_format", "invalid request"),
        ("temperature", "temperature is not supported with this model"),
        ("max_tokens", "use max_completion_tokens"),
    ],
)
def test_a_server_is_asked_as_it_understands(llm_server: LlmServer, opened: Open, field: str, message: str) -> None:
    """It rejects what it does not know until it is left out, which is learnt once and told once."""
    rejection = Response(400, {"error": {"message": message}})
    llm_server.rejects = lambda body: rejection if field in body else None
    told: list[str] = []
    client = opened(concurrency=1, tell=told.append)
    replies = list(client.ask([request(i, temperature=0.0) for i in range(5)], usable))
    replies += client.ask([request(9, temperature=0.0)], usable)
    assert all(isinstance(reply, Answer) for reply in replies)
    assert len(llm_server.bodies) == 7
    assert told == [f"{llm_server.url} is asked without {field}"]


@pytest.fixture
def door(llm_server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """Close a door before the server after four answers; who waits is let in when the client has begun to stop."""
    found, finish = Door(llm_server, 4), _Session._finish

    async def finished(session: _Session) -> None:
        found.let_in()
        await finish(session)

    monkeypatch.setattr(_Session, "_finish", finished)
    yield found
    found.take_away()


def test_who_stops_early_keeps_what_was_sent(llm_server: LlmServer, opened: Open, door: Door) -> None:
    """Of a hundred, those under way are sent and no more; their answers are on disk, and nothing else is paid for."""
    client = opened(concurrency=4)
    replies = client.ask([request(i) for i in range(100)], usable)
    next(replies)
    wait_for(lambda: len(door.waiting) == 4, seconds=60)
    n_before = llm_server.n_paid
    with pytest.raises(KeyboardInterrupt):
        replies.throw(KeyboardInterrupt())  # type: ignore[attr-defined]  # a generator
    assert client.spending.answers == llm_server.n_paid == n_before + 4
    # Whoever came later would wait at the door.
    assert len(door.waiting) == 4
    assert client.estimate([request(i) for i in range(100)], answer_tokens=1).known == n_before + 4


def test_what_does_not_come_while_somebody_stops_may_be_billed(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is at the door when the grace is over is charged with the 50 USD that were set aside."""
    monkeypatch.setattr("demur.llm.direct._GRACE_SECONDS", 0.01)
    door = Door(llm_server, 1)
    client = opened(concurrency=1)
    replies = client.ask([request(i) for i in range(9)], usable)
    next(replies)
    wait_for(lambda: len(door.waiting) == 1, seconds=60)
    replies.close()  # type: ignore[attr-defined]  # a generator
    door.take_away()
    assert (client.spending.answers, client.spending.uncounted, client.spending.uncounted_cost) == (2, 1, 50)


def test_who_stops_early_sends_nothing_again(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three pause before another attempt until the client stops: they are left, and nothing is charged for them."""
    is_stopping, finish = threading.Event(), _Session._finish

    async def finished(session: _Session) -> None:
        is_stopping.set()
        await finish(session)

    async def paused(_: float) -> None:
        await asyncio.to_thread(is_stopping.wait, 60)

    monkeypatch.setattr(_Session, "_finish", finished)
    monkeypatch.setattr("anyio.sleep", paused)
    busy = Response(429, {"error": {"message": "slow down"}})
    llm_server.rejects = lambda body: None if "row=0 " in body["messages"][-1]["content"] else busy
    client = opened(concurrency=3)
    replies = client.ask([request(i) for i in range(4)], usable)
    next(replies)
    wait_for(lambda: len(llm_server.bodies) == 4 and not llm_server.under_way, seconds=60)
    replies.close()  # type: ignore[attr-defined]  # a generator
    assert len(llm_server.bodies) == 4
    assert client.spending.answers == 1


def test_who_stops_early_has_nothing_set_aside(llm_server: LlmServer, opened: Open, door: Door) -> None:
    """Of 40 answers that may be paid for, those that were read ahead and never sent are still to be had."""
    client = opened(concurrency=4, budget=Budget(max_rows=40))
    replies = client.ask([request(i) for i in range(100)], usable)
    next(replies)
    wait_for(lambda: len(door.waiting) == 4, seconds=60)
    replies.close()  # type: ignore[attr-defined]  # a generator
    door.take_away()
    n_left = 40 - client.spending.answers
    assert n_left > 0
    assert len(list(client.ask([request(100 + i) for i in range(n_left)], usable))) == n_left
    assert llm_server.n_paid == 40


def test_a_key_goes_to_the_server_and_nowhere_else(
    llm_server: LlmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not into logs, the cache, replies or errors, though the server quotes it in all of them."""
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    endpoint = Endpoint("m", llm_server.url, "MY_KEY", max_retries=1)
    client = Client(endpoint, cache=tmp_path / "c.sqlite", prices=PRICES, tell=told.append)
    echo = {"choices": [{"message": {"content": f"Your key is {KEY}."}, "finish_reason": "stop"}]}
    llm_server.rejects = lambda body: Response(200, echo) if "row=0 " in body["messages"][-1]["content"] else None
    replies = list(client.ask([request(0), request(1, "broken"), request(2, "limited")], usable))
    llm_server.rejects = lambda _: Response(500, {"error": {"message": f"broken, {KEY}"}}, {"Retry-After-Ms": "1"})
    replies += list(client.ask([request(3)], usable))
    llm_server.rejects = lambda _: Response(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with pytest.raises(EndpointError) as error:
        list(client.ask([request(4)], usable))
    assert llm_server.authorizations == {f"Bearer {KEY}"}
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Your key is [key]." in stored
    assert "MY_KEY" in str(error.value)
    seen = [caplog.text, str(told), str(replies), repr(error.value), repr(endpoint), repr(endpoint.key())]
    seen += [repr(each) for each in (error.value.__cause__, error.value.__context__)]
    assert told
    assert caplog.records
    assert not [text for text in (*seen, stored.decode("latin-1")) if KEY in text]


@pytest.mark.parametrize("word", ["none", "full", "EMPTY", "not-needed"])
@pytest.mark.parametrize("is_batch", [False, True], ids=["direct", "batch"])
def test_a_word_given_for_a_key_stays_in_answers(
    llm_server: LlmServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, *, is_batch: bool
) -> None:
    """A server on one's own machine takes any key: an answer that says the same word is left as it came."""
    monkeypatch.setenv("MY_KEY", word)
    said = f'{{"reason": "{word}", "verdict": "none", "labels": []}}'
    completion = {"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}
    llm_server.rejects = lambda _: Response(200, completion)
    endpoint = Endpoint("m", llm_server.url, "MY_KEY")
    client = Client(endpoint, cache=tmp_path / "c.sqlite", prices=PRICES, is_batch=is_batch, poll_seconds=0.01)
    replies = list(client.ask([request(i) for i in range(3)], usable))
    client.close()
    assert [reply.text for reply in replies if isinstance(reply, Answer)] == [said] * 3


@pytest.mark.parametrize("value", ["…", "sk-abc…", "sk-abc\ndef"])
def test_a_key_that_cannot_be_sent_is_answered_clearly(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """As where an example is copied as it stands; the value is not quoted."""
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(EndpointError, match="OPENAI_API_KEY holds a character") as error:
        Endpoint("m").key()
    assert "sk-abc" not in str(error.value)


def test_the_key_of_one_provider_is_not_sent_to_another(
    llm_server: LlmServer, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OPENAI_API_KEY` goes to OpenAI, and elsewhere only where somebody says so."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    list(opened().ask([request(0)], usable))
    assert llm_server.authorizations == {"Bearer no-key"}
    assert Endpoint("m").key().value == KEY
    for other in ("http://api.openai.com/v1", "https://api.openai.com.example.org/v1", "https://api.openai.com:9/v1"):
        assert Endpoint("m", other).key().variable is None
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EndpointError, match="OPENAI_API_KEY is not set"):
        Endpoint("m").key()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.openai.com/v1",
        "ftp://host/v1",
        f"https://me:{KEY}@host/v1",
        f"https://host/v1?key={KEY}",
        "http://localhost:abc/v1",
        "http://localhost:99999/v1",
        "http://[::1/v1",
        f"https://me:{KEY}@host:abc/v1",
        f"https://host:{KEY}/v1",
    ],
)
def test_an_address_is_an_address_and_no_place_for_keys(url: str) -> None:
    """What is refused is not quoted where it may hold a key."""
    with pytest.raises(EndpointError) as error:
        Endpoint("m", url)
    assert KEY not in str(error.value)


@pytest.mark.parametrize("option", [{"concurrency": 0}, {"timeout_seconds": 0.0}, {"max_retries": -1}])
def test_an_endpoint_refuses_settings_out_of_range(option: dict[str, Any]) -> None:
    """The message names the setting."""
    with pytest.raises(EndpointError, match=next(iter(option))):
        Endpoint("m", **option)
