"""A model that writes rows out of a bank of syllables, and judges them; it misbehaves by the row.

A row's case follows from its id, and so does what must become of it. The bank is given the plan, as a real model is by
its prompt; what it wrote under a mark it knows again when it is to judge it.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.llm_server import KEY, Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demur.synthesis.plan import Cell

SYLLABLES = tuple(consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou")

PASSING = ("limited", "broken", "dropped", "halved")
"""Cases in which the first request fails, and the client asks again by itself."""

ONCE = {
    "invalid": "row_unreadable",
    "refused": "writer_refused",
    "cut": "row_cut",
    "empty": "row_empty",
    "misshapen": "row_misshapen",
    "long": "wrong_length",
    "turns": "wrong_turns",
    "foreign": "wrong_script",
    "private": "personal_data",
    "verdict": "verdict_differs",
    "label": "label_differs",
    "harmful": "harmful_detail",
    "language": "language_differs",
    "copied": "duplicate",
    "unread": "judge_answer_unreadable",
    "mute": "judge_answer_incomplete",
}
"""Cases in which the first attempt does not count, with its reason; the second one does."""

ALWAYS = {"stubborn": "verdict_differs", "barred": "provider_refused"}
"""Cases in which no attempt counts, with the reason."""

GIVEN_UP = ("judge_answer_unreadable", "judge_answer_incomplete", "provider_refused")
NEVER_KEPT = ("invalid", "refused", "cut", "empty", "misshapen", "unread", "mute")
"""Cases with an answer that says nothing usable: it is paid for, and not kept in the cache."""

_N_PLAIN = 66
_PLAN = re.compile(r"^Plan of row (\S+), version (\d+):")
_MARK = re.compile(r"\bq([0-9a-f]{10})\b")


class Asked(NamedTuple):
    """What one request is about."""

    part: str
    id: str
    attempt: int


def number(text: str) -> int:
    """Return a number that follows from a text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def cases_of(cells: Sequence[Cell]) -> dict[str, str]:
    """Return how each row goes: three of four plainly, the others in every way there is."""
    drawn = (*PASSING, *ONCE, *ALWAYS, *["plain"] * _N_PLAIN)
    found = {cell.id: drawn[number(cell.id) % len(drawn)] for cell in cells}
    for cell in cells:
        # A hard negative has no label that could differ, and not every row has an earlier one to copy.
        is_bare = found[cell.id] == "label" and cell.verdict == "none"
        if is_bare or (found[cell.id] == "copied" and _model_of(cell, cells, found) is None):
            found[cell.id] = "plain"
    return found


def _model_of(cell: Cell, cells: Sequence[Cell], cases: Mapping[str, str]) -> Cell | None:
    """Return the first row before this one whose reply would do for it, and that is kept at once."""
    for other in cells:
        if other.id == cell.id:
            return None
        is_alike = (other.verdict, other.language) == (cell.verdict, cell.language)
        if is_alike and _bounds(other, "reply") == _bounds(cell, "reply") and cases[other.id] in ("plain", *PASSING):
            return other
    return None


