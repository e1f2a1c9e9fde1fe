"""The page: self-contained, safe, small, and saying what was found."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation
from demur.errors import OutputError
from demur.report import write_reports
from demur.report.examples import kinds
from demur.report.html import render_html
from demur.stats.composition import Composition
from demur.studies.findings import Audit
from demur.studies.tally import Judged, Tally
from demur.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from demur.stats.shares import Share
    from demur.taxonomy import Taxonomy

_VOID = {"meta", "link", "br", "hr", "img", "input"}


class _Page(HTMLParser):
    """Collect the tags, their attributes and the text of a page, and hold its tags to nesting."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_hostile_text_is_shown_and_never_run(full_audit: Audit) -> None:
    """A script in a reply, an image in a request, markup in a message and in the source's name are text."""
    page = _Page(render_html(full_audit))
    text = "".join(page.texts)
    assert not {"script", "img", "iframe", "object", "embed", "link", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in text
    assert "<img src=x onerror=alert(2)>" in text
    assert "not JSON <b>here</b> | there" in text
    assert "<i>rows</i>.jsonl" in text


def test_the_sentence_that_carries_a_refusal_is_marked(full_audit: Audit) -> None:
    """Its hostile text is text inside of the mark, its score stands beside, and what a mark means is said."""
    source = render_html(full_audit)
    assert set(re.findall("<mark>(.*?)</mark>", source)) == {"&lt;/dd&gt;&lt;script&gt;alert(1)&lt;/script&gt;"}
    text = "".join(_Page(source).texts)
    assert "marked sentence 0.97" in text
    assert "it explains the verdict and does not prove it" in text


def test_without_evidence_nothing_is_marked(paired_audit: Callable[[Taxonomy], Audit], taxonomy: Taxonomy) -> None:
    """No mark, and no word about marks."""
    source = render_html(paired_audit(taxonomy))
    assert "<mark>" not in source
    assert "Marked" not in source


def test_the_page_asks_for_nothing(full_audit: Audit) -> None:
    """No address outside the page stands in an attribute or in the style sheet."""
    source = render_html(full_audit)
    page = _Page(source)
    addresses = [value for name, value in page.attributes if name in ("src", "href", "xlink:href", "srcset")]
    assert all(value is not None and value.startswith("#") for value in addresses)
    assert "@import" not in source
    assert set(re.findall(r"url\((.)", source)) <= {"#"}


def test_the_headline_has_both_shares_and_says_how(full_audit: Audit) -> None:
    """21 of 61 = 34%, and (.3443 + .95 - 1) / .85 = 34.6%, beside their intervals and the method."""
    text = " ".join("".join(_Page(render_html(full_audit)).texts).split())
    assert "21 of 61 scored replies refuse: 21 in full, 0 in part; 2 replies could not be judged" in text
    assert "34%" in text
    assert "Rogan-Gladen 1978" in text
    assert "on 200 labelled replies it found 90.0% of the refusals and let 95.0% of the others pass" in text


def test_the_page_shows_all_that_was_kept(full_audit: Audit) -> None:
    """Kinds, pairs, examples, borderline replies, wordings, reasons, broken rows, and what it was made of."""
    text = "".join(_Page(render_html(full_audit)).texts)
    expected = (
        "Chosen against rejected",
        "Of 30 pairs, 10 prefer a refusal to an answer, and 10 prefer an answer to a refusal.",
        "Information hazards",
        "refusal >0.99",
        "Borderline replies",
        "near the threshold of 0.5, the nearest first: from 0.20 to 0.80, where the odds are within a factor of 4",
        "no, i really can't say",
        "an empty reply, too: it is unscored (empty_reply)",
        "Replies to one request may depend on each other; nothing here shows that they do: the",
        "rows.jsonl:92",
        "abababababababab…",
        "openai: messages=messages (2 files)",
        "1.2.3",
    )
    assert [one for one in expected if one not in text] == []


def test_no_reply_stands_twice_under_a_kind(counted_audit: Callable[[str], Audit]) -> None:
    """Where it has no probability, either, so that no two examples of it are equal."""
    audit = counted_audit("standard")
    example = audit.highlights.surest["privacy"][0]
    once, again = (replace(example, refusal_probability=float("nan")) for _ in range(2))
    highlights = replace(audit.highlights, surest={"privacy": (once,)}, doubtful={"privacy": (again,)})
    (kind,) = kinds(replace(audit, tally=replace(audit.tally, highlights=highlights)))
    assert (len(kind.surest), kind.doubtful) == (1, ())


def test_why_there_is_no_corrected_share_is_said(full_audit: Audit) -> None:
    """Without error rates the raw share stands alone, and the page says so."""
    blind = Audit(full_audit.path, full_audit.taxonomy, full_audit.tally, full_audit.manifest, {})
    page = html.unescape(render_html(blind))
    assert "Not corrected: the error rates of 'scripted' are not known." in page
    assert "<strong>n/a</strong>" in page


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("strict", "2 of 4 scored replies refuse: 2 in full, 1 in part, which does not count (policy strict)."),
        ("standard", "3 of 4 scored replies refuse: 2 in full, 1 in part."),
        ("broad", "among them as far as a low threshold finds them (policy broad)."),
    ],
)
def test_the_headline_names_a_policy_that_is_not_the_usual_one(
    counted_audit: Callable[[str], Audit], policy: str, expected: str
) -> None:
    """2 in full, 1 in part, 1 answer: 2 of 4 or 3 of 4; why there is no corrected share is said for the others."""
    text = " ".join("".join(_Page(render_html(counted_audit(policy))).texts).split())
    assert expected in text
    assert ("do not say which refuse" in text) is (policy != "standard")


