"""Scores of subtasks: what was answered of each, and what the overall score and all anchors say of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..numerics.gp import squared_distances
from ..numerics.intervals import symmetric_quantile
from ..responses import Items, Responses
from ..select import Anchors
from .base import need
from .processes import evenly

Array = NDArray[Any]

MOST_SUBTASKS = 1000
KNOWN = 1e-9  # share of a subtask below which nothing of it is left to estimate
LEAST_DOUBT = 0.1  # of the squared error of what is left, that comes from the model and not from its few items
_TINY = 1e-12
_ALIKE = 1e-9  # standard deviation of scores that are the same but for rounding
PENALTIES = np.logspace(-4, 2, 13)  # of a kernel that is 1 for the same answers


@dataclass(frozen=True, eq=False)
class Kernel:
    """What the answers to all anchors say beyond the overall score: kernel ridge regression, by likeness of answers.

    Attributes
    ----------
    X : (n, p) float32, answers of the source models. length : (1,) median squared distance between two of them.
    alpha : (n, n_subtasks) weights of ``exp(-|x - x'|^2 / length)``.
    """

    X: Array
    length: Array
    alpha: Array

    @classmethod
    def fit(cls, X: Array, Y: Array) -> Kernel:
        """For (n, n_subtasks) numbers ``Y`` about 0, with the penalty that errs least where each model is left out."""
        X = X.astype(np.float32)
        D = squared_distances(wide := X.astype(np.float64), wide)
        apart = D[np.triu_indices(len(D), 1)]
        length = np.array([float(np.median(apart)) or float(apart.mean()) or 1.0])
        size, Q = np.linalg.eigh(np.exp(-D / length))
        projected, square = Q.T @ Y, Q**2
        least, best = np.inf, np.zeros_like(Y)
        for penalty in PENALTIES:
            alpha = Q @ (projected / (size + penalty)[:, None])
            error = alpha / (square @ (1 / (size + penalty)))[:, None]  # of each when left out
            if (total := float((error**2).sum())) <= least * (1 + 1e-12):  # the largest on a tie
                least, best = total, alpha
        return cls(X, length, best)

    def predict(self, X: Array) -> Array:
        """(n_models, n_subtasks) for answers (n_models, p)."""
        return np.asarray(np.exp(-squared_distances(X, self.X.astype(np.float64)) / self.length) @ self.alpha)

    @property
    def usual(self) -> Array:
        """Mean answers of the sources, (p,)."""
        return np.asarray(self.X.mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Ridge:
    """The same in formats before 13: linear, with centre (p,) and weights (p, n_subtasks)."""

    centre: Array
    weights: Array

    def predict(self, X: Array) -> Array:
        return np.asarray((X - self.centre) @ self.weights)

    @property
    def usual(self) -> Array:
        return self.centre


@dataclass(frozen=True, eq=False)
class SubtaskModel:
    """Every subtask's score: its own anchors count for what they are of it, and the rest of it is predicted.

    The rest is a line in the overall score plus what the answers to all anchors say beyond that (`Kernel`): of what
    the lines leave over, models that answer alike have alike. Where a hundred anchors say nothing about a subtask it is
    near zero and the line is all that is claimed.

    Attributes
    ----------
    line : (2, n_subtasks) intercept and slope. beyond : what the answers say beyond it.
    total : (n_subtasks,) weight of all items of each subtask; 0 where they count for nothing, and in formats before 12,
        which predicted subtasks whole.
    size : (n_subtasks,) how many items each subtask is worth: their number where they count alike.
    noise : (n_subtasks,) variance of one item's grade about what the item and the model's level on the subtask tell.
    """

    line: Array
    total: Array
    size: Array
    noise: Array
    beyond: Kernel | Ridge

    @classmethod
    def fit(cls, source: Responses, at: Array) -> SubtaskModel:
        """From source models' answers, with the anchors at the positions ``at`` (n_anchors,)."""
        known, scores, names = source.pick(items=at), source.scores(), source.items.subtasks
        member = _member(source.items, names)
        total = np.bincount(member, source.items.weight, len(names))
        parts = parts_of(known.items, names, total, source.items.weight[at])
        left_over = source.subtask_scores() - known.grades() @ parts
        line = _line(scores, left_over)
        rest = left_over - line[0] - scores[:, None] * line[1]
        rows = evenly(source.models.ids, scores)
        beyond = Kernel.fit(_answers(known)[rows], rest[rows])
        return cls(line, total, _size(source.items.weight, member), _noise(source, member), beyond)

    def state(self) -> dict[str, Array]:
        """Every array by its name."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "beyond"}
        return own | {f.name: getattr(self.beyond, f.name) for f in fields(self.beyond)}

    @classmethod
    def restore(cls, state: dict[str, Array], n_subtasks: int) -> SubtaskModel:
        """From the arrays of `state`; FormatError where they make no sense."""
        n = n_subtasks
        own = {"line": (2, n), "total": (n,), "size": (n,), "noise": (n,)}
        arrays = {name: need(state, name, shape) for name, shape in own.items()}
        beyond: Kernel | Ridge
        if "weights" in state:
            weights = need(state, "weights", (None, n))
            beyond = Ridge(need(state, "centre", (len(weights),)), weights)
        else:
            alpha = need(state, "alpha", (None, n))
            beyond = Kernel(need(state, "X", (len(alpha), None)), need(state, "length", (1,)), alpha)
            if not beyond.length[0] > 0:
                raise FormatError("the saved model of the subtasks makes no sense: its length is not above 0")
        if min(arrays[name].min(initial=0) for name in ("total", "size", "noise")) < 0:
            raise FormatError("the saved model of the subtasks makes no sense: a weight or variance is below 0")
        return cls(**arrays, beyond=beyond)

    def predict(self, answers: Responses, scores: Array, parts: Array) -> Array:
        """Subtask scores (n_models, n_subtasks) of models with these answers and estimated overall ``scores``.

        ``parts`` (n_anchors, n_subtasks) is what the anchors are of each subtask (`parts_of`).
        """
        return np.asarray(answers.grades() @ parts + left_of(parts) * self.rest(answers, scores, parts))

    def rest(self, answers: Responses, scores: Array, parts: Array) -> Array:
        """The mean over what the anchors leave of each subtask, (n_models, n_subtasks); 0 where they leave nothing."""
        X, usual = _answers(answers), self.beyond.usual
        if X.shape[1] != len(usual):  # grades alone, where the sources' probabilities were learned from
            X = np.concatenate([np.broadcast_to(usual[: answers.n_items], answers.correct.shape), X], axis=1)
        beyond = self.beyond.predict(X)
        left = left_of(parts)
        sums = self.line[0] + scores[:, None] * self.line[1] + beyond
        return np.asarray(np.clip(np.divide(sums, left, out=np.zeros_like(sums), where=left > 0), 0.0, 1.0))


def fit_subtasks(source: Responses, anchors: Anchors) -> SubtaskModel | None:
    """The model of the subtasks' scores; None where the benchmark has no subtasks, one, or a great many."""
    if not 1 < len(source.items.subtasks) <= MOST_SUBTASKS:
        return None
    return SubtaskModel.fit(source, anchors.positions)


def missed(source: Responses, unseen: Responses, anchors: Anchors, scores: Array) -> tuple[Array, Array]:
    """By how much the subtasks of unseen models are missed with what was learned from others.

    ``scores`` (n_unseen,) are the estimated overall ones. Returns true minus estimated mean of what the anchors leave
    of every subtask, NaN where they leave nothing, and how many items that is; each (n_unseen, n_subtasks).
    """
    model = fit_subtasks(source, anchors)
    if model is None:
        return np.zeros((unseen.n_models, 0)), np.zeros((unseen.n_models, 0))
    answers = unseen.pick(items=anchors.positions)
    weight = source.items.weight[anchors.positions]
    parts = parts_of(answers.items, source.items.subtasks, model.total, weight)
    left = np.where(left_of(parts) > 0, left_of(parts), np.nan)
    error = (unseen.subtask_scores() - model.predict(answers, scores, parts)) / left
    return error, np.broadcast_to(left * model.size, error.shape)


def parts_of(items: Items, names: Sequence[str], total: Array, weight: Array) -> Array:
    """What share of each subtask's score every item carries, (n_items, n_subtasks); ``total`` as in `SubtaskModel`.

    ``weight`` (n_items,) is that of the items in the benchmark. Where none of them counts for anything there, it is not
    their own, by which they are averaged among themselves.
    """
    member = _member(items, names)
    parts = np.zeros((len(items), len(names)))
    parts[np.arange(len(items)), member] = weight / np.where(total > 0, total, np.inf)[member]
    return parts


def _member(items: Items, names: Sequence[str]) -> Array:
    """Which of the subtasks every item is of, (n_items,)."""
    at = {name: k for k, name in enumerate(names)}
    return np.array([at[name] for name in items.subtask.tolist()], dtype=np.int64)


def left_of(parts: Array) -> Array:
    """What share of each subtask's score some items leave open, (n_subtasks,); ``parts`` as from `parts_of`."""
    left = 1 - parts.sum(axis=0)
    return np.asarray(np.where(left > KNOWN, left, 0.0))


def agreeing(known: Array, rest: Array, left: Array, scores: Array, total: Array) -> Array:
    """The mean of what is left of every subtask, (n_models, n_subtasks), so that subtasks average to ``scores``.

    What they are off by is spread over what is left, as far as that can be (means stay in [0, 1]).

    Parameters
    ----------
    known, rest : (n_models, n_subtasks) what answers add to each subtask's score, and the predicted mean of the others.
    left : (n_subtasks,) share that the others are. total : as in `SubtaskModel`. scores : (n_models,) overall ones.
    """
    share = total * left
    free = np.broadcast_to(share > 0, rest.shape)
    for _ in range(len(left)):  # what one that is all or none right cannot take is left to the others
        off = scores * total.sum() - known @ total - rest @ share
        taking = np.where(off[:, None] > 0, rest < 1, rest > 0) & free
        weight = taking @ share
        missing = (np.abs(off) > _TINY * total.sum()) & (weight > 0)
        if not missing.any():
            break
        each = np.divide(off, weight, out=np.zeros_like(off), where=missing)
        rest = np.clip(rest + taking * each[:, None], 0.0, 1.0)
    return rest


@dataclass(frozen=True, eq=False)
class SubtaskErrors:
    """How far off left-out sources were on what the anchors left of every subtask, and why.

    The mean of what is left is missed because the model on it is told wrongly, and because it is few items, each of
    which falls as it falls. Another number of items is left in other folds, and after further items.

    Attributes
    ----------
    doubt : (n_subtasks,) mean square of the first part.
    noise : (n_subtasks,) variance of the second, for a single item.
    errors : for each subtask, errors as shares of what was to be expected of them (root mean square).
    """

    doubt: Array
    noise: Array
    errors: tuple[Array, ...]

    @classmethod
    def of(cls, error: Array, n_left: Array, noise: Array) -> SubtaskErrors:
        """From errors (n_sources, n_subtasks), NaN where nothing was left, and how many items were left there.

        A subtask of which the folds left nothing for most sources has the errors of all others.
        """
        known = np.isfinite(error)
        fallen = np.where(known, noise / np.where(known, n_left, 1), 0.0)
        count = known.sum(axis=0)
        square = np.where(known, error, 0.0) ** 2
        mean, by_noise = (part.sum(axis=0) / np.maximum(count, 1) for part in (square, fallen))
        enough = (2 * count >= len(known)) & (count > 0)
        doubt = np.maximum(mean - by_noise, LEAST_DOUBT * mean)
        doubt = np.where(enough, doubt, doubt[enough].mean() if enough.any() else noise)
        share = np.where(known, error, 0.0) / np.sqrt(np.maximum(doubt + fallen, _TINY))
        all_of_them = share[known & enough] if enough.any() else np.ones(1)
        return cls(doubt, noise, tuple(share[known[:, k], k] if many else all_of_them for k, many in enumerate(enough)))

    def each(self, of: Callable[..., float], *args: Any) -> Array:
        """A statistic of every subtask's errors, (n_subtasks,)."""
        return np.array([of(e, *args) for e in self.errors])

    def within(self, level: float, n_left: Array, doubt: Array) -> Array:
        """How far off the mean of ``n_left`` items of each subtask is in a share ``level`` of models at most."""
        return self.expected(n_left, doubt) * self.each(symmetric_quantile, level)

    def expected(self, n_left: Array, doubt: Array | None = None) -> Array:
        """Root mean square error of the mean of ``n_left`` items of each subtask, (..., n_subtasks)."""
        doubt = self.doubt if doubt is None else doubt
        return np.asarray(np.sqrt(doubt + np.divide(self.noise, n_left, out=np.zeros_like(n_left), where=n_left > 0)))


def informed(
    rest: Array, usual: Array, doubt: Array, noise: Array, own: Array, grades: Array, sources: Array
) -> tuple[Array, Array]:
    """What of each subtask is left when some items are answered: its mean, and how much doubt remains.

    The predicted mean of what the anchors leave moves towards what the items say, by how much of its error comes from
    the prediction and how much from having few items: m observations of variance v against a prediction of variance d
    count m d / (m d + v).

    Parameters
    ----------
    rest : (n_models, n_subtasks) predicted mean of what the anchors leave. usual : (n_subtasks,) that of the sources.
    doubt, noise : (n_models, n_subtasks) and (n_subtasks,), as in `SubtaskErrors`.
    own : (n_answered, n_subtasks) what the items are of each (`parts_of`).
    grades, sources : (n_models or n_sources, n_answered) grades on them.

    Returns
    -------
    (n_models, n_subtasks) mean of what the anchors leave, and which share of ``doubt`` remains, likewise.
    """
    of, sums = own.argmax(axis=1), own.sum(axis=0)
    count = sums**2 / np.maximum((own**2).sum(axis=0), _TINY)
    expected = np.clip(sources.mean(axis=0) + (rest - usual)[:, of], 0.0, 1.0)
    away = (grades - expected) @ np.divide(own, sums, out=np.zeros_like(own), where=sums > 0)
    gain = count * doubt / np.maximum(count * doubt + noise, _TINY)
    return np.clip(rest + gain * away, 0.0, 1.0), 1 - gain


def eased(usual: Array, left: Array, own: Array, sources: Array) -> Array:
    """How much easier for the sources what further items leave is than what the anchors leave, (n_subtasks,).

    ``left`` (n_subtasks,) is the share that the anchors leave; the others are as for `informed`.
    """
    sums = own.sum(axis=0)
    after = np.where(left - sums > KNOWN, left - sums, 0.0)
    easier = usual * sums - sources.mean(axis=0) @ own
    return np.asarray(np.divide(easier, after, out=np.zeros_like(usual), where=after > 0))


def _size(weight: Array, member: Array) -> Array:
    """How many items each subtask is worth, (n_subtasks,): the square of summed weights by the sum of squares."""
    count, total, square = (np.bincount(member, w) for w in (None, weight, weight**2))
    return np.asarray(np.where(total > 0, total**2 / np.where(total > 0, square, 1), count))


def _noise(source: Responses, member: Array) -> Array:
    """Variance of a grade about the sum of its item's and its model's effect, (n_subtasks,).

    A subtask of one item has no level beside that item; there it is the variance of the item's grades.
    """
    n, count = source.n_models, np.bincount(member)
    sums, within = np.zeros((n, len(count))), np.zeros(len(count))
    for columns, grades in source.grade_blocks():
        sums += grades @ np.eye(len(count))[member[columns]]
        within += np.bincount(member[columns], grades.var(axis=0), len(count))
    levels = np.where(count > 1, (sums / count).var(axis=0), 0.0)
    return np.asarray(np.maximum(within - count * levels, 0.0) / np.maximum(count - 1, 1) * n / max(n - 1, 1))


def _answers(answers: Responses) -> Array:
    """Grades, and the probabilities of the right choices where they are known; (n_models, p)."""
    if answers.probs is None or answers.items.label is None:
        return answers.grades()
    return np.concatenate([answers.label_probs(), answers.grades()], axis=1)


def _line(scores: Array, subtask_scores: Array) -> Array:
    centred = scores - scores.mean()
    alike = scores.std() < _ALIKE
    slope = np.zeros(subtask_scores.shape[1]) if alike else centred @ subtask_scores / (centred @ centred)
    return np.stack([subtask_scores.mean(axis=0) - slope * scores.mean(), slope])
