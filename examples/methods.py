"""Error against the number of anchors, for the default, the paper's method and plain random items.

Each of two runs holds whole families of classifiers out. On these classifiers the order is not the paper's; on yours
it may be.
"""

import sys

from common import digits, figure, finish

import disco_eval as de

table = de.study(["auto+auto", "pds+forest", "random+direct"], digits(100), "family", [10, 30, 100], 2, 0)
summary = table.summary()

ax = figure("anchors", "mean absolute error (points)", "Three ways to estimate a score")
for (name,), part in summary.group_by("method", maintain_order=True):
    ax.errorbar(part["n_anchors"], part["mae_pp"], part["mae_sd"], marker="o", capsize=3, label=name)
ax.set_xscale("log")
ax.set_xticks([10, 30, 100], ["10", "30", "100"])
ax.set_ylim(bottom=0)
ax.legend(frameon=False)
finish(ax, sys.argv[1])
print(summary)
