"""The parts of a report: each takes what is known and says it in words, figures and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..calibration import CrossValidation
from ..condensation import Condensation
from ..estimates import Rank
from ..flags import FLAGS, OF_SOURCES
from ..numerics.intervals import symmetric_quantile
from ..recipe import described
from ..splits import KEPT_TOGETHER
from ..studies.cost import Cost
from . import charts
from .page import Data, Fact, Figure, Section, Table, Value

Array = NDArray[Any]

MADE_BY = f"Made by disco-eval {__version__}"
LONG = 40  # characters of a name in a sentence
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
WHY = {
    "auto": "at even steps from hard to easy items, at each the most telling of a few drawn there, balanced as a whole",
    "stratified": "drawn by chance at even steps from hard to easy items",
    "hybrid": "half for what they tell about the score, half drawn by chance from hard to easy",
    "sharp": "one after another, each the item that tells most about the score beside those chosen before",
    "uniform": "drawn by chance, every item alike",
    "pds": "the items on which the source models disagree most (predictive diversity score)",
    "jsd": "the items on which the source models disagree most (Jensen-Shannon divergence)",
    "anchor_conf": "the middles of clusters of items that models answer with alike confidence",
    "anchor_corr": "the middles of clusters of items that the same models answer right",
    "anchor_irt": "the middles of clusters of items of alike difficulty and discrimination",
    "every_kth": "at even steps over the items sorted by difficulty",
    "best_for_validation": "the random subset that predicted left-out source models best",
}


@dataclass(frozen=True)
class Estimated:
    """One estimate in percent, with the true score where it is known."""

    model: str
    estimate: float
    low: float
    high: float
    truth: float | None = None
    flags: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    rank: Rank | None = None

    @property
    def own_flags(self) -> tuple[str, ...]:
        """Flags about this model, without those that every estimate carries."""
        return tuple(f for f in self.flags if f not in OF_SOURCES)

    @property
    def error(self) -> float | None:
        """Estimate minus truth, in points."""
        return None if self.truth is None else self.estimate - self.truth


def estimates(found: Sequence[Estimated], level: float, name: str = "estimates") -> Section:
    """Every model's estimate with its interval: a forest plot and a table."""
    with_truth, flagged = any(e.truth is not None for e in found), any(e.own_flags for e in found)
    ordered = sorted(found, key=lambda e: -e.estimate)
    ranked = all(e.rank is not None for e in found)
    columns = ["model", *(["truth"] if with_truth else []), "estimate", "low", "high"]
    columns += ["rank", "best_rank", "worst_rank"] if ranked else []
    columns += [*(["error"] if with_truth else []), "flags", "nearest"]
    rows: list[tuple[Value, ...]] = []
    for e in ordered:
        values = {"model": e.model, "truth": e.truth, "estimate": e.estimate, "low": e.low, "high": e.high}
        values |= {} if e.rank is None else {"rank": e.rank.at, "best_rank": e.rank.best, "worst_rank": e.rank.worst}
        values |= {"error": e.error, "flags": ", ".join(e.own_flags), "nearest": ", ".join(e.nearest)}
        rows.append(tuple(exact(values[c]) for c in columns))
    data = Data(name, tuple(columns), rows)
    note = f"Dot: the estimate. Band: the {100 * level:g} % interval."
    note += " Stroke: the true score." if with_truth else ""
    note += " Orange: something is unusual about this model (see flags)." if flagged else ""
    hide = ("nearest",) if len(found) > 1 else ()
    alt = f"Forest plot of the estimated scores of {len(found)} models with their intervals, best first."
    figure = Figure(
        f"{name}-forest", "Estimated scores, best first", alt, charts.forest(with_truth=with_truth, flagged=flagged),
        data, note, scroll=len(found) > 60,
    )  # fmt: skip
    table = Table("Every estimate", data, _ranks(found), hide if flagged else (*hide, "flags"))
    return Section("estimates", "Estimates", figures=[figure], tables=[table])


def _ranks(found: Sequence[Estimated]) -> str:
    """What the columns of ranks say, where they are known."""
    most = max((e.rank.of for e in found if e.rank is not None), default=0)
    return (
        f"Rank: the place among the {most - 1:,} source models and itself; best and worst by the interval."
        if most
        else ""
    )


