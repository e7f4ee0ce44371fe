"""Items in reserve, and the estimate that assumes nothing about a model."""

import json
from dataclasses import replace

import numpy as np
import pytest

import disco_eval as de
from disco_eval import AlignmentError, Items, Models, Responses, ValidationError, condense
from disco_eval.further import Taught
from disco_eval.io import write_npz
from disco_eval.numerics.intervals import normal_width
from disco_eval.predict.guard import START
from disco_eval.recipe import assess
from disco_eval.select import selector
from disco_eval.select.reserve import draw_reserve
from disco_eval.studies.methods import Condensed
from disco_eval.topup import Told, TopUp
from tests.cli.test_cli import disco
from tests.conftest import population
from tests.test_comparison import one_that_has_seen


def strangers(like: Responses, n: int = 40, seed: int = 3) -> Responses:
    """Models that are right on items regardless of how hard they are: unlike every source."""
    rng = np.random.default_rng(seed)
    grades = (rng.random((n, like.n_items)) < rng.uniform(0.2, 0.9, n)[:, None]).astype(np.float32)
    return Responses(Models([f"new-{i:02d}" for i in range(n)]), like.items, grades)


def test_every_beginning_of_the_reserve_is_drawn_with_the_chance_it_says():
    """Over many draws, the inverse chances of an item among the first ten add up to how often it was no anchor."""
    r = population(20, 80, graded=True)
    n = 800
    found, free = np.zeros((n, 80)), np.ones((n, 80))
    for seed in range(n):
        anchors = selector("stratified")(r, 10, seed)
        reserve = draw_reserve(r, anchors, 10_000 + seed)
        at = r.items.positions(reserve.items.ids[:10])
        free[seed, anchors.positions] = 0
        assert not set(at) & set(anchors.positions)
        found[seed, at] = len(reserve) / (10 * reserve.chance[:10])
    z = (found - free).mean(axis=0) / ((found - free).std(axis=0) / np.sqrt(n))
    assert np.abs(z).max() < 4.5
    assert np.sqrt((z**2).mean()) < 1.3


@pytest.mark.parametrize("select", ["auto", "pds"])
def test_it_is_unbiased_and_its_intervals_hold_for_models_unlike_the_sources(select):
    r = population(40, 300, graded=True)
    new = strangers(r)
    errors, held = [], []
    for seed in range(25):
        anchors = selector(select)(r, 20, seed)
        reserve = draw_reserve(r, anchors, 10_000 + seed)
        made = TopUp.fit(anchors, r.grades(anchors.positions), r.scores(), reserve, 60)
        asked = new.align(reserve.items.ids[:60])
        score, se = made.predict(new.grades(anchors.positions), asked.grades(), np.zeros(40, bool))
        errors.append(score - new.scores())
        held.append(np.abs(errors[-1]) <= made.quantile(0.9) * se)
    spread = np.std(np.mean(errors, axis=1)) / 5
    assert abs(np.mean(errors)) < 4 * spread + 1e-3
    assert 0.86 < np.mean(held) < 0.95  # 1000 intervals of 25 draws


def test_more_items_sharpen_it():
    r = population(40, 300, graded=True)
    new, anchors = strangers(r), selector("auto")(r, 20, 0)
    reserve = draw_reserve(r, anchors, 10_000)
    width = []
    for more in (4, 20, 80):
        made = TopUp.fit(anchors, r.grades(anchors.positions), r.scores(), reserve, more)
        asked = new.align(reserve.items.ids[:more])
        _, se = made.predict(new.grades(anchors.positions), asked.grades(), np.zeros(40, bool))
        width.append(float(np.mean(se)))
    assert width[0] > width[1] > width[2]


