"""A study's figures from its saved predictions alone: scatters, curves over anchors, ranks, calibration."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import ValidationError
from ..files import new_file
from ..numerics.metrics import mae_pp, spearman
from ..studies.confidence import FILE as CALIBRATION
from ..studies.confidence import errors_by_calibration
from ..studies.outdated import FIGURE_FORMATS
from ..studies.predictions import Predictions
from .scatter import GRID, INK
from .tables import labels, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[Any]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#222222")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDTHS = {"column": 3.35, "page": 7.0}  # inches, as printed: text stays 7 points in either
TEXT = 7
_PANEL = 1.6


def write_figures(
    predictions: Predictions, folder: str | Path, out: str | Path, kind: str = "svg", width: str = "page"
) -> list[Path]:
    """Draw every figure that a study allows and return the files.

    Parameters
    ----------
    predictions
        The study's table.
    folder
        The study's folder: calibration is drawn where it holds ``calibration.parquet``.
    out
        Where the figures go.
    kind
        ``"svg"``, ``"png"`` or ``"pdf"``.
    width
        ``"column"`` or ``"page"``: figures are drawn for a paper's column (3.35 inches) or page (7 inches), so that
        they need no scaling and their text is 7 points in print.

    Per benchmark and split: ``scatter`` (true against estimated scores) and ``ranks`` of the first run for the largest
    shared number of anchors up to 100, ``curves`` (error and rank over numbers of anchors) where there are several, and
    ``calibration``. Raises ValidationError for another kind or width.
    """
    if kind not in FIGURE_FORMATS:
        raise ValidationError(f"figures are drawn as {', '.join(FIGURE_FORMATS)}, not '{kind}'")
    if width not in WIDTHS:
        raise ValidationError(f"figures are as wide as a {' or a '.join(WIDTHS)}, not '{width}'")
    written = []
    for (benchmark, split), part in predictions.table.group_by(["benchmark", "split"], maintain_order=True):
        name = "-".join(slug(str(w)) for w in (benchmark, split) if w) or "study"
        for what, draw in _drawings(Predictions(part), Path(folder), WIDTHS[width]):
            file = Path(out) / f"{what}-{name}.{kind}"
            figure = draw()
            title = " · ".join(str(w) for w in (benchmark, split) if w)
            figure.suptitle(title, fontsize=TEXT + 1, x=0.01, ha="left", color=INK)
            _save(figure, file, kind)
            written.append(file)
    return written


def _save(figure: Figure, file: Path, kind: str) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"pdf.fonttype": 42}), new_file(file) as draft:  # text in PDFs stays text
        figure.savefig(draft, format=kind, metadata={"Date": None} if kind == "svg" else None)


def _drawings(one: Predictions, folder: Path, width: float) -> Iterator[tuple[str, Callable[[], Figure]]]:
    first = first_run(one)
    yield "scatter", lambda: scatters(first, width)
    yield "ranks", lambda: ranks(first, width)
    if one.table["n_anchors"].n_unique() > 1 and _several_counts(one):
        yield "curves", lambda: curves(one, width)
    if (folder / CALIBRATION).is_file():
        table = errors_by_calibration(Predictions(_at(one)), folder)
        if len(table):  # a benchmark of grades has none, though others of the study may
            yield "calibration", lambda: calibrations(table, width)


def scatters(first: pl.DataFrame, width: float = WIDTHS["page"]) -> Figure:
    """True scores (across) against estimates (up) in percent, a panel for each method."""

    def panel(ax: Axes, truth: Array, estimate: Array, colour: str) -> str:
        ax.scatter(100 * truth, 100 * estimate, s=9, color=colour, alpha=0.8, lw=0)
        rho = spearman(truth, estimate)
        return f"error {mae_pp(truth, estimate):.2f}, rank {rho:.3f}"

    return _panels(first, panel, "true score (%)", "estimated score (%)", width)


def ranks(first: pl.DataFrame, width: float = WIDTHS["page"]) -> Figure:
    """True ranks (across, best is 1) against predicted ranks (up), a panel for each method (paper, Appendix C)."""
    from scipy.stats import rankdata

    def panel(ax: Axes, truth: Array, estimate: Array, colour: str) -> str:
        ax.scatter(rankdata(-truth), rankdata(-estimate), s=9, color=colour, alpha=0.8, lw=0)
        return f"Spearman {spearman(truth, estimate):.3f}"

    return _panels(first, panel, "true rank", "predicted rank", width)


def curves(one: Predictions, width: float = WIDTHS["page"]) -> Figure:
    """Error and rank agreement over numbers of anchors, mean ± sample standard deviation (Figures 5 and 10)."""
    summary = one.summary()
    wide = width > WIDTHS["column"]
    figure = _figure(width, (2.8 if wide else 4.6) + 0.12 * summary["method"].n_unique() / (2 if wide else 1))
    axes = figure.subplots(1, 2) if wide else figure.subplots(2, 1)
    for k, ((name,), part) in enumerate(summary.group_by("method", maintain_order=True)):
        part = part.sort("n_anchors")
        for ax, value, spread in ((axes[0], "mae_pp", "mae_sd"), (axes[1], "spearman", "spearman_sd")):
            ax.errorbar(
                part["n_anchors"].to_numpy(),
                part[value].to_numpy(),
                part[spread].to_numpy() if part[spread].null_count() < len(part) else None,
                label=_label(str(name)),
                color=COLOURS[k % len(COLOURS)],
                marker=MARKERS[k % len(MARKERS)],
                ms=4,
                lw=1.2,
                elinewidth=0.6,
                capsize=2,
            )
    counts = sorted(summary["n_anchors"].unique().to_list())
    for ax, what in zip(axes, ("mean absolute error (points)", "Spearman's rank correlation"), strict=True):
        ax.set_xscale("log")
        ax.set_xticks(counts, [str(c) for c in counts])
        ax.minorticks_off()
        ax.set_xlabel("anchors", fontsize=TEXT)
        ax.set_ylabel(what, fontsize=TEXT)
        _plain(ax)
    axes[0].set_ylim(bottom=0)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2 if wide else 1,
        fontsize=TEXT,
        frameon=False,
    )
    return figure


def calibrations(table: pl.DataFrame, width: float = WIDTHS["page"]) -> Figure:
    """Every target's error against calibration error and mean confidence, a row for each method (Appendix E)."""
    methods = list(dict.fromkeys(table["method"].to_list()))
    figure = _figure(width, width * 0.42 * len(methods) + 0.4)
    axes = np.atleast_2d(figure.subplots(len(methods), 2, sharex="col"))
    for k, name in enumerate(methods):
        part = table.filter(pl.col("method") == name)
        for ax, column, what in zip(
            axes[k], ("ece", "mean_confidence"), ("expected calibration error", "mean confidence"), strict=True
        ):
            x, y = part[column].to_numpy(), part["mae_pp"].to_numpy()
            ax.scatter(x, y, s=9, color=COLOURS[k % len(COLOURS)], alpha=0.8, lw=0)
            ax.set_title(f"{_label(name)}: Pearson {_pearson(x, y)}", fontsize=TEXT, loc="left")
            ax.set_xlabel(what, fontsize=TEXT)
            ax.set_ylabel("error (points)", fontsize=TEXT)
            _plain(ax)
    return figure


