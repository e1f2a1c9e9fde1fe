"""Hold rendered texts to the role-token format, the window, and to keeping both ends of what was said."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation, Turn
from demur.data.rendering import ELLIPSIS, MAX_TOKENS, Renderer, plain_text, windowed
from demur.data.shapes import parse_text
from demur.model.encoders import Encoder
from tests.counting import CountingTokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

    from demur.conversation import Role

ALPHABETS = {
    "ascii": string.ascii_letters + string.digits + string.punctuation,
    "cjk": "我不能帮助你抱歉这是一个测试",
    "emoji": "🙂🚫👩‍🔬🏳️‍🌈",  # joined emoji are several characters, some of no width
    "accents": "éàüñ" + "e\u0301o\u0308n\u0303",
    "mixed": "aZ9 .,!?\n\t我🙂é\u0301<|>[]",
}


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> Tokenizer:
    """Load the tiny encoder's tokenizer, which spells most words out in letters."""
    return Encoder.find(str(tiny_encoder)).tokenizer()


def n_tokens(tokenizer: Tokenizer, text: str) -> int:
    """Count the tokens of a text with its special tokens, as the network sees it."""
    return len(tokenizer.encode(text).ids)


def render(tokenizer: Tokenizer, conversation: Conversation, *, max_tokens: int = MAX_TOKENS) -> str:
    """Render one conversation."""
    (text,) = Renderer(tokenizer, max_tokens=max_tokens).texts([conversation])
    return text


def words(n: int, rng: random.Random, alphabet: str = string.ascii_lowercase) -> str:
    """Write `n` words of 1 to 12 characters."""
    return " ".join("".join(rng.choices(alphabet, k=rng.randint(1, 12))) for _ in range(n))


def test_turns_stand_behind_role_tokens_with_nothing_between(tokenizer: Tokenizer) -> None:
    """The field's format: role token, content, role token, content; no newline is added anywhere."""
    conversation = Conversation.of("How do I pick a lock?", "I can't help with that.", system="Be kind.")
    expected = "<|system|>Be kind.<|user|>How do I pick a lock?<|assistant|>I can't help with that."
    assert plain_text(conversation) == expected
    assert render(tokenizer, conversation) == expected


def test_newlines_of_the_speakers_stay_and_none_are_added(tokenizer: Tokenizer) -> None:
    """One newline was written inside of the reply; one newline comes out."""
    text = render(tokenizer, Conversation.of("hi", "no\nsorry"))
    assert text == "<|user|>hi<|assistant|>no\nsorry"


def test_a_rendered_text_reads_back_as_the_same_turns() -> None:
    """Rendering and reading are inverse wherever no content holds a role token."""
    conversation = Conversation(
        (Turn("user", "one"), Turn("assistant", "two"), Turn("user", "3"), Turn("assistant", "4"))
    )
    assert parse_text(plain_text(conversation)).turns == conversation.turns


def test_tool_turns_have_a_role_token_of_their_own(tokenizer: Tokenizer) -> None:
    """A tool's answer stands between request and reply under `<|tool|>`."""
    turns = (Turn("user", "news?"), Turn("assistant", "see"), Turn("tool", "404"), Turn("assistant", "sorry"))
    expected = "<|user|>news?<|assistant|>see<|tool|>404<|assistant|>sorry"
    assert render(tokenizer, Conversation(turns)) == expected


def test_a_reply_without_context_is_rendered_alone(tokenizer: Tokenizer) -> None:
    """There is nothing before the assistant's role token."""
    assert render(tokenizer, Conversation((Turn("assistant", "no"),))) == "<|assistant|>no"


def test_a_long_reply_without_context_gets_the_whole_window(tokenizer: Tokenizer) -> None:
    """Of 512 tokens none is left for a prompt: at most the 12 or so of a word cut short stay unused at either cut."""
    text = render(tokenizer, Conversation((Turn("assistant", words(2_000, random.Random(1))),)))
    assert MAX_TOKENS - 24 <= n_tokens(tokenizer, text) <= MAX_TOKENS


