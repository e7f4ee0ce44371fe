"""Other ways to condense: half by chance, by cost, several benchmarks, more sources later."""

import json

import numpy as np
import polars as pl
import pytest

import disco_eval as de
from disco_eval import AlignmentError, DiscoError, Items, Models, Responses, ValidationError, condense, update
from disco_eval.calibration import CrossValidation
from disco_eval.comparison import compare
from disco_eval.io import open_answers, write_npz, write_table
from disco_eval.joining import beside, together
from disco_eval.left_out import curve_sizes
from disco_eval.select import selector
from tests.cli.test_cli import disco
from tests.conftest import population


def priced(seed: int = 0) -> Responses:
    r = population(40, 200, graded=True)
    cost = np.random.default_rng(seed).lognormal(4, 1, 200)
    items = Items(r.items.ids, subtask=r.items.subtask, cost=cost)
    return Responses(r.models, items, r.correct)


# ---- half by chance --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", ["auto", "pds", "anchor_corr"])
def test_half_of_mixed_anchors_are_drawn_by_chance(select):
    r = population(40, 200)
    small = condense(r, 21, select=select, mixed=True, rng=0, curve=False)
    known = np.isfinite(small.anchors.chance)
    assert (~known).sum() == 10
    assert known.sum() == 11
    assert small.anchors.method == f"{select}, and chance"
    assert small.anchors.weights.sum() == pytest.approx(1)
    assert small.provenance["mixed"] is True
    with pytest.raises(ValidationError, match="ask for at least 2"):
        condense(r, 1, select=select, mixed=True, rng=0)
    if select == "auto":
        with pytest.raises(ValidationError, match="leave out the budget"):
            condense(r, 20, mixed=True, select_options={"budget": 9.0}, rng=0)


def test_the_weighted_mean_over_mixed_anchors_holds_for_any_model():
    """PDS takes the hard items; completed by chance, strangers' mean is right on average."""
    r = population(40, 200, graded=True)
    rng = np.random.default_rng(5)
    new = Responses(Models(["n"]), r.items, (rng.random((1, 200)) < 0.5).astype(np.float32))
    found = []
    for seed in range(60):
        pds = selector("pds")(r, 15, seed)
        anchors = de.select.complete(r, pds, 30, seed)
        found.append(float(new.grades(anchors.positions)[0] @ anchors.weights) - new.scores()[0])
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(60)


# ---- cost ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", ["auto", "stratified", "sharp"])
def test_a_budget_is_never_exceeded_and_nearly_spent(select):
    r = priced()
    for budget in (500.0, 2000.0, 6000.0):
        anchors = selector(select)(r, 200, 0, cost_power=0.5, budget=budget)
        spent = r.items.cost[anchors.positions].sum()
        assert 0.8 * budget < spent <= budget
    cheap = selector(select)(r, 30, 0, cost_power=1.0)
    plain = selector(select)(r, 30, 0)
    assert r.items.cost[cheap.positions].mean() < r.items.cost[plain.positions].mean()


def test_a_budget_that_almost_pays_for_one_more_is_spent_too():
    """Eight items cost 500, the others 1: what 48 cost is just too much, so 47 are taken, not the last guess below."""
    cost = np.where(np.arange(400) < 8, 500.0, 1.0)
    r = population(40, 400, graded=True)
    r = Responses(r.models, Items(r.items.ids, cost=cost), r.correct)
    for budget in (9.6, 47.9, 239.6):
        assert len(selector("auto")(r, 400, 0, cost_power=0.5, budget=budget)) >= 0.9 * budget


def test_for_the_same_money_heeding_costs_errs_less():
    r = priced()
    rng = np.random.default_rng(0)
    new = Responses(Models([f"n{i}" for i in range(200)]), r.items, (rng.random((200, 200)) < 0.5).astype(np.float32))
    error = {}
    for power in (0.0, 0.5):
        off = []
        for seed in range(20):
            a = selector("stratified")(r, 200, seed, cost_power=power, budget=2000.0)
            off.append(new.grades(a.positions) @ a.weights - new.scores())
        error[power] = float(np.sqrt(np.mean(np.square(off))))
    assert error[0.5] < error[0.0]


