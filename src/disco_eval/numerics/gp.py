"""A Gaussian process from signatures to scores that trusts the anchor accuracy and learns what it misses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MIXTURES = (0.0, 0.3, 0.7, 1.0)  # share of the linear kernel
LENGTHS = (0.5, 1.0, 3.0)  # of the radial kernel, in medians of the squared distance
SHAPES = tuple((mixture, length) for mixture in MIXTURES for length in (LENGTHS if mixture < 1 else (1.0,)))
NOISES = np.logspace(-4, 1.5, 23)  # in mean eigenvalues of the kernel
_LEAST_NOISE = 1e-8  # of a kernel scaled to 1
_ROUNDING = 1e-12  # of the largest precision, below which the precision of a model is a difference of rounded numbers
_NOTHING = 1e-6  # mean eigenvalue, of such a kernel outside the span of the mean, that is rounding in single precision


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """Scores as ``b0 + b1 * accuracy + f(signature) + noise``, with nothing held against the first two terms.

    ``f`` has the covariance ``w <x, x'> + (1 - w) exp(-|x - x'|^2 / (2 l d))`` over centred signatures of unit mean
    square, ``d`` their median squared distance. ``w``, ``l`` and the noise are those of the largest restricted
    likelihood on a grid: what the data say once the mean's two coefficients are integrated out (Rasmussen & Williams,
    2006, Sections 2.7 and 5.4.1; Patterson & Thompson, 1971). Everything is held as plain arrays, so a saved process
    predicts the same to the last bit.

    Attributes
    ----------
    X : (n, p) float32, training signatures, centred and scaled. centre : (p,); scale : (1,).
    accuracy : (n,) of the training models on the anchors.
    basis : (2, 2) rows (mean, standard deviation) of the accuracy and of the score.
    kernel : (4,) mixture, length times median squared distance, noise, variance.
    beta : (2,) coefficients of [1, accuracy], both standardised.
    alpha : (n,) weights of the training points. inverse : (n, n) of the noisy kernel matrix.
    """

    X: Array
    centre: Array
    scale: Array
    accuracy: Array
    basis: Array
    kernel: Array
    beta: Array
    alpha: Array
    inverse: Array

    @classmethod
    def fit(
        cls, signatures: Array, accuracy: Array, scores: Array, like: GaussianProcess | None = None
    ) -> GaussianProcess:
        """Learn from ``signatures`` (n, p), ``accuracy`` (n,) on the anchors and ``scores`` (n,), n at least 4.

        With the mixture and the length, in median distances, of another process ``like`` it only the noise is learned,
        which takes a tenth of the work.

        Raises ValueError for fewer than 4 rows, or lengths that differ.
        """
        n = len(signatures)
        if n < 4 or accuracy.shape != (n,) or scores.shape != (n,):
            raise ValueError(f"{n} signatures, {len(accuracy)} accuracies, {len(scores)} scores: 4 or more of each")
        X, centre, scale = _standard(signatures)
        basis = np.array([[accuracy.mean(), _spread(accuracy)], [scores.mean(), _spread(scores)]])
        Z = _design(accuracy, basis)
        y = (scores - basis[1, 0]) / basis[1, 1]
        wide = X.astype(np.float64)
        linear, distance = wide @ wide.T, squared_distances(wide, wide)
        median, shapes = _median(distance), SHAPES
        if like is not None:
            known = like.X.astype(np.float64)
            shapes = ((float(like.kernel[0]), float(like.kernel[1]) / _median(squared_distances(known, known))),)
        kernel = _most_likely(linear, distance, median, Z, y, shapes)
        inverse = np.linalg.inv(_mix(linear, distance, kernel) + kernel[2] * np.eye(n))
        ZK = Z.T @ inverse
        beta = np.linalg.pinv(ZK @ Z, hermitian=True) @ (ZK @ y)
        return cls(X, centre, scale, accuracy, basis, kernel, beta, inverse @ (y - Z @ beta), inverse)

    @classmethod
    def shapes(cls) -> dict[str, tuple[int | None, ...]]:
        """The shape of every array, None where it depends on the data: what a reader of saved arrays checks."""
        inner = {"scale": (1,), "basis": (2, 2), "kernel": (4,), "beta": (2,)}
        return {f.name: inner.get(f.name, (None, None) if f.name in ("X", "inverse") else (None,)) for f in fields(cls)}

    def predict(self, signatures: Array, accuracy: Array) -> tuple[Array, Array]:
        """Estimated scores and their standard deviations, each (m,), from signatures (m, p) and accuracies (m,).

        The deviation is that of a new model's score, noise included, in units of the score, if the process were true.
        It tells a model with near relatives among those known from one without; how wide an interval must be is
        for cross-validation to say.
        """
        x = (signatures - self.centre) / self.scale[0]
        known = self.X.astype(np.float64)
        Z = _design(accuracy, self.basis)
        k = _mix(x @ known.T, squared_distances(x, known), self.kernel)
        mean = Z @ self.beta + k @ self.alpha
        ZK, cov = self._mean_terms()
        own = self.kernel[0] * (x**2).sum(axis=1) + (1 - self.kernel[0]) + self.kernel[2]
        rest = Z - k @ ZK.T
        variance = own - ((k @ self.inverse) * k).sum(axis=1) + ((rest @ cov) * rest).sum(axis=1)
        sd = np.sqrt(np.maximum(variance * self.kernel[3], 1e-12))
        return mean * self.basis[1, 1] + self.basis[1, 0], sd * self.basis[1, 1]

    def nearest(self, signatures: Array) -> Array:
        """Distance of every signature (m, p) to the nearest training model's, (m,); between any two it is about 1.4."""
        x = (signatures - self.centre) / self.scale[0]
        return np.asarray(np.sqrt(squared_distances(x, self.X.astype(np.float64)).min(axis=1)))

    def left_out(self, groups: Array) -> tuple[Array, Array]:
        """Errors (score minus prediction) of the training models, each predicted without its group, and deviations.

        ``groups`` (n,) names what is left out together. Hyper-parameters are kept, the rest is exact: the block
        version of the leave-one-out formula (Rasmussen & Williams, 2006, equation 5.12). Both have shape (n,). What
        a group alone tells of the mean cannot be predicted without it: no error, the deviation of all scores.
        """
        ZK, cov = self._mean_terms()
        projected = self.inverse - ZK.T @ cov @ ZK
        error, sd = np.empty(len(self.alpha)), np.empty(len(self.alpha))
        least = _ROUNDING * float(np.diag(self.inverse).max())
        for name in np.unique(groups):
            at = np.flatnonzero(groups == name)
            value, vector = np.linalg.eigh(projected[np.ix_(at, at)])
            known = vector[:, value > least]
            block = (known / value[value > least]) @ known.T
            error[at] = block @ self.alpha[at]
            sd[at] = np.sqrt(np.maximum(np.diag(block) * self.kernel[3], 1e-12)) if known.shape == vector.shape else 1.0
        return error * self.basis[1, 1], sd * self.basis[1, 1]

    def _mean_terms(self) -> tuple[Array, Array]:
        """Z'K^-1 and the covariance of the mean's coefficients, (2, n) and (2, 2)."""
        Z = _design(self.accuracy, self.basis)
        ZK = Z.T @ self.inverse
        return ZK, np.linalg.pinv(ZK @ Z, hermitian=True)


