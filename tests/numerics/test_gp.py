import numpy as np
import pytest

from disco_eval.numerics.gp import GaussianProcess, squared_distances


def data(n=60, p=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    accuracy = rng.uniform(0.2, 0.8, n)
    return X, accuracy, 0.1 + 0.7 * accuracy + 0.02 * X[:, 0] + 0.002 * rng.normal(size=n)


def dense(gp, X, accuracy, y, new_X, new_accuracy):
    """The textbook posterior with a very wide normal prior on the mean's coefficients."""
    w, length, noise, _ = gp.kernel
    scaled = [((A - gp.centre) / gp.scale[0]).astype(np.float32).astype(float) for A in (X, new_X)]

    def k(a, b):
        return w * a @ b.T + (1 - w) * np.exp(-squared_distances(a, b) / (2 * length))

    Z, new_Z = (
        np.column_stack([np.ones(len(a)), (a - gp.basis[0, 0]) / gp.basis[0, 1]]) for a in (accuracy, new_accuracy)
    )
    K = k(scaled[0], scaled[0]) + noise * np.eye(len(y)) + 1e7 * Z @ Z.T
    mean = (k(scaled[1], scaled[0]) + 1e7 * new_Z @ Z.T) @ np.linalg.solve(K, (y - gp.basis[1, 0]) / gp.basis[1, 1])
    return mean * gp.basis[1, 1] + gp.basis[1, 0]


def test_it_is_the_posterior_under_a_flat_prior_on_the_mean():
    X, accuracy, y = data()
    gp = GaussianProcess.fit(X[:40], accuracy[:40], y[:40])
    mean, _ = gp.predict(X[40:], accuracy[40:])
    np.testing.assert_allclose(mean, dense(gp, X[:40], accuracy[:40], y[:40], X[40:], accuracy[40:]), atol=1e-4)


def test_leaving_out_is_what_refitting_with_the_same_kernel_gives():
    X, accuracy, y = data(30)
    gp = GaussianProcess.fit(X, accuracy, y)
    groups = np.repeat(["a", "b", "c"], 10)
    error, sd = gp.left_out(groups)
    out = groups == "b"
    expected = dense(gp, X[~out], accuracy[~out], y[~out], X[out], accuracy[out])
    np.testing.assert_allclose(y[out] - error[out], expected, atol=1e-4)
    assert (sd > 0).all()


def test_it_finds_what_the_accuracy_misses():
    X, accuracy, y = data(200)
    gp = GaussianProcess.fit(X[:150], accuracy[:150], y[:150])
    mean, sd = gp.predict(X[150:], accuracy[150:])
    line = np.polyval(np.polyfit(accuracy[:150], y[:150], 1), accuracy[150:])
    assert np.abs(mean - y[150:]).mean() < 0.4 * np.abs(line - y[150:]).mean()
    inside = np.abs(mean - y[150:]) < 1.645 * sd
    assert inside.mean() > 0.75  # 90 % nominal, 50 draws: four standard errors below


@pytest.mark.parametrize("flat", ["scores", "accuracy", "signatures"])
def test_constant_inputs_do_no_harm(flat):
    X, accuracy, y = data(20)
    X, accuracy, y = (
        np.ones_like(X) if flat == "signatures" else X,
        np.full(20, 0.5) if flat == "accuracy" else accuracy,
        np.full(20, 0.3) if flat == "scores" else y,
    )
    mean, sd = GaussianProcess.fit(X, accuracy, y).predict(X, accuracy)
    assert np.isfinite(mean).all()
    assert np.isfinite(sd).all()
    if flat == "scores":
        np.testing.assert_allclose(mean, 0.3, atol=1e-6)


def test_too_few_rows_are_refused():
    X, accuracy, y = data(20)
    with pytest.raises(ValueError, match="4 or more"):
        GaussianProcess.fit(X[:3], accuracy[:3], y[:3])


def test_a_process_like_another_has_its_kernel_and_learns_the_noise():
    X, accuracy, y = data()
    full = GaussianProcess.fit(X, accuracy, y)
    same = GaussianProcess.fit(X, accuracy, y, full)
    np.testing.assert_allclose(same.kernel, full.kernel, rtol=1e-6)
    np.testing.assert_allclose(same.predict(X, accuracy), full.predict(X, accuracy), rtol=1e-6)
    noisy = GaussianProcess.fit(X, accuracy, y + 0.3 * np.random.default_rng(1).normal(size=len(y)), full)
    assert noisy.kernel[0] == full.kernel[0]
    assert noisy.kernel[1] == pytest.approx(full.kernel[1], rel=1e-6)
    assert noisy.kernel[2] > full.kernel[2]
    far = GaussianProcess.fit(np.sqrt(3) * X + 5, accuracy, y, full)  # lengths are counted in distances
    np.testing.assert_allclose(far.kernel, full.kernel, rtol=1e-5)


def test_where_all_but_one_answer_alike_nothing_is_made_of_rounding():
    """The one alone tells how scores go with accuracy: without it nobody knows, and no deviation is absurd."""
    rng = np.random.default_rng(0)
    grades = np.ones((10, 5))
    grades[4, 0] = 0.0
    scores = 0.97 + 0.02 * rng.standard_normal(10)
    gp = GaussianProcess.fit(grades, grades.mean(axis=1), scores)
    error, sd = gp.left_out(np.arange(10))
    assert (error[4], sd[4]) == pytest.approx((0.0, scores.std()))
    assert np.abs(error).max() < 0.1
    assert sd.min() > 0.001
    new = rng.integers(0, 2, (6, 5)).astype(float)
    _, deviation = gp.predict(new, new.mean(axis=1))
    assert deviation.max() < 0.5
