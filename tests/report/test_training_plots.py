"""Hold the plots of trainings and ablations to the numbers that they show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demur.model.weights import Manifest
from demur.report.training_plots import ablation_plot, training_plot
from demur.studies.ablation import Line

LINES = [
    Line("as it is", {"gold gate.f1": (0.8, 1.0), "gold end_to_end": (0.4, 0.5)}),
    Line("a title that is too long for one line, and has a $", {"gold gate.f1": (0.7,), "gold end_to_end": (0.6,)}),
    Line("undefined", {"gold gate.f1": (math.nan, 0.9), "gold end_to_end": (math.nan, math.nan)}),
]


def _manifest(*epochs: tuple[float, float, float]) -> Manifest:
    names = ("training_loss", "gate_f1", "kind_accuracy")
    history = [{"epoch": i, **dict(zip(names, each, strict=True))} for i, each in enumerate(epochs, start=1)]
    return Manifest(
        encoder="e", encoder_sha256="", taxonomy_fingerprint="", categories=("a",), low_rank_scale=1.0, max_tokens=64,
        thresholds={}, calibration={}, held_out={}, training={"history": history},
    )  # fmt: skip


def _points(line: object) -> list[list[float]]:
    return np.asarray(line.get_xydata()).tolist()  # type: ignore[attr-defined, no-any-return]  # a Line2D


def test_the_history_is_drawn_as_it_is() -> None:
    """The loss beside the two scores, a whole epoch a tick; a score that was not measured leaves a gap."""
    losses, scores = training_plot(_manifest((2.5, 0.5, math.nan), (1.5, 0.75, 0.25))).axes
    assert [_points(line) for line in losses.lines] == [[[1, 2.5], [2, 1.5]]]
    assert _points(scores.lines[0]) == [[1, 0.5], [2, 0.75]]
    assert _points(scores.lines[1])[1] == [2, 0.25]
    assert math.isnan(_points(scores.lines[1])[0][1])
    assert scores.get_xticks().tolist() == [1, 2]


def test_a_training_of_one_epoch_can_be_drawn() -> None:
    """It is a dot in each panel, and no warning."""
    assert training_plot(_manifest((2.5, 0.5, 0.5)))._repr_png_()  # type: ignore[attr-defined]  # a NotebookFigure


def test_an_ablation_shows_means_spreads_and_seeds() -> None:
    """Of .8 and 1: whiskers .9 ± sqrt(.02), a dot for each seed, one at the mean, and the line of the first variant."""
    axes = ablation_plot(LINES[:1]).axes[0]
    whisker, seeds, mean, reference = axes.lines
    assert np.asarray(whisker.get_xdata()).tolist() == pytest.approx([0.9 - 0.02**0.5, 0.9 + 0.02**0.5])
    assert np.asarray(seeds.get_xdata()).tolist() == [0.8, 1.0]
    assert np.asarray(mean.get_xdata()).tolist() == pytest.approx([0.9])
    assert np.asarray(reference.get_xdata()).tolist() == pytest.approx([0.9, 0.9])


def test_a_panel_a_column_and_a_row_a_variant() -> None:
    """In the table's order, the titles at the first panel alone; long ones are wrapped, and none is mathematics."""
    figure = ablation_plot(LINES)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["gold gate.f1", "gold end_to_end"]
    first, second = ([label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes)
    assert [label.replace("\n", " ") for label in first] == [line.title.replace("$", r"\$") for line in LINES]
    assert "\n" in first[1]
    assert second == ["", "", ""]
    assert figure._repr_png_()  # type: ignore[attr-defined]  # a NotebookFigure


def test_columns_can_be_chosen() -> None:
    """One of the two, by its name."""
    (axes,) = ablation_plot(LINES, ["gold end_to_end"]).axes
    assert axes.get_title(loc="left") == "gold end_to_end"


def test_what_is_undefined_is_not_drawn() -> None:
    """A single seed has no whisker, an undefined mean no dot; with nothing at all, the panel is empty."""
    lines = ablation_plot(LINES[1:2], ["gold gate.f1"]).axes[0].lines
    assert len(lines) == len(["seed", "mean", "reference"])
    assert ablation_plot(LINES[2:])._repr_png_()  # type: ignore[attr-defined]  # a NotebookFigure
