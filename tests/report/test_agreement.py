"""An agreement is written out whole, says what annotators are, and shows the data as text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import demur
from demur.errors import OutputError
from demur.report.agreement import agreement_markdown, agreement_text
from demur.report.agreement_html import render_agreement, write_agreement
from demur.report.agreement_plots import confusion_plot, pairs_plot
from demur.report.annotator_tables import matrix_table, pairs_table, reliability_table

if TYPE_CHECKING:
    from pathlib import Path

    from demur.studies.agreement import Agreement

HOSTILE = "<script>alert(1)</script> \x1b[31m $x$ | `y`"


def row(
    name: str, *said: tuple[str, str, str], source: str = "here", request: str = "Why?", reply: str = "No."
) -> dict[str, Any]:
    """Write a row; of each annotator its name, sort, and verdict with labels."""
    annotations = [
        {"annotator": who, "kind": kind, "verdict": words.split()[0], "labels": words.split()[1:], "sure": 2}
        for who, kind, words in said
    ]
    messages = [{"role": "user", "content": request}, {"role": "assistant", "content": reply}]
    return {"id": name, "source": source, "messages": messages, "annotations": annotations}


def test_names_of_any_script_are_drawn() -> None:
    """As text of the page, whose fonts hold what matplotlib's lack, and without a warning."""
    said = [(name, "human", "full privacy") for name in ("李雷", "محمد", "ada")]
    found = demur.agree([row(str(number), *said) for number in range(12)], resamples=5)
    assert ">李雷 (human)</text>" in render_agreement(found)


@pytest.fixture(scope="module")
def mixed() -> Agreement:
    """Measure two people and two models on replies of two sources, one of them hostile, and a row that is broken."""

    def four(name: str, *words: str, **more: str) -> dict[str, Any]:
        who = (("ada", "human"), ("bo", "human"), ("m_1", "llm"), (HOSTILE, "llm"))
        return row(name, *((*one, said) for one, said in zip(who, words, strict=True)), **more)

    rows = [
        four("r-1", "full privacy", "full privacy", "full privacy", "full skill_level", reply=HOSTILE),
        four("r-2", "none", "none", "full privacy", "none", source=HOSTILE),
        four("r-3", "full skill_level", "partial skill_level", "full skill_level", "full skill_level", source=HOSTILE),
        four("r-4", "none", "none", "none", "none"),
        {"id": "r-5", "annotations": [{"annotator": "ada", "kind": "<i>robot</i>"}]},
    ]
    return demur.agree(rows, resamples=20)


def test_every_part_stands_in_text_and_in_markdown(mixed: Agreement) -> None:
    """What there is, by whom, with which figures, and what could not be read."""
    text, markdown = agreement_text(mixed), agreement_markdown(mixed)
    for title in ("Overall", "By source", "By group and kind", "Who disagrees with whom", "What is confused"):
        assert title.upper() in text
        assert f"### {title}" in markdown
    for said in (
        "2 human and 2 LLM annotators: 16 verdicts on 4 replies; on 3 of them two annotators differ.",
        "no measure of how far people would",
        "each against the majority of the other people",
        "each against the majority of the other language models",
        "1 different request had 4 replies",
        "Reliability by the estimates of Dawid and Skene",
        "unreadable row",
        "write human or llm",
    ):
        assert said in text


def test_a_figure_stands_with_its_interval(mixed: Agreement) -> None:
    """Of the gate: three replies alike, one of them 3 to 1, so (1 + 1/2 + 1 + 1) / 4 = .875: of four, without one."""
    text = agreement_text(mixed)
    assert re.search(r"^Refuses or not +all +4 +0\.875 {2}", text, re.MULTILINE)
    assert "Nor is there one from fewer than 10 requests" in text
    said = [("none", "none")] * 9 + [("full", "none")] * 3
    rows = [
        row(str(n), ("a", "human", first), ("b", "human", other), request=f"Why {n}?")
        for n, (first, other) in enumerate(said)
    ]
    found = agreement_text(demur.agree(rows, resamples=50))
    assert re.search(r"^Refuses or not +all +12 +0\.750 \(0\.\d{3} to \d\.\d{3}\) ", found, re.MULTILINE)


def test_what_is_drawn_is_named_where_some_texts_are_not_known() -> None:
    """Replies to one request are drawn together all the same; only one without its text stands alone."""
    rows = [row(str(n), ("a", "human", "full"), ("b", "human", "none")) for n in range(3)]
    del rows[0]["messages"]
    text = agreement_text(demur.agree(rows, resamples=20))
    assert "resample requests, or, where a text is not known, its reply (20 draws" in text
    assert "Nor is there one from fewer than 10 of these" in text


def test_people_and_models_stand_apart_by_name(mixed: Agreement) -> None:
    """Each figure says of whom it is."""
    lines = [line for line in agreement_text(mixed).splitlines() if line.startswith("Refuses or not ")]
    assert [re.split(" {2,}", line)[1] for line in lines[:3]] == ["all", "people", "language models"]


