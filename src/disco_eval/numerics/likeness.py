"""How many different models there are among many that are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHARED = 0.5  # correlation of what two models answer beside ability and difficulty, from which both count as kin
SURE = 4.0  # standard errors of a correlation of nothing, below which none is believed
MOST_COMPARED = 2000  # models, all pairs of which are compared


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
    if typical <= 1e-5 * max(float(square.max(initial=0.0)), 1.0):
        return 1.0
    return float((1 / np.clip(1 - 2 * apart / typical, 0.0, 1.0).sum(axis=1, dtype=np.float64)).sum())


def alike(ids: Array, answers: Array, most: int) -> Array:
    """Groups of models by their ``answers`` (n, k), for where nobody says who is kin, (n,) names.

    Checkpoints, quantised copies and prompt variants of a model err on the same items. What is left of every item's
    answers after its line in the models' mean answers is correlated between models; groups of which members correlate
    by `SHARED` or more on average (average linkage) are kin. A line is not all that ability does, so models of one
    ability on a benchmark that measures nothing else may be taken for kin too.

    A group of more than ``most`` models is none, nor is any among more than `MOST_COMPARED` models, or where so few
    items tell nothing; a model whose answers are all the same has no kin. A group is called by its first name; the
    order of the models makes no difference.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    least = max(SHARED, SURE / np.sqrt(max(answers.shape[1], 1)))
    if not (2 < len(ids) <= MOST_COMPARED and least < 1):
        return ids
    order = np.argsort(ids)
    grades = answers[order].astype(np.float64)
    tells = grades.min(axis=1) < grades.max(axis=1)
    ability = np.vander(grades.mean(axis=1) - grades.mean(), 2)
    own = grades - ability @ np.linalg.lstsq(ability, grades, rcond=None)[0]
    own /= np.maximum(np.sqrt((own**2).sum(axis=1, keepdims=True)), 1e-9)
    own[~tells] = 0.0
    apart = np.clip(1 - own @ own.T, 0, 2)[np.triu_indices(len(ids), 1)].round(6)  # the last bits differ
    group = fcluster(linkage(apart, "average"), 1 - least, "distance")
    _, first, member, size = np.unique(group, return_index=True, return_inverse=True, return_counts=True)
    named = np.where((size <= most)[member], ids[order][first[member]], ids[order])
    return np.asarray(named[np.argsort(order)])


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
