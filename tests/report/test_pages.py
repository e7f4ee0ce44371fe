"""What a report says, without a browser."""

import base64
import hashlib
import json
import re
import shlex
from dataclasses import asdict, replace

import numpy as np
import polars as pl
import pytest

from disco_eval import DiscoError, FormatError, Models, Responses, condense, load, study
from disco_eval.io import write_npz
from disco_eval.report import condensed, page, pages, parts, record
from disco_eval.studies.predictions import from_table
from tests.cli.test_cli import disco, refused
from tests.conftest import population


def content(file):
    """What a report draws and lists."""
    text = file.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="content">(.*?)</script>', text)[1])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    r = population(40, 80)
    c = condense(r.pick(models=np.arange(30)), 20, benchmark="toy", rng=3)
    c.save(tmp_path_factory.mktemp("c") / "toy-20")
    return c, r


def test_the_answer_comes_first(kept, tmp_path):
    c, _ = kept
    made = condensed.condensation_page(c, "toy-20")
    shown = {fact.question: fact.figure for fact in made.facts}
    assert shown["How far off?"] == f"{100 * c.validation.mae:.2f} points"
    assert shown["How sure?"] == f"± {100 * c.validation.half_width(0.9):.1f} points"
    assert shown["What does it cost?"] == "20 of 80 items"
    assert made.command == (
        "disco condense ANSWERS --out toy-20 --name toy --anchors 20 --select auto --predict auto --seed 3"
    )
    text = page.render(made)
    assert "few-sources: the condensation learned from few source models; add more." in text
    assert text.index("How far off?") < text.index("What error to expect") < text.index("How it was made")


def test_the_command_of_a_report_makes_it_again_where_a_budget_was_given(tmp_path):
    r = population(40, 80)
    cost = np.random.default_rng(0).uniform(1, 50, 80).round()
    write_npz(Responses(r.models, r.items.having(cost=cost), r.correct, r.probs), tmp_path / "a.npz")
    budget = ("--cost", "cost", "--budget", "300", "--no-curve", "--seed", "1")
    disco("condense", "a.npz", "--out", "first", "--anchors", "60", *budget, cwd=tmp_path)
    first = load(tmp_path / "first")
    assert len(first.anchors) < 60
    page, paid, v = condensed.condensation_page(first, "second"), first.provenance["cost"], first.validation
    facts = {fact.question: fact.words for fact in page.facts}
    less = 100 * (1 - paid["anchors"] / paid["all"])
    assert facts["What does it cost?"].startswith(f"for each model: {less:.0f} % less by what items cost, once")
    assert f"{v.direct_items:.0f} random items, which cost as much: {100 * v.direct_mae:.2f}" in facts["How far off?"]
    assert page.lead.endswith(f"{v.direct_items:.0f} random items, which cost as much.")
    words = shlex.split(page.command)
    disco(*(("a.npz" if word == "ANSWERS" else word) for word in words[1:]), "--no-curve", cwd=tmp_path)
    assert load(tmp_path / "second").anchors.ids.tolist() == first.anchors.ids.tolist()


def test_the_command_of_a_report_on_an_update_makes_it_again(tmp_path):
    write_npz(population(30, 60).pick(models=slice(0, 20)), tmp_path / "few.npz")
    write_npz(population(30, 60), tmp_path / "all.npz")
    how = ("--no-curve", "--folds", 4, "--seed", 1)
    disco("condense", "few.npz", "--out", "former", "--anchors", 12, "--name", "mine", *how, cwd=tmp_path)
    disco("condense", "all.npz", "--out", "first", "--update", "former", *how, cwd=tmp_path)
    names = {"ANSWERS": "all.npz", "FORMER": "former"}
    words = shlex.split(condensed.condensation_page(load(tmp_path / "first"), "second").command)
    assert words[-5:] == ["--folds", "4", "--no-curve", "--seed", "1"]
    disco(*(names.get(word, word) for word in words[1:]), cwd=tmp_path)
    first, second = (load(tmp_path / name) for name in ("first", "second"))
    np.testing.assert_array_equal(first.validation.estimate, second.validation.estimate)


