"""The default score model: what it weighs, and what it does where there is little or nothing to learn."""

from dataclasses import replace

import numpy as np
import pytest

from disco_eval import FormatError, Items, Models, Responses, ValidationError, condense
from disco_eval.numerics.gp import GaussianProcess
from disco_eval.predict import Auto
from disco_eval.predict.mixture import LEAST_EXCESS, excess, shares
from disco_eval.select import auto, complete
from tests.conftest import population


def rising(ability, n_items=300, seed=0):
    """Answers of models of these abilities (logits) to items of mixed hardness."""
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(0, 1.5, n_items) - ability[:, None]))
    return (rng.random(chance.shape) < chance).astype(float)


@pytest.mark.parametrize("select", ["sharp", "pds", "auto"])
def test_models_of_one_score_have_that_score(select):
    """Nothing to learn, and no error to weigh by: no division by zero."""
    rng = np.random.default_rng(0)
    right = np.array([rng.permutation(np.arange(60) % 2) for _ in range(40)])
    r = Responses.from_correct([f"m{i}" for i in range(40)], [f"i{j}" for j in range(60)], right)
    c = condense(r, 20, select=select, rng=0, n_folds=3)
    assert np.isfinite(c.validation.mae)
    assert all(np.isfinite([e.score, e.low, e.high]).all() for e in c.estimate(r))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("told_apart", [0, 1, 5])
def test_sources_that_all_do_alike_teach_nothing_and_the_survey_says_so(told_apart, seed):
    """A benchmark that every source has solved: a model that fails half of it is no 100 % model."""
    rng = np.random.default_rng(seed)
    right = np.ones((40, 200))
    right[:, :told_apart] = rng.random((40, told_apart)) < 0.5
    items = [f"i{j}" for j in range(200)]
    c = condense(
        Responses.from_correct([f"m{i}" for i in range(40)], items, right), 50, rng=seed, curve=False, n_folds=2
    )
    unlike = np.stack([np.zeros(200), rng.random(200) < 0.3, rng.random(200) < 0.6]).astype(float)
    answers = Responses.from_correct(["a", "b", "c"], items, unlike)
    for e, truth in zip(c.estimate(answers, 0.999), answers.scores(), strict=True):
        assert "outside-range" in e.flags
        assert e.low <= truth <= e.high
        assert e.high - e.low < 0.5
    (like,) = c.estimate(Responses.from_correct(["d"], items, np.ones((1, 200))))
    assert like.score > 0.98
    assert "outside-range" not in like.flags


def test_the_order_of_sources_that_hardly_differ_changes_nothing():
    """Copies almost without noise: their process would be another one by the last bits of sums in another order."""
    rng = np.random.default_rng(0)
    right = (rng.random((24, 60)) < np.r_[np.zeros(20), 0.5 * np.ones(4)][:, None]).astype(float)
    right[:20, 0] = rng.random(20) < 0.3
    r = Responses.from_correct([f"m{i}" for i in range(24)], [f"i{j}" for j in range(60)], right)
    found = [
        Auto().fit(r.pick(models=order), complete(r, auto(r, 8, rng=0), 4, rng=0), rng=0)._processes.mix
        for order in (np.arange(24), rng.permutation(24), np.arange(24)[::-1])
    ]
    assert found[0].tolist() == found[1].tolist() == found[2].tolist()


def test_an_unlucky_draw_is_no_alarm_where_sources_are_alike():
    """Checkpoints of one run: all within a point or two, far less than what 40 items can tell."""
    right = rising(np.linspace(0.0, 0.1, 80))
    items = [f"i{j}" for j in range(300)]
    source, target = (
        Responses.from_correct([f"m{i}" for i in at], items, right[at]) for at in (range(0, 80, 2), range(1, 80, 2))
    )
    c = condense(source, 40, rng=0, curve=False, n_folds=2)
    found = c.score_model.assess(c.answers(target))
    error = np.abs(found.survey - target.scores())
    assert error.max() > 0.08
    assert np.abs(found.score - target.scores()).mean() < 0.5 * error.mean()


def test_the_process_that_knows_a_relative_counts_more():
    claimed = np.array([[0.01, 0.02], [0.02, 0.02]])  # of two processes, for two models
    found = shares(np.array([0.5, 0.5]), np.ones(2), claimed)
    np.testing.assert_allclose(found, [[0.8, 0.5], [0.2, 0.5]])
    boasting = shares(np.array([0.5, 0.5]), np.array([2.0, 1.0]), claimed)
    np.testing.assert_allclose(boasting[:, 0], [0.5, 0.5])  # it errs twice as much as it claims


def test_a_twin_among_the_sources_is_no_proof_of_knowledge():
    """Every source uploaded twice: left out without its twin, a process's errors are as large as they are."""
    grades = np.repeat(rising(np.linspace(-2, 2, 30)), 2, axis=0)
    process = GaussianProcess.fit(grades[:, :60], grades[:, :60].mean(axis=1), grades.mean(axis=1))
    (alone,), (with_twin,) = excess([process], np.arange(60)), excess([process], np.repeat(np.arange(30), 2))
    assert alone == LEAST_EXCESS == 0.5
    assert with_twin > 0.8


