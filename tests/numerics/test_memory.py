import numpy as np
import pytest

from disco_eval import Responses, condense
from disco_eval.numerics.ability import sigmoid
from disco_eval.numerics.leakage import Leakage
from disco_eval.numerics.memory import (
    MOST_EVIDENCE,
    SHARE,
    Memory,
    _discriminant,
    _folds,
    _left_out,
    graded,
    perfect,
    remembering,
)


def skilled(n_models, top=1.5, seed=0, skills=4, n_items=100):
    """Answers of models with a general ability and several skills of their own, each needed by some of the items."""
    items = np.random.default_rng(7)
    load, ease = items.normal(0, 2.0, (skills, n_items)), items.normal(size=n_items)
    rng = np.random.default_rng(seed)
    ability = rng.uniform(-1.5, top, (n_models, 1))
    p = sigmoid(ability + rng.normal(size=(n_models, skills)) @ load + ease)
    return (rng.random(p.shape) < p).astype(float), sigmoid(ability[:, 0])


def leaked(grades, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    grades = grades.copy()
    for row in grades:
        row[rng.choice(len(row), round(share * len(row)), replace=False)] = 1.0
    return grades


def found(judge, honest, answers):
    """Share of ``answers`` with more evidence than 95 % of the honest."""
    return (judge.evidence(answers) > np.quantile(judge.evidence(honest), 0.95)).mean()


def test_what_looks_like_skill_to_curves_is_told_by_anchors_that_do_not_go_together():
    sources, scores = skilled(120)
    honest, _ = skilled(200, top=1.0, seed=1)
    ratio, memory = Leakage.fit(sources, scores), Memory.learn(sources, scores, np.arange(120))[0]
    assert found(ratio, honest, leaked(honest)) < 0.25
    assert found(memory, honest, leaked(honest)) > 0.6


def test_a_unit_is_what_a_twentieth_of_honest_models_exceed():
    sources, scores = skilled(1000)
    memory = Memory.learn(sources, scores, np.arange(1000))[0]
    evidence = memory.evidence(skilled(2000, seed=1)[0])
    assert 0.02 < (evidence > 1).mean() < 0.08
    assert abs(np.median(evidence)) < 0.2


def test_a_model_stronger_than_every_source_is_told_by_the_ratio_alone():
    grades, scores = skilled(160, top=3.0)
    weak = scores < sigmoid(0.0)
    memory = Memory.learn(grades[weak], scores[weak], np.arange(weak.sum()))[0]
    ratio, ability = memory.curves.weigh(grades)
    beyond = ability > memory.curves.strongest(scores[weak])
    alone = ratio * memory.units[3] + memory.units[2]
    expected = np.where(alone > 1, alone, np.minimum(alone, 0.0))
    assert beyond.sum() > 30
    np.testing.assert_allclose(memory.evidence(grades)[beyond], expected[beyond])
    strong = scores > sigmoid(0.5)
    by_direction = grades @ memory.direction + ratio * memory.units[1] + memory.units[0]
    assert (by_direction > 1)[strong].mean() > 2 * (memory.evidence(grades) > 1)[strong].mean()


def test_the_direction_is_the_discriminant_of_very_many_leaks():
    grades, _ = skilled(60, n_items=12)
    graded = np.clip(grades * 0.8 + 0.1, 0, 1)
    many = np.repeat(graded, 4000, axis=0)
    known = np.random.default_rng(0).random(many.shape) < SHARE
    many = np.where(known, 1.0, many)
    spread = (np.cov(graded.T, bias=True) + np.cov(many.T, bias=True)) / 2 + 0.05 * np.eye(12)
    by_hand = np.linalg.solve(spread, many.mean(axis=0) - graded.mean(axis=0))
    np.testing.assert_allclose(_discriminant(graded), by_hand, atol=0.02)


def test_fewer_sources_than_anchors_are_solved_for_alike():
    """Every source three times has the same moments, and makes them more than the anchors."""
    grades = np.random.default_rng(0).random((25, 60))
    np.testing.assert_allclose(_discriminant(grades), _discriminant(np.tile(grades, (3, 1))), rtol=1e-9)


def test_remembered_anchors_are_spread_evenly():
    grades = np.full((50, 100), 0.2)
    known = remembering(grades) == 1.0
    assert np.abs(known.mean(axis=1) - SHARE).max() < 0.03
    assert np.abs(known.mean(axis=0) - SHARE).max() < 0.06
    assert len(np.unique(known, axis=0)) == 50
    assert (remembering(grades)[~known] == 0.2).all()


def test_folds_keep_kin_together_unless_one_kind_is_most_of_them():
    kin = np.repeat(np.arange(12), [9, 8, 7, 6, 5, 4, 3, 2, 2, 2, 1, 1])
    parts = _folds(kin)
    assert np.sum(parts, axis=0).tolist() == [1] * 50
    assert all(9 <= part.sum() <= 11 for part in parts)
    assert all(len(np.unique(part[kin == k])) == 1 for part in parts for k in range(12))
    assert [part.sum() for part in _folds(np.array([0] * 40 + list(range(1, 11))))] == [10] * 5
    assert [part.sum() for part in _folds(np.zeros(10))] == [2] * 5


def test_each_source_is_judged_by_others_than_its_kin():
    grades, scores = skilled(40)
    grades, scores = np.repeat(grades, 2, axis=0), np.repeat(scores, 2)
    kin = np.repeat(np.arange(40), 2)
    honest, leaked = _left_out(grades, scores, kin, guess=False)
    known = remembering(grades)
    for part in _folds(kin):
        curves, direction = Leakage.curves(grades[~part], scores[~part], False), _discriminant(grades[~part])
        assert not np.isin(kin[part], kin[~part]).any()
        for told, answers in ((honest, grades), (leaked, known)):
            np.testing.assert_allclose(told[0, part], curves.evidence(answers[part]))
            np.testing.assert_allclose(told[1, part], answers[part] @ direction)


def test_perfect_is_the_best_grade_up_to_rounding():
    grades = np.array([1.0, np.float32(1 - 6e-8), 1 / 3 + 1 / 3 + 1 / 3, 0.99, 0.95, 0.0])
    assert perfect(grades).tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("n", [4, 8, 10])
def test_few_sources_give_finite_evidence(n):
    grades, scores = skilled(n)
    memory = Memory.learn(grades, scores, np.arange(n))[0]
    assert memory.direction.any()
    assert np.isfinite(memory.evidence(skilled(40, seed=2)[0])).all()


@pytest.mark.parametrize("n", [10, 12, 18])
def test_folds_of_few_sources_judge_in_the_same_units(n):
    """Thresholds come from folds of fewer sources still; of evidence of another kind, they were never passed."""
    grades, _ = skilled(n, seed=n, n_items=300)
    r = Responses.from_correct([f"m{i}" for i in range(n)], [f"i{j}" for j in range(300)], grades)
    left_out = condense(r, 100, rng=0, curve=False).validation.leak
    assert abs(np.median(left_out)) < 1
    assert 0 < left_out.max() < 4


@pytest.mark.parametrize("grades", [np.ones((30, 40)), np.zeros((30, 40)), np.full((30, 40), 0.5)])
def test_sources_that_are_all_alike_give_finite_evidence(grades):
    memory = Memory.learn(grades, grades.mean(axis=1), np.arange(30))[0]
    assert np.isfinite(memory.evidence(skilled(20, n_items=40)[0])).all()
    assert np.isfinite(memory.evidence(grades)).all()
    assert np.abs(np.concatenate([memory.units, memory.direction])).max() < MOST_EVIDENCE / 100  # or it would not load


def test_nothing_is_said_of_strong_models_where_answers_are_graded():
    """There memory explains whatever is better than expected: every honest model above the sources would be flagged."""
    rng = np.random.default_rng(0)
    ability = np.concatenate([rng.uniform(-1.5, 0.5, 80), rng.uniform(1.0, 2.0, 40)])[:, None]
    grades = np.clip(sigmoid(ability + rng.normal(size=100)) + rng.normal(0, 0.1, (120, 100)), 0, 1)
    sources, scores, strong = grades[:80], grades[:80].mean(axis=1), grades[80:]
    fits = [Memory.learn(sources, scores, np.arange(80), silent=silent)[0] for silent in (False, True)]
    assert graded(grades)
    assert not graded(np.round(grades))
    assert (fits[0].evidence(strong) > 1).mean() > 0.3
    assert fits[1].evidence(strong).max() <= 0
    honest = fits[1].evidence(sources)
    assert (fits[1].evidence(leaked(sources)) > np.quantile(honest, 0.95)).mean() > 0.3