@pytest.mark.parametrize("how", [("--budget", "700"), ("--anchors", "12"), ("--error", "6", "--anchors", "30")])
def test_the_command_of_a_report_names_sources_costs_and_what_was_asked(tmp_path, how):
    """A table has costs in a column of its own name, and other models than the sources."""
    r = population(40, 60)
    cost = np.random.default_rng(0).uniform(1, 90, 60).round()
    lines = [
        f"{m},{i},{g},{c:g}"
        for m, row in zip(r.models.ids, r.grades().tolist(), strict=True)
        for i, g, c in zip(r.items.ids, row, cost, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["model,item,score,tokens", *lines]))
    (tmp_path / "src.txt").write_text("\n".join(r.models.ids[:30]))
    given = ("--sources", "src.txt", "--cost", "tokens", *how, "--no-curve")
    disco("condense", "t.csv", "--out", "first", *given, cwd=tmp_path)
    first = load(tmp_path / "first")
    words = shlex.split(condensed.condensation_page(first, "second").command)
    assert "--select-opt" not in words
    assert f"{' '.join(how)} " in shlex.join(words)
    files = {"ANSWERS": "t.csv", "SOURCES": "src.txt"}
    disco(*(files.get(word, word) for word in words[1:]), cwd=tmp_path)
    second = load(tmp_path / "second")
    assert second.sources.models.ids.tolist() == r.models.ids[:30].tolist()
    assert second.anchors.ids.tolist() == first.anchors.ids.tolist()
    np.testing.assert_array_equal(second.validation.by_anchors, first.validation.by_anchors)
    np.testing.assert_array_equal(second.validation.estimate, first.validation.estimate)


def test_how_many_times_better_is_said_where_it_means_something(kept):
    c, _ = kept
    v = c.validation
    times = f"{v.direct_mae / v.mae:.1f} times better than as many random items"
    assert times in condensed.condensation_page(c, "x").lead
    exact = replace(c, validation=replace(v, estimate=v.truth + 1e-12))
    assert "far better than as many random items" in condensed.condensation_page(exact, "x").lead


@pytest.mark.parametrize("n", [1, 2])
def test_the_highest_of_several_estimates_owes_to_chance(kept, n):
    c, r = kept
    estimates = record.estimates_record(c, c.estimate(r.pick(models=slice(30, 30 + n))), 0.9)
    about = {"condensation": record.summary(c), "command": "", **estimates}
    words = " ".join(fact.words for fact in pages.estimates_page(about).facts)
    assert ("The highest of 2 estimates owes part of its lead to chance." in words) == (n == 2)


def test_long_names_are_short_in_sentences():
    name = "an-organisation/" + "a-long-name-" * 9 + "7b"
    found = [parts.Estimated(m, 1, 0, 2, flags=("outside-range",) * k) for k, m in enumerate(["a", name, "b"])]
    (line,) = parts.flag_words(found)
    assert f"2 of 3 models ({name[:20]}…{name[-19:]}, b)" in line


def test_further_items_are_part_of_the_cost(kept):
    c, r = kept
    two = r.pick(models=[30, 31])
    about = {"condensation": record.summary(c), "command": ""}
    estimates = record.estimates_record(c, c.estimate(two, more=20), 0.9)
    assert max(e["more"] for e in estimates["estimates"]) == 20

    def cost(made):
        return {fact.question: fact.figure for fact in made.facts}["What does it cost?"]

    assert cost(pages.estimates_page({**about, **estimates})) == "40 of 80 items"
    one, other = (two.pick(models=[i]) for i in range(2))
    for more in (0, 20):
        compared = asdict(c.compare(one, other, margin=0.02, more=more))
        assert cost(pages.comparison_page({**about, "comparison": compared})) == f"{20 + more} of 80 items"