class Bank:
    """Answer as a model that writes, and as one that judges; count what is asked and what is paid."""

    def __init__(self, cells: Sequence[Cell], *, is_wayward: bool = True) -> None:
        """Take the plan; without `is_wayward`, every row goes plainly."""
        self.cells = {cell.id: cell for cell in cells}
        self.cases = cases_of(cells) if is_wayward else dict.fromkeys(self.cells, "plain")
        self.requests: Counter[Asked] = Counter()
        self.paid: Counter[Asked] = Counter()
        self.models: Counter[tuple[str, str]] = Counter()
        self._written: dict[str, Asked] = {}
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Response:
        """Answer one request for a completion."""
        question = body["messages"][-1]["content"]
        planned = _PLAN.match(question)
        if planned is not None:
            asked = Asked("writer", planned[1], int(planned[2]))
        else:
            asked = self._written[_MARK.findall(question)[-1]]._replace(part="judge")
        with self._lock:
            self.requests[asked] += 1
            self.models[asked.part, body["model"]] += 1
            is_first = self.requests[asked] == 1
        case = self.cases[asked.id]
        if is_first and asked.attempt == 1 and case in PASSING:
            return _passing(case)
        if case == "barred":
            return Response(400, {"error": {"message": "content_policy violation", "type": "x", "code": None}})
        response = self._write(asked, case) if asked.part == "writer" else self._judge(asked, case)
        with self._lock:
            self.paid[asked] += 1
        return response

    def _write(self, asked: Asked, case: str) -> Response:
        cell, is_bad = self.cells[asked.id], asked.attempt == 1
        mark = _mark(asked.id, asked.attempt)
        self._written[mark[1:]] = asked
        messages = _messages(cell, mark)
        if not is_bad:
            return completion(json.dumps({"messages": messages}, ensure_ascii=False))
        if case == "misshapen":
            messages = messages[:-1]
        if case == "turns":
            messages = [*messages, *messages[-2:]]
        if case == "long":
            messages[-1]["content"] = text(cell.language, 900, mark)
        if case == "foreign":
            messages[-1]["content"] = "река " * (_bounds(cell, "reply")[0] + 8)
        if case == "private":
            messages[-2]["content"] += f" {KEY}"
        if case == "copied":
            messages[-1]["content"] = _messages(self._model(cell), _mark(self._model(cell).id, 1))[-1]["content"]
        content = json.dumps({"messages": messages}, ensure_ascii=False)
        if case in ("invalid", "cut"):
            return completion(content[:-15], "length" if case == "cut" else "stop")
        if case == "refused":
            return completion(None, refusal="I will not write that.")
        return completion("" if case == "empty" else content)

    def _model(self, cell: Cell) -> Cell:
        found = _model_of(cell, list(self.cells.values()), self.cases)
        assert found is not None
        return found

    def _judge(self, asked: Asked, case: str) -> Response:
        cell, is_bad = self.cells[asked.id], asked.attempt == 1
        verdict, label, is_harmful, language = cell.verdict, cell.category, False, cell.language
        if case == "stubborn" or (is_bad and case == "verdict"):
            verdict = "none" if verdict != "none" else "full"
        if is_bad and case == "label":
            label = next(other.category for other in self.cells.values() if other.category != label)
        is_harmful = is_bad and case == "harmful"
        language = "it" if is_bad and case == "language" else language
        said = {
            "reason": "So it is.",
            "verdict": verdict,
            "labels": [] if verdict == "none" else [label],
            "harmful_detail": is_harmful,
            "language": language,
        }
        if is_bad and case == "mute":
            del said["harmful_detail"]
        return completion("Hm." if is_bad and case == "unread" else json.dumps(said))


def text(language: str, n_words: int, seed: str) -> str:
    """Return so many words that nobody has written before, in the script of a language, in sentences."""
    if language == "zh":
        return "".join(chr(0x4E00 + number(f"{seed} {i}") % 0x5000) for i in range(2 * n_words)) + "。"
    words = ["".join(SYLLABLES[number(f"{seed} {i} {j}") % len(SYLLABLES)] for j in range(3)) for i in range(n_words)]
    return " ".join(words).capitalize() + "."


def _mark(name: str, attempt: int) -> str:
    return "q" + hashlib.sha256(f"{name} {attempt}".encode()).hexdigest()[:10]


def _bounds(cell: Cell, part: str) -> tuple[int, int]:
    key = {"request": ("request_length",), "reply": ("reply_length", "length")}[part]
    found = (cell.values[axis].words for axis in key if axis in cell.values)
    return next((words for words in found if words is not None), (1, 50))


def _messages(cell: Cell, mark: str) -> list[dict[str, str]]:
    """Return a conversation as it was planned, with a mark in the last thing that the user says."""
    turns = next((value.turns for value in cell.values.values() if value.turns is not None), 1)
    has_system = any(value.system for value in cell.values.values())
    n_request, n_reply = (max(low + 8, 14) for low, _ in (_bounds(cell, "request"), _bounds(cell, "reply")))
    messages = [{"role": "system", "content": text(cell.language, 8, f"{mark} s")}] if has_system else []
    for turn in range(turns - 1):
        messages.append({"role": "user", "content": text(cell.language, 6, f"{mark} u{turn}")})
        messages.append({"role": "assistant", "content": text(cell.language, 6, f"{mark} a{turn}")})
    messages.append({"role": "user", "content": f"{text(cell.language, n_request, f'{mark} u')} {mark}"})
    return [*messages, {"role": "assistant", "content": text(cell.language, n_reply, f"{mark} a")}]


def completion(content: str | None, reason: str = "stop", refusal: str | None = None) -> Response:
    """Return a chat completion with a count of tokens."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if refusal is not None:
        message["refusal"] = refusal
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return Response(200, {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage})


def _passing(case: str) -> Response:
    error = {"error": {"message": f"no luck, {KEY}", "type": "server_error", "code": None}}
    if case == "limited":
        return Response(429, error, {"Retry-After": "0.3"})
    if case == "broken":
        return Response(500, error, {"Retry-After-Ms": "20"})
    return Response(503 if case == "dropped" else 502, error, share=0.0 if case == "dropped" else 0.5)
