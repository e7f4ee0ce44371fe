"""Vega-Lite specifications of a report's figures, without their data; colours are the style sheet's variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Spec = dict[str, Any]

INK, SOFT, LINE, PAPER = "var(--ink)", "var(--soft)", "var(--line)", "var(--paper)"
MAIN, WARN = "var(--c0)", "var(--c1)"
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_BARE = {"labels": False, "ticks": False, "domain": False, "grid": False}
_GRADIENT = {"gradientLength": 140, "labelColor": "#808080"}
_INTERVAL = [("estimate", ".1f"), ("low", ".1f"), ("high", ".1f")]
_TITLES = {
    "model": "model", "truth": "true %", "estimate": "estimate %", "low": "low %", "high": "high %",
    "error": "error (points)", "flags": "flags", "item": "item", "subtask": "subtask", "right": "sources right %",
    "tells": "agreement", "criterion": "criterion", "method": "method", "n_anchors": "anchors", "mae_pp": "mean error",
    "mae_sd": "± sd", "spearman": "rank correlation", "spearman_sd": "± sd", "step": "step", "checkpoint": "checkpoint",
    "value": "answer", "nominal": "nominal %", "covered": "truth inside %", "chance": "chance %",
}  # fmt: skip


def forest(name: str = "model", *, with_truth: bool, flagged: bool) -> Spec:
    """Everyone's estimate with its interval, best first; a cross-stroke where its true score lies."""
    # names of hub models differ at their ends: up to 300 pixels, where that leaves most of the width to the chart
    axis = {"grid": False, "domain": False, "labelLimit": {"expr": "clamp(containerSize()[0] / 3, 120, 300)"}}
    y = {"field": name, "type": "nominal", "sort": None, "title": None, "axis": axis}
    tip = _tip([(name, None), *_INTERVAL, *([("truth", ".1f"), ("error", "+.1f")] if with_truth else [])], flagged)
    colour = _flag_colour(flagged)

    def across(field: str) -> Spec:
        title = "score on the whole benchmark (%)" if name == "model" else "score (%)"
        return {**_score(field, title), "axis": {"orient": "top"}}

    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35, "strokeCap": "round"},
            "encoding": {
                "x": across("low"),
                "x2": {"field": "high"},
                **colour,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {"x": across("estimate"), **colour},
        },
    ]
    if with_truth:
        layers.append({
            "mark": {"type": "tick", "thickness": 2.5, "size": 14, "color": INK},
            "encoding": {"x": across("truth")},
        })  # fmt: skip
    return _spec({"step": 20}, encoding={"y": y, "tooltip": tip}, layer=layers)


def against(
    limits: tuple[float, float], *, intervals: bool, flagged: bool, height: int = 340, colour: str = MAIN
) -> Spec:
    """True scores across, estimates up; on the line both are equal."""
    tip = _tip([("model", None), ("truth", ".1f"), *_INTERVAL[: 3 if intervals else 1], ("error", "+.1f")], flagged)
    x = _score("truth", "true score (%)", domain=limits)
    by_flag = _flag_colour(flagged, colour)
    layers = [_diagonal(limits)]
    if intervals:
        layers.append({
            "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.4},
            "encoding": {"x": x, "y": _score("low", "estimate (%)", domain=limits), "y2": {"field": "high"}, **by_flag},
        })  # fmt: skip
    layers.append({
        "mark": {"type": "point", "filled": True, "size": 64, "opacity": 0.9},
        "encoding": {"x": x, "y": _score("estimate", "estimate (%)", domain=limits), "tooltip": tip, **by_flag},
    })  # fmt: skip
    return _spec(height, layer=layers)


