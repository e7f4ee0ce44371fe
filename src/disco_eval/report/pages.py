"""Reports, one for each kind of folder: what is in it becomes a `Page`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..artifact import load
from ..audit import JSON as CONDENSATION
from ..errors import DiscoError, FormatError
from ..estimates import Rank
from ..harness.watch import TABLE as CHECKPOINTS
from ..harness.watch import read_points
from ..studies.predictions import FILE as PREDICTIONS
from ..studies.predictions import read_predictions
from ..studies.run import refuse_cut_off
from . import charts, parts, record, subtasks
from .condensed import condensation_page, demo_page
from .methods import study_page
from .page import Data, Fact, Figure, Page, Section, Table, Value, write_page
from .parts import MADE_BY, Estimated

REPORT = "report.html"


def report(path: str | Path, out: str | Path | None = None, *, name: str | None = None) -> Path:
    """Write the report of a folder that a command left, and return the file.

    Parameters
    ----------
    path : a condensation, or what demo, study, watch, run, estimate or compare wrote; or a study's table.
    out : the HTML file; ``report.html`` in the folder by default.
    name : what to call the folder in the report, where it is about to be renamed.

    Raises DiscoError where the folder is none of these, or where ``out`` exists and is no HTML file.
    """
    place = Path(path)
    target = Path(out or (place if place.is_dir() else place.parent) / REPORT)
    if out is not None and target.exists() and not _is_html(target):
        raise DiscoError(f"'{target}' exists and is no report, so it is not overwritten; give --out another name")
    return write_page(page_of(place, name or place.name), target)


def _is_html(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(100).lstrip().lower().startswith((b"<!doctype html", b"<html"))


def page_of(path: Path, name: str) -> Page:
    """The report of a folder or a study's table, not yet set."""
    about = record.read(path) if path.is_dir() else None
    if about is not None:
        return _of_record(path, about)
    if (path / CONDENSATION).is_file():
        return condensation_page(load(path), name)
    if (path / PREDICTIONS).is_file() or (path.is_file() and path.suffix in (".parquet", ".csv")):
        return study_page(read_predictions(path), name)
    if (path / CHECKPOINTS).is_file():
        return _watch(path, {"condensation": None, "level": None})
    refuse_cut_off(path)
    raise DiscoError(
        f"'{path}' holds nothing to report on: a report needs what 'disco demo', 'condense', 'study', 'run', 'watch', "
        "'estimate --out' or 'compare --out' wrote"
    )


def _of_record(path: Path, about: dict[str, Any]) -> Page:
    makers: dict[str, Callable[[Path, dict[str, Any]], Page]] = {
        "demo": demo_page,
        "study": _study,
        "watch": _watch,
        "estimates": lambda _, found: estimates_page(found),
        "comparison": lambda _, found: comparison_page(found),
    }
    try:
        return makers[about["kind"]](path, about)
    except (KeyError, TypeError, AttributeError) as e:
        raise FormatError(f"'{path / record.FILE}' lacks something ({e!r}); run the command that wrote it again") from e


# ---- study, watch, estimates, comparison -----------------------------------------------------------------------


def _study(path: Path, about: dict[str, Any]) -> Page:
    return study_page(read_predictions(path), about["title"], command=about["command"], created=about["created"])


def _watch(path: Path, about: dict[str, Any]) -> Page:
    points = read_points(path / CHECKPOINTS)
    if not points:
        raise DiscoError(f"'{path / CHECKPOINTS}' holds no checkpoints yet")
    made, level, more = about["condensation"], about["level"], about.get("more", 0)
    rows: list[tuple[Value, ...]] = [
        (p.checkpoint, p.step, *(100 * v for v in (p.score, p.low, p.high)), p.flags, round(p.seconds, 1))
        for p in points
    ]
    data = Data("checkpoints", ("checkpoint", "step", "estimate", "low", "high", "flags", "seconds"), rows)
    found = [
        Estimated(p.checkpoint, 100 * p.score, 100 * p.low, 100 * p.high, flags=tuple(p.flags.split())) for p in points
    ]
    flagged = any(e.own_flags for e in found)
    best, last = max(found, key=lambda e: e.estimate), found[-1]
    span = f"{100 * level:g} % interval" if level else "interval"
    alt = f"Learning curve of {len(points)} checkpoints, from {found[0].estimate:.1f} to {last.estimate:.1f} %."
    curve = Figure("learning-curve", "Estimated score over training", alt, charts.learning(flagged=flagged), data,
                   f"Band: {span}." + (" Orange: flagged." if flagged else ""))  # fmt: skip
    facts = [
        Fact(
            "Where is it now?", f"{last.estimate:.1f} %", f"at {last.model}: {last.low:.1f} to {last.high:.1f}, {span}."
        ),
        Fact("Best so far", f"{best.estimate:.1f} %",
             f"at {best.model}: {best.low:.1f} to {best.high:.1f}.{_of_many(found)}"),
        Fact("How sure?", f"± {np.mean([(e.high - e.low) / 2 for e in found]):.1f} points", f"is the mean {span}."),
        *([parts.cost_fact(made, more)] if made else []),
    ]  # fmt: skip
    benchmark = made["benchmark"] if made else "the benchmark"
    taken = f" from {made['n_anchors'] + more} items each" if made else ""
    return Page(
        f"{len(points)} checkpoints on {benchmark}",
        f"The full score of every checkpoint, estimated{taken}.",
        facts,
        [Section("curve", "Learning curve", (), [curve], [Table("Every checkpoint", data)])],
        parts.flag_words(found),
        parts.made_from(made) if made else [],
        about.get("command", ""),
        MADE_BY,
    )


