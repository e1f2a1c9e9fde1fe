"""Take API keys from the environment, and keep them out of all that is written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

from demur.errors import EndpointError

__all__ = ["ApiKey"]

_HIDDEN = "[key]"
# Servers that ask for no key are given a word for one: `none`, `EMPTY`, `not-needed`. Answers say such words, too, and
# a verdict of `none` must stay one. Keys of providers are longer.
_LEAST_SECRET = 16
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
            EndpointError: The variable is not set, or empty, or holds what cannot be sent as a key.
        """
        if variable is None:
            return cls(None, _NO_KEY)
        value = os.environ.get(variable, "").strip()
        if not value:
            message = (
                f"no API key: the environment variable {variable} is not set; set it, or name another one with "
                "--key-env (key_variable=…)"
            )
            raise EndpointError(message)
        if not (value.isascii() and value.isprintable()):
            message = (
                f"no API key: the environment variable {variable} holds a character that no key has (a control "
                "character, or one outside of ASCII such as '…'); set it to the key itself"
            )
            raise EndpointError(message)
        return cls(variable, value)

    def redacted(self, text: str) -> str:
        """Return a text without the key: servers quote keys in their errors. A key of less than 16 characters stays."""
        is_secret = self.variable is not None and len(self.value) >= _LEAST_SECRET
        return text.replace(self.value, _HIDDEN) if is_secret else text

    def __repr__(self) -> str:
        """Name the variable alone."""
        return f"ApiKey({self.variable!r})"
