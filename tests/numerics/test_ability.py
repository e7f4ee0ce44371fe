from dataclasses import replace

import numpy as np

from disco_eval.numerics.ability import REACH, AbilityLine, easiness, sigmoid
from disco_eval.numerics.leakage import Leakage


def rasch(n_models=80, n_items=400, seed=0, top=1.0):
    rng = np.random.default_rng(seed)
    theta, ease = np.linspace(-1.5, top, n_models), rng.normal(size=n_items)
    p = sigmoid(theta[:, None] + ease)
    return (rng.random(p.shape) < p).astype(float), theta, ease, p


def test_the_line_recovers_abilities_and_scores():
    grades, theta, ease, p = rasch()
    at = np.arange(0, 400, 4)
    line = AbilityLine.fit(grades[:, at], ease, np.ones(400), at, grades.mean(axis=1))
    assert np.corrcoef(line.ability(grades[:, at]), theta)[0, 1] > 0.9
    assert np.abs(line.predict(grades[:, at]) - p.mean(axis=1)).mean() < 0.05  # sqrt(pq / 100) is 0.05


def test_all_right_and_all_wrong_are_finite_and_easiness_is():
    grades, _, ease, _ = rasch()
    at = np.arange(50)
    line = AbilityLine.fit(grades[:, at], ease, np.ones(400), at, grades.mean(axis=1))
    low, high = line.predict(np.array([np.zeros(50), np.ones(50)]))
    assert low < grades.mean() < high
    assert np.isfinite(easiness(np.array([0.0, 1.0]), 10)).all()


def test_a_model_that_is_right_on_a_few_anchors_stays_within_reach():
    """Where Newton's method ends is where answers and the pull to 0 are even, by bisection."""
    ease = np.linspace(-1.0, 1.0, 20)
    line = AbilityLine(ease, np.zeros(241), np.array([1.0, 0.0]))

    def even(right):
        low, high = -REACH, REACH
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if right - sigmoid(middle + ease).sum() > 0.02 * middle else (low, middle)
        return low

    found = line.ability(np.array([np.zeros(20), np.r_[np.ones(12), np.zeros(8)], np.ones(20)]))
    np.testing.assert_allclose(found, [even(0), even(12), even(20)], atol=0.02)
    assert (np.abs(found) < REACH - 0.3).all()


def test_remembered_anchors_show():
    """30 % of 100 anchors made right: caught at least half of the time at the threshold of 5 % false alarms."""
    grades, _, _, _ = rasch(160, 100, seed=3)
    fitted = Leakage.fit(grades[::2], grades[::2].mean(axis=1))
    clean, leaked = grades[1::2], grades[1::2].copy()
    rng = np.random.default_rng(0)
    for row in leaked:
        row[rng.choice(100, 30, replace=False)] = 1.0
    threshold = np.quantile(fitted.evidence(clean), 0.95)
    weak = clean.mean(axis=1) < 0.6  # a model right everywhere cannot be told
    assert (fitted.evidence(leaked) > threshold)[weak].mean() > 0.5


def test_models_that_guess_at_everything_are_not_taken_for_ones_that_remember():
    """Right one time in four whatever the item, as a model that always takes choice A is."""
    grades, _, _, _ = rasch(160, 100, seed=3)
    guessed = (np.random.default_rng(1).random((204, 100)) < 0.25).astype(float)
    sources = np.concatenate([grades[::2], guessed[:4]])
    fitted = Leakage.fit(sources, sources.mean(axis=1))
    threshold = np.quantile(fitted.evidence(grades[1::2]), 0.95)
    curves_alone = Leakage(fitted.slope, fitted.intercept)  # as formats up to 4 judged
    assert (curves_alone.evidence(guessed[4:]) > threshold).mean() > 0.9
    assert (fitted.evidence(guessed[4:]) > threshold).mean() < 0.15


def test_where_no_source_guesses_a_few_remembered_hard_items_are_no_guesses():
    """A benchmark at which nobody can guess: weak models with a fifth of the anchors remembered stand out."""
    rng = np.random.default_rng(0)
    ability, hardness = rng.normal(0.0, 1.2, (160, 1)), rng.normal(3.0, 1.2, 100)
    grades = (rng.random((160, 100)) < 1 / (1 + np.exp(hardness - ability))).astype(float)
    fitted = Leakage.fit(grades[::2], grades[::2].mean(axis=1))
    assert not len(fitted.guess)
    clean, leaked = grades[1::2], grades[1::2].copy()
    for row in leaked:
        row[rng.choice(100, 20, replace=False)] = 1.0
    threshold = np.quantile(fitted.evidence(clean), 0.95)
    assert (fitted.evidence(leaked) > threshold).mean() > 0.9


def test_the_luckiest_of_many_honest_models_is_no_guesser():
    grades, _, _, _ = rasch(2000, 100, seed=5)
    assert not len(Leakage.fit(grades, grades.mean(axis=1)).guess)


def test_strong_honest_models_are_not_taken_for_ones_that_remember():
    """Half of the items are of skills that come late: beyond the sources most are there, to which no curve points."""
    rng = np.random.default_rng(4)
    theta = np.concatenate([rng.uniform(-1.5, 1.0, 200), rng.uniform(1.2, 2.0, 60)])[:, None]
    late = sigmoid(8 * (theta - rng.uniform(0.4, 2.0, 100)))
    p = np.where(np.arange(100) < 50, 0.03 + 0.9 * late, sigmoid(theta + rng.normal(size=100)))
    grades = (rng.random(p.shape) < p).astype(float)
    sources, clean, strong = grades[:120], grades[120:200], grades[200:]
    fitted = Leakage.fit(sources, sources.mean(axis=1))
    leaked = clean.copy()
    for row in leaked:
        row[rng.choice(100, 30, replace=False)] = 1.0

    def flagged(judge, grades):
        return (judge.evidence(grades) > max(np.quantile(judge.evidence(clean), 0.95), 0.0)).mean()

    older = replace(fitted, doubt=np.zeros((3, 0)), strong=np.zeros(0))  # as formats up to 6 judged
    assert flagged(older, strong) > 0.8
    assert flagged(fitted, strong) < 0.5
    assert flagged(fitted, leaked) > 0.8


def test_what_strong_models_show_is_learned_in_any_order_and_from_enough_sources():
    grades, _, _, _ = rasch(80, 100, seed=6)
    scores = np.round(grades.mean(axis=1), 1)  # many ties
    fitted, other = Leakage.fit(grades, scores), Leakage.fit(grades[::-1], scores[::-1])
    np.testing.assert_allclose(fitted.strong, other.strong, atol=1e-9)
    assert not len(Leakage.fit(grades[:10], scores[:10]).strong)
    same = Leakage.fit(np.ones((30, 100)), np.ones(30))  # all alike: none is stronger
    assert not len(same.strong)
    assert np.isfinite(same.evidence(grades)).all()


def test_whether_models_guess_can_be_told():
    grades, _, _, _ = rasch(80, 100, seed=6)
    scores = grades.mean(axis=1)
    assert len(Leakage.fit(grades, scores, guess=True).guess)
    guessed = np.concatenate([grades, (np.random.default_rng(1).random((4, 100)) < 0.25).astype(float)])
    assert len(Leakage.fit(guessed, guessed.mean(axis=1)).guess)
    assert not len(Leakage.fit(guessed, guessed.mean(axis=1), guess=False).guess)