def test_a_comparison_says_its_verdict_first_and_what_both_models_are_by_themselves(kept, tmp_path):
    c, r = kept
    c.save(tmp_path / "c")
    r.pick(models=[30, 31]).save(tmp_path / "two.zarr")
    names = r.models.ids[30:32].tolist()
    pair = ("two.zarr", "two.zarr", "--baseline-model", names[0], "--candidate-model", names[1], "--level", 0.8)
    for margin, more, status, tone in ((99, 0, 0, "good"), (0.01, 0, 4, "open"), (0.01, 20, 4, "open")):
        how = (*pair, "--margin", margin, "--more", more, "--out", "pair")
        disco("compare", "c", *how, cwd=tmp_path, status=status)
        about = record.read(tmp_path / "pair")
        made = pages.comparison_page(about)
        assert (made.facts[0].question, made.facts[0].tone) == ("Verdict", tone)
        assert "(0: equal answers); these two are at" in made.facts[2].words
        (table,) = made.sections[0].tables
        estimates = c.estimate(r.pick(models=[30, 31]), 0.8, more=more)
        assert [row[:2] for row in table.data.rows] == [(names[0], "baseline"), (names[1], "candidate")]
        for row, e in zip(table.data.rows, estimates, strict=True):
            assert row[2:] == pytest.approx((100 * e.score, 100 * e.low, 100 * e.high))
    old = {k: v for k, v in about.items() if k != "estimates"}  # as former versions kept
    assert pages.comparison_page(old).sections[0].tables == []


def test_the_command_makes_it_again(tmp_path):
    write_npz(population(30, 40), tmp_path / "answers.npz")
    how = ("--anchors", 9, "--select", "jsd", "--select-opt", "committee_size=20", "--select-opt", "stratify=true")
    how += ("--predict", "knn", "--predict-opt", "parts=probs,correct", "--predict-opt", "n_components=none")
    disco("condense", "answers.npz", "--out", "one", *how, "--name", "a b", "--seed", 4, cwd=tmp_path)
    command = shlex.split(condensed.condensation_page(load(tmp_path / "one"), "two").command)
    disco(*("answers.npz" if word == "ANSWERS" else word for word in command[1:]), cwd=tmp_path)
    one, two = (load(tmp_path / name) for name in ("one", "two"))
    assert one.anchors.ids.tolist() == two.anchors.ids.tolist()
    np.testing.assert_array_equal(one.validation.estimate, two.validation.estimate)
    strip = {"created"}
    assert {k: v for k, v in one.provenance.items() if k not in strip} == {
        k: v for k, v in two.provenance.items() if k not in strip
    }


def test_what_is_drawn_is_what_was_found(kept, tmp_path):
    c, _ = kept
    file = page.write_page(condensed.condensation_page(c, "toy-20"), tmp_path / "r.html")
    data = content(file)["data"]
    left_out = {row[0]: row[2:] for row in data["left-out-sources"]["rows"]}
    for m, truth, estimate in zip(c.sources.models.ids, c.validation.truth, c.validation.estimate, strict=True):
        assert left_out[m] == pytest.approx([100 * truth, 100 * estimate, 100 * (estimate - truth)], abs=1e-4)
    anchors = data["anchors"]
    assert [row[0] for row in anchors["rows"]] == c.anchors.ids.tolist()
    tells = anchors["columns"].index("tells")
    grades = c.sources.grades()
    for k in (0, 7):
        assert anchors["rows"][k][tells] == pytest.approx(np.corrcoef(grades[:, k], c.source_scores)[0, 1], abs=1e-4)
    heat = data["answers"]
    best, item = heat["rows"][0], heat["columns"][5]
    name, column = c.sources.models.ids.tolist().index(best[0]), c.anchors.ids.tolist().index(item)
    assert c.source_scores[name] == c.source_scores.max()
    assert best[5] == pytest.approx(c.sources.label_probs()[name, column], abs=1e-3)


