"""Name every way in which Demur fails on purpose.

    DemurError
    ├── SourceError        a data source cannot be opened or holds nothing that can be read
    │   └── RowError       one row cannot be read or understood; counted, and fatal only where asked (`--strict`)
    ├── LayoutError        the columns of a source fit no conversation layout, or the named one
    ├── TaxonomyError      a taxonomy or crosswalk file is missing, damaged or contradicts itself
    ├── RecipeError        a recipe or a prompt, or a plan of ablations, is missing, damaged or contradicts itself
    ├── WeightsError       weights or an encoder cannot be found, are damaged, or belong to another taxonomy
    ├── TrainingError      training cannot start or continue with the data and settings given
    ├── EngineError        an inference engine is not installed, cannot be built, or does not agree with fp32
    ├── LabelerError       a labeler has no such name, or one that another has, or gives what is no verdict
    ├── EndpointError      a language model cannot be asked: no key, a wrong address or name, or it is out of reach
    ├── BudgetError        what a run may spend is spent
    ├── PriceError         a file of prices is missing, damaged or contradicts itself
    ├── ClusterError       Ray is not installed or out of reach, or workers on it cannot do their part
    └── OutputError        the place for results cannot be used

A message says what was met, where (file, row), and what would be right. The command line prints it without a traceback.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BudgetError",
    "ClusterError",
    "DemurError",
    "EndpointError",
    "EngineError",
    "LabelerError",
    "LayoutError",
    "OutputError",
    "PriceError",
    "RecipeError",
    "RowError",
    "SourceError",
    "TaxonomyError",
    "TrainingError",
    "WeightsError",
]


class DemurError(Exception):
    """Stand above every error that Demur raises on purpose."""


class SourceError(DemurError):
    """Say that a data source cannot be opened or holds nothing that can be read."""


class RowError(SourceError):
    """Say that one row cannot be read or understood."""

    def __init__(self, message: str, *, where: str, reason: str = "unreadable_row") -> None:
        """Keep place and reason apart from the message: reports count by reason and list by place.

        Args:
            message: What was met, and what would be right.
            where: `file:line`, or what names the row where there are no lines.
            reason: The short code that an unscored verdict on this row carries.
        """
        super().__init__(f"{where}: {message}")
        self.message = message
        self.where = where
        self.reason = reason

    def __reduce__(self) -> tuple[Callable[..., RowError], tuple[()]]:
        """Travel whole between processes: an exception would be made again of its text alone."""
        return partial(type(self), self.message, where=self.where, reason=self.reason), ()


class LayoutError(DemurError):
    """Say that the columns of a source fit no conversation layout, or not the one that was named."""


class TaxonomyError(DemurError):
    """Say that a taxonomy or crosswalk file is missing, damaged or contradicts itself."""


class RecipeError(DemurError):
    """Say that a recipe of training or synthesis, a prompt or a plan of ablations is missing or contradicts itself."""


class WeightsError(DemurError):
    """Say that weights or an encoder cannot be found, are damaged, or belong to another taxonomy."""


class TrainingError(DemurError):
    """Say that training cannot start or continue with the data and settings given."""


class EngineError(DemurError):
    """Say that an inference engine is not installed, cannot be built, or does not agree with fp32."""


class LabelerError(DemurError):
    """Say that a labeler has no such name, or one that another has, or gives what is no verdict in the taxonomy."""


class EndpointError(DemurError):
    """Say that a language model cannot be asked: no key, a wrong address or name, or it is out of reach."""


class BudgetError(DemurError):
    """Say that what a run may spend is spent; what it paid for is kept."""


class PriceError(DemurError):
    """Say that a file of prices is missing, damaged or contradicts itself."""


class ClusterError(DemurError):
    """Say that Ray is not installed or out of reach, or that workers on it cannot do their part."""


class OutputError(DemurError):
    """Say that the place for results cannot be used."""