@pytest.mark.parametrize("select", ["auto", "pds"])
def test_all_items_asked_leave_no_doubt(select):
    """Where anchors and further items are the whole benchmark, the score is known, whatever the weights."""
    r = population(30, 60, graded=True)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, 60)
    r = Responses.from_correct(r.models, Items(r.items.ids, weight=weight), np.asarray(r.correct))
    c = condense(r, 20, select=select, predict="auto", rng=0, curve=False)
    new = strangers(r, 5)
    for e, truth in zip(c.estimate(new, more=40), new.scores(), strict=True):
        assert (e.low, e.score, e.high) == pytest.approx([truth] * 3, abs=1e-6)
        assert e.more == 40
    left = 1 - c.reserve.shares[:-1].sum()  # of the one item that is not answered
    for e, truth in zip(c.estimate(new, more=39), new.scores(), strict=True):
        assert 0.5 * left < e.high - e.low < left + 1e-8
        assert e.low - 1e-8 <= truth <= e.high + 1e-8


def test_all_items_asked_tell_the_subtasks_too():
    r = population(30, 60, graded=True)  # three subtasks, weights of 1 to 2
    c = condense(r, 12, rng=0, curve=False)
    new = strangers(r, 5)
    for e, truth in zip(c.estimate(new, more=48), new.subtask_scores(), strict=True):
        found = {s.name: s for s in e.subtasks}
        for name, value in zip(r.items.subtasks, truth, strict=True):
            assert (found[name].low, found[name].score, found[name].high) == pytest.approx([value] * 3, abs=1e-6)
        assert "anchors-differ" not in e.flags
    for e in c.estimate(new, more=47):
        assert sum(s.high > s.low for s in e.subtasks) == 1  # the one item left is of one of them


@pytest.mark.parametrize("predict", ["auto", "ridge"])
@pytest.mark.parametrize("left", [0, 1, 3])
def test_with_no_reserve_what_was_answered_bounds_the_score_too(tmp_path, predict, left):
    r = population(30, 60, graded=True)  # three subtasks, weights of 1 to 2
    made = condense(r, 60 - left, predict=predict, rng=0, curve=False)
    made.save(tmp_path / "c")
    new = strangers(r, 20)
    asked = r.items.positions(made.items.ids)
    share = r.items.weight / r.items.weight.sum()
    known = new.grades(asked) @ share[asked]
    for c in (made, de.load(tmp_path / "c")):
        assert c.reserve is None
        for e, truth, least in zip(c.estimate(new), new.scores(), known, strict=True):
            most = least + 1 - share[asked].sum()
            assert least - 1e-8 <= e.low <= e.score <= e.high <= most + 1e-8
            if not left:
                assert (e.low, e.score, e.high) == pytest.approx([truth] * 3, abs=1e-8)
                assert not {"outside-range", "lines-disagree"} & set(e.flags)  # nothing is estimated
    with pytest.raises(ValidationError, match="keeps no items in reserve: fewer than 4 that count are no anchors"):
        made.estimate(new, more=4)


@pytest.mark.parametrize("select", ["pds", "uniform"])
def test_items_of_no_weight_leave_nothing_less_to_estimate(select):
    """Anchors that count for nothing are not taken off the number of items that count."""
    r = population(30, 60)
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    items = Items(r.items.ids, weight=weight, label=r.items.label, n_choices=r.items.n_choices)
    r = Responses.from_probs(r.models, items, r.probs)
    anchors = selector(select)(r, 20, 0)
    of_none = int((weight[anchors.positions] == 0).sum())
    assert of_none > 2
    reserve = draw_reserve(r, anchors, 10_000)
    more = len(reserve) - 5
    made = TopUp.fit(anchors, r.grades(anchors.positions), r.scores(), reserve, more)
    new = strangers(r, 200)
    further = new.align(reserve.items.ids[:more]).grades()
    score, se = made.predict(new.grades(anchors.positions), further, np.zeros(200, bool))
    assert se.min() > 0
    assert np.mean(np.abs(score - new.scores()) <= made.quantile(0.9) * se) > 0.8


