"""Items found by trial on held-out source models, or spread evenly over difficulty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError
from ..numerics.rng import Seed, generator
from ..responses import Responses
from ..splits import folds
from .anchors import Anchors, by_id, check_count, random_ranks
from .shared import correctness

Array = NDArray[Any]

_FEWEST = 5


def best_for_validation(
    responses: Responses, n_anchors: int, rng: Seed = None, *, n_candidates: int = 1000, n_folds: int = 5
) -> Anchors:
    """The random subset whose accuracy best predicts the scores of held-out source models (Metabench; Section 3.1.1).

    ``n_candidates`` subsets are drawn; for each, a straight line from subset accuracy to full score is fitted to most
    of the source models, and the subset of lowest root mean square error on the rest, one part of ``n_folds``, wins.
    Metabench fits a spline there; a line cannot overfit 1,000 times over. Every anchor's criterion is that error.

    Raises ValidationError for more anchors than items, or fewer than 5 source models.
    """
    check_count(responses, n_anchors)
    if responses.n_models < _FEWEST:
        raise ValidationError(f"best_for_validation needs at least {_FEWEST} source models, got {responses.n_models}")
    if n_candidates < 1:
        raise ValidationError(f"n_candidates must be at least 1, got {n_candidates}")
    for_subsets, for_folds = generator(rng).spawn(2)
    models, items = by_id(responses.models.ids), by_id(responses.items.ids)
    train, held = next(iter(folds(responses.models.pick(models), n_folds, for_folds, by="none")))
    subsets = np.stack([for_subsets.choice(len(items), n_anchors, replace=False) for _ in range(n_candidates)])
    y = responses.scores()[models]
    by_item = np.ascontiguousarray(correctness(responses).T)
    x = np.stack([by_item[items[s]].mean(axis=0, dtype=np.float64)[models] for s in subsets], axis=1)
    error = _line_errors(x[train], y[train], x[held], y[held])
    best = int(error.argmin())
    chosen = items[subsets[best]]
    criterion = np.full(n_anchors, error[best])
    return Anchors.of(responses.items, chosen, "best_for_validation", criterion=criterion)


def every_kth(responses: Responses, n_anchors: int, rng: Seed = None) -> Anchors:
    """Items at even steps along difficulty, the share of source models that fail (Lifelong Benchmark; Appendix J.2).

    The items are sorted by mean correctness and one is taken from the middle of each of ``n_anchors`` equal parts; the
    order among equally hard items falls by chance. The criterion is the mean correctness.

    Raises ValidationError for more anchors than items.
    """
    check_count(responses, n_anchors)
    models = by_id(responses.models.ids)
    mean = correctness(responses)[models].mean(axis=0, dtype=np.float64)
    order = np.lexsort((random_ranks(responses.items.ids, generator(rng)), -mean))
    at = order[((np.arange(n_anchors) + 0.5) * len(order) / n_anchors).astype(np.int64)]
    return Anchors.of(responses.items, at, "every_kth", criterion=mean[at])


def _line_errors(x: Array, y: Array, x_new: Array, y_new: Array) -> Array:
    """Root mean square error on new models of a line fitted per column of x (n_models, n_candidates)."""
    centre, level = x.mean(axis=0), y.mean()
    spread = ((x - centre) ** 2).sum(axis=0)
    slope = np.divide((y - level) @ (x - centre), spread, out=np.zeros(x.shape[1]), where=spread > 0)
    rest = y_new[:, None] - level - slope * (x_new - centre)
    error: Array = np.sqrt((rest**2).mean(axis=0))
    return error
