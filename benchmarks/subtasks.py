"""Errors and interval coverage of subtasks' scores on real responses, with and without further items.

python benchmarks/subtasks.py RESPONSES [--anchors 100] [--more 0,100,400] [--repeat 3] [--equal]

A fifth of the models are targets, drawn anew in every repeat. Beside the estimate's error stands that of the mean of
the subtask's own answers (the estimated overall score where there is none), and that of the overall score. With --equal
every subtask is as much of the score as any other, whatever its size.
"""

import argparse

import numpy as np

import disco_eval as de
from disco_eval import Items, Responses
from disco_eval.io import open_answers


def weighing_the_same(r: Responses) -> Responses:
    size = dict(zip(*np.unique(r.items.subtask, return_counts=True), strict=True))
    weight = [1 / size[name] for name in r.items.subtask]
    return Responses(r.models, r.items.having(weight=weight), r.correct, r.probs)


def own_means(answers: Responses, asked: Items, names: list[str], scores: np.ndarray) -> np.ndarray:
    """Mean of every subtask's own answers, (n_models, n_subtasks); the overall estimate where there is none."""
    grades = answers.align(asked.ids).grades()
    member = [asked.subtask == name for name in names]
    return np.stack([grades[:, of].mean(axis=1) if of.any() else scores for of in member], axis=1)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("responses")
    ap.add_argument("--anchors", type=int, default=100)
    ap.add_argument("--more", default="0,100,400")
    ap.add_argument("--repeat", type=int, default=3)
    ap.add_argument("--equal", action="store_true")
    args = ap.parse_args()
    r = open_answers(args.responses).load()
    r = weighing_the_same(r) if args.equal else r
    found = {int(more): [] for more in args.more.split(",")}
    for seed in range(args.repeat):
        mixed = np.random.default_rng(seed).permutation(r.n_models)
        target, source = np.sort(mixed[: r.n_models // 5]), np.sort(mixed[r.n_models // 5 :])
        c = de.condense(r.pick(models=source), args.anchors, rng=seed, curve=False)
        new, names = r.pick(models=target), list(c.subtask_names)
        truth = new.subtask_scores()[:, [new.items.subtasks.index(name) for name in names]]
        for more, rows in found.items():
            estimates = c.estimate(new, more=more)
            scores = np.array([e.score for e in estimates])
            value, low, high = (
                np.array([[getattr(s, k) for s in e.subtasks] for e in estimates]) for k in ("score", "low", "high")
            )
            plain = own_means(new, c.asked(more), names, scores)
            held = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
            errors = [np.abs(v - truth).mean() for v in (value, plain, scores[:, None])]
            rows.append([*errors, held.mean(), (high - low).mean()])
    for more, rows in found.items():
        this, plain, overall, held, width = 100 * np.mean(rows, axis=0)
        print(
            f"{len(names)} subtasks, {args.anchors} anchors + {more}: MAE {this:.2f}, own answers {plain:.2f}, overall "
            f"score {overall:.2f}; 90 %: {held:.1f} covered, width {width:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
