"""Fitted models equal scikit-learn's, and the signature holds what it says."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from disco_eval import DiscoError, FormatError, ValidationError
from disco_eval.numerics.forest import Trees
from disco_eval.predict import predictor, signature
from disco_eval.predict.regressors import Boosting, Forest
from disco_eval.select import Anchors, uniform
from tests import oracles
from tests.conftest import population


def signatures(n_components=10):
    source, target = population(40, 50, seed=1), population(15, 50, seed=2)
    target = target.pick(items=[list(target.items.ids).index(i) for i in source.items.ids])
    anchors = uniform(source, 12, rng=0)
    X, Xt = (r.align(anchors.ids).probs.reshape(r.n_models, -1) for r in (source, target))
    pca = PCA(n_components, svd_solver="full").fit(X)
    return source, target, anchors, pca.transform(X), pca.transform(Xt)


SKLEARN = {
    "linear": lambda: LinearRegression(),
    "ridge": lambda: Ridge(alpha=10),
    "lasso": lambda: Lasso(alpha=1e-4, max_iter=20_000),
    "knn": lambda: KNeighborsRegressor(1),
}


@pytest.mark.parametrize("name", sorted(SKLEARN))
def test_equals_scikit_learn(name):
    source, target, anchors, X, Xt = signatures()
    expected = np.clip(SKLEARN[name]().fit(X, source.scores()).predict(Xt), 0, 1)
    model = predictor(name, n_components=10).fit(source, anchors, rng=0)
    np.testing.assert_allclose(model.predict(target.align(anchors.ids)), expected, atol=1e-9)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_knn_equals_scikit_learn(k, metric):
    source, target, anchors, X, Xt = signatures()
    expected = KNeighborsRegressor(k, metric=metric).fit(X, source.scores()).predict(Xt)
    model = predictor("knn", n_components=10, k=k, metric=metric).fit(source, anchors)
    np.testing.assert_allclose(model.predict(target.align(anchors.ids)), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda: Forest(30), lambda seed: RandomForestRegressor(30, random_state=seed)),
        (lambda: Boosting(40), lambda seed: GradientBoostingRegressor(n_estimators=40, random_state=seed)),
    ],
)
def test_trees_equal_scikit_learn(mine, theirs):
    source, _, _, X, Xt = signatures()
    seed = int(np.random.default_rng(3).integers(2**31))
    expected = theirs(seed).fit(X, source.scores()).predict(Xt)
    got = mine().fit(X, source.scores(), np.random.default_rng(3)).predict(Xt)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_trees_equal_a_walk_by_hand():
    _, _, _, X, Xt = signatures()
    forest = RandomForestRegressor(5, random_state=0).fit(X, np.arange(len(X)))
    trees = Trees.from_sklearn(forest.estimators_)
    expected = [[oracles.tree_value(e.tree_, row) for e in forest.estimators_] for row in Xt]
    np.testing.assert_array_equal(trees.predict(Xt), expected)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 0, "before its parent"),
        ("right", 10_000, "outside its tree"),
        ("right", -1, "one child"),
        ("feature", 99, "does not exist"),
        ("counts", 10_000, "do not match"),
    ],
)
def test_crafted_trees_are_refused(field, value, message):
    """Arrays from a file can make a walk that never ends or leaves the arrays; they are refused before any walk."""
    model = Forest(3).fit(
        np.random.default_rng(0).normal(size=(30, 4)), np.linspace(0, 1, 30), np.random.default_rng(0)
    )
    state = {k: v.copy() for k, v in model.state().items()}
    state[field][0] = value
    with pytest.raises(FormatError, match=message):
        Forest.restore({"n_trees": 3}, state)


def test_direct_and_weighted_sum_are_means():
    r = population(6, 30)
    anchors = Anchors.of(r.items, np.array([3, 8, 20]), "mine", weights=np.array([5, 3, 2]))
    answers = r.align(anchors.ids)
    for name, weights in {"weighted_sum": [5, 3, 2], "direct": [1, 1, 1]}.items():
        expected = [oracles.weighted_mean(row, weights) for row in answers.correct.tolist()]
        np.testing.assert_allclose(predictor(name).fit(r, anchors).predict(answers), expected, atol=1e-12)


def test_a_signature_holds_own_choices_only():
    r = population(5, 6, ragged=True)
    expected = [np.concatenate([r.probs[m, i, : r.items.n_choices[i]] for i in range(6)]) for m in range(5)]
    np.testing.assert_array_equal(signature(r), expected)
    wide = signature(r, ("probs", "label_prob", "correct"))
    np.testing.assert_array_equal(wide, np.concatenate([expected, r.label_probs(), r.grades()], axis=1))


def test_signatures_of_grades_hold_grades():
    r = population(5, 6, graded=True)
    np.testing.assert_array_equal(signature(r), r.grades())
    with pytest.raises(ValidationError, match="grades only"):
        signature(r, ("label_prob",))
    with pytest.raises(ValidationError, match="signature part 'probabilities' is not known"):
        signature(r, ("probabilities",))


def test_components_never_exceed_what_there_is():
    r = population(12, 30)
    anchors = uniform(r, 5, rng=0)
    model = predictor("ridge").fit(r, anchors)
    assert model.state()["components"].shape == (11, 20)


def test_without_reduction():
    r = population(12, 30)
    anchors = uniform(r, 5, rng=0)
    model = predictor("ridge", n_components=None).fit(r, anchors)
    X = r.align(anchors.ids).probs.reshape(12, -1)
    expected = Ridge(alpha=10).fit(X, r.scores()).predict(X)
    np.testing.assert_allclose(model.predict(r.align(anchors.ids)), expected, atol=1e-12)


def test_a_forest_never_leaves_the_sources_range():
    source, target, anchors, _, _ = signatures()
    estimate = predictor("forest").fit(source, anchors, rng=0).predict(target.align(anchors.ids))
    assert estimate.min() >= source.scores().min()
    assert estimate.max() <= source.scores().max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "knn", "k": 0}, "k >= 1"),
        ({"name": "knn", "metric": "manhattan"}, "metric"),
        ({"name": "forest", "n_trees": 0}, "at least one tree"),
        ({"name": "ridge", "alpha": -1}, "alpha >= 0"),
        ({"name": "ridge", "n_components": 0}, "n_components must be at least 1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(DiscoError, match=message):
        predictor(**options)


def test_more_neighbours_than_sources_are_refused():
    r = population(12, 30)
    with pytest.raises(ValidationError, match="k=13 needs as many source models, there are 12"):
        predictor("knn", k=13).fit(r, uniform(r, 5, rng=0))


def test_principal_axes_of_long_rows_are_those_of_the_full_decomposition():
    from disco_eval.predict.signature import _pca, _pca_of_rows

    X = np.random.default_rng(0).normal(size=(30, 500)) * np.linspace(3, 0.1, 500)
    for n in (1, 10, 29):
        for a, b in zip(_pca(X, n), _pca_of_rows(X, n), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


def test_with_very_many_sources_a_process_learns_from_some_whatever_their_order(monkeypatch):
    from disco_eval import select
    from disco_eval.predict import Auto

    monkeypatch.setattr("disco_eval.predict.processes.MOST_SOURCES", 20)
    r = population(60, 40)
    anchors = select.auto(r, 12, 0)
    fitted = Auto().fit(r, anchors)
    assert len(fitted._processes.each[0].alpha) == 20
    turned = r.pick(models=np.random.default_rng(0).permutation(60))
    answers = r.pick(items=anchors.positions)
    again = Auto().fit(turned, anchors)
    np.testing.assert_allclose(again.predict(answers), fitted.predict(answers), atol=1e-9)
    assert np.abs(fitted.predict(answers) - r.scores()).mean() < 0.1
