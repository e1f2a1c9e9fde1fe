"""Options of commands that ask a language model, and the figures that they print."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import ProgressColumn
from rich.text import Text

from demur.cli.auditing import parse_fields
from demur.stats.numbers import with_noun

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Task

    from demur.labelers.judge import Judge
    from demur.llm.budget import Spending
    from demur.llm.client import Client, Estimate
    from demur.llm.exchange import Usage
    from demur.llm.prices import PriceList
    from demur.taxonomy import Taxonomy

__all__ = [
    "Asking",
    "BaseUrl",
    "Batch",
    "CacheFile",
    "Concurrency",
    "KeyVariable",
    "MaxCost",
    "MaxRows",
    "ModelName",
    "Parameters",
    "PollSeconds",
    "PriceFile",
    "PricePair",
    "Prompt",
    "PromptName",
    "Retries",
    "SpentColumn",
    "TimeoutSeconds",
    "cost_line",
    "estimate_lines",
    "parse_parameters",
    "read_prices",
    "spending_line",
]


class Prompt(StrEnum):
    """Name what the model is told."""

    full = "full"
    short = "short"


PromptName = Annotated[Prompt, typer.Option(help="short: definitions. full: boundaries and decided hard cases, too.")]
ModelName = Annotated[str, typer.Option("--model", help="Name of the model, as the server has it.")]
BaseUrl = Annotated[
    str,
    typer.Option("--base-url", envvar="OPENAI_BASE_URL", help="Where an OpenAI-compatible API begins."),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        "--key-env",
        help="Environment variable that holds the key; OPENAI_API_KEY at OpenAI, and no key elsewhere, by default.",
    ),
]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, help="Requests at a time.")]
TimeoutSeconds = Annotated[
    float,
    typer.Option(
        "--timeout",
        min=1,
        help="Seconds to wait for an answer, and twice that where the server sends blanks meanwhile; a request that "
        "takes longer is charged, not repeated.",
    ),
]
Retries = Annotated[int, typer.Option("--retries", min=0, help="Further attempts after 429, 5xx and lost connections.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="Stop before more USD than that are spent.")]
MaxRows = Annotated[
    int | None,
    typer.Option(
        "--max-rows",
        min=0,
        help="Stop after paying for so many replies. judge and evaluate give no result then, benchmark measures what "
        "there is; with a larger limit, nothing is paid for twice.",
    ),
]
PriceFile = Annotated[Path | None, typer.Option("--prices", help="File of prices (YAML); the shipped one by default.")]
PricePair = Annotated[
    str | None, typer.Option("--price", help="INPUT,OUTPUT: what the model costs, in USD for a million tokens.")
]
CacheFile = Annotated[
    Path | None,
    typer.Option("--cache", envvar="DEMUR_CACHE", help="File of answers; in the user's folder for caches by default."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter", help="What is sent beside the messages, as name=value (reasoning_effort=low). Repeatable."
    ),
]
Batch = Annotated[
    bool, typer.Option("--batch", help="Ask models by the provider's Batch API: cheaper, and hours later.")
]
PollSeconds = Annotated[float, typer.Option("--poll", min=0.01, help="Seconds between two looks at a batch.")]


@dataclass(frozen=True, slots=True)
class Asking:
    """Keep how language models are asked, as the options say."""

    base_url: str
    key_variable: str | None
    prompt: Prompt
    parameter: list[str] | None
    max_cost: float | None
    max_rows: int | None
    prices: Path | None
    price: str | None
    is_batch: bool
    poll_seconds: float
    concurrency: int
    timeout_seconds: float
    retries: int
    cache: Path | None

    def open(self, model: str, taxonomy: Taxonomy, *, tell: Callable[[str], None], run: str | None = None) -> Judge:
        """Open the judge that a model makes, and say what it is and costs.

        Args:
            model: Name of the model, as the server has it.
            taxonomy: What is judged by.
            tell: Told what somebody who waits would want to know.
            run: Name under which spending adds up from one process to the next.
        """
        from demur.labelers.judge import Judge
        from demur.llm.budget import Budget
        from demur.llm.client import Client
        from demur.llm.endpoint import Endpoint

        client = Client(
            Endpoint(model, self.base_url, self.key_variable, self.concurrency, self.timeout_seconds, self.retries),
            cache=self.cache, prices=read_prices(model, self.prices, self.price),
            budget=Budget(self.max_cost, self.max_rows), run=run, is_batch=self.is_batch,
            poll_seconds=self.poll_seconds, tell=tell,
        )  # fmt: skip
        opened = Judge(client, taxonomy=taxonomy, prompt=self.prompt.value, parameters=parse_parameters(self.parameter))
        tell(f"judge: {model} at {client.endpoint.url}, prompt {opened.prompt.name}; {cost_line(client)}")
        return opened


def parse_parameters(pairs: list[str] | None) -> dict[str, Any]:
    """Read parameters: JSON where the value is some, else a string; `null` leaves a parameter out."""
    return {name: _value(text) for name, text in parse_fields(pairs, "--parameter", "reasoning_effort=low").items()}


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        message = f"{text} is no number that JSON has; give a finite one"
        raise typer.BadParameter(message, param_hint="--parameter") from error
    return value


def read_prices(model: str, file: Path | None, pair: str | None) -> PriceList:
    """Read what the model costs from what the options give.

    Raises:
        BadParameter: The pair is not of two numbers.
        PriceError: The file is missing or damaged, or a price is negative.
    """
    from demur.llm.prices import PriceList

    if pair is None:
        return PriceList.load(file)
    try:
        input_price, output_price = (float(part) for part in pair.split(","))
    except ValueError:
        message = f"{pair!r} is not two prices; write INPUT,OUTPUT as in 0.15,0.60"
        raise typer.BadParameter(message, param_hint="--price") from None
    return PriceList.of(model, input_price=input_price, output_price=output_price)


class SpentColumn(ProgressColumn):
    """Show what has been paid so far."""

    def __init__(self, client: Client) -> None:
        """Take the client that pays."""
        super().__init__()
        self._client = client

    def render(self, task: Task) -> Text:
        """Return the sum, as it is now."""
        del task
        spending = self._client.spending
        return Text(f"{spending.cost:.4f} USD" if spending.is_cost_known else f"{spending.answers:,} paid for")


def cost_line(client: Client, *, option: str = "--price") -> str:
    """Say what prices are counted with, or by which option they are given."""
    model = client.endpoint.model
    price = client.price
    if price is None:
        return (
            f"cost unknown: {model!r} is not in the prices of {client.prices.dated}; "
            f"give {option} INPUT,OUTPUT (USD for a million tokens) or --prices FILE to count it"
        )
    read = client.prices.dated if price.read is None else price.read
    share = f", {price.batch_share:.0%} of that by the Batch API" if client.is_batch else ""
    return f"prices of {read}: {price.input:g} USD in, {price.output:g} USD out for a million tokens{share}"


def spending_line(spending: Spending) -> str:
    """Say what was asked and paid."""
    usage = spending.usage
    counts = [
        f"{spending.answers:,} answers paid for",
        *([f"{spending.unusable:,} of them without a verdict"] if spending.unusable else []),
        *([f"{spending.uncounted:,} of them without a count of tokens"] if spending.uncounted else []),
        *([f"{spending.failures:,} requests failed"] if spending.failures else []),
        f"{spending.reused:,} from the cache",
    ]
    tokens = f"{usage.prompt_tokens:,} tokens in ({usage.cached_tokens:,} cached), {usage.completion_tokens:,} out"
    cost = _dollars(spending.cost if spending.is_cost_known else None)
    if spending.uncounted_cost > 0:
        cost += f", and up to {_dollars(spending.uncounted_cost)} for what came without a count"
    elif spending.is_cost_known and math.isnan(spending.uncounted_cost):
        cost += ", and an unknown sum for what came without a count"
    return f"{', '.join(counts)}; {tokens}; {cost}"


def estimate_lines(found: Estimate, *, n_blank: int, n_broken: int) -> list[str]:
    """Say what a run would come to."""
    aside = [
        *([f"{found.known:,} in the cache"] if found.known else []),
        *([f"{found.repeated:,} repeated"] if found.repeated else []),
        *([f"{n_blank:,} empty"] if n_blank else []),
        *([f"{n_broken:,} unreadable"] if n_broken else []),
    ]
    usage, ceiling = found.usage, found.ceiling
    about = f"about {usage.prompt_tokens:,} in and {usage.completion_tokens:,} out"
    replies = with_noun(found.requests + n_blank + n_broken, "reply", "replies")
    return [
        f"{replies}: {', '.join([f'{found.asked:,} to ask', *aside])}",
        f"tokens: {about}; {_at_most(ceiling)}",
        _cost_of(found),
        *_stop(found),
    ]


def _cost_of(found: Estimate) -> str:
    if found.cost is None:
        return "cost: not known, for want of a price; give --price INPUT,OUTPUT or --prices FILE to count it"
    most = "no bound" if found.ceiling_cost is None else f"at most {_dollars(found.ceiling_cost)}"
    return f"cost: about {_dollars(found.cost)}, {most}"


def _at_most(ceiling: Usage | None) -> str:
    if ceiling is None:
        return "no bound, for want of max_tokens or max_completion_tokens"
    return f"at most {ceiling.prompt_tokens:,} and {ceiling.completion_tokens:,}"


def _stop(found: Estimate) -> list[str]:
    """Say where the budget would stop it; nothing where it would not."""
    if found.least_room is None:
        return []
    if found.room is None:
        return [f"budget: holds for all, if answers are of usual length; at worst it stops after {found.least_room:,}"]
    least = "" if found.room == found.least_room else f", and after {found.least_room:,} at worst"
    about = "" if found.room == found.least_room else "about "
    return [f"budget: stops after {about}{found.room:,} of {with_noun(found.asked, 'answer')}{least}"]


def _dollars(cost: float | None) -> str:
    return "cost unknown" if cost is None else f"{cost:,.4f} USD"
