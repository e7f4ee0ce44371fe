"""Tables and figures from a study's predictions alone."""

import numpy as np
import polars as pl
import pytest
from matplotlib.text import Text

from disco_eval import ValidationError, study
from disco_eval.report import charts, figures
from disco_eval.report.figures import write_figures
from disco_eval.report.methods import errors_table, study_page
from disco_eval.report.tables import cells, labels, latex, markdown, tables, write_tables
from disco_eval.studies import PRESETS, Pair, Predictions, from_table, preset
from tests.conftest import population


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    r = population(40, 80)
    methods = [*preset("table1", r).methods, Pair("mine & yours_1", "pds", "ridge")]
    return study(methods, {"MMLU": r, "A_RC": r}, ["iid", "top10"], [6, 12], 2, 0, out=out), out


def test_rows_stand_by_approach_and_print_the_numbers(studied):
    predictions, _ = studied
    made = tables(predictions)
    assert [(t.split, t.n_anchors) for t in made] == [("iid", 6), ("iid", 12), ("top10", 6), ("top10", 12)]
    table = made[1]
    assert table.benchmarks == ("MMLU", "A_RC")
    assert [r.approach for r in table.rows] == [
        "Baseline", *["tinyBenchmarks"] * 3, "Metabench", *["Model signature"] * 2, *["DISCO"] * 4, "Other",
    ]  # fmt: skip
    metabench = next(r for r in table.rows if r.approach == "Metabench")
    assert metabench.other_counts(12) == "18"
    text = markdown(table)
    summary = predictions.summary().filter(split="iid", n_anchors=12, method="pds+forest", benchmark="MMLU")
    row = summary.to_dicts()[0]
    assert f"| {row['mae_pp']:.2f} ± {row['mae_sd']:.2f} | {row['spearman']:.3f} ± {row['spearman_sd']:.3f} |" in text
    assert "(18 anchors)" in text


def test_latex_is_balanced_and_escaped(studied):
    text = latex(tables(studied[0])[1])
    plain = text.replace(r"\&", "")
    body = [line for line in plain.splitlines() if line.endswith(r"\\")]
    assert len({line.count("&") for line in body if "multicolumn" not in line}) == 1
    assert text.count("{") == text.count("}")
    assert r"mine \& yours\_1" in text
    assert r"A\_RC" in text
    assert text.count(r"\textbf{") >= 5 + 4
    assert r"\textdagger" in text


def test_files_are_written(studied, tmp_path):
    predictions, out = studied
    names = {f.name for f in write_tables(predictions, tmp_path)}
    assert {"summary.csv", "table-iid-12.md", "table-iid-12.tex", "table-top10-6.md"} <= names
    summary = pl.read_csv(tmp_path / "summary.csv")
    np.testing.assert_allclose(summary["mae_pp"], predictions.summary()["mae_pp"])
    few = predictions.table.filter(
        pl.col("benchmark") == "MMLU", pl.col("split") == "iid", pl.col("method").is_in(["pds+forest", "random+direct"])
    )
    drawn = {f.name for f in write_figures(Predictions(few), out, tmp_path, "svg")}
    for what in ("scatter", "ranks", "curves", "calibration"):
        assert f"{what}-MMLU-iid.svg" in drawn
        assert (tmp_path / f"{what}-MMLU-iid.svg").read_text().rstrip().endswith("</svg>")


def test_tables_of_an_older_study_do_not_stay_beside_new_ones(studied, tmp_path):
    predictions, _ = studied
    write_tables(predictions, tmp_path)
    mine = {"table-of-mine.md": "mine", "table-notes-2024.md": "# mine", "notes.csv": "a,b"}
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    one = Predictions(predictions.table.filter(pl.col("split") == "iid", pl.col("n_anchors") == 6))
    written = write_tables(one, tmp_path)
    assert {f.name for f in tmp_path.iterdir()} == {*mine, *(f.name for f in written)}
    assert {f.name for f in written} == {"summary.csv", "table-iid-6.md", "table-iid-6.tex"}


