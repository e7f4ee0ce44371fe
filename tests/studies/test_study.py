"""Studies: resumable, parallel, reproducible; every preset runs; users' methods fit in."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import disco_eval as de
from disco_eval import Anchors, DiscoError, Models, Responses, ValidationError
from disco_eval.integrity import check
from disco_eval.select import uniform
from disco_eval.splits import Split
from disco_eval.studies import PRESETS, SPLITS, Pair, cells, preset, split_plan, study
from disco_eval.studies.methods import SSEPY, describe, method
from disco_eval.studies.predictions import SCHEMA, Predictions, read_predictions
from disco_eval.studies.presets import metabench_times, request
from disco_eval.studies.spec import spec
from tests.conftest import population

METHODS = ["random+direct", "pds+knn", "pds+forest", "random+gpirt"]


@pytest.fixture(scope="module")
def r():
    return population(40, 80)


def few(r, **options):
    return study(METHODS, r, "iid", [5, 10], 2, 0, **options)


def test_one_long_table(r):
    table = few(r).table
    assert table.schema == pl.Schema(SCHEMA)
    assert len(table) == 4 * 2 * 2 * 4
    assert table["model"].unique().sort().to_list() == sorted(r.models.ids[::10].tolist())
    truth = dict(zip(r.models.ids.tolist(), r.scores(), strict=True))
    np.testing.assert_allclose(table["truth"], [truth[m] for m in table["model"]])
    assert table["estimate"].is_between(0, 1).all()


def test_the_same_seed_gives_the_same_table_with_one_and_two_jobs(r, tmp_path):
    one = few(r)
    assert one.table.equals(few(r, jobs=2, out=tmp_path / "two").table, null_equal=True)
    assert one.table.equals(pl.read_parquet(tmp_path / "two" / "predictions.parquet"), null_equal=True)
    assert not one.table.equals(study(METHODS, r, "iid", [5, 10], 2, 1).table, null_equal=True)


def test_finished_parts_are_taken_up_and_missing_ones_made(r, tmp_path):
    whole = few(r, out=tmp_path)
    parts = sorted((tmp_path / "parts").iterdir())
    assert len(parts) == 16
    kept = {p: p.stat().st_mtime_ns for p in parts[::2]}
    for p in parts[1::2]:
        p.unlink()
    (tmp_path / "predictions.parquet").unlink()
    again = few(r, out=tmp_path)
    assert whole.table.equals(again.table, null_equal=True)
    assert {p: p.stat().st_mtime_ns for p in kept} == kept


def test_a_killed_study_goes_on_to_the_identical_table(r, tmp_path):
    r.save(tmp_path / "r.zarr")
    code = (
        "import sys, disco_eval as de\n"
        f"r = de.open_responses({str(tmp_path / 'r.zarr')!r})\n"
        f"t = de.study({METHODS!r}, r, 'iid', [5, 10], 3, 0, out={str(tmp_path / 'out')!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    parts = tmp_path / "out" / "parts"
    until = time.monotonic() + 60
    while time.monotonic() < until and not (parts.is_dir() and len(list(parts.glob("*.parquet"))) >= 3):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out" / "predictions.parquet").exists()
    stored = de.open_responses(tmp_path / "r.zarr")
    resumed = study(METHODS, stored, "iid", [5, 10], 3, 0, out=tmp_path / "out")
    fresh = study(METHODS, stored, "iid", [5, 10], 3, 0)
    assert resumed.table.equals(fresh.table, null_equal=True)


def test_a_method_draws_the_same_whatever_runs_beside_it(r):
    alone = study(["pds+forest"], r, "iid", 10, 2, 0).table
    beside = few(r).table.filter(pl.col("method") == "pds+forest", pl.col("n_anchors") == 10)
    assert alone.equals(beside, null_equal=True)


def test_everything_random_is_drawn_anew_in_every_run(r):
    table = study(["random+direct"], r, "iid", 10, 3, 0).table
    runs = [part["estimate"].to_list() for _, part in table.group_by("run", maintain_order=True)]
    assert runs[0] != runs[1] != runs[2] != runs[0]
    committees = []

    def spy(responses, n_anchors, rng, **options):
        anchors = de.select.pds(responses, n_anchors, rng, committee_size=6)
        committees.append(anchors.criterion.tolist())
        return anchors

    study([Pair("spied", spy, "direct")], r, "iid", 10, 3, 0)
    assert len({tuple(c) for c in committees}) == 3


def test_methods_of_one_selection_share_their_anchors(r):
    calls = []

    def counted(responses, n_anchors, rng):
        calls.append(n_anchors)
        return de.select.uniform(responses, n_anchors, rng)

    study([Pair("a", counted, "direct"), Pair("b", counted, "knn")], r, "iid", [5, 10], 2, 0)
    assert sorted(calls) == [5, 5, 10, 10]


def of_items(ids):
    """A selection that always takes these items: what a closure holds is all that tells two of them apart."""

    def fixed(responses, n_anchors, rng):
        return Anchors.of(responses.items, responses.items.positions(ids), "fixed")

    return fixed


def first(responses, n_anchors, rng, order):
    return Anchors.of(responses.items, np.argsort(responses.items.ids)[::order][:n_anchors], "first")


def test_functions_of_one_name_that_do_different_things_share_neither_anchors_nor_parts(r, tmp_path):
    ids = np.sort(r.items.ids)
    low, high = (of_items(ids[some].tolist()) for some in (slice(None, 5), slice(-5, None)))
    pairs = [
        (Pair("a", low, "direct"), Pair("b", high, "direct")),
        (
            Pair("a", lambda x, n, rng: first(x, n, rng, 1), "direct"),
            Pair("b", lambda x, n, rng: first(x, n, rng, -1), "direct"),
        ),
        (Pair("a", partial(first, order=1), "direct"), Pair("b", partial(first, order=-1), "direct")),
    ]
    expected = {
        name: r.align(some).pick(models=np.arange(0, 40, 10)).correct.mean(axis=1)
        for name, some in (("a", ids[:5]), ("b", ids[-5:]))
    }
    for k, both in enumerate(pairs):
        table = study(both, r, "iid", 5, 1, 0, out=tmp_path / str(k)).table
        assert len(list((tmp_path / str(k) / "parts").iterdir())) == 2
        for name, scores in expected.items():
            part = table.filter(pl.col("method") == name)
            assert part["model"].to_list() == r.models.ids[::10].tolist()
            np.testing.assert_allclose(part["estimate"], scores, atol=1e-6)


class Holder:
    """An object whose method is a selection: what it holds is all that tells two of them apart."""

    def __init__(self, ids):
        self.ids = ids

    def fixed(self, responses, n_anchors, rng):
        return Anchors.of(responses.items, responses.items.positions(self.ids), "fixed")


def test_what_a_method_or_a_long_array_holds_tells_functions_apart():
    def of(array):
        return lambda x, n, rng: array[:n]

    def again(n):
        return n and again(n - 1)

    long = np.arange(10_000)
    middle = np.where(long == 5000, 0, long)
    assert spec(of(long)) == spec(of(long.copy())) != spec(of(middle))
    assert spec(Holder(["a"]).fixed) == spec(Holder(["a"]).fixed) != spec(Holder(["b"]).fixed)
    assert spec(again) == spec(again)


def test_a_function_is_the_same_in_another_process():
    code = (
        "from functools import partial\n"
        "import numpy as np\n"
        "from disco_eval.studies.spec import spec\n"
        "def f(x, n, rng, key=None): return n in {'a', 'b', 'c', 'd'}\n"
        "class S:\n"
        "    __slots__ = ('a',)\n"
        "s = S(); s.a = np.random.default_rng(0)\n"
        "print(spec(partial(f, key=f)), spec(s), spec([{'a', 'b', 'c'}, {'x': [f, np]}]))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]


def written(text):
    """The function ``f`` that a file with this text would define."""
    there = {}
    exec(text, there)
    return there["f"]


def test_an_edited_function_is_another_method_and_a_moved_one_is_not():
    said = [
        describe(Pair("p", written(text), "direct"))
        for text in (
            "def f(x, n, rng): return n + 1",
            "\n\n\ndef f(x, n, rng): return n + 1",
            "def f(x, n, rng): return n + 2",
            "def f(x, n, rng, k=1): return n + k",
            "def f(x, n, rng, k=2): return n + k",
            "def f(x, n, rng, *, k=1): return n + k",
            "def f(x, n, rng, *, k=2): return n + k",
            "def f(x, n, rng): return (lambda: n + 1)()",
            "\n\n\ndef f(x, n, rng): return (lambda: n + 1)()",
            "def f(x, n, rng): return (lambda: n + 2)()",
            "def f(x, n, rng): return max(x, n)",
            "def f(x, n, rng): return min(x, n)",
        )
    ]
    assert said[0] == said[1]
    assert said[7] == said[8]
    assert len(set(said)) == len(said) - 2


def test_what_a_function_holds_may_change_while_a_study_runs(r):
    held = []

    def chatty(responses, n_anchors, rng):
        held.append(n_anchors)
        return de.select.uniform(responses, n_anchors, rng)

    made = Pair("a", chatty, "direct")
    before = describe(made)
    both = [made, Pair("b", chatty, "knn")]
    assert len(study(both, r, "iid", [5, 10], 2, 0).table) == 2 * 2 * 2 * 4
    assert sorted(held) == [5, 5, 10, 10]
    assert describe(made) == before


def test_sources_alone_are_seen_by_selection_and_fit(r):
    targets = set(r.models.ids[::10].tolist())

    def spy(responses, n_anchors, rng):
        assert not targets & set(responses.models.ids.tolist())
        return de.select.uniform(responses, n_anchors, rng)

    study([Pair("spied", spy, "forest")], r, "iid", 10, 1, 0)


def test_fewer_sources_and_more_anchors():
    r = population(40, 80)
    methods = [Pair("few", "pds", "knn", n_sources=9), Pair("more", "pds", "knn", times=1.5)]
    result = study(methods, r, "iid", 10, 2, 0)
    assert result.table.filter(pl.col("method") == "more")["n_anchors"].unique().to_list() == [15]
    with pytest.raises(ValidationError, match="asks for 99 source models of 36"):
        study([Pair("few", "pds", "knn", n_sources=99)], r, "iid", 10, 1, 0)


def test_numbers_of_anchors_that_are_all_items_for_a_method_are_done_once(tmp_path):
    r = population(40, 50)
    asked = [Pair("more", "uniform", "ridge", times=1.5), "uniform+direct"]
    table = study(asked, r, "iid", [20, 40, 45], 2, 0, out=tmp_path).table
    counts = {name: part["n_anchors"].unique().to_list() for (name,), part in table.group_by("method")}
    assert {k: sorted(v) for k, v in counts.items()} == {"more": [30, 50], "uniform+direct": [20, 40, 45]}
    assert read_predictions(tmp_path).table.equals(table, null_equal=True)
    assert study(asked, r, "iid", [20, 40, 45], 2, 0, out=tmp_path).table.equals(table, null_equal=True)
    assert set(table.group_by("method", "n_anchors", "run", "model").len()["len"]) == {1}


class Constant:
    """A user's own method: a few lines."""

    name = "always the mean"

    def estimate(self, source, target, n_anchors, rng):
        mean = np.full(target.n_models, source.scores().mean())
        return mean, mean - 0.1, mean + 0.1


