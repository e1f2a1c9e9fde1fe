"""Say which model is asked, where, and how patiently."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from demur.errors import EndpointError
from demur.llm.keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from urllib.parse import SplitResult

    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAI

__all__ = ["OPENAI_URL", "Endpoint", "prepared"]

OPENAI_URL = "https://api.openai.com/v1"
_OPENAI_VARIABLE = "OPENAI_API_KEY"
_OF_CONNECTIONS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Say which model is asked, where, and how patiently.

    A key is read from the environment when it is needed, and kept nowhere. It goes where it is meant to go: without a
    variable named, `OPENAI_API_KEY` is sent to OpenAI, and no key to anybody else.

    Attributes:
        model: Name of the model, as the server has it.
        base_url: Where an OpenAI-compatible API begins, mostly ending in `/v1`.
        key_variable: The environment variable that holds the key.
        concurrency: Requests at a time.
        timeout_seconds: How long the answer to an attempt may keep one waiting, and twice that where its server sends
            blanks until it is there; what was sent and takes longer is not tried again.
        max_retries: Further attempts after 408, 409, 429, 5xx and lost connections, each after a longer pause, or after
            the pause that the server asks for, up to two minutes.

    Raises:
        EndpointError: The address is none, or holds what belongs into the environment; a number is out of range.
    """

    model: str
    base_url: str = OPENAI_URL
    key_variable: str | None = None
    concurrency: int = 8
    timeout_seconds: float = 120.0
    max_retries: int = 6

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        parts = _split(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"{self.base_url!r} is no address of an API; give one such as {OPENAI_URL}"
            raise EndpointError(message)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            # Not quoted: it may hold a secret.
            message = (
                f"the address of {parts.hostname!r} holds more than an address: leave out what follows a ? or # (of "
                "Azure, give the one that ends in /openai/v1); keys belong into the environment"
            )
            raise EndpointError(message)
        for name, value, least in (
            ("concurrency", self.concurrency, 1),
            ("timeout_seconds", self.timeout_seconds, 0.001),
            ("max_retries", self.max_retries, 0),
        ):
            if value < least:
                message = f"{name}={value!r} is too small; give at least {least}"
                raise EndpointError(message)

    @property
    def url(self) -> str:
        """Return the address without a slash at its end."""
        return self.base_url.rstrip("/")

    def key(self) -> ApiKey:
        """Read the key in the environment.

        Raises:
            EndpointError: The variable that should hold it is not set.
        """
        default = _OPENAI_VARIABLE if self._is_openai else None
        return ApiKey.from_environment(default if self.key_variable is None else self.key_variable)

    @property
    def _is_openai(self) -> bool:
        theirs, ours = urlsplit(OPENAI_URL), urlsplit(self.url)
        return (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc)

    def client(self) -> OpenAI:
        """Return the library's client, which asks one thing after the other.

        Raises:
            EndpointError: As `prepared`.
        """
        from openai import OpenAI

        options = self._options()
        with prepared():
            return OpenAI(**options)

    def async_client(self, wire: DefaultAsyncHttpxClient) -> AsyncOpenAI:
        """Return the library's client, which asks several things at a time, over a wire that it closes."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(**self._options(), http_client=wire)

    def _options(self) -> dict[str, Any]:
        from openai import Omit

        # The library would tell any server which of OpenAI's organisations and projects one belongs to.
        private = {} if self._is_openai else {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
        return {
            "api_key": self.key().value,
            "base_url": self.url,
            "timeout": self.timeout_seconds,
            "max_retries": self.max_retries,
            "default_headers": private,
        }


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Say in our words why no connection can be prepared: proxies and certificates are named in the environment.

    Raises:
        EndpointError: What is named there cannot be used.
    """
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        message = f"no connection can be prepared ({error}); check {', '.join(_OF_CONNECTIONS)} in the environment"
        raise EndpointError(message) from error


def _split(address: str) -> SplitResult:
    """Split an address whose host and port can be read."""
    try:
        parts = urlsplit(address)
        # Only reading it checks it.
        _ = parts.port
    except ValueError:
        # Not quoted: it may hold a secret.
        message = (
            "the address of the API cannot be read: its host is none, or its port is no number up to 65535; "
            f"give one such as {OPENAI_URL}"
        )
        raise EndpointError(message) from None
    return parts