def test_an_audit_of_nothing_is_a_page_without_numbers(empty_audit: Audit) -> None:
    """No plot, no nan, no 0% where nothing was counted."""
    page = _Page(render_html(empty_audit))
    text = "".join(page.texts)
    assert "No reply could be judged" in text
    assert "There is no refusal to show." in text
    assert "svg" not in page.tags
    assert not re.search(r"\bnan\b", text)


def test_the_ids_of_a_page_are_its_own(full_audit: Audit) -> None:
    """Three drawings share none, and all that is referred to is there."""
    page = render_html(full_audit)
    ids = [value for name, value in _Page(page).attributes if name == "id"]
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r'(?:url\(|href=")#([^)"]+)', page))
    assert referred
    assert referred <= set(ids)


def test_shares_are_worked_out_once_for_each_part_of_a_page(
    full_audit: Audit, taxonomy: Taxonomy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not once for each kind: design effects of very many kinds take their time."""
    taken: list[Composition] = []
    original = Composition._shares

    def counted(self: Composition, *given: Any) -> dict[str, Share]:
        taken.append(self)
        return original(self, *given)

    monkeypatch.setattr(Composition, "_shares", counted)
    render_html(full_audit)
    assert 0 < len(taken) < 2 * len(taxonomy)


def test_plots_have_words_for_those_who_do_not_see_them(full_audit: Audit) -> None:
    """Each of the three drawings is one image with a label."""
    attributes = _Page(render_html(full_audit)).attributes
    assert attributes.count(("role", "img")) == 3
    assert {value for name, value in attributes if name == "aria-label"} >= {
        "Contents",
        "Share of scored replies that refuse, by kind, with 95% intervals",
        "Number of replies by probability of refusal",
        "Share of refusals by kind and side, with 95% intervals",
    }


def test_all_that_scrolls_is_reached_with_the_keyboard(full_audit: Audit) -> None:
    """Nine tables and three drawings, each under its name."""
    scrolling = re.findall(r'<div class="scroll"([^>]*)>', render_html(full_audit))
    assert len(scrolling) == 12
    assert all(re.search(r'role="group" aria-label="[^"]+" tabindex="0"', one) for one in scrolling)


def test_every_column_of_a_table_has_a_name(full_audit: Audit) -> None:
    """Those who hear a table hear it with each cell."""
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', render_html(full_audit))
    assert heads
    assert all(heads)


def test_more_rows_give_no_more_bytes(taxonomy: Taxonomy, full_audit: Audit) -> None:
    """Thirty times the rows, each of 100 kB, stay below 50 kB more."""
    small = render_html(full_audit)
    kinds = tuple(1 / len(taxonomy) for _ in taxonomy)
    verdict = Verdict("full", 0.8, "privacy", "should_not", kinds)
    judged = [Judged(Conversation.of("Q" * 9_999, f"No {row} " * 10_000), verdict) for row in range(900)]
    large_tally = full_audit.tally + Tally.of(judged, taxonomy, threshold=0.5)
    large = Audit(full_audit.path, taxonomy, large_tally, full_audit.manifest, full_audit.layouts)
    assert len(render_html(large)) < len(small) + 50_000


def test_the_same_audit_gives_the_same_page(full_audit: Audit) -> None:
    """No time, no random identifier."""
    assert render_html(full_audit) == render_html(full_audit)


def test_reports_are_written_beside_the_results(full_audit: Audit) -> None:
    """Both files are whole, and nothing temporary stays."""
    write_reports(full_audit)
    assert sorted(path.name for path in full_audit.path.iterdir()) == ["report.html", "report.md"]
    assert (full_audit.path / "report.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_a_place_that_cannot_be_written_is_named(full_audit: Audit, tmp_path: Path) -> None:
    """A file cannot hold a report."""
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(OutputError, match=r"report\.html: cannot be written"):
        write_reports(full_audit, tmp_path / "taken")
