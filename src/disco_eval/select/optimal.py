"""Anchors chosen one after another for what each adds about the score: sharpest where targets resemble sources."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import ValidationError
from ..numerics.rng import Seed, generator
from ..responses import Responses
from .anchors import Anchors, Array, by_id, check_count
from .chance import complete, stratified

SHRINK = 0.3  # of covariances between items towards 0: few models overstate them
_FLOOR = 0.02  # of an item's own variance that always counts as left, so that nothing is divided by 0


def sharp(
    responses: Responses,
    n_anchors: int,
    rng: Seed = None,
    *,
    cost_power: float = 0.0,
    budget: float | None = None,
) -> Anchors:
    """The items that together leave the least variance of the score: for targets known to resemble many sources.

    Greedy A-optimal design: grades of items and the logit score are taken as jointly normal with the source models'
    covariances (those between items shrunk by 0.3), and every step adds the item that reduces the variance left most;
    a pivoted Cholesky factorisation keeps each step linear in the items. With fewer than about 150 sources, or targets
    outside their range, prefer `auto`: these anchors fit the sources they were chosen on, and no estimate without
    assumptions can be made from them.

    Parameters
    ----------
    cost_power : divides each item's gain by its cost to this power, 0.5 to 1: cheap items first at like information.
    budget : total cost that must not be exceeded, in the unit of the items' cost (tokens or seconds); stops before
        ``n_anchors`` where it is spent.

    Raises ValidationError where cost is asked for and unknown, or the budget does not pay for 4 items.
    """
    check_count(responses, n_anchors)
    at, gain = greedy(responses, n_anchors, rng, cost_power=cost_power, budget=budget)
    return Anchors.of(responses.items, at, "sharp", criterion=gain)


def hybrid(responses: Responses, n_anchors: int, rng: Seed = None, *, by_chance: float = 0.5) -> Anchors:
    """Part `sharp`, part drawn by chance over difficulty from the other items (``by_chance``, half by default).

    Sharper than `stratified` inside the sources' range, with enough items left to chance for
    an estimate that holds outside.
    """
    check_count(responses, n_anchors)
    if not 0 < by_chance <= 1:
        raise ValidationError(f"by_chance must be above 0 and at most 1, got {by_chance}")
    for_greedy, for_rest = generator(rng).spawn(2)
    n_drawn = max(1, round(by_chance * n_anchors))
    if n_drawn == n_anchors:
        return replace(stratified(responses, n_anchors, for_rest), method="hybrid")
    at, gain = greedy(responses, n_anchors - n_drawn, for_greedy)
    chosen = Anchors.of(responses.items, at, "sharp", criterion=gain)
    return replace(complete(responses, chosen, n_drawn, for_rest), method="hybrid")


def greedy(
    responses: Responses, n: int, rng: Seed = None, *, cost_power: float = 0.0, budget: float | None = None
) -> tuple[Array, Array]:
    """Positions of ``n`` items by greedy A-optimal design, and the variance each one explained, both (n,)."""
    price = _price(responses, cost_power, budget)
    canonical = generator(rng).permutation(by_id(responses.items.ids))  # ties fall by chance
    rows = by_id(responses.models.ids)
    X = responses.grades()[rows][:, canonical]
    weight = responses.items.weight[canonical]
    state = Design.of(X, responses.scores()[rows], n)
    state.open &= weight > 0
    price, left = price[canonical], np.inf if budget is None else float(budget)
    at: list[int] = []
    gains: list[float] = []
    while len(at) < n:
        state.open &= price <= left
        gain = state.gain() / np.maximum(price, 1e-12) ** cost_power
        if not state.open.any():
            break
        j = int(np.argmax(np.where(state.open, gain, -1.0)))
        gains.append(state.take(j))
        at.append(j)
        left -= price[j] if budget is not None else 0.0
    if budget is None and len(at) < n:
        raise ValidationError(f"{n} anchors were asked for, but only {len(at)} items have a weight; ask for fewer")
    if budget is not None and len(at) < min(4, n):
        raise ValidationError(
            f"a budget of {budget:g} pays for {len(at)} items only; the cheapest costs {price.min():g}"
        )
    return canonical[np.array(at, dtype=np.int64)], np.array(gains)


@dataclass
class Design:
    """What is left unexplained while items are taken: X (n_models, n_items) centred grades, c and v what remains of
    every item's covariance with the score and of its variance, own its variance at the start, L the factors so far."""

    X: Array
    c: Array
    v: Array
    own: Array
    L: Array
    open: Array
    taken: int = 0

    @classmethod
    def of(cls, grades: Array, scores: Array, n: int) -> Design:
        n_models, n_items = grades.shape
        p = np.clip(scores, 0.5 / n_items, 1 - 0.5 / n_items)
        target = np.log(p / (1 - p))
        X = (grades - grades.mean(axis=0)) / np.sqrt(n_models)
        c = (1 - SHRINK) * (X.T @ (target - target.mean())) / np.sqrt(n_models)
        own = (X**2).sum(axis=0) + 1e-8
        return cls(X, c, own.copy(), own, np.zeros((n, n_items)), np.ones(n_items, dtype=bool))

    def gain(self) -> Array:
        """Variance of the logit score that each item would explain next."""
        gain: Array = self.c**2 / np.maximum(self.v, _FLOOR * self.own + 1e-6)
        return gain

    def take(self, j: int) -> float:
        gain = float(self.gain()[j])
        column = (1 - SHRINK) * (self.X.T @ self.X[:, j])
        column[j] = self.own[j]
        column -= self.L[: self.taken].T @ self.L[: self.taken, j]
        factor = column / np.sqrt(max(float(column[j]), 1e-8))
        self.c = self.c - factor * (self.c[j] / np.sqrt(max(float(column[j]), 1e-8)))
        self.v = np.maximum(self.v - factor**2, 1e-9)
        self.L[self.taken] = factor
        self.open[j] = False
        self.taken += 1
        return gain


def _price(responses: Responses, cost_power: float, budget: float | None) -> Array:
    if cost_power == 0 and budget is None:
        return np.ones(responses.n_items)
    if not 0 <= cost_power <= 1:
        raise ValidationError(f"cost_power must lie between 0 and 1, got {cost_power}")
    if responses.items.cost is None:
        raise ValidationError("costs are asked for, but the items have none; give a 'cost' column (tokens or seconds)")
    return responses.items.cost
