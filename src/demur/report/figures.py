"""Figures that a notebook shows by themselves, with no global plotting state."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]


class NotebookFigure(Figure):
    """Draw as any figure does, and show in a notebook without `%matplotlib inline` or pyplot."""

    def _repr_png_(self) -> bytes:
        """Return the picture that IPython displays."""
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=120)
        return picture.getvalue()
