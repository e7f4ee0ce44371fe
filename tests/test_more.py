"""Further items where anchors are half of the benchmark, were not drawn by chance, weigh unequally, or have leaked."""

from dataclasses import replace

import numpy as np
import pytest

from disco_eval import Items, Models, Responses, condense, load
from disco_eval.more import judged
from disco_eval.relatives import Relatives
from disco_eval.select import selector
from disco_eval.select.reserve import draw_first
from disco_eval.topup import doubted

N_ITEMS = 400


def world(n_items: int = N_ITEMS, seed: int = 0, weight=None):
    """A function from a number of models and a name to so many, of abilities about 0, of one population."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 1.3, n_items)
    items = Items([f"i{j}" for j in range(n_items)], weight=weight)

    def models(n: int, name: str) -> Responses:
        right = rng.random((n, n_items)) < 1 / (1 + np.exp(hard - rng.normal(0, 0.8, (n, 1))))
        return Responses(Models([f"{name}{i}" for i in range(n)]), items, right.astype(np.float32))

    return models


def leaked(new: Responses, at, share: float) -> Responses:
    """The same models with that share of the items ``at`` positions right, each with others."""
    rng, right = np.random.default_rng(0), np.array(new.correct)
    for row in right:
        row[rng.choice(at, round(share * len(at)), replace=False)] = 1
    return Responses(new.models, new.items, right)


def missed(estimates, truth):
    return np.array([e.score for e in estimates]) - truth


def held(estimates, truth):
    return np.mean([e.low - 1e-9 <= t <= e.high + 1e-9 for e, t in zip(estimates, truth, strict=True)])


@pytest.mark.parametrize("more", [50, 90])
def test_intervals_hold_where_anchors_are_half_of_the_benchmark(more):
    """Folds that ask all that is left would know the score, and say that nobody is ever missed."""
    models = world(200)
    source, new = models(80, "source"), models(200, "new")
    c = condense(source, 100, rng=0, curve=False)
    assert c.validation.n_more == 50
    assert 0.005 < c.validation.more_mae < c.validation.mae
    found = c.estimate(new, more=more)
    assert 0.84 < held(found, new.scores()) < 0.99
    assert np.abs(missed(found, new.scores())).mean() < 0.7 * c.validation.mae


def test_folds_ask_no_more_than_half_of_what_is_left():
    weight = np.where(np.arange(100) < 10, 50.0, 1.0)
    for counts, least in ((np.ones(100), 30), (weight, 4)):
        r = world(100, weight=counts)(30, "source")
        anchors = selector("pds")(r, 40, 0)
        few = draw_first(r, anchors, 0)
        left = 1 - few.shares[:40].sum()
        assert least <= len(few) <= 30
        assert few.grades.shape == (30, len(few))
        expected = (few.chance * few.shares[40:]).sum()  # of what is drawn, over all draws
        assert expected < 0.6 * left
    assert draw_first(r, selector("pds")(r, 93, 0), 0) is None  # 7 are left, and 3 would say nothing


def test_heavy_items_keep_their_weight():
    """With three benchmarks of equal weight, the smallest all anchors, what is learned is no worse than a survey."""
    models = world(1020, weight=np.repeat([1 / 20, 1 / 400, 1 / 600], [20, 400, 600]))
    source, new = models(80, "source"), models(150, "new")
    c, truth = condense(source, 60, rng=0, curve=False), new.scores()
    few = np.abs(missed(c.estimate(new), truth)).mean()
    for more, most in ((60, 0.8), (240, 0.5)):
        found = np.abs(missed(c.estimate(new, more=more), truth)).mean()
        part, further = c.answers(new).grades(), c.further(new, more).grades()
        survey, _ = c.top_up(more).predict(part, further, np.zeros(150, bool))
        assert found < 1.1 * np.abs(survey - truth).mean()
        assert found < most * few


@pytest.mark.parametrize("select", ["pds", "anchor_corr"])
def test_leaks_of_anchors_not_drawn_by_chance_are_seen_too(select):
    models = world(1000)
    source, new = models(80, "source"), models(150, "new")
    c = condense(source, 50, rng=0, curve=False, select=select)
    assert c.top_up(50).first is None
    known = leaked(new, c.anchors.positions, 0.5)
    flags = {who: [e.flags for e in c.estimate(r, more=50)] for who, r in (("honest", new), ("leaked", known))}
    differs = {who: np.mean(["anchors-differ" in f for f in own]) for who, own in flags.items()}
    assert differs["honest"] <= 0.05
    assert differs["leaked"] > 0.25
    found = c.estimate(known, more=50)
    odd = [bool({"odd-answers", "anchors-differ"} & set(e.flags)) for e in found]
    off = missed(found, new.scores())[odd]
    assert np.mean(odd) > 0.6
    assert abs(off.mean()) < 0.03  # they knew half of the anchors: as told from these 13 points too high
    assert held([e for e, o in zip(found, odd, strict=True) if o], new.scores()[odd]) > 0.8


@pytest.fixture(scope="module")
def by_heart():
    """A condensation, models that know all of its anchors, and their true scores."""
    models = world()
    source, new = models(70, "source"), models(60, "new")
    c = condense(source, 40, rng=0, curve=False)
    known = leaked(new, c.anchors.positions, 1.0)
    return c, known, known.scores()


def test_a_few_further_items_widen_intervals_that_anchors_known_by_heart_mislead(by_heart):
    c, known, truth = by_heart
    assert held(c.estimate(known), truth) < 0.1
    few = c.estimate(known, more=30)
    assert np.mean(["anchors-differ" in e.flags for e in few]) > 0.9
    assert not any(e.surveyed for e in few)
    assert held(few, truth) > 0.8
    many = c.estimate(known, more=40)
    assert held(many, truth) > 0.8
    assert np.abs(missed(many, truth)).mean() < 0.5 * np.abs(missed(few, truth)).mean()


def test_what_anchors_say_of_the_range_is_set_aside_with_them(by_heart):
    c, known, truth = by_heart
    assert all("outside-range" in e.flags for e in c.estimate(known, more=30))
    room = 0.1 * c.source_scores.std()
    aside = [e for e in c.estimate(known, more=40) if "anchors-differ" in e.flags]
    assert len(aside) > 50
    for e in aside:
        within = c.source_scores.min() - room <= e.score <= c.source_scores.max() + room
        assert ("outside-range" in e.flags) != within
        assert "lines-disagree" not in e.flags
    told = ("outside-range", "lines-disagree", "odd-answers")
    assert judged(c, told, float(truth.mean())) == ("odd-answers",)
    assert judged(c, told, float(c.source_scores.max() + 2 * room)) == ("outside-range", "odd-answers")


def test_further_items_are_not_learned_from_where_a_fold_had_none(by_heart, tmp_path):
    c, known, _ = by_heart
    v = c.validation
    none = np.full(len(v.truth), np.nan)
    zeros, subtasks = np.zeros(len(none)), np.zeros((len(none), 0))
    same = Relatives(zeros, zeros, zeros, subtasks, subtasks, zeros, zeros, zeros)
    assert v.beside(same).n_more == 40
    assert v.beside(same).relatives is same
    without = v.beside(replace(same, more_error=np.where(np.arange(len(none)) < 9, np.nan, zeros)))
    assert without.n_more == 0
    assert without.more_mae is None
    assert np.isnan(without.relatives.more_error).all()
    small = replace(c, validation=without)
    for e in small.estimate(known, more=40):
        assert 0 <= e.low <= e.score <= e.high <= 1
    small.save(tmp_path / "c")
    assert load(tmp_path / "c").estimate(known, more=40) == small.estimate(known, more=40)


def test_a_subtask_that_is_all_that_is_left_is_no_surer_than_the_score():
    weight, part = np.where(np.arange(N_ITEMS) < 40, 10.0, 1.0), np.where(np.arange(N_ITEMS) < 40, "small", "big")
    models = world(weight=weight)
    source, new = models(60, "source"), models(40, "new")
    source, new = (
        Responses(r.models, Items(r.items.ids.tolist(), weight=weight, subtask=part.tolist()), r.correct)
        for r in (source, new)
    )
    c = condense(source, 40, rng=0, curve=False)
    share = 360 / 760
    for e in c.estimate(new, more=len(c.reserve)):
        big, small = sorted(e.subtasks, key=lambda s: s.name)
        assert small.low == pytest.approx(small.high)  # all of it was asked
        if 0 < big.low < big.high < 1:
            assert big.high - big.low >= (e.high - e.low) / share - 1e-6
            assert share * big.score + (1 - share) * small.score == pytest.approx(e.score)


def test_errors_of_folds_that_asked_all_that_was_left_are_not_believed(tmp_path):
    """An early format 14 wrote such: real ones are never of more than half."""
    models = world(100)
    c = condense(models(40, "source"), 50, rng=0, curve=False)
    assert (c.validation.n_more, c.reserve.is_most(25), c.reserve.is_most(26)) == (25, False, True)
    assert c.validation.believed(c.reserve, c.sources) is c.validation
    none = np.zeros(40)
    early = replace(c, validation=replace(c.validation, n_more=50, more_error=none))
    early.save(tmp_path / "c")
    again = load(tmp_path / "c")
    assert again.validation.n_more == 0
    assert again.validation.more_mae is None
    new = models(30, "new")
    assert all(e.high - e.low > 0.01 for e in again.estimate(new, more=30))


def test_further_items_widen_intervals_as_far_as_anchors_lead():
    odd, lead = np.array([False, False, True, True, True, True]), np.array([1.0, 2.4, -1.0, 0.0, 1.165, 9.0])
    np.testing.assert_allclose(doubted(odd, lead), [0, 1, 0, 0, 0.5, 1])


def test_the_surer_a_leak_the_less_its_anchors_count(by_heart):
    """That an honest model is ahead by chance ever further is ever less likely."""
    c, known, truth = by_heart
    made, part, further = c.top_up(40), c.answers(known).grades(), c.further(known, 40).grades()
    odd, n = np.zeros(len(truth), dtype=bool), len(truth)
    widths = [made.surveyed(part, further, odd, np.full(n, lead), 0.9).half.mean() for lead in (2.4, 3.5, 4.7)]
    assert widths[0] > 1.2 * widths[1] > 1.2 * widths[2]
    alone = made.alone(part, further, 0.9)
    sure = made.surveyed(part, further, odd, np.full(n, 4.7), 0.9)
    np.testing.assert_allclose(sure.score, alone.score)
    np.testing.assert_allclose(sure.half, alone.half)


def test_a_comparison_sets_aside_what_anchors_say_of_the_range(by_heart):
    c, known, _ = by_heart
    one, other = known.pick(models=[0]), known.pick(models=[1])
    few, many = (c.compare(one, other, more=more) for more in (30, 40))
    assert "outside-range" in few.candidate_flags
    assert many.set_aside
    assert not many.unlike
    for own in (many.baseline_flags, many.candidate_flags):
        assert "anchors-differ" in own
        assert "outside-range" not in own
    assert not any("outside" in line for line in many.warnings)


def test_where_all_items_are_known_nothing_is_said_of_the_range():
    models = world(60)
    c = condense(models(30, "source"), 30, rng=0, curve=False)
    best = models(2, "new")
    best = Responses(best.models, best.items, np.ones((2, 60), np.float32))
    assert "outside-range" in c.estimate(best)[0].flags
    found = c.compare(best.pick(models=[0]), best.pick(models=[1]), more=len(c.reserve))
    assert found.whole
    assert not found.warnings or all("outside" not in line for line in found.warnings)
    [e, _] = c.estimate(best, more=len(c.reserve))
    assert e.low == e.score == e.high


def test_a_few_further_items_are_no_survey_where_anchors_were_not_drawn_by_chance():
    """Four to sixteen items, with Student's quantile for so few, made unflagged models' intervals twice as wide."""
    models = world(600)
    source, new = models(80, "source"), models(100, "new")
    c, truth = condense(source, 50, rng=0, curve=False, select="pds"), new.scores()
    before = c.estimate(new)
    width, error = np.mean([e.high - e.low for e in before]), np.abs(missed(before, truth)).mean()
    for more in (4, 8, 16):
        found = c.estimate(new, more=more)
        assert np.mean([e.high - e.low for e in found]) < 1.2 * width
        assert np.abs(missed(found, truth)).mean() < 1.1 * error
        assert held(found, truth) > 0.8
