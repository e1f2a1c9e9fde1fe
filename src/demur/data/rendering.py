"""Turn a conversation into the model's text: role tokens, no newlines between, the middle left out where it is long."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Encoding, Tokenizer

    from demur.conversation import Conversation, Turn

__all__ = ["ELLIPSIS", "MAX_TOKENS", "MIN_TOKENS", "Renderer", "plain_text", "windowed"]

ELLIPSIS = "<|...|>"
MAX_TOKENS = 512
# Below it, the share of a request has no room for its role token beside the ellipsis.
MIN_TOKENS = 64

# A part is first cut by characters, so that a reply of megabytes costs no more than one of kilobytes.
_MAX_CHARACTERS = 16_384
# [CLS] and [SEP], which every text gets.
_SPECIAL_TOKENS = 2
# The reply is what is judged: it keeps this share where prompt and reply both want more room than there is,
# and the last request keeps this share of what remains, before the context.
_REPLY_SHARE = 0.6
_REQUEST_SHARE = 0.7
# Refusals open a reply more often than they close it; of the turns before a request, the last words matter most.
_HEAD_SHARE = {"earlier": 0.0, "context": 0.5, "request": 0.5, "reply": 0.6}

# What the encoder's tokenizer cannot tell from a role token: it drops case and space.
_ROLE_TOKEN = re.compile(r"<\s*\|\s*(system|user|assistant|tool)\s*\|\s*>", re.IGNORECASE)
# Of ours: others were made harmless.
_ROLE_CHARACTERS = len("<|assistant|>")


@dataclass(frozen=True, slots=True)
class _Parts:
    system: str
    earlier: str
    request: str
    reply: str

    @property
    def context(self) -> str:
        return self.system + self.earlier

    @property
    def whole(self) -> str:
        return self.context + self.request + self.reply


def plain_text(conversation: Conversation) -> str:
    """Join all turns in the field's role-token format, with nothing left out."""
    return _split(conversation).whole


def windowed(texts: Sequence[str], *, tokenizer: Tokenizer, max_tokens: int) -> list[list[int]]:
    """Tokenise texts; of one beyond the window the end is cut off, but for [SEP], which closes the window too."""
    return [_closed(encoding.ids, max_tokens) for encoding in tokenizer.encode_batch(list(texts))]


def _closed(ids: list[int], max_tokens: int) -> list[int]:
    return ids if len(ids) <= max_tokens else [*ids[: max_tokens - 1], ids[-1]]


def _split(conversation: Conversation) -> _Parts:
    """Part the text into system prompt, earlier turns, last request and reply.

    The request begins at the last user turn; where there is none, all that follows the system prompt is what is
    answered.
    """
    context = conversation.context
    first = next((i for i, turn in enumerate(context) if turn.role != "system"), len(context))
    request = max((i for i, turn in enumerate(context) if turn.role == "user"), default=first)
    return _Parts(
        _marked(context[:first]),
        _marked(context[first:request]),
        _marked(context[request:]),
        _marked(conversation.turns[-1:]),
    )


def _marked(turns: Sequence[Turn]) -> str:
    # A role token inside of what somebody wrote would forge a turn: it loses its bars.
    return "".join(f"<|{turn.role}|>" + _ROLE_TOKEN.sub(r"<\1>", _encodable(turn.content)) for turn in turns)


def _encodable(text: str) -> str:
    # Tokenizers take no lone surrogates, which JSON escapes such as "\ud83d" leave behind: each becomes "?".
    return text.encode("utf-8", "replace").decode("utf-8")