def test_a_users_own_method(r):
    table = study([Constant(), "random+direct"], r, "iid", 10, 1, 0).table
    own = table.filter(pl.col("method") == "always the mean")
    assert own["estimate"].n_unique() == 1
    np.testing.assert_allclose(own["high"] - own["low"], 0.2)


def test_as_many_anchors_are_told_as_a_selection_of_ones_own_takes(r):
    def three_more(responses, n_anchors, rng):
        return uniform(responses, n_anchors + 3, rng)

    table = study([Pair("mine", three_more, "direct"), "random+direct"], r, "iid", 10, 1, 0).table
    assert table.group_by("method").agg(pl.col("n_anchors").unique()).sort("method")["n_anchors"].to_list() == [
        [13],
        [10],
    ]
    with pytest.raises(ValidationError, match="the selection of 'p' gave a ndarray, expected Anchors"):
        study([Pair("p", lambda r, n, rng: np.arange(n), "ridge")], r, "iid", 10, 1, 0)


def test_libraries_are_imported_before_the_clock_runs():
    """Or the first method would pay for what all use."""
    source = Path(cells.__file__).parents[1]
    code = "".join(f.read_text() for of in ("predict", "select", "numerics") for f in (source / of).glob("*.py"))
    late = set(re.findall(r"^ +from (sklearn\.[a-z_]+|scipy\.optimize)", code, re.M)) - {"sklearn.exceptions"}
    assert late
    assert late <= set(cells._IMPORTED)


