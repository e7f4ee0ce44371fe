"""Items kept in reserve: what to ask next where the anchors are not enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError, check_kind
from ..numerics.rng import Seed, generator
from ..numerics.survey import FEWEST, systematic
from ..responses import Items, Responses
from .anchors import Anchors
from .chance import by_difficulty

Array = NDArray[Any]

TIMES = 4  # so many times the number of anchors is kept in reserve
_GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class Reserve:
    """Items drawn by chance from those that are no anchors, in the order in which to ask them.

    Every first so many of them are spread over difficulty and drawn with known probability, so answers to any of these
    beginnings estimate any model's score without assuming what it is like (`disco_eval.topup`).

    Attributes
    ----------
    items : (k) the items, in order.
    chance : (k,) probability with which each one was drawn, given the anchors.
    shares : (n_anchors + k,) what part of the benchmark's weight each anchor and each of these items carries.
    grades : (n_sources, k) the source models' grades on them.
    n_items : how many items count towards the benchmark's score.
    label_probs : (n_sources, k) float32, the probabilities that the source models give to the right choices; None
        where the score model learns from grades alone, and in formats 1 to 13.
    """

    items: Items
    chance: Array
    shares: Array
    grades: Array
    n_items: int
    label_probs: Array | None = None

    def __repr__(self) -> str:
        return f"Reserve({self.items!r})"

    def answered_by(self, sources: Responses, at: Array, soft: bool) -> Reserve:
        """The same with the answers of these source models to the items, which are at positions ``at`` of theirs."""
        grades = np.ascontiguousarray(sources.grades(at))  # as they are when loaded
        label = _label_probs(sources, at, len(self.shares) - len(at)) if soft else None
        return replace(self, items=sources.items.pick(at), grades=grades, label_probs=label)

    def __len__(self) -> int:
        return len(self.items)

    def whole(self, n_asked: int) -> Array | None:
        """Shares of the anchors and further items, (n_asked,), where these are all that count; else None."""
        shares = self.shares[:n_asked]
        return shares if (shares > 0).sum() == self.n_items else None

    def is_most(self, more: int) -> bool:
        """Whether so many items are more than half of those that count and are no anchors.

        Errors with that many are of what little is left then, and say nothing of those with fewer further items.
        """
        n_anchors = len(self.shares) - len(self)
        return 2 * more > self.n_items - int((self.shares[:n_anchors] > 0).sum())

    def check(self, more: int) -> None:
        """Refuse a number of further items that cannot be given, or is too small to tell anything."""
        check_kind("int", more=more)
        if not FEWEST <= more <= len(self):
            raise ValidationError(
                f"{more} more items were asked for; the condensation keeps {len(self)} in reserve: ask for no more, "
                f"and for {FEWEST} or more, as fewer say nothing of their own error"
            )


def _label_probs(sources: Responses, at: Array, step: int) -> Array:
    """The right choices' probabilities at positions ``at``, (n_sources, k) float32, ``step`` items at a time."""
    out = np.empty((sources.n_models, len(at)), np.float32)
    for first in range(0, len(at), step):
        some = slice(first, first + step)
        out[:, some] = sources.pick(items=at[some]).label_probs()
    return out


def draw_reserve(responses: Responses, anchors: Anchors, rng: Seed = None, *, soft: bool = False) -> Reserve | None:
    """Draw four times as many items as there are anchors from the others; None where fewer than 4 are left.

    ``soft`` where the score model learns from probabilities, so that those of the right choices are kept too.
    """
    found = _draw(responses, anchors, rng)
    return None if found is None else found[0].answered_by(responses, found[1], soft)


def draw_first(responses: Responses, anchors: Anchors, rng: Seed = None, *, soft: bool = False) -> Reserve | None:
    """The first items of such a reserve: as many as anchors, but at most half of the weight that these leave.

    Where more were asked, next to nothing would be left to estimate, and errors of that say nothing of those with
    fewer. None where that is fewer than 4.
    """
    found = _draw(responses, anchors, rng)
    if found is None:
        return None
    drawn, at = found
    n = len(anchors)
    left, reserved = 1 - float(drawn.shares[:n].sum()), float(drawn.shares[n:].sum())
    k = min(n, len(at), int(0.5 * len(at) * left / reserved + 1e-9))
    if k < FEWEST:
        return None
    shares, chance = drawn.shares[: n + k], drawn.chance[:k] * k / len(at)
    few = replace(drawn, shares=shares, chance=chance)
    return few.answered_by(responses, at[:k], soft)


def _draw(responses: Responses, anchors: Anchors, rng: Seed) -> tuple[Reserve, Array] | None:
    """Items in the order in which to ask them, nobody's answers to them yet, and their positions."""
    for_order, for_draw, for_turn = generator(rng).spawn(3)
    share = responses.items.weight / responses.items.weight.sum()
    size = share.copy()
    size[anchors.positions] = 0.0
    k = min(TIMES * len(anchors), int((size > 0).sum()))
    if k < FEWEST:
        return None
    order = by_difficulty(responses, for_order)
    at, chance = systematic(order, size, k, for_draw)
    along = np.argsort(np.argsort(order, kind="stable")[at], kind="stable")  # from hard to easy
    # multiples of the golden ratio, turned at random: every first so many are spread evenly, and hardly one likelier
    turn = along[np.argsort((np.arange(k) * _GOLDEN + for_turn.random()) % 1, kind="stable")]
    at, chance = at[turn], chance[turn]
    shares = np.concatenate([share[anchors.positions], share[at]])
    return Reserve(responses.items.pick(at), chance, shares, np.zeros((0, k)), int((share > 0).sum())), at