def flag_words(found: Sequence[Estimated]) -> list[str]:
    """Every flag that was raised, in words, with whom it concerns."""
    lines = []
    for flag in dict.fromkeys(f for e in found for f in e.flags):
        whom = [e.model for e in found if flag in e.flags]
        text = FLAGS.get(flag, flag).rstrip(";. ")
        if flag in OF_SOURCES or len(found) == 1:
            lines.append(f"{flag}: {text}.")
        else:
            names = ", ".join(map(brief, whom[:3])) + (f" and {len(whom) - 3} more" if len(whom) > 3 else "")
            lines.append(f"{flag}, {len(whom)} of {len(found)} models ({names}): {text}.")
    return lines


def brief(name: str) -> str:
    """A long name without its middle: those of hub models differ at their ends."""
    return name if len(name) <= LONG else f"{name[: LONG // 2]}…{name[-(LONG // 2 - 1) :]}"


def truth_figure(
    name: str,
    title: str,
    found: Sequence[Estimated],
    limits: tuple[float, float],
    *,
    intervals: bool,
    height: int = 340,
    colour: str = charts.MAIN,
) -> Figure:
    """True against estimated scores."""
    rows: list[tuple[Value, ...]] = [
        tuple(short(v) for v in (e.model, e.truth, e.estimate, e.low, e.high, e.error, ", ".join(e.own_flags)))
        for e in found
    ]
    data = Data(name, ("model", "truth", "estimate", "low", "high", "error", "flags"), rows)
    title = f"{title}: {np.mean([abs(e.error or 0.0) for e in found]):.2f} points off"
    flagged = any(e.own_flags for e in found)
    spec = charts.against(limits, intervals=intervals, flagged=flagged, height=height, colour=colour)
    return Figure(
        f"{name}-scatter", title, f"{title}: true scores across, estimates up, {len(found)} models.", spec, data
    )


def limits_of(found: Sequence[Estimated]) -> tuple[float, float]:
    """A common range for the two axes of true against estimated scores."""
    values = [v for e in found for v in (e.truth, e.estimate) if v is not None]
    pad = 0.06 * max(2.0, max(values) - min(values))
    return max(0.0, round(min(values) - pad, 1)), min(100.0, round(max(values) + pad, 1))


def anchors(c: Condensation) -> Section:
    """Which items were kept, why, what they tell, and how the source models answered them."""
    data, right = _anchor_table(c), c.sources.grades().mean(axis=0)
    alt = "Scatter of anchors: share of source models that answer right across, agreement with the full score up."
    note = "High up: who gets it right also does well on the whole benchmark."
    figures = [
        Figure("anchor-map", "What each anchor tells", alt, charts.anchor_map(), data, note),
        _heat(c, right),
        *_subtasks(c.items.subtask.tolist()),
    ]
    method, n_items = c.anchors.method, count_of(c.provenance.get("n_items"))
    words = [f"{len(c.anchors)} of {n_items} items stand for all: {WHY.get(method, method)}."]
    empty = tuple(n for k, n in enumerate(data.columns) if all(row[k] in (None, "") for row in data.rows))
    return Section("anchors", "Anchors", words, figures, [Table("Every anchor", data, hide=empty)])


def _anchor_table(c: Condensation) -> Data:
    grades = c.sources.grades()
    columns = {
        "item": c.anchors.ids,
        "subtask": c.items.subtask,
        "right": 100 * grades.mean(axis=0),
        "tells": _correlations(grades, c.source_scores),
        "weight": 100 * np.asarray(c.anchors.weights),
        "criterion": c.anchors.criterion,
        "chance": 100 * c.anchors.chance,
    }
    every = zip(*(np.asarray(v).tolist() for v in columns.values()), strict=True)
    return Data("anchors", tuple(columns), [tuple(short(v) for v in row) for row in every])


def _subtasks(subtask: list[str]) -> list[Figure]:
    counts = sorted(((s, subtask.count(s)) for s in dict.fromkeys(subtask)), key=lambda pair: -pair[1])
    if len(counts) < 2:
        return []
    data = Data("subtasks", ("subtask", "n_anchors"), list(counts))
    alt = f"Bar chart of the number of anchors in each of {len(counts)} subtasks."
    spec = charts.bars("subtask", "n_anchors", "anchors")
    return [Figure("per-subtask", "Anchors in each subtask", alt, spec, data, scroll=len(counts) > 14)]