def test_costs_that_are_unknown_or_too_high_are_refused():
    r = population(40, 200, graded=True)
    with pytest.raises(ValidationError, match="the items have none"):
        selector("auto")(r, 20, 0, cost_power=0.5)
    with pytest.raises(ValidationError, match=r"a budget of 1 is too small: 4 items, .* give that or more"):
        selector("auto")(priced(), 20, 0, budget=1.0)
    with pytest.raises(ValidationError, match="cost_power must lie"):
        selector("auto")(priced(), 20, 0, cost_power=2.0)


def test_the_command_takes_a_column_and_says_what_is_saved(tmp_path):
    write_table(priced(), tmp_path / "a.csv")
    frame = pl.read_csv(tmp_path / "a.csv", infer_schema=False).rename({"cost": "tokens"})
    frame.write_csv(tmp_path / "a.csv")
    command = ("condense", "a.csv", "--out", "c", "--cost", "tokens", "--budget", "2000", "--no-curve")
    out = disco(*command, cwd=tmp_path).stdout
    assert "The anchors cost" in out
    cost = de.load(tmp_path / "c").provenance["cost"]
    assert 1000 < cost["anchors"] <= 2000
    assert cost["all"] == pytest.approx(priced().items.cost.sum())
    write_npz(population(), tmp_path / "b.npz")
    line = disco("condense", "b.npz", "--out", "d", "--cost", "tokens", cwd=tmp_path, status=2).stderr
    assert "'b.npz' knows costs as 'cost' only" in line


# ---- several benchmarks ----------------------------------------------------------------------------------------


def two() -> dict[str, Responses]:
    a, b = population(40, 100, graded=True), population(40, 60, graded=True, seed=1)
    a = Responses(a.models, Items([f"a/{i}" for i in range(100)]), a.correct)
    order = b.models.positions(a.models.ids[5:])  # another order, five models fewer
    return {"a": a, "b": Responses(a.models.pick(slice(5, 40)), Items([f"b/{i}" for i in range(60)]), b.correct[order])}


def test_several_benchmarks_are_one_with_an_estimate_each(tmp_path):
    joined = together(two())
    assert joined.n_models == 35
    assert joined.n_items == 160
    apart = [r.pick(models=r.models.positions(joined.models.ids)).scores() for r in two().values()]
    np.testing.assert_allclose(joined.subtask_scores(), np.stack(apart, axis=1), atol=1e-12)
    np.testing.assert_allclose(joined.scores(), np.mean(apart, axis=0), atol=1e-12)
    for name, r in two().items():
        write_npz(r, tmp_path / f"{name}.npz")
    out = disco("condense", "a.npz", "b.npz", "--out", "c", "--anchors", "40", cwd=tmp_path).stdout
    assert "40 of 160 items of 'a+b'" in out
    assert "2 subtasks are estimated too" in out
    done = disco("estimate", "c", "a.npz", "b.npz", "--json", cwd=tmp_path)
    assert "5 models are in some of the files only" in done.stderr
    table = disco("estimate", "c", "a.npz", "b.npz", cwd=tmp_path).stdout
    each = json.loads(done.stdout)["estimates"][0]
    row = next(row for row in table.split("By subtask")[1].splitlines() if row.split()[:1] == [each["model"]])
    assert f"{100 * each['subtasks'][1]['score']:.1f} (" in row
    estimates = json.loads(done.stdout)["estimates"]
    assert len(estimates) == 35
    assert [s["name"] for s in estimates[0]["subtasks"]] == ["a", "b"]
    line = disco("estimate", "c", "a.npz", cwd=tmp_path, status=2).stderr
    assert "no answer for" in line


