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
    half = np.ascontiguousarray(grades - grades.mean(), dtype=np.float32)  # the same sums before and after saving
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


def with_copies(groups: Array, answers: Array, most: int) -> Array:
    """Groups of models, (n,), joined by those whose kin is unknown and who gave the same ``answers`` (n, k) as another.

    The same model uploaded twice under two names tells nothing about a model that has no twin. A model alone in its
    group joins its copies, those of a known family first; families stay apart. Answers that are all the same (a model
    that fails everywhere), and those of more than ``most`` models, are no sign of a copy. Returns positions in the
    sorted names of the groups.
    """
    names, group = np.unique(groups, return_inverse=True)
    alone = np.bincount(group, minlength=len(names))[group] == 1
    tells = answers.min(axis=1) < answers.max(axis=1)
    _, copy, size = np.unique(answers, axis=0, return_inverse=True, return_counts=True)
    copy = copy.reshape(-1)
    for c in np.flatnonzero((size > 1) & (size <= most)):
        same = np.flatnonzero((copy == c) & tells)
        strays, settled = same[alone[same]], same[~alone[same]]
        if len(same) > 1 and len(strays):
            group[strays] = group[settled if len(settled) else strays].min()
    return group
