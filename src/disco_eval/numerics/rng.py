"""What every ``rng`` argument takes."""

import numpy as np

Seed = int | np.random.SeedSequence | np.random.Generator | None
"""Anything ``numpy.random.default_rng`` takes; None draws a fresh seed, so give one to get the same result again."""
