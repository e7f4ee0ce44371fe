"""How good estimates are: error in points, and whether models come out in the right order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def mae_pp(truth: Array, estimate: Array) -> float:
    """Mean absolute error in percentage points; both inputs are scores in [0, 1]."""
    return float(100 * np.abs(np.asarray(truth) - np.asarray(estimate)).mean())


def spearman(truth: Array, estimate: Array) -> float:
    """Spearman's rank correlation in [-1, 1], ties sharing their mean rank; NaN where one side is constant."""
    from scipy.stats import rankdata

    a, b = (rankdata(x) - (len(x) + 1) / 2 for x in (truth, estimate))
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")
