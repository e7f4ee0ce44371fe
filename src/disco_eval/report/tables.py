"""A study's numbers as tables: markdown to read, CSV to compute with, LaTeX in the paper's layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import DiscoError, some
from ..files import new_file
from ..predict import PREDICTORS
from ..select import SELECTORS
from ..studies.outdated import TEX_BEGINS, remove_tables
from ..studies.predictions import Predictions

_SELECTIONS = {
    "random": "Random",
    "uniform": "Random, unstratified",
    "pds": "High PDS",
    "jsd": "High JSD",
    "anchor_conf": "Anchor-conf",
    "anchor_corr": "Anchor-corr",
    "anchor_irt": "Anchor-IRT",
    "best_for_validation": "Best for val.",
    "every_kth": "Uniform correctness",
}
_PREDICTIONS = {
    "direct": "Direct eval.",
    "weighted_sum": "Weighted sum",
    "pirt": "p-IRT",
    "gpirt": "gp-IRT",
    "ability_irt": "ability-IRT",
    "lifelong": "Weighted sum",
    "knn": "Sig. + kNN",
    "forest": "Sig. + RF",
    "linear": "Sig. + linear",
    "ridge": "Sig. + ridge",
    "lasso": "Sig. + lasso",
    "boosting": "Sig. + GB",
    "mlp2": "Sig. + MLP-2",
    "mlp3": "Sig. + MLP-3",
}
_RF, _PDS = "Sig. + RF", "High PDS"
_FACTORS = {  # the rows of the factor analyses, see studies.presets
    "pds+forest, stratified": ("DISCO", "High PDS, stratified", _RF),
    "pds+forest, all sources": ("DISCO", _PDS, "Sig. + RF, all sources"),
    **{f"pds+forest, {n} sources": ("DISCO", _PDS, f"Sig. + RF, {n} sources") for n in (25, 50, 100, 200, 300)},
    "pds+forest, no reduction": ("DISCO", _PDS, "Sig. + RF, no reduction"),
    "pds+forest, UMAP 16": ("DISCO", _PDS, "Sig. + RF, UMAP 16"),
    **{f"pds+forest, PCA {n}": ("DISCO", _PDS, f"Sig. + RF, PCA {n}") for n in (16, 32, 64, 128, 256)},
    "pds+forest, whole committee": ("DISCO", "High PDS, whole committee", _RF),
    **{f"pds+forest, committee {n}": ("DISCO", f"High PDS, committee {n}", _RF) for n in (10, 25, 50, 100, 200)},
    "lowest pds+forest": ("DISCO", "Low PDS", _RF),
    "by difficulty+direct": ("Baseline", "Random, spread by difficulty", "Direct eval."),
    "default": ("disco-eval", "Default", "Default"),
    "default, as many more when alarmed": ("disco-eval", "Default", "Default, as many more when alarmed"),
    "every_kth+lifelong, fewest errors": ("Lifelong Bench.", "Uniform correctness", "Weighted sum, fewest errors"),
}
_APPROACHES = (
    "Baseline",
    "Anchor Points",
    "tinyBenchmarks",
    "Metabench",
    "Lifelong Bench.",
    "SSEPY",
    "Model signature",
    "DISCO",
    "disco-eval",
    "Other",
)


@dataclass(frozen=True)
class Row:
    """One method's line: what the paper's three columns say, and a cell for each benchmark."""

    method: str
    approach: str
    selection: str
    prediction: str
    cells: dict[str, dict[str, float]]

    def other_counts(self, n_anchors: int) -> str:
        """Its numbers of anchors where they are not the table's, for a note; else empty."""
        counts = list(dict.fromkeys(int(c["n_anchors"]) for c in self.cells.values()))
        return "" if counts == [n_anchors] else "/".join(map(str, counts))


@dataclass(frozen=True)
class Table:
    """Methods by benchmarks for one split and one number of anchors."""

    split: str
    n_anchors: int
    benchmarks: tuple[str, ...]
    rows: tuple[Row, ...]
    targets: str  # how many models were estimated in each run, in words
    spread: str = ""  # what ± stands for, in words


def tables(predictions: Predictions) -> list[Table]:
    """One table for every split and number of anchors of a study, rows by approach as in the paper.

    A method that takes more anchors than the others (Metabench) stands in the table of the nearest smaller number, with
    a dagger.
    """
    summary = predictions.summary()
    out = []
    for (split,), part in summary.group_by("split", maintain_order=True):
        spread = spread_words(Predictions(predictions.table.filter(pl.col("split") == split)))
        for n in _main_counts(part):
            own = [c for c in part["n_anchors"].unique().to_list() if _home(c, part) == n]
            at = part.filter(pl.col("n_anchors").is_in(own))
            benchmarks = tuple(dict.fromkeys(at["benchmark"]))
            targets = f"{span(at['n_models'])} target models"
            out.append(Table(str(split), n, benchmarks, _rows(at), targets, spread))
    return out


