"""Keep the books of a run: what is known already, what may still be spent, what was paid."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from demur.errors import BudgetError, EndpointError
from demur.llm.budget import Budget, Spending
from demur.llm.exchange import Answer, Failure, Usage
from demur.llm.parameters import longest_answer
from demur.llm.store import Charge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from demur.llm.endpoint import Endpoint
    from demur.llm.exchange import ChatRequest, Reply
    from demur.llm.prices import Price
    from demur.llm.store import Store

    IsUsable = Callable[[Answer], bool]

__all__ = ["Ledger", "ceiling_tokens"]

# Tokens hold four bytes and more on average; hardly any text has so many that they hold less than two.
_FEWEST_BYTES_PER_TOKEN = 2


def ceiling_tokens(request: ChatRequest) -> Usage:
    """Return what a request may cost at most in tokens: many small tokens, and an answer as long as is allowed.

    Without a limit of the answer, only what is read is in it.
    """
    longest = 0 if request.max_tokens is None else request.max_tokens
    return Usage(-(-request.n_bytes // _FEWEST_BYTES_PER_TOKEN), 0, 0, longest)


class Ledger:
    """Keep the books of a run; several threads may write in it."""

    def __init__(self, store: Store, endpoint: Endpoint, *, price: Price | None, budget: Budget, run: str) -> None:
        """Open the books where an earlier run of the same name left them.

        Args:
            store: Where they are kept.
            endpoint: Who is asked.
            price: What it costs; None where that is not known.
            budget: What may be spent.
            run: Name of the run.

        Raises:
            BudgetError: A cost is limited, and no price is known.
        """
        if budget.max_cost is not None and price is None:
            message = (
                f"a limit of {budget.max_cost:g} USD, and no price of model {endpoint.model!r} is known; "
                "give it with --price INPUT,OUTPUT (USD for a million tokens), or limit the number of answers"
            )
            raise BudgetError(message)
        self.run = run
        self._store = store
        self._endpoint = endpoint
        self._price = price
        self._budget = budget
        self._lock = threading.Lock()
        # Held while what is on disk and what is in memory differ.
        self._books = threading.Lock()
        self._spending = store.spending(run, price=price)
        self._reserved: dict[str, float] = {}
        self._others: tuple[Ledger, ...] = ()

    def join(self, other: Ledger) -> None:
        """Let what either of two books holds count against the limits of both."""
        self._others, other._others = (*self._others, other), (*other._others, self)

    @property
    def spending(self) -> Spending:
        """Return what the run has spent so far, earlier runs that it goes on with included."""
        return self._spending

    def begin(self) -> None:
        """Forget what was charged under the name of this run."""
        self._store.forget(self.run)
        with self._lock:
            self._spending = Spending()

    def key(self, request: ChatRequest) -> str:
        """Identify a request to this endpoint."""
        return request.key(url=self._endpoint.url, model=self._endpoint.model)

    def require_bound(self, parameters: Mapping[str, Any]) -> None:
        """Raise a `BudgetError` where a cost is limited, and parameters limit no answer."""
        limit, price = self._budget.max_cost, self._price
        if limit is not None and price is not None and price.output and longest_answer(parameters) is None:
            message = (
                f"a limit of {limit:g} USD, and none of an answer: what one may cost is not known; give max_tokens or "
                "max_completion_tokens as a parameter, or limit the number of answers"
            )
            raise BudgetError(message)

    def bounded(self, requests: Iterable[ChatRequest]) -> Iterator[ChatRequest]:
        """Pass requests on whose parameters limit what has to be limited."""
        for request in requests:
            self.require_bound(request.parameters)
            yield request

    def known(self, key: str, is_usable: IsUsable) -> Answer | None:
        """Return the answer that is kept, or None; one that was usable once and is no more is asked for again."""
        found = self._store.find(key)
        if found is None or not is_usable(found):
            return None
        self._add(Spending(reused=1))
        return found

    def require_not_under_way(self, key: str) -> None:
        """Raise an `EndpointError` where a request is under way in a batch: asked apart, it would be paid for twice."""
        batch = self._store.batch_of(key)
        if batch is not None:
            message = (
                f"some of these requests are under way at {self._endpoint.url} in batch {batch}, which is paid for; "
                "go on with --batch, which fetches it"
            )
            raise EndpointError(message)

    def reserve(self, key: str, request: ChatRequest, *, is_batch: bool = False) -> bool:
        """Set aside what a request may cost at most; False where the budget has no room for that."""
        cost = self.most(request, is_batch=is_batch)
        elsewhere = [other.committed() for other in self._others]
        with self._lock:
            committed = [self._committed(), *elsewhere]
            if not self._budget.has_room(sum(n for n, _ in committed), sum(spent for _, spent in committed), cost):
                return False
            self._reserved[key] = cost
        return True

    def note_under_way(self, key: str, request: ChatRequest) -> None:
        """Set aside what a request in a batch may cost at most, for which an earlier run had found room."""
        cost = self.most(request, is_batch=True)
        with self._lock:
            self._reserved[key] = cost

    def committed(self) -> tuple[int, float]:
        """Return how many requests are paid for or set aside, and what they cost at most, in USD."""
        with self._lock:
            return self._committed()

    def _committed(self) -> tuple[int, float]:
        paid = self._spending.cost + self._spending.uncounted_cost
        return self._spending.answers + len(self._reserved), paid + sum(self._reserved.values())

    def cost(self, usage: Usage, *, is_batch: bool) -> float:
        """Return what tokens cost, in USD; 0 where no price is known."""
        return 0.0 if self._price is None else self._price.cost(usage, is_batch=is_batch)

    def most(self, request: ChatRequest, *, is_batch: bool) -> float:
        """Return what a request may cost at most, in USD; 0 where no price is known."""
        return 0.0 if self._price is None else self._price.most(ceiling_tokens(request), is_batch=is_batch)

    def settle(
        self,
        replies: Iterable[tuple[str, str, Reply]],
        is_usable: IsUsable,
        *,
        is_batch: bool = False,
        batch: str | None = None,
        run: str | None = None,
    ) -> None:
        """Write down replies: charge the answers, keep the usable ones, and give back what was set aside.

        Args:
            replies: Key of the request, name of its prompt, and what came.
            is_usable: Tells an answer worth keeping.
            is_batch: Whether they came by the Batch API.
            batch: Token of the batch that is thereby done with.
            run: Who is charged, where that is another run.
        """
        charges: list[Charge] = []
        total = Spending()
        for key, prompt, reply in replies:
            if isinstance(reply, Failure) and not reply.may_be_paid:
                self.release(key)
                total += Spending(failures=1)
                continue
            # What was not heard is charged as an answer without a text and without a count.
            answer = Answer("") if isinstance(reply, Failure) else reply
            is_kept = answer is reply and is_usable(answer)
            charges.append(self._charge(key, prompt, answer, is_batch=is_batch, is_usable=is_kept))
            total += _spent(charges[-1])
        payer = self.run if run is None else run
        with self._books:
            self._store.record(payer, charges, batch=batch)
            if payer == self.run:
                self._add(total)
        for charge in charges:
            self.release(charge.key)

    def reload(self) -> None:
        """Count what another process has charged to this run, by a batch of ours that it fetched."""
        with self._books:
            stored = self._store.spending(self.run, price=self._price)
            with self._lock:
                ours = self._spending
                self._spending = replace(stored, failures=ours.failures, reused=ours.reused)

    def _charge(self, key: str, prompt: str, answer: Answer, *, is_batch: bool, is_usable: bool) -> Charge:
        cost: float | None = None
        if self._price is not None and answer.usage is not None:
            cost = self._price.cost(answer.usage, is_batch=is_batch)
        elif self._price is not None:
            # An answer without a count may have cost all that was set aside for it.
            with self._lock:
                cost = self._reserved.get(key)
        return Charge(key, answer, is_usable, self._endpoint.model, prompt, cost)

    def release(self, key: str) -> None:
        """Give back what was set aside for a request, if anything is."""
        with self._lock:
            self._reserved.pop(key, None)

    def _add(self, spending: Spending) -> None:
        with self._lock:
            self._spending += spending

    def room(self, costs: Iterable[tuple[float, float]], *, before: Spending) -> int:
        """Count the requests that the budget has room for, by what each is taken to cost and may cost at most.

        Args:
            costs: Both, of each request, in USD.
            before: What is taken to be spent beforehand, beside what has been.
        """
        return self._budget.room(sum((other.spending for other in self._others), self._spending) + before, costs)

    def exhausted(self) -> BudgetError:
        """Return the error that says what was spent, or that a limit cannot be held to for not knowing what was."""
        spent, budget = sum((other.spending for other in self._others), self._spending), self._budget
        if budget.max_cost is not None and math.isnan(spent.cost + spent.uncounted_cost):
            message = (
                f"a limit of {budget.max_cost:g} USD, and what the {spent.answers:,} answers so far cost is not known: "
                f"{spent.uncounted:,} of them came without a count of tokens. They are kept; limit the number of "
                "answers in place of the cost, or begin anew with --overwrite"
            )
            return BudgetError(message)
        limits = [
            *([] if budget.max_rows is None else [f"{budget.max_rows:,} answers"]),
            *([] if budget.max_cost is None else [f"{budget.max_cost:g} USD"]),
        ]
        cost = f"{spent.cost:.4f} USD" if spent.is_cost_known else "an unknown sum"
        if spent.uncounted_cost > 0:
            cost += f", and up to {spent.uncounted_cost:.4f} USD for {spent.uncounted:,} without a count of tokens"
        message = (
            f"the budget of {' and '.join(limits)} has no room for another answer: {spent.answers:,} answers were paid "
            f"for, {cost}. They are kept; go on with a larger budget"
        )
        return BudgetError(message)


def _spent(charge: Charge) -> Spending:
    usage = charge.answer.usage
    cost = math.nan if charge.cost is None else charge.cost
    return Spending(
        answers=1,
        unusable=int(not charge.is_usable),
        uncounted=int(usage is None),
        usage=Usage() if usage is None else usage,
        cost=0.0 if usage is None else cost,
        uncounted_cost=cost if usage is None else 0.0,
    )
