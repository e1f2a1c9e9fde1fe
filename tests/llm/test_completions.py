"""Bodies of responses are read without believing anything of them."""

from __future__ import annotations

import json

import pytest

from demur.llm.completions import error_status, read_completion
from demur.llm.exchange import Answer, Failure, Usage

MESSAGE = {"role": "assistant", "content": "Yes."}
REFUSAL = {"role": "assistant", "content": None, "refusal": "No."}
EMPTY = {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
ZEROS = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def body(**fields: object) -> str:
    """Return a completion with some fields of its own."""
    return json.dumps({"choices": [{"message": MESSAGE, "finish_reason": "stop"}], **fields})


def test_everything_that_counts_is_read() -> None:
    """Text, reason and tokens, those of the provider's cache among them; what nobody knows is passed over."""
    details = {"cached_tokens": 7, "cache_write_tokens": 2, "audio_tokens": 0}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_tokens_details": details}
    assert read_completion(body(usage=usage, novelty=[1])) == Answer("Yes.", "stop", None, Usage(10, 7, 2, 3))


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"usage": None},
        {"usage": {}},
        {"usage": {"prompt_tokens": None, "completion_tokens": None}},
        {"usage": {"prompt_tokens": 9, "completion_tokens": None}},
        {"usage": {"prompt_tokens": 9}},
        {"usage": {"prompt_tokens": -9, "completion_tokens": 3}},
        {"usage": ZEROS},
        {"usage": {"prompt_tokens": 0, "completion_tokens": 3}},
        {"usage": {"prompt_tokens": 10**30, "completion_tokens": 3}},
        {"usage": "9 tokens"},
    ],
)
def test_a_count_that_is_missing_is_missing_and_not_zero(usage: dict[str, object]) -> None:
    """Some servers count nothing, or half of it, or say that nothing was read; the answer is there all the same."""
    assert read_completion(body(**usage)) == Answer("Yes.", "stop", None, None)


@pytest.mark.parametrize(("total", "charged"), [(5020, 4020), (1020, 20), (None, 20), (5019, 20)])
def test_thinking_that_is_counted_beside_the_answer_is_charged(total: int | None, charged: int) -> None:
    """With most providers it is within what was written, and the total says so; with xAI it is beside it."""
    usage = {
        "prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": total,
        "completion_tokens_details": {"reasoning_tokens": 4000},
    }  # fmt: skip
    assert read_completion(body(usage=usage)) == Answer("Yes.", "stop", None, Usage(1000, 0, 0, charged))


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, 429),
        ({"error": {"code": 402, "message": "no credits"}, "choices": []}, 402),
        ({"error": {"code": "server_error", "message": "oh"}}, 502),
        ({"error": {"code": "overloaded"}, "choices": [], "usage": ZEROS}, 502),
        ({"error": {"code": 503}, "choices": [EMPTY], "usage": ZEROS}, 503),
        ({"error": "busy", "choices": [EMPTY]}, 502),
        ({"error": None, "choices": [EMPTY]}, None),
        ({"choices": [{"message": MESSAGE, "finish_reason": "error", "error": {"code": 503}}]}, 503),
        ({"choices": [{"message": MESSAGE, "finish_reason": "error", "error": {"message": "?"}}]}, 502),
        ({"choices": [{"message": MESSAGE, "finish_reason": "stop", "error": None}], "error": {"code": 500}}, None),
        ({"choices": [{"message": {"content": '{"error": {"code": 500}}'}, "finish_reason": "stop"}]}, None),
        ({"choices": [{"message": REFUSAL, "finish_reason": "stop"}], "error": {"code": 500}}, None),
        ({"choices": [{"message": None, "finish_reason": "SAFETY"}], "error": {"code": "filter"}}, None),
        ({"error": {"code": 200}}, 502),
        ({"error": [1]}, 502),
        ({"error": {}}, None),
    ],
)
def test_an_error_in_a_success_has_its_status(sent: dict[str, object], status: int | None) -> None:
    """An answer is one, whatever stands in it."""
    assert error_status(json.dumps(sent)) == status


@pytest.mark.parametrize("choices", [[], [EMPTY], None])
@pytest.mark.parametrize("usage", [ZEROS, {"prompt_tokens": 10, "completion_tokens": 0}, None])
def test_an_error_in_place_of_an_answer_is_none_whatever_is_counted(choices: object, usage: object) -> None:
    """As by the Batch API, which gives no status for it; what the server said of it is kept."""
    found = read_completion(body(choices=choices, usage=usage, error={"message": "overloaded"}))
    assert found == Failure("provider_unavailable", 'the server sent an error: {"message": "overloaded"}')


def test_odd_details_are_none() -> None:
    """The tokens count without them."""
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": "all"}}
    assert read_completion(body(usage=usage)) == Answer("Yes.", "stop", None, Usage(10, 0, 0, 3))
    assert read_completion(body(usage={**usage, "prompt_tokens_details": 7})) == Answer(
        "Yes.", "stop", None, Usage(10, 0, 0, 3)
    )


def test_text_in_parts_is_put_together() -> None:
    """Without the thinking, which some servers put beside it."""
    parts = [{"type": "thinking", "thinking": [{"text": "Hm."}]}, {"type": "text", "text": "Ye"}, {"text": "s."}]
    choice = {"message": {"content": parts, "refusal": False}, "finish_reason": 0}
    assert read_completion(json.dumps({"choices": [choice]})) == Answer("Yes.")


@pytest.mark.parametrize("choices", [[], None, [{}], [{"message": "Yes."}], "Yes."])
def test_what_is_counted_is_an_answer_though_nothing_in_it_can_be_read(choices: object) -> None:
    """It is paid for."""
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    assert read_completion(body(choices=choices, usage=usage)) == Answer("", usage=Usage(10, 0, 0, 3))


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "MAX_TOKENS"])
@pytest.mark.parametrize("fields", [{}, {"message": None}, {"message": "Yes."}])
def test_an_end_that_says_why_there_is_no_message_is_an_answer(reason: str, fields: dict[str, object]) -> None:
    """A filter leaves the message out, as does a limit that thinking has used up; what just stops is none."""
    assert read_completion(body(choices=[{"finish_reason": reason, **fields}])) == Answer("", reason)
    assert isinstance(read_completion(body(choices=[{"finish_reason": "stop", **fields}])), Failure)


@pytest.mark.parametrize("odd", [{"index": 1}, {"message": None}, {"message": "Yes."}, None, "Yes."])
def test_a_choice_that_cannot_be_read_costs_itself_alone(odd: object) -> None:
    """Whichever comes first."""
    good = {"message": MESSAGE, "finish_reason": "stop"}
    for choices in ([good, odd], [odd, good]):
        assert read_completion(body(choices=choices)) == Answer("Yes.", "stop")


def test_a_refusal_is_no_text() -> None:
    """It comes in a field of its own."""
    choice = {"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}
    assert read_completion(json.dumps({"choices": [choice]})) == Answer("", "stop", "No.", None)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"text"', "<html>busy</html>", '{"choices": []}', '{"choices": [{}]}', "[" * 5000],
)
def test_what_is_no_completion_is_a_failure(text: str) -> None:
    """With the beginning of what came."""
    found = read_completion(text)
    assert isinstance(found, Failure)
    assert found.reason == "provider_unavailable"
    assert len(found.message) < 300