def test_benchmarks_that_share_names_of_items_are_estimated_from_their_own_files(tmp_path):
    for name, r in two().items():
        same = Responses(r.models, Items([str(i) for i in range(r.n_items)]), r.correct)
        write_npz(same, tmp_path / f"{name}.npz")
        write_table(same, tmp_path / f"{name}.csv")
    done = disco("condense", "a.npz", "b.npz", "--out", "c", "--anchors", "40", cwd=tmp_path)
    assert "models answered some of the benchmarks only and are left out" in done.stderr
    estimates = json.loads(disco("estimate", "c", "a.npz", "b.npz", "--json", cwd=tmp_path).stdout)["estimates"]
    assert len(estimates) == 35
    from_tables = json.loads(disco("estimate", "c", "a.csv", "b.csv", "--json", cwd=tmp_path).stdout)["estimates"]
    assert [e["score"] for e in from_tables] == pytest.approx([e["score"] for e in estimates])
    assert "no answer for" in disco("estimate", "c", "a.npz", cwd=tmp_path, status=2).stderr


def test_models_are_compared_from_a_file_a_benchmark(tmp_path):
    for name, r in two().items():
        same = Responses(r.models, Items([str(i) for i in range(r.n_items)]), r.correct)
        write_npz(same, tmp_path / f"{name}.npz")
    c = condense(together({name: open_answers(tmp_path / f"{name}.npz") for name in "ab"}), 40, rng=0, curve=False)
    c.save(tmp_path / "c")
    one, other = c.sources.models.ids[:2].tolist()
    names = ("--baseline-model", one, "--candidate-model", other)
    files = ("a.npz", "a.npz", "--baseline-also", "b.npz", "--candidate-also", "b.npz")
    found = json.loads(disco("compare", "c", *files, *names, "--json", cwd=tmp_path).stdout)
    expected = compare(c, c.sources.pick(models=[0]), c.sources.pick(models=[1]))
    assert found["difference"] == pytest.approx(expected.difference)
    assert (found["baseline"], found["candidate"]) == (one, other)
    assert "no answer for" in disco("compare", "c", "a.npz", "a.npz", *names, cwd=tmp_path, status=2).stderr
    write_npz(population(4, 30, seed=9), tmp_path / "else.npz")
    args = ("compare", "c", "else.npz", "a.npz")
    assert (
        "none of them holds the answers to the anchors of 'benchmark', such as"
        in disco(*args, cwd=tmp_path, status=2).stderr
    )


def test_no_anchors_at_all_are_refused(tmp_path):
    write_npz(population(), tmp_path / "r.npz")
    assert (
        "0 anchors were asked for"
        in disco("condense", "r.npz", "--out", "c", "--anchors", "0", cwd=tmp_path, status=2).stderr
    )


def test_a_benchmark_that_all_sources_solve_is_condensed_and_reported(tmp_path):
    r = population(20, 80)
    write_npz(Responses.from_correct(r.models.ids, r.items.ids, np.ones((20, 80))), tmp_path / "r.npz")
    out = disco("condense", "r.npz", "--out", "c", "--anchors", "20", cwd=tmp_path).stdout
    assert "alike-sources" in out
    assert "no-gain" not in out
    assert (tmp_path / "c" / "report.html").exists()


def test_all_items_as_anchors_are_no_loss():
    assert "no-gain" not in condense(population(40, 60), 60, rng=0, curve=False).source_flags


def test_random_items_are_drawn_by_what_they_count_for():
    """Ten items make up half of the score: a mean over items of equal chance misses most of them."""
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(400) < 10, 39.0, 1.0)
    correct = (rng.random((60, 400)) < np.linspace(0.2, 0.8, 60)[:, None]).astype(float)
    items = Items([f"i{j}" for j in range(400)], weight=weight)
    v = condense(
        Responses.from_correct([f"m{i}" for i in range(60)], items, correct), 60, rng=0, curve=False
    ).validation
    # the ten are certain to be drawn, fifty of the others stand for their half: sqrt(0.25 / 50) / 2 * sqrt(2 / pi)
    assert v.direct_mae == pytest.approx(0.028, abs=0.006)
    assert v.mae < v.direct_mae


