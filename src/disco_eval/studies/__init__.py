"""Comparing methods on responses that are known in full: the paper's tables and analyses, and one's own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .confidence import calibration, errors_by_calibration
    from .cost import Cost
    from .methods import SSEPY, Method, Pair, method
    from .plans import SPLITS, SplitPlan, split_plan
    from .predictions import Predictions, from_table, read_predictions
    from .presets import PRESETS, Preset, preset
    from .run import study

_HOME = {
    "cost": ("Cost",),
    "confidence": ("calibration", "errors_by_calibration"),
    "methods": ("SSEPY", "Method", "Pair", "method"),
    "plans": ("SPLITS", "SplitPlan", "split_plan"),
    "predictions": ("Predictions", "from_table", "read_predictions"),
    "presets": ("PRESETS", "Preset", "preset"),
    "run": ("study",),
}

__all__ = [
    "PRESETS",
    "SPLITS",
    "SSEPY",
    "Cost",
    "Method",
    "Pair",
    "Predictions",
    "Preset",
    "SplitPlan",
    "calibration",
    "errors_by_calibration",
    "from_table",
    "method",
    "preset",
    "read_predictions",
    "split_plan",
    "study",
]


def __getattr__(name: str) -> Any:
    """Names load the module they live in on first use."""
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f".{module}", __name__), name)
    raise AttributeError(f"module 'disco_eval.studies' has no attribute '{name}'")
