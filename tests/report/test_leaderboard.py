"""A leaderboard says who is what, on how many rows, and shows names as text."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import demur
from demur.report.agreement_tables import figure_cell
from demur.report.leaderboard import leaderboard_markdown, leaderboard_text, require_board, write_leaderboard
from demur.report.leaderboard_html import render_leaderboard
from demur.report.leaderboard_plots import band_plot, frontier_plot
from demur.report.leaderboard_tables import band_table, figure, main_table, pace_table, short_table, versus_tables
from demur.report.leaderboard_words import plot_caption
from demur.stats.agreement import Coefficient
from demur.stats.resampling import Estimate

if TYPE_CHECKING:
    from pathlib import Path

    from demur.studies.leaderboard import Leaderboard

HOSTILE = "m_1<script>$x|"


def rows(kind: str, n: int = 12) -> list[dict[str, Any]]:
    """Write replies that three annotators read, the first of them not the last two, and the second wrong on one."""
    found = []
    for row in range(n):
        is_refusal = row % 2 == 0
        verdict = {"verdict": "full", "labels": ["privacy"]} if is_refusal else {"verdict": "none", "labels": []}
        said = [{"annotator": name, "kind": kind, **verdict} for name in (HOSTILE, "m_2", "m_3")]
        if row == 0:
            said[1] = {"annotator": "m_2", "kind": kind, "verdict": "none", "labels": []}
        reply = "I'm sorry, but I can't help with that." if is_refusal else "Yes, of course."
        messages = [{"role": "user", "content": f"Q {row}"}, {"role": "assistant", "content": reply}]
        found.append({"id": str(row), "messages": messages, "annotations": said[1:] if row >= n - 2 else said})
    return found


@pytest.fixture(scope="module")
def models() -> Leaderboard:
    """Measure keywords and three models."""
    costs = {f"{HOSTILE} (LLM)": 90.0}
    return demur.benchmark(rows("llm"), ["keywords", "annotators"], resamples=20, usd_per_hour=0, usd_per_million=costs)


def test_models_are_called_models_and_people_people(models: Leaderboard) -> None:
    """In the text, the tables and the page."""
    text = leaderboard_text(models)
    assert "against the consensus of 3 LLM annotators: clear on whether it refuses for 12" in text
    assert "LLM annotators are language models, and no people" in text
    people = leaderboard_text(demur.benchmark(rows("human"), ["keywords", "annotators"], resamples=5))
    assert "against the consensus of 3 people" in people
    assert "LLM" not in people
    assert "Against the median person" in people


def test_the_tables_show_coverage_place_and_cost(models: Leaderboard) -> None:
    """The first annotator read ten of twelve; nobody is compared with itself; who has no cost is not in that table."""
    main = {row[0]: dict(zip(main_table(models).head, row, strict=True)) for row in main_table(models).rows}
    assert main[f"{HOSTILE} (LLM)"]["Replies read"] == "10 of 12"
    assert main["keywords"]["What it is"] == "program"
    assert main["keywords"]["Unscored"] == "0%"
    assert main["keywords"]["Measured on"] == "12"
    assert main["keywords"]["F1"].startswith("1.000")
    better = {row[0]: row[4] for row in band_table(models).rows}
    assert better["keywords"].endswith("of 3")
    assert better["m_2 (LLM)"] == "0 of 2"
    assert {row[0] for row in pace_table(models).rows} == {"keywords", f"{HOSTILE} (LLM)"}
    gate, kind = versus_tables(models)
    assert "keywords" not in {row[0] for row in gate.rows}
    assert gate.head[3] == "Difference in F1"
    assert "Difference in F1" not in kind.head
    assert "for AUROC, whose percentiles begin too high" in leaderboard_markdown(models)


def test_two_annotators_measure_others_only_where_they_agree() -> None:
    """They differ on one of twelve replies: each is measured on all of them, against the other, and it is said."""
    pairs = [{**row, "annotations": row["annotations"][-2:]} for row in rows("human")]
    found = demur.benchmark(pairs, ["keywords", "annotators"], resamples=5)
    main = {row[0]: dict(zip(main_table(found).head, row, strict=True)) for row in main_table(found).rows}
    assert {name: row["Measured on"] for name, row in main.items()} == {
        "keywords": "11",
        "m_2 (human)": "12",
        "m_3 (human)": "12",
    }
    assert {row["Replies read"] for row in main.values()} == {"12 of 12"}
    assert "Not everybody is measured on the same replies" in leaderboard_text(found)
    assert "with two annotators, only where both agree" in leaderboard_markdown(found)
    alike = demur.benchmark(pairs[1:], ["keywords", "annotators"], resamples=5)
    assert "Not everybody" not in leaderboard_text(alike)


def test_names_stand_as_text_and_never_as_markup(models: Leaderboard) -> None:
    """In Markdown, on the page, and in its drawings."""
    page = render_leaderboard(models)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == 2
    assert "<script>" not in leaderboard_markdown(models).replace(r"\<script\>", "")


def test_drawings_hold_names_of_any_script_as_text(models: Leaderboard, tmp_path: Path) -> None:
    """To be searched and read aloud, with no warning of a font that lacks them, and without what XML cannot hold."""
    named = replace(models, entries=tuple(replace(one, name=f"李雷 \x1b{one.name}") for one in models.entries))
    write_leaderboard(named, tmp_path)
    drawn = [text.text for text in ET.parse(tmp_path / "frontier.svg").iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314  # the drawing is ours
    assert drawn.count("李雷 \ufffdkeywords") == 2
    assert (tmp_path / "leaderboard.html").read_text(encoding="utf-8").count(">李雷 \ufffdkeywords</text>") == 3


def test_what_the_data_hold_does_not_steer_the_terminal(models: Leaderboard) -> None:
    """Control characters out of the names of labelers are replaced, in tables and in notes."""
    entries = tuple(replace(one, name=f"\x1b{one.name}", stopped="the budget is spent") for one in models.entries)
    text = leaderboard_text(replace(models, entries=entries))
    assert "keywords did not come to all rows" in text
    assert "\x1b" not in text


def test_the_plots_show_who_has_a_cost_and_the_band_of_the_others(models: Leaderboard) -> None:
    """Two points with names and one band in each panel; in the other plot, one dot for each labeler."""
    figure = frontier_plot(models)
    names = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(names) == sorted(["keywords", f"{HOSTILE} (LLM)".replace("$", r"\$")])
    assert len(figure.axes[0].patches) == 1
    dots = [line for line in band_plot(models).axes[0].lines if line.get_marker() == "o"]
    assert len(dots) == 4


def test_long_names_leave_room_for_what_is_drawn(models: Leaderboard) -> None:
    """Names of models have fifty characters, and those of files more: their middle is left out."""
    entries = tuple(replace(one, name=f"judge:{'w' * 200}/{one.name}") for one in models.entries)
    for draw in (frontier_plot, band_plot):
        figure = draw(replace(models, entries=entries))
        figure.draw_without_rendering()  # a warning that the axes have no room would be an error
        assert min(axes.get_position().width for axes in figure.axes) > 0.15


def test_a_name_is_no_formula_of_a_spreadsheet(models: Leaderboard, tmp_path: Path) -> None:
    """In the CSV it begins with an apostrophe; any other name stands as it is, as do numbers below 0."""
    names = ["=1+1", "+1", "@x", "a=b"]
    entries = tuple(replace(one, name=name) for one, name in zip(models.entries, names, strict=True))
    write_leaderboard(replace(models, entries=entries), tmp_path)
    cells = pd.read_csv(tmp_path / "leaderboard.csv", index_col="labeler")
    assert cells.index.to_list() == ["'=1+1", "'+1", "'@x", "a=b"]
    kappas = [entry.kind_kappa.value for entry in models.entries]
    assert cells["kind_kappa"].to_list() == pytest.approx(kappas, nan_ok=True)


@pytest.mark.parametrize(
    ("seconds", "usd", "said"),
    [
        (2.34e-5, 0.00571, ("23.4 \u00b5s", "0.00571")),
        (1e-4, 0.25, ("0.1 ms", "0.25")),
        (0.0234, 1.0, ("23.4 ms", "1.00")),
        (1.5, 1234.5, ("1.50 s", "1,234.50")),
        (0.0, 0.0, ("0.0 ms", "0")),
        (math.nan, 0.0, ("n/a", "0")),
    ],
)
def test_little_time_and_money_never_read_as_none(
    models: Leaderboard, seconds: float, usd: float, said: tuple[str, str]
) -> None:
    """The frontier rests on who is cheaper: what costs nothing, and what costs half a cent, are told apart."""
    pace = replace(models.entries[0].pace, latency_seconds=seconds, usd_per_million=usd)
    found = replace(models, entries=(replace(models.entries[0], pace=pace),))
    assert pace_table(found).rows[0][3:5] == said
    assert main_table(found).rows[0][-2:] == said
    assert short_table(found).rows[0][-1] == said[1]


def test_without_costs_none_is_shown(tmp_path: Path) -> None:
    """A program whose cost nobody says is as unknown as a judge without a price: no plot, no figure, no frontier."""
    found = demur.benchmark(rows("llm"), ["keywords", "annotators"], resamples=5)
    (row,) = pace_table(found).rows
    assert (row[0], row[1], row[-2:]) == ("keywords", "not known", ("n/a", "no"))
    assert dict(zip(main_table(found).head, main_table(found).rows[0], strict=True))["USD a million rows"] == "n/a"
    assert "Accuracy over cost" not in render_leaderboard(found)
    write_leaderboard(found, tmp_path)
    assert "Accuracy over cost" not in (tmp_path / "leaderboard.md").read_text(encoding="utf-8")
    assert not (tmp_path / "frontier.svg").exists()


def test_the_caption_speaks_of_a_line_where_there_is_one(models: Leaderboard) -> None:
    """The second labeler with a cost has to be better for that; the drawing has one line more, then."""
    dearer = demur.benchmark(rows("llm"), ["keywords"], resamples=5, usd_per_hour=1.0)
    assert plot_caption(dearer).startswith("Accuracy over cost.")
    assert not [line for line in frontier_plot(dearer).axes[0].lines if line.get_drawstyle() == "steps-post"]
    drawn = [line for line in frontier_plot(models).axes[0].lines if line.get_drawstyle() == "steps-post"]
    assert plot_caption(models).startswith("Accuracy over cost; the line") is bool(drawn) is models.has_frontier_line


def test_a_point_at_zero_is_drawn_whole(models: Leaderboard) -> None:
    """The keyword list names no kind here right: the axis begins below the point."""
    assert models["keywords"].head.accuracy.value == 0
    assert frontier_plot(models).axes[1].get_ylim()[0] < 0


def test_a_folder_holds_every_form(models: Leaderboard, tmp_path: Path) -> None:
    """Written again, it is replaced; the drawing that Markdown points at is there."""
    for _ in range(2):
        write_leaderboard(models, tmp_path / "board")
    assert "](frontier.svg)" in (tmp_path / "board" / "leaderboard.md").read_text(encoding="utf-8")
    assert (tmp_path / "board" / "frontier.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert not list((tmp_path / "board").glob("*.tmp"))


def test_a_board_that_was_stopped_halfway_may_be_replaced(
    models: Leaderboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever file it was stopped at, the folder is known for a leaderboard's."""

    def stopped(_: Leaderboard) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("demur.report.leaderboard_html.render_leaderboard", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_leaderboard(models, tmp_path)
    assert (tmp_path / "frontier.svg").exists()
    require_board(tmp_path, overwrite=True)


def test_tables_of_figures_round_nothing_to_certainty() -> None:
    """An AUROC of .9996 in a leaderboard, a kappa in an agreement."""
    found = Estimate(0.9996, 0.99, 0.9999, 100)
    assert figure(found) == figure_cell(Coefficient("cohen", found)) == ">0.999 (0.990 to >0.999)"
    assert figure(Estimate(0.0004, -0.0004, 0.2, 10), signed=True) == "<+0.001 (>-0.001 to +0.200)"
