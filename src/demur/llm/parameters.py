"""Say what goes with a request beside its messages, and refuse what would make another request of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from demur.errors import EndpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMAT", "longest_answer", "sent_parameters"]

FORMAT = "response_format"
"""The parameter that holds the schema, unless something else is given for it."""

_LIMITS = ("max_tokens", "max_completion_tokens")
_NOT_SENT = {
    "model": "prices, names and reports go by the model that is named apart",
    "messages": "what is asked decides them",
    "n": "one answer is read, and each would be paid for",
    "stream": "answers are read whole",
}


def sent_parameters(defaults: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is sent beside the messages: defaults, what is given over them, and nothing that is None.

    A longest answer that is given takes the place of a default under its other name, too. Of `response_format` a None
    is kept: it says that no schema is sent.

    >>> sent_parameters({"temperature": 0.0, "max_tokens": 9}, {"temperature": None, "seed": 1})
    {'max_tokens': 9, 'seed': 1}
    >>> sent_parameters({"max_tokens": 9}, {"max_completion_tokens": 5})
    {'max_completion_tokens': 5}

    Raises:
        EndpointError: A parameter is none to give, or a longest answer is no whole number from 1 on.
    """
    ours = {} if given is None else given
    replaced = _LIMITS if any(ours.get(name) is not None for name in _LIMITS) else ()
    whole = {**{name: value for name, value in defaults.items() if name not in replaced}, **ours}
    sent = {name: value for name, value in whole.items() if value is not None or name == FORMAT}
    for name in sent.keys() & _NOT_SENT.keys():
        message = f"parameter {name}={sent[name]!r} cannot be given: {_NOT_SENT[name]}; leave it out"
        raise EndpointError(message)
    for name in sent.keys() & set(_LIMITS):
        value = sent[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            message = f"parameter {name}={value!r} is no longest answer; give a whole number of tokens from 1 on"
            raise EndpointError(message)
    return sent


def longest_answer(parameters: Mapping[str, Any]) -> int | None:
    """Return the longest answer that parameters allow, in tokens; None where they set no limit.

    Where both names are sent, it is the server that chooses: the larger counts.
    """
    return max((parameters[name] for name in _LIMITS if name in parameters), default=None)
