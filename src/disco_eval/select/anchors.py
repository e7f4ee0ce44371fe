"""Anchors, and the pieces that selection methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..axes import read_only
from ..errors import ValidationError, check_kind
from ..responses import Items, Responses

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Anchors:
    """The items of a benchmark that stand for all of it.

    Attributes
    ----------
    ids : (n_anchors,) their names.
    positions : (n_anchors,) where they stand among the items they were chosen from.
    weights : (n_anchors,) >= 0, sum 1: what share of the benchmark each one stands for.
    method : the name of the selection.
    criterion : (n_anchors,) the value that got each one chosen; NaN where chance did.
    chance : (n_anchors,) the known probability with which each one was drawn; NaN where it was not drawn by chance.
        Survey estimates rest on these. Where one of a few drawn was picked (`auto`), that of each being among them.
    """

    ids: Array
    positions: Array
    weights: Array
    method: str
    criterion: Array
    chance: Array

    @classmethod
    def of(
        cls,
        items: Items,
        positions: Array,
        method: str,
        *,
        weights: Array | None = None,
        criterion: Array | None = None,
        chance: Array | None = None,
    ) -> Anchors:
        """Anchors at some positions among the items; equal weights, no criterion and no known chance unless given."""
        at = np.asarray(positions, dtype=np.int64)
        if len(np.unique(at)) != len(at):
            raise ValidationError(f"{method}: an anchor was chosen twice")
        share = np.full(len(at), 1 / len(at)) if weights is None else np.asarray(weights, dtype=np.float64)
        share = share / share.sum()
        values = np.full(len(at), np.nan) if criterion is None else np.asarray(criterion, dtype=np.float64)
        drawn = np.full(len(at), np.nan) if chance is None else np.asarray(chance, dtype=np.float64)
        at, share, values, drawn = (read_only(array) for array in (at, share, values, drawn))
        return cls(items.ids[at], at, share, method, values, drawn)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Anchors({len(self)} by {self.method})"


def check_count(responses: Responses, n_anchors: int) -> None:
    """Refuse a number of anchors that the benchmark cannot give."""
    check_kind("int", n_anchors=n_anchors)
    if not 1 <= n_anchors <= responses.n_items:
        raise ValidationError(
            f"{n_anchors} anchors were asked for, but the benchmark has {responses.n_items} items; "
            f"ask for 1 to {responses.n_items}"
        )


def by_id(ids: Array) -> Array:
    """Positions in the order of the names: draws made in this order do not depend on the order of the axis."""
    return np.argsort(ids, kind="stable")


def random_ranks(ids: Array, rng: np.random.Generator) -> Array:
    """A random rank for every name, the same for the same rng whatever the order of the axis; used to break ties."""
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[by_id(ids)] = rng.permutation(len(ids))
    return ranks


def highest(responses: Responses, value: Array, n_anchors: int, rng: np.random.Generator, *, stratify: bool) -> Array:
    """Positions of the items with the highest value, best first; ties fall by chance.

    With ``stratify``, every subtask gives equally many (within one, where the number does not divide), by value within
    each; a subtask too small for its share leaves the rest to the others.
    """
    order = np.lexsort((random_ranks(responses.items.ids, rng), -value))
    if not stratify:
        return order[:n_anchors]
    subtask = responses.items.subtask
    names = np.unique(subtask)
    size = {str(s): int((subtask == s).sum()) for s in names}
    quota = _quotas(size, n_anchors, rng)
    kept = np.zeros(len(order), dtype=bool)
    for name, n in quota.items():
        kept[np.flatnonzero(subtask[order] == name)[:n]] = True
    return order[kept]


def _quotas(size: dict[str, int], total: int, rng: np.random.Generator) -> dict[str, int]:
    """Equal shares of the total for subtasks of limited size; the remainder goes to subtasks in random order."""
    quota = dict.fromkeys(size, 0)
    turn = [list(size)[i] for i in rng.permutation(len(size))]
    left = total
    while left:
        room = [name for name in turn if quota[name] < size[name]]
        each, extra = divmod(left, len(room))
        for k, name in enumerate(room):
            more = min(each + (k < extra), size[name] - quota[name])
            quota[name] += more
            left -= more
    return quota
