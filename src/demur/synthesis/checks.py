"""Hold a written row to its plan; what does not keep to it does not count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from demur.synthesis.answers import Problem
from demur.synthesis.wording import n_words, script_share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from demur.conversation import Conversation
    from demur.synthesis.answers import Judgement
    from demur.synthesis.plan import Cell
    from demur.synthesis.recipe import SynthesisRecipe

__all__ = ["judgement_problem", "personal_data", "row_problem"]

# A foreign name or a quotation may be in another script; a reply in another language is in it throughout.
_LEAST_SCRIPT = 0.3

# What must not stand in training data whoever it belongs to, by its form. It finds forms, not meanings: harmful detail
# is what the judge is asked about.
_FORMS = {
    "identity number": re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"),
    "key": re.compile(r"\b(?:sk-[\w-]{20,}|gh[pousr]_\w{30,}|AKIA[0-9A-Z]{16}|xox[abpr]-[\w-]{10,})"),
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    # Those of example.com and .example belong to nobody (RFC 2606).
    "e-mail address": re.compile(
        r"[\w.+-]{1,64}@(?!(?:[\w-]+\.){0,4}example(?:\.(?:com|net|org))?(?![\w-]|\.\w))(?:[\w-]+\.){1,4}[a-z]{2,}",
        re.IGNORECASE,
    ),
}
# Cards are written in groups of four and more; lists of small numbers would be found in too many texts.
_DIGIT_GROUPS = re.compile(r"(?<![\w-])\d{3,}(?:[ -]\d{3,})*(?!\w)")
_CARD_DIGITS = range(13, 20)


def row_problem(conversation: Conversation, cell: Cell, recipe: SynthesisRecipe) -> Problem | None:
    """Return the first way in which a row leaves its plan, or None; nobody is asked for it.

    The reasons are `wrong_turns`, `wrong_system`, `wrong_length`, `wrong_script` and `personal_data`.
    """
    found = next(_off_plan(conversation, cell, recipe), None)
    if found is not None:
        return found
    share = script_share(conversation.reply, cell.language)
    if share is not None and share < _LEAST_SCRIPT:
        return Problem(
            "wrong_script", f"{share:.0%} of the letters of the reply are in the script of {cell.language!r}"
        )
    form = next((form for turn in conversation.turns if (form := personal_data(turn.content)) is not None), None)
    return None if form is None else Problem("personal_data", form)


def _off_plan(conversation: Conversation, cell: Cell, recipe: SynthesisRecipe) -> Iterator[Problem]:
    n_turns = sum(turn.role == "user" for turn in conversation.turns)
    has_system = conversation.turns[0].role == "system"
    asked, replied = n_words(conversation.request), n_words(conversation.reply)
    planned_turns = [value.turns for value in cell.values.values() if value.turns is not None]
    planned_system = [value.system for value in cell.values.values() if value.system is not None]
    # What no axis speaks of is as the prompt has it: one user message, no system prompt.
    if n_turns not in (planned_turns or [1]):
        yield Problem("wrong_turns", f"{n_turns} user turns")
    if has_system not in (planned_system or [False]):
        yield Problem("wrong_system", "a system prompt" if has_system else "no system prompt")
    for axes, met, what in ((recipe.input, asked, "request"), (recipe.output, replied, "reply")):
        for axis in axes:
            value = cell.values.get(axis.key)
            if value is not None and value.words is not None and not value.words[0] <= met <= value.words[1]:
                yield Problem("wrong_length", f"{axis.key} {value.key}: the {what} has {met} words")


def personal_data(text: str) -> str | None:
    """Name the form of private data or of a secret that a text holds, or return None.

    >>> personal_data("Pay with 4111 1111 1111 1111.")
    'card number'
    """
    if any(len(number) in _CARD_DIGITS and _is_luhn(number) for number in _numbers(text)):
        return "card number"
    return next((form for form, pattern in _FORMS.items() if pattern.search(text)), None)


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers that groups of digits side by side may be read as: other numbers may stand beside a card's."""
    for match in _DIGIT_GROUPS.finditer(text):
        groups = re.split("[ -]", match[0])
        for first in range(len(groups)):
            number = ""
            for group in groups[first : first + _CARD_DIGITS.stop]:
                number += group
                yield number


def _is_luhn(number: str) -> bool:
    """Tell whether a number has the check digit of payment cards (ISO/IEC 7812-1, annex B)."""
    digits = [int(character) for character in number][::-1]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def judgement_problem(judgement: Judgement, cell: Cell) -> Problem | None:
    """Return how a judgement contradicts the plan, or None where they agree.

    The reasons are `harmful_detail`, `verdict_differs`, `label_differs` and `language_differs`.
    """
    verdict, main = judgement.verdict.outcome, judgement.verdict.category
    if judgement.is_harmful:
        return Problem("harmful_detail")
    if verdict != cell.verdict:
        return Problem("verdict_differs", f"planned {cell.verdict}, judged {verdict}")
    if cell.verdict != "none" and main != cell.category:
        return Problem("label_differs", f"planned {cell.category}, judged {main}")
    if judgement.language != cell.language:
        return Problem("language_differs", f"planned {cell.language}, judged {judgement.language}")
    return None
