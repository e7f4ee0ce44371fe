"""Condense a benchmark: choose anchors, fit a score model, and find out how far its estimates can be trusted."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import __version__
from .calibration import CrossValidation
from .checks import check_subtasks, same_questions
from .condensation import Condensation
from .errors import AlignmentError, ValidationError, check_kind, some
from .further import is_soft
from .joining import graded_alike
from .left_out import Plan, cross_validate, leave_out_alone
from .numerics.rng import Seed, generator
from .predict import Auto, ScoreModel, predictor
from .predict.subtasks import fit_subtasks
from .recipe import Recipe
from .resources import Here, memory_bound, workers
from .responses import Items, Responses, check_responses
from .select import Anchors
from .select.reserve import Reserve, draw_reserve
from .sizing import FIRST, enough_anchors
from .splits import check_folds

Progress = Callable[[str, int, int], None]

FEWEST_SOURCES = 10
FOLDS = 5  # of the sources, where no other number is asked for


def condense(
    responses: Responses,
    n_anchors: int | None = None,
    *,
    error: float | None = None,
    select: str = "auto",
    predict: str = "auto",
    select_options: Mapping[str, Any] | None = None,
    predict_options: Mapping[str, Any] | None = None,
    benchmark: str = "benchmark",
    n_folds: int = FOLDS,
    mixed: bool = False,
    curve: bool | None = None,
    relatives: bool | None = None,
    rng: Seed = None,
    progress: Progress | None = None,
) -> Condensation:
    """Condense a benchmark to ``n_anchors`` items from source models' answers to all of it.

    Chooses anchors, fits a score model, and repeats both without each fold of source models (whole families where they
    are known) to learn what error to expect for a model it has not seen.

    Parameters
    ----------
    responses : the source models' answers, in memory or a store on disk.
    n_anchors : how many items to keep; 100 by default.
    error : a mean absolute error in [0, 1], such as 0.015: keep as few items, 10 or more, as are expected to reach it
        on left-out source models (`sizing.enough_anchors`), at most ``n_anchors``, by default half of those that count.
        What was tried stands in `CrossValidation.by_anchors`; the error with the number kept is measured anew.
    select, predict : names of a selection (`disco_eval.select.SELECTORS`) and a prediction
        (`disco_eval.predict.PREDICTORS`). ``"auto"``, our own best, by default; ``"pds"`` and ``"forest"`` are the
        paper's.
    select_options, predict_options : their keyword arguments, such as ``{"committee_size": 100}``.
    benchmark : what to call it.
    n_folds : parts of the cross-validation.
    mixed : choose half of the anchors by ``select`` and draw the others by chance over difficulty, so that any
        selection leaves an estimate that holds for models unlike the sources (`disco_eval.select.complete`).
    curve : also measure the error with fewer source models (the learning curve), which takes about as long again; by
        default unless that would read a large store many times over.
    relatives : where families are known and the score model is ours, also learn what error to expect of models whose
        relatives are among the sources, which takes twice as long again; by default as ``curve``.
    rng : seed or generator; the same seed, or a generator in the same state, gives the same condensation.
    progress : called with (what, done, total) as the work goes on.

    Raises
    ------
    ValidationError
        Fewer than ten source models, more anchors than items, options out of range, or an ``error`` out of reach.
    """
    if n_anchors is not None:
        check_kind("int", n_anchors=n_anchors)
    check_kind("bool", mixed=mixed)
    if not isinstance(benchmark, str):
        raise ValidationError(f"benchmark must be a text, got {benchmark!r}")
    options = (_plain(select_options or {}), _plain(predict_options or {}))
    run = _Run.of(n_folds, curve, relatives, rng, progress)
    if error is None:
        n = 100 if n_anchors is None else int(n_anchors)
    else:
        check_responses(responses, "condense")
        run = replace(run, error=_checked(error, options[0]))
        counting = int((responses.items.weight > 0).sum())
        n = max(counting // 2, 1) if n_anchors is None else min(int(n_anchors), counting)
    return _make(responses, Recipe(n, select, predict, *options, mixed), None, benchmark, run)


def _checked(error: float, select_options: Mapping[str, Any]) -> float:
    check_kind("float", error=error)
    if not 0 < error < 1:
        raise ValidationError(f"error must lie above 0 and below 1, such as 0.015 for 1.5 points, got {error!r}")
    if select_options.get("budget") is not None:
        raise ValidationError("an error and a budget both say how many anchors to keep; give one of them")
    return float(error)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as values that JSON holds, since a condensation keeps them: NumPy's numbers become Python's."""
    if not isinstance(options, Mapping):
        raise ValidationError(f"options of a method are names with values, such as {{'draws': 10}}, got {options!r}")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}
    for name, value in plain.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if not isinstance(one, (str, int, float, type(None))):
                raise ValidationError(f"option {name} must be a number, a word, true or false, or a list; got {one!r}")
    return plain


