"""When not to trust it: models better than every source.

The condensation learns from the weaker two thirds. Beyond their range its intervals widen, and the flag
`outside-range` goes up.
"""

import sys

import numpy as np
from common import digits, figure, finish

import disco_eval as de

responses = digits(100)
order = np.argsort(responses.scores())
weak, rest = order[:66], order[66:]
small = de.condense(responses.pick(models=weak), n_anchors=60, rng=0)
strong = responses.pick(models=rest)
estimates, truth = small.estimate(strong), 100 * strong.scores()

ax = figure("true score (%)", "error (points), with its interval", "Models above every source model")
for flagged, marker in ((False, "o"), (True, "^")):
    at = [k for k, e in enumerate(estimates) if ("outside-range" in e.flags) == flagged]
    if at:
        error = [100 * estimates[k].score - truth[k] for k in at]
        half = [50 * (estimates[k].high - estimates[k].low) for k in at]
        label = "flagged outside-range" if flagged else "not flagged"
        ax.errorbar(truth[at], error, half, fmt=marker, capsize=2, label=label)
ax.axhline(0, color="#222222", lw=0.8)
ax.axvline(100 * small.source_scores.max(), color="#222222", lw=0.8, ls="--")
ax.legend(frameon=False)
finish(ax, sys.argv[1])
