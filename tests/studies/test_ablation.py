"""Hold ablations to their plan, on a tiny encoder: which cells are computed, kept and refused, and the averages."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demur.errors import DemurError, OutputError, SourceError
from demur.model.encoders import Encoder
from demur.studies import ablation
from demur.studies.ablation import Cell, Line, ablate
from demur.studies.plan import Dev, Plan, Variant
from demur.studies.recipe import Recipe, Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from demur.model.settings import TrainingSettings
    from demur.model.training import Step
    from demur.taxonomy import Taxonomy

PLAN = Plan(
    name="mine",
    recipe="base",
    seeds=(66, 67),
    evaluations=(Dev("hand.jsonl", figures=("gate.f1", "head.accuracy")),),
    variants=(
        Variant("plain", "as it is"),
        Variant("frozen", "frozen encoder", method="frozen"),
        Variant("reply", "reply alone", reads="reply"),
    ),
)
ALL = [f"{key}-{seed}" for seed in (66, 67) for key in ("plain", "frozen", "reply")]


@pytest.fixture
def base(tiny_settings: TrainingSettings) -> Recipe:
    """Return a recipe of the hand-made rows, for one epoch."""
    return Recipe(name="base", sources=(Source("hand.jsonl"),), settings=replace(tiny_settings, epochs=1))


@pytest.fixture
def run(
    base: Recipe, tiny_encoder: Path, labelled_file: Path, taxonomy: Taxonomy, tmp_path: Path
) -> Callable[..., tuple[list[Line], list[str]]]:
    """Return what runs a plan in one folder and gives its lines, and the cells that were computed."""

    def runs(plan: Plan = PLAN, recipe: Recipe = base, encoder: Path = tiny_encoder) -> tuple[list[Line], list[str]]:
        computed: list[Cell] = []
        lines = ablate(
            plan, recipe, tmp_path / "out", folders=[labelled_file.parent], taxonomy=taxonomy,
            encoder=Encoder.find(str(encoder)), resamples=5, on_cell=computed.append,
        )  # fmt: skip
        return lines, [cell.name for cell in computed]

    return runs


def test_a_place_that_cannot_be_written_to_is_named(base: Recipe, taxonomy: Taxonomy, tiny_encoder: Path) -> None:
    """Before anything is trained."""
    encoder = Encoder.find(str(tiny_encoder))
    with pytest.raises(OutputError, match=r"cannot write to '/dev/null/out'"):
        ablate(PLAN, base, Path("/dev/null/out"), folders=[], taxonomy=taxonomy, encoder=encoder)


def test_what_cells_are_evaluated_on_is_met_before_they_are_trained(
    base: Recipe, taxonomy: Taxonomy, tiny_encoder: Path, tmp_path: Path
) -> None:
    """A missing file would else be found after an hour."""
    plan = replace(PLAN, evaluations=(replace(PLAN.evaluations[0], path="none.jsonl"),))
    met: list[Cell] = []
    with pytest.raises(SourceError, match=r"none\.jsonl"):
        ablate(
            plan, base, tmp_path, folders=[tmp_path], taxonomy=taxonomy, encoder=Encoder.find(str(tiny_encoder)),
            on_cell=met.append,
        )  # fmt: skip
    assert not met


def test_what_is_evaluated_on_and_trained_on_is_said(
    run: Callable[..., tuple[list[Line], list[str]]], base: Recipe, caplog: pytest.LogCaptureFixture
) -> None:
    """Not where the recipe avoids it."""
    plan = replace(PLAN, seeds=(66,), variants=PLAN.variants[1:2])
    run(plan)
    assert "hand.jsonl: the prompts of " in caplog.text
    assert "are trained on" in caplog.text
    caplog.clear()
    with pytest.raises(DemurError):
        run(plan, replace(base, avoid=("hand.jsonl",)))
    assert "trained on" not in caplog.text


def test_each_variant_has_a_line_of_one_figure_a_seed(run: Callable[..., tuple[list[Line], list[str]]]) -> None:
    """In the plan's order; the columns name file and figure."""
    lines, computed = run()
    assert computed == ALL
    assert [line.title for line in lines] == ["as it is", "frozen encoder", "reply alone"]
    for line in lines:
        assert list(line.figures) == ["hand gate.f1", "hand head.accuracy"]
        assert {len(values) for values in line.figures.values()} == {2}
        assert all(0 <= value <= 1 for values in line.figures.values() for value in values)


def test_a_finished_cell_is_not_computed_again(
    run: Callable[..., tuple[list[Line], list[str]]], tmp_path: Path
) -> None:
    """A second run computes nothing; without one cell's file, that cell alone, to the same figures."""
    lines, _ = run()
    assert run() == (lines, [])
    (tmp_path / "out" / "cells" / "reply-66.json").unlink()
    assert run() == (lines, ["reply-66"])


def test_a_longer_plan_computes_what_it_adds(run: Callable[..., tuple[list[Line], list[str]]]) -> None:
    """Cells belong to variant and seed, not to the plan as a whole."""
    run(replace(PLAN, variants=PLAN.variants[1:2]))
    assert run(replace(PLAN, variants=PLAN.variants[:2]))[1] == ["plain-66", "plain-67"]