def spread_words(predictions: Predictions) -> str:
    """What ± stands for in a study's tables; empty with one run, which has none."""
    runs = predictions.summary()["n_runs"]
    if runs.max() == 1:
        return ""
    words = f"mean ± sample standard deviation over {span(runs)} runs"
    same = same_words(predictions)
    limits = f"{words}; {same}, so ± says what other anchors and other draws would change, not other targets"
    return limits if same else words


def same_words(predictions: Predictions) -> str:
    """That all runs have the same targets, and with which splits where not with all; empty with none."""
    same = predictions.same_targets()
    every = {split or "given" for split in predictions.table["split"].unique()}
    where = "" if set(same) == every else f" with split {', '.join(same)}"
    return f"the target models are the same in all runs{where}" if same else ""


def span(numbers: Iterable[float], digits: int = 0) -> str:
    """The smallest and the largest of some numbers in words: ``4``, ``4 to 6``."""
    values = sorted(numbers)
    low, high = (f"{v:,.{digits}f}" for v in (values[0], values[-1]))
    return low if low == high else f"{low} to {high}"


def _main_counts(part: pl.DataFrame) -> list[int]:
    """Numbers of anchors that several methods share; all of them where none is shared."""
    methods = part.group_by("n_anchors").agg(pl.col("method").n_unique().alias("n")).sort("n_anchors")
    most = int(methods["n"].max())  # type: ignore[arg-type]
    return methods.filter(pl.col("n") >= min(2, most))["n_anchors"].to_list()


def _home(count: int, part: pl.DataFrame) -> int:
    main = _main_counts(part)
    return max((n for n in main if n <= count), default=main[0])


def _rows(at: pl.DataFrame) -> tuple[Row, ...]:
    """A row for each method; one for each of its numbers of anchors where a benchmark has several."""
    several = at.filter(pl.struct("method", "benchmark").is_duplicated())["method"].unique().to_list()
    found: dict[tuple[str, int | None], Row] = {}
    for cell in at.iter_rows(named=True):
        method = cell["method"]
        key = (method, cell["n_anchors"] if method in several else None)
        found.setdefault(key, Row(method, *labels(method), {})).cells[cell["benchmark"]] = cell
    rows = list(found.values())
    return tuple(sorted(rows, key=lambda r: _APPROACHES.index(r.approach)))


def labels(method: str) -> tuple[str, str, str]:
    """What the paper's columns Approach, Selection and Prediction say of a method; a name it does not know is Other."""
    if method == "ssepy":
        return "SSEPY", "Uniform confidence", "Weighted sum"
    if method in _FACTORS:
        return _FACTORS[method]
    known = {f"{s}+{p}": (s, p) for s in [*SELECTORS, "random"] for p in PREDICTORS}
    if method not in known:
        return "Other", method, ""
    s, p = known[method]
    return _approach(s, p), _SELECTIONS.get(s, s), _PREDICTIONS.get(p, p)


def _approach(s: str, p: str) -> str:
    if p in ("gpirt", "pirt"):
        return "tinyBenchmarks"
    if p == "ability_irt":
        return "Metabench"
    if p == "lifelong":
        return "Lifelong Bench."
    if s in ("anchor_conf", "anchor_corr", "anchor_irt"):
        return "Anchor Points" if p in ("direct", "weighted_sum") else "Model signature"
    if p in ("direct", "weighted_sum"):
        return "Baseline"
    return "DISCO" if s in ("pds", "jsd") else "Model signature"


def markdown(table: Table) -> str:
    """The table in markdown: MAE in percentage points and Spearman's rho, means over runs ± their spread."""
    head = ["Approach", "Selection", "Prediction"]
    for b in table.benchmarks:
        head += [f"{b} MAE".strip(), f"{b} rank".strip()]
    lines = [_line(head), _line(["---"] * 3 + ["---:"] * (2 * len(table.benchmarks)))]
    for row in table.rows:
        counts = row.other_counts(table.n_anchors)
        mark = f" ({counts} anchors)" if counts else ""
        cells = [row.approach, row.selection + mark, row.prediction]
        for b in table.benchmarks:
            cells += [_pm(row, b, "mae", 2), _pm(row, b, "spearman", 3)]
        lines.append(_line(cells))
    title = f"Split: {table.split or 'given'}; {table.n_anchors} anchors; {table.targets}"
    what = "MAE in percentage points, Spearman's rank"
    return "\n".join(["; ".join(w for w in (title, what, table.spread) if w) + ".", "", *lines]) + "\n"


def cells(table: Table, benchmark: str) -> list[list[str]]:
    """Selection, prediction, MAE and rank of every method on one benchmark, as `markdown` has them."""
    found = []
    for row in table.rows:
        counts = row.other_counts(table.n_anchors)
        mark = f" ({counts} anchors)" if counts else ""
        pair = [_pm(row, benchmark, "mae", 2), _pm(row, benchmark, "spearman", 3)]
        found.append([row.selection + mark, row.prediction, *pair])
    return found


