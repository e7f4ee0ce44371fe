"""Intervals from the errors that were made on models left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError


def symmetric_quantile(residuals: NDArray[Any], level: float) -> float:
    """Half-width that covers a new residual with probability ``level`` if it is exchangeable with these.

    The finite-sample quantile of split conformal prediction: the ``ceil((n + 1) * level)``-th smallest absolute
    residual, or the largest where that would be beyond the last (Lei et al., 2018).

    Raises ValidationError for a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValidationError(f"level must lie between 0 and 1, such as 0.9, got {level}")
    size = np.sort(np.abs(residuals))
    rank = int(np.ceil((len(size) + 1) * level))
    return float(size[min(rank, len(size)) - 1])
