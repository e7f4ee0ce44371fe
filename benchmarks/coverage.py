"""Errors, interval coverage and alarms of the default on real responses, by split.

python benchmarks/coverage.py RESPONSES.npz [--splits iid,family,top10,top30] [--anchors 100] [--repeat 1]
    [--leak | --sure] [--more 0]

Every target is estimated by a condensation of the sources alone. Coverage is the share of targets whose true score lies
in the interval; width is in points. ``top10+3`` is top10 with the three best models among the sources. With --leak,
30 % of every target's anchors are also made right at random, and the share flagged "odd-answers" is shown against the
share among the honest answers (grades only). With --sure the same with probabilities: the leaked model gives 0.97 to
the label. With --more N the answers to N further items are taken into account too, and of leaked and honest models
"either" counts those flagged "odd-answers" or "anchors-differ".
"""

import argparse
from typing import Any

import numpy as np

import disco_eval as de
from disco_eval import Responses
from disco_eval.io import open_answers


def cells(r, split, repeat):
    """(source, target) positions: five folds per repeat for iid and family, one draw of sources else."""
    ranked = np.lexsort((r.models.ids, r.scores()))
    for seed in range(repeat):
        rng = np.random.default_rng(seed)
        if split.startswith(("top", "worst")):
            order = ranked if split.startswith("top") else ranked[::-1]
            part, _, known = split.removeprefix("top").removeprefix("worst").partition("+")
            share, n = int(part) / 100, r.n_models
            low, best = order[: round((0.5 if share > 0.2 else 0.9) * n)], n - int(known or 0)
            source = np.append(rng.choice(low, round(0.9 * len(low)), replace=False), order[best:])
            yield np.sort(source), order[n - round(share * n) : best], seed
            continue
        group = r.models.ids if split == "iid" else r.models.family if split == "family" else r.models.base
        names = rng.permutation(np.unique(group))
        for f in range(min(5, len(names))):
            out = np.isin(group, names[f::5])
            yield np.flatnonzero(~out), np.flatnonzero(out), 10 * seed + f


def leak(answers, n_anchors, rng, sure):
    """Answers to the anchors, which come first, 30 % of them at random made right, and to further items."""
    items = [rng.choice(n_anchors, round(0.3 * n_anchors), replace=False) for _ in answers.models.ids]
    if not sure:
        right = np.array(answers.correct)
        for row, known in zip(right, items, strict=True):
            row[known] = 1
        return Responses.from_correct(answers.models, answers.items, right)
    probs = np.array(answers.probs, dtype=np.float64)
    for row, known in zip(probs, items, strict=True):
        valid = np.arange(probs.shape[2]) < answers.items.n_choices[known, None]
        row[known] = valid * (0.03 / (answers.items.n_choices[known, None] - 1))
        row[known, answers.items.label[known]] = 0.97
    return Responses.from_probs(answers.models, answers.items, probs)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("responses")
    ap.add_argument("--splits", default="iid,family,top10,top30")
    ap.add_argument("--anchors", type=int, default=100)
    ap.add_argument("--repeat", type=int, default=1)
    kind = ap.add_mutually_exclusive_group()
    kind.add_argument("--leak", action="store_true")
    kind.add_argument("--sure", action="store_true")
    ap.add_argument("--more", type=int, default=0)
    args = ap.parse_args()
    r = open_answers(args.responses)
    if args.leak:
        r = Responses.from_correct(r.models, r.items, r.load().correct)
    for split in args.splits.split(","):
        rows: list[tuple[Any, ...]] = []
        honest, leaked = [], []
        for source, target, seed in cells(r, split, args.repeat):
            c = de.condense(r.pick(models=source), args.anchors, rng=seed, curve=False)
            answers = r.pick(models=target)
            by_level = [c.estimate(answers, level, more=args.more) for level in (0.8, 0.9, 0.95)]
            rows.extend(zip(answers.scores(), *by_level, strict=True))
            if args.leak or args.sure:
                asked = answers.align(c.asked(args.more).ids).load()
                known = leak(asked, args.anchors, np.random.default_rng(seed), args.sure)
                leaked.extend(c.estimate(known, more=args.more))
                honest.extend(c.estimate(asked, more=args.more))
        shown = [f"{split}: {len(rows)} targets, MAE {100 * np.mean([abs(e[1].score - e[0]) for e in rows]):.2f}"]
        for k, level in enumerate((80, 90, 95), 1):
            held = np.mean([e[k].low <= e[0] <= e[k].high for e in rows])
            shown.append(f"{level} %: {100 * held:.1f} w {100 * np.mean([e[k].high - e[k].low for e in rows]):.1f}")
        flags = ("outside-range", "lines-disagree", "odd-answers")
        shown.extend(f"{flag} {100 * np.mean([flag in e[1].flags for e in rows]):.0f} %" for flag in flags)
        if leaked:
            shown.append(f"leaked: odd-answers {100 * np.mean(['odd-answers' in e.flags for e in leaked]):.0f} %")
        if leaked and args.more:
            differ = 100 * np.mean(["anchors-differ" in e.flags for e in leaked])
            both = {"anchors-differ", "odd-answers"}
            either = [100 * np.mean([bool(both & set(e.flags)) for e in part]) for part in (leaked, honest)]
            shown.append(f"anchors-differ {differ:.0f} %, either {either[0]:.0f} % (honest {either[1]:.0f} %)")
        print(" | ".join(shown), flush=True)


if __name__ == "__main__":
    main()