def latex(table: Table) -> str:
    """The table in LaTeX (booktabs, multirow) as the paper sets it: best of a column bold, approaches ruled apart."""
    width = 2 * len(table.benchmarks)
    heads = " & ".join(rf"\multicolumn{{2}}{{c}}{{\textbf{{{_tex(b)}}}}}" for b in table.benchmarks)
    rules = "".join(rf"\cmidrule(lr){{{4 + 2 * k}-{5 + 2 * k}}}" for k in range(len(table.benchmarks)))
    lines = [
        TEX_BEGINS,
        rf"\begin{{tabular}}{{ccc|{'l' * width}}}",
        r"\toprule",
        rf"\textbf{{Approach}} & \textbf{{Selection}} & \textbf{{Prediction}} & {heads} \\",
        rules,
        " & & & " + " & ".join([r"MAE$\downarrow$ & Rank$\uparrow$"] * len(table.benchmarks)) + r" \\",
    ]
    best = _best(table)
    for approach in dict.fromkeys(r.approach for r in table.rows):
        lines.append(r"\midrule")
        group = [r for r in table.rows if r.approach == approach]
        for k, row in enumerate(group):
            first = rf"\multirow{{{len(group)}}}{{*}}{{{_tex(approach)}}}" if k == 0 else ""
            dagger = r"\textdagger" if row.other_counts(table.n_anchors) else ""
            cells = [first, _tex(row.selection) + dagger, _tex(row.prediction)]
            for b in table.benchmarks:
                cells += [_tex_cell(row, b, "mae", 2, best), _tex_cell(row, b, "spearman", 3, best)]
            lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines.append(f"% {table.targets}")
    if table.spread:
        lines.append(f"% {table.spread}".replace("±", r"$\pm$"))
    for row in table.rows:
        counts = row.other_counts(table.n_anchors)
        if counts:
            lines.append(f"% dagger: {row.method} takes {counts} anchors instead of {table.n_anchors}")
    return "\n".join(lines) + "\n"


def write_tables(predictions: Predictions, out: str | Path) -> list[Path]:
    """Write every table as ``.md`` and ``.tex``, and all numbers as ``summary.csv``; returns the files.

    Tables of an older study that an earlier call left in the folder are removed, see `remove_tables`.

    Raises DiscoError where two splits would have the same file name.
    """
    folder = Path(out)
    made = tables(predictions)
    names = [f"table-{slug(t.split or 'given')}-{t.n_anchors}" for t in made]
    if len(set(names)) != len(names):
        raise DiscoError(
            f"two splits have names that are one as file names: {some(sorted({t.split for t in made}), 9)}"
        )
    written = [folder / "summary.csv"]
    with new_file(written[0]) as draft:
        predictions.summary().write_csv(draft)
    for table, name in zip(made, names, strict=True):
        for ending, text in (("md", markdown(table)), ("tex", latex(table))):
            file = folder / f"{name}.{ending}"
            with new_file(file) as draft:
                draft.write_text(text, encoding="utf-8")
            written.append(file)
    remove_tables(folder, but=written)
    return written


def slug(name: str) -> str:
    """A name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name).strip(".") or "_"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(c.replace("|", r"\|") for c in cells) + " |"


def _values(row: Row, benchmark: str, what: str) -> tuple[float, float | None] | None:
    cell: dict[str, Any] | None = row.cells.get(benchmark)
    if cell is None:
        return None
    return (cell["mae_pp"], cell["mae_sd"]) if what == "mae" else (cell["spearman"], cell["spearman_sd"])


def _pm(row: Row, benchmark: str, what: str, digits: int) -> str:
    values = _values(row, benchmark, what)
    if values is None:
        return ""
    if values[0] != values[0]:
        return "undefined"
    spread = "" if values[1] is None else f" ± {values[1]:.{digits}f}"
    return f"{values[0]:.{digits}f}{spread}"


def _best(table: Table) -> dict[tuple[str, str], str]:
    """The best printed value of every column."""
    best = {}
    for b in table.benchmarks:
        for what, digits, pick in (("mae", 2, min), ("spearman", 3, max)):
            found = [v[0] for r in table.rows if (v := _values(r, b, what)) is not None and v[0] == v[0]]
            if found:
                best[(b, what)] = f"{pick(found):.{digits}f}"
    return best


def _tex_cell(row: Row, benchmark: str, what: str, digits: int, best: dict[tuple[str, str], str]) -> str:
    values = _values(row, benchmark, what)
    if values is None or values[0] != values[0]:
        return "" if values is None else "--"
    text = f"{values[0]:.{digits}f}"
    shown = rf"\textbf{{{text}}}" if text == best[(benchmark, what)] else text
    spread = "" if values[1] is None else rf" $\pm$ {values[1]:.{digits}f}"
    return shown + spread


_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {c: "\\" + c for c in "&%_#${}"}


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text)
