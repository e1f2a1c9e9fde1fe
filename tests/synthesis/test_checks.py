"""What was written is read, held to its plan, and counted; nothing is guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.llm.exchange import Answer, Failure
from demur.synthesis.answers import Judgement, Problem, read_judgement, read_row
from demur.synthesis.checks import judgement_problem, personal_data, row_problem
from demur.synthesis.plan import Cell
from demur.synthesis.recipe import Axis, SynthesisRecipe, Value
from demur.synthesis.wording import n_words, script_share, tokens
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demur.taxonomy import Taxonomy

VALUES = {
    "turns": Value("second", turns=2),
    "system": Value("role", system=True),
    "ask": Value("brief", words=(1, 4)),
    "reply": Value("short", words=(3, 6)),
    "language": Value("german", language="de"),
}
RECIPE = SynthesisRecipe(
    "r",
    1,
    input=tuple(Axis(key, (VALUES[key],)) for key in ("turns", "system", "ask", "language")),
    output=(Axis("reply", (VALUES["reply"],)),),
)
PLAIN = Cell("r-privacy-0001", "privacy", "a leaf", "full", {}, 7)
CELL = replace(PLAIN, values=VALUES)


def answer(*turns: tuple[str, Any], around: str = "{}") -> Answer:
    """Return an answer that holds messages."""
    messages = [{"role": role, "content": content} for role, content in turns]
    return Answer(around.replace("{}", json.dumps({"messages": messages})), "stop")


def talk(*contents: str, roles: Sequence[str] = ("system", "user", "assistant", "user", "assistant")) -> Conversation:
    """Build a conversation of two user turns under a system prompt."""
    found = read_row(answer(*zip(roles, contents, strict=True)))
    assert isinstance(found, Conversation)
    return found


def test_a_row_is_read_out_of_whatever_stands_around_it() -> None:
    """Thinking, prose, a code fence; texts are stripped of spaces."""
    for around in ("{}", "<think>Hm. {}</think>{}", "Gladly!\n```json\n{}\n```", "{} {}"):
        found = read_row(answer(("user", " Hi "), ("assistant", "No."), around=around))
        assert found == Conversation.of("Hi", "No.")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Failure("provider_refused", "policy"), "provider_refused"),
        (Answer("", "stop", "No."), "writer_refused"),
        (Answer("{}", "content_filter"), "writer_refused"),
        (Answer("", "SAFETY"), "writer_refused"),
        (Answer('{"messages": [', "length"), "row_cut"),
        (Answer('{"messages": [', "MAX_TOKENS"), "row_cut"),
        (Answer(" ", "stop"), "row_empty"),
        (Answer("Sure.", "stop"), "row_unreadable"),
        (Answer('{"messages": []} {"messages": [1]}', "stop"), "row_unreadable"),
        (Answer('{"messages": []}', "stop"), "row_misshapen"),
        (Answer('{"messages": "Hi"}', "stop"), "row_misshapen"),
        (Answer('{"messages": ["Hi"]}', "stop"), "row_misshapen"),
        (answer(("user", "Hi")), "row_misshapen"),
        (answer(("assistant", "Hi")), "row_misshapen"),
        (answer(("user", "Hi"), ("assistant", " ")), "row_misshapen"),
        (answer(("user", "Hi"), ("assistant", 7)), "row_misshapen"),
        (answer(("user", "Hi"), ("user", "Hi"), ("assistant", "No.")), "row_misshapen"),
        (answer(("user", "Hi"), ("system", "S"), ("assistant", "No.")), "row_misshapen"),
    ],
)
def test_what_is_no_row_has_its_reason(reply: Answer | Failure, reason: str) -> None:
    """Only where nothing came is it given up."""
    found = read_row(reply)
    assert isinstance(found, Problem)
    assert (found.reason, found.is_given_up) == (reason, isinstance(reply, Failure))


def test_a_row_that_keeps_to_its_plan_has_no_problem() -> None:
    """Two user turns under a system prompt, the lengths within their bounds."""
    assert row_problem(talk("Regeln.", "Hallo", "Ja?", "Sag es mir", "Das sage ich nicht."), CELL, RECIPE) is None
    assert row_problem(Conversation.of("Hi", "No."), PLAIN, RECIPE) is None


@pytest.mark.parametrize(
    ("contents", "reason", "detail"),
    [
        (("S", "a", "b", "c d", "e f"), "wrong_length", "reply short: the reply has 2 words"),
        (("S", "a", "b", "c d e f g", "h i j"), "wrong_length", "ask brief: the request has 5 words"),
        (("S", "a", "b", "c", "ж и з л e"), "wrong_script", "20% of the letters of the reply"),
        (("S", "me@firm.de", "b", "c", "d e f"), "personal_data", "e-mail address"),
    ],
)
def test_a_row_that_leaves_its_plan_has_its_reason(contents: Sequence[str], reason: str, detail: str) -> None:
    """The first one that is met; 1 of 5 letters is Latin."""
    found = row_problem(talk(*contents), CELL, RECIPE)
    assert found is not None
    assert found.reason == reason
    assert found.detail.startswith(detail)


def test_turns_and_system_prompt_are_those_of_the_plan() -> None:
    """Where no axis speaks of them, one user message and no system prompt."""
    long, short = talk("S", "a", "b", "c", "d e f"), Conversation.of("a", "b c d")
    for found, reason in (
        (row_problem(long, PLAIN, RECIPE), "wrong_turns"),
        (row_problem(short, CELL, RECIPE), "wrong_turns"),
        (row_problem(Conversation.of("a", "b c d", system="S"), PLAIN, RECIPE), "wrong_system"),
        (row_problem(short, replace(CELL, values={"system": VALUES["system"]}), RECIPE), "wrong_system"),
    ):
        assert found is not None
        assert found.reason == reason


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("4111 1111 1111 1111", "card number"),
        ("4111 1111 1111 1112", None),  # the check digit would be 1
        ("Order 1234567890123456789012", None),
        ("4111 1111 1111 1111 12/27", "card number"),
        ("card 4111-1111-1111-1111 737", "card number"),
        ("4111111111111111 737", "card number"),
        ("2026 4111 1111 1111 1111", "card number"),
        ("3782 822463 10005, 1234", "card number"),
        ("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30", None),
        ("219-09-9999", "identity number"),
        ("call 555-01-1234x", None),
        ("sk-abcdefghijklmnopqrstuvwx", "key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "private key"),
        ("ann@firm.co.uk", "e-mail address"),
        ("ann@example.com, bob@mail.example.org, cid@firm.example", None),
        ("ann@example.de", "e-mail address"),
        ("ann@example-bank.com", "e-mail address"),
        ("ann@example.company.com", "e-mail address"),
        ("ann@example.com.firm.de", "e-mail address"),
    ],
)
def test_private_data_are_known_by_their_form(text: str, form: str | None) -> None:
    """Numbers by their check digit, addresses by their domain."""
    assert personal_data(f"Here: {text}!") == form


def judged(taxonomy: Taxonomy, **fields: object) -> Judgement | Problem:
    """Read a judge's answer of which some fields are changed."""
    said = {"reason": "", "verdict": "full", "labels": ["privacy"], "harmful_detail": False, "language": "en"}
    return read_judgement(Answer(json.dumps(said | fields), "stop"), taxonomy)