def test_items_of_the_same_name_are_told_apart_by_their_benchmark():
    parts = two()
    same = {k: Responses(r.models, Items([str(i) for i in range(r.n_items)]), r.correct) for k, r in parts.items()}
    assert together(same).items.ids[[0, -1]].tolist() == ["a/0", "b/59"]
    with pytest.raises(ValidationError, match="60 items are in several files"):
        beside(list(same.values()))


def test_benchmarks_without_a_common_model_are_refused():
    parts = two()
    other = Responses(Models([f"x{i}" for i in range(35)]), parts["b"].items, parts["b"].correct)
    with pytest.raises(AlignmentError, match="no model is in all"):
        together({"a": parts["a"], "b": other})


def test_what_is_known_of_models_comes_from_the_first_benchmark_that_knows_it():
    said = {
        "a": {"released": ["", "2024-02-02", ""], "family": ["", "f", ""]},
        "b": {"released": ["2023-01-01", "2023-01-01", ""], "family": ["g", "g", ""]},
        "c": {"released": ["2022-01-01", "2022-01-01", "2022-03-03"], "family": ["h", "h", "i"]},
    }
    grades = np.eye(3)
    names = ["x", "y", "z"]
    parts = {}
    for k, (name, known) in enumerate(said.items()):
        order = np.roll(np.arange(3), k)  # each file has its models in an order of its own
        models = Models([names[m] for m in order], **{c: [v[m] for m in order] for c, v in known.items()})
        parts[name] = Responses.from_correct(models, [f"{name}{i}" for i in range(3)], grades[order])
    joined = together(parts)
    assert joined.models.ids.tolist() == names
    assert joined.models.released.astype(str).tolist() == ["2023-01-01", "2024-02-02", "2022-03-03"]
    assert joined.models.family.tolist() == ["g", "f", "i"]
    np.testing.assert_array_equal(joined.correct, np.tile(grades, 3))
    unknown = Responses.from_correct(names, ["q"], np.zeros((3, 1)))
    assert np.isnat(together({"u": unknown, "w": unknown}).models.released).all()


def test_probabilities_of_different_width_are_padded():
    a, b = population(30, 50, 4), population(30, 40, 2, seed=0)
    b = Responses(a.models, Items([f"b{i}" for i in range(40)], label=b.items.label), b.correct, b.probs)
    joined = together({"a": a, "b": b})
    assert joined.max_choices == 4
    assert joined.items.n_choices.tolist() == [4] * 50 + [2] * 40
    assert not np.asarray(joined.probs)[:, 50:, 2:].any()


def test_the_order_of_items_changes_no_folds():
    """Models in threes that err alike are told by some of many items, whichever come first."""
    rng = np.random.default_rng(0)
    able, hard = np.repeat(rng.normal(size=20), 3), rng.normal(size=400)
    luck = np.repeat(rng.random((20, 400)), 3, axis=0)
    luck = np.where(rng.random(luck.shape) < 0.15, rng.random(luck.shape), luck)
    grades = (luck < 1 / (1 + np.exp(hard - able[:, None]))).astype(np.float32)
    r = Responses.from_correct([f"m{i}" for i in range(60)], [f"q{i}" for i in range(400)], grades)
    found = [
        condense(r.pick(items=order), 20, rng=0, curve=False, relatives=False).validation
        for order in (np.arange(400), np.arange(400)[::-1], rng.permutation(400))
    ]
    assert found[0].grouped_by == "answers"
    for other in found[1:]:
        np.testing.assert_array_equal(other.fold, found[0].fold)
        np.testing.assert_allclose(other.estimate, found[0].estimate, atol=1e-6)