def test_people_alone_are_not_warned_of() -> None:
    """The note on language models is for language models."""
    found = demur.agree([row("1", ("ada", "human", "full"), ("bo", "human", "none"))], resamples=5)
    assert "LLM annotators are" not in agreement_text(found)
    assert "Nothing is said of kinds: no annotator names the kind of any refusal." in agreement_text(found)


def test_an_undefined_figure_is_shown_as_such_with_its_reason() -> None:
    """Perfect agreement on one class: no kappa, and the caption says why."""
    rows = [row(str(n), ("ada", "human", "none"), ("bo", "human", "none")) for n in range(3)]
    text = agreement_text(demur.agree(rows, resamples=5))
    assert re.search(r"Refuses or not +all +3 +1\.000 +undefined +undefined +undefined +1\.000", text)
    assert "(undefined where no two annotators have a kappa" in text
    assert "are all of one class, so that chance alone agrees always" in text
    assert "nan" not in text
    assert "No two annotators differ" not in text  # a part without anything to show is left out


def test_a_reply_whose_text_is_not_known_says_how_to_give_it() -> None:
    """An excerpt of nothing would look like an empty reply."""
    given = row("1", ("ada", "human", "full"), ("bo", "human", "none"))
    del given["messages"]
    text = agreement_text(demur.agree([given], resamples=5))
    assert "Reply: not in the file; give the file that holds the messages by id" in text


def test_what_the_data_hold_does_not_steer_the_terminal(mixed: Agreement) -> None:
    """Control characters out of names, sources, replies and the name of the file are replaced."""
    assert "\x1b" not in agreement_text(replace(mixed, name=HOSTILE))


def test_what_the_data_hold_is_no_markup(mixed: Agreement) -> None:
    """In HTML a script is text; in Markdown a bar ends no cell."""
    page = render_agreement(mixed)
    assert "<script" not in page
    assert "<i>robot" not in page
    assert "&lt;script&gt;alert(1)" in page
    table = [line for line in agreement_markdown(mixed).splitlines() if "alert" in line and line.startswith("|")]
    assert table
    assert all("<script" not in line.replace(r"\<", "") for line in table)


def test_the_page_has_its_heat_maps_and_asks_for_nothing(mixed: Agreement) -> None:
    """Two of pairs, one of kinds; every link stays on the page."""
    page = render_agreement(mixed)
    assert page.count("<svg") == 3
    assert set(re.findall(r'href="(.)', page)) == {"#"}
    assert "@import" not in page
    assert page == render_agreement(mixed)


def test_two_annotators_need_no_map() -> None:
    """One kappa is no map."""
    found = demur.agree([row(str(n), ("a", "human", "full"), ("b", "human", "none")) for n in (1, 2)], resamples=5)
    assert "<svg" not in render_agreement(found)
    assert matrix_table(found).rows == ()


def test_the_maps_hold_the_figures(mixed: Agreement) -> None:
    """As many cells as there are pairs twice over; the numbers are those of the matrix."""
    (axes,) = pairs_plot(mixed, name="agreement").axes
    written = sorted(text.get_text() for text in axes.texts)
    assert written == sorted(f"{value:.2f}" for value in mixed.matrix(name="agreement").stack().dropna())
    (axes,) = confusion_plot(mixed).axes
    # privacy with skill_level on one of three replies with either, privacy with none on one of three
    assert [text.get_text() for text in axes.texts] == ["0.33"] * 4
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Privacy", "Skill level", "does not refuse"]


def test_the_pairs_that_agree_least_come_first(mixed: Agreement) -> None:
    """m_1 differs from each of the others on one reply."""
    first = pairs_table(mixed).rows[0]
    assert "m_1 (LLM)" in first[:2]
    assert first[2] == "4"
    assert first[3] == "0.750"


def test_what_an_annotator_never_met_is_a_dash_and_no_reliability() -> None:
    """Four people, of whom the last read no refusal: whether it would find one is not known."""
    said = [("full", "full", "full", "-")] * 5 + [("none", "none", "none", "none")] * 5
    rows = [
        row(str(n), *(("abcd"[who], "human", word) for who, word in enumerate(words) if word != "-"))
        for n, words in enumerate(said)
    ]
    found = demur.agree(rows, resamples=5)
    table = reliability_table(found)
    assert [dict(zip(table.head, each, strict=True))["Finds refusals"] for each in table.rows[2:]] == [
        "1.00",
        "\N{EN DASH}",
    ]
    stored = {(one["question"], one["annotator"], one["class"]): one for one in found.to_json()["reliabilities"]}
    assert stored["gate", "d (human)", "refusal"]["reliability"] is None
    assert stored["gate", "d (human)", "none"]["reliability"] == pytest.approx(1.0)


def test_the_page_is_written_whole_or_not_at_all(mixed: Agreement, tmp_path: Path) -> None:
    """A place that is a folder cannot be a page."""
    write_agreement(mixed, tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8") == render_agreement(mixed)
    with pytest.raises(OutputError):
        write_agreement(mixed, tmp_path / "new")