def test_the_less_is_left_the_less_the_anchors_count():
    """The second estimate is from all but a few of the items that are no anchors: it errs by hardly anything."""
    r = population(60, 100, graded=True)
    anchors = selector("auto")(r, 20, 0)
    reserve = draw_reserve(r, anchors, 10_000)
    share = [
        TopUp.fit(anchors, r.grades(anchors.positions), r.scores(), reserve, more).share for more in (20, 60, 79, 80)
    ]
    assert share == sorted(share, reverse=True)
    assert share[2] < 0.01


def test_leaked_anchors_count_for_themselves_only():
    r = population(40, 300, graded=True)
    anchors = selector("auto")(r, 30, 0)
    reserve = draw_reserve(r, anchors, 10_000)
    made = TopUp.fit(anchors, r.grades(anchors.positions), r.scores(), reserve, 60)
    new = strangers(r)
    right, asked = np.ones((40, 30)), new.align(reserve.items.ids[:60]).grades()
    fooled, _ = made.predict(right, asked, np.zeros(40, bool))
    aware, _ = made.predict(right, asked, np.ones(40, bool))
    off = [np.abs(x - new.scores()).mean() for x in (fooled, aware)]
    assert off[1] < off[0] / 2


def test_anchors_that_leaked_are_ahead_of_the_further_items():
    """About 1 % of honest models are flagged, most of those that know all anchors are, and their estimates hold."""
    r = population(160, 400, graded=True, seed=3)
    source = np.arange(160) % 2 == 0
    c = condense(r.pick(models=source), 40, rng=0, curve=False)
    new = r.pick(models=~source).align(c.asked(80).ids)
    right = np.array(new.correct)
    right[:, :40] = 1
    leaked = Responses.from_correct(new.models, new.items, right)
    honest, known = c.estimate(new, more=80), c.estimate(leaked, more=80)
    middle = r.pick(models=~source).scores() < 0.7
    assert np.mean(["anchors-differ" in e.flags for e in honest]) <= 0.05
    assert np.mean([("anchors-differ" in e.flags) for e, m in zip(known, middle, strict=True) if m]) > 0.9
    assert all(e.more == 80 for e in known if "anchors-differ" in e.flags)
    assert not any("anchors-differ" in e.flags for e in c.estimate(leaked))
    few = [e for e in c.estimate(leaked, more=39) if "anchors-differ" in e.flags and "odd-answers" not in e.flags]
    assert len(few) > 20
    assert not any(e.surveyed for e in few)  # fewer overrule nothing
    made = TopUp.fit(c.anchors, c.sources.grades(), c.source_scores, c.reserve, 80)
    blended, _ = made.predict(right[:, :40], right[:, 40:], np.zeros(80, bool))
    found = assess(c.score_model, c.answers(leaked))
    lead = made.ahead(right[:, :40], right[:, 40:], by_anchors(c, found))
    for e, with_anchors, by in zip(known, blended, lead, strict=True):  # an honest model may be ahead by chance
        if "anchors-differ" in e.flags and "odd-answers" not in e.flags:
            by_chance = np.clip(2 - by / 2.33, 0, 1)  # wholly where just ahead, no longer where by twice as much
            assert min(e.score + by_chance * (with_anchors - e.score), 1.0) <= e.high + 1e-9
    off = [e.score - t for e, t, m in zip(known, r.pick(models=~source).scores(), middle, strict=True) if m]
    own = np.array([right[:, :40].mean(), new.correct[:, :40].mean()]) @ [1, -1] * 40 / 400  # they are items too
    assert abs(np.mean(off)) < own + 0.03


@pytest.fixture(scope="module")
def small():
    return condense(population(40, 200), 20, rng=0, benchmark="toy")


def test_alarmed_models_take_it(small):
    r = population(40, 200)
    high = Responses(Models(["stranger"]), r.items, np.ones((1, 200), np.float32), _certain(r))
    plain, topped = small.estimate(high)[0], small.estimate(high, more=40)[0]
    assert "outside-range" in plain.flags
    assert plain.more == 0
    assert topped.more == 40
    assert type(small.estimate(high, more=np.int64(40))[0].more) is int
    assert set(topped.flags) >= {"outside-range", *small.source_flags}
    assert abs(topped.score - 1) <= abs(plain.score - 1)
    for before, after in zip(small.estimate(r), small.estimate(r, more=40), strict=True):
        if not after.more:
            assert (after.score, after.low, after.high) == (before.score, before.low, before.high)


