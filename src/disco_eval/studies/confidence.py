"""How confident models are and how far that can be trusted: what the paper holds against DISCO's errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..errors import DiscoError, ValidationError
from ..responses import Responses
from .predictions import Predictions
from .sealed import read_sealed, write_sealed

Array = NDArray[Any]

FILE = "calibration.parquet"
N_BINS = 15


def calibration(responses: Responses, n_bins: int = N_BINS) -> tuple[Array, Array]:
    """Mean confidence and expected calibration error of every model, both (n_models,) in [0, 1].

    Confidence is the highest probability of an item. The error is the mean over ``n_bins`` equal bins of confidence, by
    their share of the items, of |mean confidence - mean correctness| (Naeini et al., 2015; paper, Appendix E, which
    does not say how many bins it took). Items count equally.

    Raises ValidationError where only grades are known.
    """
    if responses.probs is None:
        raise ValidationError("calibration needs the probabilities of the choices, but the responses hold grades only")
    n_models = responses.n_models
    count, confident, right = (np.zeros((n_models, n_bins)) for _ in range(3))
    correct = responses.grades()
    for rows, columns, block in responses.blocks():
        top = block.max(axis=2).astype(np.float64)
        place = np.minimum((top * n_bins).astype(np.int64), n_bins - 1)
        flat = (place + np.arange(len(top))[:, None] * n_bins).ravel()
        size = len(top) * n_bins
        own = correct[rows, columns]
        for total, weights in ((count, None), (confident, top.ravel()), (right, own.ravel())):
            total[rows] += np.bincount(flat, weights=weights, minlength=size).reshape(-1, n_bins)
    mean: Array = confident.sum(axis=1) / count.sum(axis=1)
    error: Array = np.abs(confident - right).sum(axis=1) / count.sum(axis=1)
    return mean, error


def write_calibration(responses: Mapping[str, Responses], out: str | Path) -> None:
    """Keep every model's calibration beside a study's predictions; benchmarks of grades have none.

    That of a study that stood there before is removed.
    """
    tables = []
    for name, r in responses.items():
        if r.probs is not None:
            confidence, ece = calibration(r)
            columns = {"model": r.models.ids.tolist(), "mean_confidence": confidence, "ece": ece}
            tables.append(pl.DataFrame({"benchmark": [name] * r.n_models, **columns}))
    if tables:
        write_sealed(pl.concat(tables), Path(out) / FILE)
    else:
        (Path(out) / FILE).unlink(missing_ok=True)


def errors_by_calibration(predictions: Predictions, folder: str | Path) -> pl.DataFrame:
    """Every target's mean absolute error (points, over runs) beside its calibration error and mean confidence.

    Columns: benchmark, split, method, n_anchors, model, mae_pp, ece, mean_confidence.

    Raises DiscoError where the study's folder holds no calibration.
    """
    file = Path(folder) / FILE
    if not file.is_file():
        raise DiscoError(f"there is no '{file}': calibration needs a study of responses with probabilities")
    error = (100 * (pl.col("truth") - pl.col("estimate")).abs()).mean().alias("mae_pp")
    keys = ["benchmark", "split", "method", "n_anchors", "model"]
    by_model = predictions.table.group_by(keys, maintain_order=True).agg(error)
    return by_model.join(read_sealed(file), on=["benchmark", "model"], how="inner", maintain_order="left").select(
        [*keys, "mae_pp", "ece", "mean_confidence"]
    )