def test_other_folds_change_neither_anchors_nor_reserve():
    r = population(24, 60)
    made = [condense(r, 8, rng=0, n_folds=n, curve=False, relatives=False) for n in (5, 3, 8)]
    assert [c.validation.n_folds for c in made] == [5, 3, 8]
    for other in made[1:]:
        assert other.asked(20).ids.tolist() == made[0].asked(20).ids.tolist()


# ---- more sources later ----------------------------------------------------------------------------------------


def test_an_update_keeps_the_anchors_and_learns_from_all(tmp_path):
    everyone = population(60, 120)
    small = condense(everyone.pick(models=slice(0, 30)), 20, rng=0, benchmark="toy")
    larger = update(small, everyone, rng=0)
    assert larger.anchors.ids.tolist() == small.anchors.ids.tolist()
    assert larger.reserve.items.ids.tolist() == small.reserve.items.ids.tolist()
    np.testing.assert_array_equal(larger.anchors.weights, small.anchors.weights)
    assert larger.sources.n_models == 60
    assert larger.provenance["anchors_of"] == small.provenance["created"]
    answers = everyone.align(small.asked(12).ids)
    assert len(larger.estimate(answers, more=12)) == 60
    everyone.save(tmp_path / "all.zarr")
    small.save(tmp_path / "c")
    disco("condense", "all.zarr", "--update", "c", "--out", "d", "--no-curve", cwd=tmp_path)
    assert de.load(tmp_path / "d").estimate(everyone) == update(small, everyone, rng=0, curve=False).estimate(everyone)
    quick = ("--no-curve", "--no-relatives")
    said = disco("condense", "all.zarr", "--update", "c", "--out", "e", *quick, cwd=tmp_path).stdout
    assert "--relatives narrows the others" in said
    assert de.load(tmp_path / "e").validation.relatives is None
    line = disco("condense", "all.zarr", "--update", "c", "--out", "f", "--anchors", "9", cwd=tmp_path, status=2)
    assert "--update keeps the anchors" in line.stderr


def test_an_update_of_anchors_chosen_by_cost_reads_the_costs(tmp_path):
    """A table's own column of costs is named again, since the folds choose by it."""
    r = population(50, 80)
    cost = np.random.default_rng(0).lognormal(0, 1, 80).round(3)
    rows = [
        {"model": m, "item": i, "score": float(g), "tokens": c}
        for m, grades in zip(r.models.ids, r.grades(), strict=True)
        for i, g, c in zip(r.items.ids, grades, cost, strict=True)
    ]
    pl.DataFrame(rows[: 40 * 80]).write_csv(tmp_path / "old.csv")
    pl.DataFrame(rows).write_csv(tmp_path / "all.csv")
    quick = ("--no-curve", "--no-relatives")
    disco("condense", "old.csv", "--cost", "tokens", "--budget", cost.sum() / 5, "--out", "c", *quick,
        cwd=tmp_path,
    )  # fmt: skip
    disco("condense", "all.csv", "--update", "c", "--cost", "tokens", "--out", "d", *quick, cwd=tmp_path)
    old, new = (de.load(tmp_path / name) for name in "cd")
    assert new.anchors.ids.tolist() == old.anchors.ids.tolist()
    assert new.sources.n_models == 50
    assert new.provenance["cost"] == pytest.approx(old.provenance["cost"])
    line = disco("condense", "all.csv", "--update", "c", "--out", "e", *quick, cwd=tmp_path, status=2).stderr
    assert "the anchors of 'old' were chosen by cost, but the items have none; give the 'cost' column" in line


