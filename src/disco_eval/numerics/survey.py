"""Benchmark scores as a survey would estimate them: from items drawn by chance, whatever the model is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_PENALTIES = np.logspace(-2, 3, 11)  # in mean eigenvalues of the items' kernel


def systematic(order: Array, size: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw ``n`` positions along ``order``, evenly spaced in ``size``, from a random start.

    Sorted by difficulty, such a draw holds easy and hard items in the benchmark's own proportion (systematic sampling
    with probability proportional to size; Madow, 1949). An item larger than the spacing is certain to be drawn.

    Parameters
    ----------
    order : (n_candidates,) positions in the order of the walk. size : (n_items,) > 0 for at least n candidates.
    n : how many. Returns (positions (n,), probability of each being drawn (n,)).
    """
    left, certain = order[size[order] > 0], np.zeros(0, dtype=np.int64)
    if n > len(left):
        raise ValueError(f"{n} items were to be drawn from {len(left)} that count")
    while True:
        k = n - len(certain)
        spacing = size[left].sum() / max(k, 1)
        big = size[left] >= spacing * (1 - 1e-12)
        if k == 0 or not big.any() or big.all():
            break
        certain, left = np.concatenate([certain, left[big]]), left[~big]
    if k == 0 or big.all():
        drawn = left[:k]
        return np.concatenate([certain, drawn]), np.ones(n)
    ends = np.cumsum(size[left])
    at = np.minimum(np.searchsorted(ends, (np.arange(k) + rng.random()) * spacing, side="right"), len(left) - 1)
    chance = size[left][at] / spacing
    return np.concatenate([certain, left[at]]), np.concatenate([np.ones(len(certain)), chance])


@dataclass(frozen=True, eq=False)
class Survey:
    """Model-assisted estimate of a weighted mean over all items from those drawn by chance.

    A model's grades on the drawn items are regressed (ridge) on the source models' grades there; the regression
    predicts the mean over all items, and the drawn items correct it by what it misses (augmented inverse probability
    weighting, or the difference estimator: Sarndal, Swensson & Wretman, 1992). A wrong regression costs precision and
    never truth: nothing is assumed about the model, so the estimate holds for models unlike every source.

    Attributes
    ----------
    certain : (n_anchors,) share of the benchmark of anchors sure to be drawn (they stand for themselves); else 0.
    drawn : (k,) positions, among the anchors, of those drawn by chance.
    share : (2,) share of the benchmark that the drawn ones stand for; and the number of items behind it.
    vectors : (k, k), values : (k,) eigenvectors and eigenvalues of the drawn items' kernel over source models.
    reach : (k,) the kernel between the mean over all undrawn-by-certainty items and the drawn ones.
    """

    certain: Array
    drawn: Array
    share: Array
    vectors: Array
    values: Array
    reach: Array

    @classmethod
    def fit(cls, grades: Array, scores: Array, weights: Array, chance: Array, n_items: int) -> Survey:
        """From the sources' ``grades`` (n, n_anchors) and ``scores`` (n,); ``weights`` (n_anchors,) shares of the score.

        ``chance`` (n_anchors,) is the probability with which each anchor was drawn; NaN for anchors chosen otherwise,
        which stand for themselves alone, like those with 1. Raises ValueError where fewer than 4 were left to chance.
        """
        by_chance = chance < 1
        drawn = np.flatnonzero(by_chance)
        certain = np.where(by_chance, 0.0, weights)
        if len(drawn) < 4:
            raise ValueError(f"{len(drawn)} anchors were drawn by chance, expected 4 or more")
        share = 1 - float(certain.sum())
        X = grades[:, drawn].T  # (k, n_models)
        mean = X.mean(axis=0)
        target = (scores - grades @ certain) / share  # every source's mean over the items behind the drawn ones
        Xc = X - mean
        values, vectors = np.linalg.eigh(Xc @ Xc.T)
        behind = n_items - int((~by_chance).sum())
        return cls(
            certain,
            drawn,
            np.array([share, float(behind)]),
            vectors,
            np.maximum(values, 0.0),
            Xc @ (target - mean),
        )

    @classmethod
    def shapes(cls) -> dict[str, tuple[int | None, ...]]:
        """The shape of every array, None where it depends on the data."""
        inner: dict[str, tuple[int | None, ...]] = {"share": (2,), "vectors": (None, None)}
        return {f.name: inner.get(f.name, (None,)) for f in fields(cls)}

    def predict(self, grades: Array) -> tuple[Array, Array]:
        """Estimated scores and standard errors, each (n_models,), from grades (n_models, n_anchors)."""
        both = np.array([self._one(y) for y in grades[:, self.drawn]]).reshape(-1, 2)
        return grades @ self.certain + self.share[0] * both[:, 0], self.share[0] * both[:, 1]

    def _one(self, y: Array) -> tuple[float, float]:
        """Mean over the items behind the drawn ones and its standard error, for one model's grades (k,)."""
        k = len(y)
        centred = self.vectors.T @ (y - y.mean())
        penalty = np.maximum(_PENALTIES * max(float(self.values.mean()), 1e-12), 1e-12)
        shrink = self.values[:, None] / (self.values[:, None] + penalty)
        leverage = np.minimum((self.vectors**2) @ shrink + 1 / k, 0.99)
        errors = ((y - y.mean())[:, None] - self.vectors @ (shrink * centred[:, None])) / (1 - leverage)
        at = int(np.argmin((errors**2).mean(axis=0)))
        fitted = y - errors[:, at]  # every item predicted without itself
        gain = self.reach @ (self.vectors @ (centred / (self.values + penalty[at])))
        over_all = y.mean() + gain
        rest = 1 - k / self.share[1]
        spread = float(((fitted - fitted.mean()) ** 2).sum())
        trust = float((y - y.mean()) @ (fitted - fitted.mean())) / (spread + 1e-9)
        trust = min(max(trust, 0.0), 1.0) * rest
        residual = y - trust * fitted
        variance = max(float(residual.var(ddof=1)), 0.25 / k) / k * max(rest, 0.0)
        return float(residual.mean() + trust * over_all), float(np.sqrt(variance))
