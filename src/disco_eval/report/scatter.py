"""True against estimated scores, the first picture anyone wants."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..files import new_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[Any]

INK, GRID, BAND = "#222222", "#dddddd", "#0072b2"
SERIES = ("#0072b2", "#d55e00", "#8c8c8c", "#009e73")  # Okabe and Ito: told apart by colour-blind readers
MARKERS = ("o", "s", "^", "D")


def scatter(
    truth: Array, estimates: Mapping[str, Array], path: str | Path, *, title: str, half_width: float | None = None
) -> None:
    """Draw true scores (across) against estimates (up) for one or more methods, a panel each.

    ``truth`` and each estimate are (n_models,) in [0, 1]; they are shown in percent. With ``half_width``, the first
    method's panel shows the interval around the diagonal in which its errors should lie. The ending of ``path`` says
    the format: ``.png``, ``.svg`` or ``.pdf``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(estimates) + 0.4, 4.7), dpi=150, layout="tight")
    axes = np.atleast_1d(figure.subplots(1, len(estimates), sharex=True, sharey=True))
    every = 100 * np.concatenate([truth, *estimates.values()])
    pad = 0.04 * max(1.0, float(np.ptp(every)))
    low, high = float(every.min()) - pad, float(every.max()) + pad
    for k, (name, estimate) in enumerate(estimates.items()):
        _panel(axes[k], 100 * truth, 100 * np.asarray(estimate), k, (low, high), half_width if k == 0 else None)
        error = np.abs(100 * (truth - estimate)).mean()
        axes[k].set_title(f"{name}\nmean error {error:.2f} points", fontsize=9, color=INK, loc="left")
    axes[0].set_ylabel("estimated score (%)")
    axes[len(axes) // 2].set_xlabel("true score on the whole benchmark (%)")
    figure.suptitle(title, fontsize=11, color=INK)
    with new_file(path) as draft:
        figure.savefig(draft, format=Path(path).suffix[1:])


def _panel(ax: Axes, truth: Array, estimate: Array, k: int, limits: tuple[float, float], half: float | None) -> None:
    ends = np.array(limits)
    ax.plot(ends, ends, color=INK, lw=0.8, zorder=1)
    if half is not None:
        ax.fill_between(
            ends,
            ends - 100 * half,
            ends + 100 * half,
            color=BAND,
            alpha=0.12,
            lw=0,
            label="90 % of models should lie here",
        )
        ax.legend(loc="upper left", fontsize=7, frameon=False)
    ax.scatter(truth, estimate, s=20, color=SERIES[k % 4], marker=MARKERS[k % 4], alpha=0.8, lw=0, zorder=2)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    ax.grid(color=GRID, lw=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
