"""The long table of a study, from which every other number is derived."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import DiscoError, FormatError, ValidationError, some
from ..io.frames import read_frame
from ..numerics.metrics import mae_pp, spearman
from .sealed import read_sealed, write_sealed

FILE = "predictions.parquet"
SAME_TRUTH = 1e-6  # true scores of single precision are the same to this
_BEYOND = {"truth": 0.0, "estimate": 1.0}  # how far outside [0, 1] values may lie: a line fitted to scores leaves it
KEYS = ("benchmark", "split", "method", "n_anchors")
SCHEMA: dict[str, Any] = {
    "benchmark": pl.String,
    "method": pl.String,
    "split": pl.String,
    "run": pl.Int64,
    "n_anchors": pl.Int64,
    "model": pl.String,
    "truth": pl.Float64,
    "estimate": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "seconds": pl.Float64,
}
_SUMMARY: dict[str, Any] = {
    **{name: SCHEMA[name] for name in KEYS},
    "n_runs": pl.Int64,
    "n_models": pl.Int64,
    "mae_pp": pl.Float64,
    "mae_sd": pl.Float64,
    "spearman": pl.Float64,
    "spearman_sd": pl.Float64,
}
NEEDED = ("method", "run", "n_anchors", "model", "truth", "estimate")


@dataclass(frozen=True, eq=False)
class Predictions:
    """One row for every benchmark, method, split, run, number of anchors and target model.

    Attributes
    ----------
    table : columns benchmark, method, split, run, n_anchors, model, truth, estimate (scores in [0, 1]), low, high and
        seconds (may be null).
    """

    table: pl.DataFrame

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        methods = self.table["method"].n_unique()
        return f"Predictions({len(self)} rows, {methods} methods, {self.table['run'].n_unique()} runs)"

    def summary(self) -> pl.DataFrame:
        """Errors and rank agreement for each benchmark, split, method and number of anchors.

        Columns: the keys, n_runs, n_models (targets in a run, their mean over runs rounded), mae_pp (mean absolute
        error in percentage points) and spearman, means over runs, with mae_sd and spearman_sd, sample standard
        deviations over runs (n - 1), null with a single run. Where the targets are the same in all runs (see
        `same_targets`), they say what other anchors and other draws change, not what other targets would. Spearman is
        NaN where a run's estimates are all equal. Rows in order of first appearance.
        """
        rows = []
        for key, part in self.table.group_by(KEYS, maintain_order=True):
            runs = [r for _, r in part.group_by("run", maintain_order=True)]
            pairs = [(r["truth"].to_numpy(), r["estimate"].to_numpy()) for r in runs]
            mae = np.array([mae_pp(t, e) for t, e in pairs])
            rho = np.array([spearman(t, e) for t, e in pairs])
            size = round(len(part) / len(runs))
            rows.append([*key, len(runs), size, float(mae.mean()), _spread(mae), float(rho.mean()), _spread(rho)])
        return pl.DataFrame(rows, schema=_SUMMARY, orient="row")

    def targets_in_a_run(self) -> tuple[int, int]:
        """The fewest and the most target models that a method had in a run."""
        sizes = self.table.group_by(*KEYS, "run").len()["len"]
        return int(sizes.min()), int(sizes.max())  # type: ignore[arg-type]

    def same_targets(self) -> list[str]:
        """Splits whose target models are the same in all of several runs, in order of first appearance.

        A split that has the same targets on some benchmarks only is named with these: ``"family (arc)"``.
        """
        seen = self.table.select("split", "benchmark", "run", "model").unique(maintain_order=True)
        same: dict[str, dict[str, bool]] = {}
        for (split, benchmark), part in seen.group_by("split", "benchmark", maintain_order=True):
            runs = [frozenset(r["model"].to_list()) for _, r in part.group_by("run")]
            same.setdefault(str(split), {})[str(benchmark)] = len(runs) > 1 and len(set(runs)) == 1
        found = []
        for split, on in same.items():
            names = [benchmark for benchmark, fixed in on.items() if fixed]
            found += [split or "given"] if all(on.values()) else [f"{split or 'given'} ({b})" for b in names]
        return found

    def save(self, path: str | Path) -> None:
        """Write ``predictions.parquet`` into a folder, whole or not at all."""
        write_sealed(self.table, Path(path) / FILE)


def read_predictions(path: str | Path) -> Predictions:
    """A study's table from its folder, or any long table of that layout (``.parquet`` or ``.csv``).

    Needed: method, run, n_anchors, model, truth, estimate. Other columns of the layout are filled where absent:
    benchmark and split with ``""``, low, high and seconds with null; columns beyond it are ignored.

    Raises DiscoError where there is none, FormatError where columns are missing, ValidationError where scores
    are no numbers in [0, 1]; an estimate may lie outside by less than 1.
    """
    file = Path(path) / FILE if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise DiscoError(f"there is no '{file}'; make it with: disco study STORE --out {Path(path)}")
    if file.suffix != ".csv":
        return from_table(read_sealed(file), str(file))
    named = dict.fromkeys(("benchmark", "method", "split", "model"), pl.String)
    table = read_frame(file, ".csv", schema_overrides=named)
    return from_table(table, str(file))


def from_table(table: pl.DataFrame, whose: str = "the table") -> Predictions:
    """Predictions from a long table after checking it; see `read_predictions`."""
    missing = [c for c in NEEDED if c not in table.columns]
    if missing:
        raise FormatError(f"{whose} lacks the columns {', '.join(missing)}; it has {some(table.columns, 12)}")
    for name in ("benchmark", "split"):
        if name not in table.columns:
            table = table.with_columns(pl.lit("").alias(name))
    for name in ("low", "high", "seconds"):
        if name not in table.columns:
            table = table.with_columns(pl.lit(None, dtype=pl.Float64).alias(name))
    try:
        table = table.select([pl.col(name).cast(dtype) for name, dtype in SCHEMA.items()])
    except pl.exceptions.PolarsError as e:
        raise FormatError(f"{whose} has a column of the wrong type: {str(e).splitlines()[0]}") from None
    _check(table, whose)
    return Predictions(table)


def _check(table: pl.DataFrame, whose: str) -> None:
    if not len(table):
        raise ValidationError(f"{whose} holds no predictions")
    for name in ("truth", "estimate"):
        values = table[name].fill_null(float("nan")).to_numpy()
        if not np.isfinite(values).all():
            raise ValidationError(
                f"{whose}: {(~np.isfinite(values)).sum()} values of '{name}' are missing or no numbers"
            )
    for name in ("n_anchors", "run", "model", "method"):
        if table[name].null_count():
            raise ValidationError(f"{whose}: {name} is missing in {table[name].null_count()} rows")
    for name, beyond in _BEYOND.items():
        values = table[name].to_numpy()
        if values.min() < -beyond or values.max() > 1 + beyond:
            raise ValidationError(
                f"{whose}: {name} goes from {values.min():.4g} to {values.max():.4g}, expected scores in [0, 1]; "
                "divide percent by 100"
            )
    told = table.group_by("benchmark", "split", "run", "model", maintain_order=True)
    apart = told.agg((pl.col("truth").max() - pl.col("truth").min()).alias("by")).filter(pl.col("by") > SAME_TRUTH)
    if len(apart):
        whom = some(apart["model"].unique(maintain_order=True).to_list())
        raise ValidationError(
            f"{whose}: the methods do not agree on the truth of {whom} in one run; a model has one true score on a "
            "benchmark"
        )
    keys = [*KEYS, "run", "model"]
    if table.select(keys).is_duplicated().any():
        raise ValidationError(f"{whose} has a model twice in one run of a method")


def _spread(of_runs: NDArray[Any]) -> float | None:
    """Sample standard deviation of one number for each run, (n_runs,); one run tells none."""
    return float(of_runs.std(ddof=1)) if len(of_runs) > 1 else None
