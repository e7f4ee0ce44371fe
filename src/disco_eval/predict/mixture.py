"""How much each of several processes counts in an estimate: for all models, and for one that some know better."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.gp import GaussianProcess

Array = NDArray[Any]

LEAST_EXCESS = 0.5  # ratio of an error to what was claimed: sources that know each other make it too small
MOST_EXCESS = 1e3
_PULL = 0.1  # how strongly the shares of the processes are drawn to equal ones, in models per model
_LEAST_SD = 1e-6  # of an error, that none is divided by 0


def mixture(errors: Array) -> Array:
    """Shares of the processes, (n_processes,), >= 0, sum 1, from their left-out errors, (n_processes, n_models).

    Least squares of the mixed error, drawn towards equal shares as if by a tenth as many models: where probabilities
    mislead (uncalibrated classifiers) the grades decide, where they help they keep their part (stacking;
    Breiman, 1996).
    """
    n = len(errors)
    if n == 1:
        return np.ones(1)
    from scipy.optimize import nnls

    scale = float(np.sqrt((errors**2).mean())) or 1.0
    pull = np.sqrt(_PULL * errors.shape[1]) * scale
    sure = 1e3 * pull  # weight of the condition that shares sum to 1
    rows = np.concatenate([errors.T, pull * np.eye(n), np.full((1, n), sure)])
    wanted = np.concatenate([np.zeros(errors.shape[1]), np.full(n, pull / n), [sure]])
    found = nnls(rows, wanted)[0]
    return np.asarray(found / found.sum())


def excess(processes: list[GaussianProcess], copies: Array) -> Array:
    """How much larger each process's errors on sources left out (with their copies) are than it claims, (n,)."""
    alone = [p.left_out(copies) for p in processes]
    found = [float(np.sqrt(np.mean((e / sd) ** 2))) for e, sd in alone]
    return np.asarray(np.clip(found, LEAST_EXCESS, MOST_EXCESS))


def shares(mix: Array, excess: Array, sds: Array) -> Array:
    """Shares of the processes in every model's estimate, (n_processes, n_models), sum 1; ``sds`` (the same) they claim.

    Those of all models, ``mix`` (n_processes,), times the inverse variance for this one: the process that knows a near
    relative of it counts more.
    """
    found = mix[:, None] / np.maximum(excess[:, None] * sds, _LEAST_SD) ** 2
    return np.asarray(found / found.sum(axis=0))
