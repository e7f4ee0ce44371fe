"""Intervals and alarms on simulated models whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from disco_eval import Items, Models, Responses, condense, load
from disco_eval.baseline import as_dear
from disco_eval.calibration import APART, LEAST_ODD, OUTSIDE
from disco_eval.condensing import _of_folds
from disco_eval.flags import FLAGS, OF_SOURCES
from disco_eval.numerics.likeness import effective_number
from disco_eval.predict.guard import START
from disco_eval.recipe import Recipe, assess
from tests.conftest import population


def world(n_models=150, n_items=400, low=-1.5, high=1.5, seed=0):
    """Grades of models with two abilities and items of random difficulty and direction."""
    rng = np.random.default_rng(seed)
    ability = np.column_stack([np.linspace(low, high, n_models), rng.normal(size=n_models) * 0.5])
    slope = np.column_stack([rng.uniform(0.5, 1.5, n_items), rng.normal(size=n_items)])
    p = 1 / (1 + np.exp(-(ability @ slope.T + rng.normal(size=n_items))))
    ids = rng.permutation(n_models)
    return Responses.from_correct([f"m{i}" for i in ids], [f"i{j}" for j in range(n_items)], rng.random(p.shape) < p)


def test_intervals_hold_what_they_promise():
    """Sources and targets from one population: coverage within three standard errors of each level."""
    r = world(240)
    source = np.arange(240) % 2 == 0
    c = condense(r.pick(models=source), 60, rng=0)
    answers = r.pick(models=~source)
    for level in (0.8, 0.9):
        inside = [e.low <= t <= e.high for e, t in zip(c.estimate(answers, level), answers.scores(), strict=True)]
        assert np.mean(inside) >= level - 3 * np.sqrt(level * (1 - level) / len(inside))
    narrow, wide = c.estimate(answers, 0.5), c.estimate(answers, 0.95)
    assert all(n.low >= w.low and n.high <= w.high for n, w in zip(narrow, wide, strict=True))


@pytest.mark.parametrize(("n_families", "alike"), [(3, True), (4, False)])
def test_sources_of_few_named_families_are_alike_however_they_answer(n_families, alike):
    r = world(60)
    models = Models(r.models.ids, family=[f"run{i % n_families}" for i in range(60)])
    c = condense(Responses.from_correct(models, r.items, r.load().correct), 30, rng=0, curve=False)
    assert ("alike-sources" in c.source_flags) is alike
    assert "alike-sources" not in condense(r, 30, rng=0, curve=False).source_flags  # of families nobody named


def test_models_above_all_sources_are_flagged_and_covered():
    r = world(200)
    order = np.argsort(r.scores())
    c = condense(r.pick(models=order[:100]), 60, rng=0)
    top = r.pick(models=order[-40:])
    estimates = c.estimate(top)
    assert np.mean(["outside-range" in e.flags for e in estimates]) > 0.9
    inside = [e.low <= t <= e.high for e, t in zip(estimates, top.scores(), strict=True)]
    assert np.mean(inside) >= 0.75  # nominal 0.9; 40 models on one draw of anchors are not independent
    plain = np.abs(c.answers(top).grades().mean(axis=1) - top.scores()).mean()
    ours = np.mean([abs(e.score - t) for e, t in zip(estimates, top.scores(), strict=True)])
    alone = condense(r.pick(models=order[:100]), 60, predict="gp", rng=0, n_folds=2).estimate(top)
    unguarded = np.mean([abs(e.score - t) for e, t in zip(alone, top.scores(), strict=True)])
    assert ours < unguarded
    assert ours < plain + 0.02


def test_leaked_anchors_are_flagged_and_honest_answers_are_not():
    r = world(240, seed=2)
    source = np.arange(240) % 2 == 0
    c = condense(r.pick(models=source), 100, rng=0)
    answers = r.pick(models=~source).align(c.anchors.ids)
    right, rng = np.array(answers.correct), np.random.default_rng(0)
    for row in right:
        row[rng.choice(100, 30, replace=False)] = 1
    leaked = c.estimate(Responses.from_correct(Models(answers.models.ids), answers.items, right))
    able = answers.scores() < 0.65  # where nearly all is right, nothing can be told
    assert np.mean([("odd-answers" in e.flags) for e, a in zip(leaked, able, strict=True) if a]) >= 0.5
    assert np.mean(["odd-answers" in e.flags for e in c.estimate(answers)]) <= 0.15  # 5 % and three standard errors


def test_the_error_has_a_standard_error_of_its_folds():
    v = condense(world(60), 30, rng=0, curve=False).validation
    each = [np.abs(v.truth - v.estimate)[v.fold == k].mean() for k in range(v.n_folds)]
    assert v.mae_se == pytest.approx(np.std(each, ddof=1) / np.sqrt(5))
    assert replace(v, fold=np.full(60, -1)).mae_se == 0


def test_memory_shows_in_how_sure_a_model_is_where_it_is_right_anyway():
    """Models that prefer no choice by much, but are sure of anchors that they would get right anyway."""
    rng = np.random.default_rng(0)
    logits = 0.5 * rng.normal(size=(160, 400, 4))
    logits[..., 0] += np.linspace(-1, 3, 160)[:, None] - 2 * rng.normal(size=400)
    probs = np.exp(0.3 * logits)
    items = Items([f"i{j}" for j in range(400)], label=np.zeros(400, dtype=np.int64), n_choices=np.full(400, 4))
    r = Responses.from_probs([f"m{i}" for i in rng.permutation(160)], items, probs / probs.sum(axis=2, keepdims=True))
    source = np.arange(160) % 2 == 0
    c = condense(r.pick(models=source), 100, rng=0, curve=False)
    honest = r.pick(models=~source).align(c.anchors.ids).load()
    honest = honest.pick(models=honest.scores() > 0.6)
    sure = np.array(honest.probs, dtype=np.float64)
    for row, label in zip(sure, honest.label_probs(), strict=True):
        row[np.argsort(np.where(row.argmax(axis=1) == 0, label, 1.0))[:20]] = [0.97, 0.01, 0.01, 0.01]
    leaked = Responses.from_probs(Models(honest.models.ids), honest.items, sure)
    assert np.array_equal(leaked.grades(), honest.grades())

    def flagged(answers):
        return np.mean(["odd-answers" in e.flags for e in c.estimate(answers)])

    assert flagged(honest) <= 0.15
    assert flagged(leaked) >= 0.5


@pytest.mark.parametrize("levels", [None, 5])
def test_memory_shows_in_perfect_answers_where_grades_are_partial(tmp_path, levels):
    """Honest answers come close and are seldom perfect (never, without levels); what is remembered is perfect."""
    rng = np.random.default_rng(0)
    skill = np.linspace(-1.5, 2.5, 160)[:, None] - rng.normal(size=400)
    grades = np.clip(1 / (1 + np.exp(-skill)) + 0.1 * rng.normal(size=skill.shape), 0, 0.99)
    grades = grades if levels is None else np.round(grades * levels) / levels
    r = Responses.from_correct([f"m{i:03d}" for i in range(160)], [f"i{j}" for j in range(400)], grades)
    source, target = np.arange(0, 130, 2), np.arange(1, 160, 2)
    c = condense(r.pick(models=source), 100, rng=0, curve=False)
    honest = r.pick(models=target).align(c.anchors.ids).load()
    known = np.array(honest.correct)
    for row in known:
        row[rng.choice(100, 30, replace=False)] = 1
    c.save(tmp_path / "c")

    def flagged(answers):
        given = Responses.from_correct(honest.models, honest.items, answers)
        estimates = c.estimate(given)
        assert load(tmp_path / "c").estimate(given) == estimates
        return np.array(["odd-answers" in e.flags for e in estimates])

    strong = target > 130
    found = flagged(honest.correct)
    assert found[~strong].mean() <= 0.15
    if levels is None:  # of strong models their grades say nothing
        assert found[strong].mean() <= 0.15
    told = flagged(known)
    assert told[~strong].mean() >= 0.9
    assert told[strong].mean() >= 0.5


def graded_by(kind: str) -> Responses:
    """Answers graded in parts of 160 models: never quite perfect, or perfect by chance where right."""
    rng = np.random.default_rng(1)
    logit = np.linspace(-1.5, 1.5, 160)[:, None] - rng.normal(size=400) + rng.normal(size=(160, 400))
    by_chance = (logit > 0) * np.where(rng.random(logit.shape) < 0.5, 1, 0.9)
    grades = 1 / (1 + np.exp(-logit)) if kind == "never" else by_chance
    return Responses.from_correct([f"m{i:03d}" for i in range(160)], [f"i{j}" for j in range(400)], grades)


@pytest.mark.parametrize(("kind", "helps"), [("never", True), ("by chance", False)])
def test_perfect_answers_are_looked_at_where_that_finds_more(kind, helps):
    """A second kind of evidence raises the threshold; folds follow what all sources say."""
    r = graded_by(kind)
    made = condense(r, 60, rng=0, curve=False).score_model
    assert made.learned["perfect"] is helps
    assert _of_folds(Recipe(60, "auto", "auto"), made).predict_options == {"guess": False, "perfect": helps}
    for asked in (True, False):
        made = condense(r, 60, rng=0, curve=False, predict_options={"perfect": asked}).score_model
        assert made.learned["perfect"] is asked


def test_evidence_of_rounding_is_not_odd():
    """Of few sources that are never perfect, none may show more than last bits: a threshold of these means nothing."""
    r = graded_by("never")
    c = condense(r.pick(models=np.arange(0, 160, 16)), 60, rng=0, curve=False)
    v = replace(c.validation, leak=np.full(10, 1e-15))
    found = assess(c.score_model, r.pick(models=[1, 2, 3]).align(c.anchors.ids).load())
    odd = v.unusual(replace(found, leak=np.array([2e-15, LEAST_ODD, LEAST_ODD + 0.01])))["odd-answers"]
    assert odd.tolist() == [False, False, True]


def test_models_that_guess_are_honest_in_folds_without_any_too():
    """One family guesses. The fold that leaves it out sees none that does; the threshold is not theirs to raise."""
    r = world(80, seed=4)
    guessed = np.random.default_rng(1).random((8, 400)) < 0.25
    grades = np.concatenate([np.asarray(r.correct), guessed])
    family = ["own" + str(i % 10) for i in range(80)] + ["lazy"] * 8
    models = Models([*r.models.ids, *(f"g{i}" for i in range(8))], family=family)
    sources = Responses.from_correct(models, r.items, grades)
    options = {"rng": 0, "curve": False, "relatives": False}
    known, without = (
        condense(sources, 100, predict_options={"guess": guess}, **options).validation.leak for guess in (None, False)
    )
    lazy = np.array(family) == "lazy"
    # what a fold without them would take for remembering: more than 95 % of the others show
    assert np.median(without[lazy]) > 1.5 * np.quantile(without[~lazy], 0.95)
    assert np.median(known[lazy]) < 0.3 * np.quantile(known[~lazy], 0.95)


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_expected_does_not_depend_on_the_order_of_models_and_items(weighted):
    r = population(60, 60, graded=True)
    if not weighted:
        r = Responses(r.models, Items(r.items.ids), r.correct)
    rng = np.random.default_rng(3)
    other = r.pick(models=rng.permutation(60), items=rng.permutation(60))
    one, two = (condense(x, 12, select="pds", predict="ridge", rng=0, n_folds=3).validation for x in (r, other))
    assert one.curve[:, 0].tolist() == [25, 40]
    np.testing.assert_allclose(two.curve, one.curve, atol=1e-9)
    assert two.direct_mae == pytest.approx(one.direct_mae, abs=1e-12)
    assert two.mae == pytest.approx(one.mae, abs=1e-9)


def test_the_learning_curve_is_of_errors_of_single_models():
    """With all items as anchors every estimate is the truth, of however few models it was learned."""
    r = population(60, 40, graded=True)
    r = Responses(r.models, Items(r.items.ids), r.correct)
    v = condense(r, 40, select="uniform", predict="direct", rng=0, n_folds=3).validation
    assert v.curve.shape == (2, 3)
    np.testing.assert_allclose(v.curve[:, 1:], 0, atol=1e-12)
    assert v.direct_mae == pytest.approx(0, abs=1e-12)


def priced(r, seed=0):
    """The same where items cost differently, some by a factor of a hundred."""
    cost = np.random.default_rng(seed).lognormal(0, 1.5, r.n_items)
    return Responses(r.models, Items(r.items.ids, cost=cost), r.load().correct)


def test_where_cost_chooses_anchors_they_are_compared_with_random_items_that_cost_as_much():
    r = priced(world(100))
    cost = r.items.cost
    options = {"select_options": {"cost_power": 0.5, "budget": 0.1 * cost.sum()}, "curve": False, "relatives": False}
    c = condense(r, r.n_items, rng=0, **options)
    v = c.validation
    assert len(c.anchors) > 60
    assert 28 < v.direct_items <= 40  # a tenth of the money pays for a tenth of the items
    n = round(v.direct_items)
    errors = []
    for seed in range(40):
        at = np.random.default_rng(seed).choice(r.n_items, n, replace=False)
        errors.append(np.abs(r.grades(at).mean(axis=1) - r.scores()).mean())
    assert v.direct_mae == pytest.approx(np.mean(errors), rel=0.15)
    assert v.mae < v.direct_mae
    assert "no-gain" not in c.source_flags
    assert v.against(len(c.anchors)) == f"{n} random items, which cost as much"
    assert replace(v, direct_items=1.0).against(9) == "1 random item, which costs as much"


def test_no_more_random_items_are_drawn_than_count():
    """Where dear items count for little, the anchors may cost as much as more typical ones than there are."""
    items = Items(range(10), weight=[0, 0, *[1] * 8], cost=[500, 500, *[1] * 8])
    assert as_dear(items, np.arange(10)) == 8
    assert as_dear(items, np.arange(2, 7)) == 5


def test_without_a_part_of_cost_they_are_compared_with_as_many_random_items(tmp_path):
    c = condense(priced(world(60)), 30, rng=0, curve=False)
    assert c.validation.direct_items == 30
    assert c.validation.against(30) == "as many random items"
    c.save(tmp_path / "c")
    assert load(tmp_path / "c").validation.direct_items == 30


def test_errors_of_left_out_models_are_bounded_by_what_they_answered():
    """Anchors that are nearly all items leave little to be wrong about, as in estimates of new models."""
    r = world(60, n_items=120)
    c = condense(r, 117, select="uniform", predict="knn", rng=0)
    v = c.validation
    assert np.abs(v.truth - v.estimate).max() <= 3 / 120 + 1e-9
    assert v.curve[:, 1].max() <= 3 / 120 + 1e-9
    wide = condense(r, 60, select="uniform", predict="knn", rng=0).validation
    assert np.abs(wide.truth - wide.estimate).max() > 3 / 120
    models = Models(r.models.ids, family=[f"f{i % 8}" for i in range(60)])
    kept = Responses.from_correct(models, r.items, r.load().correct)
    alone = condense(kept, 117, rng=0, curve=False, relatives=True).validation.relatives
    assert np.abs(alone.error).max() <= 3 / 120 + 1e-9


def test_models_whose_answers_are_odd_have_at_least_the_survey_s_interval():
    r = world(200)
    c = condense(r.pick(models=np.arange(150)), 60, rng=0, curve=False)
    found = assess(c.score_model, c.answers(r.pick(models=np.arange(150, 200))))
    usual = replace(found, leak=np.zeros(50), outside=np.full(50, -1.0))
    half, survey = c.validation.half_widths(usual, 0.9), 1.6448536 * found.survey_se
    assert (half < survey).any()
    odd = replace(usual, leak=np.full(50, 1e3))
    np.testing.assert_allclose(c.validation.half_widths(odd, 0.9), np.maximum(half, survey), rtol=1e-6)


def test_widening_starts_where_estimates_move_and_ends_with_the_alarm():
    r = world(200)
    order = np.argsort(r.scores())
    c = condense(r.pick(models=order[:150]), 60, rng=0, curve=False)
    found = assess(c.score_model, c.answers(r.pick(models=order[100:])))
    half, z = c.validation.half_widths(found, 0.9), 1.6448536
    own = c.validation.half_widths(replace(found, outside=np.full(len(half), -1.0)), 0.9)
    inside, far = found.outside <= -START, found.outside >= OUTSIDE
    assert inside.any()
    assert far.any()
    np.testing.assert_allclose(half[inside], own[inside])
    np.testing.assert_allclose(half[far], z * found.survey_se[far], rtol=1e-6)
    at_half = c.validation.half_widths(replace(found, outside=np.full(len(half), (OUTSIDE - START) / 2)), 0.9)
    np.testing.assert_allclose(at_half, (own + z * found.survey_se) / 2, rtol=1e-6)


@pytest.mark.parametrize("solved", [False, True])
def test_near_floor_and_ceiling_intervals_hold_models_that_the_anchors_cannot_tell_from_sources(solved):
    """Sources between 0 and 2 %, new models up to 7 %: a hundred anchors hold a few right answers of either."""
    rng = np.random.default_rng(0)
    rate = np.concatenate([rng.uniform(0.0, 0.02, 60), rng.uniform(0.015, 0.07, 60)])
    right = rng.random((120, 1000)) < rate[:, None] * rng.gamma(1.0, 1.0, 1000)
    r = Responses.from_correct([f"m{i}" for i in range(120)], [f"i{j}" for j in range(1000)], right != solved)
    c = condense(r.pick(models=np.arange(60)), 100, rng=0, curve=False)
    new = r.pick(models=np.arange(60, 120))
    inside = [e.low <= t <= e.high for e, t in zip(c.estimate(new), new.scores(), strict=True)]
    assert np.mean(inside) > 0.8
    within = c.estimate(r.pick(models=np.arange(60)))
    assert np.mean([e.high - e.low for e in within]) < 0.06
    topped = c.estimate(new, more=100)
    inside = [e.low <= t <= e.high for e, t in zip(topped, new.scores(), strict=True)]
    assert np.mean(inside) > 0.8


def test_alike_and_few_sources_are_named():
    r = world(40, seed=3)
    copies = np.repeat(np.asarray(r.correct)[:4], 10, axis=0)
    same = Responses.from_correct([f"c{i}" for i in range(40)], r.items, copies)
    assert effective_number(same.grades()) == pytest.approx(4, abs=0.5)
    assert 20 < effective_number(r.grades()) <= 40
    for n in (3, 40, 400):  # one model under many names, also where sums round
        assert effective_number(np.repeat(r.grades()[:1], n, axis=0)) == 1
        assert effective_number(np.full((n, 100), 0.3)) == 1
    few = condense(r.pick(models=np.arange(12)), 20, rng=0, n_folds=3)
    assert "few-sources" in few.source_flags
    assert set(few.source_flags) <= set(OF_SOURCES) <= set(FLAGS)
    assert 0.5 < APART < 1


def test_intervals_without_a_guard_are_no_survey_s():
    """`--predict gp` does not use the survey outside the range, so its interval there is the wider of both."""
    r = world(150)
    order = np.argsort(r.scores())
    low, top = r.pick(models=order[:90]), r.pick(models=order[-30:])
    guarded, alone = (condense(low, 40, predict=name, rng=0) for name in ("auto", "gp"))
    found = [c.estimate(top) for c in (guarded, alone)]
    assert all("outside-range" in e.flags for e in found[1])
    covered = [np.mean([e.low <= t <= e.high for e, t in zip(es, top.scores(), strict=True)]) for es in found]
    widths = [np.mean([e.high - e.low for e in es]) for es in found]
    assert covered[0] >= 0.75
    assert widths[1] >= 0.99 * widths[0]
