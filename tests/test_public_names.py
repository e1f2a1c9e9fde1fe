"""Hold the package's public names to those that it lists."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

import demur

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
    assert demur.open_audit(tmp_path) == made


def test_a_coverage_is_not_given_to_a_labeler_that_would_not_know_of_it() -> None:
    """It would be ignored silently; None and numbers alike."""
    for coverage in (0.9, None):
        with pytest.raises(ValueError, match="the sets of 'keywords' are its own"):
            demur.audit(["Yes."], labeler=demur.KeywordLabeler(), coverage=coverage)
