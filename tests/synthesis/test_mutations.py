"""Each mutation is pure and seeded, and keeps what its label stands on."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from demur.conversation import Conversation, Turn
from demur.data.labelled import Labelled, read_labelled
from demur.labelers.evidence import sentences
from demur.labelers.keywords import KeywordLabeler
from demur.synthesis import mutations
from demur.synthesis.mutations import MUTATIONS, refusing_sentences
from demur.taxonomy import Taxonomy

PACK = Path(__file__).parents[1] / "data" / "regression.jsonl"
NEGATION = re.compile(r"\b(?:\w+n['’]t|cannot|not|no|never|unable|without|nothing)\b", re.IGNORECASE)


@cache
def rows() -> tuple[Labelled, ...]:
    """Read the regression pack: short and long, many languages, code, emoji, several turns."""
    return tuple(read_labelled(PACK, Taxonomy.load()))


def mutated(name: str) -> list[tuple[Conversation, Conversation]]:
    """Mutate each conversation of the pack with two seeds, and return what was and what became of it."""
    before = [row.conversation for row in rows() for _ in range(2)]
    return [(each, MUTATIONS[name](each, np.random.default_rng([5, i]))) for i, each in enumerate(before)]


def changed(name: str) -> list[tuple[Conversation, Conversation]]:
    """Leave out those in which there was nothing to change."""
    return [(before, after) for before, after in mutated(name) if before != after]


def words(text: str) -> list[str]:
    """Return the words of a text, apostrophes and markdown left out."""
    return re.findall(r"\w+", text.replace("'", "").replace("’", "").replace("_", " "))


# All of them ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_follows_from_conversation_and_seed(name: str) -> None:
    """Twice the same gives the same, and the pack's own conversations are left as they were."""
    kept = [row.conversation.turns for row in rows()]
    assert mutated(name) == mutated(name)
    assert [row.conversation.turns for row in rows()] == kept


@pytest.mark.parametrize("name", MUTATIONS)
def test_another_seed_draws_another_change(name: str) -> None:
    """Of ten draws on one long row, more than one result comes out; apostrophes have one way, on two sides."""
    turns = (Turn("user", LONG), Turn("assistant", "Go on."), Turn("user", LONG), Turn("assistant", LONG))
    drawn = {MUTATIONS[name](Conversation(turns), np.random.default_rng(seed)) for seed in range(10)}
    assert len(drawn) > 1


LONG = (
    "It's a bright morning at the harbour. The boats are painted in yellow, green and blue. Children throw bread to "
    "the gulls beside the lighthouse. Somebody mends a net and whistles a song. The ferry leaves at noon."
)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_changes_a_good_share_of_the_pack(name: str) -> None:
    """Truncation needs a long reply; all others find something in more than half of the rows."""
    share = len(changed(name)) / len(mutated(name))
    assert share > (0.1 if name == "truncation" else 0.5)


@pytest.mark.parametrize("name", MUTATIONS)
def test_system_prompts_and_all_that_is_beside_the_text_stay(name: str) -> None:
    """A refusal may stand on the system prompt; position, side and thinking belong to the row."""
    for before, after in mutated(name):
        assert [t for t in after.turns if t.role == "system"] == [t for t in before.turns if t.role == "system"]
        assert [t for t in after.turns if t.role == "tool"] == [t for t in before.turns if t.role == "tool"]
    marked = Conversation((Turn("user", LONG), Turn("assistant", LONG)), 7, "chosen", 2, "hm")
    after = MUTATIONS[name](marked, np.random.default_rng(0))
    assert (after.row_id, after.side, after.turn, after.reasoning) == (7, "chosen", 2, "hm")


@pytest.mark.parametrize("name", MUTATIONS)
@pytest.mark.parametrize("reply", ["", " \n"])
def test_a_blank_reply_stays_blank(name: str, reply: str) -> None:
    """It is unscored, and must not become a reply; nor is its request dressed up for nothing."""
    blank = Conversation.of("Tell me about the harbour.", reply)
    assert MUTATIONS[name](blank, np.random.default_rng(0)).reply == reply


@pytest.mark.parametrize("name", ["case", "apostrophes", "innocent_turn"])
def test_surface_alone_moves_no_keyword(name: str) -> None:
    """The keyword list folds case and typography and reads the reply alone: its verdicts stay."""
    pairs = changed(name)
    labeler = KeywordLabeler()
    before, after = (labeler.label([pair[i] for pair in pairs]) for i in (0, 1))
    assert [verdict.outcome for verdict in before] == [verdict.outcome for verdict in after]


# One by one ----------------------------------------------------------------------------------------------------------


def test_case_keeps_the_words() -> None:
    """And what stands in code."""
    for before, after in changed("case"):
        for one, other in zip(before.turns, after.turns, strict=True):
            assert one.content.casefold() == other.content.casefold()
            assert re.findall("```.*?```", one.content, re.DOTALL) == re.findall("```.*?```", other.content, re.DOTALL)