def _panels(
    first: pl.DataFrame, panel: Callable[[Axes, Array, Array, str], str], across: str, up: str, width: float
) -> Figure:
    methods = list(dict.fromkeys(first["method"].to_list()))
    columns = min(int(width / _PANEL), len(methods))
    rows = -(-len(methods) // columns)
    figure = _figure(min(width, (_PANEL + 0.3) * columns + 0.4), (_PANEL + 0.45) * rows + 0.4)
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel())
    for k, name in enumerate(methods):
        part = first.filter(pl.col("method") == name)
        note = panel(axes[k], part["truth"].to_numpy(), part["estimate"].to_numpy(), COLOURS[k % len(COLOURS)])
        axes[k].set_title(f"{_label(name)}\n{note}", fontsize=TEXT, loc="left", color=INK)
        _plain(axes[k])
    limits = [min(axes[0].get_xlim()[0], axes[0].get_ylim()[0]), max(axes[0].get_xlim()[1], axes[0].get_ylim()[1])]
    for k, ax in enumerate(axes):
        if k >= len(methods):
            ax.set_visible(False)
            continue
        ax.plot(limits, limits, color=INK, lw=0.7, zorder=0)
        ax.set(xlim=limits, ylim=limits, aspect="equal")
    figure.supxlabel(across, fontsize=TEXT)
    figure.supylabel(up, fontsize=TEXT)
    return figure


def _at(one: Predictions) -> pl.DataFrame:
    """Each method's rows at one number of anchors: 100, or else its nearest to that."""
    keep = []
    for _, part in one.table.group_by("method", maintain_order=True):
        counts = part["n_anchors"].unique().to_list()
        keep.append(part.filter(pl.col("n_anchors") == min(counts, key=lambda c: (abs(c - 100), c))))
    return pl.concat(keep)


def first_run(one: Predictions) -> pl.DataFrame:
    """The first run of every method, at 100 anchors or its nearest to that."""
    table = _at(one)
    return table.filter(pl.col("run") == pl.col("run").min().over("method"))


def _several_counts(one: Predictions) -> bool:
    return bool((one.table.group_by("method").agg(pl.col("n_anchors").n_unique().alias("n"))["n"] > 1).any())


def _label(method: str) -> str:
    _, selection, prediction = labels(method)
    return textwrap.fill(f"{selection}, {prediction}" if prediction else selection, 26)


def _pearson(x: Array, y: Array) -> str:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return "undefined"
    return f"{np.corrcoef(x, y)[0, 1]:.2f}"


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def _plain(ax: Axes) -> None:
    ax.grid(color=GRID, lw=0.5)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=TEXT - 0.5)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