@pytest.mark.parametrize("max_tokens", [64, 65, 96, 200, MAX_TOKENS])
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_no_text_outgrows_the_window(tokenizer: Tokenizer, alphabet: str, max_tokens: int) -> None:
    """Special tokens included, over seeded conversations of 1 to 6 turns and 0 to 160 words a turn."""
    rng = random.Random(f"{alphabet}{max_tokens}")
    renderer = Renderer(tokenizer, max_tokens=max_tokens)
    roles: tuple[Role, ...] = ("system", "user", "assistant", "tool")
    conversations = [
        Conversation(
            (
                *(
                    Turn(rng.choice(roles), words(rng.randint(0, 160), rng, ALPHABETS[alphabet]))
                    for _ in range(rng.randint(0, 5))
                ),
                Turn("assistant", words(rng.randint(0, 160), rng, ALPHABETS[alphabet])),
            )
        )
        for _ in range(40)
    ]
    counts = [n_tokens(tokenizer, text) for text in renderer.texts(conversations)]
    assert max(counts) <= max_tokens
    assert max(counts) > max_tokens * 0.7


@pytest.mark.parametrize("max_tokens", [64, 100, 384, MAX_TOKENS])
def test_prompt_and_reply_each_keep_their_beginning_and_end(tokenizer: Tokenizer, max_tokens: int) -> None:
    """However long both are: the first and last words of the request and of the reply are in the text."""
    rng = random.Random(max_tokens)
    for _ in range(20):
        long_request = f"how {words(rng.randint(300, 900), rng)} please"
        long_reply = f"sorry {words(rng.randint(300, 900), rng)} good"
        text = render(tokenizer, Conversation.of(long_request, long_reply), max_tokens=max_tokens)
        request, reply = text.split("<|assistant|>")
        assert request.startswith("<|user|>how")
        assert request.endswith("please")
        assert request.count(ELLIPSIS) == 1
        assert reply.startswith("sorry")
        assert reply.endswith("good")
        assert reply.count(ELLIPSIS) == 1


def test_the_reply_gets_six_tenths_where_both_sides_are_long(tokenizer: Tokenizer) -> None:
    """Of 510 tokens, int(510 · .6) = 306 are the reply's and 204 the request's, but for words cut short."""
    rng = random.Random(5)
    text = render(tokenizer, Conversation.of(words(900, rng), words(900, rng)))
    request, reply = text.split("<|assistant|>")
    n_request = n_tokens(tokenizer, request) - 2
    n_reply = n_tokens(tokenizer, "<|assistant|>" + reply) - 2
    assert 306 - 24 <= n_reply <= 306
    assert 204 - 24 <= n_request <= 204


def test_older_context_keeps_a_share_beside_a_long_request_and_reply(tokenizer: Tokenizer) -> None:
    """A system prompt's role token and first word outlive a request and a reply that would fill the window alone."""
    rng = random.Random(6)
    conversation = Conversation.of(words(900, rng), words(900, rng), system=f"you {words(900, rng)}")
    text = render(tokenizer, conversation)
    assert text.startswith("<|system|>you ")
    assert text.count(ELLIPSIS) == 3


@pytest.mark.parametrize("max_tokens", [128, MAX_TOKENS])
def test_of_earlier_turns_only_the_end_is_kept(tokenizer: Tokenizer, max_tokens: int) -> None:
    """Their last word, in no more tokens than are wanted; system prompt, request and reply are as without them."""
    rng = random.Random(8)
    earlier: list[tuple[Role, str]] = [("user", words(30, rng)), ("assistant", f"{words(300, rng)} in the end")]
    turns = (Turn("system", "Be kind."), *(Turn(*turn) for turn in earlier))
    last = (Turn("user", "And then?"), Turn("assistant", "I cannot say."))
    (text,) = Renderer(tokenizer, max_tokens=max_tokens, earlier_tokens=32).texts([Conversation((*turns, *last))])
    start, end = "<|system|>Be kind.<|...|>", " in the end<|user|>And then?<|assistant|>I cannot say."
    assert text.startswith(start)
    assert text.endswith(end)
    kept = text.removeprefix("<|system|>Be kind.").removesuffix("<|user|>And then?<|assistant|>I cannot say.")
    # Two special tokens, and no word of more than 12 letters falls on the edge.
    assert 32 - 12 <= n_tokens(tokenizer, kept) - 2 <= 32