def test_subtasks_are_shown_with_their_errors(kept, tmp_path):
    c, r = kept
    data = content(page.write_page(condensed.condensation_page(c, "toy-20"), tmp_path / "r.html"))["data"]
    shown = {row[0]: row[1:] for row in data["subtask-errors"]["rows"]}
    for k, name in enumerate(c.subtask_names):
        assert shown[name][0] == pytest.approx(100 * c.subtask_mae[k], abs=1e-3)
        assert shown[name][1:] == [(c.items.subtask == name).sum()]
    for n_models in (1, 3):
        estimates = c.estimate(r.pick(models=np.arange(30, 30 + n_models)))
        about = {"condensation": record.summary(c), "command": "", **record.estimates_record(c, estimates, 0.9)}
        data = content(page.write_page(pages.estimates_page(about), tmp_path / "e.html"))["data"]["subtask-estimates"]
        best = max(estimates, key=lambda e: e.score)
        column = data["columns"].index("estimate" if n_models == 1 else best.model)
        assert {row[0]: row[column] for row in data["rows"]} == {
            s.name: pytest.approx(100 * s.score, abs=1e-2) for s in best.subtasks
        }
        if n_models > 1:
            (section,) = (s for s in pages.estimates_page(about).sections if s.name == "subtask-scores")
            assert section.figures[0].spec["encoding"]["x"]["field"] == "column"  # models by name
            first = [(best.model, s.name, 100 * s.score, 100 * s.low, 100 * s.high, s.n_anchors) for s in best.subtasks]
            assert section.tables[0].data.rows[: len(first)] == first
            assert len(section.tables[0].data.rows) == n_models * len(first)


def test_left_out_sources_stand_by_their_errors_with_their_families(kept):
    c, r = kept
    (table,) = (t for s in condensed.condensation_page(c, "x").sections for t in s.tables if "left-out" in t.title)
    errors = [abs(row[-1]) for row in table.data.rows]
    assert errors == sorted(errors, reverse=True)
    family = dict(zip(r.models.ids.tolist(), r.models.family.tolist(), strict=True))
    assert all(row[1] == family[row[0]] for row in table.data.rows)
    unknown = Responses(Models(c.sources.models.ids), c.sources.items, c.sources.correct, c.sources.probs)
    (table,) = (
        t
        for s in condensed.condensation_page(replace(c, sources=unknown), "x").sections
        for t in s.tables
        if "left-out" in t.title
    )
    assert table.data.columns == ("model", "truth", "estimate", "error")


def test_items_of_a_subtask_are_shown_only_where_they_are_counted(tmp_path):
    """Where they count for more or less, what is known is what they are worth."""
    r = population(40, 80)
    for weight, columns in ((np.ones(80), ("n_anchors", "n_items")), (np.arange(80) + 1.0, ("n_anchors",))):
        given = Responses(r.models, r.items.having(weight=weight), r.correct, r.probs)
        made = condensed.condensation_page(condense(given, 20, curve=False, relatives=False, rng=0), "x")
        (table,) = (t for s in made.sections for t in s.tables if t.data.name == "subtask-errors")
        assert table.data.columns == ("subtask", "mae_pp", *columns)
        for row in table.data.rows if "n_items" in columns else []:
            assert row[-1] == (r.items.subtask == row[0]).sum()


def test_coverage_is_calibrated_on_other_folds(kept):
    v = kept[0].validation
    found = dict(parts.left_out_coverage(v))
    error = np.abs(v.truth - v.estimate) / np.maximum(v.scale, 1e-9)
    inside = []
    for k in range(v.n_folds):
        others = np.sort(error[v.fold != k])
        inside += (error[v.fold == k] <= others[min(int(np.ceil((len(others) + 1) * 0.8)), len(others)) - 1]).tolist()
    assert found[0.8] == pytest.approx(np.mean(inside))


