"""Ask requests by the provider's Batch API: hours later, at a lower price, and never twice.

A batch is noted in the cache before it is made, under a token that goes with it, and under the provider's id after: a
run that is killed at any point finds its batch again.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from demur.errors import BudgetError, EndpointError
from demur.llm.batch_api import BatchApi, RejectionError
from demur.llm.batch_files import batch_files, read_batch_file
from demur.llm.exchange import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from openai.types import Batch

    from demur.llm.direct import Direct
    from demur.llm.endpoint import Endpoint
    from demur.llm.exchange import ChatRequest, Reply
    from demur.llm.ledger import IsUsable, Ledger
    from demur.llm.store import Store

__all__ = ["Batches"]

# How often a request is asked that the provider, at work on a batch, has no answer to.
_ROUNDS = 3
# Requests that are asked directly, at most, until the server has answered one: where it answers none, so will a batch.
_FIRST_TRIES = 3
_OVER = ("completed", "failed", "expired", "cancelled")
_HOW_TO_GO_ON = "What was sent as a batch goes on at the provider, and is fetched when the run is gone on with."


@dataclass(frozen=True, slots=True)
class Batches:
    """Ask requests by the Batch API.

    The first request that nothing is known of is asked directly, and another one where that has no answer: it shows
    which parts of the API the server understands, before thousands are sent that it would reject.

    Attributes:
        endpoint: Who is asked.
        ledger: The books.
        store: Where batches under way are noted.
        direct: Asks the first request.
        poll_seconds: Pause between two looks at a batch.
        tell: Told what somebody who waits would want to know.
    """

    endpoint: Endpoint
    ledger: Ledger
    store: Store
    direct: Direct
    poll_seconds: float
    tell: Callable[[str], None]

    def replies(self, requests: Iterable[ChatRequest], is_usable: IsUsable) -> Iterator[Reply]:
        """Yield one reply for each request, in order, once all are there; equal requests are asked once.

        Raises:
            BudgetError: There is no room for the next request; what was asked before it has been yielded.
            EndpointError: The endpoint cannot be used, has no Batch API, or did not take the batch.
        """
        listed = [(self.ledger.key(request), request) for request in requests]
        missing = dict(listed)
        found: dict[str, Reply] = {}
        for key in list(missing):
            known = self.ledger.known(key, is_usable)
            if known is not None:
                found[key] = known
                del missing[key]
        if missing:
            with closing(BatchApi(self.endpoint)) as api:
                found |= _Errand(self, api, missing, is_usable).replies()
        for key, _ in listed:
            if key not in found:
                raise self.ledger.exhausted()
            yield found[key]


class _Errand:
    """Bring in the replies to some requests."""

    def __init__(self, desk: Batches, api: BatchApi, missing: Mapping[str, ChatRequest], is_usable: IsUsable) -> None:
        self._desk = desk
        self._api = api
        self._missing = dict(missing)
        self._is_usable = is_usable
        self._found: dict[str, Reply] = {}
        # The provider's ids by our tokens, of those made and not fetched.
        self._under_way: dict[str, str] = {}
        self._n_asked: Counter[str] = Counter()

    def replies(self) -> dict[str, Reply]:
        """Return the replies by key, without those that the budget had no room for."""
        try:
            self._find_left_behind()
            self._wait()
            # What a batch leaves of the budget goes into another one.
            while self._take_known() and self._try_first() and self._make():
                self._wait()
        except BaseException as error:
            if self._under_way:
                error.add_note(_HOW_TO_GO_ON)
            raise
        return self._found

    def _find_left_behind(self) -> None:
        """Find the batches of an earlier run that hold any of the requests."""
        store = self._desk.store
        for token, noted in store.batches(self._desk.endpoint.url).items():
            if not store.batch_prompts(token).keys() & self._missing.keys():
                continue
            batch_id = self._api.find(token) if noted is None else noted
            if batch_id is None:
                store.drop_batch(token)
            else:
                self._under_way[token] = batch_id

    def _take_known(self) -> bool:
        """Take what another process that waited for the same batch has fetched; False where nothing is missing now."""
        for key in list(self._missing):
            # No request of ours is under way here, so nothing is to be set aside for one.
            self._desk.ledger.release(key)
            known = self._desk.ledger.known(key, self._is_usable)
            if known is not None:
                self._take(key, known)
        return bool(self._missing)

    def _try_first(self) -> bool:
        """Ask requests directly until one is answered, if none has ever been; False where the budget has no room."""
        for key, request in list(self._missing.items())[:_FIRST_TRIES]:
            if self._desk.direct.has_answered:
                break
            try:
                (reply,) = self._desk.direct.replies([request], self._is_usable)
            except BudgetError:
                return False
            # What may go well later, and costs nothing, is asked again with the others.
            if not _may_pass(reply) or reply.may_be_paid:
                self._take(key, reply)
        return True

    def _make(self) -> bool:
        """Make batches of what the budget has room for; False where it has none."""
        desk = self._desk
        affordable = []
        for key, request in self._missing.items():
            if not desk.ledger.reserve(key, request, is_batch=True):
                break
            affordable.append((key, request))
        for keys, content in batch_files(affordable, dialect=desk.direct.dialect, model=desk.endpoint.model):
            token, file_id = uuid.uuid4().hex, self._api.upload(content)
            prompts = {key: self._missing[key].prompt for key in keys}
            desk.store.plan_batch(token, desk.endpoint.url, prompts, run=desk.ledger.run)
            try:
                batch_id = self._under_way[token] = self._api.make(file_id, token)
            except RejectionError:
                desk.store.drop_batch(token)
                raise
            desk.store.name_batch(token, batch_id)
            self._n_asked.update(keys)
            desk.tell(f"batch {batch_id}: {len(keys):,} requests")
        return bool(affordable)

    def _wait(self) -> None:
        """Look at batches until all are over, and fetch each one then."""
        told: dict[str, str] = {}
        while self._under_way:
            for token, batch_id in list(self._under_way.items()):
                batch = self._api.look(batch_id)
                if batch is None:
                    self._give_up(token, batch_id)
                    continue
                if told.get(token) != (state := _state(batch)):
                    told[token] = state
                    self._desk.tell(f"batch {batch_id}: {state}")
                if batch.status in _OVER:
                    self._fetch(token, batch)
            if self._under_way:
                time.sleep(self._desk.poll_seconds)

    def _give_up(self, token: str, batch_id: str) -> None:
        """Forget a batch that the provider does not know, if its run was begun anew; who else made it may have the key.

        Raises:
            EndpointError: It is not to be forgotten.
        """
        del self._under_way[token]
        if self._desk.store.batch_run(token) is not None:
            message = (
                f"{self._desk.endpoint.url} does not know batch {batch_id} with this key, and requests are noted to be "
                "under way in it: give the key that it was made with; or begin its run anew with --overwrite, or take "
                "another --cache, and they are asked, and may be paid for, again"
            )
            raise EndpointError(message)
        self._desk.store.drop_batch(token)
        self._desk.tell(f"batch {batch_id}: not known to the provider, asked again")

    def _set_aside(self, keys: Iterable[str]) -> None:
        """Set aside what an earlier run had for its batch: an answer without a count is charged that much.

        Of a request that this run does not ask, nothing but the key is known: it is taken to cost as much as the
        dearest of those that it asks.
        """
        ledger = self._desk.ledger
        dearest = max(self._missing.values(), key=lambda request: ledger.most(request, is_batch=True), default=None)
        for key in keys:
            request = self._missing.get(key, dearest)
            if request is not None:
                ledger.note_under_way(key, request)

    def _fetch(self, token: str, batch: Batch) -> None:
        """Take over what became of a batch, all of it in one transaction, at the cost of the run that made it."""
        prompts, run = self._desk.store.batch_prompts(token), self._desk.store.batch_run(token)
        if batch.status == "failed":
            self._desk.store.drop_batch(token)
            del self._under_way[token]
            for key in prompts:
                self._desk.ledger.release(key)
            raise EndpointError(self._api.why_failed(batch))
        if not prompts:
            # Another process has fetched it, and charged whoever made it.
            self._desk.ledger.reload()
            del self._under_way[token]
            return
        lost: Reply = Failure("provider_unavailable", f"batch {batch.id} ({batch.status}) came back without it")
        results = dict(read_batch_file(self._api.results(batch)))
        replies = {key: results.get(key, lost) for key in prompts}
        rows = [(key, prompts[key], reply) for key, reply in replies.items()]
        self._set_aside(replies)
        self._desk.ledger.settle(rows, self._is_usable, is_batch=True, batch=token, run=run)
        del self._under_way[token]
        if run not in (None, self._desk.ledger.run):
            # Another run's: what it paid for is in the cache now, and what it had no answer to is ours to ask.
            return
        for key, reply in replies.items():
            if not (_may_pass(reply) and batch.status == "completed" and self._n_asked[key] < _ROUNDS):
                self._take(key, reply)

    def _take(self, key: str, reply: Reply) -> None:
        if self._missing.pop(key, None) is not None:
            self._found[key] = reply


def _state(batch: Batch) -> str:
    counts = batch.request_counts
    done = "" if counts is None else f", {counts.completed + counts.failed:,} of {counts.total:,} done"
    return f"{batch.status}{done}"


def _may_pass(reply: Reply) -> TypeGuard[Failure]:
    """Tell whether a request has no answer for a reason that another attempt may not meet."""
    return isinstance(reply, Failure) and reply.reason == "provider_unavailable"
