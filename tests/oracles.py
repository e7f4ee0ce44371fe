"""Slow and obviously right: what the fast code is held against."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def pds(probs: Array) -> Array:
    n_models, n_items, n_choices = probs.shape
    return np.array(
        [sum(max(float(probs[m, i, c]) for m in range(n_models)) for c in range(n_choices)) for i in range(n_items)]
    )


def entropy(p: list[float]) -> float:
    return -sum(x * math.log(x) for x in p if x > 0)


def jsd(probs: Array) -> Array:
    n_models, n_items, n_choices = probs.shape
    out = []
    for i in range(n_items):
        rows = [[float(x) for x in probs[m, i]] for m in range(n_models)]
        mean = [sum(row[c] for row in rows) / n_models for c in range(n_choices)]
        out.append(entropy(mean) - sum(entropy(row) for row in rows) / n_models)
    return np.array(out)


def weighted_mean(values: list[float], weights: list[float]) -> float:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def tree_value(tree: Any, row: Array) -> float:
    """Walk one scikit-learn tree by hand."""
    node = 0
    while tree.children_left[node] >= 0:
        left = np.float32(row[tree.feature[node]]) <= tree.threshold[node]
        node = tree.children_left[node] if left else tree.children_right[node]
    return float(tree.value[node, 0, 0])
