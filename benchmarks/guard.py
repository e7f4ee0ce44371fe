"""What each part of the default score model says inside and outside the sources' range, and what the guard makes of it.

    python benchmarks/guard.py RESPONSES.npz [...] [--anchors 30,100] [--runs 24] [--split "top 30 %"]

Mean absolute error in points by split (those of ``benchmarks/anchors.py``), with the default's anchors; geometric mean
over the responses and numbers of anchors, with the standard error over runs of one cell alone.
"""

from __future__ import annotations

import argparse

import numpy as np
from anchors import scenes  # beside this file

from disco_eval import Responses
from disco_eval.io import open_answers
from disco_eval.predict import Auto
from disco_eval.predict.guard import GROWTH, START, older_share, survey_share
from disco_eval.select import auto, stratified


def estimates(known: Responses, new: Responses, n: int, run: int) -> dict[str, np.ndarray]:
    """What the parts of the default, two guards and plain means say of every new model."""
    anchors, spread = auto(known, n, run), stratified(known, n, run)
    answers = new.pick(items=anchors.positions)
    said = Auto().fit(known, anchors).assess(answers)
    sd, se = said.process_sd, said.survey_se
    shares = {
        "process alone": np.zeros(len(sd)),
        "survey alone": np.ones(len(sd)),
        "the guard of format 4": older_share(sd, se, said.outside, np.zeros(0)),
        "the default": survey_share(sd, se, said.outside, GROWTH, START),
    }
    return {
        **{name: said.process + share * (said.survey - said.process) for name, share in shares.items()},
        "ability line": said.line,
        "plain mean": answers.grades() @ anchors.weights,
        "plain mean, items by difficulty": new.grades(spread.positions) @ spread.weights,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("responses", nargs="+")
    parser.add_argument("--anchors", default="30,100")
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--split", choices=("random", "family", "top 10 %", "top 30 %"), help="one of them alone")
    given = parser.parse_args()
    errors: dict[tuple[str, str], list[float]] = {}
    noise: dict[tuple[str, str], float] = {}
    for file in given.responses:
        r = open_answers(file)
        for n in map(int, given.anchors.split(",")):
            here: dict[tuple[str, str], list[float]] = {}
            for run in range(given.runs):
                for split, source, target in scenes(r, run):
                    if given.split not in (None, split):
                        continue
                    new = r.pick(models=target)
                    ways = estimates(r.pick(models=source), new, n, run)
                    for name, value in ways.items():
                        error = 100 * float(np.abs(np.clip(value, 0, 1) - new.scores()).mean())
                        here.setdefault((name, split), []).append(error)
            for key, found in here.items():
                errors.setdefault(key, []).append(float(np.mean(found)))
                noise[key] = float(np.std(found) / np.sqrt(len(found)))
    splits = list(dict.fromkeys(split for _, split in errors))
    print("| |", " | ".join(splits), "|")
    print("|---|" + "---|" * len(splits))
    for name in dict.fromkeys(name for name, _ in errors):
        shown = [
            f"{np.exp(np.mean(np.log(errors[name, s]))):.2f}"
            + (f" ± {noise[name, s]:.2f}" if len(errors[name, s]) == 1 else "")
            for s in splits
        ]
        print(f"| {name} |", " | ".join(shown), "|")


if __name__ == "__main__":
    main()
