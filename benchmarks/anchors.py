"""What the default anchors gain and risk: errors of the default score model on several kinds of anchors, by split.

    python benchmarks/anchors.py RESPONSES.npz [--anchors 100] [--runs 12]

Mean absolute error in points over several draws of models and anchors, of the guarded estimate, and in brackets of the
process alone and of the survey alone. "telling only" and "balance only" are the default without either half.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from disco_eval import Responses, splits
from disco_eval.io import open_answers
from disco_eval.predict import Auto
from disco_eval.select import Anchors, auto, default, hybrid, sharp, stratified

Select = Callable[[Responses, int, Any], Anchors]


def scenes(r: Responses, run: int) -> Iterator[tuple[str, Any, Any]]:
    """(split, sources, targets): the sources of the stress tests are nine tenths of those below, drawn anew."""
    rng = np.random.default_rng(run)
    order = rng.permutation(r.n_models)
    yield "random", np.sort(order[r.n_models // 5 :]), np.sort(order[: r.n_models // 5])
    family = splits.by_group(r, "family", rng=run)
    yield "family", family.source, family.target
    for name, top, bottom in (("top 10 %", 0.1, 0.9), ("top 30 %", 0.3, 0.5)):
        split = splits.by_performance(r, top, bottom)
        kept = rng.choice(split.source, round(0.9 * len(split.source)), replace=False)
        yield name, np.sort(kept), split.target


def only(share: float, r: Responses, n: int, rng: Any) -> Anchors:
    kept, default.BALANCING = default.BALANCING, share
    try:
        return auto(r, n, rng)
    finally:
        default.BALANCING = kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses")
    parser.add_argument("--anchors", type=int, default=100)
    parser.add_argument("--runs", type=int, default=12)
    given = parser.parse_args()
    r = open_answers(given.responses)
    ways: dict[str, Select] = {
        "auto": auto,
        "telling only": partial(only, 0.0),
        "balance only": partial(only, 1.0),
        "stratified": partial(stratified, draws=30),
        "hybrid": hybrid,
        "sharp": sharp,
    }
    errors: dict[tuple[str, str], list[list[float]]] = {}
    for run in range(given.runs):
        for split, source, target in scenes(r, run):
            known, new = r.pick(models=source), r.pick(models=target)
            truth = new.scores()
            for name, select in ways.items():
                anchors = select(known, given.anchors, run)
                said = Auto().fit(known, anchors).assess(new.pick(items=anchors.positions))
                parts = (said.score, said.process, said.survey)
                errors.setdefault((name, split), []).append([100 * float(np.abs(p - truth).mean()) for p in parts])
    names = list(dict.fromkeys(split for _, split in errors))
    print("| anchors |", " | ".join(names), "|")
    print("|---|" + "---|" * len(names))
    for way in ways:
        cells = [np.array(errors[way, split]) for split in names]
        shown = [
            f"{c[:, 0].mean():.2f} ± {c[:, 0].std() / np.sqrt(len(c)):.2f} ({c[:, 1].mean():.2f}, {c[:, 2].mean():.2f})"
            for c in cells
        ]
        print(f"| {way} |", " | ".join(shown), "|")


if __name__ == "__main__":
    main()
