"""One pass over the answers, however many: accumulators over some models each, merged in pairs, here or on a cluster.

A store is cut into stretches of neighbouring items, and each stretch into groups of models. Every group makes an
accumulator; they merge as a binary tree whose shape depends on the responses alone, so the numbers are the same
whoever does the work, and memory is that of a few accumulators over one stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.disagreement import Disagreement
from ..resources import Workers, memory_bound, workers
from ..responses import Responses

Array = NDArray[Any]
Groups = list[Disagreement | None]  # one for each part of the models; None where a part has none of them

_LEAF = 64  # models of one accumulator before it is merged
_ALIVE = 6  # accumulators of each part that may wait for each other


def disagreement(responses: Responses, measures: str) -> Array:
    """PDS, JSD (nats) or both over all models, shape (1 or 2, n_items), in one pass."""
    part = np.zeros(responses.n_models, dtype=np.int64)
    value: Array = _assembled(responses, part, 1, measures, [[0]])[0]
    return value


def left_out_disagreement(responses: Responses, part: Array, n_parts: int, measures: str) -> Array:
    """Disagreement of all models, and of all but each part, in one pass: shape (1 + n_parts, 1 or 2, n_items).

    ``part`` (n_models,) says which part each model belongs to, from 0.
    """
    every = list(range(n_parts))
    return _assembled(responses, part, n_parts, measures, [every, *([p for p in every if p != k] for k in every)])


def accumulate(responses: Responses, measures: str) -> Iterator[tuple[slice, Disagreement]]:
    """The accumulator over all models of every stretch of items, one after the other."""
    part = np.zeros(responses.n_models, dtype=np.int64)
    for columns in _stretches(responses, 1, measures):
        groups = workers().result(_tree(workers(), responses, columns, (part, 1, measures)))
        assert groups[0] is not None
        yield columns, groups[0]


def _assembled(responses: Responses, part: Array, n_parts: int, measures: str, sets: Sequence[Sequence[int]]) -> Array:
    out = np.empty((len(sets), 2 if measures == "both" else 1, responses.n_items))
    staff = workers()
    shared, how = staff.share(responses), (part, n_parts, measures)
    stretches = list(_stretches(responses, n_parts, measures))
    tasks = ((_values, (_tree(staff, shared, at, how, responses.n_models), measures, sets)) for at in stretches)
    for k, value in staff.results(tasks):
        out[:, :, stretches[k]] = value
    return out


def _tree(staff: Workers, responses: Any, columns: slice, how: tuple[Array, int, str], n_models: int = 0) -> Any:
    """The accumulators of all models on some items: leaves, merged in pairs, depth first."""

    def below(low: int, high: int) -> Any:
        if high - low == 1:
            rows = slice(low * _LEAF, min((low + 1) * _LEAF, n))
            return staff.submit(_leaf, responses, rows, columns, how)
        middle = (low + high + 1) // 2
        return staff.submit(_merge, below(low, middle), below(middle, high))

    n = n_models or responses.n_models
    return below(0, -(-n // _LEAF))


def _leaf(responses: Responses, rows: slice, columns: slice, how: tuple[Array, int, str]) -> Groups:
    part, n_parts, measures = how
    found: Groups = [None] * n_parts
    for models, block in responses.block(rows, columns):
        own = part[models]
        for k in np.unique(own).tolist():
            running = found[k] or Disagreement(block.shape[1], block.shape[2], measures)
            found[k] = running.update(block if (own == k).all() else block[own == k])
    return found


def _merge(a: Groups, b: Groups) -> Groups:
    return [y if x is None else x if y is None else x.merge(y) for x, y in zip(a, b, strict=True)]


def _values(groups: Groups, measures: str, sets: Sequence[Sequence[int]]) -> Array:
    """The measures of each set of parts, (n_sets, 1 or 2, n_items of the stretch)."""
    out = []
    for members in sets:
        whole = reduce(Disagreement.merge, [g for k in members if (g := groups[k]) is not None])
        kinds = ("pds", "jsd") if measures == "both" else (measures,)
        out.append([whole.pds() if kind == "pds" else whole.jsd() for kind in kinds])
    return np.array(out)


def _stretches(responses: Responses, n_parts: int, measures: str) -> Iterator[slice]:
    """Stretches of items that are stored together, cut where the accumulators would not fit into half the memory."""
    kinds = {"pds": 1, "jsd": 2, "both": 3}[measures]
    width = max(1, memory_bound() // 2 // (8 * kinds * n_parts * _ALIVE * responses.max_choices))
    for whole in responses.stretches():
        for first in range(whole.start, whole.stop, width):
            yield slice(first, min(first + width, whole.stop))
