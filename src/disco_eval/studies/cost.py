"""What condensing saves and when it has paid for itself (paper, Appendix B)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import DiscoError, FormatError, ValidationError
from .sealed import read_sealed

PAPER_HOURS = {"full": 8.53, "anchors": 0.07, "offline": 3284.05}  # one H100, MMLU, five 32B models
PAPER_SECONDS = {"full": 30739.0, "anchors": 218.0}


@dataclass(frozen=True)
class Cost:
    """Costs in one unit, whatever it is: GPU hours, seconds, money.

    Attributes
    ----------
    full : one model on the whole benchmark. anchors : one model on the anchors. offline : everything done once, above
        all the source models' evaluations.
    full_sd, anchors_sd : standard deviations where several models were measured, else 0.
    """

    full: float
    anchors: float
    offline: float = 0.0
    full_sd: float = 0.0
    anchors_sd: float = 0.0

    def __post_init__(self) -> None:
        for name in ("full", "anchors", "offline"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValidationError(f"{name} is {value}, expected a finite number >= 0")
        if self.full == 0:
            raise ValidationError("a full evaluation that costs nothing cannot be made cheaper")

    @property
    def saved(self) -> float:
        """What every model evaluated on the anchors saves."""
        return self.full - self.anchors

    @property
    def saved_share(self) -> float:
        """The same as a share of a full evaluation, at most 1."""
        return self.saved / self.full

    @property
    def break_even(self) -> int | None:
        """The number of evaluations that pay for the offline stage; None where the anchors save nothing."""
        return math.ceil(self.offline / self.saved) if self.saved > 0 else None


def paper() -> tuple[Cost, Cost]:
    """The paper's own figures, in GPU hours (389 evaluations to break even) and in seconds (99.3 % saved).

    Its two tables round differently: from the hours the saving would be 99.2 %, from the seconds the break-even 388.
    """
    seconds = Cost(**PAPER_SECONDS, offline=3600 * PAPER_HOURS["offline"])
    return Cost(**PAPER_HOURS), seconds


def lm_eval_seconds(path: str | Path) -> list[float]:
    """The evaluation times (seconds) that lm-evaluation-harness recorded, one for each ``results_*.json`` under a path.

    Raises DiscoError where there are none, FormatError where one holds no time.
    """
    root = Path(path)
    files = [root] if root.is_file() else sorted(root.rglob("results*.json"))
    if not files:
        raise DiscoError(f"there is no results_*.json of lm-eval in '{root}'")
    return [_seconds(file) for file in files]


def _seconds(file: Path) -> float:
    try:
        record: Any = json.loads(file.read_text(encoding="utf-8"))
        return float(record["total_evaluation_time_seconds"])  # lm-eval writes it as text
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise FormatError(f"'{file}' holds no total_evaluation_time_seconds ({type(e).__name__}: {e})") from None


def measured(full: list[float], anchors: list[float], offline: float | None, n_sources: int | None) -> Cost:
    """Cost from several measurements: means and sample standard deviations.

    ``offline`` is taken as given; otherwise it is ``n_sources`` full evaluations, or 0 where that is None too (the
    source models' answers were there already).
    """
    if not full or not anchors:
        raise ValidationError("at least one full evaluation and one on the anchors must be measured or given")
    whole, part = float(np.mean(full)), float(np.mean(anchors))
    once = offline if offline is not None else (n_sources or 0) * whole
    return Cost(whole, part, once, _sd(full), _sd(anchors))


def _sd(measurements: list[float]) -> float:
    """Sample standard deviation; 0 of a single measurement."""
    return float(np.std(measurements, ddof=1)) if len(measurements) > 1 else 0.0


def study_seconds(folder: str | Path) -> pl.DataFrame:
    """What choosing, fitting and predicting took in a study, means over runs and splits: benchmark, method, n_anchors,
    n_sources, select_s, predict_s. This is the part of the offline stage that is not the evaluation of source models.

    Raises DiscoError where the folder holds no study with times.
    """
    file = Path(folder) / "times.parquet"
    if not file.is_file():
        raise DiscoError(f"there is no '{file}'; disco study writes it")
    keys = ["benchmark", "method", "n_anchors", "n_sources"]
    return read_sealed(file).group_by(keys, maintain_order=True).agg(pl.col("select_s", "predict_s").mean())
