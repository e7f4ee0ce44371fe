"""Item response theory: parameters are recovered, signs agree, missing cells count for nothing."""

import numpy as np
import pytest
from scipy.optimize import minimize

from disco_eval.numerics import irt


def simulated(n_models=200, n_items=300, n_dims=1, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, n_dims))
    a = np.abs(rng.normal(1.0, 0.4, (n_items, n_dims))) if n_dims == 1 else rng.normal(size=(n_items, n_dims))
    b = rng.normal(size=n_items)
    p = irt.probability(theta, a, b)
    return (rng.random(p.shape) < p).astype(float), theta, a, b, p


def test_the_sign_convention():
    """More ability helps on items that load on it, more difficulty hurts; zero is even odds."""
    theta, a, b = np.array([[0.0], [1.0]]), np.array([[2.0], [2.0]]), np.array([0.0, 1.0])
    p = irt.probability(theta, a, b)
    slow = [[1 / (1 + np.exp(-(a[i] @ theta[m] - b[i]))) for i in range(2)] for m in range(2)]
    np.testing.assert_allclose(p, slow, rtol=1e-12)
    assert p[0, 0] == 0.5
    assert p[1, 0] > p[0, 0] > p[0, 1]


def test_known_parameters_are_recovered():
    y, theta, a, b, p = simulated()
    fitted = irt.fit_2pl(y, 1)
    assert np.corrcoef(fitted.ability[:, 0], theta[:, 0])[0, 1] > 0.98
    assert np.corrcoef(fitted.discrimination[:, 0], a[:, 0])[0, 1] > 0.75
    assert np.corrcoef(fitted.difficulty, b)[0, 1] > 0.97
    found = irt.probability(fitted.ability, fitted.discrimination, fitted.difficulty)
    assert np.abs(found - p).mean() < 0.04  # a sampling error of about sqrt(p(1-p) (1/200 + 1/300)) is 0.035


def test_several_dimensions_are_recovered_up_to_rotation():
    y, *_, p = simulated(300, 500, 3)
    found = irt.fit_2pl(y, 3)
    q = irt.probability(found.ability, found.discrimination, found.difficulty)
    one = irt.fit_2pl(y, 1)
    q1 = irt.probability(one.ability, one.discrimination, one.difficulty)
    assert np.abs(q - p).mean() < 0.07
    assert np.abs(q - p).mean() < 0.5 * np.abs(q1 - p).mean()


def test_abilities_come_out_standard():
    fitted = irt.fit_2pl(simulated(100, 400, 2)[0], 2)
    np.testing.assert_allclose(fitted.ability.mean(axis=0), 0, atol=1e-8)
    np.testing.assert_allclose(np.cov(fitted.ability.T, bias=True), np.eye(2), atol=1e-6)


def test_held_out_cells_are_predicted_nearly_as_well_as_the_truth_does():
    y, *_, p = simulated(200, 400, 2)
    seen = np.random.default_rng(1).random(y.shape) > 0.1
    fitted = irt.fit_2pl(y, 2, weight=seen)
    found = irt.probability(fitted.ability, fitted.discrimination, fitted.difficulty)
    mean = np.broadcast_to(((y * seen).sum(axis=0) + 1) / (seen.sum(axis=0) + 2), y.shape)
    ours, best, base = (irt.log_likelihood(y, q, ~seen) for q in (found, p, mean))
    assert ours > best - 0.25 * (best - base)
    with_signs_mixed_up = irt.probability(fitted.ability, -fitted.discrimination, -fitted.difficulty)
    assert irt.log_likelihood(y, with_signs_mixed_up, ~seen) < base


def test_missing_cells_are_not_read():
    y, *_ = simulated(40, 60)
    seen = np.random.default_rng(2).random(y.shape) > 0.2
    one = irt.fit_2pl(y, 2, weight=seen)
    other = irt.fit_2pl(np.where(seen, y, np.nan), 2, weight=seen)
    np.testing.assert_array_equal(one.difficulty, other.difficulty)
    np.testing.assert_array_equal(one.ability, other.ability)
    ability = irt.fit_ability(np.where(seen, y, np.nan), one.discrimination, one.difficulty, weight=seen)
    assert np.isfinite(ability).all()


def test_weights_of_one_change_nothing():
    y, *_ = simulated(30, 50)
    np.testing.assert_allclose(irt.fit_2pl(y, 1).ability, irt.fit_2pl(y, 1, weight=np.ones(y.shape)).ability, atol=1e-5)


def test_ability_is_the_maximum_that_a_general_optimiser_finds():
    y, _, a, b, _ = simulated(6, 40, 2)
    found = irt.fit_ability(y, a, b)
    for m in range(6):

        def loss(t, m=m):
            z = a @ t - b
            return -(y[m] * z - np.logaddexp(0, z)).sum() + 0.5 * irt.ABILITY_PRECISION * t @ t

        best = minimize(loss, np.zeros(2), tol=1e-12)
        np.testing.assert_allclose(found[m], best.x, atol=1e-4)


def test_a_models_ability_does_not_depend_on_the_others():
    y, _, a, b, _ = simulated(20, 40, 2)
    np.testing.assert_allclose(irt.fit_ability(y, a, b)[3], irt.fit_ability(y[3:4], a, b)[0], atol=1e-8)


def test_it_is_deterministic_and_leaves_its_input_alone():
    y, *_ = simulated(30, 50)
    before = y.copy()
    one, two = irt.fit_2pl(y, 2), irt.fit_2pl(y, 2)
    np.testing.assert_array_equal(one.discrimination, two.discrimination)
    np.testing.assert_array_equal(y, before)


def test_answers_that_all_agree_do_not_break_it():
    y = np.ones((10, 20))
    y[:, ::2] = 0
    fitted = irt.fit_2pl(y, 2)
    assert np.isfinite(fitted.discrimination).all()
    assert np.isfinite(fitted.ability).all()


def test_the_right_number_of_dimensions_is_chosen():
    y, *_ = simulated(200, 400, 2, seed=3)
    held = np.arange(0, 200, 5)
    rest = np.setdiff1d(np.arange(200), held)
    dims = (1, 2, 5)
    likelihood = [irt.held_out_likelihood(y, held, irt.fit_2pl(y[rest], d)) for d in dims]
    assert irt.simplest(dims, likelihood) == 2
    assert irt.simplest((1, 2, 5), (-0.5, -0.402, -0.4)) == 2


@pytest.mark.parametrize("n_dims", [0, 10])
def test_impossible_requests_are_refused(n_dims):
    with pytest.raises(ValueError, match="dimensions of ability need more"):
        irt.fit_2pl(np.zeros((10, 5)), n_dims)
    with pytest.raises(ValueError, match="do not fit"):
        irt.fit_2pl(np.zeros((10, 5)), 1, weight=np.ones((5, 10)))
