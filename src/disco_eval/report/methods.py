"""The report of a study: methods compared over splits, runs and numbers of anchors."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..studies.predictions import Predictions
from . import charts, parts
from .figures import first_run
from .page import Data, Fact, Figure, Page, Section, Table, Value
from .parts import Estimated
from .tables import slug

CURVES = 8  # lines that can be told apart
SCATTERS = 6
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
    summary, table = predictions.summary(), predictions.table
    best = summary.sort("mae_pp").row(0, named=True)
    sections = [Section("errors", "Errors of all methods", (), (), [errors_table(predictions)])]
    for (benchmark, split), part in table.group_by(["benchmark", "split"], maintain_order=True):
        sections += _scene(Predictions(part), str(benchmark), str(split))
    covered = _coverage(table)
    if covered:
        sections.append(
            Section("coverage", "Can the intervals be trusted?", (), (), [Table("Truth inside the interval", covered)])
        )
    n_methods, benchmarks = table["method"].n_unique(), table["benchmark"].unique(maintain_order=True).to_list()
    where = ", ".join(b for b in benchmarks if b) or name
    runs = int(summary["n_runs"].max())  # type: ignore[arg-type]
    least, most = (int(n) for n in summary["n_models"].sort().to_numpy()[[0, -1]])
    held_out = f"{most}" if least == most else f"{least} to {most}"
    own = summary.filter(pl.col("method") == best["method"], pl.col("n_anchors") == best["n_anchors"])
    most_apart = max(own["mae_sd"].to_list())
    apart = f"± {most_apart:.2f} points" if runs > 1 else "One run"
    spread = (
        f"at most, between {runs} runs that draw everything anew." if runs > 1 else "tells no spread: take several."
    )
    facts = [
        Fact("What was compared?", f"{n_methods} methods", f"on {where}; {held_out} models held out."),
        Fact("How far off?", f"{best['mae_pp']:.2f} points", f"at best: {best['method']}{_where(best, benchmarks)}."),
        Fact("How sure?", apart, spread),
        Fact("What does it cost?", f"{best['n_anchors']:,} anchors", "for each model, with that method."),
    ]  # fmt: skip
    provenance = [
        ("Methods", ", ".join(table["method"].unique(maintain_order=True).to_list())),
        ("Splits", ", ".join(s or "given" for s in table["split"].unique(maintain_order=True).to_list())),
        ("Runs", str(runs)),
        *([("Made", created)] if created else []),
    ]
    title = f"{n_methods} methods on {where}"
    lead = "Error and rank agreement on models held out, for every method and number of anchors."
    return Page(title, lead, facts, sections, (), provenance, command, parts.MADE_BY)


def errors_table(predictions: Predictions) -> Table:
    """Error and rank agreement of every method, with standard deviations over runs."""
    summary = predictions.summary().select(_SUMMARY)
    rows: list[tuple[Value, ...]] = [tuple(parts.short(v) for v in row) for row in summary.rows()]
    same = [c for c in ("benchmark", "split", "n_anchors", "n_runs", "n_models") if summary[c].n_unique() == 1]
    one_run = ["mae_sd", "spearman_sd"] if int(summary["n_runs"].max()) == 1 else []  # type: ignore[arg-type]
    note = "Mean error: mean absolute error in points. Rank correlation: Spearman's."
    return Table("Error of every method", Data("errors", _SUMMARY, rows), note, hide=(*same, *one_run))


def _scene(one: Predictions, benchmark: str, split: str) -> Iterator[Section]:
    name = slug("-".join(w for w in (benchmark, split) if w) or "study").replace(".", "_")
    where = "".join(f", {w}" for w in (benchmark, f"split {split}" if split else "") if w)
    if one.table["n_anchors"].n_unique() > 1:
        yield Section(f"curves-{name}", f"Error over anchors{where}", (), curve_figures(one, name))
    yield Section(f"truth-{name}", f"True against estimated{where}", _one_of(one), list(_scatters(one, name)))


def _one_of(one: Predictions) -> tuple[str, ...]:
    """Why a figure of one run may say another error than the table, where there are several."""
    runs = one.table["run"].n_unique()
    return (f"The first of {runs} runs: the errors in the table are means over all of them.",) if runs > 1 else ()


def curve_figures(one: Predictions, name: str) -> list[Figure]:
    """Error and rank agreement over numbers of anchors, of the methods with the smallest error."""
    summary = one.summary()
    shown = _best(summary, CURVES)
    part = summary.filter(pl.col("method").is_in(shown)).sort("n_anchors")
    columns = ("method", "n_anchors", "mae_pp", "mae_sd", "spearman", "spearman_sd")
    data = Data(f"curves-{name}", columns, [tuple(parts.short(v) for v in row) for row in part.select(columns).rows()])
    counts = sorted(part["n_anchors"].unique().to_list())
    total = summary["method"].n_unique()
    note = (
        f"The {len(shown)} of {total} methods with the smallest errors; all are in the table."
        if total > len(shown)
        else ""
    )
    made = []
    for value, spread, title, what in (
        ("mae_pp", "mae_sd", "Error", "mean absolute error (points)"),
        ("spearman", "spearman_sd", "Rank agreement", "Spearman's rank correlation"),
    ):
        spec = charts.curves(value, spread, what, shown, counts)
        alt = f"Lines of {what} over numbers of anchors for {len(shown)} methods."
        made.append(Figure(f"{value}-{name}", title, alt, spec, data, note))
    return made


def _scatters(one: Predictions, name: str) -> Iterator[Figure]:
    first = first_run(one)
    shown = _best(Predictions(first).summary(), SCATTERS)
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
        yield parts.truth_figure(f"truth-{name}-{k}", title, found, limits, intervals=False, height=300)


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
    return Data("coverage", tuple(found.columns), [tuple(parts.short(v) for v in row) for row in found.rows()])


def _where(best: dict[str, object], benchmarks: list[str]) -> str:
    on = f" on {best['benchmark']}" if len(benchmarks) > 1 else ""
    return f"{on}, split {best['split']}" if best["split"] else on
