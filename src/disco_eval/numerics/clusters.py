"""Clusters of items and the item that stands for each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def medoids(X: Array, weight: Array, k: int, rng: np.random.Generator, *, restarts: int = 5) -> tuple[Array, Array]:
    """The point nearest to each of ``k`` weighted k-means centres, and the weight of each cluster.

    Parameters
    ----------
    X : (n, d) points. weight : (n,) >= 0, how much each one counts. k : clusters, at most n.
    restarts : starts of k-means; the one of least inertia wins.

    Returns
    -------
    positions : (k,) distinct. Where one point is nearest to two centres, the closer centre takes it and the other the
        next nearest that is free. mass : (k,) summed weight of each cluster's members, sum equal to that of ``weight``.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if not 1 <= k <= len(X):
        raise ValueError(f"{k} clusters of {len(X)} points")
    count = weight if weight.sum() > 0 else np.ones(len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than clusters: some stay empty
        seed = int(rng.integers(2**31))
        fitted = KMeans(k, n_init=restarts, random_state=seed).fit(X, sample_weight=count / count.mean())
    distance = fitted.transform(X)
    mass = np.bincount(fitted.labels_, weights=weight, minlength=k)
    return nearest_distinct(distance), mass


def nearest_distinct(distance: Array) -> Array:
    """One row for every column, none twice: columns choose their nearest free row, those with the closest row first.

    ``distance`` is (n_rows, n_columns), with at least as many rows as columns.
    """
    taken = np.zeros(len(distance), dtype=bool)
    out = np.empty(distance.shape[1], dtype=np.int64)
    for column in np.argsort(distance.min(axis=0), kind="stable"):
        free = np.where(taken, np.inf, distance[:, column])
        out[column] = int(free.argmin())
        taken[out[column]] = True
    return out


def clusters_1d(values: Array, k: int, *, rounds: int = 100) -> tuple[Array, Array]:
    """K-means of numbers, (labels, centres): Lloyd's rounds on sorted values, started from their quantiles.

    Exact for what it does and fast, O(n) a round: clusters of numbers are intervals. A cluster can stay empty where
    values repeat; its centre is then NaN.
    """
    order = np.argsort(values, kind="stable")
    v = values[order].astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(v)])
    edges = np.linspace(0, len(v), k + 1).round().astype(np.int64)
    centres = np.full(k, np.nan)
    for _ in range(rounds):
        size = np.diff(edges)
        centres = np.divide(np.diff(total[edges]), size, out=np.full(k, np.nan), where=size > 0)
        alive = centres[size > 0]
        inner = np.searchsorted(v, (alive[1:] + alive[:-1]) / 2, side="right")
        new = edges.copy()
        new[1:] = len(v)
        new[np.flatnonzero(size > 0)[1:]] = inner  # an empty cluster keeps no room between its neighbours
        new = np.minimum.accumulate(new[::-1])[::-1]
        new[0] = 0
        if np.array_equal(new, edges):
            break
        edges = new
    labels = np.empty(len(v), dtype=np.int64)
    labels[order] = np.repeat(np.arange(k), np.diff(edges))
    size = np.bincount(labels, minlength=k)
    centres = np.divide(np.bincount(labels, weights=values, minlength=k), size, np.full(k, np.nan), where=size > 0)
    return labels, centres