def squared_distances(A: Array, B: Array) -> Array:
    """Squared Euclidean distance between every row of A and of B, shape (len(A), len(B)), never below 0."""
    d: Array = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1)[None, :] - 2 * (A @ B.T)
    return np.maximum(d, 0.0, out=d)


def _standard(signatures: Array) -> tuple[Array, Array, Array]:
    """Signatures centred and divided by one number that makes their mean square length 1, as float32."""
    centre = signatures.mean(axis=0)
    X = signatures - centre
    length = np.sqrt((X**2).sum(axis=1).mean())
    scale = np.array([length if length > 0 else 1.0])
    return np.ascontiguousarray(X / scale[0], dtype=np.float32), centre, scale  # saved arrays come back in this order


def _spread(values: Array) -> float:
    spread = float(values.std())
    return spread if spread > 1e-12 else 1.0


def _design(accuracy: Array, basis: Array) -> Array:
    return np.column_stack([np.ones(len(accuracy)), (accuracy - basis[0, 0]) / basis[0, 1]])


def _mix(linear: Array, distance: Array, kernel: Array) -> Array:
    mixture, length = kernel[0], kernel[1]
    if mixture == 1.0:
        return linear
    radial: Array = (1 - mixture) * np.exp(distance / (-2 * length))
    return radial if mixture == 0.0 else mixture * linear + radial


def _median(distance: Array) -> float:
    """Median squared distance between models that are not the same; 1 where all are."""
    apart = distance[distance > 1e-9]
    return float(np.median(apart)) if len(apart) else 1.0


def _most_likely(
    linear: Array, distance: Array, median: float, Z: Array, y: Array, shapes: tuple[tuple[float, float], ...]
) -> Array:
    """Mixture, length, noise and variance of the largest restricted likelihood, (4,), among ``shapes``.

    Seen from outside the span of Z, the noisy covariance is diagonal in the kernel's eigenvectors, so one
    decomposition serves all noises. Where the kernel is nothing out there (models that answer all but alike), the data
    say nothing of the noise's share, and f is taken to vary as much as the noise.
    """
    rank = int(np.linalg.matrix_rank(Z))
    outside = np.linalg.qr(Z, mode="complete")[0][:, rank:]
    best, found = -np.inf, np.zeros(4)
    for mixture, length in shapes:
        kernel = np.array([mixture, length * median, 0.0, 0.0])
        value, vector = np.linalg.eigh(outside.T @ _mix(linear, distance, kernel) @ outside)
        value = np.maximum(value, 0.0)
        mean = float(value.mean())
        noises = np.maximum(NOISES * mean, _LEAST_NOISE) if mean > _NOTHING else np.ones(1)
        square = (vector.T @ (outside.T @ y)) ** 2
        total = value[:, None] + noises
        variance = np.maximum((square[:, None] / total).mean(axis=0), 1e-300)
        likelihood = -0.5 * (np.log(total).sum(axis=0) + len(value) * np.log(variance))
        at = int(np.argmax(likelihood))
        if likelihood[at] > best:
            best = float(likelihood[at])
            found = np.array([mixture, length * median, noises[at], variance[at]])
    return found
