"""Find the sentence of a refusal that carries it: read each sentence as if it were the whole reply."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from demur.conversation import Turn
from demur.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from demur.conversation import Conversation

__all__ = ["Gate", "evidence_of", "sentences"]

# Refusals open a reply more often than they close it; what stands between is not read.
_FIRST = 12
_LAST = 4
# The gate itself reads no more of a reply than this many characters of its beginning, and as many of its end.
_READ_CHARACTERS = 8_192

_ABBREVIATIONS = "".join(rf"(?<!\b{stem})" for stem in ("Mr", "Mrs", "Ms", "Dr", "St", "vs", r"e\.g", r"i\.e"))
# Counted, not endless: on a wall of marks each one would be tried as the first of all that follow.
_END = re.compile(
    rf"{_ABBREVIATIONS}[.!?…]{{1,8}}[\"'”’»)\]*_]{{0,4}}(?=\s)"  # a mark, with what closes after it, before white space
    r"|[。！？｡．]+[」』”’）]*"  # full-width marks need no space after them
    r"|[।؟]{1,8}(?=\s)"  # Hindi and Arabic
    r"|[\r\n\u2028\u2029]+"
)
# Bullets, numbers, quotation and heading marks before a sentence are none of it.
_OPENING = re.compile(r"\s*(?:(?:[-*+•‣◦·>#]+|\(?\d{1,3}[.)])\s+)*")
_WORD = re.compile(r"\w")


class Gate(Protocol):
    """Give P(the reply refuses) for each conversation."""

    def __call__(self, conversations: Sequence[Conversation]) -> Sequence[float]:
        """Return one probability for each conversation, in order."""
        ...


def sentences(reply: str) -> list[tuple[int, int]]:
    """Return start and end of a reply's first 12 and last 4 sentences, in order, as offsets into the reply.

    A sentence ends at a closing mark before white space, at a full-width mark, or with its line; white space around
    it, bullets and numbers before it are left out, and so is what holds no letter or digit. Of a reply of more than
    16,384 characters only the first and last 8,192 are read. A reply without a letter is one sentence.

    Example:
        >>> [(start, end)] = sentences(" - No.")
        >>> start, end
        (3, 6)
    """
    if len(reply) <= 2 * _READ_CHARACTERS:
        found = list(_spans(reply, 0, len(reply)))
    else:
        middle = len(reply) - _READ_CHARACTERS
        head = itertools.islice(_spans(reply, 0, _READ_CHARACTERS), _FIRST)
        found = [*head, *list(_spans(reply, middle, len(reply)))[-_LAST:]]
    if not found:
        start = len(reply) - len(reply.lstrip())
        return [(start, max(len(reply.rstrip()), start))] if reply.strip() else []
    return found if len(found) <= _FIRST + _LAST else [*found[:_FIRST], *found[-_LAST:]]


def _spans(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    while begin < stop:
        opening = _OPENING.match(text, begin, stop)
        start = begin if opening is None else opening.end()
        mark = _END.search(text, start, stop)
        begin = stop if mark is None else mark.end()
        end = start + len(text[start:begin].rstrip())
        if _WORD.search(text, start, end):
            yield start, end


def evidence_of(refusals: Sequence[Conversation], probabilities: Sequence[float], gate: Gate) -> list[Evidence]:
    """Find the evidence of each refusal: the sentence of the highest score, of equals the first.

    The score of a sentence is the gate's P(refuses) for the same conversation with the reply reduced to that one
    sentence; the gate may leave out what comes before it, but for the ends of the request. All sentences of all
    refusals go through the gate together. A reply of a single sentence is not read again: its sentence has the score of
    the reply.

    It explains the verdict and does not prove it: the gate judged the whole reply, and a refusal that lies in what
    sentences say together, or leave out, has a sentence of the highest score like any other.

    Args:
        refusals: Conversations whose replies refuse, none of them blank.
        probabilities: P(refuses) of each, as the gate gave it for the whole reply.
        gate: Judges conversations.
    """
    spans = [sentences(conversation.reply) for conversation in refusals]
    is_single = [len(of_one) == 1 for of_one in spans]
    reduced = [
        _reduced(conversation, span)
        for conversation, of_one, single in zip(refusals, spans, is_single, strict=True)
        for span in of_one
        if not single
    ]
    scores = iter(gate(reduced) if reduced else ())
    return [
        _best(of_one, [probability] if single else list(itertools.islice(scores, len(of_one))))
        for of_one, probability, single in zip(spans, probabilities, is_single, strict=True)
    ]


def _reduced(conversation: Conversation, span: tuple[int, int]) -> Conversation:
    return replace(conversation, turns=(*conversation.context, Turn("assistant", conversation.reply[slice(*span)])))


def _best(spans: Sequence[tuple[int, int]], scores: Sequence[float]) -> Evidence:
    best = max(range(len(spans)), key=scores.__getitem__)
    return Evidence(*spans[best], float(scores[best]))
