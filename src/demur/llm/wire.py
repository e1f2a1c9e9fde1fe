"""Put requests on the wire, and know which of them may have to be paid for though no answer came."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import openai

from demur.llm.completions import error_status

__all__ = ["Unheard", "Wire"]


class Unheard(openai.OpenAIError):
    """Say that a request was sent, and that no answer came in time; the client library does not send it again."""


class Wire(openai.DefaultAsyncHttpxClient):
    """Send attempts of the client library, and none once it is closing.

    Attributes:
        is_closing: Whether no attempt, first or further, is sent any more.
        in_air: The tasks that wait for an answer to what they sent.
    """

    def __init__(self, seconds: float) -> None:
        """Open, given how long the answer to an attempt may keep one waiting."""
        super().__init__()
        self._seconds = seconds
        self.is_closing = False
        self.in_air: set[asyncio.Task[Any] | None] = set()

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # noqa: ANN401  # those of the library
        """Send one attempt.

        Raises:
            Unheard: It was sent, and the time for an answer is over.
        """
        if self.is_closing:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        self.in_air.add(task)
        try:
            # The library's own limit is one between bytes, and some servers send blanks until the answer is there. To
            # connect takes less than this, so that nothing is taken for sent that was not.
            async with asyncio.timeout(2 * self._seconds):
                response = await super().send(request, **options)
        except (httpx2.ReadTimeout, TimeoutError) as error:
            message = "no answer came in time"
            raise Unheard(message) from error
        finally:
            self.in_air.discard(task)
        if response.is_success and (status := error_status(response.text)) is not None:
            # Said so, the library tries again what may go well then, and its errors are read like those of any server.
            response.status_code = status
        if self.is_closing:
            # The library would pause before a further attempt, which is not sent any more.
            response.headers["x-should-retry"] = "false"
        return response
