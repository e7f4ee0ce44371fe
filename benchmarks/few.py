"""The default with few source models: its error beside that of plain means over as many items.

    python benchmarks/few.py RESPONSES.npz [--anchors 100] [--runs 16]

In every run so many sources and up to sixty targets are drawn from all models. Mean absolute error in points; the
standard error is the default's, over runs.
"""

from __future__ import annotations

import argparse

import numpy as np

from disco_eval.io import open_answers
from disco_eval.predict import Auto
from disco_eval.select import auto, stratified, uniform

N_SOURCES = (10, 15, 25, 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses")
    parser.add_argument("--anchors", type=int, default=100)
    parser.add_argument("--runs", type=int, default=16)
    given = parser.parse_args()
    r = open_answers(given.responses)
    print("| sources | default | standard error | mean over items spread by difficulty | mean over random items |")
    print("|---|---|---|---|---|")
    for n in N_SOURCES:
        errors = []
        for run in range(given.runs):
            order = np.random.default_rng(run).permutation(r.n_models)
            known, new = r.pick(models=np.sort(order[:n])), r.pick(models=np.sort(order[n : n + 60]))
            anchors = auto(known, given.anchors, run)
            ours = Auto().fit(known, anchors).predict(new.pick(items=anchors.positions))
            plain = (stratified(known, given.anchors, run), uniform(known, given.anchors, run))
            estimates = [ours, *(new.grades(items.positions) @ items.weights for items in plain)]
            errors.append([100 * np.abs(e - new.scores()).mean() for e in estimates])
        (default, spread, random), se = np.mean(errors, axis=0), np.std(errors, axis=0)[0] / np.sqrt(given.runs)
        print(f"| {n} | {default:.2f} | {se:.2f} | {spread:.2f} | {random:.2f} |")


if __name__ == "__main__":
    main()