def test_only_our_own_scripts_may_run(kept, tmp_path):
    file = page.write_page(condensed.condensation_page(kept[0], "toy-20"), tmp_path / "r.html")
    text = file.read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    allowed = re.findall(r"'sha256-([^']*)'", policy)
    assert allowed == [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert len(scripts) == len(page.LIBRARIES) + 1
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#)', outside)
    assert "sourceMappingURL" not in text


def test_the_libraries_are_those_that_were_licensed():
    text = (page.ASSETS / "LICENSES.md").read_text(encoding="utf-8")
    for name in page.LIBRARIES:
        assert f"| {name} |" in text
        assert hashlib.sha256((page.ASSETS / name).read_bytes()).hexdigest() in text


def test_a_large_report_stays_small(tmp_path):
    r = population(400, 100)
    c = condense(r, 100, predict="ridge", select="jsd", n_folds=2, rng=0)
    assert page.write_page(condensed.condensation_page(c, "large"), tmp_path / "c.html").stat().st_size < 3e6
    rng = np.random.default_rng(0)
    keys = [
        (b, f"method {m}", s, run, n, f"a-model-with-a-long-name-{i:04d}")
        for b in ("mmlu", "arc") for s in ("iid", "top10") for m in range(12) for run in range(5) for n in (10, 100)
        for i in range(400)
    ]  # fmt: skip
    table = pl.DataFrame(keys, schema=["benchmark", "method", "split", "run", "n_anchors", "model"], orient="row")
    truth = np.tile(rng.random(400), len(table) // 400)  # of every model the same, whatever the method
    table = table.with_columns(truth=truth, estimate=np.clip(truth + rng.normal(0, 0.02, len(table)), 0, 1))
    from_table(table).save(tmp_path)
    assert pages.report(tmp_path).stat().st_size < 3e6


def test_a_study_shows_its_own_numbers(tmp_path):
    predictions = study(["random+direct", "pds+knn"], population(40, 80), "iid", [5, 10], 2, 0, out=tmp_path)
    data = content(pages.report(tmp_path))["data"]
    for row, summary in zip(data["errors"]["rows"], predictions.summary().rows(named=True), strict=True):
        shown = dict(zip(data["errors"]["columns"], row, strict=True))
        best = summary["mae_pp"] == predictions.summary().filter(n_anchors=summary["n_anchors"])["mae_pp"].min()
        assert shown.pop("beside_best") in (["best"] if best else ["", "not told apart (2 runs)"])
        assert shown == {k: pytest.approx(v, abs=1e-4) if isinstance(v, float) else v for k, v in summary.items()}
    first = predictions.table.filter(method="pds+knn", run=0, n_anchors=10)
    name = next(n for n in data if n.startswith("truth-") and len(data[n]["rows"]) and _is(data[n], first))
    assert data[name]["rows"][0][5] == pytest.approx(100 * (first["estimate"][0] - first["truth"][0]), abs=1e-3)


def test_a_study_says_how_many_models_and_which_run_it_shows(tmp_path):
    both = {"small": population(40, 40), "large": population(60, 40)}
    study(["random+direct"], both, "iid", [5], 2, 0, out=tmp_path)
    page = pages.report(tmp_path).read_text(encoding="utf-8")
    assert "on small, large; 4 to 6 models held out." in page
    assert page.count("The first of 2 runs: the errors in the table are means over all of them.") == 2


def _fact(page, question):
    for entity in (("\u00a0", " "), ("&#39;", "'")):
        page = page.replace(*entity)
    return page.split(f"<h2>{question}</h2>")[1].split("</div>")[0]


def test_a_study_says_what_its_spread_leaves_out(tmp_path):
    r = population(60, 60)
    for splits, said in (
        (["iid"], "over 3 runs with other anchors and draws; the target models are the same in all runs."),
        (["iid", "family"], "over 3 runs with other anchors and draws; the target models are the same in all runs "
         "with split iid."),
        (["random"], "over 3 runs that draw everything anew."),
    ):  # fmt: skip
        out = tmp_path / "-".join(splits)
        predictions = study(["random+direct", "pds+knn"], r, splits, [5], 3, 0, out=out)
        page = pages.report(out).read_text(encoding="utf-8")
        best = predictions.summary().sort("mae_pp").group_by("split", maintain_order=True).first()
        sure = _fact(page, "How sure?")
        assert said in sure
        assert f"± {best['mae_sd'].max():.2f} points" in sure
        assert "sample standard deviation over 3 runs" in page.split('id="table-errors"')[1]


def test_a_study_names_the_best_of_each_split(tmp_path):
    r = population(60, 60)
    study(["random+direct", "pds+knn"], r, ["iid", "top10"], [5], 2, 0, out=tmp_path / "two")
    page = pages.report(tmp_path / "two").read_text(encoding="utf-8")
    summary = study(["random+direct", "pds+knn"], r, ["iid", "top10"], [5], 2, 0).summary()
    best = [summary.filter(split=s).sort("mae_pp").row(0, named=True) for s in ("iid", "top10")]
    far = _fact(page, "How far off?")
    low, high = sorted(row["mae_pp"] for row in best)
    assert f"{low:.2f} to {high:.2f} points" in far
    assert f"at best on {'; '.join('{split}: {method}, {mae_pp:.2f}'.format(**row) for row in best)}." in far
    assert len(content(tmp_path / "two" / "report.html")["data"]["best"]["rows"]) == 2
    study(["random+direct"], r, ["iid", "top10", "top30", "first10"], [5], 1, 0, out=tmp_path / "four")
    page = pages.report(tmp_path / "four").read_text(encoding="utf-8")
    assert "with the best method of each of 4 benchmarks and splits" in _fact(page, "How far off?")


def test_a_study_of_one_run_shows_no_spread(tmp_path):
    study(["random+direct", "pds+knn"], population(40, 60), "iid", [5, 10], 1, 0, out=tmp_path)
    page = pages.report(tmp_path).read_text(encoding="utf-8")
    assert "tells no spread" in _fact(page, "How sure?")
    assert "±" not in page.split("<script")[0]
    figures = content(tmp_path / "report.html")["figures"]
    curves = [f["spec"] for name, f in figures.items() if name.startswith("mae_pp")]
    assert curves
    assert "mae_sd" not in json.dumps(curves)


def test_a_study_says_that_runs_had_different_numbers_of_targets(tmp_path):
    table = study(["random+direct"], population(60, 60), "iid", [5], 2, 0).table
    fewer = table.filter((pl.col("run") == 0) | pl.col("model").is_in(table["model"].unique().sort()[:2].to_list()))
    from_table(fewer).save(tmp_path)
    page = pages.report(tmp_path).read_text(encoding="utf-8")
    assert "2 to 6 models held out." in page
    assert "Models: targets in a run, on average, as runs differ." in page
    from_table(table).save(tmp_path)
    page = pages.report(tmp_path).read_text(encoding="utf-8")
    assert " 6 models held out." in page
    assert "on average, as runs differ" not in page


def _is(shown, table):
    return [row[2] for row in shown["rows"]] == pytest.approx((100 * table["estimate"]).to_list(), abs=1e-3)


def test_coverage_of_a_study_with_intervals(tmp_path):
    rows = [("a", 0, 10, f"m{k}", k / 10, k / 10, k / 10 - 0.01, k / 10 + (0.01 if k else -0.005)) for k in range(10)]
    names = ["method", "run", "n_anchors", "model", "truth", "estimate", "low", "high"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "theirs.csv")
    found = content(pages.report(tmp_path / "theirs.csv"))["data"]["coverage"]
    assert found["columns"][-2:] == ["covered", "width"]
    assert found["rows"][0][-2] == 90.0


def test_folders_that_hold_nothing(tmp_path):
    with pytest.raises(DiscoError, match="holds nothing to report on: a report needs what 'disco demo'"):
        pages.report(tmp_path)
    (tmp_path / record.FILE).write_text("{")
    with pytest.raises(FormatError, match="is not readable JSON"):
        pages.report(tmp_path)
    (tmp_path / record.FILE).write_text('{"kind": "novel"}')
    with pytest.raises(FormatError, match="is not a record of demo, study"):
        pages.report(tmp_path)
    (tmp_path / record.FILE).write_text('{"kind": "estimates", "condensation": {}, "level": 0.9}')
    with pytest.raises(FormatError, match="lacks something"):
        pages.report(tmp_path)
    assert not (tmp_path / pages.REPORT).exists()


def test_commands_leave_reports(kept, tmp_path):
    c, r = kept
    c.save(tmp_path / "toy-20")
    r.pick(models=np.arange(30, 40)).save(tmp_path / "new.zarr")
    names = r.models.ids[30:32].tolist()
    (tmp_path / "two.txt").write_text("\n".join(names))
    run = ("estimate", "toy-20", "new.zarr", "--models", "two.txt", "--out", "found")
    shown = json.loads(disco(*run, "--json", cwd=tmp_path).stdout)
    about = json.loads((tmp_path / "found" / "about.json").read_text())
    assert {k: about[k] for k in shown} == shown
    assert about["command"] == "disco estimate toy-20 new.zarr --models two.txt --out found --json"
    before = (tmp_path / "found" / "report.html").read_text(encoding="utf-8")
    assert disco("report", "found", "--out", "again.html", cwd=tmp_path).stdout.strip() == "again.html"
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == before
    disco(*run, cwd=tmp_path)  # a former one is replaced
    pair = ("--baseline-model", names[0], "--candidate-model", names[1])
    disco("compare", "toy-20", "new.zarr", "new.zarr", *pair, "--out", "pair", cwd=tmp_path)
    assert f"{names[1]} against {names[0]}" in (tmp_path / "pair" / "report.html").read_text(encoding="utf-8")
    line = refused("estimate", "toy-20", "new.zarr", "--out", "pair", cwd=tmp_path)
    assert "something else" in line
    made = json.loads(disco("report", "toy-20", "--json", cwd=tmp_path).stdout)
    assert made == {"files": ["toy-20/report.html"]}
    assert load(tmp_path / "toy-20").anchors.ids.tolist() == c.anchors.ids.tolist()
    assert "holds nothing to report on" in refused("report", "new.zarr", cwd=tmp_path)


def test_a_report_replaces_reports_alone(tmp_path):
    c = condense(population(30, 40), 10, rng=0, curve=False)
    c.save(tmp_path / "c")
    precious, target = tmp_path / "answers.npz", tmp_path / "page.html"
    precious.write_bytes(b"PK answers")
    with pytest.raises(DiscoError, match=r"answers.npz' exists and is no report"):
        pages.report(tmp_path / "c", precious)
    assert precious.read_bytes() == b"PK answers"
    with pytest.raises(DiscoError, match="exists and is no report"):
        pages.report(tmp_path / "c", tmp_path)
    for _ in range(2):
        assert pages.report(tmp_path / "c", target).read_text().startswith("<!doctype html")


def test_a_report_says_what_further_items_have_a_part_in(tmp_path):
    r = population(40, 60)
    c = condense(r.pick(models=slice(0, 34)), 10, rng=0, curve=False)
    c.save(tmp_path / "c")
    write_npz(r.pick(models=slice(34, 40)), tmp_path / "new.npz")
    for more in ((), ("--more", 10)):
        disco("estimate", "c", "new.npz", *more, "--out", "e", cwd=tmp_path)
        text = (tmp_path / "e" / "report.html").read_text()
        assert ("estimated from the answers to 10 anchors and 10 further items" in text) == bool(more)
        assert ("From the anchors alone" in text) == bool(more)
        error = c.validation.more_mae if more else c.validation.mae
        assert f"{100 * error:.2f} points" in _fact(text, "How far off?").split("on average")[0]
