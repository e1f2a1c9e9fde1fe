"""Know columns by their names: how they are spelt, and which are named as a model's reply."""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["folded", "is_in_words", "is_named_as_reply", "may_be_a_prompt", "may_be_a_reply", "spelling"]

_REPLIES = frozenset({"answer", "completion", "generation", "output", "prediction", "reply", "response"})
# Whose reply is none of the model's that is audited: the reference, people, a side of a pair, somebody who judges it.
_OF_OTHERS = """
    actual annotator best chosen correct crowd eval evaluation exact example expected expert final first function gold
    golden grader ground guard has human ideal incorrect is judge judgement judgment label last long moderation n num
    original other preferred previous ref reference rejected right safety score sentiment short student target test
    tool toxicity true truth user worker wrong
"""
# What mostly stands beside a question and its answer, and may be sentences.
_STANDS_BESIDE = """
    at author category choices city comment context country created date description document evidence example
    explanation hash header hint id instruction ip language metadata model name notes options passage prompt query
    question rationale reasoning reference region request side solution source split state subject subjects summary
    system tags time timestamp title topic type updated url user
"""
# What a reply may answer, whatever the name says of it before: `adversarial_prompt`, `question_text`.
_OF_PROMPTS = """
    behavior behaviour goal input inputs instruction instructions message problem prompt query question request task
"""
# What was asked may be called by these alone; with further words it is something else of theirs: `human_rating`.
_ASKERS = frozenset({"human", "user"})
# No reply answers their prompts and messages.
_NO_ASKERS = frozenset({"error", "system"})
_OTHERS, _BESIDE = frozenset(_OF_OTHERS.split()), frozenset(_STANDS_BESIDE.split())
_PROMPTS = frozenset(_OF_PROMPTS.split())
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@lru_cache(maxsize=1024)
def folded(name: str) -> str:
    """Return a name without case, and with one underscore between its words: `User Prompt` and `userPrompt` are one.

    What begins with an underscore is no usual column, and is none of these.
    """
    return name.casefold() if name.startswith("_") else "_".join(_words(name))


def spelling(name: str, columns: Collection[str]) -> str | None:
    """Return the column of that name: as it is, or else without regard to how its words are written, or None."""
    if name in columns:
        return name
    return _by_folded(frozenset(columns)).get(folded(name))


# Asked of every column of every row.
@lru_cache(maxsize=1024)
def is_named_as_reply(column: str) -> bool:
    """Tell whether a column is named as what somebody replied, and not as a reference or a judge: `gpt4_response`."""
    words = _words(column)
    if len(words) > 1 and words[-1] == "text":
        # Some say that it is one: `response_text`; but `answer_text` is mostly that of a choice, or of the reference.
        return words[-2] in _REPLIES and words[:-1] != ["answer"] and not _OTHERS & {*words}
    # One of several: `response_2`, `response_b`; but `answer_b` is mostly a choice that a question offers.
    is_counted = len(words) > 1 and words[0] != "answer" and (words[-1].isdigit() or len(words[-1]) == 1)
    *others, last = words[:-1] if is_counted else words
    # What came out, beside what was expected: so tools that test models name it.
    is_actual = [*others, last] == ["actual", "output"]
    return is_actual or ((bool(others) or is_counted) and last in _REPLIES and not _OTHERS & {*others})


def may_be_a_reply(column: str, value: object) -> bool:
    """Tell whether a column may be a reply under a name of its own: words, and not what mostly stands beside one."""
    words = _words(column)
    is_named_otherwise = words[-1] in _BESIDE or bool(_OTHERS & {*words})
    return not is_named_otherwise and is_in_words(value)


def may_be_a_prompt(column: str, value: object) -> bool:
    """Tell whether a column may hold what is replied to: words, or what has some within, and named so.

    What is known of a prompt is named otherwise.
    """
    *others, last = _words(column)
    is_named_so = (
        last in _PROMPTS or (last in _ASKERS and not others) or (last == "text" and bool(_PROMPTS & {*others}))
    )
    has_words = is_in_words(value) or (isinstance(value, dict | list) and bool(value))
    return is_named_so and not _NO_ASKERS & {*others} and has_words


def is_in_words(value: object) -> bool:
    """Tell whether a value is a text of several words."""
    return isinstance(value, str) and len(value.split()) > 1


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _BETWEEN_WORDS.split(_CAMEL.sub("_", name.strip())) if word] or [""]


# Rows of a file mostly have the same columns.
@lru_cache(maxsize=64)
def _by_folded(columns: frozenset[str]) -> Mapping[str, str]:
    """Return columns by their folded names; of several that are alike but for these, the first sorted."""
    names = sorted((name for name in columns if isinstance(name, str)), reverse=True)
    return MappingProxyType({folded(name): name for name in names})
