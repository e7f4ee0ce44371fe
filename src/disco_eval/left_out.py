"""Source models left out, in folds that keep kin together and in ones that do not, and what they are estimated at."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .baseline import as_dear, direct_errors
from .calibration import CrossValidation
from .further import assess_with_more
from .predict import Assessment, Auto, ScoreModel, predictor
from .predict.subtasks import missed
from .recipe import Recipe, assess_unseen, distance_apart, possible
from .relatives import Relatives
from .resources import workers
from .responses import Models, Responses
from .select import Anchors
from .select.anchors import by_id
from .select.shared import keep
from .splits import fold_groups, folds, telling_answers, with_relatives

Array = NDArray[Any]
Parts = list[tuple[Array, Array]]  # of every fold, positions of the models to learn from and of those left out

LEAST_CURVE = 25  # source models at the first point of the learning curve


@dataclass(frozen=True, eq=False)
class Plan:
    """Which source models are left out together.

    Attributes
    ----------
    parts : folds that keep kin together. alone : folds that ignore it; empty where none are asked for, or make sense.
    shared : what is known about the models of each of the ``parts``, from `Recipe.share`.
    curve : whether to measure the error with fewer source models too. tell : hears of every fold that is done.
    """

    parts: Parts
    alone: Parts
    shared: list[dict[Hashable, Any]]
    curve: bool
    tell: Callable[..., None]

    @classmethod
    def of(
        cls,
        responses: Responses,
        recipe: Recipe,
        n_folds: int,
        rngs: tuple[np.random.Generator, np.random.Generator],
        relatives: bool,
        curve: bool,
        tell: Callable[[str, int, int], None],
    ) -> Plan:
        """Of ``n_folds`` folds, and twice as many that ignore kin if ``relatives``; ``rngs`` draw them."""
        answers = telling_answers(responses)
        parts = list(folds(responses.models, n_folds, rngs[0], answers=answers))
        alone = _alone(responses.models, answers, recipe, n_folds, rngs[1]) if relatives else []
        n_steps = len(parts) + len(alone)
        tell("condensing", 0, n_steps + 1)
        return cls(parts, alone, recipe.share(responses, parts), curve, partial(_tell_fold, tell, n_steps))


def _alone(models: Models, answers: Array, recipe: Recipe, n_folds: int, rng: np.random.Generator) -> Parts:
    """Folds of the source models that ignore kin, twice as many, so that most relatives of what is left out stay.

    None where all folds ignore kin, since too little kinship is known, or where the score model measures no distances.
    """
    if fold_groups(models, n_folds, answers) == "none" or predictor(recipe.predict).name != Auto.name:
        return []
    return list(folds(models, 2 * n_folds, rng, "none", answers))


def _tell_fold(tell: Callable[[str, int, int], None], n_folds: int, done: int, before: int = 0) -> None:
    tell("validating", before + done + 1, n_folds + 1)


def cross_validate(
    responses: Responses,
    recipe: Recipe,
    parts: Parts,
    rngs: list[np.random.Generator],
    shared: list[dict[Hashable, Any]],
    done: Callable[[int], None],
    curve: bool = True,
) -> CrossValidation:
    """Leave each fold of source models out, condense without it, and assess it; ``done(k)`` after k folds.

    ``shared`` is what is known about the models of each fold already, from `Recipe.share`. With ``curve`` the same is
    done with fewer source models, which costs about as much again.
    """
    sizes = curve_sizes(min(len(part[0]) for part in parts)) if curve else []
    each: list[_Fold] = _in_folds(_one_fold, responses, recipe, parts, rngs, shared, done, sizes)
    found = [one.found for one in each]
    at = np.argsort(np.concatenate([left_out for _, left_out in parts]))  # every source is left out once

    def of_sources(values: Iterable[Array]) -> Array:
        joined: Array = np.concatenate(list(values))[at]
        return joined

    truth, estimate = responses.scores(), of_sources(f.score for f in found)
    n_fit = float(np.mean([len(part[0]) for part in parts]))
    missed_here = (np.abs(one.found.score - truth[left_out]) for one, (_, left_out) in zip(each, parts, strict=True))
    errors = [np.vstack([one.on_fewer, here]) for one, here in zip(each, missed_here, strict=True)]
    return CrossValidation(
        truth=truth,
        estimate=estimate,
        direct_mae=float(np.concatenate([one.direct for one in each]).mean()),
        direct_items=float(np.mean([one.n_direct for one in each])),
        grouped_by=fold_groups(responses.models, len(rngs), telling_answers(responses)),
        n_folds=len(parts),
        scale=of_sources(f.scale for f in found),
        apart=of_sources(distance_apart(f) for f in found),
        leak=of_sources(f.leak for f in found),
        fold=of_sources(np.full(len(left_out), k) for k, (_, left_out) in enumerate(parts)),
        subtask_error=of_sources(one.subtask_error for one in each),
        subtask_left=of_sources(one.subtask_left for one in each),
        curve=_curve([*sizes, n_fit], errors) if curve else np.zeros((0, 3)),
        nearest=of_sources(f.nearest for f in found),
        relatives=None,
        more_error=truth - of_sources(one.with_more[0] for one in each),
        more_scale=of_sources(one.with_more[1] for one in each),
        n_more=min(one.with_more[2] for one in each),  # 0 where a fold had none
    )


def _curve(sizes: list[float], errors: list[Array]) -> Array:
    """(k, 3) rows of number of source models, mean absolute error and its standard error, from folds' (k, n) errors.

    The standard error is that of the folds: the models of one share its anchors, and luck with these.
    """
    mean, each = np.hstack(errors).mean(axis=1), np.array([e.mean(axis=1) for e in errors])
    spread = each.std(axis=0, ddof=1) if len(each) > 1 else np.zeros(len(mean))
    return np.column_stack([sizes, mean, spread / np.sqrt(len(each))])


@dataclass(frozen=True, eq=False)
class _Fold:
    """What one fold's left-out models are assessed at.

    Errors: of ``n_direct`` random items; of every subtask, and the number of items that they are of, (n_left_out,
    n_subtasks); of the same procedure with fewer source models, (n_sizes, n_left_out). ``with_more`` is what
    `further.assess_with_more` says.
    """

    found: Assessment
    direct: Array
    n_direct: int
    subtask_error: Array
    subtask_left: Array
    on_fewer: Array
    with_more: tuple[Array, Array, int]


def _one_fold(
    responses: Responses,
    recipe: Recipe,
    part: tuple[Array, Array],
    rng: np.random.Generator,
    shared: dict[Hashable, Any],
    sizes: list[int],
) -> _Fold:
    for_recipe, for_direct, for_fewer, for_more = rng.spawn(4)
    source, unseen, anchors, model, found = _assessed(responses, recipe, part, for_recipe, shared)
    truth = unseen.scores()
    fewer = np.empty((len(sizes), unseen.n_models))
    for i, (size, child) in enumerate(zip(sizes, for_fewer.spawn(len(sizes)), strict=True)):
        for_draw, for_make = child.spawn(2)
        some = np.sort(by_id(source.models.ids)[for_draw.choice(source.n_models, size, replace=False)])
        at, small = recipe.make(source.pick(models=some), for_make)
        on_them = unseen.pick(items=at.positions)
        said = possible(small.predict(on_them), on_them, unseen.items.weight, at.positions)
        fewer[i] = np.abs(said - truth)
    error, n_left = missed(source, unseen, anchors, found.score)
    n_direct = as_dear(unseen.items, anchors.positions) if recipe.by_cost else len(anchors)
    more = assess_with_more(model, anchors, source, unseen, found, for_more)
    return _Fold(found, direct_errors(unseen, n_direct, for_direct), n_direct, error, n_left, fewer, more)


def curve_sizes(n: int) -> list[int]:
    """Numbers of source models below ``n`` at which the learning curve is measured: 25, 50, 100, ..."""
    sizes = [LEAST_CURVE * 2**k for k in range(20)]
    return [size for size in sizes if size < 0.8 * n]


def leave_out_alone(
    responses: Responses,
    recipe: Recipe,
    parts: Parts,
    n_folds: int,
    rng: np.random.Generator,
    done: Callable[[int], None],
) -> Relatives:
    """Leave out each fold of source models, whatever their kin, and assess it; ``done(k)`` after k folds.

    Kin are those that others ``n_folds`` keep together.
    """
    shared, rngs = recipe.share(responses, parts), rng.spawn(len(parts))
    each: list[dict[str, Array]] = _in_folds(_one_alone, responses, recipe, parts, rngs, shared, done)
    at = np.argsort(np.concatenate([left_out for _, left_out in parts]))  # every source is left out once
    has_any = with_relatives(responses.models, n_folds, telling_answers(responses)).astype(np.float64)
    found = {name: np.concatenate([one[name] for one in each])[at] for name in each[0]}
    return Relatives(**found, has_any=has_any)


def _one_alone(
    responses: Responses,
    recipe: Recipe,
    part: tuple[Array, Array],
    rng: np.random.Generator,
    shared: dict[Hashable, Any],
) -> dict[str, Array]:
    """What `Relatives` holds, of one fold's left-out models."""
    source, unseen, anchors, model, found = _assessed(responses, recipe, part, rng, shared)
    truth = unseen.scores()
    score, scale, _ = assess_with_more(model, anchors, source, unseen, found, rng.spawn(1)[0])
    error, n_left = missed(source, unseen, anchors, found.score)
    return {
        "error": truth - found.score,
        "scale": found.scale,
        "nearest": found.nearest,
        "subtask_error": error,
        "subtask_left": n_left,
        "more_error": truth - score,
        "more_scale": scale,
    }


def _in_folds(
    work: Callable[..., Any],
    responses: Responses,
    recipe: Recipe,
    parts: Parts,
    rngs: list[np.random.Generator],
    shared: list[dict[Hashable, Any]],
    done: Callable[[int], None],
    *more: Any,
) -> list[Any]:
    """What ``work`` makes of every fold, on whatever workers there are."""
    everyone = workers().share(responses)
    tasks = ((work, (everyone, recipe, part, rngs[k], shared[k], *more)) for k, part in enumerate(parts))
    made: dict[int, Any] = {}
    for k, one in workers().results(tasks):
        made[k] = one
        done(len(made))
    return [made[k] for k in range(len(parts))]


def _assessed(
    responses: Responses,
    recipe: Recipe,
    part: tuple[Array, Array],
    rng: np.random.Generator,
    shared: dict[Hashable, Any],
) -> tuple[Responses, Responses, Anchors, ScoreModel, Assessment]:
    """One fold: sources and left-out models, what was condensed from the former, and what it says of the latter."""
    source, unseen = (responses.pick(models=side) for side in part)
    keep(source, shared)
    anchors, model = recipe.make_without(unseen.n_models, source, rng)
    return source, unseen, anchors, model, assess_unseen(model, unseen, anchors.positions)
