"""Gaussian processes on several views of the same answers, shared out by their errors on source models left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.gp import GaussianProcess
from ..numerics.likeness import with_copies
from ..responses import Responses
from ..select.anchors import by_id
from .mixture import LEAST_EXCESS, MOST_EXCESS, excess, mixture, shares
from .signature import signature

Array = NDArray[Any]
View = tuple[Array, Array]  # signatures (n_models, p) and mean answers (n_models,)

MOST_SOURCES = 1000  # that a process learns from: its work grows with their cube, what they add hardly at all
WIDEST = 20_000  # numbers in a signature, above which the label's probability stands for all choices
_GRADES = 0.3  # weight of the grades beside the probabilities, which are much smaller


@dataclass(frozen=True, eq=False)
class Processes:
    """Processes on the probabilities, on grades beside them and on grades alone; or one, where only grades are known.

    Attributes
    ----------
    each : the processes, one a view. mix : (n_processes,) their shares for a model of which none knows more than usual.
    excess : (n_processes,) how much larger their errors are than they claim; None in formats 1 to 4.
    inflate : the same of all together, on sources left out with their kin.
    """

    each: list[GaussianProcess]
    mix: Array
    excess: Array | None
    inflate: float

    @classmethod
    def fit(
        cls, seen: list[View], scores: Array, akin: Array, answers: Array, like: Processes | None = None
    ) -> Processes:
        """From source models' views and ``scores`` (n,); ``akin`` (n,) names kin, ``answers`` (n, k) tell copies.

        With kernels of the shapes that others have, ``like`` these.
        """
        shaped = [None] * len(seen) if like is None else like.each
        each = [GaussianProcess.fit(X, mean, scores, one) for (X, mean), one in zip(seen, shaped, strict=True)]
        copies = partial(with_copies, answers=answers, most=len(scores) // 5)
        errors, sds = _stacked([p.left_out(copies(akin)) for p in each])
        mix, more = mixture(errors), excess(each, copies(np.arange(len(scores))))
        of = shares(mix, more, sds)
        error, sd = (of * errors).sum(axis=0), (of * sds).sum(axis=0)
        inflate = float(np.clip(np.sqrt(np.mean((error / sd) ** 2)), LEAST_EXCESS, MOST_EXCESS))
        return cls(each, mix, more, inflate)

    def predict(self, seen: list[View]) -> tuple[Array, Array]:
        """Estimated scores and their standard errors, each (n_models,), from models' views."""
        means, sds = _stacked([p.predict(*view) for p, view in zip(self.each, seen, strict=True)])
        if self.excess is None:  # formats 1 to 4
            return self.mix @ means, self.inflate * (self.mix @ sds)
        of = shares(self.mix, self.excess, sds)
        return (of * means).sum(axis=0), self.inflate * (of * sds).sum(axis=0)


def views(
    answers: Responses, soft: bool, weights: Array, further: tuple[Array, Array | None] | None = None
) -> list[View]:
    """(signature, mean answer) of every model as each process sees it; ``weights`` are those of the mean.

    Square roots make distances those between distributions (Hellinger) instead of those of the largest numbers.
    ``further`` are grades, and the right choices' probabilities, of items beside the anchors, (n_models, k) each; of
    these no other choice's probability is looked at, which would tell no more.
    """
    grades = answers.grades()
    if further is not None:
        grades = np.concatenate([grades, further[0]], axis=1)
    if not soft:
        return [(grades, _mean(grades, weights))]
    label = answers.label_probs()
    if further is not None and further[1] is not None:
        label = np.concatenate([label, further[1]], axis=1)
    parts = [np.sqrt(label)]
    if answers.items.n_choices.sum() <= WIDEST:
        parts.append(np.sqrt(signature(answers, ("probs",))))
    X = np.concatenate(parts, axis=1)
    beside = np.concatenate([X, np.sqrt(_GRADES) * grades], axis=1)
    known = _mean(grades, weights)
    return [(X, _mean(label, weights)), (beside, known), (grades, known)]


def evenly(ids: Array, scores: Array) -> Array:
    """Positions of the source models that processes learn from: all, or `MOST_SOURCES` at even steps of their rank.

    In the order of their names: where hardly any model differs, last bits make another process.
    """
    if len(scores) <= MOST_SOURCES:
        return by_id(ids)
    order = np.lexsort((ids, scores))
    taken = order[np.linspace(0, len(order) - 1, MOST_SOURCES).round().astype(np.int64)]
    return np.asarray(taken[by_id(ids[taken])])


def _mean(answers: Array, weights: Array) -> Array:
    """Weighted mean of every row, (n_models,): the same to the last bit whatever the layout and the other rows."""
    return np.asarray((np.ascontiguousarray(answers) * weights).sum(axis=1))


def _stacked(both: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.array([first for first, _ in both]), np.array([second for _, second in both])
