"""Say where a row leaves it in doubt which column is the reply, or what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demur.data.chats import TAKE_THE_TEXT
from demur.data.column_names import folded, may_be_a_prompt
from demur.data.columns import USER, judged_column, listed, rivals
from demur.data.likeness import is_answered_chat, is_conversation
from demur.data.nested import generated_within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demur.data.shapes import Layout

__all__ = ["prompt_doubt", "reply_doubt"]

# In instruction data the output is what a model should say; a text may be a passage.
_MAY_BE_REFERENCES = frozenset({"output", "text"})


def reply_doubt(layout: Layout, fields: Mapping[str, object]) -> str | None:
    """Say which further columns of a row may be the reply; None where there are none."""
    others = rivals(layout.columns, fields)
    if not others:
        return _doubt_within(layout, fields)
    return (
        f"{judged_column(layout.columns)!r} is judged, and {listed(list(map(repr, others)))} beside it may be the "
        f"reply; say which one is, as in {_given(response=others[0])}"
    )


def _doubt_within(layout: Layout, fields: Mapping[str, object]) -> str | None:
    """Say which further column holds replies within, where what is judged may well be the reference of an instruction.

    Beside a column that is named as a reply, such a one mostly repeats it.
    """
    judged = judged_column(layout.columns)
    if judged is None or folded(judged) not in _MAY_BE_REFERENCES:
        return None
    within = generated_within(fields, layout.columns.values())
    if within is None:
        return None
    return f"{judged!r} is judged, and {within!r} holds words of a model within; if that is the reply, {TAKE_THE_TEXT}"


def prompt_doubt(layout: Layout, fields: Mapping[str, object]) -> str | None:
    """Say which further column may hold what is answered, where there is none, or one that may be a user's name."""
    asked = layout.columns.get("prompt")
    if asked is None and (not layout.is_bare or _has_turns(layout, fields)):
        return None
    if asked is not None and folded(asked) != USER:
        return None
    other = next(
        (
            name
            for name, value in fields.items()
            if name not in layout.columns.values() and may_be_a_prompt(name, value) and not is_answered_chat(value)
        ),
        None,
    )
    if other is None:
        return None
    is_bare_reply = asked is None and layout.name != "preference"
    reply = {"response": next(iter(layout.columns.values()))} if is_bare_reply else {}
    remedy = f"give {_given(prompt=other, **reply)}"
    if isinstance(fields[other], dict | list):
        remedy = "write the request, or the messages, within it into a column of its own, as `prompt`"
    if asked is not None:
        return f"{asked!r} is taken for what is answered, and {other!r} may be it; if so, {remedy}"
    judged = f"{reply['response']!r} is" if reply else "both sides are"
    return f"{judged} judged without a prompt, which {other!r} beside it may hold; if so, {remedy}"


def _has_turns(layout: Layout, fields: Mapping[str, object]) -> bool:
    """Tell whether the sides of a pair have what they answer without a column of its own."""
    sides = [fields.get(layout.columns[side]) for side in ("chosen", "rejected") if side in layout.columns]
    return any(map(is_conversation, sides)) or not {"input", "history"}.isdisjoint(layout.columns)


def _given(**columns: str) -> str:
    return f"{' '.join(f'--field {part}={column}' for part, column in columns.items())} (fields={columns})"
