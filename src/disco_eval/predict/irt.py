"""Item response theory as a score model: p-IRT, gp-IRT (tinyBenchmarks) and ability-IRT (Metabench)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from ..errors import FormatError
from ..numerics.irt import IRT, fit_ability, probability
from ..numerics.rng import Seed
from ..numerics.splines import N_KNOTS, AdditiveSpline, fit_additive
from ..responses import Responses
from ..select.anchors import Anchors
from ..select.shared import correctness, source_irt
from .base import Array, Arrays, Config, check_answers, clip, need


class PIRT:
    """Answers on the anchors as they are, every other item's as item response theory expects it (p-IRT).

    ``lambda * mean over anchors + (1 - lambda) * mean of P over the other items``, lambda the anchors' share of the
    benchmark's weight (K / N where items weigh the same) and P of `numerics.irt` (Polo et al., 2024; paper, Section
    3.2.1). One formula fits and predicts; the authors' code fits one parametrisation and predicts with another.

    Parameters
    ----------
    n_dims
        Dimensions of ability; None chooses them on held-out source models (see `source_irt`).
    """

    name: ClassVar[str] = "pirt"

    def __init__(self, n_dims: int | None = None) -> None:
        self.n_dims = n_dims

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        fitted = source_irt(source, self.n_dims)
        self._ids, self._at = anchors.ids, anchors.positions
        self._share = source.items.weight / source.items.weight.sum()
        self._a, self._b = fitted.full.discrimination, fitted.full.difficulty
        return self

    def predict(self, answers: Responses) -> Array:
        check_answers(answers, self._ids)
        return clip(self._expected(answers.grades(), self._a, self._b))

    def _expected(self, grades: Array, a: Array, b: Array) -> Array:
        """The estimate from grades on the anchors (n_models, n_anchors) under item parameters of all items."""
        ability = fit_ability(grades, a[self._at], b[self._at])
        others = np.delete(np.arange(len(b)), self._at)
        total: Array = grades @ self._share[self._at]
        total += probability(ability, a[others], b[others]) @ self._share[others]
        return total

    def config(self) -> Config:
        return {"n_dims": self.n_dims}

    def state(self) -> Arrays:
        return {"discrimination": self._a, "difficulty": self._b, "share": self._share, "anchor": self._at}

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        model = cls(config["n_dims"])
        model._ids = ids
        model._b = need(state, "difficulty", (None,))
        model._a = need(state, "discrimination", (len(model._b), None))
        model._share = need(state, "share", (len(model._b),))
        model._at = need(state, "anchor", (len(ids),), "i")
        if len(ids) and (model._at.min() < 0 or model._at.max() >= len(model._b)):
            raise FormatError("the saved anchors lie outside the saved items")
        return model


class GPIRT(PIRT):
    """A mixture of the anchors' weighted mean and p-IRT, by how far each can be trusted (gp-IRT).

    ``lambda * weighted_sum + (1 - lambda) * pirt`` with ``lambda = b^2 / (v + b^2)`` (Polo et al., 2024). b is p-IRT's
    mean absolute error from these anchors on source models that its parameters were fitted without; v the variance of
    the weighted mean, var(correct) / K for anchors of equal weight and a quarter of that for clustered ones.
    Tiny-benchmarks measures b on half of all items; these anchors are what p-IRT will really see.
    """

    name: ClassVar[str] = "gpirt"

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        super().fit(source, anchors, rng)
        fitted = source_irt(source, self.n_dims)
        grades = correctness(source)[:, anchors.positions].astype(np.float64)[fitted.held]
        blind = self._expected(grades, fitted.rest.discrimination, fitted.rest.difficulty)
        b = float(np.abs(blind - source.scores()[fitted.held]).mean())
        unequal = np.ptp(anchors.weights) > 1e-9
        clustered = unequal and np.isnan(anchors.chance).all()
        # drawn by what items count for, anchors count alike; chosen otherwise, for what they are
        drawn = not np.isnan(anchors.chance).any()
        self._weights = anchors.weights if unequal or drawn else self._share[anchors.positions]
        total = self._weights.sum()
        self._weights = self._weights / total if total > 0 else np.full(len(anchors), 1 / len(anchors))
        v = float(correctness(source).var(axis=1, dtype=np.float64).mean()) / len(anchors) / (4 if clustered else 1)
        self._mix = b**2 / (v + b**2) if v + b**2 > 0 else 1.0
        return self

    def predict(self, answers: Responses) -> Array:
        check_answers(answers, self._ids)
        grades = answers.grades()
        expected = self._expected(grades, self._a, self._b)
        return clip(self._mix * (grades @ self._weights) + (1 - self._mix) * expected)

    def state(self) -> Arrays:
        return {**super().state(), "weights": self._weights, "mix": np.array([self._mix])}

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        model = super().restore(config, state, ids)
        model._weights = need(state, "weights", (len(ids),))
        model._mix = float(need(state, "mix", (1,))[0])
        return model


class AbilityIRT:
    """Ability on the anchors and anchor accuracy, turned into a score by additive splines (Metabench, ability-IRT).

    Abilities come from the source models' item parameters and the anchors' answers alone, for sources and targets
    alike; one natural cubic spline per ability and one for accuracy are fitted to the source models' scores (Kipnis et
    al., 2025; paper, Section 3.2.1).

    Parameters
    ----------
    n_dims
        Dimensions of ability: 1, a single latent ability, as in Metabench; None chooses on held-out source models.
    """

    name: ClassVar[str] = "ability_irt"

    def __init__(self, n_dims: int | None = 1) -> None:
        self.n_dims = n_dims

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        fitted: IRT = source_irt(source, self.n_dims).full
        at = anchors.positions
        self._ids = anchors.ids
        self._a, self._b = fitted.discrimination[at], fitted.difficulty[at]
        grades = correctness(source)[:, at].astype(np.float64)
        self._spline = fit_additive(self._features(grades), source.scores())
        return self

    def predict(self, answers: Responses) -> Array:
        check_answers(answers, self._ids)
        return clip(self._spline.predict(self._features(answers.grades())))

    def _features(self, grades: Array) -> Array:
        ability = fit_ability(grades, self._a, self._b)
        return np.concatenate([ability, grades.mean(axis=1, keepdims=True)], axis=1)

    def config(self) -> Config:
        return {"n_dims": self.n_dims}

    def state(self) -> Arrays:
        spline = self._spline
        line = {"knots": spline.knots, "coef": spline.coef, "intercept": np.array([spline.intercept])}
        return {"discrimination": self._a, "difficulty": self._b, **line}

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        model = cls(config["n_dims"])
        model._ids = ids
        model._b = need(state, "difficulty", (len(ids),))
        model._a = need(state, "discrimination", (len(ids), None))
        n_features = model._a.shape[1] + 1
        knots = need(state, "knots", (n_features, N_KNOTS))
        if (np.diff(knots, axis=1) <= 0).any():
            raise FormatError("the saved knots of a spline do not rise")
        coef = need(state, "coef", (n_features * (N_KNOTS - 1),))
        model._spline = AdditiveSpline(knots, coef, float(need(state, "intercept", (1,))[0]))
        return model