def test_what_is_no_method_is_refused(r):
    with pytest.raises(ValidationError, match="is no method"):
        study([3], r, "iid", 10, 1, 0)
    with pytest.raises(ValidationError, match=r"two methods have the same name: pds\+forest"):
        study(["pds+forest", "pds+forest"], r, "iid", 10, 1, 0)
    with pytest.raises(DiscoError, match=r"selection 'pdss' is not known\. Did you mean 'pds'"):
        method("pdss+forest")
    with pytest.raises(DiscoError, match=r"prediction 'florest' is not known\. Did you mean 'forest'"):
        method("pds+florest")
    with pytest.raises(DiscoError, match="'auto' is half a method; write a selection and a prediction"):
        method("auto")
    with pytest.raises(DiscoError, match="method 'nothing' is not known"):
        method("nothing")
    with pytest.raises(DiscoError, match=r"split 'idd' is not known\. Did you mean 'iid'"):
        study(["pds+knn"], r, "idd", 10, 1, 0)
    with pytest.raises(DiscoError, match="selection 'uniform' does not take"):
        study([Pair("odd", "uniform", "direct", select_options={"colour": 1})], r, "iid", 10, 1, 0)


class Given(Constant):
    """Answers whatever it is told to, from the true scores."""

    name = "mine"

    def __init__(self, answer):
        self.answer = answer

    def estimate(self, source, target, n_anchors, rng):
        return self.answer(target.scores())


