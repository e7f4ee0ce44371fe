"""Estimated scores along a training run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..files import new_file
from .scatter import GRID, INK, SERIES


def learning_curve(
    steps: Sequence[int],
    scores: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    path: str | Path,
    *,
    title: str,
    level: float,
) -> None:
    """Draw estimated scores (in [0, 1], shown in percent) with their intervals of a level against training steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), dpi=150, layout="tight")
    ax = figure.subplots()
    percent = [[100 * v for v in values] for values in (scores, low, high)]
    ax.fill_between(
        steps, percent[1], percent[2], color=SERIES[0], alpha=0.15, lw=0, label=f"{100 * level:g} % interval"
    )
    ax.plot(steps, percent[0], color=SERIES[0], marker="o", ms=4, lw=1.2, label="estimate")
    ax.set_xlabel("training step")
    ax.set_ylabel("estimated score (%)")
    ax.set_title(title, fontsize=10, loc="left", color=INK)
    ax.grid(color=GRID, lw=0.5)
    ax.set_axisbelow(True)
    ax.legend(fontsize=8, frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    with new_file(path) as draft:
        figure.savefig(draft, format=Path(path).suffix[1:])
