"""Anchors drawn by chance with known probabilities: spread over difficulty, and leaning to the items that tell most."""

from __future__ import annotations

import numpy as np

from ..errors import ValidationError
from ..numerics.rng import Seed
from ..numerics.survey import systematic
from ..responses import Responses
from .anchors import Anchors, Array, check_count, random_ranks

DRAWS = 30  # draws of which the best balanced one is kept
LEAN = 0.2  # of the drawing probability that follows information, with very many sources
SOURCES_FOR_FULL_LEAN = 150


def stratified(responses: Responses, n_anchors: int, rng: Seed = None, *, lean: float = 0.0, draws: int = 1) -> Anchors:
    """Items spread evenly over difficulty, drawn by chance: the safest anchors for targets unlike the sources.

    Walks the items from hard to easy and draws at equal steps from a random start, so easy and hard items come in the
    benchmark's own proportion, and items that weigh more are drawn more often. The mean over the anchors estimates the
    score of any model without bias, which is what the survey estimate of ``--predict auto`` rests on.

    Parameters
    ----------
    lean : 0 to 1. Share of the drawing probability that follows what an item tells about the score (the covariance of
        its grade with the source models' scores) instead of its weight; each anchor's weight undoes it. Leaning makes
        learned predictions sharper inside the sources' range and the survey estimate a little wider.
    draws : so many draws are made and the one kept whose weighted mean is closest to the source models' scores (mean
        square): balance bought with a little of the randomness (rerandomisation, Morgan & Rubin, 2012).

    Raises ValidationError for more anchors than items that count, or a lean outside 0 to 1.
    """
    return _draw(responses, n_anchors, rng, lean, draws, "stratified")


def auto(responses: Responses, n_anchors: int, rng: Seed = None) -> Anchors:
    """Our default: `stratified`, leaning the more to informative items the more source models say which those are.

    With few sources the informative items are largely those that happen to separate these few; from 150 sources on
    a fifth of the probability follows information. The best balanced of 30 draws is kept.
    Measured in ``docs/theory/anchors.md``.
    """
    lean = min(LEAN, responses.n_models / SOURCES_FOR_FULL_LEAN * LEAN)
    return _draw(responses, n_anchors, rng, lean, DRAWS, "auto")


def complete(responses: Responses, chosen: Anchors, n_more: int, rng: Seed = None) -> Anchors:
    """Chosen anchors and ``n_more`` drawn by chance over difficulty from the other items.

    The chosen ones stand for themselves alone, the drawn ones for all the rest, so the weighted mean, and the survey
    estimate that corrects it, hold for models unlike the sources.

    Raises ValidationError where fewer items are left than are to be drawn.
    """
    for_order, for_start = np.random.default_rng(rng).spawn(2)
    share = responses.items.weight / responses.items.weight.sum()
    size = share.copy()
    size[chosen.positions] = 0.0
    if (size > 0).sum() < n_more:
        raise ValidationError(f"{n_more} anchors were to be drawn by chance, but {(size > 0).sum()} items are left")
    drawn, chance = systematic(by_difficulty(responses, for_order), size, n_more, for_start)
    return Anchors.of(
        responses.items,
        np.concatenate([chosen.positions, drawn]),
        f"{chosen.method}, and chance",
        weights=np.concatenate([share[chosen.positions], share[drawn] / chance]),
        criterion=np.concatenate([chosen.criterion, np.full(n_more, np.nan)]),
        chance=np.concatenate([np.full(len(chosen), np.nan), chance]),
    )


def _draw(responses: Responses, n_anchors: int, rng: Seed, lean: float, draws: int, method: str) -> Anchors:
    check_count(responses, n_anchors)
    if not 0 <= lean <= 1:
        raise ValidationError(f"lean must lie between 0 and 1, got {lean}")
    for_order, for_draws = np.random.default_rng(rng).spawn(2)
    share = responses.items.weight / responses.items.weight.sum()
    size = (1 - lean) * share
    if lean:
        told = share * information(responses)
        size = size + lean * told / told.sum()
    if (share > 0).sum() < n_anchors:
        raise ValidationError(
            f"{n_anchors} anchors were asked for, but only {(share > 0).sum()} items of the benchmark have a weight "
            f"above 0; ask for at most as many"
        )
    size = np.where(share > 0, np.maximum(size, 1e-12), 0.0)
    order = by_difficulty(responses, for_order)
    reach = responses.n_items / n_anchors
    found = [systematic(_shuffled(order, reach, draw), size, n_anchors, draw) for draw in for_draws.spawn(draws)]
    at, chance = found[0] if draws == 1 else _most_balanced(responses, share, found)
    return Anchors.of(responses.items, at, method, weights=share[at] / chance, chance=chance)


def _shuffled(order: Array, reach: float, rng: np.random.Generator) -> Array:
    """The order with every item moved by up to half a step either way, so that another draw finds other items."""
    moved: Array = order[np.argsort(np.arange(len(order)) + reach * rng.random(len(order)), kind="stable")]
    return moved


def _most_balanced(responses: Responses, share: Array, found: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The draw whose weighted mean is closest to the models' scores; only items of some draw are read."""
    drawn = np.unique(np.concatenate([at for at, _ in found]))
    grades, scores = responses.grades(drawn), responses.scores()
    off = []
    for at, chance in found:
        part = share[at] / chance
        mean = grades[:, np.searchsorted(drawn, at)] @ part / part.sum()
        off.append(float(((mean - scores) ** 2).mean()))
    return found[int(np.argmin(off))]


def by_difficulty(responses: Responses, rng: np.random.Generator) -> Array:
    """Positions of the items from hard to easy, ties by chance."""
    mean = responses.item_means().round(9)  # the last bits depend on the order of the models
    return np.lexsort((random_ranks(responses.items.ids, rng), mean))


def information(responses: Responses) -> Array:
    """What an item tells about the score, shape (n_items,), >= 0, mean about 1: covariance of grade and logit score.

    0 where weaker models do better, but at least 1 for items harder than the average score: models stronger than every
    source differ from each other on just these, whatever the sources did there. The
    covariance favours items that both separate models and agree with the rest; the correlation alone would favour
    items that only one model fails.
    """
    scores = responses.scores()
    p = np.clip(scores, 0.5 / responses.n_items, 1 - 0.5 / responses.n_items)
    ability = np.log(p / (1 - p))
    ability -= ability.mean()
    covariance = np.empty(responses.n_items)
    for columns, grades in responses.grade_blocks():
        covariance[columns] = ability @ (grades - grades.mean(axis=0)) / len(scores)
    covariance = np.maximum(covariance, 0.0)
    if not covariance.any():
        return np.ones(len(covariance))
    told = covariance / covariance.mean()
    return np.asarray(np.where(responses.item_means() < scores.mean(), np.maximum(told, 1.0), told))
