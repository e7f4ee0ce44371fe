"""Intervals from the errors that were made on models left out."""

from __future__ import annotations

from numbers import Real
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError


def symmetric_quantile(residuals: NDArray[Any], level: float) -> float:
    """Half-width that covers a new residual with probability ``level`` if it is exchangeable with these.

    The finite-sample quantile of split conformal prediction: the ``ceil((n + 1) * level)``-th smallest absolute
    residual (Lei et al., 2018). A level that so few residuals cannot tell, above n / (n + 1), takes the largest, times
    what a normal distribution says lies between the two levels.

    Raises ValidationError for a level outside (0, 1).
    """
    check_level(level)
    size = np.sort(np.abs(residuals))
    rank = int(np.ceil((len(size) + 1) * level))
    if rank <= len(size):
        return float(size[rank - 1])
    reach = normal_width(level) / normal_width(len(size) / (len(size) + 1))
    return float(size[-1] * max(reach, 1.0))


def check_level(level: float) -> None:
    """Refuse a nominal coverage that is no number between 0 and 1."""
    if not isinstance(level, Real) or not 0.5 < 0.5 + float(level) / 2 < 1:  # as `normal_width` needs it
        raise ValidationError(f"level must lie between 0 and 1, such as 0.9, got {level!r}")


def normal_width(level: float) -> float:
    """Standard deviations on either side of its mean that hold a share ``level`` of a normal distribution."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def rarely_exceeded(values: NDArray[Any], share: float) -> float:
    """What a new value exceeds with probability ``share`` at most if it is exchangeable with these.

    The ``ceil((n + 1) * (1 - share))``-th smallest; the largest, where so few values cannot tell.
    """
    rank = int(np.ceil((len(values) + 1) * (1 - share)))
    return float(np.sort(values)[min(rank, len(values)) - 1])