def many_sided(n_models: int, n_items: int, seed: int) -> Responses:
    """Models that are good at different things: what an item tells of one says little of another."""
    rng = np.random.default_rng(seed)
    able, asks = rng.normal(size=(n_models, 6)), 0.7 * rng.normal(size=(6, n_items))
    asks[0] = np.abs(asks[0])
    grades = rng.random((n_models, n_items)) < 1 / (1 + np.exp(-1.5 * (able @ asks + rng.normal(size=n_items))))
    models = Models([f"m{i}" for i in range(n_models)])
    return Responses.from_correct(models, Items([f"i{k}" for k in range(n_items)]), grades.astype(np.float32))


def test_intervals_after_an_update_are_those_of_its_own_anchors():
    """In the folds the first models choose and all teach, as they do in an update: intervals hold, and are no wider."""
    wide, held = [], []
    for seed in range(4):
        r = many_sided(160, 1500, seed)
        known, new = r.pick(models=slice(0, 120)), r.pick(models=slice(120, 160))
        first = condense(known.pick(models=slice(0, 25)), 60, rng=seed, curve=False)
        larger, fresh = update(first, known, rng=seed, curve=False), condense(known, 60, rng=seed, curve=False)
        again = update(larger, known, rng=seed, curve=False)  # who chose is known still
        np.testing.assert_array_equal(again.validation.estimate, larger.validation.estimate)
        estimates = [c.estimate(new) for c in (larger, fresh)]
        wide.append([np.mean([e.high - e.low for e in each]) for each in estimates])
        held += [e.low <= t <= e.high for e, t in zip(estimates[0], new.scores(), strict=True)]
    assert np.divide(*np.mean(wide, axis=0)) < 1.4  # 1.7 where all models of a fold choose
    assert 0.85 < np.mean(held) < 0.97


def test_committees_are_drawn_after_an_update_too():
    """The learning curve and small folds hold too few first models for the committee; then all choose."""
    r = population(100, 120)
    options = {"select": "pds", "select_options": {"committee_size": 20}}
    small = condense(r.pick(models=slice(0, 40)), 16, rng=0, curve=False, **options)
    assert len(update(small, r, rng=0).validation.curve) > 1


def test_an_update_uses_the_same_recipe():
    everyone = population(60, 120)
    few = everyone.pick(models=slice(0, 40))
    small = condense(few, 20, select="jsd", predict="forest", predict_options={"n_components": 5}, rng=0, curve=False)
    larger = update(small, everyone, rng=0, curve=False)
    assert larger.score_model.name == small.score_model.name
    assert larger.score_model.config() == small.score_model.config()
    assert larger.provenance["select"] == small.provenance["select"]


def test_updates_from_other_models_or_items_are_refused():
    everyone = population(60, 120)
    small = condense(everyone.pick(models=slice(0, 30)), 20, rng=0, curve=False)
    with pytest.raises(AlignmentError, match=r"5 source models of 'benchmark' are not among the given ones"):
        update(small, everyone.pick(models=slice(5, 60)))
    with pytest.raises(AlignmentError, match="has 120 items, but answers to 119 came"):
        update(small, everyone.pick(items=slice(0, 119)))


def test_an_update_from_items_that_count_for_something_else_is_refused():
    r = population(60, 120)
    small = condense(r.pick(models=slice(0, 40)), 10, rng=0, curve=False)

    def weighted(weight):
        return Responses(r.models, r.items.having(weight=weight), r.correct, r.probs)

    assert len(update(small, weighted(7 * r.items.weight), rng=0, curve=False).reserve) == 40  # for as much
    with pytest.raises(AlignmentError, match="50 of 50 anchors and items in reserve of 'benchmark' do not count"):
        update(small, weighted(np.arange(1.0, 121)))
    left = np.setdiff1d(r.items.ids, small.asked(40).ids)
    at = r.items.positions(left[:2])
    swapped = r.items.weight.copy()
    swapped[at] = 0, swapped[at].sum()
    with pytest.raises(AlignmentError, match="120 items of 'benchmark' counted, but 119 of the given ones do"):
        update(small, weighted(swapped))