class Renderer:
    """Render conversations into texts that fit the model's window.

    Reply, last request and what comes before it each keep a share of the window, and each loses its middle, never its
    beginning or its end; `<|...|>` stands for what is left out. Of the turns between system prompt and last request,
    a system prompt that comes later among them, only the end may be wanted.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, max_tokens: int = MAX_TOKENS, earlier_tokens: int | None = None
    ) -> None:
        """Take the tokenizer that counts; `max_tokens` includes the two special tokens.

        Args:
            tokenizer: The encoder's own, with neither truncation nor padding set.
            max_tokens: The model's window.
            earlier_tokens: The most that is kept of the turns between system prompt and last request, whatever room
                there is, the ellipsis counted: of longer turns below 8 nothing; None for all that the window holds.

        Raises:
            ValueError: The window is too small to hold request and reply.
        """
        if max_tokens < MIN_TOKENS:
            message = f"max_tokens={max_tokens} leaves no room for request and reply; give at least {MIN_TOKENS}"
            raise ValueError(message)
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._earlier_tokens = earlier_tokens
        self._budget = max_tokens - _SPECIAL_TOKENS
        self._n_ellipsis = len(tokenizer.encode(ELLIPSIS, add_special_tokens=False).ids)

    def texts(self, conversations: Sequence[Conversation]) -> list[str]:
        """Return one text a conversation, each of at most `max_tokens` tokens."""
        parts = self._parts(conversations)
        texts = [part.whole for part in parts]
        encodings = self._encode(texts)
        return [
            text if len(encoding.ids) <= self._budget else self._fit(part)
            for text, part, encoding in zip(texts, parts, encodings, strict=True)
        ]

    def tokens(self, conversations: Sequence[Conversation]) -> list[list[int]]:
        """Return the ids of each conversation's text, special tokens included, at most `max_tokens` of them.

        It is what `windowed` makes of `texts`, but texts that fit, as most do, are tokenised once and not twice.
        """
        parts = self._parts(conversations)
        found = [encoding.ids for encoding in self._tokenizer.encode_batch([part.whole for part in parts])]
        longer = [place for place, ids in enumerate(found) if len(ids) > self._max_tokens]
        fitted = windowed(
            [self._fit(parts[place]) for place in longer], tokenizer=self._tokenizer, max_tokens=self._max_tokens
        )
        for place, ids in zip(longer, fitted, strict=True):
            found[place] = ids
        return found

    def _parts(self, conversations: Sequence[Conversation]) -> list[_Parts]:
        parts = [_shortened(_split(conversation)) for conversation in conversations]
        if self._earlier_tokens is None:
            return parts
        places = [place for place, part in enumerate(parts) if part.earlier]
        for place, encoding in zip(places, self._encode([parts[place].earlier for place in places]), strict=True):
            kept = self._cut(parts[place].earlier, encoding, self._earlier_tokens, "earlier")
            parts[place] = replace(parts[place], earlier=kept)
        return parts

    def _encode(self, texts: list[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch(texts, add_special_tokens=False)

    def _fit(self, parts: _Parts) -> str:
        context, request, reply = self._encode([parts.context, parts.request, parts.reply])
        n_context, n_request, n_reply = len(context.ids), len(request.ids), len(reply.ids)
        for_reply = min(n_reply, max(int(self._budget * _REPLY_SHARE), self._budget - n_context - n_request))
        rest = self._budget - for_reply
        for_request = min(n_request, max(int(rest * _REQUEST_SHARE), rest - n_context))
        return (
            self._fit_context(parts, context, rest - for_request)
            + self._cut(parts.request, request, for_request, "request")
            + self._cut(parts.reply, reply, for_reply, "reply")
        )

    def _fit_context(self, parts: _Parts, context: Encoding, budget: int) -> str:
        """Fit system prompt and earlier turns: of these the end, where no more is wanted, and half of the room."""
        if self._earlier_tokens is None or len(context.ids) <= budget:
            return self._cut(parts.context, context, budget, "context")
        system, earlier = self._encode([parts.system, parts.earlier])
        for_earlier = min(len(earlier.ids), max(budget // 2, budget - len(system.ids)))
        kept = parts.earlier
        if len(earlier.ids) > for_earlier:
            # Its beginning may be cut off already.
            kept = kept.removeprefix(ELLIPSIS)
            (encoding,) = self._encode([kept])
            kept = self._cut(kept, encoding, for_earlier, "earlier")
        return self._cut(parts.system, system, budget - for_earlier, "context") + kept

    def _cut(self, text: str, encoding: Encoding, budget: int, part: str) -> str:
        """Keep the beginning and the end of a text, or the end alone, within the budget of tokens."""
        n_tokens = len(encoding.ids)
        if n_tokens <= budget:
            return text
        room = budget - self._n_ellipsis
        if room <= 0:
            return ""
        n_head = round(room * _HEAD_SHARE[part])
        head = _word_start(encoding, n_head)
        tail = _word_end(encoding, n_tokens - (room - n_head))
        # Character offsets, not decoded tokens: case, accents and spacing stay as they were written.
        kept_head = text[: encoding.offsets[head - 1][1]] if head else ""
        kept_tail = text[_past_role(text, encoding.offsets[tail][0]) :] if tail < n_tokens else ""
        return kept_head + ELLIPSIS + kept_tail


def _shortened(parts: _Parts) -> _Parts:
    return _Parts(*(_cut_characters(part) for part in (parts.system, parts.earlier, parts.request, parts.reply)))


def _cut_characters(text: str) -> str:
    if len(text) <= _MAX_CHARACTERS:
        return text
    half = _MAX_CHARACTERS // 2
    return text[:half] + ELLIPSIS + text[-half:]


def _word_start(encoding: Encoding, token: int) -> int:
    """Step back to where the word begins: half a word would fall into other pieces when it is tokenised again."""
    words = encoding.word_ids
    while 0 < token < len(words) and words[token] == words[token - 1]:
        token -= 1
    return token


def _past_role(text: str, start: int) -> int:
    """Step over what is left of a role token that begins before: half of one says nothing of who speaks."""
    around = _ROLE_TOKEN.finditer(text, max(0, start - _ROLE_CHARACTERS), start + _ROLE_CHARACTERS)
    return next((match.end() for match in around if match.start() < start < match.end()), start)


def _word_end(encoding: Encoding, token: int) -> int:
    """Step forward to where the next word begins."""
    words = encoding.word_ids
    while 0 < token < len(words) and words[token] == words[token - 1]:
        token += 1
    return token
