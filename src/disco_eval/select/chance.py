"""Anchors drawn by chance with known probabilities, spread over difficulty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import ValidationError
from ..numerics.rng import Seed, generator
from ..numerics.survey import FEWEST, systematic
from ..responses import Responses
from .anchors import Anchors, Array, check_count, random_ranks

_TRIES = 12  # to spend a budget
_WELL_SPENT = 0.95  # share of a budget at which no more is tried
Sample = tuple[Array, Array]  # positions of items, hardest first, and the probability of each being drawn
Choose = Callable[[Responses, list[Sample], np.random.Generator], Sample]


@dataclass(frozen=True)
class Price:
    """Probabilities divided by the items' cost to a power, and the total that must not be exceeded."""

    power: float
    budget: float | None

    def divide(self, size: Array, responses: Responses) -> Array:
        """Drawing probabilities that favour cheap items: with power 0.5 the least variance for the money (Neyman)."""
        if not 0 <= self.power <= 1:
            raise ValidationError(f"cost_power must lie between 0 and 1, got {self.power}")
        if self.power == 0 and self.budget is None:
            return size
        cost = responses.items.cost
        if cost is None:
            raise ValidationError(
                "costs are asked for, but the items have none; give a 'cost' column (tokens or seconds)"
            )
        typical = float(cost[size > 0].mean())
        return np.asarray(size / np.maximum(cost, 1e-3 * typical if typical > 0 else 1.0) ** self.power)

    def count(self, size: Array, responses: Responses, most: int) -> int:
        """How many items the budget pays for on average, at most ``most``."""
        if self.budget is None:
            return most
        cost = responses.items.cost
        assert cost is not None
        if not self.budget >= 0:
            raise ValidationError(f"a budget must be 0 or more, got {self.budget:g}")
        n = most
        for _ in range(60):  # items larger than the step are certain, which makes the mean cost depend on n
            spent = float(np.minimum(n * size / size.sum(), 1.0) @ cost)
            if spent <= self.budget:
                break
            n = min(n - 1, int(n * self.budget / spent))
        if n < FEWEST:
            least = float(np.minimum(FEWEST * size / size.sum(), 1.0) @ cost)
            raise ValidationError(
                f"a budget of {self.budget:g} is too small: {FEWEST} items, the fewest that say anything, cost "
                f"{least:.4g} on average as they are drawn; give that or more"
            )
        return n


def stratified(
    responses: Responses,
    n_anchors: int,
    rng: Seed = None,
    *,
    draws: int = 1,
    cost_power: float = 0.0,
    budget: float | None = None,
) -> Anchors:
    """Items spread evenly over difficulty, drawn by chance: the safest anchors for targets unlike the sources.

    Walks the items from hard to easy and draws at equal steps from a random start, so easy and hard items come in the
    benchmark's own proportion, and items that weigh more are drawn more often. The mean over the anchors estimates the
    score of any model without bias, which is what the survey estimate of ``--predict auto`` rests on.

    Parameters
    ----------
    draws : so many draws are made and the one kept whose weighted mean is closest to the source models' scores (mean
        square): balance bought with a little of the randomness (rerandomisation, Morgan & Rubin, 2012).
    cost_power : divides each item's probability by its cost to this power; 0.5 gets the most out of a budget.
    budget : total cost that must not be exceeded, in the unit of the items' cost; fewer than ``n_anchors`` are drawn
        where it does not pay for them.

    Raises ValidationError for more anchors than items that count, or costs that are not known.
    """
    if draws < 1:
        raise ValidationError(f"draws must be at least 1, got {draws}")
    how = Drawing("stratified", draws, _most_balanced if draws > 1 else first_sample, Price(cost_power, budget))
    return draw(responses, n_anchors, rng, how)