def heat(n_models: int) -> Spec:
    """Answers of models (down, best first) to anchors (across, hard to easy)."""
    names = {"name": "model", "number": "true %", "column": "item", "value": "answer"}
    encoding = {
        "x": {"field": "place", "type": "ordinal", "axis": {**_BARE, "title": "anchors, hard to easy →"}},
        "y": {"field": "row", "type": "ordinal", "axis": {**_BARE, "title": "← source models, best on top"}},
        "color": {
            "field": "value",
            "type": "quantitative",
            "scale": {"scheme": "cividis", "domain": [0, 1]},
            "legend": _GRADIENT | {"title": "right answer (0 to 1)"},
        },
        "tooltip": [{"field": k, "title": v} for k, v in names.items()],
    }
    return _spec(
        {"step": max(1, min(8, 420 // n_models))}, mark={"type": "rect"}, encoding=encoding, usermeta={"matrix": True}
    )


def subtask_heat(n_subtasks: int, *, named: bool) -> Spec:
    """Scores of models (across) in subtasks (down); models are ``named`` where they are few."""
    across: Spec = {"field": "place", "type": "ordinal", "axis": {**_BARE, "title": "models, best to worst →"}}
    if named:
        axis = {"ticks": False, "domain": False, "grid": False, "labelAngle": -90, "labelLimit": 120, "title": None}
        across = {"field": "column", "type": "nominal", "sort": None, "axis": axis}
    names = {"column": "model", "name": "subtask", "value": "estimate %", "number": "anchors"}
    encoding = {
        "x": across,
        "y": {
            "field": "name",
            "type": "nominal",
            "sort": None,
            "title": None,
            "axis": {"ticks": False, "domain": False, "grid": False, "labelFontSize": 11},
        },
        "color": {
            "field": "value",
            "type": "quantitative",
            "scale": {"scheme": "cividis"},
            "legend": _GRADIENT | {"title": "estimate (%)"},
        },
        "tooltip": [{"field": k, "title": v} for k, v in names.items()],
    }
    height = {"step": max(14, min(24, 600 // n_subtasks))}
    return _spec(height, mark={"type": "rect"}, encoding=encoding, usermeta={"matrix": True})


def error_over(field: str, title: str, *, kept: bool = False, asked: float | None = None) -> Spec:
    """Error over the number of source models or anchors, with its standard error.

    With ``kept``, rows say ``what`` they are: "tried", or what was "kept". ``asked`` is the error that was asked for.
    """
    x = {**_quantity(field, title), "scale": {"zero": False}}
    y = {**_quantity("mae_pp", "mean error (points)"), "scale": {"zero": True}}
    tip = [{"field": field, "title": title}, {"field": "mae_pp", "title": "mean error", "format": ".2f"}]
    own = {"condition": {"test": "datum.what === 'kept'", "value": WARN}, "value": MAIN} if kept else {"value": MAIN}
    goal: list[Spec] = [] if asked is None else [{
        "data": {"values": [{"asked": asked}]},
        "mark": {"type": "rule", "color": SOFT, "strokeDash": [6, 4], "strokeWidth": 1.5},
        "encoding": {"x": None, "y": {**y, "field": "asked"}},
    }]  # fmt: skip
    return _spec(
        300,
        transform=[
            {"calculate": "datum.mae_pp - datum.se_pp", "as": "from"},
            {"calculate": "datum.mae_pp + datum.se_pp", "as": "to"},
        ],
        encoding={"x": x},
        layer=[
            *goal,
            {"mark": "rule", "encoding": {"y": {**y, "field": "from"}, "y2": {"field": "to"}, "color": own}},
            {
                "transform": [{"filter": "datum.what !== 'kept'"}],
                "mark": {"type": "line", "color": MAIN},
                "encoding": {"y": y},
            },
            {
                "mark": {"type": "point", "size": 60, "filled": True, "opacity": 1},
                "encoding": {"y": y, "color": own, "tooltip": tip},
            },
        ],
    )


def anchor_map() -> Spec:
    """What each anchor says: how many sources get it right, and how far that goes with their scores."""
    tip = _tip([("item", None), ("subtask", None), ("right", ".0f"), ("tells", ".2f")], False)
    return _spec(
        320,
        mark={"type": "point", "filled": True, "size": 60, "opacity": 0.8},
        encoding={
            "x": {**_quantity("right", "source models that answer it right (%)"), "scale": {"domain": [0, 100]}},
            "y": _quantity("tells", "agreement with the full score (correlation)"),
            "tooltip": tip,
        },
    )


def bars(field: str, value: str, title: str) -> Spec:
    """A number for each name; its axis is above them, where a chart that scrolls begins."""
    return _spec(
        {"step": 22},
        mark={"type": "bar", "color": MAIN, "cornerRadiusEnd": 3},
        encoding={
            "y": {"field": field, "type": "nominal", "sort": None, "title": None},
            "x": {**_quantity(value, title), "scale": {"zero": True}, "axis": {"orient": "top"}},
            "tooltip": [{"field": field}, {"field": value}],
        },
    )


def coverage() -> Spec:
    """How often intervals hold the truth, against how often they should."""
    return _spec(
        320,
        layer=[
            _diagonal((40, 100)),
            {
                "mark": {"type": "line", "point": {"size": 60, "filled": True}, "color": MAIN},
                "encoding": {
                    "x": {**_quantity("nominal", "nominal level (%)"), "scale": {"domain": [40, 100]}},
                    "y": {
                        **_quantity("covered", "true scores inside (%)"),
                        "scale": {"domain": [40, 100], "nice": False, "clamp": True},
                    },
                    "tooltip": _tip([("nominal", ".0f"), ("covered", ".1f")], False),
                },
            },
        ],
    )


def colour_of(k: int) -> str:
    """The colour of a page's method number ``k``; after eight they come again, with other shapes."""
    return f"var(--c{k % len(SHAPES)})"


def curves(value: str, spread: str | None, title: str, methods: Mapping[str, int], counts: Sequence[int]) -> Spec:
    """A number over numbers of anchors, a line for each method with its standard deviation, where that is known.

    ``methods`` are names in the order of the legend, with what number each has on the page, see `colour_of`.
    """
    names, n = list(methods), len(SHAPES)
    field = {"field": "method", "type": "nominal", "sort": names, "title": None}
    shapes = [SHAPES[(k + k // n) % n] for k in methods.values()]
    looks = {"color": list(map(colour_of, methods.values())), "shape": shapes}
    by = {what: {**field, "scale": {"domain": names, "range": own}} for what, own in looks.items()}
    x = {
        **_quantity("n_anchors", "anchors"),
        "scale": {"type": "log", "nice": False, "padding": 12},
        "axis": {"values": list(counts), "format": "d", "grid": False},
    }
    known = [] if spread is None else [spread]
    tip = _tip([("method", None), ("n_anchors", None), (value, ".3f"), *((s, ".3f") for s in known)], False)
    error = value == "mae_pp"
    y = {**_quantity(value, title), "scale": {"zero": True} if error else {"zero": False, "domainMax": 1}}
    ends = {  # no error lies below 0, no correlation above 1
        "from": "max(0, datum.{0} - datum.{1})" if error else "datum.{0} - datum.{1}",
        "to": "datum.{0} + datum.{1}" if error else "min(1, datum.{0} + datum.{1})",
    }
    return _spec(
        340,
        transform=[{"calculate": of.format(value, s), "as": end} for s in known for end, of in ends.items()],
        encoding={"x": x, "color": by["color"]},
        layer=[
            *({
                "mark": {"type": "rule", "opacity": 0.5},
                "encoding": {"y": {**y, "field": "from"}, "y2": {"field": "to"}},
            } for _ in known),
            {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {"y": y}},
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"y": y, "shape": by["shape"], "tooltip": tip},
            },
        ],
    )  # fmt: skip


def costs(names: Sequence[str], unit: str) -> Spec:
    """What has been spent in all after so many models."""
    colour = {"field": "way", "type": "nominal", "sort": list(names), "title": None}
    return _spec(
        300,
        mark={"type": "line", "strokeWidth": 2.5},
        encoding={
            "x": _quantity("models", "models evaluated"),
            "y": {**_quantity("spent", unit), "axis": {"format": "~s"}},
            "color": colour,
            "strokeDash": {"field": "way", "type": "nominal", "sort": list(names), "title": None},
            "tooltip": [{"field": "way"}, {"field": "models"}, {"field": "spent", "format": ",d"}],
        },
    )


def learning(*, flagged: bool) -> Spec:
    """Estimated scores along a training run with their intervals."""
    x = {**_quantity("step", "training step"), "scale": {"zero": False, "nice": False, "padding": 8}}
    tip = _tip([("checkpoint", None), ("step", None), *_INTERVAL], flagged)
    up = {"scale": {"zero": False}}
    return _spec(
        380,
        encoding={"x": x},
        layer=[
            {
                "mark": {"type": "area", "opacity": 0.18, "color": MAIN},
                "encoding": {"y": _score("low", "score on the whole benchmark (%)") | up, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "color": MAIN, "strokeWidth": 2},
                "encoding": {"y": _score("estimate") | up},
            },
            {"mark": {"type": "rule", "opacity": 0}, "encoding": {"y": _score("low"), "y2": {"field": "high"}}},
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"y": _score("estimate") | up, "tooltip": tip, **_flag_colour(flagged)},
            },
        ],
    )


def difference(margin: float | None) -> Spec:
    """One difference with its interval, the line of no difference, and the margin."""
    marks: list[Spec] = [{"data": {"values": [{"at": 0, "what": "no difference"}]}, **_upright(SOFT, [])}]
    if margin is not None:
        marks.append({"data": {"values": [{"at": -margin, "what": "margin"}]}, **_upright(WARN, [6, 4])})
    tip = [
        {"field": "candidate"},
        {"field": "difference", "format": "+.2f"},
        {"field": "low_pp", "title": "from", "format": "+.2f"},
        {"field": "high_pp", "title": "to", "format": "+.2f"},
    ]
    return _spec(
        120,
        encoding={"tooltip": tip},
        layer=[
            *marks,
            {
                "mark": {"type": "rule", "strokeWidth": 8, "opacity": 0.35, "color": MAIN, "strokeCap": "round"},
                "encoding": {
                    "x": _quantity("low_pp", "candidate minus baseline (points)"),
                    "x2": {"field": "high_pp"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 140, "color": MAIN, "opacity": 1},
                "encoding": {"x": _quantity("difference", "candidate minus baseline (points)")},
            },
        ],
    )


def _upright(colour: str, dash: list[int]) -> Spec:
    return {
        "mark": {"type": "rule", "color": colour, "strokeDash": dash, "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "at", "type": "quantitative", "title": "candidate minus baseline (points)"},
            "tooltip": [{"field": "what", "title": "line"}, {"field": "at", "title": "points"}],
        },
    }


def _diagonal(limits: tuple[float, float]) -> Spec:
    ends, scale = [{"a": v} for v in limits], {"domain": list(limits), "nice": False}
    return {
        "data": {"values": ends},
        "mark": {"type": "line", "color": SOFT, "strokeWidth": 1.2, "tooltip": None},
        "encoding": {axis: {"field": "a", "type": "quantitative", "scale": scale} for axis in ("x", "y")},
    }


def _flag_colour(flagged: bool, usual: str = MAIN) -> Spec:
    if not flagged:
        return {"color": {"value": usual}}
    return {"color": {"condition": {"test": "datum.flags !== ''", "value": WARN}, "value": usual}}


def _quantity(field: str, title: str) -> Spec:
    return {"field": field, "type": "quantitative", "title": title}


def _score(field: str, title: str | None = None, domain: tuple[float, float] | None = None) -> Spec:
    scale = {"domain": list(domain), "nice": False} if domain else {"zero": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def _tip(fields: Sequence[tuple[str, str | None]], flagged: bool) -> list[Spec]:
    wanted = [*fields, ("flags", None)] if flagged else fields
    return [
        {"field": name, "title": _TITLES.get(name, name), **({"format": form} if form else {})} for name, form in wanted
    ]


def _spec(height: int | Spec, **parts: Any) -> Spec:
    fit = {} if isinstance(height, dict) else {"autosize": {"type": "fit-x", "contains": "padding"}}
    return {"width": "container", "height": height, **fit, **parts}
