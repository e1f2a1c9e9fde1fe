"""List the layouts: which parts each has, the columns that they go by, and what their values look like.

To add a layout, add a shape to `SHAPES`, and its reading to `chats`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from demur.data import chats, likeness
from demur.data.column_names import folded, is_in_words, is_named_as_reply, may_be_a_reply, spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from demur.data.chats import Spoken, Values

__all__ = [
    "CHATS",
    "REFERENCE",
    "REPLIES",
    "SHAPES",
    "USER",
    "Column",
    "Shape",
    "judged_column",
    "listed",
    "reply_column",
    "rivals",
    "several_replies",
]

CHATS = ("messages", "conversation", "conversations", "chat", "dialog", "dialogue")
_KEPT_CHATS = (*CHATS, "contents", "chat_messages")
_TEXTS = ("text", "transcript", "conversation", "dialogue", "dialog", "chat", "messages", "content")
_PROMPTS = ("prompt", "question", "query", "instruction", "request", "user_prompt")
# Names that say less: a number under them is a label, as of whether a human wrote it.
_FURTHER_PROMPTS = (
    *("user_input", "user_message", "user_query", "human", "problem", "goal", "inputs", "input_text"),
    # As sets of attacks have it: what was sent, before what is behind it.
    *("adversarial_prompt", "jailbreak_prompt", "test_case", "forbidden_prompt"),
)
USER = "user"
"""What a user said, or the name of who asked."""
# What is asked, or what an instruction speaks of.
_INPUT = "input"
# Where there is a prompt, these hold something else.
_PROMPTS_ONLY_ALONE = frozenset({USER, _INPUT})
_OF_MODELS = (
    *(f"model_{noun}" for noun in ("output", "response", "answer", "reply", "completion", "generation")),
    "generation",
    *(f"generated_{noun}" for noun in ("text", "response", "answer", "output")),
)
# A prediction may be that of a classifier, where another column is the reply.
_RESPONSES = (*_OF_MODELS, "response", "completion", "output", "reply", "assistant", "prediction", "output_text")
# What else a reply may be called, and other things as well: it is judged only where somebody says so.
_MAY_BE_RESPONSES = ("generated", "predicted", "pred", "assistant_message", "bot")
# An answer beside another reply is mostly the reference that the reply is compared with.
REFERENCE = "answer"
_COLUMNS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Column:
    """Say which columns a part goes by, and what its value looks like.

    Attributes:
        names: The names, the likeliest first; case, and what stands between words, do not count.
        fits: Tells whether a value looks like the part.
        is_like: Tells whether a name that is not listed will do, where it is the only such one; None where none does.
        last: Names that are less likely than such a one.
        otherwise: Where to look if none of these fits.
    """

    names: tuple[str, ...]
    fits: Callable[[object], bool]
    is_like: Callable[[str], bool] | None = None
    last: tuple[str, ...] = ()
    otherwise: Column | None = None

    def among(self, columns: Collection[str]) -> Column:
        """Return this with no names but those of columns that there are."""
        listed = {spelling(name, columns) for name in (*self.names, *self.last)}
        alike = [] if self.is_like is None else [name for name in columns if name not in listed and self.is_like(name)]
        names = (*self.names, *(alike if len(alike) == 1 else ()), *self.last)
        there = tuple(name for name in names if spelling(name, columns) is not None)
        rest = None if self.otherwise is None else self.otherwise.among(columns)
        return Column(there, self.fits, otherwise=rest) if there or rest is None else rest

    def find(self, fields: Mapping[str, object], taken: Collection[str], *, by_value: bool) -> str | None:
        """Return the column of a row that the part goes by, or None.

        Args:
            fields: The row.
            taken: Columns that are other parts already.
            by_value: Whether the column's value must look like the part, too.
        """
        spelt = (spelling(name, fields) for name in (*self.names, *self.last))
        free = [name for name in spelt if name is not None and name not in taken]
        fitting = [name for name in free if not by_value or self.fits(fields[name])]
        if not fitting and self.otherwise is not None:
            return self.otherwise.find(fields, taken, by_value=by_value)
        # A number may be what was said, but a text beside it is likelier: the number may be a score.
        return next((name for name in fitting if not likeness.is_number(fields[name])), next(iter(fitting), None))


@dataclass(frozen=True)
class Shape:
    """Say what a layout needs and takes, and how it is read.

    Attributes:
        name: What `--format` calls it; several shapes of one name are tried in order.
        needs: The parts that must be there.
        read: Turns the values of these parts into what was said.
        takes: The parts that may be there.
    """

    name: str
    needs: Mapping[str, Column]
    read: Callable[[Values, str], list[Spoken]]
    takes: Mapping[str, Column] = field(default_factory=dict)

    @cached_property
    def parts(self) -> Mapping[str, Column]:
        """Return all parts, those that it needs first."""
        return {**self.needs, **self.takes}

    def narrowed(self, columns: Collection[str], given: Collection[str]) -> Shape | None:
        """Return this shape with no names but those of columns that there are, or None where a needed part has none.

        Args:
            columns: The columns of a row.
            given: Parts whose columns are given, whatever these are called.
        """
        needs = {part: column.among(columns) for part, column in self.needs.items()}
        takes = {part: column.among(columns) for part, column in self.takes.items()}
        if not all(column.names or part in given for part, column in needs.items()):
            return None
        return replace(
            self, needs=needs, takes={part: takes[part] for part in takes if takes[part].names or part in given}
        )

    def fixed(self, given: Mapping[str, str]) -> Shape:
        """Return this shape with no names but those that are given, for the parts that are."""
        if not given:
            return self
        needs, takes = (
            {part: Column((given[part],), column.fits) if part in given else column for part, column in parts.items()}
            for parts in (self.needs, self.takes)
        )
        return replace(self, needs=needs, takes=takes)

    def bind(self, fields: Mapping[str, object], given: Mapping[str, str], *, by_value: bool) -> dict[str, str] | None:
        """Find a column for each part, or return None where one that is needed has none.

        Args:
            fields: The row whose columns are looked at.
            given: Columns by part that are taken before all others.
            by_value: Whether a column's value must look like the part, too.
        """
        if not given.keys() <= self.parts.keys():
            return None
        found: dict[str, str] = {}
        taken = [name for name in (spelling(each, fields) for each in given.values()) if name is not None]
        for part, column in self.fixed(given).parts.items():
            name = column.find(fields, () if part in given else [*taken, *found.values()], by_value=by_value)
            if name is not None:
                found[part] = name
            elif part in self.needs:
                return None
        return found

    def completed(self, columns: Mapping[str, str], fields: Mapping[str, object]) -> dict[str, str]:
        """Return the columns with one that holds something for each part around the reply for which there is none.

        The first row may not have had it, or a merged table has it elsewhere. A reply is never sought elsewhere: null
        may be what the model did not say, and a text beside it what it should have said.
        """
        found = dict(columns)
        filled = {name: value for name, value in fields.items() if not likeness.is_nothing(value)}
        for part, column in self.parts.items():
            if found.get(part) not in filled and (part in self.takes or part == "prompt"):
                among = _that_ask(filled) if part == "prompt" else filled
                name = column.find(among, found.values(), by_value=True)
                if name is not None:
                    found[part] = name
        return found


def _that_ask(filled: Mapping[str, object]) -> dict[str, object]:
    """Return the columns of a row that may hold its prompt where the one of the first row does not."""
    return {
        name: value
        for name, value in filled.items()
        if folded(name) not in _PROMPTS_ONLY_ALONE and not likeness.is_number(value)
    }


def _either(first: Column, *others: Column) -> Column:
    """Return a column that is looked for as the first says, and where none fits, as each of the others does."""
    for other in others:
        first = replace(first, otherwise=other if first.otherwise is None else _either(first.otherwise, other))
    return first


_SIDE = {"side": Column(("side",), likeness.is_side)}
_SYSTEM = {
    "system": Column(
        ("system", "system_prompt", "system_message", "system_instruction", "preamble"), likeness.is_system
    )
}
# Where messages stand under `context`, they are what was said before; a text there is what is asked about.
_SAID_BEFORE = ("chat_history", "conversation_history", "previous_messages")
_HISTORY = {
    "history": _either(
        Column(("history",), likeness.is_history),
        Column(_SAID_BEFORE, likeness.is_filled_history),
        Column(("context",), likeness.is_messages),
    )
}
# A user's name is told from what a user said by its words, and an empty column hides no other one.
_PROMPT = _either(
    Column(_PROMPTS, likeness.is_textual), Column((USER,), is_in_words), Column((_INPUT,), likeness.is_filled_text)
)
# An attack may be empty where its goal is asked for as it is.
_FURTHER_PROMPT = _either(
    Column(_FURTHER_PROMPTS, likeness.is_filled_text),
    Column(("adversarial",), likeness.is_textual_but_no_number),
    Column(("vanilla",), likeness.is_filled_text),
)
_USERS_PROMPT = _either(
    Column((USER,), likeness.is_filled_text),
    Column((_INPUT, USER), likeness.is_textual),
    Column(_FURTHER_PROMPTS, likeness.is_textual_but_no_number),
)
_ANY_PROMPT = _either(_PROMPT, _FURTHER_PROMPT, _USERS_PROMPT)
# What is asked about, as of a passage; a number is none.
_CONTEXT = {"input": Column(("context",), likeness.is_text_about)}
_PASSAGE = {"input": Column((_INPUT, "context"), likeness.is_passage)}
_SIDES = {"chosen": Column(("chosen",), likeness.is_textual), "rejected": Column(("rejected",), likeness.is_textual)}
_RESPONSE = Column(_RESPONSES, likeness.is_textual, is_named_as_reply, (REFERENCE,))
_TEXT_RESPONSE = Column(_RESPONSES, likeness.is_textual, is_named_as_reply, (REFERENCE, "text"))
_OPEN_CHAT = Column(_KEPT_CHATS, likeness.is_open_chat)
# Without a prompt beside it, a name that only ends like a reply's says too little.
REPLIES = (*_RESPONSES, REFERENCE, "text")
"""Under what a reply goes, the likeliest name first; a text under the last two may be something else."""

# In the order of detection: what is marked most clearly comes first, the bare reply last.
SHAPES = (
    Shape("preference", {**_SIDES, "prompt": _OPEN_CHAT}, chats.read_preference, _SYSTEM),
    Shape("preference", _SIDES, chats.read_preference, {"prompt": _ANY_PROMPT, **_PASSAGE, **_SYSTEM, **_HISTORY}),
    Shape(
        "prompt_response",
        {"prompt": _OPEN_CHAT, "response": _RESPONSE},
        chats.read_pair,
        {**_SYSTEM, **_SIDE},
    ),
    Shape("openai", {"messages": Column(_KEPT_CHATS, likeness.is_chat)}, chats.read_chat, {**_SYSTEM, **_SIDE}),
    Shape(
        "sharegpt",
        {"messages": Column(("conversations", *CHATS), likeness.is_sharegpt)},
        chats.read_chat,
        {**_SYSTEM, **_SIDE},
    ),
    Shape("hh", {"text": Column(_TEXTS, likeness.is_hh_text)}, chats.read_text, _SIDE),
    Shape("role_tokens", {"text": Column(_TEXTS, likeness.is_marked_text)}, chats.read_text, _SIDE),
    Shape(
        "alpaca",
        {
            "instruction": Column(("instruction",), likeness.is_textual),
            "output": Column((*_OF_MODELS, "output", "response"), likeness.is_textual, is_named_as_reply),
        },
        chats.read_alpaca,
        {
            "input": _either(Column((_INPUT,), likeness.is_textual), Column(("context",), likeness.is_text_about)),
            **_SYSTEM,
            **_HISTORY,
            **_SIDE,
        },
    ),
    *(
        Shape(
            "prompt_response",
            {"prompt": prompt, "response": response},
            chats.read_pair,
            {**_CONTEXT, **_SYSTEM, **_HISTORY, **_SIDE},
        )
        for prompt, response in (
            (_PROMPT, _TEXT_RESPONSE),
            (_FURTHER_PROMPT, _RESPONSE),
            (_USERS_PROMPT, _TEXT_RESPONSE),
        )
    ),
    # Where nothing else is asked, what was said before ends with it.
    Shape(
        "prompt_response",
        {"prompt": Column((*_SAID_BEFORE, "context"), likeness.is_open_chat), "response": _RESPONSE},
        chats.read_pair,
        {**_SYSTEM, **_SIDE},
    ),
    # Of a whole conversation and a reply beside it, which may be the same one, the latter is judged where it is named.
    Shape(
        "prompt_response",
        {
            "prompt": Column((*CHATS, "text", "transcript", "content"), likeness.is_conversation),
            "response": Column((), likeness.is_textual),
        },
        chats.read_other_reply,
        {**_SYSTEM, **_SIDE},
    ),
    # A model's reply as the API gives it; of other rows that are one message each, nobody knows where a talk ends.
    Shape(
        "anthropic",
        {
            "content": Column(("content",), likeness.is_parts),
            "role": Column(("role",), likeness.is_assistant),
            "type": Column(("type",), likeness.is_kind_message),
        },
        chats.read_message,
    ),
    # A number is a bare reply only where there is no text to be one.
    Shape("reply", {"response": Column(REPLIES, likeness.is_textual_but_no_number)}, chats.read_reply, _SIDE),
    Shape("reply", {"text": Column(_TEXTS, likeness.is_textual_but_no_number)}, chats.read_text, _SIDE),
    Shape("reply", {"response": Column(REPLIES, likeness.is_textual)}, chats.read_reply, _SIDE),
    Shape("reply", {"text": Column(_TEXTS, likeness.is_textual)}, chats.read_text, _SIDE),
    # A first row that holds nothing is its own error, and does not hide the layout of those that follow.
    Shape("openai", {"messages": Column(CHATS, likeness.is_lost_chat)}, chats.read_chat, {**_SYSTEM, **_SIDE}),
)


def reply_column(columns: Mapping[str, str]) -> str | None:
    """Return the column that is taken for the bare reply, given that of each part; None where there is none."""
    return next((columns[part] for part in ("response", "output") if part in columns), None)


def judged_column(columns: Mapping[str, str]) -> str | None:
    """Return the column that holds what is judged, be it a bare reply or a whole conversation; None of two sides."""
    return next((columns[part] for part in ("response", "output", "messages", "text") if part in columns), None)


def rivals(columns: Mapping[str, str], fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return further columns of a row that may be the reply, in place of the one that is taken for it.

    Beside an `answer`, mostly the reference, and beside a chat that ends with the user, that is any other text of
    several words; else one of a reply's usual names, of which any will do beside nothing.

    Args:
        columns: The column of each part.
        fields: The row.
    """
    judged = judged_column(columns)
    if judged is None:
        return ()
    is_whole = reply_column(columns) is None
    further = [name for name in fields if name not in columns.values() and may_be_a_reply(name, fields[name])]
    if not further:
        return ()
    is_elsewhere = likeness.is_open_chat(fields[judged]) if is_whole else folded(judged) == REFERENCE
    usual = REPLIES if not is_whole and likeness.is_nothing(fields[judged]) else _RESPONSES
    return tuple(
        name
        for name in further
        if (is_elsewhere or folded(name) in (*usual, *_MAY_BE_RESPONSES) or is_named_as_reply(name))
        and not (is_whole and likeness.is_said_in(fields[judged], fields[name]))
    )


def several_replies(fields: Mapping[str, object], given: Mapping[str, str]) -> str:
    """Name the columns of a row of which each may be the reply, where nobody said which one is judged; else nothing."""
    replies = [name for name, value in fields.items() if is_named_as_reply(name) and isinstance(value, str)]
    if len(replies) <= 1 or "response" in given:
        return ""
    return f". The columns {listed(replies)} may each be the reply: audit one, as in --field response={replies[0]}"


def listed(columns: Collection[str]) -> str:
    """Write out columns; an object of rows by id has as many as it has rows."""
    shown = ", ".join(list(columns)[:_COLUMNS_SHOWN])
    return shown if len(columns) <= _COLUMNS_SHOWN else f"{shown} and {len(columns) - _COLUMNS_SHOWN:,} more"
