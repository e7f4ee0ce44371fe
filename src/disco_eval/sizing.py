"""How many anchors it takes to estimate scores as well as is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ValidationError

Array = NDArray[Any]

FIRST = 10  # anchors that are tried first, and twice as many each time after that
WORTH_TELLING = 5e-5  # of an error, beyond what was asked for: what is shown of it
FASTEST = 1.0  # power of their number by which errors fall; where they fall faster, nearly all items are anchors


def enough_anchors(error: float, most: int, measure: Callable[[int], tuple[float, float]]) -> tuple[int, Array]:
    """How many anchors are expected to reach a mean absolute ``error``, at most ``most``; and all that was measured.

    ``measure`` gives the mean absolute error with so many anchors, and its standard error. 10, 20, 40, ... are tried
    until they reach ``error``. Between the last two it is taken to fall by a power of their number, at most the first.

    Returns
    -------
    The number, and an array (k, 3) of number of anchors, error and its standard error, one row for every try.

    Raises
    ------
    ValidationError
        ``most`` anchors are further off than ``error``.
    """
    tried = [(n := min(FIRST, most), *measure(n))]
    while tried[-1][1] > error and n < most:
        n = min(2 * n, most)
        tried.append((n, *measure(n)))
    last, reached, _ = tried[-1]
    if reached > error:
        found = ", ".join(f"{100 * mae:.2f} with {n}" for n, mae, _ in tried)
        raise ValidationError(
            f"a mean error of {100 * error:.2f} points was asked for, but on left-out source models it is, in points, "
            f"{found} anchors: allow more anchors or a larger error, or give more source models"
        )
    if len(tried) > 1:
        before, missed, _ = tried[-2]
        power = min(np.log(missed / reached) / np.log(last / before), FASTEST) if reached > 0 else FASTEST
        last = min(int(np.ceil(before * (missed / error) ** (1 / power))), last)
    return last, np.array(tried, dtype=np.float64)


def missed_by(asked: float | None, mae: float, se: float, n_anchors: int) -> str:
    """What to say where the error, measured anew, is larger than ``asked``; nothing where it is not."""
    if asked is None or mae - asked < WORTH_TELLING:
        return ""
    safe = int(np.ceil(n_anchors * (mae / asked) ** 2))  # as if it fell by the square root of their number
    chance = "no more than it varies by chance" if mae - asked <= se else "more than it varies by chance"
    return (
        f"The error is {100 * (mae - asked):.2f} points above what was asked for, {chance}; --anchors {safe} is safer."
    )
