"""Natural cubic splines against scipy's."""

import numpy as np
from scipy.interpolate import CubicSpline

from disco_eval.numerics.splines import N_KNOTS, design, fit_additive


def test_the_basis_spans_natural_cubic_splines_that_go_on_straight():
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=N_KNOTS))
    values = rng.normal(size=N_KNOTS)
    basis = np.concatenate([np.ones((N_KNOTS, 1)), design(knots[:, None], knots[None])], axis=1)
    coef = np.linalg.solve(basis, values)
    x = np.linspace(knots[0], knots[-1], 50)
    ours = coef[0] + design(x[:, None], knots[None]) @ coef[1:]
    np.testing.assert_allclose(ours, CubicSpline(knots, values, bc_type="natural")(x), atol=1e-9)
    far = knots[-1] + np.array([1.0, 2.0, 3.0])
    beyond = design(far[:, None], knots[None]) @ coef[1:]
    np.testing.assert_allclose(np.diff(beyond, 2), 0, atol=1e-9)


def test_an_additive_curve_is_found():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    truth = np.tanh(X[:, 0]) + 0.3 * X[:, 1]
    fitted = fit_additive(X, truth + 0.05 * rng.normal(size=300))
    error = fitted.predict(X) - truth
    assert error.std() < 0.05
    assert error.std() < 0.3 * (np.linalg.lstsq(np.c_[np.ones(300), X], truth, rcond=None)[1] / 300) ** 0.5


def test_constant_features_and_few_models_do_no_harm():
    X = np.c_[np.ones(6), np.arange(6.0)]
    fitted = fit_additive(X, np.arange(6) / 10)
    np.testing.assert_allclose(fitted.predict(X), np.arange(6) / 10, atol=0.02)