def untaught(c: de.Condensation) -> de.Condensation:
    """As a file of an older format is, which knows no errors with further items."""
    return replace(c, validation=replace(c.validation, n_more=0))


@pytest.fixture(scope="module")
def taught():
    """A condensation of 100 of 160 models, and the answers of the others."""
    r = population(160, 500, graded=True)
    order = np.random.default_rng(0).permutation(160)
    return condense(r.pick(models=order[:100]), 30, rng=0, curve=False), r.pick(models=order[100:])


def test_further_items_are_learned_from_like_anchors():
    """Estimates are much closer than from the anchors alone, as close as by weighing both, and intervals hold."""
    few, more, weighed, held = [], [], [], []
    for seed in range(4):
        r = population(160, 600, seed=seed, graded=True)
        order = np.random.default_rng(seed).permutation(160)
        source, new = r.pick(models=order[:110]), r.pick(models=order[110:])
        small = condense(source, 25, rng=seed, curve=False, relatives=False)
        truth = new.scores()
        few += [abs(e.score - t) for e, t in zip(small.estimate(new), truth, strict=True)]
        weighed += [abs(e.score - t) for e, t in zip(untaught(small).estimate(new, more=25), truth, strict=True)]
        both = small.estimate(new, more=25)
        more += [abs(e.score - t) for e, t in zip(both, truth, strict=True)]
        held += [e.low <= t <= e.high for e, t in zip(both, truth, strict=True)]
    assert np.mean(more) < 0.85 * np.mean(few)
    assert np.mean(more) < 1.02 * np.mean(weighed)
    assert 0.84 < np.mean(held) < 0.96


def by_anchors(c, found):
    """What is told of models from the anchors alone."""
    typical = c.validation.half_widths(found, 0.9)
    return Told(np.clip(found.score, 0.0, 1.0), typical, typical)


def test_what_is_told_is_what_source_models_teach_of_all_items(taught):
    c, new = taught
    part, further = c.answers(new), c.further(new, 30)
    model = Taught.fit(c.score_model, c.anchors, c.sources, c.source_scores, c.reserve, 30)
    before = assess(c.score_model, part)
    found = model.assess(before, part, further)
    doubt = c.validation.unseen(found)
    assert doubt.max() < 0.5
    calm = 0
    estimates, older = c.estimate(new, more=30), untaught(c).estimate(new, more=30)
    for i, (now, then) in enumerate(zip(estimates, older, strict=True)):
        if not now.flags and not then.flags and max(before.outside[i], found.outside[i]) < -START:
            calm += 1
            assert now.score == pytest.approx(found.score[i] + doubt[i] * (then.score - found.score[i]))
    assert calm > 20
    lead = model.survey.ahead(part.grades(), further.grades(), by_anchors(c, before))
    for e, by in zip(estimates, lead, strict=True):
        assert e.surveyed == ("anchors-differ" in e.flags or ("odd-answers" in e.flags and by > 0))


def test_anchors_that_say_no_more_than_the_further_items_are_not_set_aside():
    """Honest models that look odd: what may have leaked has made no score higher than the further items say."""
    aside, kept = 0, 0
    for seed in range(6):
        r = population(120, 400, graded=True, seed=seed)
        order = np.random.default_rng(seed).permutation(120)
        c = condense(r.pick(models=order[:50]), 30, rng=seed, curve=False, relatives=False)
        new = r.pick(models=order[50:])
        part = c.answers(new)
        first = by_anchors(c, assess(c.score_model, part))
        lead = c.top_up(30).ahead(part.grades(), c.further(new, 30).grades(), first)
        for e, by in zip(c.estimate(new, more=30), lead, strict=True):
            if "odd-answers" in e.flags:
                assert e.surveyed == (by > 0)
                aside, kept = aside + (by > 0), kept + (by <= 0)
    assert aside > 2
    assert kept > 0