def test_an_update_takes_subtasks_as_they_are_now_and_refuses_other_questions(tmp_path):
    r = population(60, 120)
    digest = np.array([f"d{i}" for i in range(120)])
    r = Responses(r.models, r.items.having(digest=digest), r.correct, r.probs)
    small = condense(r.pick(models=slice(0, 40)), 10, rng=0, curve=False)
    named = Responses(r.models, r.items.having(subtask=["c", "d"] * 60), r.correct, r.probs)
    made = update(small, named, rng=0, curve=False)
    made.save(tmp_path / "made")
    found = de.load(tmp_path / "made").estimate(named, more=20)
    assert found == made.estimate(named, more=20)
    assert [s.name for s in found[0].subtasks] == ["c", "d"]
    digest[r.items.positions(small.reserve.items.ids[:1])] = "other"
    changed = Responses(r.models, r.items.having(digest=digest), r.correct, r.probs)
    with pytest.raises(AlignmentError, match=r"prompt \(digest\) of 1 of 40 items in reserve differs"):
        update(small, changed)


def test_an_update_of_a_budget_asks_for_as_many_anchors_as_before():
    r = population(40, 120)
    cost = np.random.default_rng(3).lognormal(0, 1, 120)
    r = Responses(r.models, r.items.having(cost=cost), r.correct, r.probs)
    small = condense(r, 120, select_options={"cost_power": 0.5, "budget": 20.0}, rng=0, curve=False)
    made = update(small, r, rng=0, curve=False)
    assert small.provenance["n_asked"] == made.provenance["n_asked"] == 120
    assert made.validation.estimate == pytest.approx(small.validation.estimate)


# ---- the learning curve ----------------------------------------------------------------------------------------


def test_the_curve_counts_source_models_and_ends_at_the_validation():
    assert curve_sizes(32) == [25]
    assert curve_sizes(31) == []
    assert curve_sizes(1000) == [25, 50, 100, 200, 400]
    r = population(60, 120, graded=True)
    small = condense(r, 20, rng=0)
    assert small.validation.curve[:, 0].tolist() == [25, 48]
    assert small.validation.curve[-1, 1] == pytest.approx(small.validation.mae)
    assert condense(r, 20, rng=0, curve=False).validation.curve.shape == (0, 3)
    without = condense(r, 20, rng=0, curve=False).estimate(r)
    assert without == small.estimate(r)  # the curve changes nothing else


def test_more_sources_help_where_the_curve_falls():
    v = condense(population(60, 120, graded=True), 20, rng=0).validation
    falling = CrossValidation(**{**vars(v), "curve": np.array([[25, 0.04, 0.001], [50, 0.03, 0.001]])})
    gain, clear = falling.more_sources()
    assert clear
    assert gain == pytest.approx(0.03 * 0.25)  # a quarter less with each doubling
    flat = CrossValidation(**{**vars(v), "curve": np.array([[25, 0.03, 0.01], [50, 0.03, 0.01]])})
    assert flat.more_sources() == (0.0, False)
    lucky = CrossValidation(**{**vars(v), "curve": np.array([[25, 0.04, 0.01], [50, 0.03, 0.001]])})
    assert not lucky.more_sources()[1]  # the anchors of fewer may have been unlucky


def test_the_curve_is_as_sure_as_its_folds_which_share_anchors():
    v = condense(population(60, 120, graded=True), 20, rng=0).validation
    error = np.abs(v.truth - v.estimate)
    each = [error[v.fold == k].mean() for k in range(v.n_folds)]
    assert v.curve[-1, 2] == pytest.approx(np.std(each, ddof=1) / np.sqrt(v.n_folds)) == pytest.approx(v.mae_se)


# ---- files -----------------------------------------------------------------------------------------------------


def test_columns_can_be_named_for_tables_only(tmp_path):
    write_npz(population(), tmp_path / "a.npz")
    with pytest.raises(DiscoError, match="is no table"):
        open_answers(tmp_path / "a.npz", columns={"cost": "tokens"})


