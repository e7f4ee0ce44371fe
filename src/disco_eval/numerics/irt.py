"""Item response theory: the multidimensional two-parameter logistic model, fitted by maximum a posteriori.

One sign convention holds in the whole project: the probability that model m answers item i correctly is

    P[m, i] = 1 / (1 + exp(-(a_i . theta_m - b_i)))

with discrimination ``a`` (n_items, n_dims), difficulty ``b`` (n_items,) and ability ``theta`` (n_models, n_dims). More
ability along a dimension that an item loads on makes a right answer likelier; more difficulty makes it rarer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Gaussian priors with mean 0. Chosen by held-out answers of real models on two sets: with discriminations held this
# tightly ten dimensions cost nothing where two would do. Only the product of the first two matters to the fit.
ABILITY_PRECISION = 1.0
DISCRIMINATION_PRECISION = 8.0
DIFFICULTY_PRECISION = 0.3
TOLERANCE = 5e-3  # largest change of an ability in a round that counts as none
_LONGEST_STEP = 2.0
_ROUNDS = 60
_ABILITY_STEPS = 25
_BLOCK = 2**22  # cells worked on together


@dataclass(frozen=True, eq=False)
class IRT:
    """Fitted parameters; see the module for what they mean.

    Attributes
    ----------
    discrimination : (n_items, n_dims). difficulty : (n_items,). ability : (n_models, n_dims), of the fitted models.
    rounds : alternations until the abilities stood still.
    """

    discrimination: Array
    difficulty: Array
    ability: Array
    rounds: int = 0

    @property
    def n_dims(self) -> int:
        return int(self.discrimination.shape[1])


def probability(ability: Array, discrimination: Array, difficulty: Array) -> Array:
    """Chance of a right answer for every model and item, shape (n_models, n_items), in (0, 1)."""
    return _sigmoid(ability @ discrimination.T - difficulty)


def fit_2pl(correct: Array, n_dims: int, *, weight: Array | None = None) -> IRT:
    """Fit abilities, discriminations and difficulties to answers; deterministic.

    Joint maximum of the likelihood times Gaussian priors, by alternating damped Newton steps for all items, then all
    models, at once. It starts from the principal axes of the answers minus each item's mean, turned so that better
    models have more ability, and ends with abilities scaled to mean 0 and unit covariance over the models.

    Parameters
    ----------
    correct
        (n_models, n_items), 1 for right, 0 for wrong, or a grade between. Read only where ``weight`` is not 0.
    n_dims
        Dimensions of ability, 1 to n_models - 1.
    weight
        (n_models, n_items) how often each answer counts; 0 for a missing cell. All 1 by default.

    Raises ValueError for shapes that do not fit or a number of dimensions that the models cannot carry.
    """
    if correct.ndim != 2 or (weight is not None and weight.shape != correct.shape):
        raise ValueError(f"correct of shape {correct.shape} and weight {getattr(weight, 'shape', None)} do not fit")
    n_models = len(correct)
    if not 1 <= n_dims < n_models:
        raise ValueError(f"{n_dims} dimensions of ability need more than {n_dims} models, there are {n_models}")
    w = np.ones((1, 1), np.float32) if weight is None else np.asarray(weight, np.float32)
    y = np.asarray(correct, np.float32)
    if weight is not None:
        y = np.where(w > 0, y, np.float32(0))
    theta, items = _start(y, w, n_dims)
    y_t, w_t = np.ascontiguousarray(y.T), np.ascontiguousarray(w.T)
    item_prior = np.array([DISCRIMINATION_PRECISION] * n_dims + [DIFFICULTY_PRECISION], np.float32)
    ability_prior = np.full(n_dims, ABILITY_PRECISION, np.float32)
    minus_one = np.full((n_models, 1), -1, np.float32)
    rounds = 0
    while rounds < _ROUNDS:
        rounds += 1
        items = _newton(np.concatenate([theta, minus_one], axis=1), y, w, items, item_prior)
        before = theta
        theta = _newton(np.ascontiguousarray(items[:, :-1]), y_t, w_t, theta, ability_prior, -items[:, -1:])
        if np.abs(theta - before).max() < TOLERANCE:
            break
    return _standard(theta.astype(np.float64), items.astype(np.float64), rounds)


def fit_ability(correct: Array, discrimination: Array, difficulty: Array, *, weight: Array | None = None) -> Array:
    """Abilities of many models at once from their answers to items of known parameters, shape (n_models, n_dims).

    The maximum a posteriori under the standard normal prior, by Newton steps in float64. A model's ability does not
    depend on the others given with it. ``weight`` (n_models, n_items) is 0 where an answer is missing.
    """
    y = np.ascontiguousarray(np.asarray(correct, np.float64).T)
    w = np.ones((1, 1)) if weight is None else np.ascontiguousarray(np.asarray(weight, np.float64).T)
    if weight is not None:
        y = np.where(w > 0, y, 0.0)
    n_dims = discrimination.shape[1]
    theta = np.zeros((y.shape[1], n_dims))
    prior = np.full(n_dims, ABILITY_PRECISION)
    for _ in range(_ABILITY_STEPS):
        step = _newton(discrimination, y, w, theta, prior, -difficulty[:, None])
        done = np.abs(step - theta).max(initial=0.0) < 1e-10
        theta = step
        if done:
            break
    return theta


def log_likelihood(correct: Array, p: Array, weight: Array | None = None) -> float:
    """Mean log-likelihood (nats) per answer of grades under probabilities, clipped to [1e-6, 1 - 1e-6]."""
    q = np.clip(p, 1e-6, 1 - 1e-6)
    each = correct * np.log(q) + (1 - correct) * np.log1p(-q)
    return float(each.mean() if weight is None else (each * weight).sum() / weight.sum())


def held_out_likelihood(correct: Array, held: Array, fitted: IRT) -> float:
    """How well a fit to the other models predicts the models ``held`` (positions): nats per answer.

    Their abilities are estimated on every other item and judged on the rest.
    """
    seen, unseen = slice(0, None, 2), slice(1, None, 2)
    a, b = fitted.discrimination, fitted.difficulty
    theta = fit_ability(correct[held][:, seen], a[seen], b[seen])
    return log_likelihood(correct[held][:, unseen], probability(theta, a[unseen], b[unseen]))


def simplest(dims: Sequence[int], likelihood: Sequence[float], within: float = 0.0025) -> int:
    """The smallest number of dimensions whose held-out log-likelihood is within a margin of the best."""
    best = max(likelihood)
    return min(d for d, value in zip(dims, likelihood, strict=True) if value >= best - within)


def _start(y: Array, w: Array, n_dims: int) -> tuple[Array, Array]:
    """Abilities along the main axes of the answers (unit variance); no discrimination yet, difficulty from the mean."""
    n_models, n_items = y.shape
    full = np.broadcast_to(w, y.shape)
    right = ((full * y).sum(axis=0, dtype=np.float64) + 1) / (full.sum(axis=0, dtype=np.float64) + 2)
    mean = ((full * y).sum(axis=1, dtype=np.float64) + 1) / (full.sum(axis=1, dtype=np.float64) + 2)
    rest = w * (y - right.astype(np.float32))
    _, axes = np.linalg.eigh((rest @ rest.T).astype(np.float64))
    theta = axes[:, ::-1][:, :n_dims] * np.sqrt(n_models)
    theta *= np.where((mean - mean.mean()) @ theta < 0, -1.0, 1.0)
    items = np.concatenate([np.zeros((n_items, n_dims)), -np.log(right / (1 - right))[:, None]], axis=1)
    return theta.astype(np.float32), items.astype(np.float32)


def _standard(theta: Array, items: Array, rounds: int) -> IRT:
    """The same probabilities with abilities of mean 0 and unit covariance, the prior that `fit_ability` assumes.

    The likelihood does not fix the scale, and the joint maximum leaves abilities many times wider than their prior
    where items outnumber models; from a few answers such abilities would be shrunk far too much.
    """
    centre = theta.mean(axis=0)
    values, axes = np.linalg.eigh(np.cov(theta.T, bias=True).reshape(theta.shape[1], -1))
    root = np.sqrt(np.maximum(values, 1e-8))
    a, b = items[:, :-1], items[:, -1]
    ability = (theta - centre) @ (axes / root) @ axes.T
    return IRT(a @ (axes * root) @ axes.T, b - a @ centre, ability, rounds)


def _newton(X: Array, y: Array, w: Array, B: Array, prior: Array, offset: Array | None = None) -> Array:
    """One damped Newton step for many logistic regressions that share the design ``X`` (n, k).

    Column j of ``y`` (n, columns) is regressed on X with coefficients ``B[j]``, offset (n, 1) and ridge ``prior`` (k,).
    """
    k = X.shape[1]
    upper = np.triu_indices(k)
    products = X[:, upper[0]] * X[:, upper[1]]
    out = np.empty_like(B)
    step = max(1, _BLOCK // len(X))
    for first in range(0, len(B), step):
        own = slice(first, first + step)
        weights = w if w.shape[1] == 1 else w[:, own]
        p = X @ B[own].T
        if offset is not None:
            p += offset
        p = _sigmoid(p)
        gradient = (weights * (y[:, own] - p)).T @ X - B[own] * prior
        p *= 1 - p
        p *= weights
        curvature = np.empty((p.shape[1], k, k), X.dtype)
        curvature[:, upper[0], upper[1]] = curvature[:, upper[1], upper[0]] = p.T @ products
        curvature[:, range(k), range(k)] += prior
        move = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        length = np.sqrt((move**2).sum(axis=1, keepdims=True))
        out[own] = B[own] + move * np.minimum(1, _LONGEST_STEP / np.maximum(length, 1e-12))
    return out


def _sigmoid(z: Array) -> Array:
    """Logistic function, in place where it can be; clipped so that it never overflows."""
    z = np.clip(z, -30, 30)
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += 1
    np.reciprocal(z, out=z)
    return z
