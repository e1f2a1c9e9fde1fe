"""Read the turns of a conversation that is written out as one text.

Role tokens, `<|system|>…<|user|>…<|assistant|>…`, ChatML and Llama 3 headers as the same thing, and the transcripts
of the HH data, `Human: …`, `Assistant: …`. A text is one of these only if it begins so: a reply may well quote a token.
"""

from __future__ import annotations

import re

from demur.data.messages import Message, role_of

__all__ = ["has_role_tokens", "is_answered_hh", "is_hh", "read_marked", "read_transcript", "unread_mark"]

_NAMES = "system|developer|user|human|prompter|assistant|bot|model|tool|function"
_TOKEN = re.compile(
    rf"<\|(?P<plain>{_NAMES})\|>"
    # Phi-4 ends the heading with a mark of its own.
    rf"|<\|im_start\|>(?P<chatml>{_NAMES})(?:[ \t]*\r?\n|<\|im_sep\|>)"
    rf"|<\|start_header_id\|>(?P<llama>{_NAMES})<\|end_header_id\|>"
    rf"|<\|header_start\|>(?P<llama4>{_NAMES})<\|header_end\|>"
    rf"|<\|start_of_role\|>(?P<granite>{_NAMES})<\|end_of_role\|>"
    rf"|<\|im_(?:{_NAMES})\|>(?P<kimi>{_NAMES})<\|im_middle\|>"
)
# Templates that do not say where each turn ends, or that carry no role names of ours.
_UNREAD_MARK = re.compile(
    r"\[INST\]|### Human:|<start_of_turn>|<\|START_OF_TURN_TOKEN\|>|<\|start\|>(?:system|developer|user)<\|message\|>"
    r"|GPT4 Correct User:|\[\|Human\|\]"
    r"|<\uff5c(?:begin\u2581of\u2581sentence|User)\uff5c>"
    # What a reply may begin with, too, is a transcript where the assistant's own mark follows.
    r"|(?:### Instruction:|Below is an instruction)(?=.*?\s### Response:)"
    r"|### (?:User|System):(?=.*?\s### (?:Assistant|Response):)"
    r"|(?:USER:|A chat between a curious user)(?=.*?\sASSISTANT:)"
    r"|(?i:User|Human):(?=.*?\n(?i:Assistant|AI):)",
    re.DOTALL,
)
_BEGINNING = re.compile(r"(?:\s|<s>|<bos>|\[gMASK\]|<sop>|<\|(?:begin_of_text|startoftext|endoftext)\|>)*")
_END_MARKS = ("</s>", *(f"<|{name}|>" for name in ("end", "im_end", "eot", "eot_id", "endoftext", "end_of_text")))
_HH_ANSWER = re.compile(r"\r?\n\r?\nAssistant:")
_HH_SPEAKER = re.compile(r"(?:\A\s*|\r?\n\r?\n)(?P<speaker>Human|Assistant):")


def has_role_tokens(text: str) -> bool:
    """Tell whether the text begins with a role token."""
    return _TOKEN.match(text, _beginning(text)) is not None


def unread_mark(text: str) -> str | None:
    """Return the mark that the text begins with as a transcript of a template that is not read, or None."""
    mark = _UNREAD_MARK.match(text, _beginning(text))
    return None if mark is None else mark.group()


def is_hh(text: str) -> bool:
    """Tell whether the text begins as a transcript of `Human:` and `Assistant:` does."""
    return re.match(r"\s*(?:Human|Assistant):", text) is not None


def is_answered_hh(text: str) -> bool:
    """Tell whether the text begins as such a transcript, and has a turn of the assistant's after the first."""
    return is_hh(text) and _HH_ANSWER.search(text) is not None


def read_transcript(text: str, where: str) -> tuple[Message, ...]:
    """Read a text with role tokens or HH speakers; any other text is a bare reply."""
    if not is_hh(text):
        return read_marked(text, where)
    _, *pieces = _HH_SPEAKER.split(text)
    return tuple(
        Message(role_of(speaker, where), said.strip()) for speaker, said in zip(pieces[::2], pieces[1::2], strict=True)
    )


def read_marked(text: str, where: str) -> tuple[Message, ...]:
    """Read a text with role tokens; any other text is a bare reply."""
    if not has_role_tokens(text):
        return (Message("assistant", text),)
    tokens = list(_TOKEN.finditer(text))
    ends = [*(token.start() for token in tokens[1:]), len(text)]
    return tuple(
        Message(role_of(token[str(token.lastgroup)], where), _without_end_marks(text[token.end() : end]).strip())
        for token, end in zip(tokens, ends, strict=True)
    )


def _without_end_marks(text: str) -> str:
    """Return a turn without what ends it: a pattern would try each place of a run of spaces within a reply."""
    end = len(text)
    while end:
        is_space = text[end - 1].isspace()
        length = 1 if is_space else next((len(mark) for mark in _END_MARKS if text.endswith(mark, 0, end)), 0)
        if not length:
            break
        end -= length
    return text[:end]


def _beginning(text: str) -> int:
    """Return where the text begins after what opens any text."""
    beginning = _BEGINNING.match(text)
    return 0 if beginning is None else beginning.end()