def test_a_stopped_run_keeps_its_cells_and_says_how_to_go_on(
    base: Recipe, tiny_encoder: Path, labelled_file: Path, taxonomy: Taxonomy, tmp_path: Path
) -> None:
    """The first cell is kept, and the note names the folder."""

    def stop(cell: Cell) -> None:
        if cell.number == 2:
            raise KeyboardInterrupt

    def stop_at_step(_: object) -> None:
        raise KeyboardInterrupt

    given = {"folders": [labelled_file.parent], "taxonomy": taxonomy, "encoder": Encoder.find(str(tiny_encoder))}
    with pytest.raises(KeyboardInterrupt):
        ablate(PLAN, base, tmp_path / "out", on_cell=stop, **given)  # type: ignore[arg-type]  # given above
    assert [path.name for path in (tmp_path / "out" / "cells").iterdir()] == ["plain-66.json"]
    plan = replace(PLAN, seeds=(67,))
    with pytest.raises(KeyboardInterrupt) as stopped:
        ablate(plan, base, tmp_path / "out", on_step=stop_at_step, **given)  # type: ignore[arg-type]  # given above
    assert any("the same command goes on" in note for note in stopped.value.__notes__)


@pytest.mark.parametrize(
    ("change", "is_kept"),
    [({}, True), ({"reads": "reply"}, False), ({"settings": {"rank": 2}}, False)],
    ids=["the same", "another view", "another recipe"],
)
def test_a_cell_stopped_in_its_evaluation_keeps_its_training(
    base: Recipe, tiny_encoder: Path, labelled_file: Path, taxonomy: Taxonomy, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], is_kept: bool,
) -> None:  # fmt: skip
    """Its weights are taken as they are where they are those of the cell, to the same figures as of a run in one."""
    steps: list[Step] = []
    given: dict[str, Any] = {
        "folders": [labelled_file.parent], "taxonomy": taxonomy, "encoder": Encoder.find(str(tiny_encoder)),
        "resamples": 5, "on_step": steps.append,
    }  # fmt: skip
    plan = replace(PLAN, seeds=(66,), variants=PLAN.variants[:1])

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(ablation, "evaluate", stop)
        with pytest.raises(KeyboardInterrupt):
            ablate(plan, base, tmp_path / "out", **given)
    n_steps = len(steps)
    assert n_steps > 0
    plan = replace(plan, variants=(replace(plan.variants[0], **change),))
    lines = ablate(plan, base, tmp_path / "out", **given)
    assert len(steps) == (n_steps if is_kept else 2 * n_steps)
    assert lines == ablate(plan, base, tmp_path / "in one", **given)


def test_a_cell_of_another_recipe_is_refused(
    run: Callable[..., tuple[list[Line], list[str]]], base: Recipe, tmp_path: Path
) -> None:
    """It is neither taken for this one's nor overwritten; a damaged one is named."""
    plan = replace(PLAN, seeds=(66,), variants=PLAN.variants[1:2])
    run(plan)
    with pytest.raises(OutputError, match=r"frozen-66\.json differs in recipe from what is asked for"):
        run(plan, replace(base, hard_negative_weight=2.0))
    (tmp_path / "out" / "cells" / "frozen-66.json").write_text("{")
    with pytest.raises(OutputError, match=r"frozen-66\.json is damaged"):
        run(plan)


def test_a_cell_of_another_tokenizer_is_refused(
    run: Callable[..., tuple[list[Line], list[str]]], tiny_encoder: Path, tmp_path: Path
) -> None:
    """The tensors alone do not say what a text becomes."""
    plan = replace(PLAN, seeds=(66,), variants=PLAN.variants[1:2])
    run(plan)
    folder = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(OutputError, match=r"frozen-66\.json differs in encoder from"):
        run(plan, encoder=folder)


def test_a_cell_keeps_the_whole_evaluation(run: Callable[..., tuple[list[Line], list[str]]], tmp_path: Path) -> None:
    """So that another figure of it needs no further training."""
    plan = replace(PLAN, seeds=(66,), variants=PLAN.variants[1:2])
    run(plan)
    other = replace(plan, evaluations=(replace(plan.evaluations[0], figures=("head.macro_f1",)),))
    lines, computed = run(other)
    assert computed == []
    stored = json.loads((tmp_path / "out" / "cells" / "frozen-66.json").read_bytes())
    assert lines[0].figures == {
        "hand head.macro_f1": (stored["evaluations"]["hand.jsonl"]["head"]["macro_f1"]["value"],)
    }


def test_mean_and_spread_are_over_the_seeds() -> None:
    """Of .8, .9 and 1: .9, and sqrt((.01 + 0 + .01) / 2) = .1; a single seed has no spread."""
    line = Line("x", {"three": (0.8, 0.9, 1.0), "one": (0.8,), "none": (math.nan, 0.8)})
    assert line.mean("three") == pytest.approx(0.9)
    assert line.spread("three") == pytest.approx(0.1)
    assert math.isnan(line.spread("one"))
    assert math.isnan(line.mean("none"))