def second(scores, value):
    return np.where(np.arange(len(scores)) == 1, value, scores)


def test_what_is_no_score_is_refused_by_its_model(r):
    name = r.models.ids[10]
    for answer, said in (
        (lambda s: s[:3], r"method 'mine' gave a score of shape \(3,\), expected \(4,\): one for each target"),
        (lambda s: second(s, np.nan), f"gave nan as the score of '{name}'; every target needs a finite number"),
        (lambda s: s * np.inf, "gave inf as the score of '.*' and the like for 3 more"),
        (lambda s: second(s, 61.2), f"gave 61.2 as the score of '{name}'; scores are in .* divide percent by 100"),
        (lambda s: second(s, -0.6), f"gave -0.6 as the score of '{name}'"),
        (lambda s: ["half"] * len(s), "gave a score that is no number for each model"),
        (lambda s: (s, s), r"gave a tuple of 2, expected scores or the triple \(scores, low, high\)"),
        (lambda s: (s, s[:1], s), r"gave a low of shape \(1,\), expected \(4,\)"),
        (lambda s: (s, s, second(s, np.nan)), f"gave nan as the high of '{name}'"),
        (lambda s: (s, None, s), "gave a high and None as the low; give both, or None for both"),
        (lambda s: (s, s, None), "gave a low and None as the high; give both, or None for both"),
        (lambda s: (s, 0 * s + 40, 0 * s + 60), "gave 40 to 60 as the interval of .* for 3 more; .* divide percent"),
        (lambda s: (s, 0 * s, second(s, 55.5)), f"gave 0 to 55.5 as the interval of '{name}'; .* divide percent"),
        (lambda s: (s, 0 * s + 1.6, 0 * s + 2), "gave 1.6 to 2 as the interval of .* divide percent"),
        (lambda s: (s, s, second(s, -0.2)), f"gave .* to -0.2 as the interval of '{name}'; low is the lower end; swap"),
        (lambda s: s + 1j, r"gave a score that is no number for each model \(complex numbers\)"),
        (lambda s: (s, s, s + 0j), "gave a high that is no number for each model"),
    ):
        with pytest.raises(ValidationError, match=said):
            study([Given(answer)], r, "iid", 10, 1, 0)


def test_scores_a_little_outside_are_clipped(r):
    for value, kept in ((1.02, 1.0), (-0.3, 0.0), (1 + 1e-9, 1.0)):
        table = study([Given(lambda s, value=value: second(s, value))], r, "iid", 10, 1, 0).table
        assert table["estimate"][1] == kept
    beyond = study([Given(lambda s: (second(s, 1.02), s - 1.2, s + 1.2))], r, "iid", 10, 1, 0).table
    assert beyond["low"].to_list() == [0.0] * 4
    assert beyond["high"].to_list() == [1.0] * 4
    none = study([Given(lambda s: (s, None, None))], r, "iid", 10, 1, 0).table
    assert none["low"].null_count() == none["high"].null_count() == 4


