import numpy as np
import pytest

from disco_eval.numerics.survey import Survey, systematic


def test_items_are_drawn_as_often_as_they_should():
    rng = np.random.default_rng(0)
    size = rng.uniform(0.2, 3, 40)
    size[7] = 30.0  # certain
    hits = np.zeros(40)
    for _ in range(4000):
        at, chance = systematic(np.arange(40), size, 10, rng)
        assert len(set(at.tolist())) == 10
        hits[at] += 1
        expected = np.minimum(1, 9 * size / (size.sum() - size[7]))
        np.testing.assert_allclose(chance, np.where(at == 7, 1, expected[at]))
    share = hits / 4000
    assert share[7] == 1
    assert np.abs(share - np.where(np.arange(40) == 7, 1, expected)).max() < 4 * 0.5 / np.sqrt(4000)


def test_all_items_can_be_drawn_and_more_cannot():
    at, chance = systematic(np.arange(5), np.ones(5), 5, np.random.default_rng(0))
    assert sorted(at.tolist()) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(chance, 1)
    with pytest.raises(ValueError, match="6 items"):
        systematic(np.arange(5), np.ones(5), 6, np.random.default_rng(0))


def world(seed=1, n_models=40, n_items=600):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(size=(n_models, 1)) + rng.normal(size=n_items))))
    return (rng.random((n_models, n_items)) < p).astype(float)


def test_the_estimate_is_unbiased_for_a_model_unlike_every_source():
    """The target is right where sources are wrong; the bound is four standard errors of the mean of 300 draws."""
    grades = world()
    target = 1 - grades[:1].round()
    target[:, ::3] = 1.0
    truth = float(target.mean())
    rng = np.random.default_rng(0)
    order = np.argsort(grades.mean(axis=0), kind="stable")
    size = rng.uniform(0.5, 2, 600)
    got, se = [], []
    for _ in range(300):
        at, chance = systematic(order, size, 60, rng)
        survey = Survey.fit(grades[:, at], grades.mean(axis=1), np.full(60, 1 / 600), chance, 600)
        estimate, error = survey.predict(target[:, at])
        got.append(estimate[0])
        se.append(error[0])
    assert abs(np.mean(got) - truth) < 4 * np.std(got) / np.sqrt(300) + 0.01  # the ridge adds a bias of order 1 / k
    assert 0.7 < np.mean(se) / np.std(got) < 1.5


def test_source_answers_make_it_sharper_for_a_model_like_them():
    grades = world(n_models=80)
    rng = np.random.default_rng(0)
    order = np.argsort(grades[1:].mean(axis=0), kind="stable")
    assisted, plain = [], []
    for _ in range(200):
        at = rng.choice(600, 60, replace=False)
        survey = Survey.fit(grades[1:, at], grades[1:].mean(axis=1), np.full(60, 1 / 600), np.full(60, 0.1), 600)
        assisted.append(survey.predict(grades[:1, at])[0][0] - grades[0].mean())
        plain.append(grades[0, at].mean() - grades[0].mean())
    assert np.std(assisted) < np.std(plain)
    assert len(order) == 600


def test_anchors_that_count_for_nothing_are_left_aside():
    """One item in ten counts, and items are drawn whether they do: only those that do make the estimate sure."""
    grades = world(n_models=80)
    share = np.where(np.arange(600) % 10 == 0, 1 / 60, 0.0)
    truth, rng = grades @ share, np.random.default_rng(0)
    off, claimed = [], []
    for _ in range(60):
        at = rng.choice(600, 100, replace=False)
        survey = Survey.fit(grades[1:, at], truth[1:], share[at], np.full(100, 1 / 6), 60)
        assert survey.drawn.tolist() == np.flatnonzero(share[at]).tolist()
        score, se = survey.predict(grades[:1, at])
        off.append(score[0] - truth[0])
        claimed.append(se[0])
    assert 0.6 < np.sqrt(np.mean(np.square(off)) / np.mean(np.square(claimed))) < 1.4
    weights = np.where(np.arange(20) < 3, 1 / 60, 0.0)
    with pytest.raises(ValueError, match="3 anchors were drawn by chance"):
        Survey.fit(grades[:, :20], truth, weights, np.full(20, 1 / 6), 60)


def test_anchors_not_drawn_stand_for_themselves():
    grades = world()
    at = np.arange(20)
    chance = np.where(at < 5, np.nan, 15 / 595)
    survey = Survey.fit(grades[:, at], grades.mean(axis=1), np.full(20, 1 / 600), chance, 600)
    assert survey.certain[:5] == pytest.approx(1 / 600)
    assert survey.size[0] == pytest.approx(595 / 600)
    with pytest.raises(ValueError, match="expected 4"):
        Survey.fit(grades[:, at], grades.mean(axis=1), np.full(20, 1 / 600), np.full(20, np.nan), 600)
