"""Take API keys from the environment, and keep them out of all that is written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

from demur.errors import EndpointError

__all__ = ["ApiKey"]

_HIDDEN = "[key]"
# Many servers on one's own machine ask for no key, and the client library insists on sending one.
_NO_KEY = "no-key"


@dataclass(frozen=True, slots=True, repr=False)
class ApiKey:
    """Hold a key, or the lack of one; it never shows itself.

    Attributes:
        variable: The environment variable that it is from; None where no key is sent.
        value: The key.
    """

    variable: str | None
    value: str

    @classmethod
    def from_environment(cls, variable: str | None) -> Self:
        """Read the key in an environment variable; None for no key.

        Raises:
            EndpointError: The variable is not set, or empty.
        """
        if variable is None:
            return cls(None, _NO_KEY)
        value = os.environ.get(variable, "").strip()
        if not value:
            message = f"no API key: the environment variable {variable} is not set; set it, or name another one"
            raise EndpointError(message)
        return cls(variable, value)

    def redacted(self, text: str) -> str:
        """Return a text without the key, wherever it comes from: servers quote keys in their errors."""
        return text if self.variable is None else text.replace(self.value, _HIDDEN)

    def __repr__(self) -> str:
        """Name the variable alone."""
        return f"ApiKey({self.variable!r})"