def _heat(c: Condensation, right: Array) -> Figure:
    answers = _right(c)
    order, place = np.argsort(-c.source_scores, kind="stable"), np.argsort(right, kind="stable")
    ids = c.anchors.ids[place].tolist()
    cells = np.round(answers[np.ix_(order, place)].astype(float), 3)
    scores = np.round(100 * c.source_scores[order], 3).tolist()
    names = c.sources.models.ids[order].tolist()
    rows: list[tuple[Value, ...]] = [(m, s, *row) for m, s, row in zip(names, scores, cells.tolist(), strict=True)]
    data = Data("answers", ("model", "truth", *ids), rows)
    what = "probability that the model gave the right answer" if c.sources.probs is not None else "grade of the answer"
    return Figure(
        "answers-heat", "The source models' answers to them",
        f"Heat map of {len(names)} source models by {len(ids)} anchors: {what}.",
        charts.heat(len(names)), data, f"Each cell: the {what}.", canvas=True,
    )  # fmt: skip


def _right(c: Condensation) -> Array:
    """(n_sources, n_anchors): the probability of the right choice where there are any, else the grade."""
    known = c.sources.probs is not None and c.items.label is not None
    return c.sources.label_probs() if known else c.sources.grades()


def _correlations(grades: Array, scores: Array) -> Array:
    """(n_anchors,) correlation of each item's grades with the models' scores; NaN where one of them is constant."""
    a, b = grades - grades.mean(axis=0), scores - scores.mean()
    size = np.sqrt((a**2).sum(axis=0) * (b**2).sum())
    found: Array = np.divide(b @ a, size, out=np.full(len(size), np.nan), where=size > 1e-12)
    return found


def left_out_coverage(v: CrossValidation) -> list[tuple[float, float]]:
    """(level, share of left-out sources inside), each fold's intervals calibrated on the errors of the others."""
    folds = np.unique(v.fold[v.fold >= 0])
    if len(folds) < 2:
        return []
    error, scale = v.truth - v.estimate, np.maximum(v.scale, 1e-9)
    found = []
    for level in LEVELS:
        inside = [
            np.abs(error[v.fold == k]) <= symmetric_quantile((error / scale)[v.fold != k], level) * scale[v.fold == k]
            for k in folds
        ]
        found.append((level, float(np.concatenate(inside).mean())))
    return found


def coverage(found: Sequence[tuple[float, float]], whom: str, n_models: int) -> Section:
    """How often intervals hold the truth at several levels."""
    rows: list[tuple[Value, ...]] = [(round(100 * a, 1), round(100 * b, 2)) for a, b in found]
    data = Data("coverage", ("nominal", "covered"), rows)
    words = [f"Of {n_models} {whom}, so many true scores lie inside intervals of each level. On the line is right; "
             "below it, intervals are too narrow."]  # fmt: skip
    figure = Figure("coverage-curve", "Truth inside the interval", "Line of observed against nominal coverage.",
                    charts.coverage(), data)  # fmt: skip
    return Section("coverage", "Can the intervals be trusted?", words, [figure])


def cost(about: dict[str, Any]) -> Section | None:
    """What the anchors save, and from how many models on."""
    n_items, n_anchors, n_sources = about.get("n_items"), about["n_anchors"], about["n_sources"]
    if not n_items or n_anchors >= n_items:
        return None
    one = Cost(n_items, n_anchors, n_sources * n_items)
    even = one.break_even or 0
    ways = ("every model in full", "anchors, sources evaluated for it", "anchors, sources' answers were there")
    steps = np.unique(np.linspace(0, 2 * even, 41).astype(int)).tolist()
    rows: list[tuple[Value, ...]] = []
    for n in steps:
        spent = (n * n_items, n_sources * n_items + n * n_anchors, n * n_anchors)
        rows += [(way, n, s) for way, s in zip(ways, spent, strict=True)]
    data = Data("cost", ("way", "models", "spent"), rows)
    words = [
        f"Each model answers {n_anchors:,} items instead of {n_items:,}: {100 * one.saved_share:.1f} % less work. The "
        f"condensation rests on {n_sources:,} source models' answers to all items. Where those had to be made for it, "
        f"it has paid for itself after {even:,} models; where they were there already, at once."
    ]
    if (known := about.get("cost")) and known["all"]:
        share = 100 * (1 - known["anchors"] / known["all"])
        paid = f"{amount(known['anchors'])} of {amount(known['all'])}"
        words.append(f"By the items' own costs, the anchors take {paid}: {share:.1f} % less.")
    alt = f"Lines of the work done over the number of models evaluated; the lines cross at {even} models."
    figure = Figure(
        "cost-curve", "Work over models evaluated", alt, charts.costs(ways, "answers to items, in all"), data
    )
    return Section("cost", "What it saves", words, [figure])


