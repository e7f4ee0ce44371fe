"""Regressors from a signature to a score: fitted by scikit-learn, kept and predicted as plain arrays with numpy."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

import numpy as np

from ..errors import FormatError, ValidationError
from ..numerics.forest import Trees
from ..numerics.gp import squared_distances
from .base import Array, Arrays, Config, need
from .mlp import MLP2, MLP3


class Regressor(Protocol):
    """Features (n_models, n_features) to scores (n_models,)."""

    name: ClassVar[str]

    def fit(self, X: Array, y: Array, rng: np.random.Generator) -> Self: ...
    def predict(self, X: Array) -> Array: ...
    def config(self) -> Config: ...
    def state(self) -> Arrays: ...
    @classmethod
    def restore(cls, config: Config, state: Arrays) -> Self: ...


class KNN:
    """Mean score of the ``k`` source models with the nearest signatures (the paper's k is 1).

    ``metric`` is ``"euclidean"``, as the paper says, or ``"cosine"``, as the authors' code does.
    """

    name: ClassVar[str] = "knn"

    def __init__(self, k: int = 1, metric: str = "euclidean") -> None:
        if k < 1 or metric not in ("euclidean", "cosine"):
            raise ValidationError(f"knn needs k >= 1 and metric 'euclidean' or 'cosine', got k={k}, metric='{metric}'")
        self.k, self.metric = k, metric

    def fit(self, X: Array, y: Array, rng: np.random.Generator) -> Self:
        if self.k > len(X):
            raise ValidationError(f"knn with k={self.k} needs as many source models, there are {len(X)}")
        self._X, self._y = X, y
        return self

    def predict(self, X: Array) -> Array:
        distance = squared_distances(X, self._X) if self.metric == "euclidean" else -_unit(X) @ _unit(self._X).T
        nearest = np.argsort(distance.round(9), axis=1, kind="stable")[:, : self.k]  # equal ones not by last bits
        mean: Array = self._y[nearest].mean(axis=1)
        return mean

    def config(self) -> Config:
        return {"k": self.k, "metric": self.metric}

    def state(self) -> Arrays:
        return {"signatures": self._X, "scores": self._y}

    @classmethod
    def restore(cls, config: Config, state: Arrays) -> Self:
        model = cls(**config)
        model._X = need(state, "signatures", (None, None))
        model._y = need(state, "scores", (len(model._X),))
        if model.k > len(model._y):
            raise FormatError(f"the saved knn has k={model.k} but only {len(model._y)} neighbours")
        return model


class Linear:
    """Least squares, optionally with a penalty: ``"linear"``, ``"ridge"`` (L2) or ``"lasso"`` (L1)."""

    name: ClassVar[str] = "linear"

    def fit(self, X: Array, y: Array, rng: np.random.Generator) -> Self:
        fitted = self._estimator().fit(X, y)
        self._coef = np.asarray(fitted.coef_, dtype=np.float64)
        self._intercept = np.array([fitted.intercept_], dtype=np.float64)
        return self

    def _estimator(self) -> Any:
        from sklearn.linear_model import LinearRegression

        return LinearRegression()

    def predict(self, X: Array) -> Array:
        scores: Array = X @ self._coef + self._intercept[0]
        return scores

    def config(self) -> Config:
        return {}

    def state(self) -> Arrays:
        return {"coef": self._coef, "intercept": self._intercept}

    @classmethod
    def restore(cls, config: Config, state: Arrays) -> Self:
        model = cls(**config)
        model._coef = need(state, "coef", (None,))
        model._intercept = need(state, "intercept", (1,))
        return model


class _Penalised(Linear):
    def __init__(self, alpha: float) -> None:
        if not alpha >= 0:
            raise ValidationError(f"{self.name} needs alpha >= 0, got {alpha}")
        self.alpha = float(alpha)

    def config(self) -> Config:
        return {"alpha": self.alpha}


class Ridge(_Penalised):
    """Least squares with an L2 penalty (paper: weight 10)."""

    name: ClassVar[str] = "ridge"

    def __init__(self, alpha: float = 10.0) -> None:
        super().__init__(alpha)

    def _estimator(self) -> Any:
        from sklearn.linear_model import Ridge as SkRidge

        return SkRidge(alpha=self.alpha)


class Lasso(_Penalised):
    """Least squares with an L1 penalty (paper: weight 1e-4)."""

    name: ClassVar[str] = "lasso"

    def __init__(self, alpha: float = 1e-4) -> None:
        super().__init__(alpha)

    def _estimator(self) -> Any:
        from sklearn.linear_model import Lasso as SkLasso

        if not self.alpha:
            raise ValidationError("lasso with alpha=0 is least squares, on which it does not converge; take linear")

        return SkLasso(alpha=self.alpha, max_iter=20_000)


class Forest:
    """Random forest with scikit-learn's defaults, 100 trees: the paper's main predictor.

    It averages source models' scores, so it never predicts beyond the best or the worst of them.
    """

    name: ClassVar[str] = "forest"

    def __init__(self, n_trees: int = 100) -> None:
        if n_trees < 1:
            raise ValidationError(f"forest needs at least one tree, got n_trees={n_trees}")
        self.n_trees = n_trees

    def fit(self, X: Array, y: Array, rng: np.random.Generator) -> Self:
        from sklearn.ensemble import RandomForestRegressor

        seed = int(rng.integers(2**31))
        fitted = RandomForestRegressor(self.n_trees, random_state=seed, n_jobs=-1).fit(X, y)
        self._trees = Trees.from_sklearn(fitted.estimators_)
        self._n_features = X.shape[1]
        return self

    def predict(self, X: Array) -> Array:
        mean: Array = self._leaves(X).mean(axis=1)
        return mean

    def _leaves(self, X: Array) -> Array:
        """Every tree's value for every row; a saved forest may be of signatures of another length."""
        if X.shape[1] != self._n_features:
            raise ValueError(
                f"its trees compare {self._n_features} numbers of a signature, of which there are {X.shape[1]}"
            )
        return self._trees.predict(X)

    def config(self) -> Config:
        return {"n_trees": self.n_trees}

    def state(self) -> Arrays:
        arrays = {name: getattr(self._trees, name) for name in Trees.NAMES}
        return {**arrays, "n_features": np.array([self._n_features], dtype=np.int64)}

    @classmethod
    def restore(cls, config: Config, state: Arrays) -> Self:
        model = cls(**config)
        model._restore_trees(state)
        return model

    def _restore_trees(self, state: Arrays) -> None:
        kinds = {"threshold": "f", "value": "f"}
        self._n_features = int(need(state, "n_features", (1,), "i")[0])
        self._trees = Trees(*(need(state, name, (None,), kinds.get(name, "i")) for name in Trees.NAMES))
        wrong = self._trees.check(self._n_features)
        if wrong:
            raise FormatError(f"the saved trees are no trees: {wrong}")


class Boosting(Forest):
    """Gradient boosting with scikit-learn's defaults and 200 trees (paper, Table 2e)."""

    name: ClassVar[str] = "boosting"

    def __init__(self, n_trees: int = 200) -> None:
        super().__init__(n_trees)

    def fit(self, X: Array, y: Array, rng: np.random.Generator) -> Self:
        from sklearn.ensemble import GradientBoostingRegressor

        fitted = GradientBoostingRegressor(n_estimators=self.n_trees, random_state=int(rng.integers(2**31))).fit(X, y)
        self._trees = Trees.from_sklearn(list(fitted.estimators_[:, 0]))
        self._n_features = X.shape[1]
        self._start = np.array([float(np.mean(y)), fitted.learning_rate])
        return self

    def predict(self, X: Array) -> Array:
        steps: Array = self._leaves(X).sum(axis=1)
        steps *= self._start[1]
        steps += self._start[0]
        return steps

    def state(self) -> Arrays:
        return {**super().state(), "start": self._start}

    @classmethod
    def restore(cls, config: Config, state: Arrays) -> Self:
        model = super().restore(config, state)
        model._start = need(state, "start", (2,))
        return model


REGRESSORS: dict[str, type[Regressor]] = {c.name: c for c in (Forest, KNN, Linear, Ridge, Lasso, Boosting, MLP2, MLP3)}


def _unit(X: Array) -> Array:
    length = np.sqrt((X**2).sum(axis=1, keepdims=True))
    unit: Array = X / np.where(length > 0, length, 1.0)
    return unit