@pytest.mark.parametrize("name", SPLITS)
def test_every_split_by_name(name, r):
    drawn = split_plan(name).draw(r, np.random.default_rng(0))
    assert isinstance(drawn, Split)
    assert len(np.intersect1d(drawn.source, drawn.target)) == 0


def test_splits_that_are_drawn_differ_between_runs():
    r = population(60, 80)
    table = study(["random+direct"], r, ["bootstrap", "family", "iid"], 10, 3, 0).table
    for name, kinds in (("bootstrap", 3), ("family", 3), ("iid", 1)):
        part = table.filter(pl.col("split") == name)
        targets = {tuple(sorted(p["model"].to_list())) for _, p in part.group_by("run")}
        assert len(targets) == kinds


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_runs(name):
    r = population(64, 60)
    made = preset(name, r, committee=20)
    result = study(made.methods, r, made.splits, (5, 10) if name == "compression" else 10, 1, 0)
    assert set(result.table["method"]) == {m.name for m in made.methods}


def test_table1_has_every_row_of_the_paper():
    names = [m.name for m in preset("table1", population()).methods]
    assert len(names) == 11
    assert [m.name for m in preset("vision", population()).methods if isinstance(m, SSEPY)] == ["ssepy"]


def test_rows_that_need_probabilities_are_left_out_in_words():
    made = preset("vision", population(graded=True))
    assert "ssepy" not in [m.name for m in made.methods]
    assert "ssepy" in made.note


def test_a_request_mixes_presets_and_names(r):
    asked = request("rank_quality,ssepy", {"a": r}, None, "5,10")
    assert [m.name for m in asked.methods] == ["random+direct", "pds+forest", "ssepy"]
    assert asked.splits == ("chronological",)
    assert asked.n_anchors == (5, 10)
    assert request("pds+knn", {"a": r}, None, None).splits == ("iid",)
    with pytest.raises(DiscoError, match="whole numbers with commas"):
        request("table1", {"a": r}, None, "ten")


def test_benchmarks_share_the_rows_that_all_allow():
    both = {"a": population(400, 60), "b": population(40, 60, graded=True)}
    asked = request("n_sources,vision", both, None, "5", committee=20)
    names = [m.name for m in asked.methods]
    assert "pds+forest, 25 sources" in names
    assert not {"pds+forest, 300 sources", "ssepy"} & set(names)
    assert "not every benchmark allows them: pds+forest, 50 sources" in asked.note
    assert (
        request("rank_quality,pds+forest", both, None, "5").methods == request("rank_quality", both, None, "5").methods
    )
    assert metabench_times("1.5,hellaswag=4.5") == {"": 1.5, "hellaswag": 4.5}
    for wrong in ("x", "1,a=-2", "inf"):
        with pytest.raises(DiscoError, match="takes numbers above 0"):
            metabench_times(wrong)


def test_splits_that_a_benchmark_has_no_kinship_for_are_left_out_in_words():
    r = population(40, 60)
    of_family = Responses.from_correct(Models(r.models.ids, family=r.models.family), r.items, r.correct)
    assert request("beyond", {"a": r}, None, None).splits == ("random", "base", "family", "top10", "top30")
    asked = request("beyond", {"a": r, "b": of_family}, None, None)
    assert asked.splits == ("random", "family", "top10", "top30")
    assert "splits left out, as they are not known of the models: base" in asked.note
    assert "splits left out" not in request("beyond", {"a": r, "b": of_family}, "random,top10", None).note


def test_a_committee_larger_than_the_sources_is_refused(r):
    with pytest.raises(ValidationError, match="a committee of 99 was asked for, but there are 36 source models"):
        study(preset("rank_quality", r, committee=99).methods, r, "iid", 5, 1, 0)


def test_times_are_kept_beside_and_asked_for(r, tmp_path):
    assert few(r).table["seconds"].null_count() == len(few(r).table)
    table = few(r, out=tmp_path, times=True).table
    assert (table["seconds"] >= 0).all()
    assert len(pl.read_parquet(tmp_path / "times.parquet")) == 16


