"""What condensations have in the present layout, and did not know in older ones (`disco_eval.artifact.FORMAT`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .predict.base import need
from .responses import Items
from .select.reserve import Reserve

Array = NDArray[Any]


def as_written_now(about: dict[str, Any], arrays: dict[str, Array], n: int, k: int) -> dict[str, Any]:
    """The description of a condensation of ``n`` sources and ``k`` anchors as today; so are ``arrays``, in place."""
    made = about["format"]
    if made == 1:  # knew neither chances nor how sure a score model is
        arrays["anchors.chance"] = np.full(k, np.nan)
        arrays |= {"validation.scale": np.ones(n), "validation.fold": np.full(n, -1)}
        arrays |= {f"validation.{name}": np.full(n, np.nan) for name in ("apart", "leak")}
    if made < 3:  # knew no subtasks, no reserve and no learning curve
        arrays |= {"validation.subtask_error": np.zeros((n, 0)), "validation.curve": np.zeros((0, 3))}
        about = {**about, "subtasks": []}
    if made < 6:  # knew what to expect of models without relatives only
        arrays["validation.nearest"] = np.full(n, np.nan)
    validation = about.get("validation")
    if made < 7 and isinstance(validation, dict):  # began to widen intervals at a fixed place
        nearest = arrays.get("validation.nearest", np.full(n, np.nan))
        near = 0.3 if nearest.dtype.kind == "f" and np.isfinite(nearest).all() else 0.4
        validation = {**validation, "near": near, "cautious": False}
    if made < 8 and isinstance(validation, dict):  # took models with relatives among the sources for strangers too
        about = {**about, "validation": {**validation, "trusts_kin": False}}
    if made < 12 and "subtasks.line" in arrays:  # predicted subtasks whole
        arrays["subtasks.total"] = np.zeros(np.atleast_2d(arrays["subtasks.line"]).shape[1])
    if made < 14:  # learned nothing from further items
        unknown = np.full(n, np.nan)
        arrays |= {f"validation.more_{name}": unknown for name in ("error", "scale")}
        arrays |= {f"relatives.more_{name}": unknown for name in ("error", "scale") if "relatives.error" in arrays}
        if isinstance(validation := about.get("validation"), dict):
            about = {**about, "validation": {**validation, "n_more": 0}}
    if made < 15 and isinstance(validation := about.get("validation"), dict):  # saw no model beyond the sources' scores
        about = {**about, "validation": {**validation, "reaches": False}}
    if made < 16:  # told neither models without relatives apart nor lone ones
        arrays |= {"relatives.has_any": np.ones(n)} if "relatives.error" in arrays else {}
        if isinstance(validation := about.get("validation"), dict):
            about = {**about, "validation": {**validation, "lone": 0.0}}
    names, known = about.get("subtasks"), arrays.get("relatives.subtask_error")
    empty = known is not None and known.shape == (n, 0)  # so an early 13 wrote what it had read from older ones
    if (made < 13 or empty) and "relatives.error" in arrays and isinstance(names, list):  # of their subtasks, nothing
        shape = (n, len(names))
        arrays |= {"relatives.subtask_error": np.full(shape, np.nan), "relatives.subtask_left": np.ones(shape)}
    return about


def count_items_left(
    made: int, arrays: dict[str, Array], names: tuple[str, ...], items: Items, correct: Array, reserve: Reserve | None
) -> None:
    """Add to ``arrays`` how many items the anchors leave of each subtask: formats before 13 knew the share alone.

    What is an item, and how much grades vary, is taken from those in the condensation.
    """
    shape = (len(correct), len(names))
    ones = {"subtasks.size": np.ones(shape[1]), "validation.subtask_left": np.ones(shape)}
    if made < 12 or not names:
        arrays |= {"subtasks.noise": np.zeros(shape[1]), **ones}
        return
    total = need(arrays, "subtasks.total", (shape[1],))
    asked, grades = items, correct
    if reserve is not None:
        asked, grades = items.then(reserve.items), np.concatenate([correct, reserve.grades], axis=1)
    of = [(asked.subtask == name) & (asked.weight > 0) for name in names]
    each = np.array([asked.weight[own].mean() if own.any() else 1.0 for own in of])
    spread = [float(grades[:, own].var(axis=0).mean()) if own.any() else 0.0 for own in of]
    size = np.where(total > 0, np.maximum(total / each, 1.0), 1.0)
    known = np.array([items.weight[items.subtask == name].sum() for name in names])
    left = np.clip(1 - known / np.where(total > 0, total, np.inf), 0.0, 1.0) * size
    arrays |= {
        "subtasks.size": size,
        "subtasks.noise": np.array(spread),
        "validation.subtask_left": np.tile(np.maximum(left, 1.0), (shape[0], 1)),
    }
