"""Errors and interval coverage of subtasks' scores on real responses, with and without further items.

python benchmarks/subtasks.py RESPONSES [--splits iid,family,top10,worst10] [--anchors 100] [--more 0,100,400]
    [--repeat 1] [--sources N] [--equal]

Targets as in coverage.py: five folds per repeat for iid and family; worst10 are the weakest tenth. Beside the
estimate's error stands that of a line in the estimated overall score alone ("line"), of the mean of the subtask's own
answers ("own"; the overall estimate where there is none), and of the overall estimate. Coverage at 90 % is shown of all
subtasks, and by how many items are left of them. With --equal every subtask is as much of the score as any other,
whatever its size; with --sources N there are N random sources.
"""

import argparse
from typing import Any

import numpy as np
from coverage import cells  # beside this file

import disco_eval as de
from disco_eval import Items, Responses
from disco_eval.io import open_answers
from disco_eval.predict.subtasks import left_of

LEFT = ((1, 1), (2, 2), (3, 5), (6, 20), (21, 10**9))


def weighing_the_same(r: Responses) -> Responses:
    size = dict(zip(*np.unique(r.items.subtask, return_counts=True), strict=True))
    weight = [1 / size[name] for name in r.items.subtask]
    return Responses(r.models, r.items.having(weight=weight), r.correct, r.probs)


def own_means(answers: Responses, asked: Items, names: list[str], scores: np.ndarray) -> np.ndarray:
    """Mean of every subtask's own answers, (n_models, n_subtasks); the overall estimate where there is none."""
    grades = answers.align(asked.ids).grades()
    member = [asked.subtask == name for name in names]
    return np.stack([grades[:, of].mean(axis=1) if of.any() else scores for of in member], axis=1)


def by_line(c, new: Responses, scores: np.ndarray) -> np.ndarray:
    """Subtask scores where what the anchors leave follows the overall score and nothing else."""
    parts = c.subtasks.parts()
    line, left, known = c.subtask_model.line, left_of(parts), c.answers(new).grades() @ parts
    return np.clip(known + np.clip(line[0] + scores[:, None] * line[1], 0, left), 0, 1)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("responses")
    ap.add_argument("--splits", default="iid,family,top10,worst10")
    ap.add_argument("--anchors", type=int, default=100)
    ap.add_argument("--more", default="0,100,400")
    ap.add_argument("--repeat", type=int, default=1)
    ap.add_argument("--sources", type=int)
    ap.add_argument("--equal", action="store_true")
    args = ap.parse_args()
    r = open_answers(args.responses).load()
    r = weighing_the_same(r) if args.equal else r
    for split in args.splits.split(","):
        found: dict[int, list[Any]] = {int(more): [] for more in args.more.split(",")}
        held: dict[Any, list[Any]] = {(more, of): [] for more in found for of in LEFT}
        for source, target, seed in cells(r, split, args.repeat):
            if args.sources:
                source = np.sort(np.random.default_rng(seed).choice(source, args.sources, replace=False))
            c = de.condense(r.pick(models=source), args.anchors, rng=seed, curve=False)
            new, names = r.pick(models=target), list(c.subtask_names)
            truth = new.subtask_scores()[:, [new.items.subtasks.index(name) for name in names]]
            for more, rows in found.items():
                estimates = c.estimate(new, more=more)
                scores = np.array([e.score for e in estimates])
                value, low, high = (
                    np.array([[getattr(s, k) for s in e.subtasks] for e in estimates]) for k in ("score", "low", "high")
                )
                asked = c.asked(more)
                told = (value, by_line(c, new, scores), own_means(new, asked, names, scores), scores[:, None])
                inside = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
                each = [*(np.abs(v - truth).mean(axis=1) for v in told), inside.mean(axis=1), (high - low).mean(axis=1)]
                rows += np.stack(each, axis=1).tolist()
                left = [int((r.items.subtask == n).sum() - (asked.subtask == n).sum()) for n in names]
                for at_least, at_most in LEFT:
                    some = [k for k, n in enumerate(left) if at_least <= n <= at_most]
                    held[more, (at_least, at_most)] += inside[:, some].ravel().tolist()
        for more, rows in found.items():
            this, line, own, overall, covered, width = 100 * np.mean(rows, axis=0)
            by_left = ", ".join(
                f"{a}{'' if a == b else '+' if b > 10**6 else f'-{b}'}: {100 * np.mean(some):.0f}"
                for a, b in LEFT
                if len(some := held[more, (a, b)])
            )
            errors = f"MAE {this:.2f} (line {line:.2f}, own {own:.2f}, overall {overall:.2f})"
            what = f"{split}, {len(names)} subtasks, {args.anchors} anchors + {more}: {errors}"
            print(f"{what}; covered {covered:.1f}, width {width:.1f}; by items left {by_left}", flush=True)


if __name__ == "__main__":
    main()