def test_figures_are_as_wide_as_in_print(studied, tmp_path):
    """A column is 3.35 inches, a page 7; text is of print size, and no text leaves the picture."""
    part = Predictions(studied[0].table.filter(pl.col("benchmark") == "MMLU", pl.col("split") == "iid"))
    for draw in (figures.scatters, figures.ranks):
        assert draw(figures.first_run(part), 3.35).get_figwidth() <= 3.35
        assert draw(figures.first_run(part), 7.0).get_figwidth() == 7.0
    for width, columns in ((3.35, 1), (7.0, 2)):
        figure = figures.curves(part, width)
        assert figure.get_figwidth() == width
        figure.draw_without_rendering()
        assert len({round(ax.get_position().x0, 1) for ax in figure.axes}) == columns
        box = figure.bbox.padded(2)
        for text in figure.findobj(Text):
            if text.get_text() and text.get_visible():
                assert 6.5 <= text.get_fontsize() <= 8
                extent = text.get_window_extent()
                assert box.x0 <= extent.x0
                assert extent.x1 <= box.x1
    with pytest.raises(ValidationError, match="as wide as a column or a page, not 'wall'"):
        write_figures(part, tmp_path, tmp_path, "svg", "wall")


def test_a_benchmark_of_grades_beside_one_of_probabilities(tmp_path):
    both = {"probs": population(40, 60), "grades": population(40, 60, graded=True)}
    predictions = study(["random+direct"], both, "iid", [5], 1, 0, out=tmp_path)
    names = {f.name for f in write_figures(predictions, tmp_path, tmp_path / "f")}
    assert "calibration-probs-iid.svg" in names
    assert "calibration-grades-iid.svg" not in names


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_other_formats(studied, tmp_path, kind):
    part = studied[0].table.filter(pl.col("benchmark") == "MMLU", pl.col("split") == "iid", pl.col("n_anchors") == 6)
    part = part.filter(pl.col("method").is_in(["pds+knn", "mine & yours_1"]))
    files = write_figures(Predictions(part), tmp_path, tmp_path, kind)
    assert {f.suffix for f in files} == {f".{kind}"}
    assert all(f.stat().st_size > 1000 for f in files)
    with pytest.raises(ValidationError, match="svg, png, pdf, not 'gif'"):
        write_figures(Predictions(part), tmp_path, tmp_path, "gif")


def test_labels_of_the_papers_rows():
    assert labels("pds+forest") == ("DISCO", "High PDS", "Sig. + RF")
    assert labels("random+direct") == ("Baseline", "Random", "Direct eval.")
    assert labels("ssepy")[0] == "SSEPY"
    assert labels("pds+forest, of mine") == ("Other", "pds+forest, of mine", "")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_row_of_every_preset_has_its_labels(name):
    for method in preset(name, population(500, 60), committee=20).methods:
        assert labels(method.name)[0] != "Other"


def test_metabench_takes_other_numbers_on_other_benchmarks():
    r = population(40, 80)
    methods = [m for m in preset("table1", r).methods if m.name in ("best_for_validation+ability_irt", "random+direct")]
    methods.append(Pair("another", "uniform", "direct"))
    made = tables(study(methods, {"mmlu": r, "hellaswag": r, "winogrande": r}, "iid", 10, 1, 0))
    (table,) = made
    (row,) = [row for row in table.rows if row.approach == "Metabench"]
    assert row.other_counts(10) == "15/45/20"
    assert "Best for val. (15/45/20 anchors)" in markdown(table)


def test_one_row_of_someone_elses_table():
    rows = [("a", 0, 100, f"m{k}", k / 10, k / 10 + 0.01) for k in range(5)]
    table = pl.DataFrame(rows, schema=["method", "run", "n_anchors", "model", "truth", "estimate"], orient="row")
    text = markdown(tables(from_table(table))[0])
    assert "| Other | a |  | 1.00 | 1.000 |" in text
    assert "±" not in text


def test_tables_say_what_their_spread_is(studied, tmp_path):
    predictions, _ = studied
    words = "the target models are the same in all runs, so ± says what other anchors and other draws would change"
    table = tables(predictions)[1]
    assert f"mean ± sample standard deviation over 2 runs; {words}" in markdown(table).splitlines()[0]
    assert r"% mean $\pm$ sample standard deviation over 2 runs; the target models are the same" in latex(table)
    drawn = study(["random+direct"], population(40, 60), "random", [5, 10], 2, 0)
    assert markdown(tables(drawn)[0]).splitlines()[0].endswith("mean ± sample standard deviation over 2 runs.")
    one = study(["random+direct"], population(40, 60), "random", [5, 10], 1, 0)
    assert "±" not in markdown(tables(one)[0])
    assert "pm" not in latex(tables(one)[0])
    assert write_figures(one, tmp_path, tmp_path / "figures")