def complete(responses: Responses, chosen: Anchors, n_more: int, rng: Seed = None) -> Anchors:
    """Chosen anchors and ``n_more`` drawn by chance over difficulty from the other items.

    The chosen ones stand for themselves alone, the drawn ones for all the rest, so the weighted mean, and the survey
    estimate that corrects it, hold for models unlike the sources.

    Raises ValidationError where fewer items are left than are to be drawn.
    """
    for_order, for_start = generator(rng).spawn(2)
    share = responses.items.weight / responses.items.weight.sum()
    size = share.copy()
    size[chosen.positions] = 0.0
    if (size > 0).sum() < n_more:
        raise ValidationError(
            f"{n_more} anchors were to be drawn by chance, but {(size > 0).sum()} items with a weight are left"
        )
    drawn, chance = systematic(by_difficulty(responses, for_order), size, n_more, for_start)
    return Anchors.of(
        responses.items,
        np.concatenate([chosen.positions, drawn]),
        f"{chosen.method}, and chance",
        weights=np.concatenate([share[chosen.positions], share[drawn] / chance]),
        criterion=np.concatenate([chosen.criterion, np.full(n_more, np.nan)]),
        chance=np.concatenate([np.full(len(chosen), np.nan), chance]),
    )


@dataclass(frozen=True)
class Drawing:
    """How `draw` goes about it: ``draws`` samples are drawn, and ``choose`` makes one of them."""

    method: str
    draws: int
    choose: Choose
    price: Price


def draw(responses: Responses, n_anchors: int, rng: Seed, how: Drawing) -> Anchors:
    """Anchors made of systematic samples over difficulty, as many as the price allows."""
    check_count(responses, n_anchors)
    for_order, for_draws = generator(rng).spawn(2)
    share = responses.items.weight / responses.items.weight.sum()
    if how.price.budget is None and (share > 0).sum() < n_anchors:
        raise ValidationError(
            f"{n_anchors} anchors were asked for, but only {(share > 0).sum()} items of the benchmark have a weight "
            f"above 0; ask for at most as many"
        )
    size = how.price.divide(np.where(share > 0, np.maximum(share, 1e-12), 0.0), responses)
    most = min(n_anchors, int((share > 0).sum()))
    n = how.price.count(size, responses, most)
    order = by_difficulty(responses, for_order)

    def chosen(n: int) -> Sample:
        found = [_sample(order, size, n, rng) for rng in for_draws.spawn(how.draws)]
        return how.choose(responses, found, for_draws)

    at, chance = chosen(n) if how.price.budget is None else _affordable(responses, how.price.budget, n, most, chosen)
    return Anchors.of(responses.items, at, how.method, weights=share[at] / chance, chance=chance)


def _affordable(
    responses: Responses, budget: float, n: int, most: int, chosen: Callable[[int], Sample]
) -> tuple[Array, Array]:
    """The most anchors found that the budget pays for.

    What ``n`` anchors cost depends on which are chosen, and differs from draw to draw, so no number is too many for
    good: each try goes by what the last one cost, in ever smaller steps, and the largest that can be paid for is kept.
    """
    best, most_found, failed = None, 0, set[int]()
    for k in range(_TRIES):
        sample = chosen(n)
        spent = _cost(responses, sample[0])
        if spent <= budget and n > most_found:
            best, most_found = sample, n
        if n == most_found and (spent >= _WELL_SPENT * budget or n == most):
            break
        wanted = n * np.clip(budget / max(spent, 1e-12), 0.5, 2.0) ** (1 / (1 + k / 4))
        high = most
        if spent > budget:
            high = max(n - 1, 1) if n in failed else n  # another draw of as many may be cheaper, but not a third
            failed.add(n)
        n = int(np.clip(round(wanted), min(most_found + 1, high), high))
    if best is None or most_found < FEWEST:
        raise ValidationError(f"a budget of {budget:g} pays for fewer than {FEWEST} items; raise it")
    return best


def _sample(order: Array, size: Array, n: int, rng: np.random.Generator) -> Sample:
    """One systematic sample, hardest first; every item moves by up to half a step, so that samples differ."""
    reach = len(order) / n
    moved = order[np.argsort(np.arange(len(order)) + reach * rng.random(len(order)), kind="stable")]
    at, chance = systematic(moved, size, n, rng)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    by_rank = np.argsort(rank[at])
    return at[by_rank], chance[by_rank]


def first_sample(responses: Responses, found: list[Sample], rng: np.random.Generator) -> Sample:
    return found[0]


def _cost(responses: Responses, at: Array) -> float:
    assert responses.items.cost is not None
    return float(responses.items.cost[at].sum())


def _most_balanced(responses: Responses, found: list[Sample], rng: np.random.Generator) -> Sample:
    """The draw whose weighted mean is closest to the models' scores; only items of some draw are read."""
    share = responses.items.weight
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
