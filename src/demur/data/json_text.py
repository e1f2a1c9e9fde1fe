"""Decode JSON from outside, and what stands where JSON should, so that every string in it can be encoded again."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from typing import Any

__all__ = ["decode_json", "decode_object", "decode_python", "json_objects"]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# NumPy parts the elements of an array by a line alone; within a string, Python writes the end of a line as \n.
_NUMPY_GAP = re.compile(r"\}[^\S\n]*\n\s*\{")


def decode_json(text: str) -> object:
    r"""Decode JSON, with U+FFFD for lone surrogates: `"\ud800"` is valid JSON, but no tokenizer or file takes it.

    Raises:
        ValueError: The text is not JSON, or holds a number too long to read.
        RecursionError: It is nested too deep.
    """
    value: object = json.loads(text)
    return _scrubbed(value) if "\\ud" in text or "\\uD" in text else value


def decode_python(text: str) -> object:
    """Decode a list or dict, or a NumPy array of dicts, as Python prints it, which is how a CSV of pandas holds them.

    Raises:
        ValueError: The text is no such thing.
        RecursionError: It is nested too deep.
    """
    try:
        return _scrubbed(ast.literal_eval(_NUMPY_GAP.sub("}, {", text.strip())))
    except (SyntaxError, MemoryError) as error:
        message = "not a value that Python prints"
        raise ValueError(message) from error


def decode_object(text: str) -> dict[Any, Any] | None:
    """Return the object that a text is, as JSON or as Python prints it; None where it is none."""
    beginning = text.lstrip()
    if not beginning.startswith("{"):
        return None
    found: object = None
    with contextlib.suppress(ValueError, RecursionError):
        found = (decode_python if beginning.startswith("{'") else decode_json)(text)
    return found if isinstance(found, dict) else None


def json_objects(text: str, key: str) -> list[dict[str, Any]]:
    """Return the JSON objects with a key in a text, in order, with whatever stands around them left out.

    What can be read within an object that is damaged may be a quotation of somebody else: where the key stands outside
    of it, too, none is returned.

    >>> json_objects('Gladly: {"a": 1} and {"b": {"a": 2}}', "a")
    [{'a': 1}]
    >>> json_objects('{"why": "it says "{"a": 1}"", "a": 2}', "a")
    []
    """
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    around: list[str] = []
    begun, place = 0, text.find("{")
    depth, is_within = 0, False
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            around.append(text[begun:place])
            depth = max(0, depth + around[-1].count("{") - around[-1].count("}"))
            begun = end
            if isinstance(value, dict) and key in value:
                is_within = is_within or depth > 0
                found.append({str(name): _scrubbed(each) for name, each in value.items()})
        place = text.find("{", end)
    around.append(text[begun:])
    is_elsewhere = any(re.search(rf'"{re.escape(key)}"\s*:', part) for part in around)
    return [] if is_within and is_elsewhere else found


def _scrubbed(value: object) -> object:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
    return value