def update(
    condensation: Condensation,
    responses: Responses,
    *,
    n_folds: int = FOLDS,
    curve: bool | None = None,
    relatives: bool | None = None,
    rng: Seed = None,
    progress: Progress | None = None,
) -> Condensation:
    """Learn from more source models without changing the anchors: what was evaluated stays good.

    The score model is fitted anew to all models in ``responses``: those of the condensation and the new ones, with
    answers to the whole benchmark. The expected error is that of the same procedure: in every fold anchors are chosen
    anew by those of the first models that are not left out, and all that are not left out teach.

    Raises AlignmentError where ``responses`` lack a source model, are answers to other items, or graded otherwise.
    """
    if not isinstance(condensation, Condensation):
        raise ValidationError(
            f"update takes a Condensation, got a {type(condensation).__name__}; disco_eval.load opens one"
        )
    check_responses(responses, "update")
    gone = np.setdiff1d(condensation.sources.models.ids, responses.models.ids)
    if len(gone):
        raise AlignmentError(
            f"{len(gone)} source models of '{condensation.benchmark}' are not among the given ones: {some(gone)}. Give "
            "their answers too; 'disco import' adds models to a store (from arrays or a table with --add)"
        )
    known = condensation.provenance.get("n_items")
    if known != responses.n_items:
        raise AlignmentError(f"'{condensation.benchmark}' has {known} items, but answers to {responses.n_items} came")
    at = responses.items.positions(condensation.anchors.ids)
    same_questions(condensation.items, responses.items.pick(at), f"'{condensation.benchmark}'")
    graded_alike(responses.provenance, condensation.provenance.get("responses"), f"'{condensation.benchmark}'")
    _check_weights(condensation, responses.items)
    kept = replace(condensation, anchors=replace(condensation.anchors, positions=at))
    recipe = Recipe.of(kept.provenance, int(kept.provenance.get("n_asked", len(at))))
    recipe = replace(recipe, chosen_by=frozenset(_choosers(condensation)))
    if recipe.by_cost and responses.items.cost is None:
        raise ValidationError(
            f"the anchors of '{condensation.benchmark}' were chosen by cost, but the items have none; give the 'cost' "
            "column of then (tokens or seconds)"
        )
    return _make(responses, recipe, kept, condensation.benchmark, _Run.of(n_folds, curve, relatives, rng, progress))


def _check_weights(c: Condensation, items: Items) -> None:
    """Refuse items that count otherwise than when anchors and reserve were drawn, by what they counted for."""
    then, counting = c.shares, c.reserve.n_items if c.reserve is not None else None
    weight, asked = items.weight / items.weight.sum(), c.asked(len(c.reserve or ())).ids
    now = weight[items.positions(asked)]
    differs = np.zeros(len(asked), dtype=bool) if then is None else ~np.isclose(then, now, rtol=1e-6, atol=0.0)
    if differs.any():
        raise AlignmentError(
            f"{differs.sum()} of {len(asked)} anchors and items in reserve of '{c.benchmark}' do not count in the "
            f"given answers for what they did, such as {some(asked[differs])}: give them their weights of then, or "
            "condense anew"
        )
    if counting is not None and counting != (weight > 0).sum():
        raise AlignmentError(
            f"{counting} items of '{c.benchmark}' counted, but {(weight > 0).sum()} of the given ones do: give them "
            "their weights of then, or condense anew"
        )


def _choosers(c: Condensation) -> list[str]:
    """The source models that chose the anchors; all of them, where an old version did not note who came later."""
    return list(c.provenance.get("anchors_by") or c.sources.models.ids.tolist())


