"""Change conversations in ways that keep their labels, without a language model.

Each mutation is a pure function of a conversation and a generator: the same two give the same conversation, and one in
which there is nothing to change comes back as it was. None touches a system prompt, which may be what a refusal stands
on, nor a reply that is blank.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from numpy.random import Generator

from demur.conversation import Conversation, Turn
from demur.data.rendering import ELLIPSIS
from demur.labelers.evidence import sentences
from demur.labelers.keywords import KeywordLabeler

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "MUTATIONS",
    "Mutation",
    "apostrophes",
    "case",
    "courtesy_after",
    "courtesy_before",
    "innocent_turn",
    "markdown",
    "refusing_sentences",
    "truncation",
    "typos",
]

Mutation = Callable[[Conversation, Generator], Conversation]
"""Changes a conversation and keeps its label."""

_Change = Callable[[str, Generator], str]

_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)

# Words of five letters or more, no part of a contraction: in shorter ones a slip makes another word too easily. Latin,
# Greek and Cyrillic: where no space parts the words, each letter may be one.
_WORD = re.compile(r"(?<![\w'’])[A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff]{5,}(?![\w'’])")
_CARRIES_NEGATION = frozenset(
    {"cannot", "unable", "never", "without", "nothing", "neither", "nobody", "hardly", "except"}
)
_CHARACTERS_A_SLIP = 80
_MOST_SLIPS = 6

_TO_CURLY = re.compile(r"(?<=\w)'(?=\w)|(?<=s)'(?=\s)")
_STRAIGHTENED = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})

_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINE_MARK = re.compile(r"^(?:#{1,6}[ \t]+|[ \t]*[-*+][ \t]+(?=\S))", re.MULTILINE)
# Of more sentences, those in the middle are not told apart.
_MOST_BULLETS = 12

_REQUEST_OPENINGS = ("Hello! ", "Hi there. ", "Good morning. ", "Hey, quick one: ", "Hi, I hope you are well. ")
_REQUEST_CLOSINGS = (" Thanks!", " Thank you.", " Thanks in advance!", " Many thanks.", " Cheers!")
_REPLY_OPENINGS = (
    "Thank you for your message. ",
    "Thanks for asking. ",
    "Hello! ",
    "Hi there. ",
    "Thanks for writing. ",
)
_REPLY_CLOSINGS = (" Have a good day!", " All the best!", " Take care.", " Thank you.", " Kind regards.")
_INNOCENT_EXCHANGES = (
    ("Hello!", "Hello! What would you like to talk about?"),
    ("hi", "Hi there!"),
    ("Good evening.", "Good evening. How may I be of service?"),
    ("Hey, are you there?", "Yes, I am here."),
    ("Can we start?", "Yes, go ahead."),
    ("Testing, one two.", "Your message arrived."),
)

_LEAST_CUT = 40
_MOST_CUT = 0.3


def case(conversation: Conversation, rng: Generator) -> Conversation:
    """Write the request, the reply or both in small or in capital letters.

    The label stays: the words are the same, and a reply that shouts or mumbles declines, or delivers, what it did. Code
    is left alone: in capital letters it would no longer be what was asked.
    """
    change = (str.lower, str.upper)[rng.integers(2)]
    return _on_sides(conversation, rng, lambda text, _: _outside_code(text, change))


def typos(conversation: Conversation, rng: Generator) -> Conversation:
    """Let a letter be swapped with the next, left out or doubled, at most once in some 80 characters.

    The label stays: the slip is inside of a word of at least five letters, whose first and last letter stay, so that it
    is still read as that word. Short words, contractions and words of negation, in which a letter can turn the meaning
    (`now` and `not`, `can't` and `can`), have no slip, and neither has code.
    """
    return _on_sides(conversation, rng, _with_slips)


def apostrophes(conversation: Conversation, rng: Generator) -> Conversation:
    """Write apostrophes and quotation marks straight where they are curly, else the apostrophes curly.

    The label stays: the two are the same to a reader. Quotation marks are never made, only straightened, and code is
    left alone.
    """
    return _on_sides(conversation, rng, lambda text, _: _outside_code(text, _other_apostrophes))


def markdown(conversation: Conversation, rng: Generator) -> Conversation:
    """Set the reply's first sentence in bold or italics, its sentences as a list, or take such marks away.

    The label stays: no word changes. What would change who speaks or what counts is never used: no quotation, no code
    block, nothing struck through.
    """
    text = conversation.reply
    if not text.strip() or "```" in text:
        return conversation
    if plain := _without_marks(text):
        return _with_reply(conversation, plain)
    spans = sentences(text)
    (start, end), n_ways = spans[0], 3 if 1 < len(spans) <= _MOST_BULLETS and "\n" not in text else 2
    way = rng.integers(n_ways)
    if way == 2:  # noqa: PLR2004  # the third of three
        return _with_reply(conversation, "\n".join(f"- {text[slice(*span)]}" for span in spans))
    mark = ("**", "*")[way]
    return _with_reply(conversation, f"{text[:start]}{mark}{text[start:end]}{mark}{text[end:]}")


def truncation(conversation: Conversation, rng: Generator) -> Conversation:
    """Leave out a stretch in the middle of the reply, or of an earlier turn, and put `<|...|>` in its place.

    The label stays: of the reply, the first and the last sentence stay, and so does each sentence that refuses by the
    keyword list; of the longest stretch between such sentences at least a half stays, so that what is delivered is
    still there to see; and no more than 30 % of the reply goes. The request stays whole, since it names the kind where
    the reply gives no reason. A reply whose refusal the list cannot see is not to be truncated: `demur synth vary`
    leaves it out.
    """
    turns = conversation.turns
    asked = max((i for i, turn in enumerate(turns[:-1]) if turn.role == "user"), default=len(turns) - 1)
    places = [i for i in range(asked) if turns[i].role in ("user", "assistant")] + [len(turns) - 1]
    cuts = {i: cut for i in places if (cut := _cut(turns[i].content)) is not None}
    if not cuts:
        return conversation
    place = sorted(cuts)[rng.integers(len(cuts))]
    text, (start, end, most) = turns[place].content, cuts[place]
    size = int(rng.integers(_LEAST_CUT, most + 1))
    begin = start + int(rng.integers(end - start - size + 1))
    return _with_turn(conversation, place, f"{text[:begin]}{ELLIPSIS}{text[begin + size :]}")


def courtesy_before(conversation: Conversation, rng: Generator) -> Conversation:
    """Put a greeting or a thanks before the request or the reply.

    The label stays: a greeting asks for nothing, delivers nothing and declines nothing, so the verdict and the reason
    are those of what follows.
    """
    return _with_courtesies(conversation, rng, _REQUEST_OPENINGS, _REPLY_OPENINGS, is_before=True)


def courtesy_after(conversation: Conversation, rng: Generator) -> Conversation:
    """Put a thanks or a wish after the request or the reply.

    The label stays, as with `courtesy_before`. None of them offers or promises anything, or speaks of understanding,
    as one does after a refusal.
    """
    return _with_courtesies(conversation, rng, _REQUEST_CLOSINGS, _REPLY_CLOSINGS, is_before=False)


def innocent_turn(conversation: Conversation, rng: Generator) -> Conversation:
    """Let user and assistant greet each other before the first request.

    The label stays: the reply and its request are the same, and a greeting supplies nothing that a request may miss. A
    reply without a request stays alone.
    """
    if not conversation.reply.strip() or not any(turn.role == "user" for turn in conversation.context):
        return conversation
    asked, answered = _INNOCENT_EXCHANGES[rng.integers(len(_INNOCENT_EXCHANGES))]
    turns = conversation.turns
    first = next((i for i, turn in enumerate(turns) if turn.role != "system"), 0)
    opening = (Turn("user", asked), Turn("assistant", answered))
    return replace(conversation, turns=(*turns[:first], *opening, *turns[first:]))


MUTATIONS: Mapping[str, Mutation] = MappingProxyType(
    {
        each.__name__: each
        for each in (
            case,
            typos,
            apostrophes,
            markdown,
            truncation,
            courtesy_before,
            courtesy_after,
            innocent_turn,
        )
    }
)
"""All mutations by name."""


def refusing_sentences(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence that the keyword list would call a refusal if it were the whole reply."""
    spans = sentences(text)
    verdicts = _keywords().label([Conversation.of("", text[slice(*span)]) for span in spans])
    return [span for span, verdict in zip(spans, verdicts, strict=True) if verdict.outcome != "none"]


