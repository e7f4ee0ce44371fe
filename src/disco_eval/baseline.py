"""Plain means over random items: what anchors must beat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .numerics.survey import systematic
from .responses import Items, Responses
from .select import uniform
from .select.anchors import by_id

Array = NDArray[Any]


def as_dear(items: Items, at: Array) -> int:
    """How many items drawn by what they count for cost on average as much as those at positions ``at``."""
    assert items.cost is not None
    typical = float(items.cost @ items.weight / items.weight.sum())
    n = round(float(items.cost[at].sum()) / typical) if typical > 0 else len(at)
    return int(np.clip(n, 1, (items.weight > 0).sum()))


def direct_errors(unseen: Responses, n_anchors: int, rng: np.random.Generator, draws: int = 5) -> Array:
    """Absolute errors of the mean over random items, several draws, for the left-out models.

    Where items count differently (several benchmarks, subtasks of equal weight) they are drawn by what they count for,
    and the mean is weighted by the inverse of their chance.
    """
    share = unseen.items.weight / unseen.items.weight.sum()
    if np.ptp(share) <= 1e-12:
        drawn = [uniform(unseen, n_anchors, draw).positions for draw in rng.spawn(draws)]
        return np.concatenate([np.abs(_mean_of(unseen, at, share[at]) - unseen.scores()) for at in drawn])
    errors, n = [], min(n_anchors, int((share > 0).sum()))
    for draw in rng.spawn(draws):
        at, chance = systematic(draw.permutation(by_id(unseen.items.ids)), share, n, draw)
        errors.append(np.abs(_mean_of(unseen, at, share[at] / chance) - unseen.scores()))
    return np.concatenate(errors)


def _mean_of(responses: Responses, items: Array, weight: Array) -> Array:
    """The weighted mean grade of every model over some items alone, (n_models,); plain where none has a weight."""
    weight = weight if weight.sum() > 0 else np.ones(len(items))
    mean: Array = np.clip(responses.grades(items) @ (weight / weight.sum()), 0.0, 1.0)
    return mean