@dataclass(frozen=True)
class _Run:
    """How a condensation is made, beside from what; ``error`` is what as few anchors as it takes are to reach."""

    n_folds: int
    curve: bool | None
    relatives: bool | None
    rng: Seed
    tell: Progress
    error: float | None = None

    @classmethod
    def of(
        cls,
        n_folds: int,
        curve: bool | None,
        relatives: bool | None,
        rng: Seed,
        progress: Progress | None,
        error: float | None = None,
    ) -> _Run:
        if not (progress is None or callable(progress)):
            raise ValidationError(f"progress must be a function of (what, done, total), got {progress!r}")
        check_folds(n_folds)
        check_kind("bool", **{k: v for k, v in {"curve": curve, "relatives": relatives}.items() if v is not None})
        return cls(n_folds, curve, relatives, rng, progress or (lambda what, done, total: None), error)


@dataclass(frozen=True, eq=False)
class _Draws:
    """A generator for every step, told apart by their places: other folds change neither anchors nor reserve."""

    final: np.random.Generator
    folds: np.random.Generator
    reserve: np.random.Generator
    alone: np.random.Generator
    tries: np.random.Generator
    each_fold: list[np.random.Generator]

    @classmethod
    def of(cls, run: _Run) -> _Draws:
        final, for_folds, *others = generator(run.rng).spawn(5 + max(FOLDS, run.n_folds))
        first, (reserve, alone, tries), rest = others[:FOLDS], others[FOLDS : FOLDS + 3], others[FOLDS + 3 :]
        return cls(final, for_folds, reserve, alone, tries, [*first, *rest][: run.n_folds])


def _make(responses: Responses, recipe: Recipe, old: Condensation | None, benchmark: str, run: _Run) -> Condensation:
    """Anchors (those of ``old`` if given), score model, validation, reserve and subtasks, from source models."""
    check_responses(responses, "condense")
    check_subtasks(responses.items)
    if responses.n_models < FEWEST_SOURCES:
        raise ValidationError(
            f"{responses.n_models} source models are too few to learn from; give at least {FEWEST_SOURCES}, "
            "better 50 or more, with known answers to the whole benchmark"
        )
    responses, draws = _at_hand(responses), _Draws.of(run)
    affordable = _affordable(responses)
    relatives, curve = (affordable if asked is None else asked for asked in (run.relatives, run.curve))
    plan = Plan.of(responses, recipe, run.n_folds, (draws.folds, draws.alone), relatives, curve, run.tell)
    recipe, by_anchors = _sized(responses, recipe, plan, run, draws)
    if old is None:
        anchors, score_model = recipe.make(responses, draws.final)
        reserve = draw_reserve(responses, anchors, draws.reserve, soft=is_soft(score_model))
    else:
        anchors, for_model = old.anchors, draws.final.spawn(2)[1]
        score_model = predictor(recipe.predict, **recipe.predict_options).fit(responses, anchors, for_model)
        reserve = _reserve_of(old, responses, is_soft(score_model))
    kept = _in_rows(responses.pick(items=anchors.positions).load())
    validation = replace(_validated(responses, recipe, score_model, plan, draws), by_anchors=by_anchors)
    subtask_model, weight = fit_subtasks(responses, anchors), responses.items.weight
    return Condensation(
        benchmark=benchmark,
        anchors=anchors,
        sources=kept,
        source_scores=responses.scores(),
        score_model=score_model,
        validation=validation.believed(reserve, kept),
        provenance=_provenance(responses, recipe, anchors, run, old),
        reserve=reserve,
        total_weight=float(weight.sum()) if weight[anchors.positions].any() else None,
        subtask_names=tuple(responses.items.subtasks) if subtask_model else (),
        subtask_model=subtask_model,
    )


def _sized(
    responses: Responses, recipe: Recipe, plan: Plan, run: _Run, draws: _Draws
) -> tuple[Recipe, NDArray[np.float64]]:
    """The recipe with as many anchors as reach the error asked for, and what was tried (`by_anchors`)."""
    if run.error is None:
        return recipe, np.zeros((0, 3))
    replace(recipe, n_anchors=min(FIRST, recipe.n_anchors)).make(responses, draws.tries)  # what is wrong in any case
    measure = partial(_measure, responses, recipe, plan, draws.tries, run.tell)
    n_anchors, by_anchors = enough_anchors(run.error, recipe.n_anchors, measure)
    return replace(recipe, n_anchors=n_anchors), by_anchors


