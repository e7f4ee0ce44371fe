"""What is told about one model: its estimated scores, with intervals and flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ROUNDING = 1e-6  # that equal scores may differ by: sums of grades in single precision


@dataclass(frozen=True)
class SubtaskEstimate:
    """One model's estimated score on one subtask, in [0, 1], with its interval, and how many items asked are of it."""

    name: str
    score: float
    low: float
    high: float
    n_anchors: int


@dataclass(frozen=True)
class Rank:
    """Where a model stands among the source models, whose true scores are known: 1 is the best of ``of``, with itself.

    ``at`` is the place of the estimate, ``best`` and ``worst`` those of the ends of its interval, which hold as often.
    """

    at: int
    best: int
    worst: int
    of: int

    def __str__(self) -> str:
        return str(self.at) + ("" if self.best == self.worst else f" ({self.best} to {self.worst})")


@dataclass(frozen=True)
class Estimate:
    """One model's estimated score on the whole benchmark.

    Attributes
    ----------
    model : its name.
    score : the estimate, in [0, 1].
    low, high : an interval that should hold the true score in a share ``level`` of models like the sources.
    level : that share.
    flags : what is unusual about this model, as keys of `disco_eval.flags.FLAGS`, which has the words.
    nearest : the source models whose answers on the anchors are most alike, nearest first.
    subtasks : an estimate for every subtask, where the benchmark has several.
    more : number of items beyond the anchors that the estimate rests on.
    rank : where that puts it among the source models.
    surveyed : whether it is a survey's, with further items: those drawn by chance stand for the others, whatever the
        model is like, and source models make it sharper, not truer.
    """

    model: str
    score: float
    low: float
    high: float
    level: float
    flags: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    subtasks: tuple[SubtaskEstimate, ...] = ()
    more: int = 0
    rank: Rank | None = None
    surveyed: bool = False

    def __str__(self) -> str:
        note = f"  [{', '.join(self.flags)}]" if self.flags else ""
        span = f"{100 * self.low:.1f} to {100 * self.high:.1f} at {100 * self.level:g} %"
        return f"{self.model}: {100 * self.score:.1f} ({span}){note}"


def ranked(found: Sequence[Array], known: Array, own: Sequence[int | None]) -> list[Rank]:
    """The ranks of models among others of ``known`` scores (n_known,); equal scores share the better rank.

    ``found`` are the estimates, their low and their high ends, each (n_models,). ``own`` (n_models,) says where a model
    stands among the known ones, so that it is not counted twice; None for one that is none of them.
    """
    order, found = np.sort(known), [values + ROUNDING for values in found]
    better = [len(order) - np.searchsorted(order, values, side="right") for values in found]
    ranks = []
    for i, k in enumerate(own):
        ends = zip(better, found, strict=True)
        at, worst, best = (1 + int(n[i]) - int(k is not None and known[k] > values[i]) for n, values in ends)
        ranks.append(Rank(at, best, worst, len(order) + (k is None)))
    return ranks
