"""Condense a benchmark to about 100 items and predict a model's full score from its answers on those alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import errors, io, predict, select, splits, studies
    from .artifact import load
    from .comparison import Comparison, compare
    from .condensation import Condensation
    from .condensing import condense, update
    from .errors import AlignmentError, DiscoError, FormatError, ValidationError
    from .estimates import Estimate
    from .predict import ScoreModel, SignatureModel, predictor, signature
    from .responses import Items, Models, Responses
    from .select import Anchors
    from .store import open_responses
    from .studies import Pair, Predictions, read_predictions, study

_MODULES = ("errors", "io", "predict", "select", "splits", "studies")
_FROM = {
    "artifact": ("load",),
    "comparison": ("Comparison", "compare"),
    "condensation": ("Condensation",),
    "condensing": ("condense", "update"),
    "errors": ("AlignmentError", "DiscoError", "FormatError", "ValidationError"),
    "estimates": ("Estimate",),
    "predict": ("ScoreModel", "SignatureModel", "predictor", "signature"),
    "responses": ("Items", "Models", "Responses"),
    "select": ("Anchors",),
    "store": ("open_responses",),
    "studies": ("Pair", "Predictions", "read_predictions", "study"),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}

__all__ = [
    "AlignmentError",
    "Anchors",
    "Comparison",
    "Condensation",
    "DiscoError",
    "Estimate",
    "FormatError",
    "Items",
    "Models",
    "Pair",
    "Predictions",
    "Responses",
    "ScoreModel",
    "SignatureModel",
    "ValidationError",
    "compare",
    "condense",
    "errors",
    "io",
    "load",
    "open_responses",
    "predict",
    "predictor",
    "read_predictions",
    "select",
    "signature",
    "splits",
    "studies",
    "study",
    "update",
]


def __getattr__(name: str) -> Any:
    """Names load the module they live in on first use, so ``import disco_eval`` costs nothing."""
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'disco_eval' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
