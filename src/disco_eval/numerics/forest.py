"""Regression trees as plain arrays: taken from scikit-learn once, predicted with numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Trees:
    """Many binary regression trees, concatenated: nodes of all trees in one array each.

    Attributes
    ----------
    counts : (n_trees,) nodes of each tree.
    left, right : (n_nodes,) children, counted within the tree; -1 at a leaf.
    feature : (n_nodes,) which input is compared; threshold : (n_nodes,) at most goes left.
    value : (n_nodes,) the mean of the training scores that reach the node.
    """

    NAMES = ("counts", "left", "right", "feature", "threshold", "value")

    def __init__(
        self, counts: Array, left: Array, right: Array, feature: Array, threshold: Array, value: Array
    ) -> None:
        self.counts, self.left, self.right = counts, left, right
        self.feature, self.threshold, self.value = feature, threshold, value
        self._roots = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)

    @classmethod
    def from_sklearn(cls, estimators: list[Any]) -> Trees:
        """The trees of a fitted forest or boosted ensemble."""
        trees = [e.tree_ for e in estimators]
        join = [np.concatenate([getattr(t, name) for t in trees]) for name in ("children_left", "children_right")]
        feature = np.concatenate([t.feature for t in trees])
        threshold = np.concatenate([t.threshold for t in trees])
        value = np.concatenate([t.value[:, 0, 0] for t in trees])
        counts = np.array([t.node_count for t in trees], dtype=np.int32)
        return cls(
            counts, join[0].astype(np.int32), join[1].astype(np.int32), feature.astype(np.int32), threshold, value
        )

    def check(self, n_features: int) -> str:
        """What is wrong with these arrays as trees over so many features; empty if nothing.

        Children must come after their parent and stay in their tree, so a walk from the root always ends.
        """
        n = int(self.counts.sum()) if len(self.counts) and self.counts.min() > 0 else 0
        if not n or any(len(getattr(self, k)) != n for k in self.NAMES[1:]):
            return "the node counts do not match the nodes"
        own = np.arange(n) - np.repeat(self._roots, self.counts)
        limit = np.repeat(self.counts, self.counts)
        leaf = self.left == -1
        if (leaf != (self.right == -1)).any():
            return "a node has one child"
        for child in (self.left, self.right):
            if ((child <= own) | (child >= limit))[~leaf].any():
                return "a child stands outside its tree or before its parent"
        if ((self.feature < 0) | (self.feature >= n_features))[~leaf].any():
            return "a node compares a feature that does not exist"
        return ""

    def predict(self, X: Array) -> Array:
        """Every tree's value for every row, shape (n_rows, n_trees); compared in float32, as scikit-learn does."""
        with np.errstate(over="ignore"):  # beyond every threshold all the same
            X = np.ascontiguousarray(X, dtype=np.float32)
        node = np.tile(self._roots, (len(X), 1))
        row = np.arange(len(X))[:, None]
        root = self._roots[None, :]
        while True:
            inner = self.left[node] >= 0
            if not inner.any():
                break
            go_left = X[row, np.where(inner, self.feature[node], 0)] <= self.threshold[node]
            node = np.where(inner, root + np.where(go_left, self.left[node], self.right[node]), node)
        leaves: Array = self.value[node]
        return leaves
