"""Summaries, calibration and cost against slow loops and the paper's own figures."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from disco_eval import DiscoError, FormatError, ValidationError
from disco_eval.studies import calibration, errors_by_calibration, from_table, read_predictions, study
from disco_eval.studies.cost import Cost, lm_eval_seconds, measured, paper, study_seconds
from tests.conftest import population


def published(rng, runs=3, n=40):
    truth = rng.random(n)
    rows = []
    for method in ("theirs", "ours"):
        for run in range(runs):
            own = truth + 0.03 * rng.normal(size=n)
            rows += [("mmlu", method, "chron", run, 100, f"m{m}", truth[m], own[m]) for m in range(n)]
    names = ["benchmark", "method", "split", "run", "n_anchors", "model", "truth", "estimate"]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_someone_elses_estimates_give_their_mae_and_spearman():
    table = published(np.random.default_rng(0))
    summary = from_table(table).summary()
    for method in ("theirs", "ours"):
        mae, rho = [], []
        for run in range(3):
            part = table.filter((pl.col("method") == method) & (pl.col("run") == run))
            mae.append(np.mean([abs(t - e) for t, e in zip(part["truth"], part["estimate"], strict=True)]) * 100)
            rho.append(spearmanr(part["truth"], part["estimate"])[0])
        row = summary.filter(pl.col("method") == method).to_dicts()[0]
        assert row["mae_pp"] == pytest.approx(np.mean(mae), abs=1e-12)
        assert row["spearman"] == pytest.approx(np.mean(rho), abs=1e-12)
        assert row["mae_sd"] == pytest.approx(np.std(mae, ddof=1), abs=1e-12)
        assert row["spearman_sd"] == pytest.approx(np.std(rho, ddof=1), abs=1e-12)
        assert (row["n_runs"], row["n_models"]) == (3, 40)


def test_one_run_has_no_spread():
    table = published(np.random.default_rng(0), runs=2)
    one = from_table(table.filter((pl.col("run") == 0) | (pl.col("method") == "ours"))).summary()
    assert one.schema["mae_sd"] == pl.Float64
    assert [row["mae_sd"] is None for row in one.to_dicts()] == [True, False]
    assert [row["spearman_sd"] is None for row in one.to_dicts()] == [True, False]


def test_runs_of_different_targets_are_told_from_runs_of_the_same():
    table = published(np.random.default_rng(0), runs=2)
    assert from_table(table).same_targets() == ["chron"]
    assert from_table(table.filter(pl.col("run") == 0)).same_targets() == []
    fewer = table.filter((pl.col("run") == 0) | pl.col("model").is_in([f"m{m}" for m in range(10)]))
    assert from_table(fewer).same_targets() == []
    assert from_table(fewer).summary()["n_models"].to_list() == [25, 25]
    assert from_table(fewer).targets_in_a_run() == (10, 40)
    both = pl.concat([fewer, table.with_columns(pl.lit("arc").alias("benchmark"))])
    assert from_table(both).same_targets() == ["chron (arc)"]


def test_a_long_table_needs_only_its_own_columns(tmp_path):
    table = published(np.random.default_rng(1)).drop("benchmark", "split").with_columns(pl.lit(3).alias("more"))
    for name, write in (("t.csv", table.write_csv), ("t.parquet", table.write_parquet)):
        write(tmp_path / name)
        read = read_predictions(tmp_path / name)
        assert read.summary()["mae_pp"].to_list() == pytest.approx(from_table(table).summary()["mae_pp"].to_list())


def test_what_is_no_such_table_is_refused(tmp_path):
    table = published(np.random.default_rng(1))
    with pytest.raises(FormatError, match="lacks the columns truth; it has benchmark"):
        from_table(table.drop("truth"))
    with pytest.raises(ValidationError, match="divide percent by 100"):
        from_table(table.with_columns(pl.col("truth") * 100))
    with pytest.raises(ValidationError, match=r"estimate goes from .*; divide percent by 100"):
        from_table(table.with_columns(pl.col("estimate") * 100))
    from_table(table.with_columns(pl.col("estimate") * 1.5 - 0.4))  # a line fitted to scores may leave [0, 1]
    for name in ("run", "model", "method"):
        with pytest.raises(ValidationError, match=f"{name} is missing in 1 rows"):
            from_table(table.with_columns(pl.when(pl.int_range(pl.len()) > 0).then(name).alias(name)))
    with pytest.raises(ValidationError, match="1 values of 'estimate' are missing"):
        from_table(table.with_columns(estimate=pl.when(pl.int_range(pl.len()) > 0).then("estimate")))
    other = pl.when((pl.col("method") == "ours") & (pl.col("model") == "m3")).then(0.5).otherwise("truth")
    with pytest.raises(ValidationError, match="do not agree on the truth of m3 in one run"):
        from_table(table.with_columns(truth=other))
    with pytest.raises(ValidationError, match="a model twice in one run"):
        from_table(pl.concat([table, table.head(1)]))
    with pytest.raises(DiscoError, match="disco study STORE"):
        read_predictions(tmp_path)
    (tmp_path / "predictions.parquet").write_bytes(b"nothing")
    with pytest.raises(FormatError, match="cannot be read as parquet"):
        read_predictions(tmp_path)


def test_a_constant_estimate_has_no_rank():
    table = published(np.random.default_rng(0), runs=1).with_columns(pl.lit(0.5).alias("estimate"))
    assert from_table(table).summary()["spearman"].is_nan().all()


def test_calibration_by_a_slow_loop():
    r = population(5, 70)
    mean, ece = calibration(r, n_bins=7)
    for m in range(5):
        top = r.probs[m].max(axis=1)
        assert mean[m] == pytest.approx(top.mean())
        slow = 0.0
        for b in range(7):
            inside = [i for i in range(70) if b / 7 <= top[i] < (b + 1) / 7 or (b == 6 and top[i] == 1)]
            if inside:
                slow += len(inside) / 70 * abs(np.mean(top[inside]) - np.mean(r.correct[m, inside]))
        assert ece[m] == pytest.approx(slow)
    with pytest.raises(ValidationError, match="calibration needs the probabilities"):
        calibration(population(graded=True))


def test_errors_stand_beside_calibration(tmp_path):
    r = population(40, 60)
    result = study(["random+direct"], r, "iid", 10, 2, 0, out=tmp_path)
    table = errors_by_calibration(result, tmp_path)
    assert len(table) == 4
    one = table.row(0, named=True)
    own = result.table.filter(pl.col("model") == one["model"])
    assert one["mae_pp"] == pytest.approx(100 * (own["truth"] - own["estimate"]).abs().mean())
    _tampered(tmp_path / "calibration.parquet", "ece")
    with pytest.raises(FormatError, match="is damaged: its checksum does not fit"):
        errors_by_calibration(result, tmp_path)
    graded = population(40, 60, graded=True)
    other = study(["random+direct"], graded, "iid", 10, 2, 0, out=tmp_path / "graded")
    with pytest.raises(DiscoError, match="calibration needs a study of responses with probabilities"):
        errors_by_calibration(other, tmp_path / "graded")


def test_the_papers_break_even_and_saving():
    hours, seconds = paper()
    assert hours.break_even == 389
    assert Cost(8.53, 0.07, 3284).break_even == 389
    assert round(100 * seconds.saved_share, 1) == 99.3
    assert round(hours.saved, 2) == 8.46
    assert Cost(1, 2).break_even is None
    for wrong in ({"full": 0, "anchors": 0}, {"full": -1, "anchors": 0}, {"full": float("nan"), "anchors": 0}):
        with pytest.raises(ValidationError):
            Cost(**wrong)


def test_costs_are_read_where_they_were_recorded(tmp_path):
    for k, t in enumerate(("100.5", "99.5")):
        (tmp_path / f"results_{k}.json").write_text(json.dumps({"total_evaluation_time_seconds": t}))
    assert sorted(lm_eval_seconds(tmp_path)) == [99.5, 100.5]
    cost = measured(lm_eval_seconds(tmp_path), [1.0], None, 10)
    assert (cost.full, cost.full_sd, cost.anchors_sd, cost.offline) == (100, pytest.approx(0.5**0.5), 0, 1000)
    assert cost.break_even == 11
    (tmp_path / "results_9.json").write_text("{}")
    with pytest.raises(FormatError, match="holds no total_evaluation_time_seconds"):
        lm_eval_seconds(tmp_path)
    with pytest.raises(DiscoError, match="no results_"):
        lm_eval_seconds(tmp_path / "nowhere")
    study(["random+direct"], population(40, 60), "iid", 10, 2, 0, out=tmp_path / "s")
    assert study_seconds(tmp_path / "s")["n_sources"].to_list() == [36]
    _tampered(tmp_path / "s" / "times.parquet", "select_s")
    with pytest.raises(FormatError, match="is damaged: its checksum does not fit"):
        study_seconds(tmp_path / "s")


def _tampered(file, column):
    """The same table with other numbers in a column, under the checksum of the former ones."""
    seal = pl.read_parquet_metadata(file)["disco-eval"]
    pl.read_parquet(file).with_columns(pl.col(column) + 1).write_parquet(file, metadata={"disco-eval": seal})
