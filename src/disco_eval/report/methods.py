"""The report of a study: methods compared over splits, runs and numbers of anchors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..studies.predictions import KEYS, Predictions
from . import charts, parts
from .figures import first_run
from .page import Data, Fact, Figure, Page, Section, Table, Value
from .parts import Estimated
from .tables import same_words, slug, span, spread_words

CURVES = 8  # lines that can be told apart
SCATTERS = 6
UNKNOWN = "not known"  # whether a method differs from the best
TELLING = 5  # runs from which on a difference that is not seen is likely small
INLINE = 3  # benchmarks and splits whose best methods are named at the top
_SCENE = ["benchmark", "split"]
_SUMMARY = (
    "benchmark",
    "split",
    "method",
    "n_anchors",
    "n_runs",
    "n_models",
    "mae_pp",
    "mae_sd",
    "spearman",
    "spearman_sd",
)


def study_page(predictions: Predictions, name: str, *, command: str = "", created: str = "") -> Page:
    """Which method is how far off, on which benchmark and split."""
    table = predictions.table
    best = _best_of_each(predictions.summary())
    shown = [errors_table(predictions)] if len(best) == 1 else [_best_table(best), errors_table(predictions)]
    sections = [Section("errors", "Errors of all methods", (), (), shown)]
    scenes = {key: Predictions(part) for key, part in table.group_by(_SCENE, maintain_order=True)}
    number = _numbers(list(scenes.values()))
    for (benchmark, split), one in scenes.items():
        sections += _scene(one, str(benchmark), str(split), number)
    covered = _coverage(table)
    if covered:
        sections.append(
            Section("coverage", "Can the intervals be trusted?", (), (), [Table("Truth inside the interval", covered)])
        )
    n_methods, benchmarks = table["method"].n_unique(), table["benchmark"].unique(maintain_order=True).to_list()
    where = ", ".join(b for b in benchmarks if b) or name
    held_out = span(predictions.targets_in_a_run())
    facts = [
        Fact("What was compared?", f"{n_methods} methods", f"on {where}; {held_out} models held out."),
        Fact("How far off?", f"{span(best['mae_pp'], 2)} points", _at_best(best)),
        _how_sure(predictions, best),
        Fact("What does it cost?", f"{span(best['n_anchors'])} anchors",
             f"for each model, with {'that method' if len(best) == 1 else 'those methods'}."),
    ]  # fmt: skip
    provenance = [
        ("Methods", ", ".join(table["method"].unique(maintain_order=True).to_list())),
        ("Splits", ", ".join(s or "given" for s in table["split"].unique(maintain_order=True).to_list())),
        ("Runs", span(predictions.summary()["n_runs"])),
        *([("Made", created)] if created else []),
    ]
    title = f"{n_methods} methods on {where}"
    lead = "Error and rank agreement on models held out, for every method and number of anchors."
    return Page(title, lead, facts, sections, (), provenance, command, parts.MADE_BY)


def _best_of_each(summary: pl.DataFrame) -> pl.DataFrame:
    """The row of the smallest error of every benchmark and split: errors on other targets are no rivals."""
    by_error = summary.sort("mae_pp", maintain_order=True)
    best = by_error.group_by("benchmark", "split", maintain_order=True).first()
    scenes = summary.select("benchmark", "split").unique(maintain_order=True)
    return scenes.join(best, on=["benchmark", "split"], maintain_order="left").select(_SUMMARY)


def _at_best(best: pl.DataFrame) -> str:
    """Which method that is, split by split where there are few."""
    rows = best.to_dicts()
    if len(rows) == 1:
        return f"at best: {rows[0]['method']}{_named(rows[0], best, ', ', 'split ')}."
    if len(rows) > INLINE:
        return f"with the best method of each of {len(rows)} benchmarks and splits, which are listed below."
    each = [f"{_named(r, best)}: {r['method']}, {r['mae_pp']:.2f}" for r in rows]
    return f"at best on {'; '.join(each)}."


def _named(row: dict[str, Any], best: pl.DataFrame, before: str = "", split: str = "") -> str:
    """Benchmark and split of a row, as far as they tell rows apart; a split that has a name always."""
    words = [row["benchmark"]] if best["benchmark"].n_unique() > 1 else []
    name = row["split"] or ("given" if best["split"].n_unique() > 1 else "")
    words += [split + name] if name else []
    return before + ", ".join(words) if words else ""


def _how_sure(predictions: Predictions, best: pl.DataFrame) -> Fact:
    """How far runs lie apart with these methods, and what that does not say."""
    apart = best["mae_sd"].drop_nulls()
    if not len(apart):
        return Fact("How sure?", "One run", "tells no spread: take several.")
    words = "" if len(best) == 1 else "at most, "
    words += f"the sample standard deviation over {span(best['n_runs'])} runs"
    same = same_words(predictions)
    words += f" with other anchors and draws; {same}." if same else " that draw everything anew."
    return Fact("How sure?", f"± {max(apart.to_list()):.2f} points", words)


def _best_table(best: pl.DataFrame) -> Table:
    rows: list[tuple[Value, ...]] = [tuple(parts.exact(v) for v in row) for row in best.rows()]
    return Table("Smallest error of each benchmark and split", Data("best", _SUMMARY, rows), hide=_alike(best))


def errors_table(predictions: Predictions) -> Table:
    """Error and rank agreement of every method, with sample standard deviations over runs."""
    summary = predictions.summary().select(_SUMMARY)
    beside = _beside_best(predictions.table, summary)
    rows: list[tuple[Value, ...]] = [
        (*(parts.exact(v) for v in row), words) for row, words in zip(summary.rows(), beside, strict=True)
    ]
    note = ["Mean error: mean absolute error in points. Rank correlation: Spearman's.", _BESIDE]
    spread = spread_words(predictions)
    note += [f"{spread[0].upper()}{spread[1:]}."] if spread else []
    sizes = predictions.table.group_by(*KEYS, "run").len().group_by(KEYS).agg(pl.col("len").n_unique())
    note += ["Models: targets in a run, on average, as runs differ."] if max(sizes["len"]) > 1 else []
    return Table(
        "Error of every method", Data("errors", (*_SUMMARY, "beside_best"), rows), " ".join(note), hide=_alike(summary)
    )


_BESIDE = (
    "Beside the best of as many anchors on the same benchmark and split: like it where errors differ by no more than "
    "other anchors, draws and targets would make of it one time in twenty. One run does not tell, and fewer than "
    f"{TELLING} runs miss large differences: take {TELLING} or more."
)


def _beside_best(table: pl.DataFrame, summary: pl.DataFrame) -> list[str]:
    """Of every row of a summary, whether its error can be told from the smallest with as many anchors; "" where so.

    Runs have anchors of their own, in which all of their targets share, and targets may be the same in all runs. So
    the variances over both are added, with as many degrees of freedom as runs allow. Nothing is said of one run.
    """
    error = (pl.col("estimate") - pl.col("truth")).abs()
    each = table.select(*KEYS, "run", "model", error.alias("error"))
    parts = dict(iter(each.group_by(KEYS)))
    rows, best = summary.to_dicts(), dict[tuple[Any, ...], dict[str, Any]]()
    for row in sorted(rows, key=lambda row: row["mae_pp"]):
        best.setdefault(_scene_of(row), row)
    words = []
    for row in rows:
        first = best[_scene_of(row)]
        own, other = (parts[tuple(r[k] for k in KEYS)] for r in (row, first))
        both = own.join(other, on=["run", "model"]).with_columns(apart=pl.col("error") - pl.col("error_right"))
        by_run, by_model = (
            both.group_by(of).agg(pl.col("apart").mean())["apart"].to_numpy() for of in ("run", "model")
        )
        words.append("best" if row is first else _told_apart(by_run, by_model))
    return words


def _scene_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["benchmark"], row["split"], row["n_anchors"]


def _told_apart(by_run: NDArray[Any], by_model: NDArray[Any]) -> str:
    """From differences of errors in every run and of every model."""
    from scipy.stats import t

    if len(by_run) < 2:
        return UNKNOWN
    error = np.sqrt(sum(float(v.var(ddof=1)) / len(v) for v in (by_run, by_model) if len(v) > 1))
    if by_run.mean() > t.ppf(0.975, len(by_run) - 1) * error:
        return ""
    return "like it" if len(by_run) >= TELLING else f"not told apart ({len(by_run)} runs)"


def _alike(summary: pl.DataFrame) -> tuple[str, ...]:
    """Columns that tell no rows apart, and spreads that one run does not have."""
    same = [c for c in ("benchmark", "split", "n_anchors", "n_runs", "n_models") if summary[c].n_unique() == 1]
    return (*same, *(c for c in ("mae_sd", "spearman_sd") if summary[c].null_count() == len(summary)))


def _numbers(scenes: Sequence[Predictions]) -> dict[str, int]:
    """The methods that any figure shows, numbered, so that each looks the same in all of them."""
    shown = [m for one in scenes for m in (*_best(one.summary(), CURVES), *_shown_first(one))]
    return {method: k for k, method in enumerate(dict.fromkeys(shown))}


def _scene(one: Predictions, benchmark: str, split: str, number: Mapping[str, int]) -> Iterator[Section]:
    name = slug("-".join(w for w in (benchmark, split) if w) or "study").replace(".", "_")
    where = "".join(f", {w}" for w in (benchmark, f"split {split}" if split else "") if w)
    if one.table["n_anchors"].n_unique() > 1:
        yield Section(f"curves-{name}", f"Error over anchors{where}", (), curve_figures(one, name, number))
    yield Section(f"truth-{name}", f"True against estimated{where}", _one_of(one), list(_scatters(one, name, number)))


def _one_of(one: Predictions) -> tuple[str, ...]:
    """Why a figure of one run may say another error than the table, where there are several."""
    runs = one.table["run"].n_unique()
    return (f"The first of {runs} runs: the errors in the table are means over all of them.",) if runs > 1 else ()


def curve_figures(one: Predictions, name: str, number: Mapping[str, int]) -> list[Figure]:
    """Error and rank agreement over numbers of anchors, of the methods with the smallest error."""
    summary = one.summary()
    shown = _best(summary, CURVES)
    part = summary.filter(pl.col("method").is_in(shown)).sort("n_anchors")
    columns = ("method", "n_anchors", "mae_pp", "mae_sd", "spearman", "spearman_sd")
    data = Data(f"curves-{name}", columns, [tuple(parts.exact(v) for v in row) for row in part.select(columns).rows()])
    counts = sorted(part["n_anchors"].unique().to_list())
    total = summary["method"].n_unique()
    note = (
        f"The {len(shown)} of {total} methods with the smallest errors; all are in the table."
        if total > len(shown)
        else ""
    )
    made = []
    known = part["mae_sd"].null_count() < len(part)
    for value, spread, title, what in (
        ("mae_pp", "mae_sd", "Error", "mean absolute error (points)"),
        ("spearman", "spearman_sd", "Rank agreement", "Spearman's rank correlation"),
    ):
        spec = charts.curves(value, spread if known else None, what, {m: number[m] for m in shown}, counts)
        alt = f"Lines of {what} over numbers of anchors for {len(shown)} methods."
        made.append(Figure(f"{value}-{name}", title, alt, spec, data, note))
    return made


def _shown_first(one: Predictions) -> list[str]:
    """The methods whose first run is drawn."""
    return _best(Predictions(first_run(one)).summary(), SCATTERS)


def _scatters(one: Predictions, name: str, number: Mapping[str, int]) -> Iterator[Figure]:
    first, shown = first_run(one), _shown_first(one)
    groups = {
        method: [
            Estimated(r["model"], 100 * r["estimate"], 0, 0, 100 * r["truth"])
            for r in first.filter(pl.col("method") == method).iter_rows(named=True)
        ]
        for method in shown
    }
    limits = parts.limits_of([e for part in groups.values() for e in part])
    for k, (method, found) in enumerate(groups.items()):
        n = first.filter(pl.col("method") == method)["n_anchors"][0]
        title = f"{method}, {n} anchors"
        colour = charts.colour_of(number[method])
        yield parts.truth_figure(f"truth-{name}-{k}", title, found, limits, intervals=False, height=300, colour=colour)


def _best(summary: pl.DataFrame, most: int) -> list[str]:
    """Methods by their error, averaged over numbers of anchors."""
    by = (
        summary.group_by("method", maintain_order=True).agg(pl.col("mae_pp").mean()).sort("mae_pp", maintain_order=True)
    )
    return by["method"].head(most).to_list()


def _coverage(table: pl.DataFrame) -> Data | None:
    known = table.filter(pl.col("low").is_not_null() & pl.col("high").is_not_null())
    if not len(known):
        return None
    keys = ["benchmark", "split", "method", "n_anchors"]
    inside = ((pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high"))).mean()
    width = (pl.col("high") - pl.col("low")).mean()
    found = known.group_by(keys, maintain_order=True).agg((100 * inside).alias("covered"), (100 * width).alias("width"))
    return Data("coverage", tuple(found.columns), [tuple(parts.exact(v) for v in row) for row in found.rows()])
