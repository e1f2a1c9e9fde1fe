"""Hold the package's public names to those that it lists."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import astuple
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import demur
from demur.errors import LabelerError
from demur.stats.conformal import CategorySets

if TYPE_CHECKING:
    from pathlib import Path


def test_public_names_are_sorted_and_stand_once() -> None:
    """In the order of `sorted`, capitals first."""
    assert demur.__all__ == sorted(set(demur.__all__))


@pytest.mark.parametrize("name", demur.__all__)
def test_a_public_name_is_what_its_module_calls_so(name: str) -> None:
    """Each resolves, and its module lists it in `__all__` too."""
    home = import_module(demur._HOMES[name])
    assert getattr(demur, name) is getattr(home, name)
    assert name in home.__all__


def test_no_other_name_resolves() -> None:
    """What can be loaded is exactly what is listed, and the version."""
    assert sorted(demur._HOMES) == demur.__all__
    assert sorted(dir(demur)) == sorted([*demur.__all__, "__version__"])
    assert str(demur.__version__).count(".") == 2
    with pytest.raises(AttributeError, match=r"no attribute 'Classifier'; it offers Agreement, "):
        _ = demur.Classifier


def test_a_star_import_brings_the_public_names() -> None:
    """In a process of its own, since it fills a namespace."""
    code = "from demur import *; import demur; assert set(demur.__all__) <= set(globals())"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_finished_audit_can_be_opened_again(tmp_path: Path) -> None:
    """Its numbers are those that it ended with."""
    made = demur.audit(["I can't help with that.", "Yes."], labeler=demur.KeywordLabeler(), out=tmp_path)
    # As tuples, where one nan is equal to itself: Python 3.13 compares the fields of dataclasses one by one.
    assert astuple(demur.open_audit(tmp_path)) == astuple(made)


def test_a_coverage_is_not_given_to_a_labeler_that_would_not_know_of_it() -> None:
    """It would be ignored silently; but None asks for no sets, and of keywords there are none."""
    with pytest.raises(ValueError, match=r"coverage 0\.9, but 'keywords' gives no sets of kinds; leave it out"):
        demur.audit(["Yes."], labeler=demur.KeywordLabeler(), coverage=0.9)
    assert demur.audit(["Yes."], labeler=demur.KeywordLabeler(), coverage=None).rows == 1
    stating: Any = SimpleNamespace(name="mine", label=list, category_sets=CategorySets(0.9, 40, 0.1))
    for coverage in (0.8, None):
        with pytest.raises(ValueError, match="the sets of 'mine' are its own; load it with that coverage"):
            demur.audit(["Yes."], labeler=stating, coverage=coverage)


def test_an_audit_opens_labelers_by_the_names_that_a_benchmark_knows(tmp_path: Path) -> None:
    """What one annotator said is given again; what names none, or several, is said with what would be right."""
    said = {"annotator": "ada", "kind": "human", "verdict": "full", "labels": []}
    row = {"messages": [{"role": "user", "content": "Do it."}, {"role": "assistant", "content": "I won't."}]}
    path, both = tmp_path / "said.jsonl", tmp_path / "both.jsonl"
    path.write_text(json.dumps({**row, "annotations": [said]}), encoding="utf-8")
    both.write_text(json.dumps({**row, "annotations": [said, {**said, "annotator": "bo"}]}), encoding="utf-8")
    assert demur.audit([row], labeler=f"recorded:{path}").refusals == 1
    assert demur.audit(["I can't help with that.", "Yes."], labeler="keywords").refusals == 1
    with pytest.raises(LabelerError, match=r"holds several annotators \(ada \(human\), bo \(human\)\)"):
        demur.audit([row], labeler=f"recorded:{both}")
    for name in ("annotators", "keywords,demur", "keyword"):
        with pytest.raises(
            LabelerError, match=f"'{name}' is not one labeler; give one of demur, keywords, judge:MODEL"
        ):
            demur.audit([row], labeler=name)
    with pytest.raises(ValueError, match="'keywords' gives no sets of kinds; leave it out"):
        demur.audit([row], labeler="keywords", coverage=0.9)


@pytest.mark.parametrize(("given", "met"), [(demur.KeywordLabeler, "the class KeywordLabeler"), (5, "int 5")])
def test_what_is_no_labeler_is_said_with_what_would_be(given: Any, met: str) -> None:
    """A class has to be called first."""
    said = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    rows = [{**said, "annotations": [{"annotator": "ada", "kind": "human", "verdict": "full", "labels": []}]}]
    with pytest.raises(TypeError, match=f"{met} is no labeler; give one that is made"):
        demur.audit(["Yes."], labeler=given)
    with pytest.raises(TypeError, match=f"{met} is no labeler; give one that is made"):
        demur.benchmark(rows, [given])


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_no_rows_is_none(limit: int) -> None:
    """The command line says so, too."""
    with pytest.raises(ValueError, match=f"limit {limit}; give a number of rows from 1 on"):
        demur.audit(["Yes."], labeler="keywords", limit=limit)
