"""Whether as many anchors as ``disco condense --error`` takes reach the error that was asked for, on models not seen.

    python benchmarks/enough.py RESPONSES.npz [--error 2] [--runs 8]

For random splits and whole families: how many anchors were kept, the error that was measured on left-out sources, and
that on the targets, in points; standard errors are over runs, in brackets the least and the most.
"""

from __future__ import annotations

import argparse

import numpy as np
from anchors import scenes  # beside this file

from disco_eval import condense
from disco_eval.io import open_answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses")
    parser.add_argument("--error", type=float, default=2.0)
    parser.add_argument("--runs", type=int, default=8)
    given = parser.parse_args()
    r = open_answers(given.responses)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for run in range(given.runs):
        for split, source, target in scenes(r, run):
            if split not in ("random", "family"):
                continue
            known, new = r.pick(models=source), r.pick(models=target)
            small = condense(known, error=given.error / 100, rng=run, curve=False, relatives=False)
            estimates = small.estimate(new.pick(items=small.anchors.positions))
            off = np.mean([abs(e.score - truth) for e, truth in zip(estimates, new.scores(), strict=True)])
            found.setdefault(split, []).append((len(small.anchors), 100 * small.validation.mae, 100 * float(off)))
    print("| split | anchors | measured on left-out sources | new models |")
    print("|---|---|---|---|")
    for split, rows in found.items():
        mean, se = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
        least, most = np.min(rows, axis=0)[0], np.max(rows, axis=0)[0]
        shown = " | ".join(f"{m:.2f} ± {s:.2f}" for m, s in zip(mean[1:], se[1:], strict=True))
        print(f"| {split} | {mean[0]:.0f} ({least:.0f} to {most:.0f}) | {shown} |")


if __name__ == "__main__":
    main()
