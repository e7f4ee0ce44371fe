"""How much of an estimate is the survey's, by how far outside the sources' range a model stands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

GROWTH = 5.0  # standard errors of the process that its error grows by for every standard deviation of source scores
START = 0.2  # standard deviations before the edge of the sources' range, where that begins
SURE = 3.0  # of its standard errors that the survey must be outside by, where process and line see nothing
LEAST_SD = 0.1  # of the distance outside: what a process errs by at least, however sure of itself it is
_ROOM = (0.1, 0.4)  # of older formats: where only the survey was believed, in standard deviations outside
_BEYOND = 3.0  # of format 4: how much larger than inside the error of the process was taken to be at the edge


def beyond(score: Array, edges: Array, spread: float, doubt: Array | float = 0.0) -> Array:
    """How far scores (n_models,) lie outside ``edges`` (2,), less ``doubt``, in units of ``spread``; below 0 inside."""
    return np.asarray((np.maximum(score - edges[1], edges[0] - score) - doubt) / spread)


def survey_share(sd: Array, se: Array, outside: Array, growth: float, start: float) -> Array:
    """Share of the survey in the estimates of models that stand ``outside`` (n_models,) the sources' range.

    The two are weighed by their errors, ``se`` of the survey and ``sd`` of the process times what the way from
    ``start`` before the edge makes of it: none of the survey well inside, a fifth to a half where an alarm sounds,
    about nine tenths one standard deviation outside. Where the sources hold a near duplicate of the model, the process
    has a small error and keeps its part for longer.
    """
    return part_of(growth * np.maximum(outside + start, 0.0) * sd, se)


def older_share(sd: Array, se: Array, outside: Array, learned: Array) -> Array:
    """The same by the rule of formats 1 to 3, whose part at the edge was ``learned`` (1,), or of format 4 (0,)."""
    inside = 0.5 * part_of(sd, se) if len(learned) else np.zeros(len(sd))
    edge = learned if len(learned) else part_of(_BEYOND * sd, se)
    near, far = _ROOM
    to_edge = np.clip((outside + near) / (2 * near), 0.0, 1.0)
    beyond = np.clip((outside - near) / (far - near), 0.0, 1.0)
    share = (1 - to_edge) * inside + to_edge * np.maximum(edge, inside)
    return np.asarray(share + beyond * (1 - share))


def part_of(sd: Array, se: Array) -> Array:
    """Share of the second of two estimates of which independent errors make the most; 0 where neither errs."""
    return np.asarray(sd**2 / np.maximum(sd**2 + se**2, 1e-18))
