"""Read a judge's answer: a verdict where it says one, and nothing guessed where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from demur.data.json_text import json_objects
from demur.data.reasoning import set_reasoning_apart
from demur.llm.exchange import Failure
from demur.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from demur.llm.exchange import Answer, Reply
    from demur.taxonomy import Taxonomy

__all__ = ["is_without_answer", "read_verdict"]

_FAILURES = frozenset(get_args(get_type_hints(Failure)["reason"]))
_VERDICTS = tuple(outcome for outcome in get_args(Outcome) if outcome != "unscored")
# As the codebook has it: the main kind, and two more at most.
_MAX_LABELS = 3


def read_verdict(reply: Reply, taxonomy: Taxonomy) -> Verdict:
    """Return the verdict in a judge's reply, its probability unknown; unscored where there is none.

    The reasons are those of `Failure`, and `judge_refused`, `judge_answer_empty`, `judge_answer_cut`,
    `judge_answer_unreadable` (no JSON object with a verdict, several that differ, or one within a damaged one),
    `judge_answer_contradictory`
    (kinds of what is no refusal) and `judge_answer_outside_taxonomy`. A refusal without a kind is one of unnamed kind.

    >>> from demur.llm.exchange import Answer
    >>> from demur.taxonomy import Taxonomy
    >>> read_verdict(Answer('{"verdict": "maybe", "labels": []}'), Taxonomy.load()).unscored_reason
    'judge_answer_outside_taxonomy'
    """
    if isinstance(reply, Failure):
        return Verdict.unscored(reply.reason)
    if reply.is_refused:
        return Verdict.unscored("judge_refused")
    if reply.is_cut:
        return Verdict.unscored("judge_answer_cut")
    return _said(reply, taxonomy)


def is_without_answer(reason: str) -> bool:
    """Tell whether a reason for having no verdict is that the judge gave none, which it may if it is asked again.

    >>> is_without_answer("provider_unavailable"), is_without_answer("empty_reply")
    (True, False)
    """
    return reason.startswith("judge_") or reason in _FAILURES


def _said(answer: Answer, taxonomy: Taxonomy) -> Verdict:
    said, _ = set_reasoning_apart(answer.text)
    if not said.strip():
        return Verdict.unscored("judge_answer_empty")
    objects = json_objects(said, "verdict")
    if not objects or any(other != objects[0] for other in objects):
        return Verdict.unscored("judge_answer_unreadable")
    outcome, labels = _word(objects[0].get("verdict")), objects[0].get("labels")
    # A server without the schema may leave the list out where there is nothing to list.
    keys = [_word(label) for label in labels] if isinstance(labels, list) else []
    is_listed = labels is None or isinstance(labels, list)
    if outcome not in _VERDICTS or not is_listed or any(key not in taxonomy for key in keys):
        return Verdict.unscored("judge_answer_outside_taxonomy")
    if outcome == "none" and keys:
        return Verdict.unscored("judge_answer_contradictory")
    return _verdict(outcome, list(dict.fromkeys(keys))[:_MAX_LABELS], taxonomy)


def _verdict(outcome: Any, keys: list[str], taxonomy: Taxonomy) -> Verdict:  # noqa: ANN401  # a verdict, checked above
    if not keys:
        return Verdict(outcome)
    main, *further = keys
    return Verdict(outcome, category=main, group=taxonomy.group_of(main), further=tuple(further))


def _word(value: object) -> str:
    """Read a key as models write it: `Missing context` and `missing-context` are `missing_context`."""
    return "_".join(value.strip().lower().replace("-", " ").split()) if isinstance(value, str) else ""
