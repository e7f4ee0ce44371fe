"""Intervals hold models that are better than every source, where anchors can hardly tell that they are."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from disco_eval import Models, Responses, condense
from disco_eval.recipe import assess
from disco_eval.relatives import Relatives
from disco_eval.topup import Told

N_ITEMS = 600


def alike(n_families=48, each=5, seed=0):
    """Models whose scores differ by about what 60 anchors can tell; half of a family's luck with items is common."""
    rng = np.random.default_rng(seed)
    slope, hard = 0.5 * np.exp(0.5 * rng.normal(size=N_ITEMS)), rng.normal(0, 3, N_ITEMS)
    family = np.repeat(np.arange(n_families), each)
    ability = 0.7 * rng.normal(size=n_families)[family] + 0.7 * rng.normal(size=len(family))
    level = 0.3 + 0.7 / (1 + np.exp(-slope * (ability[:, None] - hard)))
    own, common = rng.random((len(family), N_ITEMS)), rng.random((n_families, N_ITEMS))[family]
    right = np.where(rng.random(own.shape) < 0.5, common, own) < level
    models = Models([f"m{i}" for i in range(len(family))], family=[f"f{f}" for f in family])
    return Responses.from_correct(models, [f"i{j}" for j in range(N_ITEMS)], right)


def shares(draws, of):
    """Share of covered targets, and mean width, with intervals that reach and with ones that do not, over draws."""
    held, width = np.zeros(2), np.zeros(2)
    for seed in range(draws):
        r = alike(seed=seed)
        source, target = of(r, np.random.default_rng(seed))
        c = condense(r.pick(models=source), 60, rng=seed, curve=False)
        truth = r.pick(models=target).scores()
        for k, reaches in enumerate((True, False)):
            said = replace(c, validation=replace(c.validation, reaches=reaches)).estimate(r.pick(models=target))
            held[k] += np.mean([e.low <= t <= e.high for e, t in zip(said, truth, strict=True)]) / draws
            width[k] += np.mean([e.high - e.low for e in said]) / draws
    return held, width


def best_tenth(r, rng):
    order = np.argsort(r.scores())
    return np.sort(order[:216]), order[216:]


def best_but_one(r, rng):
    """The very best is a source."""
    order = np.argsort(r.scores())
    return np.sort(np.append(order[:216], order[-1])), order[216:-1]


def any_fifth(r, rng):
    order = rng.permutation(r.n_models)
    return np.sort(order[48:]), order[:48]


def test_models_better_than_every_source_are_covered():
    held, _ = shares(4, best_tenth)
    assert held[1] < 0.72  # of a nominal 90 %, without
    assert held[0] >= 0.8  # the bound itself fails one time in ten, the lower end now and then too


def test_one_source_as_good_does_not_speak_for_all_models_as_good():
    held, _ = shares(4, best_but_one)
    assert held[1] < 0.75
    assert held[0] >= 0.8  # as where none is


def test_models_like_the_sources_have_hardly_wider_intervals():
    held, width = shares(2, any_fifth)
    assert 0.87 <= held[1] <= held[0] <= held[1] + 0.03
    assert width[1] <= width[0] <= 1.12 * width[1]  # those near the best may be beyond them: decision 0143


@pytest.fixture(scope="module")
def made():
    r = alike()
    return condense(r.pick(models=np.arange(200)), 60, rng=0, curve=False), r.pick(models=np.arange(200, 240))


def test_it_goes_up_to_what_the_survey_leaves_open_and_only_beyond_all_sources(made):
    c, new = made
    v, found = c.validation, assess(c.score_model, c.answers(new))
    half = v.half_widths(found, 0.9)
    down, up = v.reach(found, half, 0.9)
    bound = found.survey + 1.2816 * found.survey_se  # holds with 90 %
    beyond = (bound > np.sort(c.source_scores)[-3]) & (bound > found.score + half)  # 1 % of 200 sources are better
    assert beyond.any()
    assert not beyond.all()
    assert np.array_equal(up > 0, beyond)
    strange = 1 - v.kin(found) * v.relatives.worth(v.truth - v.estimate)
    assert up[beyond] == pytest.approx((strange * (bound - found.score - half))[beyond], abs=1e-4)
    assert (np.minimum(down, up) == 0).mean() > 0.8  # hardly any may be on either side
    for e, low, high in zip(c.estimate(new), found.score - half - down, found.score + half + up, strict=True):
        assert (e.low, e.high) == pytest.approx((max(low, 0), min(high, 1)), abs=0.02)  # but for what is possible


def test_wider_at_higher_levels(made):
    c, new = made
    said = [c.estimate(new, level) for level in (0.3, 0.5, 0.8, 0.9, 0.95, 0.99)]
    for narrow, wide in pairwise(said):
        assert all(w.low <= n.low and n.high <= w.high for n, w in zip(narrow, wide, strict=True))


