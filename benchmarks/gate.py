"""How often a gate on the anchors is wrong: near-duplicate pairs whose base is not among the sources.

python benchmarks/gate.py mmlu_10k.npz [--anchors 100] [--more 0] [--margin 3] [--folds 5]

Every pair of models that share a base is compared by a condensation made without their base. Prints, by distance, the
error of the estimated difference, how many pairs get a verdict, false kills (true drop within half the margin, verdict
"fails") and missed kills (true drop of at least twice the margin, verdict "passes").
"""

import argparse
from itertools import permutations

import numpy as np

import disco_eval as de
from disco_eval.comparison import compare
from disco_eval.io import open_answers


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("responses")
    ap.add_argument("--anchors", type=int, default=100)
    ap.add_argument("--more", type=int, default=0, help="answers to so many further items")
    ap.add_argument("--margin", type=float, default=3.0)
    ap.add_argument("--folds", type=int, default=5)
    args = ap.parse_args()
    r, rows = open_answers(args.responses), []
    group = r.models.base if (r.models.base != "").any() else r.models.family
    names = np.random.default_rng(0).permutation(np.unique(group[group != ""]))
    for f in range(args.folds):
        out = np.isin(group, names[f :: args.folds])
        c = de.condense(r.pick(models=~out), args.anchors, rng=f, curve=False)
        for name in names[f :: args.folds]:
            for i, j in permutations(np.flatnonzero(group == name), 2):
                pair = r.pick(models=[i]), r.pick(models=[j])
                found = compare(c, *pair, margin=args.margin / 100, more=args.more)
                truth = float(r.scores()[j] - r.scores()[i])
                rows.append((found.distance, truth, found.difference, found.low <= truth <= found.high, found.verdict))
    margin = args.margin / 100
    for low, high in ((0, 0.15), (0.15, 0.3), (0.3, 9)):
        part = [x for x in rows if low <= x[0] < high]
        if not part:
            continue
        error = 100 * np.abs([x[2] - x[1] for x in part])
        healthy = [x[4] == "fails" for x in part if x[1] > -margin / 2]
        ill = [x[4] == "passes" for x in part if x[1] < -2 * margin]
        print(
            f"distance {low} to {high}: {len(part)} pairs, error median {np.median(error):.2f} 90th percentile "
            f"{np.quantile(error, 0.9):.2f}, covered {100 * np.mean([x[3] for x in part]):.1f} %, decided "
            f"{100 * np.mean([x[4] != 'undecided' for x in part]):.0f} %, false kills {sum(healthy)} of "
            f"{len(healthy)}, missed {sum(ill)} of {len(ill)}"
        )


if __name__ == "__main__":
    main()
