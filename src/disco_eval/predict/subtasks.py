"""Scores of subtasks: what the overall score says about each, and what the anchors add."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..responses import Responses

Array = NDArray[Any]

PENALTIES = np.logspace(-1, 4, 11)  # in mean squared singular values of the answers
FOLDS = 5


@dataclass(frozen=True, eq=False)
class SubtaskModel:
    """Every subtask's score as a line in the overall score plus what the answers to the anchors say beyond it.

    The second part is a ridge regression of what the lines leave over, with one penalty for all subtasks, found by
    leaving out groups of source models. Where a hundred anchors say nothing about a subtask it is near zero and the
    line is all that is claimed. Both parts are linear with equal weights for all subtasks, so the subtasks' estimates
    average to the overall one (before they are cut to [0, 1]).

    Attributes
    ----------
    line : (2, n_subtasks) intercept and slope. centre : (p,) mean answers. weights : (p, n_subtasks).
    """

    line: Array
    centre: Array
    weights: Array

    @classmethod
    def fit(cls, known: Responses, subtask_scores: Array, scores: Array, groups: Array) -> SubtaskModel:
        """From source models' answers to the anchors, their ``subtask_scores`` (n, S) and ``scores`` (n,).

        ``groups`` (n,) names models that are left out together when the penalty is chosen.
        """
        X = _answers(known)
        line = _line(scores, subtask_scores)
        rest = subtask_scores - line[0] - scores[:, None] * line[1]
        penalty = _best_penalty(X, rest, groups)
        centre = X.mean(axis=0)
        return cls(line, centre, _ridge(X - centre, rest, PENALTIES[[penalty]])[0])

    @classmethod
    def shapes(cls) -> dict[str, tuple[int | None, ...]]:
        """The shape of every array, None where it depends on the data."""
        inner: dict[str, tuple[int | None, ...]] = {"line": (2, None), "centre": (None,)}
        return {f.name: inner.get(f.name, (None, None)) for f in fields(cls)}

    def predict(self, answers: Responses, scores: Array) -> Array:
        """Subtask scores (n_models, n_subtasks) of models with these answers and estimated overall ``scores``."""
        X = _answers(answers)
        if X.shape[1] != len(self.centre):  # grades alone, where the sources' probabilities were learned from
            X = np.concatenate([np.broadcast_to(self.centre[: answers.n_items], answers.correct.shape), X], axis=1)
        beyond = (X - self.centre) @ self.weights
        return np.asarray(np.clip(self.line[0] + scores[:, None] * self.line[1] + beyond, 0.0, 1.0))


def _answers(answers: Responses) -> Array:
    """Grades, and the probabilities of the right choices where they are known; (n_models, p)."""
    if answers.probs is None or answers.items.label is None:
        return answers.grades()
    return np.concatenate([answers.label_probs(), answers.grades()], axis=1)


def _line(scores: Array, subtask_scores: Array) -> Array:
    centred = scores - scores.mean()
    square = float(centred @ centred)
    slope = centred @ subtask_scores / square if square > 0 else np.zeros(subtask_scores.shape[1])
    return np.stack([subtask_scores.mean(axis=0) - slope * scores.mean(), slope])


def _ridge(X: Array, Y: Array, penalties: Array) -> Array:
    """Coefficients (n_penalties, p, S) of centred X (n, p) for Y (n, S)."""
    U, size, V = np.linalg.svd(X, full_matrices=False)
    mean = max(float((size**2).mean()), 1e-12)
    projected = U.T @ Y
    return np.stack([V.T @ ((size / (size**2 + penalty * mean))[:, None] * projected) for penalty in penalties])


def _best_penalty(X: Array, rest: Array, groups: Array) -> int:
    """Position of the penalty with the least squared error on groups left out; the largest on a tie."""
    names, member = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        return len(PENALTIES) - 1
    fold = member % min(FOLDS, len(names))
    error = np.zeros(len(PENALTIES))
    for k in range(int(fold.max()) + 1):
        out = fold == k
        centre = X[~out].mean(axis=0)
        weights = _ridge(X[~out] - centre, rest[~out], PENALTIES)
        error += ((rest[out] - (X[out] - centre) @ weights) ** 2).sum(axis=(1, 2))
    return int(np.flatnonzero(error <= error.min() * (1 + 1e-12))[-1])
