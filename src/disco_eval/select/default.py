"""Our default anchors: spread over difficulty, telling about the score, and balanced against the source models."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import check_kind
from ..numerics.likeness import effective_number
from ..numerics.rng import Seed
from ..resources import block_bytes
from ..responses import Responses
from .anchors import Anchors, Array, by_id
from .chance import Drawing, Price, Sample, by_difficulty, draw, first_sample
from .optimal import Design

MOST_CANDIDATES = 20  # for every anchor
KINDS_PER_CANDIDATE = 12  # with few source models, the most telling of many items is so by accident
BALANCING = 0.25  # of the anchors
MOST_PROBABILITIES = 50_000_000  # that are read to see what items tell; with more, the grades alone say it
COMPARABLE = 0.9  # correlation of mean probability and score from which probabilities of several models compare
MOST_NUMBERS = 5_000_000  # of the design, anchors times candidates: with more than 500 anchors these become fewer
LIKENESS = 300  # items and models from which the number of different source models is read
_SWEEPS = 4


def auto(
    responses: Responses, n_anchors: int, rng: Seed = None, *, cost_power: float = 0.0, budget: float | None = None
) -> Anchors:
    """Our default: one item for every step of difficulty, the more telling of a few, and a balanced whole.

    Samples are drawn as by `stratified`, so each anchor has a few candidates of about the same difficulty: one for
    every 12 different source models, 2 to 20. For three quarters of the anchors the candidate is taken that explains
    most about the score beside those taken before (as in `sharp`). The last quarter is taken so that the weighted mean
    of all anchors follows the score from the weakest source model to the strongest; what is telling is also what
    stronger models gain most on, and without this the mean over the anchors would run ahead of the score above the
    sources' range. Measured in ``docs/theory/anchors.md``.

    Parameters
    ----------
    cost_power, budget : as in `stratified`; cheap items are candidates more often, and taken for less.

    Raises ValidationError for more anchors than items that count, or costs that are not known.
    """
    check_kind("int", n_anchors=n_anchors)
    n_candidates = max(1, min(_n_candidates(responses), MOST_NUMBERS // max(n_anchors, 1) ** 2))
    choose = partial(_telling, cost_power) if n_candidates > 1 else first_sample
    return draw(responses, n_anchors, rng, Drawing("auto", n_candidates, choose, Price(cost_power, budget)))


def _n_candidates(responses: Responses) -> int:
    order = by_difficulty(responses, np.random.default_rng(0))
    ranked = np.lexsort((responses.models.ids, responses.scores()))
    kinds = effective_number(responses.pick(models=_evenly(ranked)).grades(_evenly(order)))
    return int(np.clip(round(kinds / KINDS_PER_CANDIDATE), 2, MOST_CANDIDATES))


def _evenly(order: Array) -> Array:
    """`LIKENESS` of the positions, at even steps; all where there are no more."""
    steps = np.linspace(0, len(order) - 1, min(LIKENESS, len(order))).round().astype(np.int64)
    return np.asarray(order[steps])


def _telling(cost_power: float, responses: Responses, found: list[Sample], rng: np.random.Generator) -> Sample:
    """One candidate for every anchor of the first sample."""
    at, chance, step = _candidates(found)
    rows = by_id(responses.models.ids)
    grades, scores = responses.grades(at), responses.scores()
    evidence = _evidence(responses, at, grades, scores)[rows]
    grades, scores = grades[rows], scores[rows]
    n = len(found[0][0])
    n_balancing = round(BALANCING * n)
    balancing = ((np.arange(n_balancing) + rng.random()) * n / max(n_balancing, 1)).astype(np.int64)
    chosen = np.searchsorted(step, np.arange(n))  # the first sample's items, to begin with
    design = Design.of(evidence, scores, n)
    design.open = ~np.isin(step, balancing)
    price = np.ones(len(at)) if responses.items.cost is None else np.maximum(responses.items.cost[at], 1e-12)
    for _ in range(n - n_balancing):
        best = int(np.argmax(np.where(design.open, design.gain() / price**cost_power, -1.0)))
        design.take(best)
        chosen[step[best]] = best
        design.open &= step != step[best]
    weight = responses.items.weight[at] / responses.items.weight.sum() / chance
    chosen = _balance(grades, weight, scores, step, chosen, rng.permutation(balancing))
    return at[chosen], chance[chosen]


def _evidence(responses: Responses, at: Array, grades: Array, scores: Array) -> Array:
    """What says how much items tell, (n_models, n_candidates): grades, or the probabilities of the right choices.

    Probabilities are steadier with few models, but classifiers of different kinds mean different things by them. They
    are taken where the models' means of them go with their scores.
    """
    size = responses.n_models * len(at) * responses.max_choices
    if responses.probs is None or responses.items.label is None or size > MOST_PROBABILITIES:
        return grades
    probs = np.empty((responses.n_models, len(at)))
    along = np.argsort(at)  # neighbours in the store together
    step = max(1, block_bytes() // (8 * responses.n_models * responses.max_choices))
    for first in range(0, len(at), step):
        some = along[first : first + step]
        probs[:, some] = responses.pick(items=at[some]).label_probs()
    mean = probs.mean(axis=1)
    if mean.std() == 0 or scores.std() == 0 or np.corrcoef(mean, scores)[0, 1] < COMPARABLE:
        return grades
    return probs


def _candidates(found: list[Sample]) -> tuple[Array, Array, Array]:
    """Items of all samples, each once, with its probability and the anchor it may become, sorted by that.

    An item of the first sample may become only its own anchor, so that every anchor has one, and stands first. An
    item that is certain to be drawn is its anchor's only candidate.
    """
    n = len(found[0][0])
    at = np.concatenate([sample for sample, _ in found])
    chance = np.concatenate([each for _, each in found])
    step = np.tile(np.arange(n), len(found))
    once = np.sort(np.unique(at, return_index=True)[1])
    at, chance, step = at[once], chance[once], step[once]
    fixed = np.isin(step, step[:n][chance[:n] >= 1])
    kept = (np.arange(len(at)) < n) | (~fixed & (chance < 1))
    order = np.argsort(step[kept], kind="stable")
    return at[kept][order], chance[kept][order], step[kept][order]


def _balance(grades: Array, weight: Array, scores: Array, step: Array, chosen: Array, free: Array) -> Array:
    """Exchange the candidates of the anchors ``free`` until the weighted mean of the chosen is closest to the scores.

    One anchor after another takes the candidate with the least mean square error over the models, up to four times
    round.
    """
    chosen, parts = chosen.copy(), grades * weight
    total, size = parts[:, chosen].sum(axis=1), float(weight[chosen].sum())
    for _ in range(_SWEEPS):
        before = chosen[free].copy()
        for anchor in free:
            among = np.flatnonzero(step == anchor)
            total -= parts[:, chosen[anchor]]
            size -= weight[chosen[anchor]]
            means = (total[:, None] + parts[:, among]) / (size + weight[among])
            chosen[anchor] = among[np.argmin(((means - scores[:, None]) ** 2).mean(axis=0))]
            total += parts[:, chosen[anchor]]
            size += weight[chosen[anchor]]
        if np.array_equal(before, chosen[free]):
            break
    return chosen
