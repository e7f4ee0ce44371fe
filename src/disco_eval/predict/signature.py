"""A model's signature, its answers on the anchors as one vector, and the map from signatures to scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import FormatError, ValidationError, unknown
from ..numerics.rng import Seed, generator
from ..responses import Responses
from ..select.anchors import Anchors
from .base import Array, Arrays, Config, check_answers, clip, need
from .regressors import REGRESSORS, Forest, Regressor

PARTS = ("probs", "label_prob", "correct")
_WIDE = 20_000  # features beyond which a signature is kept in float32: 100 anchors of 1,000 classes are 100,000


def signature(answers: Responses, parts: Sequence[str] = ("probs",)) -> Array:
    """Every model's signature, shape (n_models, n_features): its answers on the anchors side by side.

    Parameters
    ----------
    answers
        Answers on the anchors alone, in their order.
    parts
        What a signature holds, one or more of ``"probs"`` (the probabilities of each item's own choices, anchor by
        anchor: the paper's signature, never padded), ``"label_prob"`` (the probability of the right choice) and
        ``"correct"``. Where only grades are known, ``"probs"`` is the grade, and ``"label_prob"`` is refused.
    """
    columns = []
    for part in parts:
        if part == "label_prob":
            columns.append(answers.label_probs())
        elif part == "correct" or (part == "probs" and answers.probs is None):
            columns.append(answers.grades())
        elif part == "probs":
            own = np.arange(answers.max_choices) < answers.items.n_choices[:, None]
            columns.append(answers.outcomes()[:, own])
        else:
            raise ValidationError(unknown("signature part", part, PARTS))
    if not columns:
        raise ValidationError(f"a signature needs at least one part: {', '.join(PARTS)}")
    wide = sum(c.shape[1] for c in columns) > _WIDE
    return np.concatenate(columns, axis=1).astype(np.float32 if wide else np.float64)


class SignatureModel:
    """Signature, then optionally PCA, then a regressor: DISCO's prediction (paper, Section 3.2.2).

    Parameters
    ----------
    regressor
        A `Regressor`; the paper's random forest by default.
    parts
        What the signature holds, see `signature`. The paper uses the probabilities. Where the meaning of a choice
        changes from item to item, adding ``"correct"`` cuts a forest's error by half or more.
    n_components
        PCA to at most so many components (paper: 256; never more than the sources and features give); None for none.
        About 32 are better where there are few source models: the last of 256 are mostly noise.
    """

    name: ClassVar[str] = "signature"

    def __init__(
        self,
        regressor: Regressor | None = None,
        parts: str | Sequence[str] = ("probs",),
        n_components: int | None = 256,
    ) -> None:
        if n_components is not None and n_components < 1:
            raise ValidationError(f"n_components must be at least 1, or None for no reduction, got {n_components}")
        self.regressor: Regressor = Forest() if regressor is None else regressor
        self.parts = (parts,) if isinstance(parts, str) else tuple(parts)
        self.n_components = n_components
        self._mean: Array | None = None
        self._components: Array | None = None

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        self._ids = anchors.ids
        self._graded = source.probs is None
        order = np.argsort(source.models.ids, kind="stable")  # a forest's bootstrap draws rows: by name, not by place
        X = signature(source.pick(models=order, items=anchors.positions), self.parts)
        if self.n_components is not None:
            self._mean, self._components = _pca(X, self.n_components)
        self.regressor.fit(self._reduce(X), source.scores()[order], generator(rng))
        return self

    def predict(self, answers: Responses) -> Array:
        check_answers(answers, self._ids)
        if answers.probs is None and not self._graded and self.parts != ("correct",):
            raise ValidationError(
                "the score model was fitted on probabilities, but the answers hold grades only; give the probabilities "
                "of the choices, or condense with the signature part 'correct' alone"
            )
        X = signature(answers, self.parts)
        if self._mean is not None and X.shape[1] != len(self._mean):
            raise ValidationError(
                f"the answers make signatures of {X.shape[1]} numbers, the score model was fitted on "
                f"{len(self._mean)}: the anchors' choices differ from the source models'"
            )
        return clip(self.regressor.predict(self._reduce(X)))

    def _reduce(self, X: Array) -> Array:
        if self._mean is None or self._components is None:
            return X
        reduced: Array = (X - self._mean) @ self._components.T
        return reduced

    def config(self) -> Config:
        regressor = {"name": self.regressor.name, **self.regressor.config()}
        own = {"parts": list(self.parts), "n_components": self.n_components, "graded": self._graded}
        return {**own, "regressor": regressor}

    def state(self) -> Arrays:
        arrays = {f"regressor.{name}": array for name, array in self.regressor.state().items()}
        if self._mean is not None and self._components is not None:
            arrays |= {"mean": self._mean, "components": self._components}
        return arrays

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        options = dict(config["regressor"])
        name = options.pop("name")
        if name not in REGRESSORS:
            raise FormatError(unknown("regressor", name, list(REGRESSORS)))
        inner = {k.removeprefix("regressor."): v for k, v in state.items() if k.startswith("regressor.")}
        model = cls(REGRESSORS[name].restore(options, inner), config["parts"], config["n_components"])
        model._ids, model._graded = ids, bool(config["graded"])
        if config["n_components"] is not None:
            model._mean = need(state, "mean", (None,))
            model._components = need(state, "components", (None, len(model._mean)))
        return model


def _pca(X: Array, n_components: int) -> tuple[Array, Array]:
    """Mean and principal axes by full SVD, scikit-learn's signs; wide signatures by the products of their rows."""
    n = max(1, min(n_components, len(X) - 1, X.shape[1]))
    if X.shape[1] > _WIDE:
        return _pca_of_rows(X, n)
    from sklearn.decomposition import PCA

    with np.errstate(invalid="ignore", divide="ignore"):  # its share of variance, unused here, is 0/0 for equal rows
        fitted: Any = PCA(n, svd_solver="full").fit(X)
    return fitted.mean_, np.ascontiguousarray(fitted.components_)  # in the order in which they are loaded


def _pca_of_rows(X: Array, n: int) -> tuple[Array, Array]:
    """The same from the eigenvectors of (n_models, n_models) products: a third of the memory where rows are long."""
    mean = X.mean(axis=0)
    centred = X - mean
    products = np.zeros((len(X), len(X)))
    for first in range(0, X.shape[1], _WIDE):
        part = centred[:, first : first + _WIDE].astype(np.float64)
        products += part @ part.T
    value, vector = np.linalg.eigh(products)
    value, vector = value[::-1][:n], vector[:, ::-1][:, :n]
    length = np.sqrt(np.maximum(value, 1e-12 * max(float(value[0]), 1e-300)))
    components = (vector / length).T.astype(X.dtype) @ centred
    strongest = np.abs(components).argmax(axis=1)
    sign = np.where(components[np.arange(n), strongest] < 0, -1, 1).astype(X.dtype)
    components *= sign[:, None]
    return mean, components
