"""One ability per model: a score line through the anchors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

REACH = 6.0  # abilities in logits, either side of the average source model
_STEPS = 25
_PRIOR = 0.02  # weak pull to 0, so that all right or all wrong has a finite ability


@dataclass(frozen=True, eq=False)
class AbilityLine:
    """A Rasch model with the sources' easiness: grade = sigmoid(ability + easiness), and its line to scores.

    One number per model can be carried beyond the strongest source, where richer models only repeat what they know.
    Graded answers in [0, 1] enter as fractions of a right answer.

    Attributes
    ----------
    easiness : (n_anchors,) logit of the share of source models that are right.
    curve : (n_grid,) expected benchmark score at abilities from -REACH to REACH, evenly spaced.
    line : (2,) slope and intercept from expected to true score, least squares over source models.
    """

    easiness: Array
    curve: Array
    line: Array

    @classmethod
    def fit(cls, grades: Array, easiness: Array, weights: Array, at: Array, scores: Array) -> AbilityLine:
        """Learn from the sources' ``grades`` (n, n_anchors) on the anchors and their ``scores`` (n,).

        ``easiness`` and ``weights`` (n_items,) are those of all items; ``at`` (n_anchors,) says which are anchors.
        """
        grid = np.linspace(-REACH, REACH, 241)
        share = weights / weights.sum()
        curve = np.array([share @ sigmoid(t + easiness) for t in grid])
        raw = cls(easiness[at], curve, np.array([1.0, 0.0]))
        expected = raw.predict(grades)
        spread = expected - expected.mean()
        slope = float(spread @ (scores - scores.mean()) / max(float(spread @ spread), 1e-12))
        return cls(raw.easiness, curve, np.array([slope, scores.mean() - slope * expected.mean()]))

    def ability(self, grades: Array) -> Array:
        """Ability of every model in logits, shape (n_models,), from grades (n_models, n_anchors): Newton's method."""
        theta = np.zeros(len(grades))
        for _ in range(_STEPS):
            p = sigmoid(theta[:, None] + self.easiness)
            step = ((grades - p).sum(axis=1) - _PRIOR * theta) / ((p * (1 - p)).sum(axis=1) + 0.3)
            theta = np.clip(theta + np.clip(step, -2, 2), -REACH, REACH)
        return theta

    def predict(self, grades: Array) -> Array:
        """Score of every model by its ability alone, shape (n_models,); not clipped."""
        grid = np.linspace(-REACH, REACH, len(self.curve))
        scores: Array = self.line[0] * np.interp(self.ability(grades), grid, self.curve) + self.line[1]
        return scores


def easiness(grades_mean: Array, n_models: int) -> Array:
    """Logit of the share of models that are right, from that share (n_items,); half a model either side of 0 and 1."""
    p = np.clip(grades_mean, 0.5 / n_models, 1 - 0.5 / n_models)
    logit: Array = np.log(p / (1 - p))
    return logit


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    half: Array = 0.5 * (1 + np.tanh(0.5 * x))
    return half
