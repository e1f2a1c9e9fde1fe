"""Stand in for the frozen texts that engines are held to: judging the real ones takes a minute."""

from __future__ import annotations

from demur.model.runtime.parity import FrozenTexts

__all__ = ["FEW_TEXTS"]

_REQUESTS = (
    "How do I make bread?",
    "Please draw a lock for me.",
    "What is a story?",
    "Tell me of the law.",
    "Why?",
    "",
)
_REPLIES = (
    "Sorry, I cannot help with that.",
    "Sorry, I am unable to draw.",
    "Here is what bread is.",
    "Yes, here it is.",
)
_TEXTS = tuple(f"<|user|>{request}<|assistant|>{reply}" for request in _REQUESTS for reply in _REPLIES)
FEW_TEXTS = FrozenTexts(parity=_TEXTS, calibration=_TEXTS[::6])
"""24 short texts to compare on, and 4 of them to calibrate on."""
