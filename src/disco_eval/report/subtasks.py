"""The parts of a report that look into a benchmark's subtasks, and at how many anchors and source models are enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..condensation import Condensation
from . import charts
from .page import Data, Figure, Section, Table, Value

Array = NDArray[Any]

MOST_NAMED = 40  # models, up to which there is room for their names
MOST_ROWS = 2000  # of a table


def estimated(models: Sequence[tuple[str, Sequence[dict[str, Any]]]]) -> list[Section]:
    """Estimated scores of every subtask (records with name, score, low, high, n_anchors), none where there are none.

    Of one model with intervals; of several as a heat map, models in the order given.
    """
    known = [(model, list(found)) for model, found in models if found]
    if not known:
        return []
    figure = _one(*known[0]) if len(known) == 1 else _several(known)
    words = ["What was answered of a subtask counts as it is; the rest of it is told by its relation to the others."]
    table = Table("Every subtask", figure.data) if len(known) == 1 else _each(known)
    return [Section("subtask-scores", "By subtask", words, [figure], [table])]


def _one(model: str, found: list[dict[str, Any]]) -> Figure:
    rows: list[tuple[Value, ...]] = [
        (s["name"], *(100 * s[k] for k in ("score", "low", "high")), s["n_anchors"])
        for s in sorted(found, key=lambda s: -s["score"])
    ]
    data = Data("subtask-estimates", ("subtask", "estimate", "low", "high", "n_anchors"), rows)
    spec = charts.forest("subtask", with_truth=False, flagged=False)
    alt = f"Forest plot of the estimated scores of {model} in {len(rows)} subtasks."
    return Figure("subtask-forest", "Estimated scores", alt, spec, data, scroll=len(rows) > 60)


def _each(known: list[tuple[str, list[dict[str, Any]]]]) -> Table:
    """Every model's estimate of every subtask with its interval; those of the best models where there are many."""
    shown = known[: max(1, MOST_ROWS // len(known[0][1]))]
    rows: list[tuple[Value, ...]] = [
        (model, s["name"], *(100 * s[k] for k in ("score", "low", "high")), s["n_anchors"])
        for model, found in shown for s in found
    ]  # fmt: skip
    data = Data("subtask-intervals", ("model", "subtask", "estimate", "low", "high", "n_anchors"), rows)
    note = f"The {len(shown)} best of {len(known)} models; about.json has all." if len(shown) < len(known) else ""
    return Table("Every subtask of every model", data, note)


def _several(known: list[tuple[str, list[dict[str, Any]]]]) -> Figure:
    names = [s["name"] for s in known[0][1]]
    scores = np.round(100 * np.array([[s["score"] for s in found] for _, found in known]), 3)
    order = np.argsort(-scores.mean(axis=0), kind="stable")
    counts = [s["n_anchors"] for s in known[0][1]]
    rows: list[tuple[Value, ...]] = [(names[k], counts[k], *scores[:, k].tolist()) for k in order]
    data = Data("subtask-estimates", ("subtask", "n_anchors", *(model for model, _ in known)), rows)
    alt = f"Heat map of the estimated scores of {len(known)} models in {len(names)} subtasks."
    spec = charts.subtask_heat(len(names), named=len(known) <= MOST_NAMED)
    note = "A column for each model, best on the left; the easiest subtask on top."
    return Figure("subtask-heat", "Estimated scores (%)", alt, spec, data, note, canvas=scores.size > 3000)


def errors(names: Sequence[str], mae: Array, counts: Mapping[str, Sequence[int]], whom: str) -> list[Section]:
    """How far off subtasks' estimates are: ``mae`` is (n_subtasks,) the mean absolute error, in [0, 1].

    ``counts`` are further columns: how many anchors each has, and items.
    """
    if not len(names) or not len(mae):
        return []
    mae = 100 * mae
    order = np.argsort(-mae, kind="stable")
    rows: list[tuple[Value, ...]] = [(names[k], float(mae[k]), *(count[k] for count in counts.values())) for k in order]
    data = Data("subtask-errors", ("subtask", "mae_pp", *counts), rows)
    alt = f"Bar chart of the mean error in {len(names)} subtasks, of {whom}."
    spec = charts.bars("subtask", "mae_pp", "mean error (points)")
    figure = Figure("subtask-error", f"Mean error, {whom}", alt, spec, data, scroll=len(names) > 30)
    words = ["Subtasks are estimated too: their own anchors count as they are, all anchors tell of the rest."]
    return [Section("subtask-errors", "Error by subtask", words, [figure], [Table("Every subtask", data)])]


def anchors_curve(c: Condensation) -> list[Figure]:
    """What the error was with other numbers of anchors, where an error was asked for."""
    tried = c.validation.by_anchors
    if not len(tried):
        return []
    kept = (len(c.anchors), c.validation.mae, c.validation.mae_se)
    rows: list[tuple[Value, ...]] = [
        (what, int(n), 100 * mae, 100 * se) for what, points in (("tried", tried.tolist()), ("kept", [kept]))
        for n, mae, se in points
    ]  # fmt: skip
    data = Data("by-anchors", ("what", "n_anchors", "mae_pp", "se_pp"), rows)
    asked = c.provenance.get("error_asked")
    wanted = f" to reach {100 * asked:.2f} points, the dashed line" if isinstance(asked, float) else ""
    note = f"Orange: {len(c.anchors):,} anchors were kept{wanted}; their own error was measured anew."
    alt = f"Line of the error over the number of anchors, {len(rows)} points, the last of them what was kept."
    chart = charts.error_over("n_anchors", "anchors", kept=True, asked=100 * asked if asked else None)
    return [Figure("anchors-curve", "How many anchors does it take?", alt, chart, data, note)]


def sources_curve(c: Condensation) -> list[Figure]:
    """What the error was with fewer source models, where that was measured and is any."""
    curve = c.validation.curve
    if len(curve) < 2 or not c.validation.mae:
        return []
    rows: list[tuple[Value, ...]] = [(int(n), 100 * mae, 100 * se) for n, mae, se in curve.tolist()]
    data = Data("sources", ("n_sources", "mae_pp", "se_pp"), rows)
    gain, clear = c.validation.more_sources()
    more = (
        f"Twice as many would save about {100 * gain:.2f} points."
        if clear
        else "What more of them would save is lost in noise."
    )
    alt = f"Line of the error over the number of source models, {len(rows)} points."
    return [
        Figure(
            "sources-curve",
            "Would more source models help?",
            alt,
            charts.error_over("n_sources", "source models"),
            data,
            more,
        )
    ]
