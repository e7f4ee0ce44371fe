"""Our default against the paper's rows: ratios of errors from a study with the preset ``beyond``.

    disco study mmlu_10k.npz --methods beyond --out beyond-1
    disco study arc_challenge.npz ifeval.npz --methods beyond --split random,family,top10,top30 --out beyond-2
    python benchmarks/beyond.py beyond-1 beyond-2

"Paper" is the best of the rows PDS or JSD with forest or kNN, picked after the fact in its favour for every cell;
"direct" the better of plain means over random items and over items spread by difficulty. Standard errors are over runs.
"Worst" is the largest error of all runs, in brackets the largest of a run, meant over the runs: the paper's rows choose
the same anchors in every run where the sources are the same, so theirs is then the largest of one draw, ours of many.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from disco_eval import read_predictions

PAPER = ("pds+knn", "pds+forest", "jsd+knn", "jsd+forest")
DIRECT = ("random+direct", "uniform+direct", "by difficulty+direct")
TOPPED = "default, as many more when alarmed"


def cells(table: pl.DataFrame) -> pl.DataFrame:
    """Mean error (points), its standard error over runs, and the worst error of every method and cell, and of a run."""
    error = 100 * (pl.col("estimate") - pl.col("truth")).abs()
    by = ["benchmark", "split", "n_anchors", "method"]
    runs = table.group_by([*by, "run"]).agg(error.mean().alias("mae"), error.max().alias("worst"))
    return runs.group_by(by).agg(
        pl.col("mae").mean(),
        (pl.col("mae").std() / pl.len().sqrt()).alias("se"),  # null with one run
        pl.col("worst").max(),
        pl.col("worst").mean().alias("worst_of_run"),
    )


def best(cell: pl.DataFrame, names: Sequence[str]) -> tuple[str, float, float | None, str]:
    row = cell.filter(pl.col("method").is_in(names)).sort("mae").row(0, named=True)
    return row["method"], row["mae"], row["se"], f"{row['worst']:.1f} ({row['worst_of_run']:.1f})"


def _shown(se: float | None) -> str:
    return "" if se is None else f"{se:.2f}"


def by_model(cell: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Mean error over runs of every target model by every method that there is, (n_models, n_methods)."""
    error = (pl.col("estimate") - pl.col("truth")).abs()
    mean = cell.filter(pl.col("method").is_in(names)).group_by("model", "method").agg(error.mean().alias("error"))
    wide = mean.pivot("method", index="model", values="error").sort("model").drop_nulls()
    return wide.select(name for name in names if name in wide.columns).to_numpy()


def ratios_of_other_targets(cells: Sequence[np.ndarray], draws: int = 1000) -> tuple[float, float]:
    """5 % and 95 % quantile of the geometric mean over ``cells`` of the ratio, had other models been the targets.

    Bootstrap over target models, each counted once; the paper's best row is picked anew in every draw, which favours
    it where models are few. The first column is the default.
    """
    rng, found = np.random.default_rng(0), np.zeros(draws)
    for errors in cells:
        drawn = rng.integers(len(errors), size=(draws, len(errors)))
        mae = errors[drawn].mean(axis=1)
        found += np.log(mae[:, 0] / mae[:, 1:].min(axis=1)) / len(cells)
    low, high = np.exp(np.quantile(found, [0.05, 0.95]))
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", type=Path, nargs="+")
    given = parser.parse_args().studies
    predictions = pl.concat([read_predictions(folder).table for folder in given])
    table = cells(predictions)
    ratios: dict[tuple[str, int, str], list[float]] = {}
    print(
        "| set | split | anchors | default | se | worst | paper | worst | direct | se | /paper | /direct |"
        " topped up | worst |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for (benchmark, split, n), cell in table.sort("benchmark", "split", "n_anchors").group_by(
        "benchmark", "split", "n_anchors", maintain_order=True
    ):
        if "default" not in cell["method"].to_list():  # Metabench's own numbers of anchors
            continue
        _, mae, se, worst = best(cell, ["default"])
        _, topped, _, topped_worst = best(cell, [TOPPED])
        paper, theirs, _, their_worst = best(cell, PAPER)
        direct, plain, plain_se, _ = best(cell, DIRECT)
        ratios.setdefault((str(split), int(str(n)), "default"), []).append(mae / theirs)
        ratios.setdefault((str(split), int(str(n)), "topped up"), []).append(topped / theirs)
        above = " !" if mae > plain + max(se or 0.0, plain_se or 0.0) else ""
        print(
            f"| {benchmark} | {split} | {n} | {mae:.2f} | {_shown(se)} | {worst} | {theirs:.2f} {paper} | "
            f"{their_worst} | {plain:.2f} {direct} | {_shown(plain_se)} | {mae / theirs:.2f} | "
            f"{mae / plain:.2f}{above} | {topped:.2f} | {topped_worst} |"
        )
    print("\ngeometric mean of the ratio to the paper's best row, over sets:")
    for (split, n, which), values in sorted(ratios.items(), key=lambda kv: (kv[0][1], kv[0][0], kv[0][2])):
        of_split = predictions.filter(pl.col("split") == split, pl.col("n_anchors") == n)
        name = "default" if which == "default" else TOPPED
        errors = [
            by_model(cell, [name, *PAPER]) for cell in of_split.partition_by("benchmark") if name in cell["method"]
        ]
        low, high = ratios_of_other_targets(errors)
        mean = np.exp(np.mean(np.log(values)))
        print(f"  {n:4d} anchors  {split:14s} {which:10s} {mean:.2f} (other targets: {low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
