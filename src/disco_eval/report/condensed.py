"""The reports of a condensation and of the demo: what was kept of a benchmark, and how well that serves."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from ..artifact import load
from ..axes import Models
from ..condensation import Condensation
from ..responses import Responses
from ..sizing import missed_by
from ..store import open_responses
from ..studies.predictions import Predictions, read_predictions
from . import parts, record, subtasks
from .methods import errors_table
from .page import Data, Fact, Page, Section, Table, Value
from .parts import MADE_BY, Estimated

MOST_TIMES = 100  # how many times better than random items is said; beyond that only that it is far better


def condensation_page(c: Condensation, name: str) -> Page:
    """What was kept of a benchmark, and what error to expect."""
    about, v = record.summary(c), c.validation
    whom, inside = "left-out source models", parts.left_out_coverage(v)
    n_items = parts.count_of(about["n_items"])
    facts = [
        Fact("What was condensed?", c.benchmark, f"{n_items} items, to {len(c.anchors)} anchors."),
        parts.error_fact(about),
        Fact("How sure?", f"± {about['half_width_90_pp']:.1f} points", f"holds 90 % of {whom}."),
        parts.cost_fact(about),
    ]
    times = f"{v.direct_mae / v.mae:.1f} times" if v.direct_mae < MOST_TIMES * v.mae else "far"
    better = f"{times} better than" if v.mae < 0.95 * v.direct_mae else "no better than"
    return Page(
        f"{c.benchmark}, condensed to {len(c.anchors)} items",
        f"A new model's score on all {n_items} items, estimated from {len(c.anchors)}: "
        f"about {about['mae_pp']:.2f} points off, {better} {about['against']}.",
        facts,
        [
            _trust(c),
            *([parts.coverage(inside, whom, len(v.truth))] if inside else []),
            *subtasks.errors(c.subtask_names, c.subtask_mae, _per_subtask(c), whom),
            parts.anchors(c),
            *filter(None, [parts.cost(about)]),
        ],
        [*_missed(c), *parts.flag_words([Estimated("", 0, 0, 0, flags=c.source_flags)])],
        parts.made_from(about),
        _condense_command(c, name),
        MADE_BY,
    )


def _missed(c: Condensation) -> list[str]:
    """What to say where the error is larger than was asked for."""
    v = c.validation
    return list(filter(None, [missed_by(c.provenance.get("error_asked"), v.mae, v.mae_se, len(c.anchors))]))


def _trust(c: Condensation) -> Section:
    v = c.validation
    found = [
        Estimated(str(m), 100 * e, 100 * e, 100 * e, 100 * t)
        for m, e, t in zip(c.sources.models.ids.tolist(), v.estimate.tolist(), v.truth.tolist(), strict=True)
    ]
    words = [f"Every source model was estimated by a condensation made without it ({v.n_folds} folds)."]
    limits = parts.limits_of(found)
    scatter = parts.truth_figure("left-out", "Source models, each left out", found, limits, intervals=False)
    table = Table("Every left-out source, the largest error first", _left_out(found, c.sources.models))
    return Section(
        "error",
        "What error to expect",
        words,
        [scatter, *subtasks.anchors_curve(c), *subtasks.sources_curve(c)],
        [table],
    )


def _per_subtask(c: Condensation) -> dict[str, list[int]]:
    """How many anchors are of each subtask, and how many items, where these are known."""
    counts = {"n_anchors": [int((c.items.subtask == name).sum()) for name in c.subtask_names]}
    size = c.subtask_model.size if c.subtask_model is not None else np.zeros(0)
    if np.isclose(size.sum(), c.provenance.get("n_items", -1)):  # else they are what the items are worth, not a number
        counts["n_items"] = size.round().astype(int).tolist()
    return counts


def _left_out(found: list[Estimated], sources: Models) -> Data:
    """What every source was and was estimated at, the furthest off on top; with families where they are known."""
    known, family = bool((sources.family != "").any()), dict(zip(sources.ids, sources.family.tolist(), strict=True))
    rows: list[tuple[Value, ...]] = [
        (e.model, *([family[e.model]] if known else []), *map(parts.exact, (e.truth, e.estimate, e.error)))
        for e in sorted(found, key=lambda e: -abs(e.error or 0.0))
    ]
    return Data("left-out-sources", ("model", *(["family"] if known else []), "truth", "estimate", "error"), rows)


def _condense_command(c: Condensation, name: str) -> str:
    """The command that makes it again; ANSWERS, SOURCES and FORMER stand for files that it cannot know."""
    p = c.provenance
    given = p.get("given") or {}  # Python and old versions note none
    words = ["disco", "condense", "ANSWERS", "--out", name, *(["--sources", "SOURCES"] if given.get("sources") else [])]
    words += ["--cost", given["cost"]] if given.get("cost") else []
    words += ["--update", "FORMER"] if p.get("anchors_of") else _methods(c, given)
    words += ["--folds", str(p["n_folds"])] if "n_folds" in p else []
    words += [f"--{'' if p[how] else 'no-'}{how}" for how in ("curve", "relatives") if how in p]
    seed = ["--seed", str(p["seed"])] if p.get("seed") is not None else []
    return shlex.join([*words, *seed])


def _methods(c: Condensation, given: dict[str, Any]) -> list[str]:
    """Options that say how many anchors to choose, how, and how to predict; those ``given`` as they were."""
    p = c.provenance
    asked: dict[str, Any] = {k: given[k] for k in ("budget", "error") if k in given}
    n_anchors = given.get("anchors") if asked else p.get("n_asked", len(c.anchors))
    asked |= {"anchors": n_anchors} if n_anchors is not None else {}
    words = ["--name", c.benchmark, *(w for k, v in asked.items() for w in (f"--{k}", f"{v:.12g}"))]
    words += ["--mixed"] if p.get("mixed") else []
    meant = {"cost_power": 0.5, "budget": given.get("budget")} if given.keys() & {"cost", "budget"} else {}
    for step in ("select", "predict"):
        chosen = dict(p.get(step) or {})
        words += [f"--{step}", str(chosen.pop("name", "auto"))]
        for k, value in chosen.items():
            if k not in meant or meant[k] != value:
                words += [f"--{step}-opt", f"{k}={_option(value)}"]
    return words


def _option(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


def demo_page(path: Path, about: dict[str, Any]) -> Page:
    """How well models that the demo held out were estimated."""
    predictions, c = read_predictions(path), load(path / about["condensation"])
    zoo = open_responses(path / about["responses"])
    sources = set(c.sources.models.ids.tolist())
    unseen = zoo.pick(models=[k for k, m in enumerate(zoo.models.ids.tolist()) if m not in sources])
    estimates, truth = c.estimate(unseen), unseen.scores()
    found = [
        Estimated(e.model, 100 * e.score, 100 * e.low, 100 * e.high, 100 * float(t), e.flags, e.nearest, e.rank)
        for e, t in zip(estimates, truth, strict=True)
    ]
    made, n = record.summary(c), len(found)
    best = sorted(map(record.estimate_record, estimates), key=lambda e: -e["score"])
    known = np.array([[s.score for s in e.subtasks] for e in estimates])
    off = unseen.subtask_scores() - known if known.size else known
    return Page(
        f"{n} models scored from {made['n_anchors']} of {made['n_items']:,} items",
        f"Each model answered {made['n_anchors']} digits; we estimated its accuracy on all {made['n_items']:,}. "
        "We know the truth, so here is how well that went.",
        _demo_facts(found, predictions, made),
        [
            parts.estimates(found, 0.9),
            _demo_methods(predictions, found),
            parts.coverage(_held_out_coverage(c, unseen), "models never seen", n),
            *subtasks.estimated([(e["model"], e.get("subtasks", [])) for e in best]),
            *subtasks.errors(c.subtask_names, np.abs(off).mean(axis=0), _per_subtask(c), "models never seen"),
            parts.anchors(c),
            *filter(None, [parts.cost(made)]),
        ],
        parts.flag_words(found),
        [*parts.made_from(made), ("Held out", f"{n} models, drawn at random")],
        about["command"],
        MADE_BY,
    )


def _demo_facts(found: list[Estimated], predictions: Predictions, made: dict[str, Any]) -> list[Fact]:
    n, n_items, summary = len(found), made["n_items"], predictions.summary()
    own, plain = summary["mae_pp"][0], f"{summary['mae_pp'][2]:.2f}"
    within = sum(e.low <= (e.truth or 0) <= e.high for e in found)
    half = float(np.mean([(e.high - e.low) / 2 for e in found]))
    return [
        Fact("What was predicted?", f"{n} models' scores", f"on all {n_items:,} items. None of them was seen before."),
        Fact("How far off?", f"{own:.2f} points", f"on average; {plain} with as many random items."),
        Fact("How sure?", f"± {half:.1f} points", f"90 % interval: it holds the truth for {within} of {n}."),
        parts.cost_fact(made),
    ]


def _held_out_coverage(c: Condensation, unseen: Responses) -> list[tuple[float, float]]:
    """(level, share of these models whose true score lies inside its interval)."""
    truth, found = unseen.scores(), []
    for level in parts.LEVELS:
        low, high = np.array([(e.low, e.high) for e in c.estimate(unseen, level)]).T
        found.append((level, float(((low <= truth) & (truth <= high)).mean())))
    return found


def _demo_methods(predictions: Predictions, found: list[Estimated]) -> Section:
    first = predictions.table.filter(split=predictions.table["split"][0])
    groups = [
        (str(name), [Estimated(r["model"], 100 * r["estimate"], 0, 0, 100 * r["truth"]) for r in part.to_dicts()])
        for (name,), part in first.group_by("method", maintain_order=True)
    ]
    limits = parts.limits_of([e for _, part in groups for e in part])
    figures = [parts.truth_figure("truth", groups[0][0], found, limits, intervals=True)]
    figures += [
        parts.truth_figure(f"truth-{k}", name, part, limits, intervals=False)
        for k, (name, part) in enumerate(groups[1:], 1)
    ]
    words = ["On the line, estimate and truth are equal. Every method had as many items."]
    return Section("truth", "True against estimated", words, figures, [errors_table(predictions)])
