"""Sets of right and wrong answers like benchmarks whose models differ by little, which no development set is.

    python benchmarks/simulated.py FOLDER
    python benchmarks/coverage.py FOLDER/musr.npz --repeat 3

Models of families with abilities and tastes in common; a share of their luck with items is the family's. `gpqa` and
`musr` have as many items as those benchmarks and scores as close together, `hella` and `imagenet` many items, `floor`
and `ceiling` hardly any score between their models. The same numbers each time.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from disco_eval import Models, Responses
from disco_eval.io import write_npz


@dataclass(frozen=True)
class Kind:
    """How many models, items and families; the chance of a guess; mean and spread of abilities and of difficulties;
    how much items discriminate, the share of luck that families have in common, and how many tastes there are."""

    n_models: int
    n_items: int
    n_families: int
    guess: float
    ability: tuple[float, float]
    difficulty: tuple[float, float]
    slope: float
    common: float
    n_tastes: int = 3


KINDS = {  # name: (seed, kind)
    "gpqa": (0, Kind(400, 448, 60, 0.22, (-1.2, 1.0), (0, 4), 0.25, 0.5)),
    "musr": (1, Kind(400, 756, 60, 0.33, (-0.5, 1.0), (0.5, 3), 0.4, 0.5)),
    "hella": (2, Kind(300, 4000, 40, 0.2, (2, 1.0), (0, 1.5), 1.0, 0.6)),
    "imagenet": (4, Kind(100, 20000, 15, 0.0, (1.8, 0.6), (0, 2.5), 1.0, 0.5, 6)),
    "floor": (11, Kind(80, 600, 15, 0.0, (-4.5, 0.5), (0, 1.0), 1.0, 0.3)),
    "ceiling": (12, Kind(100, 500, 15, 0.0, (4.5, 0.6), (0, 1.0), 1.0, 0.3)),
}


def simulated(seed: int, kind: Kind) -> Responses:
    """One set of right and wrong answers."""
    rng, m, n, f = np.random.default_rng(seed), kind.n_models, kind.n_items, kind.n_families
    family, of_family = rng.integers(0, f, m), rng.normal(size=f)
    ability = kind.ability[1] * (0.7 * of_family[family] + 0.7 * rng.normal(size=m)) + kind.ability[0]
    taste = 0.6 * rng.normal(size=(f, kind.n_tastes))[family] + 0.5 * rng.normal(size=(m, kind.n_tastes))
    slope = kind.slope * np.exp(0.5 * rng.normal(size=n))
    difficulty = kind.difficulty[0] + kind.difficulty[1] * rng.normal(size=n)
    loading = 0.5 * rng.normal(size=(n, kind.n_tastes))
    level = 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty) - taste @ loading.T))
    shared, own = rng.random((f, n))[family], rng.random((m, n))
    luck = np.where(rng.random((m, n)) < kind.common, shared, own)
    models = Models([f"m{i}" for i in range(m)], family=[f"f{k}" for k in family])
    return Responses.from_correct(models, [f"i{j}" for j in range(n)], luck < kind.guess + (1 - kind.guess) * level)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, (seed, kind) in KINDS.items():
        write_npz(simulated(seed, kind), folder / f"{name}.npz")


if __name__ == "__main__":
    main()
