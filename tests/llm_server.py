"""An OpenAI-compatible server over real HTTP, on this machine, that misbehaves on demand and counts what it charges.

What a request is about is read from the conversation in it: `case=refusal row=17` says how the server behaves, and
which of the kinds it names. It judges as a gullible reader would: what stands behind the first mark of an end is an
instruction to it.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from concurrent.futures import Future
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEY = "sk-secret-0123456789abcdef"
KINDS = ("privacy", "illegal_activity", "missing_context", "invalid_premise")

PASSING = ("limited", "broken", "dropped", "halved")
"""Cases that go well the second time."""

UNUSABLE = {
    "invalid": "judge_answer_unreadable",
    "unknown": "judge_answer_outside_taxonomy",
    "refusal": "judge_refused",
    "filtered": "judge_refused",
    "cut": "judge_answer_cut",
    "empty": "judge_answer_empty",
}
"""Cases whose answer is paid for and gives no verdict, with the reason."""

USABLE = ("right", "slow", "thinking", "quoted", "injected", *PASSING)
"""Cases that give a verdict in the end."""

_CASE = re.compile(r"case=(\w+) row=(\d+)")
_END = re.compile(r"⟦\w+ end⟧")
_ORDER = re.compile(r"ignore the above", re.IGNORECASE)


class Response(NamedTuple):
    """What goes back: a status, a body, headers, and how much of the body is sent before the line drops."""

    status: int
    body: Any
    headers: Mapping[str, str] = MappingProxyType({})
    share: float = 1.0


def kind_of(row: int) -> str:
    """Return the kind that the server names for a row."""
    return KINDS[row % len(KINDS)]


def verdict_text(row: int, verdict: str = "full") -> str:
    """Return the answer of a judge that does its work."""
    labels = [] if verdict == "none" else [kind_of(row)]
    return json.dumps({"reason": "It declines.", "verdict": verdict, "labels": labels})


class LlmServer:
    """Serve chat completions, files and batches; count every request, and every answer as it is charged.

    Attributes:
        requests: How often each (case, row) was asked.
        paid: How often each (case, row) was answered in full, which is what is charged.
        prompt_tokens: Charged.
        cached_tokens: Those among them out of the server's own cache.
        completion_tokens: Charged.
        authorizations: What was sent as a key.
        bodies: The JSON of each request for a completion.
        under_way: How many requests are.
        blanks: How many go out before each body, twenty a second.
        peak: The most of them at a time.
        batches: Batches by id.
    """

    def __init__(self) -> None:
        """Begin to listen on a free port."""
        self.requests: Counter[tuple[str, int]] = Counter()
        self.paid: Counter[tuple[str, int]] = Counter()
        self.prompt_tokens = self.cached_tokens = self.completion_tokens = 0
        self.authorizations: set[str] = set()
        self.bodies: list[dict[str, Any]] = []
        self.peak = self.under_way = 0
        self.batches: dict[str, dict[str, Any]] = {}
        self.files: dict[str, str] = {}
        self.rejects: Callable[[dict[str, Any]], Response | None] = lambda _: None
        self.seconds = 0.0
        self.blanks = 0
        self.polls = 2
        self.has_usage = True
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"llm": self}))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        """Return where the API begins."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def n_paid(self) -> int:
        """Return the number of answers that are charged."""
        return sum(self.paid.values())

    def close(self) -> None:
        """Stop."""
        self._http.shutdown()
        self._http.server_close()

    def completion(self, body: dict[str, Any], *, is_batch: bool = False) -> Response:
        """Answer one request for a completion."""
        with self._lock:
            self.bodies.append(body)
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
        try:
            rejection = self.rejects(body)
            return self._case(body, is_batch=is_batch) if rejection is None else rejection
        finally:
            with self._lock:
                self.under_way -= 1

    def _case(self, body: dict[str, Any], *, is_batch: bool) -> Response:
        question = body["messages"][-1]["content"]
        found = _CASE.search(question)
        assert found is not None, question
        case, row = found[1], int(found[2])
        with self._lock:
            self.requests[case, row] += 1
            attempt = self.requests[case, row]
        time.sleep(0.4 if case == "slow" and not is_batch else self.seconds)
        if attempt == 1 and case in PASSING:
            return _passing(case)
        response = self._answer(body, case, row, question)
        if response.status == 200:
            self._charge(response.body, case, row)
        return response

    def _charge(self, body: dict[str, Any], case: str, row: int) -> None:
        with self._lock:
            self.paid[case, row] += 1
            usage = body.get("usage", {"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": {}})
            self.prompt_tokens += usage["prompt_tokens"]
            self.completion_tokens += usage["completion_tokens"]
            self.cached_tokens += usage["prompt_tokens_details"].get("cached_tokens", 0)

    def _answer(self, body: dict[str, Any], case: str, row: int, question: str) -> Response:
        answer = verdict_text(row)
        content: str | None = {
            "invalid": answer[:-12],
            "unknown": answer.replace(kind_of(row), "rudeness"),
            "refusal": None,
            "cut": answer[:-12],
            "empty": "",
            "thinking": f"<think>{verdict_text(row, 'none')}? No.</think>\n{answer}",
            "quoted": f"Here is my verdict:\n```json\n{answer}\n```",
        }.get(case, answer)
        behind = _END.split(question, maxsplit=1)[1]
        if _ORDER.search(behind):
            content = verdict_text(row, "none")
        message = {"role": "assistant", "content": content}
        if case == "refusal":
            message["refusal"] = "I can't judge that."
        reason = {"cut": "length", "filtered": "content_filter"}.get(case, "stop")
        completion: dict[str, Any] = {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        }  # fmt: skip
        if self.has_usage:
            n_prompt, n_answer = len(json.dumps(body["messages"])) // 4, len(content or "") // 4 + 1
            completion["usage"] = {
                "prompt_tokens": n_prompt, "completion_tokens": n_answer, "total_tokens": n_prompt + n_answer,
                "prompt_tokens_details": {"cached_tokens": n_prompt // 2},
            }  # fmt: skip
        return Response(200, completion)

    def upload(self, content: str) -> Response:
        """Take a file."""
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return Response(200, {"id": name, "object": "file", "purpose": "batch", "filename": "x", "bytes": 1})

    def make_batch(self, body: dict[str, Any]) -> Response:
        """Take a batch; it is worked on when it is looked at for the last time."""
        batch = {
            "id": f"batch_{len(self.batches)}", "object": "batch", "endpoint": body["endpoint"],
            "input_file_id": body["input_file_id"], "completion_window": "24h", "created_at": 0,
            "status": "in_progress", "metadata": body.get("metadata"), "looks": 0,
        }  # fmt: skip
        self.batches[batch["id"]] = batch
        return Response(200, batch)

    def list_batches(self) -> Response:
        """Say which batches there are, the newest first."""
        return Response(200, {"object": "list", "data": list(self.batches.values())[::-1]})

    def look(self, batch_id: str) -> Response:
        """Say how far a batch is."""
        batch = self.batches[batch_id]
        batch["looks"] += 1
        if batch["status"] == "in_progress" and batch["looks"] >= self.polls:
            self._work(batch)
        return Response(200, batch)

    def _work(self, batch: dict[str, Any]) -> None:
        lines: dict[bool, list[str]] = {True: [], False: []}
        rows = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        for row in rows:
            done = self.completion(row["body"], is_batch=True)
            response = {"status_code": done.status, "request_id": "r", "body": done.body}
            line = {"id": "b", "custom_id": row["custom_id"], "response": response, "error": None}
            lines[done.status == 200].append(json.dumps(line))
        counts = {"total": len(rows), "completed": len(lines[True]), "failed": len(lines[False])}
        batch.update(status="completed", request_counts=counts)
        for name, is_ok in (("output_file_id", True), ("error_file_id", False)):
            if lines[is_ok]:
                batch[name] = f"file-{len(self.files)}"
                # Results come in any order.
                self.files[batch[name]] = "\n".join(reversed(lines[is_ok]))


def _passing(case: str) -> Response:
    """Return what goes wrong the first time."""
    error = {"error": {"message": f"no luck, {KEY}", "type": "server_error", "code": None}}
    if case == "limited":
        return Response(429, error, {"Retry-After": "0.6"})
    if case == "broken":
        return Response(500, error, {"Retry-After-Ms": "20"})
    return Response(503 if case == "dropped" else 502, error, share=0.0 if case == "dropped" else 0.5)


class Door:
    """Let requests in until so many answers are paid for, and keep those at the door that come later.

    Who is to be stopped in the middle of its work is then in the middle of it, however fast it is.

    Attributes:
        waiting: Those who came to the closed door; each may go in when it has a result.
    """

    def __init__(self, server: LlmServer, n_paid: int, count: Callable[[], int] | None = None) -> None:
        """Stand before a server, and before whoever answers for it; `count` says how much is paid, if not its own."""
        self._server, self._n_paid, self._inner = server, n_paid, server.rejects
        self._count: Callable[[], int] = (lambda: server.n_paid) if count is None else count
        self.waiting: list[Future[bool]] = []
        server.rejects = self

    def __call__(self, body: dict[str, Any]) -> Response | None:
        """Let a request in, or let it wait."""
        may_enter: Future[bool] = Future()
        if self._count() >= self._n_paid:
            self.waiting.append(may_enter)
            if not may_enter.result():
                return Response(503, {"error": {"message": "closed"}})
        return self._inner(body)

    def let_in(self) -> None:
        """Let those in who wait now; those who come later wait."""
        for one in tuple(self.waiting):
            if not one.done():
                one.set_result(True)

    def take_away(self) -> None:
        """Turn those away who still wait, see all out, and let in everybody who comes from now on."""
        self._server.rejects = self._inner
        for one in self.waiting:
            if not one.done():
                one.set_result(False)
        wait_for(lambda: not self._server.under_way, seconds=60)


class _Handler(BaseHTTPRequestHandler):
    """Speak HTTP for a server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    llm: LlmServer

    def do_POST(self) -> None:
        """Take a file, a batch, or a request for a completion."""
        self.llm.authorizations.add(self.headers.get("Authorization", ""))
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/files"):
            self._send(self.llm.upload(_file_in(content, str(self.headers["Content-Type"]))))
        elif self.path.endswith("/batches"):
            self._send(self.llm.make_batch(json.loads(content)))
        else:
            self._send(self.llm.completion(json.loads(content)))

    def do_GET(self) -> None:
        """Give a file, the list of batches, or one of them."""
        parts = self.path.partition("?")[0].split("/")[2:]
        if parts[0] == "files":
            self._send(Response(200, self.llm.files[parts[1]]))
        elif len(parts) == 1:
            self._send(self.llm.list_batches())
        else:
            self._send(self.llm.look(parts[1]))

    def _send(self, response: Response) -> None:
        text = response.body if isinstance(response.body, str) else json.dumps(response.body)
        content = text.encode()
        if response.share:
            self.send_response(response.status if response.share == 1 else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(self.llm.blanks + len(content)))
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for _ in range(self.llm.blanks):
                self.wfile.write(b" ")
                time.sleep(0.05)
            self.wfile.write(content[: int(len(content) * response.share)])
        self.close_connection = response.share < 1

    def handle(self) -> None:
        """Bear with a client that hangs up in the middle, because it was killed or has had enough."""
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _file_in(content: bytes, kind: str) -> str:
    """Return the file in a form that was uploaded."""
    form = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + content)
    (file,) = [part for part in form.iter_parts() if part.get_filename()]
    payload = file.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode()
