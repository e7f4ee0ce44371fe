"""What every ``rng`` argument takes."""

import numpy as np

from ..errors import ValidationError

Seed = int | np.random.SeedSequence | np.random.Generator | None
"""Anything ``numpy.random.default_rng`` takes; None draws a fresh seed, so give one to get the same result again."""


def generator(rng: Seed) -> np.random.Generator:
    """The generator that a seed stands for, or that was given; ValidationError for what is neither."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValidationError(f"rng must be a whole number from 0 on, or a NumPy generator, got {rng!r}") from None
