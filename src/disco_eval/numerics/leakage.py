"""Whether a model has seen some of the anchors: a likelihood ratio between knowing and remembering."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ability import easiness, sigmoid

Array = NDArray[Any]

ABILITIES = np.linspace(-6.0, 6.0, 121)
SHARES = (0.1, 0.2, 0.3, 0.4)  # of the anchors that may have leaked
GUESS = 0.25  # chance of a guess to be right: most questions with choices have four
_SURE = 2.0  # how much likelier than any ability a guess must make a source, times the number of sources
_STEPS = 30
_LIMIT = 1e-3  # of any probability: one odd answer alone convicts nobody


@dataclass(frozen=True, eq=False)
class Leakage:
    """Item response curves of the anchors, grade = sigmoid(slope * ability + intercept), to test answers against.

    Attributes
    ----------
    slope, intercept : (n_anchors,) logistic regression of the sources' grades on their centred logit scores, with a
        normal prior (mean 1, standard deviation 0.5) on slopes, since few sources leave them open.
    guess : chance to be right of models that guess at every anchor, which are honest too, (1,); (0,) where no source
        guesses: where nobody can, a model that remembers a few hard anchors looks like one that does.
    """

    slope: Array
    intercept: Array
    guess: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(cls, grades: Array, scores: Array) -> Leakage:
        """Learn the curves from the sources' ``grades`` (n, n_anchors) and ``scores`` (n,) by Newton's method."""
        p = np.clip(scores, 0.01, 0.99)
        ability = np.log(p / (1 - p))
        ability = (ability - ability.mean())[:, None]
        slope = np.ones(grades.shape[1])
        intercept = easiness(grades.mean(axis=0), len(grades))
        for _ in range(_STEPS):
            p = sigmoid(ability * slope + intercept)
            spread = p * (1 - p) + 1e-6
            up_slope = ((grades - p) * ability).sum(axis=0) - 4 * (slope - 1)
            up_level = (grades - p).sum(axis=0) - 0.1 * intercept
            ss = (spread * ability**2).sum(axis=0) + 4
            ii = spread.sum(axis=0) + 0.1
            si = (spread * ability).sum(axis=0)
            slope = np.clip(slope + (ii * up_slope - si * up_level) / (ss * ii - si**2), 0.05, 4.0)
            intercept = np.clip(intercept + (ss * up_level - si * up_slope) / (ss * ii - si**2), -7.0, 7.0)
        known = cls(slope, intercept)
        guesses = known._by_guessing(grades, GUESS) - known._by_ability(grades, 0.0)
        sure = np.log(_SURE * len(grades))  # the luckiest of many honest sources looks like one that guesses
        return cls(slope, intercept, np.array([GUESS]) if (guesses > sure).any() else np.zeros(0))

    def evidence(self, grades: Array) -> Array:
        """Log likelihood ratio that a share of the anchors was remembered, (n_models,), from grades (n_models, k).

        The best of ``share + (1 - share) * curve`` over `SHARES` and abilities against the best of no share, or of
        guesses: a model that always takes choice A gets hard anchors right too. Above 0 where hard anchors are right
        that a model of its ability would miss; thresholds come from models that are known, since real models fit no
        curve exactly. Twice as sharp at equal false alarms as the classical person-fit statistic l_z (measured in
        ``docs/theory/intervals-and-alarms.md``).
        """
        told = np.max([self._by_ability(grades, share) for share in SHARES], axis=0)
        honest = [self._by_ability(grades, 0.0), *(self._by_guessing(grades, guess) for guess in self.guess)]
        ratio: Array = told - np.max(honest, axis=0)
        return ratio

    def _by_ability(self, grades: Array, remembered: float) -> Array:
        """Log likelihood of the likeliest ability where a share of the anchors is remembered, (n_models,)."""
        p = sigmoid(ABILITIES[:, None] * self.slope + self.intercept)
        return _log_likelihood(grades, remembered + (1 - remembered) * p)

    def _by_guessing(self, grades: Array, guess: float) -> Array:
        return _log_likelihood(grades, np.full((1, grades.shape[1]), guess))


def _log_likelihood(grades: Array, p: Array) -> Array:
    """Of the likeliest ability, (n_models,), from grades (n_models, k) and chances to be right (n_abilities, k)."""
    p = np.clip(p, _LIMIT, 1 - _LIMIT)
    best: Array = (grades @ np.log(p).T + (1 - grades) @ np.log(1 - p).T).max(axis=1)
    return best
