"""Benchmark scores as a survey would estimate them: from items that stand for the others, whatever the model is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FEWEST = 4  # items drawn by chance, below which nothing is estimated from them
UNSEEN = 2.7  # right and wrong answers together that might as well have come, when nearly all are one or the other
PENALTIES = np.logspace(-2, 3, 11)  # in mean eigenvalues of the items' kernel


def left_to_chance(chance: Array, weights: Array) -> Array:
    """Which anchors were drawn by chance and count, (n_anchors,): what `Survey` estimates from."""
    return np.asarray((chance < 1) & (weights > 0))


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
    predicts the mean over all items, and the drawn items correct it by what it misses (difference estimator with
    weights 1 / chance, Sarndal, Swensson & Wretman, 1992; augmented inverse probability weighting elsewhere). A wrong
    regression costs precision, not truth: nothing is assumed about the model, so the estimate holds for models
    unlike every source, exactly for items drawn blindly (`stratified`), and as far as they stand for those of
    about their difficulty where one of a few drawn was picked (`auto`).

    Attributes
    ----------
    certain : (n_anchors,) share of the score of anchors that stand for themselves alone; 0 for those drawn by chance.
    drawn : (k,) positions, among the anchors, of those drawn by chance.
    shares : (k,) what part of the rest each of them stands for, sum 1. size : (2,) share of the score that the rest
        makes up; number of items in the rest.
    vectors : (k, k), values : (k,) eigenvectors and eigenvalues of the drawn items' kernel over source models.
    reach : (k,) the kernel between the mean over the rest and the drawn items.
    """

    certain: Array
    drawn: Array
    shares: Array
    size: Array
    vectors: Array
    values: Array
    reach: Array

    @classmethod
    def fit(cls, grades: Array, scores: Array, weights: Array, chance: Array, n_items: int) -> Survey:
        """From sources' ``grades`` (n, n_anchors) and ``scores`` (n,); ``weights`` (n_anchors,) shares of the score.

        ``chance`` (n_anchors,) is the probability with which each anchor was drawn; NaN for anchors chosen otherwise,
        which stand for themselves alone, like those with 1. ``n_items`` items have a weight; anchors without one are
        left aside. Raises ValueError where fewer than 4 were left to chance.
        """
        by_chance = left_to_chance(chance, weights)
        drawn = np.flatnonzero(by_chance)
        if len(drawn) < FEWEST:
            raise ValueError(f"{len(drawn)} anchors were drawn by chance, expected {FEWEST} or more")
        certain = np.where(by_chance, 0.0, weights)
        rest = 1 - float(certain.sum())
        shares = weights[drawn] / chance[drawn]
        shares = shares / shares.sum()
        grades = np.ascontiguousarray(grades)  # sums come out alike, bit for bit, before and after saving
        X = grades[:, drawn].T  # (k, n_models)
        mean = shares @ X
        target = (scores - grades @ certain) / rest  # every source's mean over the rest
        X = X - mean
        values, vectors = np.linalg.eigh(X @ X.T)
        size = np.array([rest, float(n_items - (~by_chance & (weights > 0)).sum())])
        return cls(certain, drawn, shares, size, vectors, np.maximum(values, 0.0), X @ (target - mean))

    @classmethod
    def shapes(cls) -> dict[str, tuple[int | None, ...]]:
        """The shape of every array, None where it depends on the data."""
        inner: dict[str, tuple[int | None, ...]] = {"size": (2,), "vectors": (None, None)}
        return {f.name: inner.get(f.name, (None,)) for f in fields(cls)}

    def predict(self, grades: Array, unseen: float = UNSEEN) -> tuple[Array, Array]:
        """Estimated scores and standard errors, each (n_models,), from grades (n_models, n_anchors).

        A model that has hardly any item right, or wrong, shows too little spread: the variance is larger by as much as
        that of its answers would be with half of ``unseen`` more right and half wrong (Agresti & Coull, 1998; the
        square of 1.64). Formats 1 to 6 of condensations know none of these.
        """
        both = np.array([self._rest(y, unseen) for y in grades[:, self.drawn]]).reshape(-1, 2)
        return grades @ self.certain + self.size[0] * both[:, 0], self.size[0] * both[:, 1]

    def _rest(self, y: Array, unseen: float) -> tuple[float, float]:
        """Mean over the rest and its standard error, for one model's grades (k,) on the drawn items."""
        centre = self.shares @ y
        errors, predicted = self._regress(y - centre)
        fitted = y - errors  # every item predicted without itself
        spread = fitted - self.shares @ fitted
        trust = (self.shares * (y - centre)) @ spread / (self.shares @ spread**2 + 1e-9)
        trust = min(max(float(trust), 0.0), 1.0)
        residual = y - trust * fitted
        mean = float(self.shares @ residual)
        k, unequal = len(y), float(self.shares @ self.shares)  # unequal: 1 / k where all shares are equal
        more = _unshown(float(centre), unseen * unequal)
        variance = (max(float(self.shares @ (residual - mean) ** 2) * k / (k - 1), 0.25 / k) + more) * unequal
        return float(mean + trust * (centre + predicted)), float(np.sqrt(variance * max(1 - k / self.size[1], 0.0)))

    def difference_error(self, one: Array, other: Array) -> float:
        """Standard error of the difference between two models' means, from grades (n_anchors,) of both on the same."""
        apart = one[self.drawn] - other[self.drawn]
        unequal = float(self.shares @ self.shares)
        shown = float(self.shares @ (apart - self.shares @ apart) ** 2)
        more = _unshown(float(self.shares @ np.abs(apart)), UNSEEN * unequal)
        rest = max(1 - len(apart) / self.size[1], 0.0)
        return float(self.size[0] * np.sqrt((shown + more) * unequal * rest))

    def _regress(self, y: Array) -> tuple[Array, float]:
        """Errors of centred grades (k,), each predicted from the others, and the prediction of the mean of the rest."""
        penalty = PENALTIES * max(float(self.values.mean()), 1e-12)
        rotated = self.vectors.T @ y
        shrink = self.values[:, None] / (self.values[:, None] + penalty)
        leverage = np.minimum((self.vectors**2) @ shrink + self.shares[:, None], 0.99)
        errors = (y[:, None] - self.vectors @ (shrink * rotated[:, None])) / (1 - leverage)
        at = int(np.argmin(self.shares @ errors**2))
        predicted = self.reach @ (self.vectors @ (rotated / (self.values + penalty[at])))
        return errors[:, at], float(predicted)


def _unshown(mean: float, unseen: float) -> float:
    """How much larger the variance of 0/1 answers were with a share of ``unseen`` more, half right and half wrong."""
    shown = min(max(mean, 0.0), 1.0)
    smooth = (shown + 0.5 * unseen) / (1 + unseen)
    return max(smooth * (1 - smooth) - shown * (1 - shown), 0.0)