def test_parts_of_other_responses_are_not_taken_up(r, tmp_path):
    few(r, out=tmp_path)
    other = population(40, 80, seed=1)
    assert few(other, out=tmp_path, overwrite=True).table.equals(few(other).table, null_equal=True)


def test_another_study_is_not_replaced_unasked(r, tmp_path):
    out = tmp_path / "s"
    two = ["random+direct", "pds+knn"]
    few_options = {"select_options": {"committee_size": 6}}
    first = study(two, r, ["iid"], [5, 10], 2, 0, out=out).table
    kept = (out / "predictions.parquet").read_bytes()
    other = population(40, 80, seed=1)
    for said, methods, answers, splits, counts, runs, seed in (
        ("it has the methods pds+knn, which are not asked for now", ["random+direct"], r, ["iid"], [5, 10], 2, 0),
        ("pds+knn had other options", [two[0], Pair(two[1], "pds", "knn", **few_options)], r, ["iid"], [5, 10], 2, 0),
        ("it has the splits iid, which", two, r, ["top10"], [5, 10], 2, 0),
        ("it has the anchors 5, which", two, r, ["iid"], [10], 2, 0),
        ("it has 2 runs, not 1", two, r, ["iid"], [5, 10], 1, 0),
        ("it has another seed", two, r, ["iid"], [5, 10], 2, 1),
        ("the answers to benchmark, or who the targets are, were others", two, other, ["iid"], [5, 10], 2, 0),
        ("it has the benchmarks benchmark, which", two, {"arc": r}, ["iid"], [5, 10], 2, 0),
        ("who the targets are, were others", two, r, [Split(np.arange(30), np.arange(30, 40), "iid")], [5, 10], 2, 0),
    ):  # fmt: skip
        with pytest.raises(DiscoError, match=f"holds another study: .*{re.escape(said)}"):
            study(methods, answers, splits, counts, runs, seed, out=out)
        assert (out / "predictions.parquet").read_bytes() == kept
    assert study(two, r, ["iid"], [5, 10], 2, 0, out=out).table.equals(first, null_equal=True)
    made = {p: p.stat().st_mtime_ns for p in (out / "parts").iterdir()}
    more = study([*two, "uniform+direct"], r, ["iid", "top10"], [5, 10, 20], 3, 0, out=out).table
    assert {p: p.stat().st_mtime_ns for p in made} == made
    assert len(more.join(first, on=["method", "split", "run", "n_anchors", "model", "estimate"])) == len(first)
    graded = population(40, 80, graded=True)
    assert (out / "calibration.parquet").is_file()
    fresh = study(["random+direct"], graded, "iid", [5], 1, 0)
    replaced = study(["random+direct"], graded, "iid", [5], 1, 0, out=out, overwrite=True)
    assert replaced.table.equals(fresh.table, null_equal=True)
    assert not (out / "calibration.parquet").exists()


def test_predictions_of_an_unknown_study_are_not_replaced_unasked(r, tmp_path):
    asked = (["random+direct"], r, ["iid"], [5], 1, 0)
    table = study(*asked, out=tmp_path).table
    about, kept = (tmp_path / "study.json"), (tmp_path / "predictions.parquet").read_bytes()
    whole = about.read_text()
    for text in (None, "{", whole.replace('"runs": 1', '"runs": 2'), "[]"):
        about.unlink() if text is None else about.write_text(text)
        with pytest.raises(DiscoError, match=r"holds predictions, but of which study is not known: .*--overwrite") as e:
            study(*asked, out=tmp_path)
        assert "\n" not in str(e.value)
        assert (tmp_path / "predictions.parquet").read_bytes() == kept
    assert study(*asked, out=tmp_path, overwrite=True).table.equals(table, null_equal=True)
    assert about.read_text() == whole
    about.unlink()
    (tmp_path / "predictions.parquet").unlink()  # never finished: its parts are taken up
    assert study(*asked, out=tmp_path).table.equals(table, null_equal=True)


