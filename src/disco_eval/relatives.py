"""Whether the sources hold relatives of a model: what error to expect where they may, beside that where none does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numerics.intervals import symmetric_quantile

Array = NDArray[Any]

FEWEST = 10  # models with relatives that say what error to expect of such


@dataclass(frozen=True, eq=False)
class Relatives:
    """Source models left out in folds that ignore kin, so that those with relatives leave them among the sources.

    Attributes
    ----------
    error : (n_sources,) true minus estimated score, in the order of the sources.
    scale : (n_sources,) standard error that the score model claimed.
    nearest : (n_sources,) distance to the nearest source that the process learned from, small where it is a relative.
    subtask_error, subtask_left : (n_sources, n_subtasks) true minus estimated mean of what the anchors left of every
        subtask, NaN where nothing, and how many items that is; without columns where it is not known (formats 6 to 12).
    more_error, more_scale : (n_sources,) error and scale with further items, as in `CrossValidation`.
    has_any : (n_sources,) 1 where a source has a relative among the others, else 0; 1 of all in formats 6 to 15.
    """

    error: Array
    scale: Array
    nearest: Array
    subtask_error: Array
    subtask_left: Array
    more_error: Array
    more_scale: Array
    has_any: Array

    @property
    def mae(self) -> float | None:
        """Mean absolute error of models whose relatives are among the sources, in [0, 1]; None of too few to say."""
        own = self.error[self.has_any > 0]
        return float(np.abs(own).mean()) if len(own) >= FEWEST else None

    def worth(self, error: Array) -> float:
        """By how much smaller the square of the error is than the ``error`` (n_sources,) without relatives, 0 to 1."""
        without = float(np.abs(error[self.has_any > 0]).mean()) if self.has_any.any() else 0.0
        return 0.0 if self.mae is None or not without else max(1 - (self.mae / without) ** 2, 0.0)

    def quantile(self, level: float, more: bool = False) -> float:
        """The error, in claimed standard errors, that a share ``level`` of these models stays within.

        With ``more`` further items, as many as the folds asked.
        """
        error, scale = (self.more_error, self.more_scale) if more else (self.error, self.scale)
        return symmetric_quantile(error / np.maximum(scale, 1e-9), level)

    def likely(self, nearest: Array, away: Array) -> Array:
        """How likely a relative of each model is among the sources, (n_models,), by its distance to the ``nearest``.

        How many sources left out alone stand as far from the nearest as this model or farther, against how many left
        out with their family (``away``, (n_sources,), are their distances) stand as near or nearer: the odds are the
        square of the ratio, since some sources have no relative to leave behind, and make every distance look a little
        like a relative's. A half on average where family makes no difference to how near models stand.
        """
        nearest, known, away = (distance.round(6) for distance in (nearest, self.nearest, away))  # roots of 1e-16 are 0
        far = len(known) - np.searchsorted(np.sort(known), nearest, side="left") + 1
        near = np.searchsorted(np.sort(away), nearest, side="right") + 1
        return np.asarray(far**2 / (far**2 + near**2))
