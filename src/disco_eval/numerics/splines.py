"""Additive regression on natural cubic splines: smooth curves that go on straight beyond the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

N_KNOTS = 5
_PENALTIES = np.logspace(-6, 2, 17)


@dataclass(frozen=True, eq=False)
class AdditiveSpline:
    """A sum of one natural cubic spline per feature.

    Attributes
    ----------
    knots : (n_features, n_knots), rising in each row. coef : (n_features * (n_knots - 1),). intercept : float.
    """

    knots: Array
    coef: Array
    intercept: float

    def predict(self, X: Array) -> Array:
        """Values for every row of X (n, n_features), shape (n,)."""
        values: Array = design(X, self.knots) @ self.coef + self.intercept
        return values


def fit_additive(X: Array, y: Array) -> AdditiveSpline:
    """Fit by penalised least squares; the penalty is the one of least leave-one-out error, in closed form.

    Knots stand at even quantiles of each feature. ``X`` is (n, n_features), ``y`` (n,).
    """
    shares = np.linspace(0, 1, N_KNOTS)
    knots = np.stack([_rising(np.quantile(column, shares)) for column in X.T])
    basis = design(X, knots)
    centre = basis.mean(axis=0)
    scale = basis.std(axis=0)
    scale[scale == 0] = 1.0
    Z = (basis - centre) / scale
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    level = y.mean()
    along = U.T @ (y - level)
    best, error = 0.0, np.inf
    for penalty in _PENALTIES * len(y):
        shrink = s**2 / (s**2 + penalty)
        leverage = 1 / len(y) + (U**2) @ shrink
        rest = (y - level - U @ (shrink * along)) / np.maximum(1 - leverage, 1e-9)
        if (rest**2).mean() < error:
            best, error = penalty, float((rest**2).mean())
    coef = Vt.T @ (s / (s**2 + best) * along) / scale
    return AdditiveSpline(knots, coef, float(level - centre @ coef))


def design(X: Array, knots: Array) -> Array:
    """The splines' basis at X, shape (n, n_features * (n_knots - 1)): per feature a line and the bends at the knots.

    The truncated-power form of the natural cubic spline (Hastie et al., Elements of Statistical Learning, 5.2.1), with
    each feature scaled so that its first and last knot are 0 and 1.
    """
    return np.concatenate([_natural(X[:, j], knots[j]) for j in range(X.shape[1])], axis=1)


def _natural(x: Array, knots: Array) -> Array:
    first, last = knots[0], knots[-1]
    t = (x - first) / (last - first)
    at = (knots - first) / (last - first)
    end = np.maximum(t - 1, 0) ** 3

    def bend(k: int) -> Array:
        value: Array = (np.maximum(t - at[k], 0) ** 3 - end) / (1 - at[k])
        return value

    final = bend(len(at) - 2)
    return np.stack([t, *(bend(k) - final for k in range(len(at) - 2))], axis=1)


def _rising(values: Array) -> Array:
    """Knots strictly apart, where many values of a feature are equal."""
    span = max(float(values[-1] - values[0]), 1.0)
    out = values.astype(np.float64).copy()
    for k in range(1, len(out)):
        out[k] = max(out[k], out[k - 1] + 1e-3 * span)
    return out