def test_a_study_killed_while_it_writes_goes_on(r, tmp_path, monkeypatch):
    asked = (["random+direct"], r, ["iid"], [5], 1, 0)
    with monkeypatch.context() as m:
        m.setattr(Predictions, "save", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            study(*asked, out=tmp_path)
    assert not (tmp_path / "predictions.parquet").exists()
    study(*asked, out=tmp_path)
    assert not check(tmp_path).damage


def test_a_method_that_was_edited_is_made_again(r, tmp_path):
    def made(shift):
        return Pair("mine", lambda responses, n, rng: de.select.every_kth(responses, n + 0 * shift, rng), "direct")

    study([made(1)], r, "iid", [5], 1, 0, out=tmp_path)
    study([made(2)], r, "iid", [5], 1, 0, out=tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == 2


def test_ssepy_by_a_slow_loop():
    r = population(3, 50)
    estimate = SSEPY().estimate(r, r, 50, np.random.default_rng(0))
    np.testing.assert_allclose(estimate, r.scores())  # as many clusters as items: nothing is left to guess
    y = np.r_[np.ones(30), np.zeros(20)]
    p = np.r_[np.full(30, 0.9), np.full(20, 0.6)]
    two = de.Responses.from_probs(
        ["m"], de.Items([f"i{k}" for k in range(50)], label=np.where(y, 0, 1), n_choices=np.full(50, 2)),
        np.stack([p, 1 - p], axis=1)[None],
    )  # fmt: skip
    assert SSEPY().estimate(two, two, 2, np.random.default_rng(0))[0] == pytest.approx(0.6)
    with pytest.raises(ValidationError, match="ssepy needs the targets' probabilities"):
        SSEPY().estimate(r, population(3, 50, graded=True), 5, np.random.default_rng(0))


def test_progress_counts_up(r):
    seen = []
    few(r, progress=lambda what, done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)


def test_other_responses_of_the_same_names_and_scores_are_not_taken_up(r, tmp_path):
    """A study in the same folder on other subtasks is a study of its own."""
    from disco_eval import Items, Responses

    study(METHODS, r, "iid", [5], 1, 0, out=tmp_path / "out")
    about = {k: getattr(r.items, k) for k in ("weight", "n_choices", "label")}
    other = Responses(r.models, Items(r.items.ids, subtask=["x"] * r.n_items, **about), r.correct, r.probs)
    before = len(list((tmp_path / "out" / "parts").iterdir()))
    study(METHODS, other, "iid", [5], 1, 0, out=tmp_path / "out", overwrite=True)
    assert len(list((tmp_path / "out" / "parts").iterdir())) > before


def broken(responses, n_anchors, rng, deep=False):
    raise TypeError("a bug of its own")


def test_a_bug_in_a_users_selection_is_not_called_a_wrong_option(r):
    with pytest.raises(TypeError, match="a bug of its own"):
        study([Pair("mine", broken, "direct")], r, "iid", 5, 1)
    with pytest.raises(DiscoError, match=r"selection of 'mine' does not take {'wide': True} .*unexpected keyword"):
        study([Pair("mine", broken, "direct", {"wide": True})], r, "iid", 5, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_anchors": "10"}, "whole numbers, got '10'"),
        ({"n_anchors": [10.5]}, r"whole numbers, got \[10.5\]"),
        ({"n_anchors": True}, "whole numbers, got True"),
        ({"split": "iid", "cutoff": "2024-01-01"}, "neither is asked for"),
        ({"methods": []}, "at least one method.*; got 0 methods"),
        ({"methods": [SSEPY]}, r"SSEPY is a class; give an object of it, such as SSEPY\(\)"),
        ({"methods": SSEPY}, "SSEPY is a class"),
        ({"methods": None}, "None is no method"),
        ({"benchmark": 3}, "benchmarks are called by text, got 3"),
        ({"methods": "nope"}, "Choose from: default, "),
        ({"methods": [SSEPY(name=3)]}, "name of a method is 3"),
        ({"methods": [SSEPY(name=" ")]}, "name of a method is ' '"),
    ],
)
def test_what_a_study_cannot_mean_is_one_line(r, wrong, message):
    with pytest.raises(DiscoError, match=message) as found:
        study(**{"methods": ["random+direct"], "responses": r, "split": "iid", "n_anchors": [5], "runs": 1} | wrong)
    assert "\n" not in str(found.value)


def test_a_single_method_needs_no_list(r):
    for single in ("random+direct", SSEPY()):
        one, several = (study(m, r, split="iid", n_anchors=[5], runs=1) for m in (single, [single]))
        assert one.table.equals(several.table)
