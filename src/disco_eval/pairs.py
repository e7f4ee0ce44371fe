"""How far a difference between two models can be trusted: pairs of source models that answer as much alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibration import CrossValidation
from .errors import DiscoError
from .numerics.gp import squared_distances
from .numerics.intervals import symmetric_quantile
from .responses import Responses

Array = NDArray[Any]

PAIRS = 100  # of source models, nearest in distance, that an interval is calibrated on
FEWEST_PAIRS = 30
UNSEEN = 0.5  # anchors that two models differ on beside those that show it, where no pair of sources is as near


def distances(one: Responses, other: Responses, soft: bool) -> Array:
    """How far answers are apart, (n_models, n_models): root mean square over anchors, see `Comparison.distance`.

    With ``soft``, which needs probabilities on both sides, these count too. They say more of near duplicates than
    grades do. By themselves they mislead: models that hardly prefer any choice are near each other in them whatever
    they get right.
    """
    square = squared_distances(one.grades(), other.grades())
    if soft:
        a, b = (np.asarray(r.outcomes(), dtype=np.float64).reshape(r.n_models, -1) for r in (one, other))
        square = (square + squared_distances(a, b)) / 2
    apart: Array = np.sqrt(square / one.n_items)
    return apart


def calibrate(
    benchmark: str, pairs: tuple[Array, Array, Array], distance: float, level: float, n_anchors: int
) -> tuple[float, float, int, float]:
    """How to read a difference of two estimates at a distance, from the pairs of sources nearest in distance.

    Returns the share of it that is real (least squares through 0 of true on estimated differences, raised by its
    standard error, which errs towards believing the estimates), the half-width of the interval, the number of pairs and
    their median distance. Models that answer alike differ little, so most of what their estimates differ by is error.

    Errors of differences grow with a power of the distance (least squares of log absolute error on log distance, the
    power kept between 0 and 1.5); the quantile is that of what is left in this unit. Nearer than the pairs are, the
    power is at least 1, as it is for a survey of both models, whose error grows with the root of the share of items on
    which they differ. Anchors that show no difference do not say that there is none: half an anchor more is counted.
    """
    true, estimated, apart = pairs
    if len(true) < FEWEST_PAIRS:
        raise DiscoError(
            f"'{benchmark}' has {len(true)} pairs of left-out source models to calibrate a comparison on, "
            f"{FEWEST_PAIRS} are needed; condense again, from more source models or in fewer folds"
        )
    x, y = np.log(np.maximum(apart, 0.01)), np.log(np.abs(true - estimated) + 1e-3)
    power = float(np.clip(np.cov(x, y, bias=True)[0, 1] / max(float(np.var(x)), 1e-12), 0.0, 1.5))
    near = np.argsort(np.abs(x - np.log(max(distance, 0.01))), kind="stable")[:PAIRS]
    square = max(float(estimated[near] @ estimated[near]), 1e-12)
    share = float(true[near] @ estimated[near]) / square
    left = true[near] - share * estimated[near]
    doubt = np.sqrt(float(left @ left) / square / len(near))
    share = float(np.clip(share + doubt, 0.0, 1.0))
    left = (true[near] - share * estimated[near]) / np.exp(power * x[near])
    typical = float(np.median(apart[near]))
    half = symmetric_quantile(left, level) * max(distance, typical, 0.01) ** power
    if distance < typical:
        half *= min(1.0, np.sqrt(distance**2 + UNSEEN / n_anchors) / typical) ** max(power, 1.0)
    return share, float(half), len(near), typical


def pairs_of(v: CrossValidation, apart: Array) -> tuple[Array, Array, Array]:
    """True and estimated differences of source models left out together, and how far each pair is apart, (n_pairs,)."""
    i, j = np.triu_indices(len(v.truth), 1)
    together = (v.fold[i] == v.fold[j]) & (v.fold[i] >= 0)
    i, j = i[together], j[together]
    return v.truth[i] - v.truth[j], v.estimate[i] - v.estimate[j], apart[i, j]
