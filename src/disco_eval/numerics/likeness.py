"""How many different models there are among many that are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def effective_number(grades: Array) -> float:
    """How many different models gave ``grades`` (n_models, n_items), counting near duplicates as one.

    The inverse of the mean share of a model that every other one is, where the share is 1 minus twice the ratio of
    their mean square difference (for 0/1 grades: how often they disagree) to the median one, at least 0, and 1 with
    itself. At most the number of models; 1 where all are the same.
    """
    half = (grades - grades.mean()).astype(np.float32)
    square = (half**2).sum(axis=1)
    apart = half @ half.T
    apart *= -2
    apart += square
    apart += square[:, None]
    np.fill_diagonal(apart, 0.0)
    off = apart[np.tri(len(apart), k=-1, dtype=bool)]
    typical = float(np.median(off)) if len(off) else 0.0
    if typical <= 1e-6 * max(float(square.max(initial=0.0)), 1.0):
        return 1.0
    return float((1 / np.clip(1 - 2 * apart / typical, 0.0, 1.0).sum(axis=1, dtype=np.float64)).sum())


def with_copies(groups: Array, answers: Array) -> Array:
    """The groups ``groups`` (n,) of models, joined where models of several gave the same ``answers`` (n, k) to all.

    The same model uploaded twice under two names tells nothing about a model that has no twin. Returns numbers, (n,).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(groups)
    _, kin = np.unique(groups, return_inverse=True)
    _, copy = np.unique(answers, axis=0, return_inverse=True)
    nodes = n + n  # a model is one of a group and of a set of copies; both are nodes
    edges = coo_array((np.ones(n), (kin, n + copy.reshape(-1))), shape=(nodes, nodes))
    label = connected_components(edges, directed=False)[1]
    return np.asarray(label[kin])