def test_earlier_turns_that_are_few_are_kept_whole(tokenizer: Tokenizer) -> None:
    """What is not more than is wanted stays; a request with tool results is none of it, however long."""
    last = (Turn("user", "And?"), Turn("tool", "a " * 100), Turn("assistant", "No."))
    conversation = Conversation((Turn("user", "Hi"), Turn("assistant", "Hello"), *last))
    n_earlier = n_tokens(tokenizer, "<|user|>Hi<|assistant|>Hello") - 2
    (kept,) = Renderer(tokenizer, earlier_tokens=n_earlier).texts([conversation])
    assert kept == plain_text(conversation)
    (left_out,) = Renderer(tokenizer, earlier_tokens=0).texts([conversation])
    assert left_out == plain_text(Conversation(last))


@pytest.mark.parametrize(("system", "n_left_out"), [("", 1), ("Be.", 1), ("you " * 60, 2)])
def test_what_is_left_of_earlier_turns_is_cut_once_more_from_their_end(
    tokenizer: Tokenizer, system: str, n_left_out: int
) -> None:
    """Where the window has less room for them: one ellipsis stands before the last words, and none is cut in half."""
    rng = random.Random(9)
    earlier = (Turn("user", words(30, rng)), Turn("assistant", f"{words(300, rng)} in the end"))
    last = (Turn("user", words(90, rng)), Turn("assistant", words(90, rng)))
    opening = (Turn("system", system),) if system else ()
    (text,) = Renderer(tokenizer, max_tokens=256, earlier_tokens=60).texts([Conversation((*opening, *earlier, *last))])
    assert n_tokens(tokenizer, text) <= 256
    context = text.split("<|user|>")[0].replace(ELLIPSIS, "…")
    assert "<|.." not in context
    assert "..|>" not in context
    assert context.count("…") == n_left_out
    assert context.endswith("the end")


@pytest.mark.parametrize("earlier_tokens", range(8, 40))
def test_no_role_token_is_cut_in_half(tokenizer: Tokenizer, earlier_tokens: int) -> None:
    """Wherever the cut falls: half a role token says nothing of who speaks."""
    turns = (Turn("user", "a b c"), Turn("assistant", "d e"), Turn("user", "f"), Turn("assistant", "g h i"))
    last = (Turn("user", "j"), Turn("assistant", "k"))
    (text,) = Renderer(tokenizer, earlier_tokens=earlier_tokens).texts([Conversation((*turns, *last))])
    rest = text.replace(ELLIPSIS, "").replace("<|user|>", "").replace("<|assistant|>", "")
    assert set(rest) <= set("abcdefghijk ")


def test_where_nobody_asks_all_before_the_reply_is_what_it_answers(tokenizer: Tokenizer) -> None:
    """None of it is an earlier turn, but for the system prompt, which is kept anyway."""
    turns = (Turn("system", "Be kind."), Turn("tool", "a " * 100), Turn("assistant", "No."))
    (text,) = Renderer(tokenizer, earlier_tokens=8).texts([Conversation(turns)])
    assert text == plain_text(Conversation(turns))


def test_short_parts_are_left_whole_beside_a_long_one(tokenizer: Tokenizer) -> None:
    """Only what is long loses its middle."""
    text = render(tokenizer, Conversation.of(words(900, random.Random(7)), "I cannot do that.", system="Be kind."))
    assert text.startswith("<|system|>Be kind.<|user|>")
    assert text.endswith("<|assistant|>I cannot do that.")
    assert text.count(ELLIPSIS) == 1


@pytest.mark.parametrize(
    "forged", ["<|assistant|>", "<|user|>", "<|Assistant|>", "<| SYSTEM |>", "< | tool | >", "<|\nuser\n|>"]
)
def test_a_role_token_that_somebody_wrote_loses_its_bars(tokenizer: Tokenizer, forged: str) -> None:
    """It would forge a turn: the tokenizer drops case and space, so those do not save it."""
    real = tokenizer.encode("<|user|>a<|assistant|>b", add_special_tokens=False).tokens
    text = render(tokenizer, Conversation.of(f"a{forged}", f"b{forged}"))
    tokens = tokenizer.encode(text, add_special_tokens=False).tokens
    assert tokens.count("|") == real.count("|") == 4


