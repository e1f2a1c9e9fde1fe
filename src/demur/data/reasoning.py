"""Set a reply's own thinking apart from what it says to the user.

A model that thinks "I should refuse" and then answers has not refused, so thinking is never judged. Only blocks at the
beginning of a reply are thinking: a `<think>` in the middle of prose or in code is something the reply talks about,
and so is a `</think>` between the words of a sentence.
"""

from __future__ import annotations

import re

from demur.data.json_text import decode_json

__all__ = ["joined_reasoning", "set_reasoning_apart"]

_NAMES = "think|thinking|reasoning|thought|seed:think"
_OPENING = re.compile(
    rf"\s*(?:<(?P<tag>{_NAMES})>|(?P<begin><\|begin_of_thought\|>)|(?P<bracket>\[THINK\])|(?P<wedge>◁think▷))",
    re.IGNORECASE,
)
_CLOSINGS = {"begin": r"<\|end_of_thought\|>", "bracket": r"\[/THINK\]", "wedge": "◁/think▷"}
_ORPHAN = re.compile(rf"</(?P<tag>{_NAMES})>|<\|end_of_thought\|>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_OPENING_OF = {"<|end_of_thought|>": "<|begin_of_thought|>", "[/think]": "[think]", "◁/think▷": "◁think▷"}
_AFTER_WORD = re.compile(r"[^\W\d_],?[ \t]\Z|[\"'\u201c\u2018(]\Z")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)

_HARMONY_START = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
# A header ends before the next mark: of a model that repeats its headers, each would otherwise be searched to the end
# of the text. No possessive repeats of groups, though they would say it better: Python 3.11.0 to 3.11.4 match them
# wrongly (python/cpython#106052).
_HARMONY_MESSAGE = re.compile(
    r"<\|channel\|>\s*(?P<channel>\w+)\b[^<]*(?:<(?!\|(?:message|channel|start|end)\|>)[^<]*)*<\|message\|>(?P<text>.*?)"
    r"(?=<\|(?:channel|start|end|return|call)\|>|\Z)",
    re.DOTALL,
)

# What is left of these channels where special tokens were left out as the reply was decoded: no words touch so.
_BARE_CHANNELS = re.compile(r"\s*analysis(?=\S)(?P<thinking>.*?)assistantfinal(?P<reply>.*)", re.DOTALL)


def set_reasoning_apart(text: str) -> tuple[str, str | None]:
    r"""Return the reply without its thinking, and the thinking, or None where there is none.

    A block that is never closed leaves an empty reply: it was cut while it still thought. A closing tag that nothing
    opened ends a block too, since chat templates put the opening one into the prompt; but not within a reply that is
    all of it one JSON object.

    >>> set_reasoning_apart("<think>Is this safe? Yes.</think>\n\nHere you go.")
    ('Here you go.', 'Is this safe? Yes.')
    """
    if _HARMONY_START.match(text):
        return _harmony(text)
    if bare := _BARE_CHANNELS.match(text):
        return bare["reply"].lstrip(), joined_reasoning(bare["thinking"])
    reply, blocks = _leading_blocks(text)
    orphan = None if _is_object(reply) else _orphan_end(reply)
    if orphan is not None:
        blocks.append(reply[: orphan.start()])
        reply = reply[orphan.end() :]
    if reply == text:
        return text, None
    return reply.lstrip(), joined_reasoning(*blocks)


def joined_reasoning(*texts: str | None) -> str | None:
    """Join what several blocks or fields hold, or return None where they hold nothing."""
    filled = [text.strip() for text in texts if text is not None and text.strip()]
    return "\n\n".join(filled) if filled else None


def _leading_blocks(text: str) -> tuple[str, list[str]]:
    blocks: list[str] = []
    while opening := _OPENING.match(text):
        kind = str(opening.lastgroup)
        closing = rf"</{opening['tag']}>" if kind == "tag" else _CLOSINGS[kind]
        block, *rest = re.split(closing, text[opening.end() :], maxsplit=1, flags=re.IGNORECASE)
        blocks.append(block)
        text = rest[0] if rest else ""
    return text, blocks


def _is_object(text: str) -> bool:
    """Tell whether a text is one JSON object, whose strings may hold any tag; read only where it may hold one."""
    if not text.lstrip().startswith("{") or _ORPHAN.search(text) is None:
        return False
    try:
        return isinstance(decode_json(text), dict)
    except (ValueError, RecursionError):
        return False


def _orphan_end(text: str) -> re.Match[str] | None:
    """Find the first closing tag that stands outside code and sentences and that nothing before it opened."""
    orphans = list(_ORPHAN.finditer(text))
    code = [match.span() for match in _CODE.finditer(text)] if orphans else []
    for orphan in orphans:
        tag = orphan[0].lower()
        opening = _OPENING_OF.get(tag, tag.replace("</", "<"))
        is_quoted = any(start < orphan.start() < end for start, end in code)
        if (
            not is_quoted
            and not _is_within_sentence(text, *orphan.span())
            and opening not in text[: orphan.start()].lower()
        ):
            return orphan
    return None


def _is_within_sentence(text: str, start: int, end: int) -> bool:
    """Tell whether a tag stands as a word of a sentence: after another, or in quotation marks, and followed by more.

    A model that ends its thinking begins its reply there: with a capital, on another line, or right after the tag.
    """
    after = text[end : end + 2]
    goes_on = after[:1] in tuple(".,;:?!)\"'\u201d\u2019") or (after[:1] in (" ", "\t") and after[1:].islower())
    return goes_on and _AFTER_WORD.search(text[max(0, start - 3) : start]) is not None


def _harmony(text: str) -> tuple[str, str | None]:
    """Keep the final channel of gpt-oss; its analysis, and calls in its commentary, are not said to the user."""
    messages = [(match["channel"], match["text"]) for match in _HARMONY_MESSAGE.finditer(text)]
    reply = "\n\n".join(said for channel, said in messages if channel == "final")
    return reply, joined_reasoning(*(said for channel, said in messages if channel != "final"))
