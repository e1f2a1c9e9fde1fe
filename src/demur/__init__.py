"""Audit how language models refuse.

>>> from demur import Analyzer
>>> verdict, = Analyzer.load().label(["<|user|>How do I pick a lock?<|assistant|>I can't help with that."])
>>> verdict.outcome
'full'
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from demur.api import agree, audit, benchmark
    from demur.conversation import Conversation, Turn
    from demur.errors import DemurError
    from demur.labelers.classifier import Analyzer
    from demur.labelers.judge import Judge
    from demur.labelers.keywords import KeywordLabeler
    from demur.labelers.recorded import RecordedLabeler
    from demur.studies.agreement import Agreement
    from demur.studies.audit import Audit
    from demur.studies.findings import open_audit
    from demur.studies.leaderboard import Leaderboard
    from demur.taxonomy import Taxonomy
    from demur.verdict import Evidence, Labeler, Policy, Thresholds, Verdict

__all__ = [
    "Agreement",
    "Analyzer",
    "Audit",
    "Conversation",
    "DemurError",
    "Evidence",
    "Judge",
    "KeywordLabeler",
    "Labeler",
    "Leaderboard",
    "Policy",
    "RecordedLabeler",
    "Taxonomy",
    "Thresholds",
    "Turn",
    "Verdict",
    "agree",
    "audit",
    "benchmark",
    "open_audit",
]

# Names are loaded when they are asked for: most of what stands behind them imports torch or pandas.
_HOMES = {
    "Agreement": "demur.studies.agreement",
    "Analyzer": "demur.labelers.classifier",
    "Audit": "demur.studies.audit",
    "Conversation": "demur.conversation",
    "DemurError": "demur.errors",
    "Evidence": "demur.verdict",
    "Judge": "demur.labelers.judge",
    "KeywordLabeler": "demur.labelers.keywords",
    "Labeler": "demur.verdict",
    "Leaderboard": "demur.studies.leaderboard",
    "Policy": "demur.verdict",
    "RecordedLabeler": "demur.labelers.recorded",
    "Taxonomy": "demur.taxonomy",
    "Thresholds": "demur.verdict",
    "Turn": "demur.conversation",
    "Verdict": "demur.verdict",
    "agree": "demur.api",
    "audit": "demur.api",
    "benchmark": "demur.api",
    "open_audit": "demur.studies.findings",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name == "__version__":
        return metadata.version("demur")
    if name not in _HOMES:
        message = f"module 'demur' has no attribute {name!r}; it offers {', '.join(__all__)}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
