"""Lifelong Benchmark's estimate: the hardest item that a model gets right says which items it can do."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from ..errors import ValidationError, unknown
from ..numerics.rng import Seed
from ..responses import Responses
from ..select.anchors import Anchors
from ..select.shared import correctness
from .base import Array, Arrays, Config, check_answers, clip, need

THRESHOLDS = ("hardest", "fewest_errors")


class Lifelong:
    """The share of items up to a model's threshold on the order of difficulty (Lifelong Benchmarks; Appendix J.2).

    Items are ordered by how many source models get them right; meant for anchors of `every_kth`. A grade of one half
    or more counts as right.

    Parameters
    ----------
    threshold
        ``"hardest"``, as the paper describes it: the hardest anchor answered right, and every item no harder counts as
        right. One lucky guess at a hard anchor is believed, so where models can guess almost every estimate is near 1.
        ``"fewest_errors"``, the spirit of Sort & Search (Prabhu et al., 2024): the place before which most anchors are
        right and after which most are wrong, in the middle of the places that serve equally well.

    Raises ValidationError for another threshold.
    """

    name: ClassVar[str] = "lifelong"

    def __init__(self, threshold: str = "hardest") -> None:
        if threshold not in THRESHOLDS:
            raise ValidationError(unknown("threshold", threshold, THRESHOLDS))
        self.threshold = threshold

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
        right = answers.grades() >= 0.5
        if self.threshold == "hardest":
            return clip((right * self._share).max(axis=1))
        return clip(self._fewest_errors(right))

    def _fewest_errors(self, right: Array) -> Array:
        order = np.argsort(self._share, kind="stable")
        sorted_right = right[:, order].astype(np.float64)
        none = np.zeros((len(right), 1))
        wrong_before = np.concatenate([none, np.cumsum(1 - sorted_right, axis=1)], axis=1)
        right_after = sorted_right.sum(axis=1, keepdims=True) - np.concatenate(
            [none, np.cumsum(sorted_right, axis=1)], axis=1
        )
        errors = wrong_before + right_after
        edges = np.concatenate([[0.0], self._share[order], [1.0]])
        place = (edges[1:] + edges[:-1]) / 2  # a threshold lies between two anchors
        best = errors == errors.min(axis=1, keepdims=True)
        mean: Array = (best @ place) / best.sum(axis=1)
        return mean

    def config(self) -> Config:
        return {"threshold": self.threshold}

    def state(self) -> Arrays:
        return {"share": self._share}

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        model = cls(**config)
        model._ids = ids
        model._share = need(state, "share", (len(ids),))
        return model
