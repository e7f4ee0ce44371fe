"""UMAP in the place of PCA: for the paper's comparison of reductions, with the extra ``disco-eval[umap]``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import DiscoError, ValidationError
from ..numerics.rng import Seed, generator
from ..responses import Responses
from ..select.anchors import Anchors
from .base import Array, Arrays
from .regressors import Regressor
from .signature import SignatureModel, signature


class UmapSignatureModel(SignatureModel):
    """`SignatureModel` with UMAP (McInnes et al., 2018) to ``n_components`` instead of PCA (paper, Table 2d).

    The paper finds it worse than PCA at every size. A fitted UMAP is no set of plain arrays: such a model serves a
    comparison and cannot be saved.

    Raises DiscoError where umap-learn is not installed; ValidationError for as many components as source models.
    """

    name: ClassVar[str] = "umap_signature"

    def __init__(
        self, regressor: Regressor | None = None, parts: Sequence[str] = ("probs",), n_components: int | None = 16
    ) -> None:
        super().__init__(regressor, parts, n_components)
        if n_components is None:
            raise ValidationError("UMAP needs n_components, such as 16")
        self._size = n_components

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        library = _umap()
        if self._size >= source.n_models - 1:
            raise ValidationError(f"UMAP to {self._size} components needs more than {self._size + 1} source models")
        draw = generator(rng)
        self._ids, self._graded = anchors.ids, source.probs is None
        order = np.argsort(source.models.ids, kind="stable")  # as in `SignatureModel.fit`
        X = signature(source.pick(models=order, items=anchors.positions), self.parts)
        self._reducer: Any = library.UMAP(
            n_components=self._size, n_neighbors=min(15, len(X) - 1), random_state=int(draw.integers(2**31)), n_jobs=1
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its own defaults and threads
            reduced = self._reducer.fit_transform(X)
        self.regressor.fit(np.asarray(reduced, dtype=np.float64), source.scores()[order], draw)
        return self

    def _reduce(self, X: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self._reducer.transform(X), dtype=np.float64)

    def state(self) -> Arrays:
        raise DiscoError("a score model with UMAP cannot be saved, it is no set of plain arrays; use PCA")


def umap_installed() -> bool:
    """Whether the extra is there."""
    import importlib.util

    return importlib.util.find_spec("umap") is not None


def _umap() -> Any:
    try:
        import umap
    except ImportError:
        raise DiscoError("UMAP is not installed; add it with: pip install 'disco-eval[umap]'") from None
    return umap