def test_comparing_is_a_method_too():
    everyone = population(60, 200)
    small = condense(everyone.pick(models=slice(0, 50)), 30, rng=0, curve=False)
    a, b = (everyone.pick(models=slice(k, k + 1)) for k in (51, 52))
    assert small.compare(a, b, margin=0.02) == de.compare(small, a, b, margin=0.02)


def test_copies_of_a_source_sit_in_one_fold():
    """The same upload under two names, kinship unknown: the validation estimates neither from the other."""
    r = population()
    twice = np.repeat(np.arange(r.n_models), 2)
    names = [f"{r.models.ids[k]}-{j % 2}" for j, k in enumerate(twice)]
    c = condense(Responses.from_correct(names, r.items, r.grades()[twice]), 12, rng=0, curve=False)
    fold = c.validation.fold[np.argsort(c.sources.models.ids)].reshape(-1, 2)
    assert (fold[:, 0] == fold[:, 1]).all()
    assert len(set(fold[:, 0])) > 1


def test_models_that_fail_everywhere_are_no_copies():
    """Five of twelve sources without a right answer."""
    grades = np.random.default_rng(0).integers(0, 2, (12, 300)).astype(float)
    grades[:5] = 0
    c = condense(Responses.from_correct([f"m{k}" for k in range(12)], [f"i{k}" for k in range(300)], grades), 30, rng=0)
    assert np.isfinite(c.validation.mae)


@pytest.mark.parametrize("more", [0, 20])
def test_no_interval_reaches_beyond_what_was_answered(more):
    """A model with much right, or much wrong, cannot end where its answers do not let it."""
    rng = np.random.default_rng(0)
    weight = np.r_[np.full(10, 20.0), np.ones(190)]  # ten items are half of the score
    items = Items([f"i{j}" for j in range(200)], weight=weight)
    grades = (rng.random((60, 200)) < rng.uniform(0.2, 0.8, (60, 1))).astype(float)
    small = condense(Responses.from_correct([f"m{i}" for i in range(50)], items, grades[:50]), 30, rng=0, curve=False)
    odd = np.array([np.where(weight > 1, 1.0, 0.0), np.where(weight > 1, 0.0, 1.0)])
    new = Responses.from_correct([f"n{i}" for i in range(12)], items, np.concatenate([grades[50:], odd]))
    asked = small.asked(more)
    share, answered = asked.weight / weight.sum(), new.align(asked.ids).grades()
    cut = 0
    for k, e in enumerate(small.estimate(new, 0.99, more=more)):
        least, most = answered[k] @ share, answered[k] @ share + 1 - share.sum()
        assert least - 1e-8 <= e.low <= e.score <= e.high <= most + 1e-8
        cut += int(abs(e.low - least) < 1e-8) + int(abs(e.high - most) < 1e-8)
    assert cut > 1


def test_anchors_that_count_for_nothing_bound_nothing(tmp_path):
    """Sources split on items of no weight and hardly on the three that count, fewer than a reserve needs."""
    rng = np.random.default_rng(0)
    grades = np.concatenate([rng.random((30, 20)) < 0.5, rng.uniform(0.3, 0.5, (30, 3))], axis=1).astype(float)
    items = Items([f"i{j:02d}" for j in range(23)], weight=np.repeat([0.0, 1.0], [20, 3]))
    r = Responses.from_correct([f"m{i:02d}" for i in range(30)], items, grades)
    made = condense(r, 12, select="pds", predict="ridge", rng=0, curve=False)
    assert made.reserve is None
    assert made.anchors.positions.max() < 20
    made.save(tmp_path / "c")
    for c in (made, de.load(tmp_path / "c")):
        for e, truth in zip(c.estimate(r), r.scores(), strict=True):
            assert e.score == pytest.approx(truth, abs=0.1)
            assert 0.2 < e.low < e.high < 0.6
