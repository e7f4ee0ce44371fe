"""Which items are chosen: spread over all difficulties, or where models disagree most.

Each dot is an item: how many models get it right, and how far they disagree. The default spreads its anchors over all
difficulties; the predictive diversity score takes the top.
"""

import sys

from common import digits, figure, finish

import disco_eval as de
from disco_eval.numerics.disagreement import Disagreement

responses = digits(100)
right = 100 * responses.correct.mean(axis=0)
spread = Disagreement(responses.n_items, 10).update(responses.probs).pds()

ax = figure("models that are right (%)", "disagreement (PDS)", "60 anchors of 1,300 items, chosen in two ways")
ax.scatter(right, spread, s=6, color="#bbbbbb", label="every item")
for name, marker in (("auto", "o"), ("pds", "^")):
    chosen = de.select.selector(name)(responses, 60, 0).positions
    ax.scatter(right[chosen], spread[chosen], s=22, marker=marker, label=f"{name}")
ax.legend(frameon=False)
finish(ax, sys.argv[1])
