"""Small neural networks from signature to score, in numpy."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from ..errors import FormatError, ValidationError
from .base import Array, Arrays, Config, need

_BETAS, _EPSILON, _DECAY = (0.9, 0.999), 1e-8, 0.01  # AdamW as it usually comes


class MLP2:
    """One hidden layer of 128 rectified units, trained by AdamW on all models at once (paper, Table 2e, Appendix I).

    Mean squared error, learning rate 1e-3, 200 epochs of full batches; weights start uniform within 1 / sqrt(inputs).

    Raises ValidationError for fewer than one epoch or a learning rate that is not above 0, or is so high that
    the fit does not converge.
    """

    name: ClassVar[str] = "mlp2"
    hidden: ClassVar[tuple[int, ...]] = (128,)

    def __init__(self, epochs: int = 200, learning_rate: float = 1e-3) -> None:
        if epochs < 1 or not learning_rate > 0:
            raise ValidationError(f"{self.name} needs epochs >= 1 and learning_rate > 0, got {epochs}, {learning_rate}")
        self.epochs, self.learning_rate = epochs, learning_rate

    def fit(self, X: Array, y: Array, rng: np.random.Generator) -> Self:
        X = np.asarray(X, dtype=np.float64)
        sizes = [X.shape[1], *self.hidden, 1]
        self._layers = []
        for n_in, n_out in pairwise(sizes):
            bound = 1 / np.sqrt(n_in)
            self._layers += [rng.uniform(-bound, bound, (n_in, n_out)), rng.uniform(-bound, bound, n_out)]
        first = [np.zeros_like(w) for w in self._layers]
        second = [np.zeros_like(w) for w in self._layers]
        for epoch in range(1, self.epochs + 1):
            with np.errstate(over="ignore", invalid="ignore"):  # told below
                self._step(epoch, first, second, self._slopes(X, y))
        if not all(np.isfinite(w).all() for w in self._layers):
            raise ValidationError(
                f"{self.name} does not converge with learning_rate={self.learning_rate:g}; take one such as 1e-3"
            )
        return self

    def _step(self, epoch: int, first: list[Array], second: list[Array], slopes: list[Array]) -> None:
        for w, m, v, slope in zip(self._layers, first, second, slopes, strict=True):
            m += (1 - _BETAS[0]) * (slope - m)
            v += (1 - _BETAS[1]) * (slope**2 - v)
            w *= 1 - self.learning_rate * _DECAY
            width = np.sqrt(v / (1 - _BETAS[1] ** epoch)) + _EPSILON
            w -= self.learning_rate / (1 - _BETAS[0] ** epoch) * m / width

    def predict(self, X: Array) -> Array:
        return self._activations(np.asarray(X, dtype=np.float64))[-1][:, 0]

    def _activations(self, X: Array) -> list[Array]:
        out = [X]
        for k in range(0, len(self._layers), 2):
            z = out[-1] @ self._layers[k] + self._layers[k + 1]
            out.append(z if k + 2 == len(self._layers) else np.maximum(z, 0.0))
        return out

    def _slopes(self, X: Array, y: Array) -> list[Array]:
        """Gradient of the mean squared error by every weight, in the order of the layers."""
        layers = self._activations(X)
        error = 2 * (layers[-1] - y[:, None]) / len(y)
        slopes: list[Array] = []
        for k in range(len(self._layers) - 2, -1, -2):
            below = layers[k // 2]
            slopes = [below.T @ error, error.sum(axis=0), *slopes]
            if k:
                error = (error @ self._layers[k].T) * (below > 0)
        return slopes

    def config(self) -> Config:
        return {"epochs": self.epochs, "learning_rate": self.learning_rate}

    def state(self) -> Arrays:
        return {f"layer{k}": array for k, array in enumerate(self._layers)}

    @classmethod
    def restore(cls, config: Config, state: Arrays) -> Self:
        model = cls(**config)
        sizes = [None, *cls.hidden, 1]
        model._layers = []
        for k, (n_in, n_out) in enumerate(pairwise(sizes)):
            model._layers += [need(state, f"layer{2 * k}", (n_in, n_out)), need(state, f"layer{2 * k + 1}", (n_out,))]
        if not len(model._layers[0]):
            raise FormatError("the saved network has no inputs")
        return model


class MLP3(MLP2):
    """Two hidden layers of 128 rectified units and 700 epochs, otherwise as `MLP2` (paper, Table 2e, Appendix I)."""

    name: ClassVar[str] = "mlp3"
    hidden: ClassVar[tuple[int, ...]] = (128, 128)

    def __init__(self, epochs: int = 700, learning_rate: float = 1e-3) -> None:
        super().__init__(epochs, learning_rate)