def _validated(
    responses: Responses, recipe: Recipe, score_model: ScoreModel, plan: Plan, draws: _Draws
) -> CrossValidation:
    """What error to expect of new models, and of relatives of sources where these are told apart."""
    same = _of_folds(recipe, score_model)
    found = cross_validate(responses, same, plan.parts, draws.each_fold, plan.shared, plan.tell, plan.curve)
    if not plan.alone:
        return found
    tell_alone = partial(plan.tell, before=len(plan.parts))
    return found.beside(leave_out_alone(responses, recipe, plan.alone, len(draws.each_fold), draws.alone, tell_alone))


def _measure(
    responses: Responses,
    recipe: Recipe,
    plan: Plan,
    rng: np.random.Generator,
    tell: Progress,
    n_anchors: int,
) -> tuple[float, float]:
    """Mean absolute error on left-out source models with so many anchors, and its standard error."""
    tell_try = partial(_tell_try, tell, n_anchors, len(plan.parts))
    tell_try(0)
    rngs, fewer = rng.spawn(len(plan.parts)), replace(recipe, n_anchors=n_anchors)
    tried = cross_validate(responses, fewer, plan.parts, rngs, plan.shared, tell_try, curve=False)
    return tried.mae, tried.mae_se


def _affordable(responses: Responses) -> bool:
    """Whether the answers fit into memory, so that reading them a few times more costs little."""
    return _size(responses) <= memory_bound()


def _size(responses: Responses) -> int:
    """Bytes that all answers take in memory."""
    wide = 4 if responses.probs is None else 4 + responses.max_choices * max(4, responses.probs.dtype.itemsize)
    return responses.n_models * responses.n_items * wide


def _at_hand(responses: Responses) -> Responses:
    """The same in memory where they fit easily: folds need not decompress a store again and again."""
    fits = isinstance(workers(), Here) and _size(responses) <= memory_bound() // 4
    return responses.load() if fits else responses


def _in_rows(responses: Responses) -> Responses:
    """The same with a model's answers side by side, as they are when loaded: sums are then the same to the last bit."""
    probs = None if responses.probs is None else np.ascontiguousarray(responses.probs)
    return Responses(responses.models, responses.items, np.ascontiguousarray(responses.correct), probs)


def _reserve_of(old: Condensation, responses: Responses, soft: bool) -> Reserve | None:
    """The same items in reserve, with the answers of all source models."""
    if old.reserve is None:
        return None
    at = responses.items.positions(old.reserve.items.ids)
    items = responses.items.pick(at)
    same_questions(old.reserve.items, items, f"'{old.benchmark}'", called="items in reserve")
    return old.reserve.answered_by(responses, at, soft)


def _provenance(
    responses: Responses, recipe: Recipe, anchors: Anchors, run: _Run, old: Condensation | None
) -> dict[str, Any]:
    cost = responses.items.cost
    how = {"curve": run.curve, "relatives": run.relatives, "n_folds": None if run.n_folds == FOLDS else run.n_folds}
    known_cost = {} if cost is None else {"anchors": float(cost[anchors.positions].sum()), "all": float(cost.sum())}
    return {
        "disco_eval": __version__,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "n_items": responses.n_items,
        "seed": int(run.rng) if isinstance(run.rng, (int, np.integer)) else None,
        "select": {"name": recipe.select, **recipe.select_options},
        "predict": {"name": recipe.predict, **recipe.predict_options},
        **({"mixed": True} if recipe.mixed else {}),
        **{
            k: int(v) if k == "n_folds" else bool(v) for k, v in how.items() if v is not None
        },  # what was not left to itself
        **({"n_asked": recipe.n_anchors} if recipe.n_anchors != len(anchors) else {}),  # a budget pays for fewer
        **({"error_asked": run.error} if run.error is not None else {}),
        **({"cost": known_cost} if known_cost else {}),
        **({"anchors_of": old.provenance.get("anchors_of", old.provenance.get("created"))} if old else {}),
        **({"anchors_by": _choosers(old)} if old else {}),
        **({"responses": responses.provenance} if responses.provenance else {}),
    }


def _of_folds(recipe: Recipe, made: ScoreModel) -> Recipe:
    """The recipe with what only all sources together tell, such as whether models guess, which few may show."""
    if not isinstance(made, Auto):
        return recipe
    return replace(recipe, predict_options={**recipe.predict_options, **made.learned})


def _tell_try(tell: Progress, n_anchors: int, n_folds: int, done: int) -> None:
    tell(f"trying {n_anchors} anchors", done, n_folds)
