"""Say which release of Demur this is, as manifests record it."""

from __future__ import annotations

from importlib import metadata

__all__ = ["release"]


def release() -> str:
    """Return the version that is installed; `unknown` where the package is used without being installed."""
    try:
        return metadata.version("demur")
    except metadata.PackageNotFoundError:
        return "unknown"