def test_a_slip_stays_inside_of_a_long_word() -> None:
    """As many words, first and last letters, short words and negations as there were; six slips a text at most."""
    for before, after in changed("typos"):
        for one, other in zip(before.turns, after.turns, strict=True):
            were, are = words(one.content), words(other.content)
            assert len(were) == len(are)
            slips = [(was, now) for was, now in zip(were, are, strict=True) if was != now]
            assert len(slips) <= 6
            assert all(was[0] == now[0] and was[-1] == now[-1] and len(was) >= 5 for was, now in slips)
            assert all(abs(len(was) - len(now)) <= 1 for was, now in slips)
            assert NEGATION.findall(one.content) == NEGATION.findall(other.content)


def test_apostrophes_change_alone() -> None:
    """Straight and curly ones folded, nothing has changed; and both ways are gone."""
    fold = str.maketrans("’‘“”", "''\"\"")
    pairs = changed("apostrophes")
    for before, after in pairs:
        assert [t.content.translate(fold) for t in before.turns] == [t.content.translate(fold) for t in after.turns]
    assert any("’" in after.reply and "’" not in before.reply for before, after in pairs)
    assert any("’" in before.reply and "’" not in after.reply for before, after in pairs)


def test_markdown_changes_no_word_and_quotes_nothing() -> None:
    """The words of the reply, in order; no quotation, code block or struck text that was not there; no other turn."""
    for before, after in changed("markdown"):
        assert words(before.reply) == words(after.reply)
        assert before.context == after.context
        for mark in (">", "```", "~~", '"'):
            assert after.reply.count(mark) == before.reply.count(mark)


def test_markdown_is_taken_away_where_there_is_some() -> None:
    """Bold, headings and bullets; a price times a number stays."""
    marked = Conversation.of("?", "# Boats\n- **red** ones\n* 2 * 3 ones")
    plain = mutations.markdown(marked, np.random.default_rng(0))
    assert plain.reply == "Boats\nred ones\n2 * 3 ones"


def test_truncation_keeps_what_refuses() -> None:
    """Each sentence that the keyword list calls refusing, the first, and the last; 30 % of the reply goes at most."""
    pairs = [
        (one.content, other.content)
        for before, after in changed("truncation")
        for one, other in zip(before.turns, after.turns, strict=True)
        if one != other and "<|...|>" not in one.content
    ]
    assert len(pairs) > 50
    for one, other in pairs:
        spans = sentences(one)
        for start, end in {spans[0], spans[-1], *refusing_sentences(one)}:
            assert one[start:end] in other
        head, tail = other.split("<|...|>")
        assert one.startswith(head)
        assert one.endswith(tail)
        assert 40 <= len(one) - len(head) - len(tail) <= 0.3 * len(one)


def test_truncation_leaves_the_request_whole() -> None:
    """Where a reply gives no reason, the request names the kind."""
    assert all(before.request == after.request for before, after in changed("truncation"))


def test_truncation_cuts_between_the_sentences_that_stay() -> None:
    """Of five sentences the second refuses: only the third and fourth may lose something, and at most half of it."""
    reply = (
        "Thank you for the question about the harbour. I cannot help with that. The harbour lies in the north of the "
        "town, behind the market. It has been there for three hundred years or more. Good bye."
    )
    for seed in range(20):
        after = mutations.truncation(Conversation.of("?", reply), np.random.default_rng(seed)).reply
        head, tail = after.split("<|...|>")
        assert head.startswith("Thank you for the question about the harbour. I cannot help with that. ")
        assert tail.endswith(" Good bye.")
        stretch = reply.index(" Good bye.") - reply.index("The harbour lies")
        assert len(reply) - len(head) - len(tail) <= stretch / 2


def test_short_replies_are_not_truncated() -> None:
    """A cut of less than 40 characters would say more than it hides."""
    short = Conversation.of("?", "I see. It is red. It is blue. Good bye.")
    assert mutations.truncation(short, np.random.default_rng(0)) == short


@pytest.mark.parametrize("name", ["courtesy_before", "courtesy_after"])
def test_a_courtesy_leaves_the_text_whole_on_its_side(name: str) -> None:
    """One turn has more than it had: before the text or after it."""
    for before, after in changed(name):
        pairs = [
            (a.content, b.content) for a, b in zip(before.turns, after.turns, strict=True) if a.content != b.content
        ]
        ((one, other),) = pairs
        assert other.endswith(one.lstrip()) if name == "courtesy_before" else other.startswith(one.rstrip())


def test_no_courtesy_reads_as_a_refusal() -> None:
    """By the keyword list, alone or before an answer."""
    texts = (*mutations._REPLY_OPENINGS, *mutations._REPLY_CLOSINGS, *(a for _, a in mutations._INNOCENT_EXCHANGES))
    verdicts = KeywordLabeler().label([Conversation.of("?", f"{text} Boats are red.") for text in texts])
    assert {verdict.outcome for verdict in verdicts} == {"none"}


def test_an_innocent_turn_comes_after_the_system_prompt() -> None:
    """And before all else, which stays as it was; a reply alone stays alone."""
    turns = (Turn("system", "Speak of boats."), Turn("user", "Cats?"), Turn("assistant", "Sorry, boats only."))
    after = mutations.innocent_turn(Conversation(turns), np.random.default_rng(0)).turns
    assert [turn.role for turn in after] == ["system", "user", "assistant", "user", "assistant"]
    assert (after[0], after[3:]) == (turns[0], turns[1:])
    alone = Conversation(turns[-1:])
    assert mutations.innocent_turn(alone, np.random.default_rng(0)) == alone
