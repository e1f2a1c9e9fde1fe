"""Ask requests one by one, several at a time, and give the replies in order."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from demur.llm.dialect import Dialect
from demur.llm.endpoint import prepared
from demur.llm.exchange import Answer, Failure
from demur.llm.sending import Sender
from demur.llm.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from demur.llm.endpoint import Endpoint
    from demur.llm.exchange import ChatRequest, Reply
    from demur.llm.ledger import IsUsable, Ledger

__all__ = ["Direct"]

# How far requests are read ahead of the reply that is waited for, as a multiple of what is asked at a time.
_AHEAD = 8
_GRACE_SECONDS = 30.0
_CUT_OFF = Failure("provider_unavailable", "the run stopped before an answer came", may_be_paid=True)

_Future = concurrent.futures.Future["Reply"]


class Direct:
    """Ask requests one by one, several at a time.

    Each answer is written down when it comes, not when its turn comes. Whoever stops early, by Ctrl-C too, waits for
    what has been sent already, half a minute at most and until a second Ctrl-C, so that it is kept; nothing else is
    sent, and nothing again. What has not come by then, or not within the time of an attempt, may be billed all the
    same: it is charged with what was set aside for it.
    """

    def __init__(self, endpoint: Endpoint, ledger: Ledger, tell: Callable[[str], None]) -> None:
        """Take who is asked, the books, and whom to tell what somebody who waits would want to know."""
        self._endpoint = endpoint
        self._ledger = ledger
        self._tell = tell
        self.dialect = Dialect()
        self.has_answered = False

    def replies(self, requests: Iterable[ChatRequest], is_usable: IsUsable) -> Iterator[Reply]:
        """Yield one reply for each request, in order; equal requests are asked once, answered well or not.

        Raises:
            BudgetError: There is no room for the next request; what was asked before it has been yielded.
            EndpointError: The endpoint cannot be used, or a request is under way in a batch.
        """
        session = _Session(self._endpoint, self._ledger, self._tell, self.dialect, is_usable)
        try:
            with session:
                yield from self._ordered(requests, session)
        finally:
            self.dialect = session.dialect

    def _ordered(self, requests: Iterable[ChatRequest], session: _Session) -> Iterator[Reply]:
        waiting: deque[tuple[str, _Future]] = deque()
        under_way: dict[str, _Future] = {}
        n_ahead = _AHEAD * self._endpoint.concurrency
        is_exhausted = False
        for request in requests:
            key = self._ledger.key(request)
            future = under_way.get(key)
            if future is None:
                future = self._placed(key, request, session, under_way)
            if future is None:
                is_exhausted = True
                break
            under_way[key] = future
            waiting.append((key, future))
            while waiting and (len(waiting) > n_ahead or waiting[0][1].done()):
                yield self._next(waiting, under_way, session)
        while waiting:
            yield self._next(waiting, under_way, session)
        if is_exhausted:
            raise self._ledger.exhausted()

    def _placed(
        self, key: str, request: ChatRequest, session: _Session, under_way: dict[str, _Future]
    ) -> _Future | None:
        """Find the answer, or ask for it; None where the budget has no room for that, and will have none."""
        known = session.unkept.get(key) or self._ledger.known(key, session.is_usable)
        if known is not None:
            session.recall(known)
            future: _Future = concurrent.futures.Future()
            future.set_result(known)
            return future
        self._ledger.require_not_under_way(key)
        while True:
            # Looked at before the attempt: whatever settles after it makes room for another one.
            open_ones = [future for future in under_way.values() if not future.done()]
            if self._ledger.reserve(key, request):
                return session.ask(key, request)
            if not open_ones:
                return None
            # What is under way has set aside more than it will cost.
            concurrent.futures.wait(open_ones, return_when=concurrent.futures.FIRST_COMPLETED)

    def _next(self, waiting: deque[tuple[str, _Future]], under_way: dict[str, _Future], session: _Session) -> Reply:
        """Wait for the oldest reply."""
        key, future = waiting.popleft()
        try:
            reply = future.result()
        except concurrent.futures.CancelledError as left:
            # What a younger one met stands against it, too.
            raise (session.fatal or left) from None
        self.has_answered = self.has_answered or isinstance(reply, Answer)
        if not any(other is future for _, other in waiting):
            under_way.pop(key, None)
        return reply


class _Session:
    """Hold a client open on a loop in a thread of its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        ledger: Ledger,
        tell: Callable[[str], None],
        dialect: Dialect,
        is_usable: IsUsable,
    ) -> None:
        self._key = endpoint.key()
        self._endpoint = endpoint
        self._ledger = ledger
        self._tell = tell
        self.is_usable = is_usable
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demur-llm", daemon=True)
        # Key of the request and name of its prompt, by the task that sends it.
        self._tasks: dict[asyncio.Task[Any], tuple[str, str]] = {}
        self.dialect = dialect
        # Replies that the cache does not hold, by key.
        self.unkept: dict[str, Reply] = {}
        # What stands against every request, once one has met it.
        self.fatal: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._wire.is_closing = True
        try:
            try:
                asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
            finally:
                # Whoever interrupts again waits no longer, and what is in the air may be billed all the same.
                asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()
        finally:
            self.dialect = self._sender.dialect
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def recall(self, known: Reply) -> None:
        """Count an answer that was kept: asked again, others may be the ones that are never of use."""
        if isinstance(known, Answer) and self.is_usable(known):
            self._sender.has_been_useful = True

    def ask(self, key: str, request: ChatRequest) -> _Future:
        """Put a request into the line."""
        return asyncio.run_coroutine_threadsafe(self._ask(key, request), self._loop)

    async def _open(self) -> None:
        with prepared():
            self._wire = Wire(self._endpoint.timeout_seconds)
        self._client = self._endpoint.async_client(self._wire)
        self._slots = asyncio.Semaphore(self._endpoint.concurrency)
        spent = self._ledger.spending
        self._sender = Sender(
            self._client,
            self._endpoint,
            self._key,
            dialect=self.dialect,
            tell=self._tell,
            has_been_useful=spent.answers > spent.unusable,
        )

    async def _ask(self, key: str, request: ChatRequest) -> Reply:
        try:
            return await self._in_turn(key, request)
        except BaseException:
            # What was read ahead and not sent when somebody stopped has set aside its part all the same.
            self._ledger.release(key)
            raise

    async def _in_turn(self, key: str, request: ChatRequest) -> Reply:
        async with self._slots:
            if self._wire.is_closing:
                raise asyncio.CancelledError
            task = asyncio.ensure_future(self._exchange(key, request))
            self._tasks[task] = key, request.prompt
            task.add_done_callback(self._tasks.pop)
            return await task

    async def _exchange(self, key: str, request: ChatRequest) -> Reply:
        begun = time.perf_counter()
        try:
            reply = await self._sender.send(request)
            if isinstance(reply, Answer):
                reply = replace(reply, seconds=time.perf_counter() - begun)
            self._ledger.settle([(key, request.prompt, reply)], self.is_usable)
            is_usable = isinstance(reply, Answer) and self.is_usable(reply)
            if not is_usable:
                self.unkept[key] = reply
            self._sender.heed(request, reply, is_usable=is_usable)
        except Exception as error:
            # What stands against this request stands against all: none that waits is sent any more.
            self.fatal = error
            self._stop()
            raise
        return reply

    def _stop(self) -> None:
        """Send nothing any more, and leave what pauses before another attempt."""
        self._wire.is_closing = True
        for task in self._tasks.keys() - self._wire.in_air - {asyncio.current_task()}:
            task.cancel()

    async def _finish(self) -> None:
        """Let what is sent come back, for a while."""
        self._stop()
        if self._tasks:
            grace = f"{_GRACE_SECONDS:.0f} s at most, so that they are kept"
            self._tell(f"stopping; requests under way: {len(self._tasks)}, waited for {grace}")
            await asyncio.wait(self._tasks, timeout=_GRACE_SECONDS)

    async def _leave(self) -> None:
        """Charge what is in the air, and give up all that is left."""
        for task in self._tasks.keys() & self._wire.in_air:
            key, prompt = self._tasks[task]
            self._ledger.settle([(key, prompt, _CUT_OFF)], self.is_usable)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._client.close()
