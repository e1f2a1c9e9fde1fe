"""Where an audit is to be judged, and what is said where it cannot be; none of it needs Ray."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from demur.errors import ClusterError
from demur.labelers.keywords import KeywordLabeler
from demur.studies.audit import audit
from demur.studies.cluster import Cluster

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "address"),
    [("ray", None), ("ray://auto", "auto"), ("ray://10.0.0.1:10001", "ray://10.0.0.1:10001")],
)
def test_a_place_is_read(given: str, address: str | None) -> None:
    """The address of a Ray Client server is Ray's own; `auto` is Ray's word for the cluster of this machine."""
    assert Cluster.of(given) == Cluster(address)
    assert Cluster.of(given, workers=3).workers == 3


@pytest.mark.parametrize("given", ["", "spark", "ray://", "10.0.0.1:10001", "ray:auto"])
def test_what_is_no_place_is_answered_with_what_would_be(given: str) -> None:
    """Before anything is read or written."""
    with pytest.raises(ClusterError, match="give ray, ray://HOST:PORT or ray://auto"):
        audit(["No."], labeler=KeywordLabeler(), on=given)


def test_no_workers_are_too_few() -> None:
    """They would judge nothing."""
    with pytest.raises(ValueError, match="give at least 1"):
        Cluster(workers=0)


def test_without_ray_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And the next run into the same folder, with Ray or without, finds nothing in its way."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ClusterError, match=r'pip install "demur\[ray\]"'):
        audit(["No."], labeler=KeywordLabeler(), on="ray", out=tmp_path)
    assert audit(["No."], labeler=KeywordLabeler(), out=tmp_path).rows == 1


def test_what_can_be_read_only_once_is_not_sent_away() -> None:
    """A generator, or standard input: a worker that is lost could not be replaced."""
    with pytest.raises(ClusterError, match=r"can be read only once.*put it in a file, or in a list"):
        audit((reply for reply in ["No."]), labeler=KeywordLabeler(), on="ray")
