"""Items at random: the baseline that every other selection must beat."""

from __future__ import annotations

import numpy as np

from ..errors import ValidationError
from ..numerics.rng import Seed, generator
from ..numerics.survey import systematic
from ..responses import Responses
from .anchors import Anchors, check_count, highest, random_ranks


def uniform(responses: Responses, n_anchors: int, rng: Seed = None, *, stratify: bool = False) -> Anchors:
    """Items drawn at random without replacement, all equally likely.

    Want it as a baseline, or where the source models say nothing about the targets. With ``stratify``, every subtask
    gives as many as it counts for, within one: equally many where all count alike (the paper's Random), more of those
    that count for more; where there are no subtasks, items are drawn by what they count for. An item is then as likely
    as it counts, so the plain mean estimates the score without bias.

    Raises ValidationError for more anchors than items; with ``stratify``, than items that count.
    """
    check_count(responses, n_anchors)
    draw = generator(rng)
    if stratify and (len(responses.items.subtasks) > 1 or np.ptp(responses.items.weight) > 0):
        return _over_subtasks(responses, n_anchors, draw)
    chosen = highest(responses, np.zeros(responses.n_items), n_anchors, draw, stratify=False)
    chance = np.full(n_anchors, n_anchors / responses.n_items)
    weights = responses.items.weight[chosen]
    return Anchors.of(responses.items, chosen, "uniform", weights=weights if weights.any() else None, chance=chance)


def _over_subtasks(responses: Responses, n_anchors: int, rng: np.random.Generator) -> Anchors:
    """A walk at even steps through the subtasks, in random order, and the items of each, in random order."""
    share = responses.items.weight / responses.items.weight.sum()
    if (share > 0).sum() < n_anchors:
        raise ValidationError(
            f"{n_anchors} anchors were asked for, but only {(share > 0).sum()} items of the benchmark have a weight "
            "above 0; ask for at most as many"
        )
    names, of = np.unique(responses.items.subtask, return_inverse=True)
    turn = rng.permutation(len(names))[of]
    walk = np.lexsort((random_ranks(responses.items.ids, rng), turn))
    chosen, chance = systematic(walk, share, n_anchors, rng)
    return Anchors.of(responses.items, chosen, "uniform", weights=share[chosen] / chance, chance=chance)
