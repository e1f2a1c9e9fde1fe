"""Write the lines that go up to a Batch API, and read those that come down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from demur.data.json_text import decode_json
from demur.llm.completions import read_completion
from demur.llm.exchange import Failure
from demur.llm.sending import failure_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from demur.llm.dialect import Dialect
    from demur.llm.exchange import ChatRequest, Reply

__all__ = ["COMPLETIONS_PATH", "batch_files", "read_batch_file"]

COMPLETIONS_PATH: Literal["/v1/chat/completions"] = "/v1/chat/completions"

_MAX_ROWS = 50_000
# Half of what providers take: the file is held in memory, once by us and once on its way.
_MAX_BYTES = 100_000_000
_OK, _UNAVAILABLE = 200, 500


def batch_files(
    requests: Iterable[tuple[str, ChatRequest]], *, dialect: Dialect, model: str, max_bytes: int = _MAX_BYTES
) -> Iterator[tuple[list[str], bytes]]:
    """Yield files of requests, each with the keys of its lines, as large as a Batch API takes.

    Args:
        requests: Requests by their keys, which become the `custom_id` of their lines.
        dialect: What the server understands.
        model: Name of the model.
        max_bytes: Size of a file, of which only a file of a single line may have more.
    """
    keys: list[str] = []
    lines: list[bytes] = []
    size = 0
    for key, request in requests:
        body = dialect.body(request, model=model)
        whole = {"custom_id": key, "method": "POST", "url": COMPLETIONS_PATH, "body": body}
        line = json.dumps(whole, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        if keys and (len(keys) == _MAX_ROWS or size + len(line) > max_bytes):
            yield keys, b"".join(lines)
            keys, lines, size = [], [], 0
        keys.append(key)
        lines.append(line)
        size += len(line)
    if keys:
        yield keys, b"".join(lines)


def read_batch_file(text: str) -> Iterator[tuple[str, Reply]]:
    """Yield key and reply of each line of a file of results or of errors; what is no such line is passed over."""
    # Not `splitlines`: it also breaks at U+2028, U+2029 and U+0085, which may stand bare in a string of JSON.
    for line in text.split("\n"):
        try:
            row = decode_json(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("custom_id"), str):
            yield row["custom_id"], _reply(row)


def _reply(row: dict[str, Any]) -> Reply:
    response = row.get("response")
    if not isinstance(response, dict):
        return failure_of(_UNAVAILABLE, _said(row.get("error")))
    status, body = response.get("status_code"), response.get("body")
    if status == _OK:
        return read_completion(json.dumps(body))
    said = _said(body.get("error") if isinstance(body, dict) else body)
    return failure_of(status, said) if isinstance(status, int) else Failure("provider_unavailable", said)


def _said(error: object) -> str:
    return json.dumps(error, ensure_ascii=False)