@pytest.mark.parametrize("copies", [2, 4])
def test_copies_of_sources_do_not_switch_the_guard_off(copies):
    """A process that knows every source's twin claims to know all; above the range it still knows nothing."""
    weak, strong = np.linspace(-2.5, 0.0, 48 // copies), np.linspace(0.8, 1.6, 20)
    grades = rising(np.concatenate([weak, strong]))
    items = [f"i{j}" for j in range(300)]
    low = np.repeat(grades[: len(weak)], copies, axis=0)
    source = Responses.from_correct([f"m{i}" for i in range(48)], items, low)
    target = Responses.from_correct([f"t{i}" for i in range(20)], items, grades[len(weak) :])
    anchors = auto(source, 60, 0)
    found = Auto().fit(source, anchors).assess(target.pick(items=anchors.positions))
    share = (found.score - found.process) / (found.survey - found.process)
    assert np.median(share) > 0.6
    assert Auto().fit(source, anchors).state()["excess"] > 0.9  # errors of models without their twins
    errors = [np.abs(x - target.scores()).mean() for x in (found.score, found.process)]
    assert errors[0] < errors[1]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("excess", [0.4, 1.0, 1.0], "out of bounds"),
        ("excess", [1e200, 1.0, 1.0], "out of bounds"),
        ("mix", [-1.0, 1.0, 1.0], "no shares"),
        ("mix", [0.0, 0.0, 0.0], "no shares"),
        ("edge", [-5.0, 0.2, 3.0], "out of bounds"),
        ("edge", [5.0, 0.2, -3.0], "out of bounds"),
        ("edge", [5.0, 0.2, 3.0, 1.0], "edge"),
        ("leakage.guess", [2.0], "no probability"),
        ("leakage.guess", [0.2, 0.2], "no probability"),
        ("weights", np.full(12, 1.0), "no shares"),
        ("weights", np.full(11, 1 / 11), "weights"),
        ("leakage.doubt", np.full((3, 12), -1.0), "out of bounds"),
        ("leakage.doubt", np.full((3, 11), 1.0), "leakage.doubt"),
        ("leakage.strong", [0.0, -1.0], "out of bounds"),
        ("leakage.strong", [0.0], "leakage.strong"),
        ("likely.guess", [2.0], "no probability"),
        ("likely.slope", [1.0], "likely.slope"),
        ("leakage.direction", [0.0], "leakage.direction"),
        ("leakage.units", [1.0], "leakage.units"),
        ("leakage.units", [0.0, -1.0, 0.0, 1.0, 2.0], "honest models"),
        ("likely.units", [0.0, 1.0, 0.0, -1.0, 2.0], "honest models"),
        ("leakage.units", [1e308, 1.0, 0.0, 1.0, 2.0], "honest models"),
        ("leakage.direction", np.full(12, 1e308), "honest models"),
        ("likely.direction", np.full(12, -1e308), "honest models"),
        ("likely.direction", np.full(12, np.nan), "likely.direction"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(name, value, said):
    source = population()
    anchors = auto(source, 12, 0)
    model = Auto().fit(source, anchors)
    state = {**model.state(), name: np.array(value)}
    with pytest.raises(FormatError, match=said):
        Auto.restore(model.config(), state, anchors.ids)


@pytest.mark.parametrize("parts", [5, None, "soft", []])
def test_parts_that_are_no_table_are_no_crash(parts):
    """Found by changing saved files: only errors that the reader of a condensation turns into a line."""
    source = population()
    anchors = auto(source, 12, 0)
    model = Auto().fit(source, anchors)
    with pytest.raises((FormatError, KeyError, TypeError)):
        Auto.restore({**model.config(), "parts": parts}, model.state(), anchors.ids)


def test_a_spread_of_nothing_is_refused():
    source = population()
    anchors = auto(source, 12, 0)
    model = Auto().fit(source, anchors)
    facts = model.state()["facts"].copy()
    facts[2] = 0.0
    with pytest.raises(FormatError, match="spread"):
        Auto.restore(model.config(), {**model.state(), "facts": facts}, anchors.ids)


def test_anchors_count_in_the_mean_by_what_they_stand_for():
    """Ten items make up half of the score and are anchors for certain; the mean of all anchors would slight them."""
    rng = np.random.default_rng(1)
    ability = rng.normal(size=(160, 2))
    heavy = np.arange(400) < 10
    p = 1 / (1 + np.exp(-np.where(heavy, ability[:, :1], ability[:, 1:]) - rng.normal(size=400)))
    items = Items([f"i{j}" for j in range(400)], weight=np.where(heavy, 39.0, 1.0))
    r = Responses.from_correct([f"m{i}" for i in range(160)], items, rng.random(p.shape) < p)
    source, target = r.pick(models=np.arange(80)), r.pick(models=np.arange(80, 160))
    anchors = auto(source, 60, 0)
    errors = []
    for weights in (anchors.weights, np.full(60, 1 / 60)):
        model = Auto(guard=False).fit(source, replace(anchors, weights=weights))
        found = model.predict(target.pick(items=anchors.positions))
        errors.append(np.abs(found - target.scores()).mean())
    assert errors[0] < 0.8 * errors[1]


def test_sources_that_are_nearly_all_of_one_base_are_not_left_out_together():
    r = population(60, 200, seed=2)
    models = Models(r.models.ids, base=["run"] * 58 + ["other"] * 2)
    source = Responses(models, r.items, r.correct, r.probs)
    assert source.models.groups().tolist() == source.models.ids.tolist()
    anchors = auto(source, 40, 0)
    assert Auto().fit(source, anchors).state()["facts"][3] < 10


def test_anchors_not_drawn_by_chance_count_like_any_other():
    """Half of mixed anchors stand for themselves alone: 15 items of 300. They tell as much as the others."""
    source = population(40, 300)
    anchors = complete(source, auto(source, 15, 0), 15, 0)
    weights = Auto().fit(source, anchors).state()["weights"]
    assert anchors.weights[:15].sum() < 0.06
    assert weights[:15].sum() == pytest.approx(0.5)
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("option", [{"guess": "False"}, {"grades": "false"}, {"guard": None}, {"guess": 2}])
def test_switches_are_true_or_false(option):
    with pytest.raises(ValidationError, match="is true or false, got"):
        Auto(**option)


def as_in_format_9(model, *odd):
    """Configuration and arrays of a score model as the last format had them: the ratio alone, in units of its own."""
    later = ("direction", "units")
    state = {name: array for name, array in model.state().items() if not name.endswith(later)}
    config = model.config()
    parts = {name: part for name, part in config["parts"].items() if name != "learned"}
    return {**config, "parts": parts}, {**state, "odd": np.array(odd)}


def test_kinds_of_evidence_of_format_9_are_compared_in_units_of_what_honest_sources_show():
    source = population(60, 80)
    anchors = auto(source, 20, 0)
    model = Auto().fit(source, anchors)
    answers = source.pick(items=anchors.positions)

    def leak(*odd):
        older = Auto.restore(*as_in_format_9(model, *odd), anchors.ids)
        again = Auto.restore(older.config(), older.state(), anchors.ids)  # kept as it is by saving
        np.testing.assert_array_equal(again.assess(answers).leak, older.assess(answers).leak)
        return older.assess(answers).leak

    grades, label = leak(1.0, 1e3), leak(1e3, 1.0)
    both = np.maximum(grades, label)
    np.testing.assert_allclose(leak(1.0, 1.0)[both > 0], both[both > 0])
    np.testing.assert_allclose(leak(2.0, 2.0), leak(1.0, 1.0) / 2)
    assert (grades > 0).any()
    assert np.abs(grades - label).max() > 0.1
    for odd, said in (((0.0, 1.0), "honest models"), ((1.0,), "odd")):
        with pytest.raises(FormatError, match=said):
            Auto.restore(*as_in_format_9(model, *odd), anchors.ids)


def test_evidence_that_does_not_fit_the_rest_is_refused():
    source = population()
    anchors = auto(source, 12, 0)
    soft, hard = Auto().fit(source, anchors), Auto(grades=True).fit(source, anchors)
    added = {k: v for k, v in soft.state().items() if k.startswith("likely.")}
    also = {k.replace("likely", "perfect"): v for k, v in added.items()}
    wrong = (
        (soft, {"likely": False}, {}),
        (hard, {"likely": True}, {}),
        (hard, {"likely": True}, added),
        (hard, {"perfect": True}, {}),
        (hard, {}, also),
        (hard, {"perfect": True, "learned": False}, also),
    )
    for model, parts, more in wrong:
        config = {**model.config(), "parts": {**model.config()["parts"], **parts}}
        with pytest.raises(FormatError, match="what tells of leaked anchors does not fit"):
            Auto.restore(config, {**model.state(), **more}, anchors.ids)
    config = {**hard.config(), "parts": {**hard.config()["parts"], "perfect": "yes"}}
    with pytest.raises(FormatError, match="'perfect' is 'yes', not true or false"):
        Auto.restore(config, hard.state(), anchors.ids)


def test_evidence_of_memory_is_the_same_whatever_order_the_sources_come_in():
    source = population(40, 80)
    anchors = auto(source, 30, 0)
    order = np.random.default_rng(1).permutation(40)
    one, other = (Auto().fit(r, anchors) for r in (source, source.pick(models=order)))
    answers = source.pick(items=anchors.positions)
    np.testing.assert_allclose(one.assess(answers).leak, other.assess(answers).leak, atol=1e-9)
