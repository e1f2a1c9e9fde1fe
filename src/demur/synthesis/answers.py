"""Read what a language model wrote or judged, and guess nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from demur.conversation import Conversation, Turn
from demur.data.json_text import json_objects
from demur.data.reasoning import set_reasoning_apart
from demur.labelers.judge_answers import read_verdict
from demur.llm.exchange import Answer, Failure

if TYPE_CHECKING:
    from demur.llm.exchange import Reply
    from demur.taxonomy import Taxonomy
    from demur.verdict import Verdict

__all__ = ["Judgement", "Problem", "read_judgement", "read_row"]

_CODE = re.compile(r"([a-z]{2,3})(?:[-_]\w+)*")


@dataclass(frozen=True, slots=True)
class Problem:
    """Say why a planned row does not count.

    Attributes:
        reason: A short code; reports count by it.
        detail: What was met.
        is_given_up: Whether there was nothing to judge, or nobody to judge it; else the row was there and is rejected.
    """

    reason: str
    detail: str = ""
    is_given_up: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """Keep what was said of a written row by a judge that does not know the plan.

    Attributes:
        verdict: What the reply is.
        is_harmful: Whether anything in it would help somebody to do harm.
        language: What the reply is written in, by ISO 639-1 code.
    """

    verdict: Verdict
    is_harmful: bool
    language: str

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the kinds, the main one first."""
        main = self.verdict.category
        return () if main is None else (main, *self.verdict.further)


def read_row(reply: Reply) -> Conversation | Problem:
    """Return the conversation in the answer of a model that was to write one; else what is wrong.

    Failures of the endpoint are given up under their own reasons. Rejected are `writer_refused`, `row_empty`,
    `row_cut`, `row_unreadable` (no JSON object with messages, or several that differ) and `row_misshapen` (turns that
    are no conversation).
    """
    if isinstance(reply, Failure):
        return Problem(reply.reason, reply.message, is_given_up=True)
    if reply.is_refused:
        return Problem("writer_refused", "" if reply.refusal is None else reply.refusal)
    if reply.is_cut:
        return Problem("row_cut")
    said, _ = set_reasoning_apart(reply.text)
    if not said.strip():
        return Problem("row_empty")
    objects = json_objects(said, "messages")
    if not objects or any(other != objects[0] for other in objects):
        return Problem("row_unreadable", said[:200])
    return _conversation(objects[0]["messages"])


def _conversation(messages: object) -> Conversation | Problem:
    """Build a conversation: at most one system message, then user and assistant in turn, the assistant last."""
    turns = [_turn(message) for message in messages] if isinstance(messages, list) else []
    if not turns or None in turns:
        return Problem("row_misshapen", "messages are no list of texts with their roles")
    sound = [turn for turn in turns if turn is not None]
    roles = [turn.role for turn in sound]
    spoken = roles[1:] if roles[0] == "system" else roles
    if not spoken or len(spoken) % 2 or spoken != ["user", "assistant"] * (len(spoken) // 2):
        return Problem("row_misshapen", f"roles {', '.join(roles)}")
    return Conversation(tuple(sound))


def _turn(message: Any) -> Turn | None:  # noqa: ANN401  # whatever a model wrote
    if not isinstance(message, dict):
        return None
    role, content = message.get("role"), message.get("content")
    if role not in ("system", "user", "assistant") or not isinstance(content, str) or not content.strip():
        return None
    return Turn(role, content.strip())


def read_judgement(reply: Reply, taxonomy: Taxonomy) -> Judgement | Problem:
    """Return what a judge says of a row; where it says nothing that can be used, the row is given up, not rejected.

    The reasons are those of `read_verdict`, and `judge_answer_incomplete` where harmful detail or the language is not
    answered.
    """
    verdict = read_verdict(reply, taxonomy)
    if verdict.unscored_reason is not None:
        return Problem(verdict.unscored_reason, is_given_up=True)
    said = json_objects(set_reasoning_apart(reply.text)[0], "verdict")[0] if isinstance(reply, Answer) else {}
    is_harmful, language = said.get("harmful_detail"), said.get("language")
    code = _CODE.fullmatch(language.strip().lower()) if isinstance(language, str) else None
    if not isinstance(is_harmful, bool) or code is None:
        met = f"harmful_detail {is_harmful!r}, language {language!r}"
        return Problem("judge_answer_incomplete", met, is_given_up=True)
    return Judgement(verdict, is_harmful, code[1])
