"""Items that stand for clusters of like items: Anchor Points and tinyBenchmarks."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError
from ..numerics.clusters import medoids
from ..numerics.rng import Seed, generator
from ..responses import Responses
from .anchors import Anchors, by_id, check_count
from .shared import correctness, once, source_irt

Array = NDArray[Any]


def anchor_conf(responses: Responses, n_anchors: int, rng: Seed = None, *, restarts: int = 5) -> Anchors:
    """Medoids of items that source models answer with like confidence (Vivek et al., 2023; paper, Section 3.1.1).

    An item's place is the vector of probabilities that the source models give to its right choice. K-means, each item
    counting as the benchmark weighs it, best of ``restarts`` starts; an anchor is the item nearest to its centre and
    weighs as much as its cluster, so `weighted_sum` estimates the score.

    Raises ValidationError for more anchors than items, or where only grades are known.
    """
    return _clustered(
        responses, n_anchors, rng, ("anchor_conf",), lambda: _in_order(responses, responses.label_probs()), restarts
    )


def anchor_corr(responses: Responses, n_anchors: int, rng: Seed = None, *, restarts: int = 5) -> Anchors:
    """Medoids of items that the same source models get right (tinyBenchmarks: Polo et al., 2024; paper, Section 3.1.1).

    As `anchor_conf`, but an item's place is the vector of the source models' correctness, so grades are enough.

    Raises ValidationError for more anchors than items.
    """
    return _clustered(
        responses, n_anchors, rng, ("anchor_corr",), lambda: _in_order(responses, correctness(responses)), restarts
    )


def anchor_irt(
    responses: Responses, n_anchors: int, rng: Seed = None, *, restarts: int = 5, n_dims: int | None = None
) -> Anchors:
    """Medoids of items with like discrimination and difficulty (tinyBenchmarks; paper, Section 3.1.1).

    As `anchor_conf`, but an item's place is its item response parameters; ``n_dims`` is chosen on held-out source
    models unless given (see `source_irt`).

    Raises ValidationError for more anchors than items, or too few source models for the fit.
    """

    def parameters() -> Array:
        fitted = source_irt(responses, n_dims).full
        return np.concatenate([fitted.discrimination, fitted.difficulty[:, None]], axis=1).T

    return _clustered(responses, n_anchors, rng, ("anchor_irt", n_dims), parameters, restarts)


def _in_order(responses: Responses, answers: Array) -> Array:
    """Rows in the order of the models' names."""
    rows: Array = answers[by_id(responses.models.ids)]
    return rows


def _clustered(
    responses: Responses,
    n_anchors: int,
    rng: Seed,
    how: tuple[Hashable, ...],
    features: Callable[[], Array],
    restarts: int,
) -> Anchors:
    """Anchors from k-means of the columns of ``features()`` (n_features, n_items), made once for each ``how``."""
    check_count(responses, n_anchors)
    if restarts < 1:
        raise ValidationError(f"restarts must be at least 1, got {restarts}")
    items = by_id(responses.items.ids)
    X = once(responses, (how, "embedding"), lambda: np.ascontiguousarray(features()[:, items].T, dtype=np.float32))
    weight = responses.items.weight[items]
    at, mass = medoids(X, weight, n_anchors, generator(rng), restarts=restarts)
    return Anchors.of(responses.items, items[at], str(how[0]), weights=mass, criterion=mass / weight.sum())