def cost_fact(about: dict[str, Any], more: int = 0) -> Fact:
    """The answer to what an estimate costs that rests on the anchors and ``more`` further items."""
    n_items, asked = about.get("n_items"), about["n_anchors"] + more
    if not n_items:
        return Fact("What does it cost?", f"{asked:,} items", "for each model.")
    less, known = f"{100 * (1 - asked / n_items):.0f} % less work", about.get("cost")
    if known and known["all"] and not more:  # what further items cost is not kept
        less = f"{100 * (1 - known['anchors'] / known['all']):.0f} % less by what items cost"
    words = f"for each model: {less}, once {about['n_sources']:,} models were evaluated in full."
    return Fact("What does it cost?", f"{asked:,} of {n_items:,} items", words)


def with_relatives(about: dict[str, Any]) -> str:
    """The error on models whose relatives are among the sources, in words; nothing where that was not measured."""
    error = about.get("relatives_mae_pp")
    return "" if error is None else f" On models of which relatives are sources: {error:.2f}."


def with_more(about: dict[str, Any]) -> str:
    """What further items make of the error, in words; nothing where that was not measured, as in older records."""
    if (error := about.get("more_mae_pp")) is None:
        return ""
    return f" With {about['n_more']} further item{'' if about['n_more'] == 1 else 's'}: {error:.2f}."


def error_fact(about: dict[str, Any], more: int = 0) -> Fact:
    """How far estimates of left-out source models were off from the anchors alone, and with further items."""
    kept = "a few" if about["grouped_by"] == "none" else KEPT_TOGETHER[about["grouped_by"]]
    other = f" (± {about['mae_se_pp']:.2f} with other anchors)" if "mae_se_pp" in about else ""  # older records lack it
    against = about.get("against", "as many random items")
    beside = f"{against[0].upper()}{against[1:]}: {about['direct_mae_pp']:.2f}."
    how = f"on source models left out ({kept} at a time)"
    own = f"{about['mae_pp']:.2f} points"
    if about.get("more_mae_pp") is not None and more >= about["n_more"]:
        words = f"on average, {how}, with {about['n_more']} further items."
        alone = f"From the anchors alone {own}{other}, against {about['direct_mae_pp']:.2f} of {against}."
        return Fact("How far off?", f"{about['more_mae_pp']:.2f} points", f"{words} {alone}")
    alone = ", from the anchors alone" if more else ""
    return Fact(
        "How far off?", own, f"on average{other}, {how}{alone}. {beside}{with_relatives(about)}{with_more(about)}"
    )


def made_from(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Provenance of the condensation that a report rests on."""
    lines = [
        ("Benchmark", f"{about['benchmark']}, {count_of(about.get('n_items'))} items"),
        ("Source models", f"{about['n_sources']:,}"),
        ("Anchors", f"{about['n_anchors']:,} by {described(about.get('select'))}"),
        ("Prediction", described(about.get("predict"))),
        ("Seed", str(about.get("seed"))),
        ("Condensed", str(about.get("created") or "unknown")),
    ]
    return lines


def count_of(n: Any) -> str:
    """A count in words."""
    return f"{n:,}" if isinstance(n, int) else "an unknown number of"


def exact(value: Value) -> Value:
    """What is no number is not there; the others are whole, since what is rounded twice may end up elsewhere."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def short(value: Value) -> Value:
    """The same in four decimals, for the many points of a figure."""
    value = exact(value)
    return round(value, 4) if isinstance(value, float) else value


def amount(cost: float) -> str:
    """A cost in four digits, or in all before the point."""
    return f"{cost:,.0f}" if cost >= 1000 else f"{cost:.4g}"
