"""Whether the sources hold relatives of a model: what error to expect where they may, beside that where none does."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .further import assess_with_more
from .numerics.intervals import symmetric_quantile
from .predict.subtasks import missed
from .recipe import Recipe, assess_unseen
from .resources import workers
from .responses import Responses
from .select.shared import keep

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Relatives:
    """Source models left out in folds that ignore kin, so that those with relatives leave them among the sources.

    Attributes
    ----------
    error : (n_sources,) true minus estimated score, in the order of the sources.
    scale : (n_sources,) standard error that the score model claimed.
    nearest : (n_sources,) distance to the nearest source that the process learned from, small where it is a relative.
    subtask_error, subtask_left : (n_sources, n_subtasks) true minus estimated mean of what the anchors left of every
        subtask, NaN where nothing, and how many items that is; without columns where it is not known (formats 6 to 12).
    more_error, more_scale : (n_sources,) error and scale with further items, as in `CrossValidation`.
    """

    error: Array
    scale: Array
    nearest: Array
    subtask_error: Array
    subtask_left: Array
    more_error: Array
    more_scale: Array

    @property
    def mae(self) -> float:
        """Mean absolute error of the estimates of models whose relatives are among the sources, in [0, 1]."""
        return float(np.abs(self.error).mean())

    def worth(self, mae: float) -> float:
        """By how much smaller the square of the error is than without relatives, where that is ``mae``, 0 to 1."""
        return max(1 - (self.mae / mae) ** 2, 0.0) if mae else 0.0

    def quantile(self, level: float, more: bool = False) -> float:
        """The error, in claimed standard errors, that a share ``level`` of these models stays within.

        With ``more`` further items, as many as the folds asked.
        """
        error, scale = (self.more_error, self.more_scale) if more else (self.error, self.scale)
        return symmetric_quantile(error / np.maximum(scale, 1e-9), level)

    def likely(self, nearest: Array, away: Array) -> Array:
        """How likely a relative of each model is among the sources, (n_models,), by its distance to the ``nearest``.

        How many sources left out alone stand as far from the nearest as this model or farther, against how many left
        out with their family (``away``, (n_sources,), are their distances) stand as near or nearer: the odds are the
        square of the ratio, since some sources have no relative to leave behind, and make every distance look a little
        like a relative's. A half on average where family makes no difference to how near models stand.
        """
        nearest, known, away = (distance.round(6) for distance in (nearest, self.nearest, away))  # roots of 1e-16 are 0
        far = len(known) - np.searchsorted(np.sort(known), nearest, side="left") + 1
        near = np.searchsorted(np.sort(away), nearest, side="right") + 1
        return np.asarray(far**2 / (far**2 + near**2))


def leave_out_alone(
    responses: Responses,
    recipe: Recipe,
    parts: list[tuple[Array, Array]],
    rng: np.random.Generator,
    done: Callable[[int], None],
) -> Relatives:
    """Leave out each fold of source models, whatever their kin, and assess it; ``done(k)`` after k folds."""
    shared, rngs = recipe.share(responses, parts), rng.spawn(len(parts))
    made: dict[int, tuple[Array, ...]] = {}
    everyone = workers().share(responses)
    tasks = ((_one_fold, (everyone, recipe, part, rngs[k], shared[k])) for k, part in enumerate(parts))
    for k, one in workers().results(tasks):
        made[k] = one
        done(len(made))
    at = np.argsort(np.concatenate([left_out for _, left_out in parts]))  # every source is left out once
    return Relatives(*(np.concatenate(each)[at] for each in zip(*(made[k] for k in range(len(parts))), strict=True)))


def _one_fold(
    responses: Responses,
    recipe: Recipe,
    part: tuple[Array, Array],
    rng: np.random.Generator,
    shared: dict[Hashable, Any],
) -> tuple[Array, ...]:
    """What `Relatives` holds, of one fold's left-out models."""
    source, unseen = (responses.pick(models=side) for side in part)
    keep(source, shared)
    anchors, model = recipe.make_without(unseen.n_models, source, rng)
    found, truth = assess_unseen(model, unseen, anchors.positions), unseen.scores()
    score, scale, _ = assess_with_more(model, anchors, source, unseen, found, rng.spawn(1)[0])
    parts = missed(source, unseen, anchors, found.score)
    return truth - found.score, found.scale, found.nearest, *parts, truth - score, scale
