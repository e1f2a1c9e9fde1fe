"""An audit that was killed with SIGKILL, at any moment, ends with the same bytes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
def test_an_audit_killed_at_any_moment_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Ten moments, each drawn from all function calls of a run over six shards, a third of its texts repeated."""
    draw = random.Random(2)
    replies = [f"{'No' if draw.random() < 0.4 else 'Yes'}{'.' * draw.randrange(60)}" for _ in range(96)]
    rows = [json.dumps({"prompt": "Q", "response": reply}) for reply in replies]
    rows[50] = "{broken"
    source = tmp_path / "rows.jsonl"
    source.write_text("\n".join(rows) + "\n")
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run(
        [sys.executable, script, source, tmp_path, "5", str(KILLS)], capture_output=True, text=True, check=True
    )
    codes = json.loads(done.stdout)
    assert codes == {"whole": [0], "killed": [-9] * KILLS, "resumed": [0] * KILLS}, done.stderr
    written = json.loads((tmp_path / "whole" / "composition.json").read_text())
    assert written["rows"] == 96
    assert 0 < written["repeats"] < 96
    for name in ("composition.json", "tally.json", "verdicts.parquet"):
        whole = (tmp_path / "whole" / name).read_bytes()
        assert [(tmp_path / f"cut-{i}" / name).read_bytes() == whole for i in range(KILLS)] == [True] * KILLS
    assert not list(tmp_path.glob("cut-*/shards"))
