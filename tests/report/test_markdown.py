"""The Markdown: the same numbers, and no markup of the data's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from demur.conversation import Conversation, Turn
from demur.report import tables
from demur.report.html import render_html
from demur.report.markdown import escaped, markdown_table, render_markdown
from demur.report.text import text_table
from demur.stats.conformal import CategorySets
from demur.stats.numbers import percent_range
from demur.stats.shares import Share
from demur.studies.tally import Judged, Tally
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from markdown_it.token import Token

    from demur.studies.findings import Audit
    from demur.taxonomy import Taxonomy


_MARKUP = {"html_block", "html_inline", "image", "link_open", "fence", "code_block", "code_inline"}


def _tokens(text: str) -> list[Token]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [inner for token in tokens for inner in (token, *(token.children or ()))]


@pytest.mark.parametrize(
    "text",
    [
        "a | b",
        "`code`",
        "<script>x</script>",
        "![i](http://x/y.png)",
        "*b* _i_",
        "# head",
        "- item",
        "1. one",
        "1)",
        "---",
        "===",
        "-5 degrees",
        "&lt;",
        "\\",
    ],
)
def test_escaped_text_reads_as_it_was(text: str) -> None:
    """A parser gives back one paragraph with just these characters."""
    tokens = _tokens(escaped(text))
    assert [token.type for token in tokens if token.type.endswith("_open")] == ["paragraph_open"]
    content = "".join(token.content for token in tokens if token.type in ("text", "text_special"))
    assert content == text


def test_a_reply_is_shown_with_its_place_as_text(taxonomy: Taxonomy, full_audit: Audit) -> None:
    """A file may be called anything."""
    talk = replace(Conversation.of("Q", "No."), file="<b>a*.jsonl", line=7)
    verdict = Verdict("full", 0.99, "privacy", "should_not", tuple(1 / len(taxonomy) for _ in taxonomy))
    found = replace(full_audit, tally=Tally.of([Judged(talk, verdict)], taxonomy, threshold=0.5))
    assert "- \\<b\\>a\\*.jsonl\\:7 · refusal 0.99" in render_markdown(found)
    assert "&lt;b&gt;a*.jsonl:7 · refusal 0.99" in render_html(found)


def test_numbers_stay_as_they_are() -> None:
    """A point inside a number makes no list."""
    assert escaped("4.1%") == "4.1%"


def test_escaped_text_is_one_line() -> None:
    """A fence or a heading needs a line of its own; there is none."""
    assert "\n" not in escaped("a\n```\nb\r\n\n# c")


def test_hostile_text_makes_no_markup(full_audit: Audit) -> None:
    """No HTML, image, link or code block comes out of the data."""
    assert not _MARKUP & {token.type for token in _tokens(render_markdown(full_audit))}


def test_the_name_of_a_labeler_makes_no_markup(full_audit: Audit) -> None:
    """Wherever a report names it; a file of annotations says how annotators are called."""
    name = "bob [click](http://evil.example) <img src=x>"
    manifest = {**full_audit.manifest, "model": {"name": name}}
    text = render_markdown(replace(full_audit, manifest=manifest, operating_point=None))
    assert text.count(escaped(name)) == 2
    assert not _MARKUP & {token.type for token in _tokens(text)}


def test_a_caption_makes_no_markup() -> None:
    """A comparison is headed by the name of its reference."""
    table = tables.Table("Against b`o|<i> \x1b[31m", ("Labeler",), (("a",),))
    assert not _MARKUP & {token.type for token in _tokens(markdown_table(table))}
    assert "\x1b" not in text_table(table)


def test_the_sentence_that_carries_a_refusal_has_its_line(full_audit: Audit) -> None:
    """Hostile as it is, it reads as it was; the privacy example is its only owner, as the surest and as borderline."""
    lines = [line for line in render_markdown(full_audit).splitlines() if line.startswith("  - Marked: ")]
    assert set(lines) == {"  - Marked: " + escaped("</dd><script>alert(1)</script>")}


def test_every_table_is_a_table(full_audit: Audit) -> None:
    """Groups, kinds, probabilities, two of sides, pairs, wordings, reasons and broken rows, pipes in them or not."""
    types = [token.type for token in _tokens(render_markdown(full_audit))]
    assert types.count("table_open") == 9


def test_what_the_page_draws_stands_in_tables(full_audit: Audit, empty_audit: Audit) -> None:
    """Of 30 pairs and one more refusal, 21 refuse, all at 0.9 or more, and ten on each side."""
    probabilities = tables.probability_table(full_audit)
    assert [row[1] for row in probabilities.rows] == ["0", "0", "40", "0", "0", "0", "0", "0", "0", "21"]
    assert probabilities.rows[-1][0] == "0.9\u20131.0"
    by_side = tables.side_kinds_table(full_audit)
    assert by_side.head[1::3] == ("chosen: refusals", "rejected: refusals")
    assert [sum(int(row[column]) for row in by_side.rows) for column in (1, 4)] == [10, 10]
    page, text = render_html(full_audit), render_markdown(full_audit)
    for table in (probabilities, by_side):
        assert table.caption in text
        assert table.caption in page
        for row in table.rows:
            assert f"| {' | '.join(escaped(cell) for cell in row)} |" in text
            assert all(f">{cell}<" in page for cell in row)
    assert not tables.probability_table(empty_audit).rows
    assert not tables.side_kinds_table(empty_audit).rows


def test_intervals_of_pairs_allow_for_pairs_of_one_request(full_audit: Audit, taxonomy: Taxonomy) -> None:
    """The same counts in ten requests are less than in thirty."""
    judged = [
        Judged(
            Conversation((Turn("user", f"Q{row // 3}"), Turn("assistant", "R")), row_id=row, side=side),
            Verdict("full" if side == "chosen" and row % 30 < 10 else "none"),
        )
        for row in range(30)
        for side in ("chosen", "rejected")
    ]
    found = replace(full_audit, tally=Tally.of(judged, taxonomy))
    assert tables.pairs_table(full_audit).rows[0][1:] == ("10", "33%", percent_range(Share(10, 30).interval))
    share = found.tally.pairs.shares["chosen_only"]
    assert share.effect > 2
    assert tables.pairs_table(found).rows[0][1:] == ("10", "33%", percent_range(share.interval))


def test_the_numbers_are_those_of_the_page(full_audit: Audit) -> None:
    """21 of 61, as counted and corrected, with a bar for each kind."""
    text = render_markdown(full_audit)
    assert "21 of 61 scored replies refuse: 21 in full, 0 in part; 2 replies could not be judged" in text
    assert "- **As counted: 34%.** 95% interval 24\u201347%" in text
    assert "- **Corrected: 35%.**" in text
    assert "\u2588" in text
    assert "Reply: No, I can't." in text


def test_an_audit_of_nothing_has_no_numbers(empty_audit: Audit) -> None:
    """Nothing counted reads n/a."""
    text = render_markdown(empty_audit)
    why = escaped("Nothing could be scored: there were no rows.")
    assert f"- **As counted: n/a.** {why}\n- **Corrected: n/a.** {why}\n" in text
    assert "## Unscored replies\n\nThere were no rows.\n" in text
    assert "nan" not in text


def test_intervals_say_that_they_allow_for_replies_to_one_request(
    full_audit: Audit, paired_audit: Callable[[Taxonomy], Audit], taxonomy: Taxonomy
) -> None:
    """Under both shares; replies that never agree within a request say no more than as many independent ones."""
    note = (
        "61 replies answer 31 requests. Replies to one request may depend on each other; nothing here "
        "shows that they do: the "
        "interval is as wide as for 61 replies to 61 different requests."
    )
    assert render_markdown(full_audit).count(escaped(note)) == 2
    assert "240 replies answer 120 requests. Replies" in render_markdown(paired_audit(taxonomy))


def test_intervals_say_how_wide_dependent_replies_make_them(empty_audit: Audit, taxonomy: Taxonomy) -> None:
    """Of 8 requests, 4 are always refused, 30 times each: the 240 replies say no more than 8 do."""
    replies = [(request, "No." if request < 4 else "Yes.") for request in range(8) for _ in range(30)]
    judged = [
        Judged(Conversation.of(f"Q{request}", reply), Verdict("full" if reply == "No." else "none", 0.5))
        for request, reply in replies
    ]
    found = replace(empty_audit, tally=Tally.of(judged, taxonomy, threshold=0.5))
    n = round(240 / found.composition.refused.effect)
    assert n < 12
    note = f"so the interval is as wide as for {n} replies to {n} different requests."
    assert f"240 replies answer 8 requests. Replies to one request depend on each other, {note}" in render_markdown(
        found
    )


def test_one_is_one_in_every_sentence(empty_audit: Audit, taxonomy: Taxonomy) -> None:
    """One reply counts, and one pair prefers."""
    pairs = [
        Judged(
            replace(Conversation.of(f"Q{row}", "R"), row_id=row, side=side),
            Verdict("full" if side == refuses else "none", 0.5),
        )
        for row, refuses in enumerate(("chosen", "rejected"))
        for side in ("chosen", "rejected")
    ]
    tally = Tally.of([*pairs, Judged(Conversation.of("Q", " "), Verdict.unscored("empty_reply"))], taxonomy)
    text = render_markdown(replace(empty_audit, tally=tally))
    assert "1 reply could not be judged and counts nowhere." in text
    assert "Of 2 pairs, 1 prefers a refusal to an answer, and 1 prefers an answer to a refusal." in text


def test_replies_to_one_request_are_said_to_speak_of_it_alone(counted_audit: Callable[[str], Audit]) -> None:
    """Nothing is known of how requests differ."""
    note = "4 replies answer 1 request: the interval is of replies to this one, and says nothing of others."
    assert escaped(note) in render_markdown(counted_audit("standard"))


def test_where_no_request_is_answered_twice_there_is_nothing_to_say(empty_audit: Audit, taxonomy: Taxonomy) -> None:
    """Rows are then independent as far as anybody can see."""
    judged = [Judged(Conversation.of(f"Q{row}", "No."), Verdict("full", 0.9)) for row in range(9)]
    text = render_markdown(replace(empty_audit, tally=Tally.of(judged, taxonomy, threshold=0.5)))
    assert "95% interval" in text
    assert " answer " not in text


def test_an_empty_reply_is_said_to_be_unscored(full_audit: Audit, empty_audit: Audit) -> None:
    """It is not among the replies that do not refuse; where nothing was unscored, there is nothing to say."""
    assert "an empty reply, too: it is unscored (empty_reply)" in render_markdown(full_audit)
    assert "empty_reply" not in render_markdown(empty_audit)


def test_reports_say_what_sets_resolve_to_and_what_is_stated(stating_audit: Callable[[CategorySets], Audit]) -> None:
    """4, 1 and 3 of 8, in one sentence of page and Markdown, and the statement where it says how it was made."""
    found = stating_audit(CategorySets(0.95, 230, 0.02))
    sentence = (
        "Sets of kinds, stated to hold the main kind of 95% of refusals like the 230 held-out refusals they stand on: "
        "of 8 refusals, 4 (50%) resolve to one kind, 1 (12%) to a group, and 3 (38%) are undetermined."
    )
    for rendered in (render_markdown(found), render_html(found)):
        assert rendered.count(sentence) == 1
    assert "- Sets of kinds: kinds with a probability of at least 0.02, stated to hold the main" in render_markdown(
        found
    )


def test_reports_say_where_too_few_refusals_state_a_coverage(stating_audit: Callable[[CategorySets], Audit]) -> None:
    """Eight for a coverage of .9: all kinds, and it takes nine."""
    found = stating_audit(CategorySets.of([0.5] * 8, 0.9))
    text = render_markdown(found)
    assert "Only sets of all kinds can be stated to hold the main kind of 90% of refusals: there are 8 held-out" in text
    assert "it takes 9. So 8 of 8 are undetermined." in text


def test_an_audit_without_sets_says_nothing_of_them(full_audit: Audit, empty_audit: Audit) -> None:
    """But that there are none, where it says how it was made."""
    for found in (full_audit, empty_audit):
        assert "undetermined" not in render_markdown(found) + render_html(found)
        assert "- Sets of kinds: none" in render_markdown(found)


@pytest.mark.parametrize(
    ("number", "language", "said"),
    [
        (1, "English", "1 of 61 scored replies is mostly written in another script than Latin. demur is made for"),
        (9, "English", "9 of 61 scored replies are mostly written in another script than Latin."),
        (9, None, ""),
        (0, "English", ""),
    ],
)
def test_replies_in_scripts_that_the_labeler_was_not_made_for_are_told(
    full_audit: Audit, number: int, language: str | None, said: str
) -> None:
    """Where it names the language that it was made for."""
    model = {"name": "demur", **({} if language is None else {"language": language})}
    found = replace(
        full_audit,
        tally=replace(full_audit.tally, other_scripts=number),
        manifest={**full_audit.manifest, "model": model},
    )
    for text in (render_markdown(found), render_html(found)):
        assert said in text
        assert ("another script" in text) is bool(said)


def test_how_it_was_made_is_said_in_words(full_audit: Audit) -> None:
    """Not as a program would print its variables."""
    look = {"tokens": 96, "below": 0.029058}
    model = {
        "name": "demur",
        "max_tokens": 512,
        "earlier_tokens": 32,
        "first_look": look,
        "evidence": True,
        "odd_part": {"a": 1},
    }
    options = {"limit": 9, "layout": "alpaca", "fields": {"output": "bot"}, "turns": "all", "chunk": 1024}
    manifest = {**full_audit.manifest, "model": model, "options": options}
    text = render_markdown(replace(full_audit, manifest=manifest))
    expected = [
        "- Model: demur; reads at most 512 tokens of a conversation; at most 32 of them of turns between system prompt",
        "between system prompt and last request; first look at 96 tokens of longer texts, where",
        "where a probability of refusal below 0.0291 is taken for an answer; finds the sentence that carries a",
        "finds the sentence that carries a refusal; odd part a 1\n",
        "- Thresholds: a reply refuses from a probability of 0.5 on; a refusal is partial from 0.5 on; a further kind",
        "a further kind is a reason from 0.3 on\n",
        "- Options: every reply of a row is judged; the first 9 rows only; layout given\\: alpaca; columns",
        "columns given\\: output=bot\n",
    ]
    assert [line for line in expected if line not in text] == []
    of_before = {"name": "x", "earlier_tokens": None, "first_look": None, "evidence": False}
    plain = replace(full_audit, manifest={**manifest, "model": of_before})
    last = (
        "- Model: x; reads as much of earlier turns as there is room for; no first look\\: every text is read in full; "
        "does not look for the sentence that carries a refusal"
    )
    assert last in render_markdown(plain)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("x{y}", 1, "x{y} 1"),
        ("note", "a{b}", "note a{b}"),
        ("first_look", True, "first look True"),
        ("first_look", {"tokens": 96}, "first look tokens 96"),
        ("evidence", "by hand", "evidence by hand"),
        ("k", {"a": [1]}, "k a [1]"),
    ],
)
def test_whatever_a_labeler_says_of_itself_is_shown(full_audit: Audit, key: str, value: object, said: str) -> None:
    """Those of others may use the words of ours for something else."""
    found = replace(full_audit, manifest={**full_audit.manifest, "model": {"name": "mine", key: value}})
    assert dict(tables.identification(found))["Model"] == f"mine; {said}"
