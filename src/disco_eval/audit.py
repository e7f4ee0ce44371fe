"""What a saved condensation says of its errors, checked before it is believed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .calibration import CrossValidation
from .errors import FormatError
from .predict.base import need
from .relatives import Relatives
from .splits import KEPT_TOGETHER

Array = NDArray[Any]
T = TypeVar("T")

JSON = "condensation.json"


def validation(about: dict[str, Any], arrays: dict[str, Array], n: int, n_subtasks: int) -> CrossValidation:
    checked = field(about, "validation", dict)
    error, n_left = (of_shape(arrays, f"validation.subtask_{name}", (n, n_subtasks)) for name in ("error", "left"))
    _check_left(error, n_left)
    more = tuple(of_shape(arrays, f"validation.more_{name}", (n,)) for name in ("error", "scale"))
    if n_more := whole(checked, "n_more", 10**9):
        _check_more(*more)
    return CrossValidation(
        truth=need(arrays, "sources.scores", (n,)),
        estimate=need(arrays, "validation.estimate", (n,)),
        direct_mae=float(field(checked, "direct_mae", float)),
        direct_items=between(checked, "direct_items", 1.0, 1e12) if "direct_items" in checked else None,
        grouped_by=_kept_together(checked),
        n_folds=field(checked, "n_folds", int),
        scale=need(arrays, "validation.scale", (n,)),
        apart=of_shape(arrays, "validation.apart", (n,)),
        leak=of_shape(arrays, "validation.leak", (n,)),
        fold=need(arrays, "validation.fold", (n,), "i"),
        subtask_error=error,
        subtask_left=n_left,
        curve=need(arrays, "validation.curve", (None, 3)),
        nearest=of_shape(arrays, "validation.nearest", (n,)),
        relatives=relatives(arrays, n, n_subtasks, bool(n_more)) if about["format"] >= 6 else None,
        near=between(checked, "near", 1e-3, 1e3),
        cautious=field(checked, "cautious", bool),
        trusts_kin=field(checked, "trusts_kin", bool),
        reaches=field(checked, "reaches", bool),
        lone=between(checked, "lone", 0.0, 0.49),
        more_error=more[0],
        more_scale=more[1],
        n_more=n_more,
        by_anchors=need(arrays, name, (None, 3)) if (name := "validation.by_anchors") in arrays else np.zeros((0, 3)),
    )


def _check_left(error: Array, n_left: Array) -> None:
    if not (n_left[np.isfinite(error)] > 0).all():
        raise FormatError("the saved errors of subtasks make no sense: of some that were left, no item is")


def _check_more(error: Array, scale: Array) -> None:
    """Refuse errors with further items that no scores can have; NaN fails too."""
    if not ((np.abs(error) <= 1 + 1e-9).all() and (scale >= 0).all() and np.isfinite(scale).all()):
        raise FormatError("the saved errors of sources left out with further items make no sense")


def _kept_together(checked: dict[str, Any]) -> str:
    if (by := str(field(checked, "grouped_by", str))) not in KEPT_TOGETHER:
        raise FormatError(f"{JSON} has grouped_by='{by}', expected one of {', '.join(KEPT_TOGETHER)}")
    return by


def relatives(arrays: dict[str, Array], n_sources: int, n_subtasks: int, more: bool = False) -> Relatives | None:
    names = [f"relatives.{f.name}" for f in fields(Relatives)]
    if not any(name in arrays for name in names):
        return None
    overall = [need(arrays, name, (n_sources,)) for name in names[:3]]
    of_subtasks = [of_shape(arrays, name, (n_sources, n_subtasks)) for name in names[3:5]]
    found = Relatives(*overall, *of_subtasks, *(of_shape(arrays, name, (n_sources,)) for name in names[5:]))
    _check_left(found.subtask_error, found.subtask_left)
    if more:
        _check_more(found.more_error, found.more_scale)
    away = need(arrays, "validation.nearest", (n_sources,))
    if np.abs(found.error).max() > 1 + 1e-9 or found.scale.min() < 0 or min(found.nearest.min(), away.min()) < 0:
        raise FormatError("the errors of sources left out alone make no sense")
    return found


def field(record: dict[str, Any], name: str, kind: type[T]) -> T:
    value = record.get(name)
    names_only = not isinstance(value, list) or all(isinstance(v, str) for v in value)
    if not isinstance(value, kind) or not names_only:
        raise FormatError(f"{JSON} has {name}={str(value)[:60]!r}, expected {kind.__name__}")
    return value


def between(record: dict[str, Any], name: str, low: float, high: float) -> float:
    value = field(record, name, float)
    if not low <= value <= high:
        raise FormatError(f"{JSON} has {name}={value}, expected a number from {low:g} to {high:g}")
    return value


def whole(record: dict[str, Any], name: str, most: int) -> int:
    value = field(record, name, int)
    if isinstance(value, bool) or not 0 <= value <= most:
        raise FormatError(f"{JSON} has {name}={value}, expected a whole number from 0 to {most}")
    return value


def of_shape(arrays: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    if name not in arrays or arrays[name].shape != shape or arrays[name].dtype.kind != "f":
        raise FormatError(f"the saved array '{name}' is missing, or not of real numbers in the shape {shape}")
    return arrays[name]