def test_methods_that_cannot_be_told_from_the_best_are_named():
    """Errors in points: always 1, as much by models, as much by runs, the same as the first, twice as much.

    On another split one is alone, with more anchors another is the best, one run tells nothing and two tell little.
    """
    models, runs = np.arange(40), np.arange(6)[:, None]
    none = 0 * (runs + models)
    off = {"best": 1 + none, "same": 1 + none, "worse": 2 + none}
    off |= {"models": 1.1 + 0.5 * (-1) ** (models + none), "runs": 1.1 + 0.3 * (-1) ** (runs + none)}
    scenes = [("iid", 9, off, 6), ("iid", 20, {"worse": off["worse"], "other": off["models"] + 2}, 6)]
    scenes += [("top10", 9, {"worse": off["worse"]}, 6), ("one", 9, {k: off[k] for k in ("best", "worse")}, 1)]
    scenes += [("two", 9, {k: off[k] for k in ("best", "runs", "worse")}, 2)]
    rows = [
        {"benchmark": "b", "method": method, "split": split, "run": run, "n_anchors": n, "model": f"m{k}",
         "truth": 0.5 + k / 1000, "estimate": 0.5 + k / 1000 + float(errors[run, k]) / 100 * (-1) ** (k + run)}
        for split, n, methods, n_runs in scenes for method, errors in methods.items() for run in range(n_runs)
        for k in models
    ]  # fmt: skip
    data = errors_table(from_table(pl.DataFrame(rows))).data
    at = [data.columns.index(name) for name in ("split", "n_anchors", "method", "beside_best")]
    assert {tuple(row[k] for k in at[:3]): row[at[3]] for row in data.rows} == {
        ("iid", 9, "best"): "best", ("iid", 9, "models"): "like it", ("iid", 9, "runs"): "like it",
        ("iid", 9, "same"): "like it", ("iid", 9, "worse"): "", ("iid", 20, "worse"): "best", ("iid", 20, "other"): "",
        ("top10", 9, "worse"): "best", ("one", 9, "best"): "best", ("one", 9, "worse"): "not known",
        ("two", 9, "best"): "best", ("two", 9, "runs"): "not told apart (2 runs)", ("two", 9, "worse"): "",
    }  # fmt: skip


@pytest.mark.parametrize("off", [0.0333504, 0.03335000000000001])
def test_a_study_rounds_once(tmp_path, off):
    """Rounded to 3.335 first, it would end as 3.33 beside the 3.34 of table and CSV."""
    table = pl.DataFrame({"method": ["a"] * 4, "run": 0, "n_anchors": 9, "model": list("mnop"), "truth": 0.0})
    predictions = from_table(table.with_columns(estimate=pl.lit(off)))
    mae = predictions.summary()["mae_pp"][0]
    assert f"{mae:.2f}" != f"{round(mae, 4):.2f}"
    shown = errors_table(predictions)
    at = [name for name, *_ in shown.head()].index("mean error")
    assert shown.body()[0][at][0] == f"{mae:.2f}" == cells(tables(predictions)[0], "")[0][2]


def test_a_method_looks_the_same_in_all_figures_of_a_page():
    """On the second split the order of errors is the other way round; ten methods, so that not all are in a chart."""
    rows = [
        {"method": f"m{k}", "split": split, "run": 0, "n_anchors": n, "model": f"t{i}", "truth": i / 10,
         "estimate": i / 10 + sign * (k - 4.5) / 1000 + 0.01}
        for split, sign in (("iid", 1), ("top10", -1)) for k in range(10) for n in (5, 20) for i in range(5)
    ]  # fmt: skip
    lines, points, orders = {}, {}, []
    for figure in (f for s in study_page(from_table(pl.DataFrame(rows)), "x").sections for f in s.figures):
        drawn = figure.spec["layer"][-1]["encoding"]
        if "scatter" in figure.name:
            points.setdefault(figure.title.split(",")[0], set()).add(drawn["color"]["value"])
        else:
            colour, shape = figure.spec["encoding"]["color"], drawn["shape"]
            assert colour["scale"]["domain"] == shape["scale"]["domain"] == colour["sort"]
            looks = list(zip(colour["scale"]["range"], shape["scale"]["range"], strict=True))
            assert len(set(looks)) == len(looks) == 8
            orders.append(colour["sort"])
            for method, look in zip(colour["sort"], looks, strict=True):
                lines.setdefault(method, set()).add(look)
    assert orders[0] != orders[-1]
    assert all(len(found) == 1 for found in lines.values())
    assert all(found == {look[0] for look in lines[method]} for method, found in points.items())


def test_bars_of_rank_agreement_end_at_one_and_those_of_errors_at_nothing():
    for value, end, kept in (("spearman", "to", "min(1, "), ("mae_pp", "from", "max(0, ")):
        spec = charts.curves(value, "sd", "x", {"a": 0}, [5, 10])
        (made,) = (t["calculate"] for t in spec["transform"] if t["as"] == end)
        assert made.startswith(kept)