def test_no_models_have_no_estimates(taught):
    c, new = taught
    for made in (c, untaught(c)):
        assert made.estimate(new.pick(models=[]), more=30) == []


def test_errors_with_further_items_are_measured_on_sources_left_out(taught):
    c, new = taught
    v, found = c.validation, assess(c.score_model, c.answers(new))
    assert v.n_more == 30
    assert np.abs(v.more_error).mean() < 0.9 * v.mae
    assert np.abs(v.relatives.more_error).mean() < 0.9 * np.abs(v.relatives.error).mean()
    assert v.share_of_folds(0, 30) == 0
    assert v.share_of_folds(30, 30) == v.share_of_folds(90, 30) == 1
    assert v.share_of_folds(10, 30) == pytest.approx(0.5)  # a quarter of all answers, where the folds had half
    none, half, whole = (v.half_widths(found, 0.9, share) for share in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(none, v.half_widths(found, 0.9))
    inside = found.outside < -1
    np.testing.assert_allclose(half[inside], (none + whole)[inside] / 2, rtol=0.02)  # but for what cannot be seen


def test_probabilities_of_further_items_are_learned_from_too(small):
    r = population(40, 200)
    assert small.score_model.soft
    label = r.align(small.reserve.items.ids).label_probs()
    np.testing.assert_allclose(small.reserve.label_probs, label, atol=1e-6)
    without = replace(small, reserve=replace(small.reserve, label_probs=None))  # as in an older file
    now, then, older = (c.estimate(r, more=20) for c in (small, without, untaught(small)))
    assert then == older
    assert [e.score for e in now] != [e.score for e in then]


def test_answers_to_further_items_need_no_labels_of_their_own(small):
    r = population(40, 200)
    unlabelled = Items(r.items.ids, n_choices=r.items.n_choices, digest=r.items.digest)
    given = Responses(r.models, unlabelled, r.correct, r.probs)
    assert small.estimate(given, more=20) == small.estimate(r, more=20)


@pytest.mark.parametrize("option", [{"predict": "ridge"}, {"predict": "gp"}])
def test_other_score_models_learn_nothing_from_further_items(option):
    c = condense(population(40, 200, graded=True), 20, rng=0, curve=False, **option)
    assert c.validation.n_more == 0
    assert np.isnan(c.validation.more_error).all()
    assert c.reserve.label_probs is None


def test_a_model_like_the_sources_is_told_by_both_weighed_by_their_errors():
    """Precision weights, of the first estimate's calibrated error and of the further items' survey; at any level."""
    r = population(80, 300, graded=True)
    order = np.random.default_rng(0).permutation(80)
    c = untaught(condense(r.pick(models=order[:60]), 30, rng=0, curve=False))
    new = r.pick(models=order[60:])
    part, further = c.answers(new), c.further(new, 50)
    made, found = c.top_up(50), assess(c.score_model, part)
    second, se = made.second.predict(np.concatenate([part.grades(), further.grades()], axis=1))
    inside = 0
    for level in (0.8, 0.9):
        plain, both = c.estimate(new, level), c.estimate(new, level, more=50)
        for i, (before, after) in enumerate(zip(plain, both, strict=True)):
            if after.flags or found.outside[i] >= -START:
                continue
            inside += 1
            half, usual = (c.validation.half_widths(found, q)[i] for q in (level, 0.9))
            own = usual / normal_width(0.9)
            share = own**2 / (own**2 + se[i] ** 2)
            assert after.more == 50
            assert after.score == pytest.approx(before.score + share * (second[i] - before.score))
            wide = made.quantile(level) * np.hypot((1 - share) * half / normal_width(level), share * se[i])
            beyond = sum(side[i] for side in c.validation.reach(found, c.validation.half_widths(found, level), level))
            assert (after.high - after.low) / 2 == pytest.approx(wide + (1 - share) * beyond / 2)
            assert after.high - after.low < before.high - before.low
            assert after.score == pytest.approx(c.estimate(new, more=50)[i].score)
    assert inside > 20


def test_with_further_items_models_like_the_sources_are_told_better():
    r = population(160, 600, graded=True)
    errors = {0: [], 30: [], 120: []}
    held = {30: [], 120: []}
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(160)
        c = condense(r.pick(models=order[:100]), 30, rng=seed, curve=False, relatives=False)
        new = r.pick(models=order[100:])
        for more, off in errors.items():
            found = c.estimate(new, more=more)
            off += [abs(e.score - t) for e, t in zip(found, new.scores(), strict=True)]
            if more:
                held[more] += [e.low <= t <= e.high for e, t in zip(found, new.scores(), strict=True)]
    mean = [np.mean(off) for off in errors.values()]
    assert mean[1] < 0.93 * mean[0]
    assert mean[2] < 0.8 * mean[1]
    assert all(0.85 < np.mean(h) < 0.96 for h in held.values())


@pytest.mark.parametrize("select", ["auto", "pds"])
def test_few_sources_are_believed_less_but_not_set_aside(select):
    """A handful of further items would be a far worse estimate than what few sources teach of models like them."""
    first, topped, held = [], [], []
    for seed in range(4):
        r = population(75, 400, seed=seed, graded=True)
        r = Responses(Models(r.models.ids), r.items, r.correct)
        order = np.random.default_rng(seed).permutation(75)
        c = condense(r.pick(models=order[:35]), 40, select=select, rng=seed, curve=False, relatives=False)
        assert c.source_flags == ("few-sources",)
        new = r.pick(models=order[35:])
        for before, e, truth in zip(c.estimate(new), c.estimate(new, more=6), new.scores(), strict=True):
            if set(before.flags) | set(e.flags) == {"few-sources"}:
                first.append(abs(before.score - truth))
                topped.append(abs(e.score - truth))
                held.append(e.low <= truth <= e.high)
    assert len(first) > 60
    assert np.mean(topped) < 1.15 * np.mean(first)
    assert np.mean(held) > 0.85


def test_sources_that_are_alike_leave_every_model_to_the_survey():
    r = population(60, 300, graded=True)
    middle = np.argsort(r.scores())[30]
    copies = np.repeat(r.grades()[[middle]], 50, axis=0)
    flip = np.random.default_rng(0).random(copies.shape) < 0.03
    models = Models([f"c{i}" for i in range(50)], family=["one"] * 50)
    alike = Responses(models, r.items, np.where(flip, 1 - copies, copies))
    c = condense(alike, 40, rng=0, curve=False, relatives=False)
    assert "alike-sources" in c.source_flags
    for e in c.estimate(r.pick(models=slice(0, 20)), more=20):
        assert e.surveyed
        assert e.more == 20


def runs(n_runs=4, each=20, n_items=500, seed=0):
    """Checkpoints of training runs, each with a taste of its own."""
    rng = np.random.default_rng(seed)
    taste, hard = rng.normal(0, 0.5, (n_runs, n_items)), rng.normal(0, 1, n_items)
    of, step = np.repeat(np.arange(n_runs), each), np.tile(np.linspace(-1.5, 1.5, each), n_runs)
    level = 1 / (1 + np.exp(-step[:, None] - taste[of] + hard))
    models = Models([f"run{r}/{k}" for r in range(n_runs) for k in range(each)], family=[f"run{r}" for r in of])
    return Responses.from_correct(models, [f"i{j}" for j in range(n_items)], rng.random(level.shape) < level)


def test_sources_of_three_runs_teach_of_further_items_what_folds_without_a_run_measure():
    """They are `alike-sources`; what is printed with further items is what estimates with them do."""
    plain, topped, told = [], [], []
    for seed in range(3):
        r = runs(seed=seed)
        new = r.models.family == f"run{seed}"
        c = condense(r.pick(models=~new), 50, rng=seed, curve=False)
        assert "alike-sources" in c.source_flags
        assert (c.validation.grouped_by, c.validation.n_folds, c.validation.n_more) == ("family", 3, 50)
        answers = r.pick(models=new)
        first, both, truth = c.estimate(answers), c.estimate(answers, more=50), answers.scores()
        assert not all(e.surveyed for e in both)
        plain += [abs(e.score - t) for e, t in zip(first, truth, strict=True)]
        topped += [abs(e.score - t) for e, t in zip(both, truth, strict=True)]
        told.append(c.validation.more_mae)
    assert np.mean(topped) < np.mean(plain)
    assert np.mean(topped) < 1.25 * np.mean(told)  # 60 models on three draws of anchors


@pytest.mark.parametrize("predict", ["auto", "gpirt"])
def test_near_the_edge_or_where_none_is_known_the_first_estimate_is_believed_less(predict):
    """As if it erred by a quarter more than it says: the model may be beyond the sources without showing it."""
    r = population(80, 300, graded=True)
    order = np.argsort(r.scores())
    c = untaught(condense(r.pick(models=np.sort(order[8:72])), 30, predict=predict, rng=0, curve=False))
    found, seen = assess(c.score_model, c.answers(r)), 0
    made = c.top_up(60)
    second, se = made.second.predict(np.concatenate([c.answers(r).grades(), c.further(r, 60).grades()], axis=1))
    for i, (before, after) in enumerate(zip(c.estimate(r), c.estimate(r, more=60), strict=True)):
        near = not (set(after.flags) - {"source-model"}) and not found.outside[i] < -START
        if near:
            own = 1.25 * c.validation.half_widths(found, 0.9)[i] / normal_width(0.9)
            share = own**2 / (own**2 + se[i] ** 2)
            assert after.more == 60
            assert not after.surveyed
            assert after.score == pytest.approx(before.score + share * (second[i] - before.score))
            wide = made.quantile(0.9) * np.hypot((1 - share) * own, share * se[i])
            beyond = sum(side[i] for side in c.validation.reach(found, c.validation.half_widths(found, 0.9), 0.9))
            assert (after.high - after.low) / 2 == pytest.approx(wide + (1 - share) * beyond / 2)
            seen += 1
    assert seen > 1


def test_models_beyond_the_sources_that_show_nothing_are_told_better_too():
    """The best of many, estimated too low to be seen as beyond the sources: what sources teach of them is wrong."""
    first, now, survey = [], [], []
    for seed in range(8):
        r = population(90, 500, seed=seed, graded=True)
        order = np.argsort(r.scores())
        c = condense(r.pick(models=np.sort(order[:70])), 20, rng=seed, curve=False, relatives=False)
        new = r.pick(models=order[70:78])
        for before, after, truth in zip(c.estimate(new), c.estimate(new, more=20), new.scores(), strict=True):
            if not set(after.flags):
                first.append(before.score - truth)
                now.append(after.score - truth)
                survey.append(after.surveyed)
    assert len(first) > 15
    assert not any(survey)
    assert np.mean(np.abs(now)) < 0.85 * np.mean(np.abs(first))


def _certain(r):
    p = np.zeros((1, r.n_items, r.max_choices))
    p[0, np.arange(r.n_items), r.items.label] = 1
    return p


def test_what_is_asked_and_what_is_missing(small):
    asked = small.asked(12)
    assert asked.ids.tolist() == [*small.anchors.ids.tolist(), *small.reserve.items.ids[:12].tolist()]
    r = population(40, 200)
    only = r.align(small.anchors.ids)
    line = (
        r"no answer for 12 of the 12 more items of 'toy' from 'model-\d+' and 39 more, though all anchors have one: "
        r".*disco anchors DIR --more 12"
    )
    with pytest.raises(AlignmentError, match=line):
        small.estimate(only, more=12)
    with pytest.raises(
        ValidationError, match=r"1000 more items were asked for; the condensation keeps 80 in reserve: ask for no more"
    ):
        small.asked(1000)
    with pytest.raises(ValidationError, match="2 more items"):
        small.estimate(r, more=2)
    other = Items(r.items.ids, digest=["x"] * 200, label=r.items.label, n_choices=r.items.n_choices)
    mixed = Responses(r.models, other, r.correct, r.probs)
    with pytest.raises(AlignmentError, match="prompt"):
        small.estimate(mixed, more=12)


def test_a_benchmark_of_anchors_alone_keeps_nothing_in_reserve():
    everything = condense(population(24, 20), 20, rng=0, predict="direct")
    assert everything.reserve is None
    with pytest.raises(ValidationError, match="keeps no items in reserve"):
        everything.estimate(population(24, 20), more=5)


def test_weak_sources_are_no_alarm_about_models_in_words_and_studies_either(tmp_path):
    r = population(36, 120)
    new = np.array([3, 8, 13, 18, 33, 34, 35])
    sources, targets = r.pick(models=np.setdiff1d(np.arange(36), new)), r.pick(models=new)
    small = condense(sources, 20, rng=0, curve=False)
    plain = small.estimate(targets)
    calm = [set(e.flags) == {"few-sources"} for e in plain]
    assert sum(calm) > 0
    small.save(tmp_path / "c")
    at = int(np.argmax(calm))
    write_npz(targets.pick(models=[at]).align(small.anchors.ids), tmp_path / "a.npz")
    assert "20 more items would give closer estimates" in disco("estimate", "c", "a.npz", cwd=tmp_path).stdout
    method = Condensed(times=1.0)
    score, _, _ = method.estimate(sources, targets, 20, np.random.default_rng(0))
    without, _, _ = replace(method, times=0.0).estimate(sources, targets, 20, np.random.default_rng(0))
    alike = score == without
    assert alike[calm].all()
    assert not alike[~np.array(calm)].any()


def test_the_commands_name_the_items_and_use_their_answers(small, tmp_path):
    small.save(tmp_path / "c")
    r = population(40, 200)
    high = Responses(Models(["stranger"]), r.items, np.ones((1, 200), np.float32), _certain(r))
    write_npz(high.align(small.anchors.ids), tmp_path / "a.npz")
    first = json.loads(disco("estimate", "c", "a.npz", "--json", cwd=tmp_path).stdout)
    assert first["more_items"] == small.reserve.items.ids[:20].tolist()
    assert "20 more items would give" in disco("estimate", "c", "a.npz", cwd=tmp_path).stdout
    listed = disco("anchors", "c", "--more", "20", cwd=tmp_path).stdout.split()
    assert listed == [*small.anchors.ids.tolist(), *first["more_items"]]
    write_npz(high.align(first["more_items"]), tmp_path / "b.npz")  # the further answers in a file of their own
    second = json.loads(disco("estimate", "c", "a.npz", "b.npz", "--more", "20", "--json", cwd=tmp_path).stdout)
    assert second["estimates"][0]["more"] == 20
    assert "more_items" not in second
    expected = small.estimate(high, more=20)[0]
    assert second["estimates"][0]["score"] == expected.score
    line = disco("estimate", "c", "a.npz", "--more", "20", cwd=tmp_path, status=2).stderr
    assert "no answer for 20 of the 20 more items" in line


def test_reserves_survive_saving(small, tmp_path):
    small.save(tmp_path / "c")
    back, r = de.load(tmp_path / "c"), population(40, 200)
    assert back.estimate(r, more=40) == small.estimate(r, more=40)
    disco("info", tmp_path / "c")


def test_a_few_further_items_do_not_overrule_anchors_that_may_have_leaked():
    c, _, leaked = one_that_has_seen(2)
    for more, decides in ((8, False), (40, True)):
        (found,) = c.estimate(leaked, more=more)
        assert "odd-answers" in found.flags
        made, part = c.top_up(more), c.answers(leaked)
        grades = part.grades(), c.further(leaked, more).grades()
        both, alone = (made.predict(*grades, np.array([aside]))[0][0] for aside in (False, True))
        assert abs(both - alone) > 0.01
        assert found.score == pytest.approx(alone if decides else both)
