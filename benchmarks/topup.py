"""Estimates of targets above every source: error, bias, coverage by number of further items.

    python benchmarks/topup.py RESPONSES.npz [--anchors 100] [--draws 12]

Sources are all models below the best tenth or the best 30 %. "design" is the survey of anchors and further items alone,
"direct" the plain mean over as many random items.
"""

from __future__ import annotations

import argparse

import numpy as np

from disco_eval import Condensation, Responses, condense
from disco_eval.io import open_answers


def one_draw(c: Condensation, target: Responses, more: int, seed: int) -> tuple[np.ndarray, ...]:
    """Errors, the design's own, widths at 90 %, whether covered, errors of the direct mean, for every target."""
    found, truth = c.estimate(target, more=more), target.scores()
    design, _ = c.top_up(more).predict(
        c.answers(target).grades(), c.further(target, more).grades(), np.zeros(target.n_models, dtype=bool)
    )
    random = np.random.default_rng(seed).choice(target.n_items, len(c.anchors) + more, replace=False)
    width = np.array([e.high - e.low for e in found])
    held = np.array([e.low <= t <= e.high for e, t in zip(found, truth, strict=True)])
    score = np.array([e.score for e in found])
    return score - truth, design - truth, width, held, target.pick(items=random).scores() - truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses")
    parser.add_argument("--anchors", type=int, default=100)
    parser.add_argument("--draws", type=int, default=12)
    given = parser.parse_args()
    r = open_answers(given.responses)
    order = np.argsort(r.scores(), kind="stable")
    print(
        "| targets | more items | MAE | bias | covered at 90 % | width | design | direct |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for share in (0.1, 0.3):
        n = int(share * r.n_models)
        source, target = r.pick(models=order[:-n]), r.pick(models=order[-n:])
        made = [condense(source, given.anchors, rng=seed, curve=False) for seed in range(given.draws)]
        for more in (given.anchors // 4, given.anchors, 2 * given.anchors):
            draws = [one_draw(c, target, more, seed) for seed, c in enumerate(made)]
            error, design, width, held, direct = (np.concatenate(part) for part in zip(*draws, strict=True))
            print(
                f"| top {100 * share:.0f} % ({n}) | {more} | {100 * np.abs(error).mean():.2f} | "
                f"{100 * error.mean():+.2f} | {100 * held.mean():.1f} % | {100 * width.mean():.1f} | "
                f"{100 * np.abs(design).mean():.2f} | {100 * np.abs(direct).mean():.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