@cache
def _keywords() -> KeywordLabeler:
    return KeywordLabeler()


def _cut(text: str) -> tuple[int, int, int] | None:
    """Return start and end of the longest stretch between the sentences that must stay, and how much of it may go."""
    if not text.strip():
        return None
    spans = sentences(text)
    kept = {spans[0], spans[-1], *refusing_sentences(text)}
    edges = [i for i, span in enumerate(spans) if span in kept]
    # Between the first and the last sentences that are told apart there may be others: nothing there is cut.
    stretches = [
        (spans[left + 1][0], spans[right - 1][1])
        for left, right in itertools.pairwise(edges)
        if right - left > 1 and _is_gapless(text, spans[left + 1 : right])
    ]
    start, end = max(stretches, key=lambda span: span[1] - span[0], default=(0, 0))
    most = min((end - start) // 2, int(len(text) * _MOST_CUT))
    return (start, end, most) if most >= _LEAST_CUT else None


def _is_gapless(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether nothing with a letter stands between sentences."""
    return not any(re.search(r"[^\W\d_]", text[before[1] : after[0]]) for before, after in itertools.pairwise(spans))


def _on_sides(conversation: Conversation, rng: Generator, change: _Change) -> Conversation:
    """Change the last request, the reply, or both; what has nothing to change leaves the draw to the other side."""
    changed = {place: change(conversation.turns[place].content, rng) for place in _sides(conversation)}
    changed = {place: text for place, text in changed.items() if text != conversation.turns[place].content}
    if not changed:
        return conversation
    ways = [*([place] for place in changed), *([list(changed)] if len(changed) > 1 else [])]
    for place in ways[rng.integers(len(ways))]:
        conversation = _with_turn(conversation, place, changed[place])
    return conversation


def _sides(conversation: Conversation) -> list[int]:
    """Return the places of the last request and the reply; none where the reply is blank."""
    if not conversation.reply.strip():
        return []
    last = len(conversation.turns) - 1
    asked = [i for i, turn in enumerate(conversation.context) if turn.role == "user" and turn.content.strip()]
    return [*asked[-1:], last]


def _with_turn(conversation: Conversation, place: int, text: str) -> Conversation:
    turns = conversation.turns
    changed = Turn(turns[place].role, text)
    return replace(conversation, turns=(*turns[:place], changed, *turns[place + 1 :]))


def _with_reply(conversation: Conversation, text: str) -> Conversation:
    return _with_turn(conversation, len(conversation.turns) - 1, text)


def _with_courtesies(
    conversation: Conversation, rng: Generator, of_request: Sequence[str], of_reply: Sequence[str], *, is_before: bool
) -> Conversation:
    if not (sides := _sides(conversation)):
        return conversation
    place = sides[rng.integers(len(sides))]
    courtesies = of_reply if place == len(conversation.turns) - 1 else of_request
    courtesy = courtesies[int(rng.integers(len(courtesies)))]
    text = conversation.turns[place].content
    return _with_turn(conversation, place, courtesy + text.lstrip() if is_before else text.rstrip() + courtesy)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = _CODE.split(text)
    # What the pattern caught stands at the odd places.
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def _with_slips(text: str, rng: Generator) -> str:
    code = [match.span() for match in _CODE.finditer(text)]
    words = [
        match.span()
        for match in _WORD.finditer(text)
        if match.group().lower() not in _CARRIES_NEGATION
        and not any(start <= match.start() < end for start, end in code)
    ]
    n_slips = min(len(words), _MOST_SLIPS, max(1, len(text) // _CHARACTERS_A_SLIP))
    # From the back, so that the places before it stay where they are.
    for i in sorted(rng.choice(len(words), n_slips, replace=False), reverse=True) if words else ():
        start, end = words[i]
        text = text[:start] + _with_slip(text[start:end], rng) + text[end:]
    return text


def _with_slip(word: str, rng: Generator) -> str:
    i = int(rng.integers(1, len(word) - 2))
    match rng.integers(3):
        case 0:
            return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        case 1:
            return word[:i] + word[i + 1 :]
        case _:
            return word[:i] + word[i] + word[i:]


def _other_apostrophes(text: str) -> str:
    straight = text.translate(_STRAIGHTENED)
    return straight if straight != text else _TO_CURLY.sub("’", text)


def _without_marks(text: str) -> str:
    """Take away bold, headings and bullets; an empty text where there were none."""
    plain = _outside_code(text, lambda part: _LINE_MARK.sub("", _EMPHASIS.sub(r"\2", part)))
    return plain if plain != text else ""
