"""A request is said as the server understands it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demur.llm.dialect import Dialect
from demur.llm.exchange import ChatRequest, Message
from demur.llm.parameters import sent_parameters

REQUEST = ChatRequest(
    (Message("system", "Rules."), Message("user", "Question?")),
    "p",
    {"type": "object"},
    {"temperature": 0.0, "max_tokens": 9, "seed": 1},
)


def test_a_request_goes_out_in_full_at_first() -> None:
    """Messages, parameters and the schema."""
    assert Dialect().body(REQUEST, model="m") == {
        "model": "m",
        "messages": [{"role": "system", "content": "Rules."}, {"role": "user", "content": "Question?"}],
        "temperature": 0.0,
        "max_tokens": 9,
        "seed": 1,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}},
        },
    }


def test_what_a_server_does_not_know_is_left_out_or_said_otherwise() -> None:
    """No schema, no temperature, the newer name of the limit, and the system's words before the user's."""
    plain = Dialect(has_schema=False, has_temperature=False, has_system=False, limit="max_completion_tokens")
    assert plain.body(REQUEST, model="m") == {
        "model": "m",
        "messages": [{"role": "user", "content": "Rules.\n\nQuestion?"}],
        "max_completion_tokens": 9,
        "seed": 1,
    }


def test_another_form_of_answer_takes_the_place_of_the_schema_and_null_leaves_it_out() -> None:
    """Some servers break where they are given a schema, and do not say that they do."""
    form = {"type": "json_object"}
    given = sent_parameters({"max_tokens": 9}, {"response_format": form})
    assert Dialect().body(replace(REQUEST, parameters=given), model="m")["response_format"] == form
    assert "response_format" not in Dialect(has_schema=False).body(replace(REQUEST, parameters=given), model="m")
    none = sent_parameters({"max_tokens": 9}, {"response_format": None})
    assert "response_format" not in Dialect().body(replace(REQUEST, parameters=none), model="m")


@pytest.mark.parametrize(
    ("rejection", "better"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            Dialect(limit="max_completion_tokens"),
        ),
        (
            "Unsupported value: 'temperature' does not support 0.0. Only the default (1) is supported.",
            Dialect(has_temperature=False),
        ),
        ("This response_format type is unavailable now", Dialect(has_schema=False)),
        ("Invalid parameter: 'json_schema' is not supported with this model", Dialect(has_schema=False)),
        ("System role not supported", Dialect(has_system=False)),
        ("Something else is wrong", None),
    ],
)
def test_a_rejection_teaches_what_to_leave_out(rejection: str, better: Dialect | None) -> None:
    """In the words of OpenAI, DeepSeek and vLLM; what names nothing teaches nothing."""
    assert Dialect().after(rejection) == better
    if better is not None:
        assert better.after(rejection) is None
