"""Speak to a provider's Batch API: one file up, hours of waiting, one file down."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import openai

from demur.errors import EndpointError
from demur.llm.batch_files import COMPLETIONS_PATH
from demur.llm.sending import is_passing

if TYPE_CHECKING:
    from collections.abc import Callable

    from openai.types import Batch

    from demur.llm.endpoint import Endpoint

__all__ = ["BatchApi", "RejectionError"]

T = TypeVar("T")

_TOKEN = "demur"  # noqa: S105  # a field of a batch's metadata, and no secret
# A batch that is not among so many of the newest was never made.
_N_LISTED = 200
# After the first attempt to make a batch that failed; twice as long after each further one, up to the longest.
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 8.0


class RejectionError(EndpointError):
    """Say that the provider did not make a batch, and would not at another attempt."""


class BatchApi:
    """Make, find, watch and fetch batches; errors say nothing of the key."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Open a client; `close` it.

        Raises:
            EndpointError: There is no key.
        """
        self._endpoint = endpoint
        self._key = endpoint.key()
        self._client = endpoint.client()

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def upload(self, content: bytes) -> str:
        """Upload a file of requests; return the provider's id of it.

        Raises:
            EndpointError: The provider does not take it, or has no Batch API.
        """
        return self._ask(lambda: self._client.files.create(file=("demur.jsonl", content), purpose="batch").id)

    def make(self, file_id: str, token: str) -> str:
        """Make a batch of an uploaded file that carries our token; return the provider's id of it.

        An attempt whose answer was lost may have made it: it is looked for before there is another one.

        Raises:
            RejectionError: The provider does not make it.
            EndpointError: The provider was lost, or does not let us look, before it said whether it made it.
        """
        return self._ask(lambda: self._made(file_id, token), rejection=RejectionError)

    def _made(self, file_id: str, token: str) -> str:
        # The library's own attempts would make, and have billed, one batch each.
        batches = self._client.with_options(max_retries=0).batches
        n_failed = 0
        while True:
            try:
                return batches.create(
                    input_file_id=file_id,
                    endpoint=COMPLETIONS_PATH,
                    completion_window="24h",
                    metadata={_TOKEN: token},
                ).id
            except (openai.APIConnectionError, openai.APIStatusError) as error:
                failed = error
            if _is_final(failed):
                raise failed
            time.sleep(min(_PAUSE_SECONDS * 2**n_failed, _LONGEST_PAUSE_SECONDS))
            found = self.find(token)
            if found is not None:
                return found
            if n_failed == self._endpoint.max_retries:
                raise failed
            n_failed += 1

    def find(self, token: str) -> str | None:
        """Return the id of the batch that carries our token, or None where none was made.

        Raises:
            EndpointError: The provider cannot be asked.
        """
        newest = self._ask(lambda: list(islice(self._client.batches.list(limit=100), _N_LISTED)))
        ours = [batch.id for batch in newest if batch.metadata is not None and batch.metadata.get(_TOKEN) == token]
        return ours[0] if ours else None

    def look(self, batch_id: str) -> Batch | None:
        """Return how far a batch is, or None where the provider knows none of that id with our key.

        Raises:
            EndpointError: The provider cannot be asked.
        """

        def look() -> Batch | None:
            try:
                return self._client.batches.retrieve(batch_id)
            except openai.NotFoundError:
                return None

        return self._ask(look)

    def results(self, batch: Batch) -> str:
        """Download what became of a batch's requests, answers and errors, as JSON lines.

        Raises:
            EndpointError: The provider cannot be asked.
        """
        files = [file for file in (batch.output_file_id, batch.error_file_id) if file is not None]
        contents = self._ask(lambda: [self._client.files.content(file).content for file in files])
        return self._key.redacted("\n".join(content.decode("utf-8", "replace") for content in contents))

    def why_failed(self, batch: Batch) -> str:
        """Say why the provider took no request of a batch."""
        errors = batch.errors.data if batch.errors is not None and batch.errors.data is not None else []
        said = "; ".join(f"{error.code}: {error.message}" for error in errors) or "it does not say why"
        return self._key.redacted(f"{self._endpoint.url} did not take batch {batch.id}: {said}")

    def _ask(self, ask: Callable[[], T], *, rejection: type[EndpointError] = EndpointError) -> T:
        try:
            return ask()
        except openai.OpenAIError as error:
            said, is_unknown = self._key.redacted(str(error)), isinstance(error, openai.NotFoundError)
            kind = rejection if _is_final(error) else EndpointError
        # Here, and not above: the library's errors carry the request, and with it the key, so ours must not carry them.
        hint = ". It may have no Batch API; then ask without --batch" if is_unknown else ""
        message = f"{self._endpoint.url}, Batch API: {said}{hint}"
        raise kind(message)


def _is_final(error: openai.OpenAIError) -> bool:
    return isinstance(error, openai.APIStatusError) and not is_passing(error.status_code)