def test_a_judgement_is_read_whole_or_not_at_all(taxonomy: Taxonomy) -> None:
    """A region is no other language; what is missing is not guessed, and says nothing against the row."""
    found = judged(taxonomy, labels=["privacy", "illegal_activity"], language="en-GB")
    assert isinstance(found, Judgement)
    assert (found.labels, found.language, found.is_harmful) == (("privacy", "illegal_activity"), "en", False)
    none = judged(taxonomy, verdict="none", labels=[])
    assert isinstance(none, Judgement)
    assert none.labels == ()
    for fields in ({"harmful_detail": None}, {"harmful_detail": "no"}, {"language": None}, {"language": "English!"}):
        assert judged(taxonomy, **fields) == Problem("judge_answer_incomplete", _met(fields), is_given_up=True)
    assert judged(taxonomy, verdict="maybe") == Problem("judge_answer_outside_taxonomy", is_given_up=True)
    failure = read_judgement(Failure("provider_unavailable", "down"), taxonomy)
    assert failure == Problem("provider_unavailable", is_given_up=True)


def _met(fields: dict[str, Any]) -> str:
    whole = {"harmful_detail": False, "language": "en"} | fields
    return f"harmful_detail {whole['harmful_detail']!r}, language {whole['language']!r}"


def test_a_row_counts_only_where_the_judge_agrees_with_the_plan() -> None:
    """On harm, verdict, main kind and language, in this order; a hard negative has no kind."""
    right = Judgement(
        Verdict("full", category="privacy", further=("illegal_activity",)), is_harmful=False, language="en"
    )
    assert judgement_problem(right, PLAIN) is None
    assert judgement_problem(replace(right, verdict=Verdict("none")), replace(PLAIN, verdict="none")) is None
    for wrong, reason in (
        (replace(right, is_harmful=True), "harmful_detail"),
        (replace(right, verdict=Verdict("partial", category="privacy")), "verdict_differs"),
        (replace(right, verdict=Verdict("full", category="illegal_activity", further=("privacy",))), "label_differs"),
        (replace(right, verdict=Verdict("full")), "label_differs"),
        (replace(right, language="de"), "language_differs"),
    ):
        found = judgement_problem(wrong, PLAIN)
        assert found is not None
        assert (found.reason, found.is_given_up) == (reason, False)


def test_words_are_counted_in_scripts_with_and_without_spaces() -> None:
    """Four words; five characters are 2.5, so three words; both together are seven."""
    assert tokens("I CAN'T: do_that") == ["i", "can't", "do", "that"]
    assert n_words("I can’t do that.") == 4
    assert n_words("我不能这样。") == 3
    assert n_words("I can’t do that. 我不能这样") == 7
    assert n_words("") == 0


def test_signs_belong_to_the_letter_before_them() -> None:
    """Seven Hindi words; of nine Thai ones, 24 letters are eight; seven Khmer ones of 14 letters; no stop is a word."""
    assert tokens("नमस्ते दुनिया।") == ["नमस्ते", "दुनिया"]
    assert n_words("मैं इसमें आपकी मदद नहीं कर सकता।") == 7
    assert tokens("ไม่ได้") == ["ไ", "ม่", "ไ", "ด้"]
    assert n_words("ฉันไม่สามารถช่วยคุณในเรื่องนี้ได้") == 8
    assert n_words("ខ្ញុំមិនអាចជួយអ្នកបានទេ។") == 7
    assert tokens("cafe\u0301 می\u200cخواهم") == ["cafe\u0301", "میخواهم"]


def test_the_script_of_a_text_is_that_of_its_letters_outside_of_code() -> None:
    """Half of six letters; none is left of code; of an unknown language nothing is said."""
    assert script_share("abc где", "ru") == 0.5
    assert script_share("abc где", "en") == 0.5
    assert script_share("我 `print`", "zh") == 1.0
    assert script_share("`code` 12!", "en") is None
    assert script_share("abc", "xx") is None
