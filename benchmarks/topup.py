"""The design-based estimate on targets above every source: error, bias, coverage by number of further items.

    python benchmarks/topup.py RESPONSES.npz [--anchors 100] [--draws 12]

Sources are all models below the best tenth or the best 30 %. "direct" is the plain mean over as many random items.
"""

from __future__ import annotations

import argparse

import numpy as np

from disco_eval import Responses
from disco_eval.io import open_answers
from disco_eval.select import selector
from disco_eval.select.reserve import draw_reserve
from disco_eval.topup import TopUp


def one_draw(source: Responses, target: Responses, n_anchors: int, more: int, seed: int) -> tuple[np.ndarray, ...]:
    """Errors, half-widths at 90 % and errors of the direct mean, for every target."""
    anchors = selector("auto")(source, n_anchors, seed)
    reserve = draw_reserve(source, anchors, 10_000 + seed)
    assert reserve is not None
    made = TopUp.fit(anchors, source.grades(anchors.positions), source.scores(), reserve, more)
    further = target.items.positions(reserve.items.ids[:more])
    score, se = made.predict(
        target.grades(anchors.positions), target.grades(further), np.zeros(target.n_models, dtype=bool)
    )
    random = np.random.default_rng(seed).choice(target.n_items, n_anchors + more, replace=False)
    truth = target.scores()
    return score - truth, made.quantile(0.9) * se, target.pick(items=random).scores() - truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses")
    parser.add_argument("--anchors", type=int, default=100)
    parser.add_argument("--draws", type=int, default=12)
    given = parser.parse_args()
    r = open_answers(given.responses)
    order = np.argsort(r.scores(), kind="stable")
    print("| targets | more items | MAE | bias | covered at 90 % | width | direct |\n|---|---|---|---|---|---|---|")
    for share in (0.1, 0.3):
        n = int(share * r.n_models)
        source, target = r.pick(models=order[:-n]), r.pick(models=order[-n:])
        for more in (given.anchors // 4, given.anchors, 2 * given.anchors):
            draws = [one_draw(source, target, given.anchors, more, seed) for seed in range(given.draws)]
            error, half, direct = (np.concatenate(part) for part in zip(*draws, strict=True))
            print(
                f"| top {100 * share:.0f} % ({n}) | {more} | {100 * np.abs(error).mean():.2f} | "
                f"{100 * error.mean():+.2f} | {100 * np.mean(np.abs(error) <= half):.1f} % | {200 * half.mean():.1f} | "
                f"{100 * np.abs(direct).mean():.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
