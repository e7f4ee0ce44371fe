"""Means over the anchors: what one gets without a fitted model."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from ..numerics.rng import Seed
from ..responses import Responses
from ..select.anchors import Anchors
from .base import Array, Arrays, Config, check_answers, clip, need


class WeightedSum:
    """Mean of correctness on the anchors, weighted by what share of the benchmark each anchor stands for.

    With clustered anchors (`anchor_corr`, `anchor_conf`, `anchor_irt`) this is Anchor Points' estimate (Vivek et al.,
    2023; paper, Section 3.2.1). With anchors of equal weight, all drawn by chance or none, it is `Direct`.
    """

    name: ClassVar[str] = "weighted_sum"

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        self._ids = anchors.ids
        self._weights = self._shares(source, anchors)
        return self

    def _shares(self, source: Responses, anchors: Anchors) -> Array:
        return anchors.weights

    def predict(self, answers: Responses) -> Array:
        check_answers(answers, self._ids)
        return clip(answers.grades() @ self._weights)

    def config(self) -> Config:
        return {}

    def state(self) -> Arrays:
        return {"weights": self._weights}

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        model = cls()
        model._ids = ids
        model._weights = need(state, "weights", (len(ids),))
        return model


class Direct(WeightedSum):
    """Mean of correctness on the anchors ("Direct eval." in the paper): an honest baseline where chance drew them.

    Where the chance that drew each anchor is known, it counts as the benchmark weighs it over that chance (Hajek,
    1971); otherwise all count alike. The paper's random items are equally many from every subtask: where subtasks are
    of one size, or weigh the same, that is their plain mean.
    """

    name: ClassVar[str] = "direct"

    def _shares(self, source: Responses, anchors: Anchors) -> Array:
        weight = source.items.weight[anchors.positions] / anchors.chance
        known = not np.isnan(anchors.chance).any() and weight.sum() > 0
        return weight / weight.sum() if known else np.full(len(anchors), 1 / len(anchors))
