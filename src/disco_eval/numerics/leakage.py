"""Whether a model has seen some of the anchors: a likelihood ratio between knowing and remembering."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ability import easiness, sigmoid

Array = NDArray[Any]

ABILITIES = np.linspace(-6.0, 6.0, 121)
SHARES = (0.1, 0.2, 0.3, 0.4)  # of the anchors that may have leaked
GUESS = 0.25  # chance of a guess to be right: most questions with choices have four
CUTS = (0.5, 0.65, 0.8)  # shares of the sources, from the weakest up, that the stronger ones are tested against
ODD = 0.05  # share of honest models whose pattern of answers counts as odd
_EDGE = 0.95  # quantile of the sources' scores that counts as the edge of their range
MOST_ALLOWED = 1e3  # of evidence, that is taken off strong models
_FEWEST = 10  # tests of stronger sources that say how odd a strong model may look
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
    doubt : (3, n_anchors) variance of the slope, of the intercept, and their covariance, (3, 0) where unknown (formats
        1 to 6): the further an ability lies from the sources', the less the curves say about it.
    strong : ability at the edge of the sources' range, and how much more evidence honest models beyond it show than
        those within, (2,); (0,) where too few sources tell.
    """

    slope: Array
    intercept: Array
    guess: Array = field(default_factory=lambda: np.zeros(0))
    doubt: Array = field(default_factory=lambda: np.zeros((3, 0)))
    strong: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(cls, grades: Array, scores: Array, guess: bool | None = None) -> Leakage:
        """Learn the curves from the sources' ``grades`` (n, n_anchors) and ``scores`` (n,).

        ``guess`` says whether models may guess; None finds out whether some source does.

        Models stronger than every source fit the curves worse and look as if they remembered. How much is learned by
        curves of the weaker half of the sources (of 65, of 80 %), from what they say of the others.
        """
        known = cls.curves(grades, scores, guess)
        found = []
        for share in CUTS:
            weak = scores <= np.quantile(scores, share)
            by_weak = cls.curves(grades[weak], scores[weak], len(known.guess) > 0)
            evidence, ability = by_weak._weigh(grades[~weak])
            found.append(evidence[ability > _upper_edge(scores[weak])])
        beyond = np.concatenate(found)
        if len(beyond) < _FEWEST:
            return known
        more = max(float(np.quantile(beyond, 1 - ODD) - np.quantile(known._weigh(grades)[0], 1 - ODD)), 0.0)
        return replace(known, strong=np.array([_upper_edge(scores), min(more, MOST_ALLOWED)]))

    @classmethod
    def curves(cls, grades: Array, scores: Array, guess: bool | None) -> Leakage:
        """The curves and what is not known of them, by Newton's method, and whether some source guesses."""
        ability = (_logit(scores) - _logit(scores).mean())[:, None]
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
        known = cls(slope, intercept, doubt=np.array([ii, ss, -si]) / (ss * ii - si**2))
        if guess is None:
            guesses = known._by_guessing(grades, GUESS) - known._by_ability(grades, 0.0).max(axis=1)
            sure = np.log(_SURE * len(grades))  # the luckiest of many honest sources looks like one that guesses
            guess = bool((guesses > sure).any())
        return replace(known, guess=np.array([GUESS])) if guess else known

    def evidence(self, grades: Array) -> Array:
        """Log likelihood ratio that a share of the anchors was remembered, (n_models,), from grades (n_models, k).

        The best of ``share + (1 - share) * curve`` over `SHARES` and abilities against the best of no share, or of
        guesses: a model that always takes choice A gets hard anchors right too. Less what honest models beyond the
        sources' range show, where the model would be beyond it even if it remembered. Above 0 where hard anchors are
        right that a model of its ability would miss; thresholds come from models that are known, since real models
        fit no curve exactly. Twice as sharp at equal false alarms as the classical person-fit statistic l_z (measured
        in ``docs/theory/intervals-and-alarms.md``).
        """
        return self.weigh(grades)[0]

    def weigh(self, grades: Array) -> tuple[Array, Array]:
        """`evidence` of every model, (n_models,), and its likeliest ability if some anchors were remembered."""
        evidence, ability = self._weigh(grades)
        if not len(self.strong):
            return evidence, ability
        edge, more = self.strong
        return np.asarray(evidence - np.where(ability > edge, more, 0.0)), ability

    def ability(self, grades: Array) -> Array:
        """The likeliest ability of every model if it remembered nothing, (n_models,)."""
        return np.asarray(ABILITIES[self._by_ability(grades, 0.0).argmax(axis=1)])

    @staticmethod
    def strongest(scores: Array) -> float:
        """Ability of the strongest source, as centred for the curves."""
        ability = _logit(scores)
        return float(ability.max() - ability.mean())

    def _weigh(self, grades: Array) -> tuple[Array, Array]:
        """The ratio for every model, (n_models,), and the likeliest ability if some anchors were remembered."""
        told = np.stack([self._by_ability(grades, share) for share in SHARES], axis=1)
        ability = ABILITIES[told.max(axis=1).argmax(axis=1)]
        honest = [self._by_ability(grades, 0.0).max(axis=1), *(self._by_guessing(grades, g) for g in self.guess)]
        return told.max(axis=(1, 2)) - np.max(honest, axis=0), ability

    def _by_ability(self, grades: Array, remembered: float) -> Array:
        """Log likelihood of every ability where a share of the anchors is remembered, (n_models, n_abilities).

        Curves are averaged over what is not known of them (the usual approximation of a logistic curve of a normal).
        """
        t = ABILITIES[:, None]
        logit = t * self.slope + self.intercept
        if self.doubt.size:
            slope, intercept, both = self.doubt
            logit = logit / np.sqrt(1 + np.pi / 8 * np.maximum(slope * t**2 + intercept + 2 * both * t, 0.0))
        return _log_likelihood(grades, remembered + (1 - remembered) * sigmoid(logit))

    def _by_guessing(self, grades: Array, guess: float) -> Array:
        return _log_likelihood(grades, np.full((1, grades.shape[1]), guess))[:, 0]


def _log_likelihood(grades: Array, p: Array) -> Array:
    """Of every ability, (n_models, n_abilities), from grades (n_models, k) and chances to be right (n_abilities, k)."""
    p = np.clip(p, _LIMIT, 1 - _LIMIT)
    return np.asarray(grades @ np.log(p).T + (1 - grades) @ np.log(1 - p).T)


def _logit(scores: Array) -> Array:
    p = np.clip(scores, 0.01, 0.99)
    return np.asarray(np.log(p / (1 - p)))


def _upper_edge(scores: Array) -> float:
    """Ability at the upper edge of the sources' range, as centred for the curves."""
    ability = _logit(scores)
    return float(np.quantile(ability, _EDGE) - ability.mean())
