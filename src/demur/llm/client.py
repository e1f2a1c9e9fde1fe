"""Ask a language model: one door for all who do."""

from __future__ import annotations

import math
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demur.documents import user_path
from demur.llm.batches import Batches
from demur.llm.budget import Budget, Spending
from demur.llm.direct import Direct
from demur.llm.exchange import Usage
from demur.llm.heard import Heard
from demur.llm.ledger import Ledger, ceiling_tokens
from demur.llm.prices import PriceList
from demur.llm.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from demur.llm.endpoint import Endpoint
    from demur.llm.exchange import ChatRequest, Reply
    from demur.llm.ledger import IsUsable

__all__ = ["Client", "Estimate", "default_cache"]

# What texts and prompts in English come to with the tokenizers of the day; no tokenizer is at hand for every model.
_BYTES_PER_TOKEN = 4


def default_cache() -> Path:
    """Return where answers are kept: the file that `DEMUR_CACHE` names, or one in the user's folder for caches."""
    import platformdirs

    named = os.environ.get("DEMUR_CACHE")
    return Path(named) if named else platformdirs.user_cache_path("demur") / "answers.sqlite"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Say beforehand what requests would come to; nothing is asked for that.

    Attributes:
        requests: All of them.
        known: Those that the cache would answer.
        repeated: Those that ask what another one asks.
        usage: Tokens of the rest, by a rule of thumb.
        ceiling: Tokens of the rest at most, if every answer is as long as is allowed; None where any length is.
        cost: What `usage` would cost, in USD; None where no price is known.
        ceiling_cost: What `ceiling` would cost, in USD; None where that or a price is not known.
        room: How many of the rest the budget has room for, by a rule of thumb; None where it has room for all.
        least_room: How many of the rest it has room for, if every answer is as long as is allowed; None for all.
    """

    requests: int
    known: int
    repeated: int
    usage: Usage
    ceiling: Usage | None
    cost: float | None
    ceiling_cost: float | None
    room: int | None = None
    least_room: int | None = None

    @property
    def asked(self) -> int:
        """Return the number of requests that would be paid for."""
        return self.requests - self.known - self.repeated

    def spending(self, *, at_most: bool = False) -> Spending:
        """Return what would be spent, by a rule of thumb or at most."""
        cost = self.ceiling_cost if at_most else self.cost
        return Spending(answers=self.asked, cost=math.nan if cost is None else cost)


class Client:
    """Ask a model behind an endpoint, within a budget, and never pay for an answer twice."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        cache: Path | str | None = None,
        prices: PriceList | None = None,
        budget: Budget | None = None,
        run: str | None = None,
        is_batch: bool = False,
        poll_seconds: float = 30.0,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """Open the cache and the books; the key is read when the first request is sent.

        Args:
            endpoint: Which model is asked, where, and how patiently.
            cache: File of answers; None for the one in the user's folder for caches.
            prices: What models cost; None for the shipped list.
            budget: What may be spent; None for no limit.
            run: Name under which spending adds up from one process to the next; None for a run of its own.
            is_batch: Whether the provider's Batch API is used: cheaper, and hours later.
            poll_seconds: Pause between two looks at a batch.
            tell: Told what somebody who waits would want to know.

        Raises:
            BudgetError: A cost is limited, and no price is known.
            OutputError: The cache cannot be used.
        """
        self.endpoint = endpoint
        self.prices = PriceList.load() if prices is None else prices
        self.price = self.prices.find(endpoint.model)
        self.is_batch = is_batch
        self.heard = Heard()
        self._store = Store(default_cache() if cache is None else user_path(cache))
        self._ledger = Ledger(
            self._store,
            endpoint,
            price=self.price,
            budget=Budget() if budget is None else budget,
            run=uuid.uuid4().hex if run is None else run,
        )
        told = (lambda _: None) if tell is None else tell
        direct = Direct(endpoint, self._ledger, told)
        batches = Batches(endpoint, self._ledger, self._store, direct, poll_seconds, told)
        self._transport: Direct | Batches = batches if is_batch else direct

    @property
    def cost_per_answer(self) -> float:
        """Return what an answer costs on average by its tokens, in USD, kept ones among them; nan where not known."""
        if self.price is None or not self.heard.counted:
            return math.nan
        return self.price.cost(self.heard.usage, is_batch=self.is_batch) / self.heard.counted

    @property
    def spending(self) -> Spending:
        """Return what the run has spent so far, earlier processes of the same run included."""
        return self._ledger.spending

    def ask(self, requests: Iterable[ChatRequest], is_usable: IsUsable) -> Iterator[Reply]:
        """Yield one reply for each request, in order; what the cache holds is not asked again.

        Args:
            requests: Read as far ahead as there is room for; by the Batch API, all of them at once.
            is_usable: Tells an answer worth keeping. One that is not is charged all the same, and not kept.

        Raises:
            BudgetError: There is no room for the next request; what was asked before it has been yielded. Or a cost is
                limited, and the length of an answer is not.
            EndpointError: The endpoint cannot be used, or a request is under way in a batch and is asked apart.
        """
        for reply in self._transport.replies(self._ledger.bounded(requests), is_usable):
            self.heard.add(reply)
            yield reply

    def estimate(
        self,
        requests: Iterable[ChatRequest],
        *,
        answer_tokens: int,
        is_usable: IsUsable | None = None,
        before: Estimate | None = None,
    ) -> Estimate:
        """Say what requests would come to, without asking any.

        Args:
            requests: What would be asked.
            answer_tokens: Length of a usual answer, in tokens.
            is_usable: Tells a kept answer that will do from one that will be asked for again; None where all will do.
            before: What a client that this one has joined is asked first, out of the same budget; None for nothing.

        Raises:
            BudgetError: A cost is limited, and the length of an answer is not.
        """
        keys: set[str] = set()
        n_requests = n_known = 0
        is_bounded = True
        usage = ceiling = Usage()
        costs: list[tuple[float, float]] = []
        for request in self._ledger.bounded(requests):
            n_requests += 1
            key = self._ledger.key(request)
            if key in keys:
                continue
            keys.add(key)
            kept = self._store.find(key)
            if kept is not None and (is_usable is None or is_usable(kept)):
                n_known += 1
                continue
            is_bounded = is_bounded and request.max_tokens is not None
            about = Usage(-(-request.n_bytes // _BYTES_PER_TOKEN), 0, 0, answer_tokens)
            usage, ceiling = usage + about, ceiling + ceiling_tokens(request)
            most = self._ledger.most(request, is_batch=self.is_batch)
            costs.append((self._ledger.cost(about, is_batch=self.is_batch), most))
        is_known = self.price is not None
        usual, longest = Spending(), Spending()
        if before is not None:
            usual, longest = before.spending(), before.spending(at_most=True)
        room = self._ledger.room(costs, before=usual)
        least = self._ledger.room(((most, most) for _, most in costs), before=longest)
        return Estimate(
            n_requests, n_known, n_requests - len(keys), usage, ceiling if is_bounded else None,
            math.fsum(cost for cost, _ in costs) if is_known else None,
            math.fsum(most for _, most in costs) if is_known and is_bounded else None,
            room if room < len(costs) else None, least if least < len(costs) else None,
        )  # fmt: skip

    def require_bound(self, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that let one answer cost any sum, before anything is begun.

        Raises:
            BudgetError: A cost is limited, and the length of an answer is not.
        """
        self._ledger.require_bound(parameters)

    def begin(self) -> None:
        """Forget what was charged under the name of this run: another one begins; kept answers stay."""
        self._ledger.begin()

    def join(self, other: Client) -> None:
        """Spend from one budget with another client: what either has spent counts against the limits of both.

        They are meant to ask in turn: what is set aside for requests under way of one is not there for the other.
        """
        self._ledger.join(other._ledger)

    def close(self) -> None:
        """Close the cache."""
        self._store.close()
