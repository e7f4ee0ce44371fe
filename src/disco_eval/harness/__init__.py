"""Running models: lm-evaluation-harness on the anchors alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .callback import DiscoCallback
    from .prompts import Settings
    from .run import load_model, run_anchors

_HOME = {"DiscoCallback": "callback", "Settings": "prompts", "load_model": "run", "run_anchors": "run"}

__all__ = ["DiscoCallback", "Settings", "load_model", "run_anchors"]


def __getattr__(name: str) -> Any:
    """lm_eval and torch load on first use."""
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'disco_eval.harness' has no attribute '{name}'")