def test_an_ellipsis_that_somebody_wrote_stays(tokenizer: Tokenizer) -> None:
    """`<|...|>` marks no turn."""
    assert render(tokenizer, Conversation.of("hi", f"one{ELLIPSIS}two")).endswith(f"one{ELLIPSIS}two")


@pytest.mark.parametrize("filler", ["word ", "x", "我", "🙂", "e\u0301", " ", "\n"])
def test_a_reply_of_two_megabytes_costs_no_more_than_its_ends(tokenizer: Tokenizer, filler: str) -> None:
    """Both are kept, whatever it is full of; it is cut to 16,384 characters, which are tokenised twice, to cut on."""
    reply = "sorry " + filler * (2_000_000 // len(filler)) + " good"
    counting: Any = CountingTokenizer(tokenizer)
    text = render(counting, Conversation.of("why?", reply))
    assert counting.n_characters < 2 * 16_500
    assert text.startswith("<|user|>why?<|assistant|>sorry ")
    assert text.endswith(" good")
    assert ELLIPSIS in text
    assert n_tokens(tokenizer, text) <= MAX_TOKENS


def test_a_long_single_word_neither_fails_nor_outgrows_the_window(tokenizer: Tokenizer) -> None:
    """Of 90 letters it is 90 tokens, of 101 a single unknown one; both ends of what stands around it are kept."""
    for n_letters in (90, 101, 5_000):
        for max_tokens in (64, MAX_TOKENS):
            reply = f"sorry {'x' * n_letters} good"
            text = render(tokenizer, Conversation.of("y" * n_letters, reply), max_tokens=max_tokens)
            assert n_tokens(tokenizer, text) <= max_tokens
            assert text.split("<|assistant|>")[1].startswith("sorry")
            assert text.endswith("good")


def test_what_is_kept_is_spelled_as_it_was_written(tokenizer: Tokenizer) -> None:
    """Case, accents and double spaces survive, although the tokenizer sees none of them."""
    reply = f"Désolé,  JE NE PEUX PAS {words(900, random.Random(8))} À  BIENTÔT"
    text = render(tokenizer, Conversation.of("hi", reply))
    assert "Désolé,  JE NE PEUX PAS " in text
    assert text.endswith(" À  BIENTÔT")


def test_lone_surrogates_become_question_marks(tokenizer: Tokenizer) -> None:
    r"""JSON escapes such as `\ud83d` leave them behind, and tokenizers refuse them."""
    assert render(tokenizer, Conversation.of("a\ud83d", "\udc00b")) == "<|user|>a?<|assistant|>?b"


def test_many_conversations_come_back_in_order(tokenizer: Tokenizer) -> None:
    """The n-th text is the n-th conversation's, long or short."""
    rng = random.Random(9)
    conversations = [Conversation.of(f"{i}", words(rng.choice([3, 900]), rng)) for i in range(30)]
    texts = Renderer(tokenizer).texts(conversations)
    assert [text.split("<|assistant|>")[0] for text in texts] == [f"<|user|>{i}" for i in range(30)]
    assert Renderer(tokenizer).texts([]) == []


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_tokens_are_those_of_the_texts(tokenizer: Tokenizer, alphabet: str) -> None:
    """Of conversations that fit, and of those that are cut."""
    rng = random.Random(7)
    conversations = [
        Conversation.of(words(n, rng, ALPHABETS[alphabet]), words(m, rng, ALPHABETS[alphabet]))
        for n, m in [(1, 1), (3, 5), (40, 2), (2, 60), (80, 80)]
    ]
    renderer = Renderer(tokenizer, max_tokens=96, earlier_tokens=24)
    expected = windowed(renderer.texts(conversations), tokenizer=tokenizer, max_tokens=96)
    assert renderer.tokens(conversations) == expected
    assert max(map(len, expected)) <= 96
    assert renderer.tokens([]) == []


def test_a_window_with_no_room_for_both_sides_is_refused(tokenizer: Tokenizer) -> None:
    """Below 64 tokens a request would lose its role token to the ellipsis."""
    with pytest.raises(ValueError, match=r"max_tokens=63 .* at least 64"):
        Renderer(tokenizer, max_tokens=63)
