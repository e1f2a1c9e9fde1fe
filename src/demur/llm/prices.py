"""Know what models cost, from a dated file that people edit."""

from __future__ import annotations

import re
from dataclasses import field, replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from demur.documents import CLOSED, Text, read_document, user_path, validate
from demur.errors import PriceError

if TYPE_CHECKING:
    from demur.llm.exchange import Usage

__all__ = ["Price", "PriceList"]

_PER = 1_000_000
_DATE_AT_END = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")

_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, slots=True, config=CLOSED)
class Price:
    """Keep what a model costs, in USD for a million tokens.

    Attributes:
        input: What is read.
        output: What is written, thinking included.
        cached_input: What is read out of the provider's own cache; as `input` where nothing is said.
        cache_write: What is read and written into the provider's cache; as `input` where nothing is said.
        batch_share: What the Batch API costs, as a share of the usual price.
        read: The day on which the price was read; None for that of the list.
    """

    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None
    cache_write: _Amount | None = None
    batch_share: _Share = 1.0
    read: date | None = None

    def cost(self, usage: Usage, *, is_batch: bool = False) -> float:
        """Return what tokens cost, in USD."""
        cached = self.input if self.cached_input is None else self.cached_input
        written = self.input if self.cache_write is None else self.cache_write
        n_plain = max(usage.prompt_tokens - usage.cached_tokens - usage.written_tokens, 0)
        whole = (
            n_plain * self.input
            + usage.cached_tokens * cached
            + usage.written_tokens * written
            + usage.completion_tokens * self.output
        )
        return whole * (self.batch_share if is_batch else 1.0) / _PER

    def most(self, usage: Usage, *, is_batch: bool = False) -> float:
        """Return what tokens cost at most, in USD: the provider may write all that it reads into its cache."""
        written = replace(usage, written_tokens=usage.prompt_tokens)
        return max(self.cost(usage, is_batch=is_batch), self.cost(written, is_batch=is_batch))


@dataclass(frozen=True, slots=True, config=CLOSED)
class PriceList:
    """Hold prices by the name of the model.

    Attributes:
        dated: The day on which the list was last looked through.
        models: Prices by name; a name without a date stands for its dated versions, too.
    """

    dated: date
    models: dict[Text, Price] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path | str | None = None) -> PriceList:
        """Read a file of prices, the shipped one by default.

        Raises:
            PriceError: The file is missing or damaged; the message names the field.
        """
        source = Path(str(files("demur.llm") / "prices.yaml")) if path is None else user_path(path)
        return validate(cls, read_document(source, error=PriceError), where=str(source), error=PriceError)

    @classmethod
    def of(cls, model: str, *, input_price: float, output_price: float) -> PriceList:
        """Write the list of one model's two prices, in USD for a million tokens, dated today.

        Raises:
            PriceError: A price is negative or no number.
        """
        document = {"dated": date.today(), "models": {model: {"input": input_price, "output": output_price}}}  # noqa: DTZ011  # the user's day
        return validate(cls, document, where=f"price of {model!r}", error=PriceError)

    def find(self, model: str) -> Price | None:
        """Return the price of a model, by its name or by its name without a date at the end; None if not listed."""
        found = self.models.get(model)
        return self.models.get(_DATE_AT_END.sub("", model)) if found is None else found
