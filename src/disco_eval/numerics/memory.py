"""Whether a model remembers some of the anchors, told by what its answers would look like if a source did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .leakage import ODD, Leakage

Array = NDArray[Any]

SHARE = 0.3  # of the anchors, that the sources are made to remember
LEAST_UNIT = 1e-3  # of evidence
MOST_EVIDENCE = 1e6  # that any number of it can be
_LEAST_PART = 0.05  # of what sources that remember show, that a unit is
_FOLDS = 5
_ROUNDING = 1e-6  # of a grade: single precision, means of many parts
_RIDGE = 0.05  # of an anchor's variance, which is 0.25 at most: anchors are nearly as many as sources
_STEPS = (0.6180339887498949, 0.4142135623730951)  # irrational: what is remembered is spread over anchors and sources


@dataclass(frozen=True, eq=False)
class Memory:
    """Two kinds of evidence that anchors were remembered, weighed against each other.

    The likelihood ratio of `Leakage` knows how hard the anchors are and no more. The other kind is learned: the linear
    discriminant between the sources' answers and the same answers with 30 % of the anchors made right, which knows
    which anchors go together, so that it sees what the ratio takes for ability. It counts inside the sources' range
    only, since models stronger than every source look to it as if they remembered.

    Attributes
    ----------
    curves : the likelihood ratio.
    direction : (n_anchors,) what a right answer to each anchor adds; (0,) where only the ratio is known
        (formats 1 to 9).
    units : (5,) what is added to it; what a unit of the ratio adds; for models beyond the sources' range what is added
        to the ratio, and times what it counts alone (both 0: nothing tells of them); the ability up to which a model is
        inside. (1,), the unit of the ratio, where only that is known.
    """

    curves: Leakage
    direction: Array
    units: Array

    @classmethod
    def learn(
        cls, grades: Array, scores: Array, kin: Array, guess: bool | None = None, silent: bool = False
    ) -> tuple[Memory, Array]:
        """Learn from the sources' ``grades`` (n, n_anchors), in [0, 1], their ``scores`` (n,) and who is ``kin`` (n,).

        How the two kinds are weighed, and their units, are learned from sources left out with their kin: four or
        more, the same for the same sources in the same order. ``silent`` says nothing of models stronger than every
        source: of graded answers memory explains any that are better than expected, as a right or wrong one does not.
        Also returned is the evidence of left-out sources as they are and where they remember anchors, (2, n).
        """
        curves = Leakage.fit(grades, scores, guess)
        honest, leaked = _left_out(grades, scores, kin, bool(len(curves.guess)))
        shares = _weighed(honest, leaked)
        (middle, unit), (alone, of_ratio) = _scale(shares @ honest, shares @ leaked), _scale(honest[0], leaked[0])
        beyond = [0.0, 0.0] if silent else [-alone / of_ratio, 1 / of_ratio]
        units = np.array([-middle / unit, shares[0] / unit, *beyond, curves.strongest(scores)])
        found = (np.stack([shares @ honest, shares @ leaked]) - middle) / unit
        return cls(curves, shares[1] / unit * _discriminant(grades), units), found

    @property
    def guesses(self) -> bool:
        """Whether models may be right by guessing."""
        return bool(len(self.curves.guess))

    def evidence(self, grades: Array) -> Array:
        """Evidence that anchors were remembered, (n_models,), from grades (n_models, n_anchors).

        0 for the average honest source and 1 for what a twentieth of honest ones exceed, about; thresholds come from
        models that are known. Of models beyond the sources' range, what honest sources show counts for nothing.
        """
        ratio, ability = self.curves.weigh(grades)
        if not len(self.direction):
            return np.asarray(ratio / self.units[0])
        added, per_ratio, added_alone, alone, edge = self.units
        if alone == 0:
            ability = np.maximum(ability, self.curves.ability(grades))
        beyond = ratio * alone + added_alone
        beyond = np.where(beyond > 1, beyond, np.minimum(beyond, 0.0))
        return np.asarray(np.where(ability > edge, beyond, ratio * per_ratio + grades @ self.direction + added))


def graded(grades: Array) -> bool:
    """Whether a tenth of the grades or more are neither right nor wrong."""
    return float(np.mean((grades > 0) & (grades < 1))) >= 0.1


def perfect(grades: Array) -> Array:
    """1 where an answer has the best grade there is, up to rounding, else 0."""
    return np.asarray(grades >= 1 - _ROUNDING, dtype=np.float64)


def remembering(grades: Array) -> Array:
    """The same answers, (n, n_anchors), with `SHARE` of the anchors right, others for every model."""
    n, k = grades.shape
    at = (np.arange(k) * _STEPS[0] + np.arange(n)[:, None] * _STEPS[1]) % 1.0
    return np.where(at < SHARE, 1.0, grades)


def _discriminant(grades: Array) -> Array:
    """Linear discriminant, (n_anchors,), between honest answers and those with `SHARE` of them made right at random.

    The moments of the latter follow from those of the former: means move towards 1, covariances shrink, and every
    anchor varies by whether it was remembered.
    """
    n, k = grades.shape
    mean = grades.mean(axis=0)
    X = grades - mean
    honest = (X**2).mean(axis=0)
    moved = (1 - SHARE) * mean + SHARE
    leaked = (1 - SHARE) * (grades**2).mean(axis=0) + SHARE - moved**2
    shared = (1 + (1 - SHARE) ** 2) / 2  # part of the honest covariance that is left on average of the two
    own = (honest + leaked) / 2 - shared * honest + _RIDGE  # variance of every anchor beside it
    if k <= n:
        return np.asarray(np.linalg.solve(shared / n * (X.T @ X) + np.diag(own), moved - mean))
    Z, apart = X / own, (moved - mean) / own  # more anchors than sources: Woodbury's identity, an n x n system
    return np.asarray(apart - Z.T @ np.linalg.solve(n / shared * np.eye(n) + Z @ X.T, X @ apart))


def _left_out(grades: Array, scores: Array, kin: Array, guess: bool) -> tuple[Array, Array]:
    """What (ratio, direction) of the others say of each source, (2, n), and of the same where it remembers anchors."""
    leaked = remembering(grades)
    told = np.empty((2, 2, len(scores)))
    for fold in _folds(kin):
        curves = Leakage.curves(grades[~fold], scores[~fold], guess)
        direction = _discriminant(grades[~fold])
        for i, answers in enumerate((grades[fold], leaked[fold])):
            told[i, 0, fold], told[i, 1, fold] = curves.evidence(answers), answers @ direction
    return told[0], told[1]


def _weighed(honest: Array, leaked: Array) -> Array:
    """What each kind of evidence counts, (2,), >= 0: the linear discriminant of the two, from (2, n) each."""
    spread = (np.cov(honest) + np.cov(leaked)) / 2
    spread[np.diag_indices(2)] = spread.diagonal() * (1 + _RIDGE) + LEAST_UNIT
    return np.maximum(np.linalg.solve(spread, leaked.mean(axis=1) - honest.mean(axis=1)), 0.0)


def _folds(kin: Array) -> list[Array]:
    """Masks (n,) of `_FOLDS` parts of about one size, kin in one part: the largest group first, to the smallest part.

    Kin are torn apart where they would leave too few others to learn from.
    """
    _, first, group, size = np.unique(kin, return_index=True, return_inverse=True, return_counts=True)
    if size.max() > len(kin) / 2:
        return _folds(np.arange(len(kin)))
    part = np.zeros(len(size), dtype=np.int64)
    taken = np.zeros(_FOLDS, dtype=np.int64)
    for g in np.lexsort((first, -size)):
        part[g] = taken.argmin()
        taken[part[g]] += size[g]
    return [part[group] == k for k in range(_FOLDS) if taken[k]]


def _scale(honest: Array, leaked: Array) -> tuple[float, float]:
    """What honest sources show on average, and the unit: how much more one in twenty of them shows.

    Where none shows more (answers that no honest source gives), the unit is a part of what memory shows.
    """
    middle = float(np.median(honest))
    more = float(np.quantile(honest, 1 - ODD)) - middle
    return middle, max(more, LEAST_UNIT, _LEAST_PART * (float(leaked.mean()) - middle))
