"""Audits to render: one with everything in it, and one with nothing."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest

from demur.conversation import Conversation, Turn
from demur.data.rows import BrokenRow
from demur.errors import RowError
from demur.stats.prevalence import OperatingPoint
from demur.studies.findings import Audit
from demur.studies.tally import Judged, Tally
from demur.taxonomy import Taxonomy
from demur.verdict import Evidence, Policy, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from demur.stats.conformal import CategorySets

# Of the hostile reply, the markup itself.
EVIDENCE = Evidence(12, 42, 0.97)
HOSTILE = "No, I can't.</dd><script>alert(1)</script> | `x` ![i](http://example.com/x.png) \u202egnp\n```\n# head"


def audit_of(judged: Sequence[Judged], taxonomy: Taxonomy, path: Path, **options: Any) -> Audit:
    """Return an audit as if these were all its rows."""
    manifest = {
        "source": {"name": options.get("name", "rows.jsonl"), "fingerprint": "ab" * 32},
        "model": {"name": "scripted", "weights_sha256": "cd" * 32},
        "taxonomy": {"name": taxonomy.name, "version": taxonomy.version, "fingerprint": taxonomy.fingerprint},
        "policy": options.get("policy", "standard"),
        "thresholds": {"refusal": 0.5, "partial": 0.5, "further": 0.3},
        "category_sets": options.get("category_sets"),
        "options": {"limit": None, "layout": None, "fields": {}, "turns": "last", "chunk": 1024},
        "demur": "1.2.3",
    }
    counted = [Judged(one.item, one.verdict.under(Policy(manifest["policy"]))) for one in judged]
    tally = Tally.of(counted, taxonomy, threshold=0.5)
    return Audit(path, taxonomy, tally, manifest, {"openai: messages=messages": 2}, options.get("at"))


def _verdict(taxonomy: Taxonomy, key: str, probability: float) -> Verdict:
    rest = 0.2 / (len(taxonomy) - 1)
    kinds = tuple(0.8 if each == key else rest for each in taxonomy.keys)
    if probability < 0.5:
        return Verdict("none", probability, category_probabilities=kinds)
    return Verdict("full", probability, key, taxonomy.group_of(key), kinds)


def judged_rows(taxonomy: Taxonomy, n: int) -> list[Judged]:
    """Return `n` pairs, a third of them refused, over all categories in turn."""
    found = []
    for row in range(n):
        for side in ("chosen", "rejected"):
            probability = 0.9 if (row + (side == "rejected")) % 3 == 0 else 0.2
            reply = "No, I really can't say." if probability > 0.5 else f"Answer {row}."
            talk = Conversation((Turn("user", f"Q{row}"), Turn("assistant", reply)), row_id=row, side=side)
            found.append(Judged(talk, _verdict(taxonomy, taxonomy.keys[row % len(taxonomy)], probability)))
    return found


@pytest.fixture(scope="session")
def taxonomy() -> Taxonomy:
    """Return the shipped taxonomy."""
    return Taxonomy.load()


@pytest.fixture
def full_audit(taxonomy: Taxonomy, tmp_path: Path) -> Audit:
    """Return an audit with sides, hostile text, an unscored reply, a broken row and known error rates."""
    talk = Conversation((Turn("user", "<img src=x onerror=alert(2)>"), Turn("assistant", HOSTILE)), row_id=90)
    error = RowError("not JSON <b>here</b> | there", where="rows.jsonl:92")
    judged = [
        *judged_rows(taxonomy, 30),
        Judged(talk, replace(_verdict(taxonomy, "privacy", 0.999), evidence=EVIDENCE)),
        Judged(talk, Verdict.unscored("empty_reply")),
        Judged(BrokenRow(91, error), Verdict.unscored(error.reason)),
    ]
    return audit_of(judged, taxonomy, tmp_path, name="<i>rows</i>.jsonl", at=OperatingPoint(90, 10, 95, 5))


@pytest.fixture
def paired_audit(tmp_path: Path) -> Callable[[Taxonomy], Audit]:
    """Return what makes an audit of 120 pairs in a given taxonomy."""
    return lambda taxonomy: audit_of(judged_rows(taxonomy, 120), taxonomy, tmp_path)


@pytest.fixture
def counted_audit(taxonomy: Taxonomy, tmp_path: Path) -> Callable[[str], Audit]:
    """Return what makes an audit of two refusals in full, one in part and one answer, under a given policy."""
    verdicts = [_verdict(taxonomy, "privacy", probability) for probability in (0.9, 0.9, 0.6, 0.1)]
    verdicts[2] = replace(verdicts[2], outcome="partial")
    talks = [Conversation((Turn("user", "Q"), Turn("assistant", f"R{row}")), row_id=row) for row in range(4)]
    judged = [Judged(talk, verdict) for talk, verdict in zip(talks, verdicts, strict=True)]
    return lambda policy: audit_of(judged, taxonomy, tmp_path, policy=policy)


@pytest.fixture
def stating_audit(taxonomy: Taxonomy, tmp_path: Path) -> Callable[[CategorySets], Audit]:
    """Return what makes an audit of four refusals of one kind, one of a group, and three undetermined ones."""
    sets = [("privacy",)] * 4 + [("privacy", "nsfw_content")] + [("privacy", "skill_level")] * 3
    judged = []
    for row, kinds in enumerate(sets):
        groups = tuple(dict.fromkeys(taxonomy.group_of(kind) for kind in kinds))
        talk = Conversation((Turn("user", "Q"), Turn("assistant", f"R{row}")), row_id=row)
        verdict = replace(_verdict(taxonomy, "privacy", 0.9), category_set=kinds, group_set=groups)
        judged.append(Judged(talk, verdict))
    return lambda stated: audit_of(judged, taxonomy, tmp_path, category_sets=asdict(stated))


@pytest.fixture
def empty_audit(taxonomy: Taxonomy, tmp_path: Path) -> Audit:
    """Return an audit of nothing."""
    return audit_of([], taxonomy, tmp_path)