def estimates_page(about: dict[str, Any]) -> Page:
    """Scores estimated for one or more models whose true scores are not known."""
    made, level = about["condensation"], about["level"]
    found = [
        Estimated(
            e["model"], 100 * e["score"], 100 * e["low"], 100 * e["high"],
            flags=tuple(e["flags"]), nearest=tuple(e["nearest"]), rank=Rank(**e["rank"]) if "rank" in e else None,
        )
        for e in about["estimates"]
    ]  # fmt: skip
    best, span = max(found, key=lambda e: e.estimate), f"{100 * level:g} % interval"
    more = max((e.get("more", 0) for e in about["estimates"]), default=0)
    whose = best.model if len(found) == 1 else f"{len(found)} models"
    if whole := made["n_anchors"] + more == made["n_items"]:
        facts = [
            Fact("What is known?" if len(found) == 1 else "Best of them", f"{best.estimate:.1f} %",
                 f"is the score of {best.model}: all items were answered."),
            parts.cost_fact(made, more),
        ]  # fmt: skip
    else:
        facts = [
            Fact("What was predicted?" if len(found) == 1 else "Best of them", f"{best.estimate:.1f} %",
                 f"estimated for {best.model} on all {parts.count_of(made['n_items'])} items."),
            Fact("How sure?", f"{best.low:.1f} to {best.high:.1f}", f"is its {span}.{_of_many(found)}"),
            parts.error_fact(made, more),
            parts.cost_fact(made, more),
        ]  # fmt: skip
    asked = f"{made['n_anchors']} anchors and {more} further items" if more else f"{made['n_anchors']} items"
    return Page(
        f"{whose} on {made['benchmark']}",
        "Scores on the whole benchmark: all of its items were answered."
        if whole
        else f"Scores on the whole benchmark, estimated from the answers to {asked}.",
        facts,
        [
            parts.estimates(found, level),
            *subtasks.estimated([(e["model"], e.get("subtasks", [])) for e in _best_first(about["estimates"])]),
        ],
        parts.flag_words(found),
        parts.made_from(made),
        about["command"],
        MADE_BY,
    )


def _of_many(found: list[Estimated]) -> str:
    """What the highest of several estimates is not."""
    return f" The highest of {len(found)} estimates owes part of its lead to chance." if len(found) > 1 else ""


def _best_first(estimates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(estimates, key=lambda e: -e["score"])


_VERDICTS = {
    "passes": "The candidate passes: the whole interval lies at or above the margin.",
    "fails": "The candidate fails: the whole interval lies below the margin.",
    "undecided": "Undecided: the interval holds the margin.",
}
_TONES = {"passes": "good", "fails": "bad", "undecided": "open"}


def _each(about: dict[str, Any]) -> list[Table]:
    """Both models' own estimates, where they were kept: older records lack them."""
    if not (own := about.get("estimates")):
        return []
    rows: list[tuple[Value, ...]] = [
        (e["model"], side, *(100 * e[k] for k in ("score", "low", "high")))
        for side, e in zip(("baseline", "candidate"), own, strict=True)
    ]
    note = f"Each estimated by itself, with its {100 * about['comparison']['level']:g} % interval."
    if not about["comparison"].get("whole"):
        note += " How sure their difference is stands above: errors that both share cancel in it."
    return [
        Table("Both models by themselves", Data("models", ("model", "side", "estimate", "low", "high"), rows), note)
    ]


def comparison_page(about: dict[str, Any]) -> Page:
    """A candidate against a baseline."""
    made, found = about["condensation"], about["comparison"]
    points = {k: 100 * found[k] for k in ("difference", "low", "high")}
    margin = None if found["margin"] is None else 100 * found["margin"]
    names = ("baseline", "candidate", "difference", "low_pp", "high_pp")
    data = Data("comparison", names, [(found["baseline"], found["candidate"], *points.values())])
    span = f"{points['low']:+.2f} to {points['high']:+.2f}"
    alt = f"The difference is {points['difference']:+.2f} points, its interval {span}."
    figure = Figure("difference", "The difference and its interval", alt, charts.difference(margin), data,
                    "Grey line: no difference." + (" Dashed: the margin." if margin is not None else ""))  # fmt: skip
    verdict, moved = found["verdict"], f"{points['difference']:+.2f} points"
    needed = about.get("needed", "")
    more = f" {needed[0].upper()}{needed[1:]}." if needed else ""
    lead = _VERDICTS[verdict] + more if verdict else "The difference of their scores on the whole benchmark."
    sure = f"interval. {about.get('basis', '')}".strip()
    allowed = "" if margin is None else f"at a margin of {margin:g} {'point' if margin == 1 else 'points'}."
    facts = [
        *([Fact("Verdict", str(verdict), allowed, _TONES[verdict])] if verdict else []),
        Fact("What is the difference?", moved, f"{found['candidate']} minus the baseline."),
        Fact("How sure?", span, f"is the {100 * found['level']:g} % {sure}"),
        parts.cost_fact(made, found.get("more", 0)),
    ]  # fmt: skip
    return Page(
        f"{found['candidate']} against {found['baseline']} on {made['benchmark']}",
        lead,
        facts,
        [Section("difference", "Difference", (), [figure], _each(about))],
        about.get("warnings", []),
        parts.made_from(made),
        about["command"],
        MADE_BY,
    )
