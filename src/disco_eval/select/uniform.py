"""Items at random: the baseline that every other selection must beat."""

from __future__ import annotations

import numpy as np

from ..numerics.rng import Seed, generator
from ..responses import Responses
from .anchors import Anchors, check_count, highest


def uniform(responses: Responses, n_anchors: int, rng: Seed = None, *, stratify: bool = False) -> Anchors:
    """Items drawn at random without replacement, all equally likely.

    Want it as a baseline, or where the source models say nothing about the targets. With ``stratify``, equal numbers
    come from every subtask (the paper's Random; in the authors' code the remainder goes to subtasks in random order);
    `Anchors.chance` says how likely that makes each item, so that a mean can count items of large subtasks for more.

    Raises ValidationError for more anchors than items.
    """
    check_count(responses, n_anchors)
    draw = generator(rng)
    equal = np.zeros(responses.n_items)
    chosen = highest(responses, equal, n_anchors, draw, stratify=stratify)
    chance = np.full(n_anchors, n_anchors / responses.n_items)
    if stratify:
        of = responses.items.subtask
        names, size = np.unique(of, return_counts=True)
        own = np.searchsorted(names, of[chosen])
        chance = (np.bincount(own, minlength=len(names)) / size)[own]
    weights = responses.items.weight[chosen] / chance
    return Anchors.of(responses.items, chosen, "uniform", weights=weights if weights.any() else None, chance=chance)
