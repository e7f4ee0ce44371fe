"""Lifelong Benchmark's estimate: the hardest item that a model gets right says which items it can do."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from ..numerics.rng import Seed
from ..responses import Responses
from ..select.anchors import Anchors
from ..select.shared import correctness
from .base import Array, Arrays, Config, check_answers, clip, need


class Lifelong:
    """The share of items no harder than the hardest anchor answered right (Sort & Search; paper, Appendix H.2).

    Items are ordered by how many source models get them right; meant for anchors of `every_kth`. A grade of one half
    or more counts as right; a model with no anchor right scores 0. One lucky answer to a hard anchor is believed, so
    errors are large where easy and hard items do not sort the models alike.
    """

    name: ClassVar[str] = "lifelong"

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        self._ids = anchors.ids
        right = correctness(source).sum(axis=0, dtype=np.float64).round(6)
        order = np.argsort(-right, kind="stable")
        reached = np.cumsum(source.items.weight[order]) / source.items.weight.sum()
        upto = np.searchsorted(-right[order], -right[anchors.positions], side="right")  # with all that are as hard
        self._share = reached[upto - 1]
        return self

    def predict(self, answers: Responses) -> Array:
        check_answers(answers, self._ids)
        return clip(((answers.grades() >= 0.5) * self._share).max(axis=1))

    def config(self) -> Config:
        return {}

    def state(self) -> Arrays:
        return {"share": self._share}

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        model = cls()
        model._ids = ids
        model._share = need(state, "share", (len(ids),))
        return model
