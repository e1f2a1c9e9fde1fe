"""Figures that a notebook shows by themselves, with no global plotting state."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from demur.studies.excerpts import excerpt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NotebookFigure", "canvas", "label"]

_WIDTH = 7.6
_NAME = 40


class NotebookFigure(Figure):
    """Draw as any figure does, and show in a notebook without `%matplotlib inline` or pyplot."""

    def _repr_png_(self) -> bytes:
        """Return the picture that IPython displays."""
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=120)
        return picture.getvalue()


def canvas(height_inches: float, *, panels: int = 1) -> tuple[NotebookFigure, list[Axes]]:
    """Return an empty figure of the house's width, and its panels from left to right: a light grid, and no frame."""
    figure = NotebookFigure(figsize=(_WIDTH, height_inches), layout="constrained")
    drawn = [figure.add_subplot(1, panels, place) for place in range(1, panels + 1)]
    for axes in drawn:
        axes.set_axisbelow(True)
        axes.grid(visible=True, linewidth=0.6, alpha=0.5)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=9.5, pad=7)
    return figure, drawn


def label(name: str) -> str:
    """Return a name out of the data as a drawing holds it: short, no formula, and no control character."""
    return excerpt(" ".join(name.split()), _NAME).replace("$", r"\$")
