"""How far errors could fall: what an ideal estimator would err by, were the answers those of an item response model.

    python benchmarks/floor.py RESPONSES.npz [...] [--anchors 100] [--draws 4]

A one-dimensional model (2PL) is fitted to all answers. An estimator that knew every item's curve exactly would still
err for two reasons: the items that were not asked fall as they fall, and the answers leave the ability uncertain (the
inverse of their information and of the prior's). Mean absolute error in points over the models, of normal errors: of
the first reason alone; of both for random anchors, for the default's, for those which tell most on average, and for
those which tell most about each model (no fixed set can). What errs less than this knows more of the models than one
number each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from disco_eval.io import open_answers
from disco_eval.numerics.irt import fit_2pl, probability
from disco_eval.select import auto

OF_NORMAL = np.sqrt(2 / np.pi)  # mean size of an error of standard deviation 1


def floors(correct: np.ndarray, n_anchors: int, drawn: list[np.ndarray]) -> dict[str, float]:
    """Mean absolute errors in points from answers (n_models, n_items); ``drawn`` are sets of anchors, by position."""
    n_items = correct.shape[1]
    fitted = fit_2pl(correct, 1)
    p = probability(fitted.ability, fitted.discrimination, fitted.difficulty)
    noise = p * (1 - p)
    slope = noise * fitted.discrimination[:, 0]
    information = slope * fitted.discrimination[:, 0]
    each = np.arange(len(p))[:, None]

    def of(at: np.ndarray) -> tuple[float, float]:
        """Of both reasons and of the first alone, for anchors at positions (n_anchors,) or (n_models, n_anchors)."""
        not_asked = np.ones(p.shape, dtype=bool)
        not_asked[each, at] = False
        fall = (noise * not_asked).sum(axis=1) / n_items**2
        ability = ((slope * not_asked).sum(axis=1) / n_items) ** 2 / (1 + (information * ~not_asked).sum(axis=1))
        both, first = (float(100 * OF_NORMAL * np.sqrt(v).mean()) for v in (fall + ability, fall))
        return both, first

    rng = np.random.default_rng(0)
    random = [of(rng.choice(n_items, n_anchors, replace=False)) for _ in drawn]
    order = np.argsort(-information, axis=1)
    return {
        "items not asked": float(np.mean([fall for _, fall in random])),
        "random": float(np.mean([both for both, _ in random])),
        "the default's": float(np.mean([of(at)[0] for at in drawn])),
        "most telling": of(np.argsort(-information.mean(axis=0))[:n_anchors])[0],
        "most telling of each model": of(order[:, :n_anchors])[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses", nargs="+")
    parser.add_argument("--anchors", type=int, default=100)
    parser.add_argument("--draws", type=int, default=4)
    given = parser.parse_args()
    for k, file in enumerate(given.responses):
        r = open_answers(file)
        drawn = [auto(r, given.anchors, draw).positions for draw in range(given.draws)]
        found = floors(r.grades().astype(np.float64), given.anchors, drawn)
        if k == 0:
            print("| set |", " | ".join(found), "|")
            print("|---|" + "---|" * len(found))
        print(f"| {Path(file).stem} |", " | ".join(f"{v:.2f}" for v in found.values()), "|")


if __name__ == "__main__":
    main()
