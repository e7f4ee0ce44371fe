"""A benchmark condensed to 100 items, and twelve models that it has never met.

Real classifiers answer 1,300 digits. Some are held out; each is estimated from 100 items, with a 90 % interval.
"""

import sys

import numpy as np
from common import digits, figure, finish

import disco_eval as de

responses = digits(100)
order = np.random.default_rng(0).permutation(responses.n_models)
small = de.condense(responses.pick(models=order[12:]), n_anchors=100, rng=0)
unseen = responses.pick(models=order[:12])
estimates = small.estimate(unseen, level=0.9)
truth = unseen.scores()

ax = figure("true score (%)", "estimate (%)", "12 models never seen, from 100 of 1,300 items")
low = [100 * (e.score - e.low) for e in estimates]
high = [100 * (e.high - e.score) for e in estimates]
ax.errorbar(100 * truth, [100 * e.score for e in estimates], [low, high], fmt="o", capsize=3)
ax.axline((60, 60), slope=1, color="#222222", lw=0.8)
finish(ax, sys.argv[1])
for e, t in zip(estimates, truth, strict=True):
    print(f"{e}   true {100 * t:.1f}")