def test_relatives_count_by_how_much_smaller_they_make_errors(made):
    c, new = made
    v, found = c.validation, assess(c.score_model, c.answers(new))
    away = replace(v, relatives=None)
    assert 0 <= v.relatives.worth(v.truth - v.estimate) <= 1
    near = replace(found, nearest=np.zeros_like(found.nearest))
    half, error = v.half_widths(found, 0.9), np.abs(v.truth - v.estimate)
    known = {"error": 0.1 * error, "scale": v.scale, "nearest": np.zeros_like(error)}
    ones = np.ones_like(error)
    nothing = {"subtask_error": v.subtask_error, "subtask_left": v.subtask_left}
    sure = replace(v, relatives=Relatives(**known, **nothing, more_error=error, more_scale=v.scale, has_any=ones))
    assert sure.relatives.worth(sure.truth - sure.estimate) == pytest.approx(0.99)
    assert (sure.reach(near, half, 0.9)[1] <= away.reach(near, half, 0.9)[1]).all()
    assert sure.reach(near, half, 0.9)[1].sum() < 0.2 * away.reach(near, half, 0.9)[1].sum()


def test_with_further_items_too():
    r = alike()
    order = np.argsort(r.scores())
    c = condense(r.pick(models=order[:200]), 60, rng=0, curve=False)
    best = r.pick(models=order[-20:])
    for more in (0, 60):
        still = replace(c, validation=replace(c.validation, reaches=False))
        pairs = list(zip(c.estimate(best, more=more), still.estimate(best, more=more), strict=True))
        assert all(a.score == b.score and a.low <= b.low and b.high <= a.high for a, b in pairs)
        assert any(b.high < a.high for a, b in pairs)


def test_without_a_survey_nothing_tells_who_is_beyond(made):
    _, new = made
    pds = condense(alike().pick(models=np.arange(100)), 60, select="pds", rng=0, curve=False)
    found = assess(pds.score_model, pds.answers(new))
    down, up = pds.validation.reach(found, pds.validation.half_widths(found, 0.9), 0.9)
    assert not down.any()
    assert not up.any()


@pytest.mark.parametrize("small", [0.4, 0.05, 0.005])
@pytest.mark.parametrize("more", [0, 60])
def test_subtasks_reach_as_far_as_the_score_does(small, more):
    """However small one of two is: an overall score at its highest is that of some scores on both."""
    r = alike()
    subtask = np.where(np.arange(N_ITEMS) < small * N_ITEMS, "small", "main")
    r = Responses.from_correct(r.models, r.items.having(subtask=subtask), r.correct)
    order = np.argsort(r.scores())
    c = condense(r.pick(models=order[:200]), 60, rng=0, curve=False)
    share = np.array([float((subtask == name).mean()) for name in c.subtask_names])
    reached = 0
    for e in c.estimate(r.pick(models=order[-20:]), more=more):
        low, high = (float(share @ [end(s) for s in e.subtasks]) for end in (lambda s: s.low, lambda s: s.high))
        assert low <= e.low + 0.003  # but for what three items, of which some are answered, cannot be off by
        assert high >= e.high - 0.003
        reached += e.high - e.score > e.score - e.low + 0.01
    assert reached


def test_a_difference_reaches_as_far_as_one_model_does_more_than_the_other(made):
    c, new = made
    off = replace(c, validation=replace(c.validation, reaches=False))
    found = assess(c.score_model, c.answers(new))
    down, up = c.validation.reach(found, c.validation.half_widths(found, 0.9), 0.9)
    best, same = int(up.argmax()), int(np.argmin(up + down))
    assert up[best] > 0.01
    assert up[same] == down[same] == 0
    one, other = (new.pick(models=[k]) for k in (same, best))
    for more in (0, 60):
        wide, plain = (x.compare(one, other, more=more) for x in (c, off))
        assert (wide.difference, wide.low) == (plain.difference, plain.low)
        assert plain.high < wide.high <= plain.high + up[best] + 1e-9
        assert not more or wide.high < plain.high + 0.9 * up[best]  # the further items have their part
        turned = c.compare(other, one, more=more)
        assert (turned.low, turned.high) == pytest.approx((-wide.high, -wide.low))
    both = c.compare(other, Responses(Models(["copy"]), other.items, other.correct))
    assert both.high == pytest.approx(-both.low)  # what both may be beyond by is no difference


def test_an_interval_that_reaches_over_another_reaches_no_further_than_both():
    one = Told(np.array([0.5]), np.array([0.05]), np.array([0.05]), np.array([0.0]), np.array([0.04]))
    other = Told(np.array([0.5]), np.array([0.09]), np.array([0.09]))
    low, high = one.reaching(other, np.array([1.0])).ends(one.score)
    assert (low[0], high[0]) == pytest.approx((0.41, 0.59))
    far = one.reaching(Told(np.array([0.5]), np.array([0.06]), np.array([0.06])), np.array([1.0])).ends(one.score)
    assert (far[0][0], far[1][0]) == pytest.approx((0.44, 0.59))


def test_only_models_with_relatives_say_what_to_expect_of_relatives():
    """Two of 40 models share a family: what the others err by in other folds says nothing of relatives."""
    r = alike(40, 1)
    named = np.where(np.arange(40) < 2, "f0", r.models.family)
    pair = Responses.from_correct(Models(r.models.ids, family=named), r.items, r.correct)
    v = condense(pair, 60, rng=0, curve=False).validation
    assert v.grouped_by == "family"
    assert v.relatives.has_any.sum() == 2
    assert v.relatives.mae is None
    assert v.relatives.worth(v.truth - v.estimate) == 0
    v = condense(alike(20, 3), 60, rng=0, curve=False).validation
    assert v.relatives.has_any.all()
    assert v.relatives.mae == pytest.approx(np.abs(v.relatives.error).mean())
