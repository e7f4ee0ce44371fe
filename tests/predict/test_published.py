"""p-IRT, gp-IRT, ability-IRT, Lifelong and the MLPs against slow loops and known truths."""

import sys

import numpy as np
import pytest

from disco_eval import DiscoError, Items, Models, Responses, ValidationError
from disco_eval.numerics.irt import fit_ability, probability
from disco_eval.predict import predictor
from disco_eval.predict.mlp import MLP2, MLP3
from disco_eval.select import anchor_corr, every_kth, selector, uniform
from disco_eval.select.shared import source_irt
from tests.conftest import population


def two_parameter(n_models=160, n_items=600, seed=0, truth=False):
    """Answers drawn from the model that p-IRT assumes, two dimensions."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, 2))
    a = np.c_[np.exp(0.6 * rng.normal(size=n_items)), 0.6 * rng.normal(size=n_items)]
    b = 2 * rng.normal(size=n_items)
    p = probability(theta, a, b)
    ids = [f"m{k:03d}" for k in rng.permutation(n_models)]
    if truth:
        return a, b
    return Responses.from_correct(ids, [f"i{k}" for k in range(n_items)], (rng.random(p.shape) < p).astype(float))


def error(r, anchors, name, n_sources=120, **options):
    source, target = r.pick(models=np.arange(n_sources)), r.pick(models=np.arange(n_sources, r.n_models))
    model = predictor(name, **options).fit(source, anchors, rng=0)
    return np.abs(model.predict(target.align(anchors.ids)) - target.scores()).mean()


def test_on_data_of_their_model_pirt_and_gpirt_beat_direct_evaluation():
    """The bound is p-IRT with the parameters that made the answers: nobody can know more."""
    r, (a, b) = two_parameter(), two_parameter(truth=True)
    source, target = r.pick(models=np.arange(120)), r.pick(models=np.arange(120, 160))
    errors = {name: [] for name in ("direct", "pirt", "gpirt", "ability_irt")}
    oracle = []
    for seed in range(4):
        anchors = uniform(source, 60, rng=seed)
        for name, found in errors.items():
            found.append(error(r, anchors, name))
        at, grades = anchors.positions, target.grades()
        p = probability(fit_ability(grades[:, at], a[at], b[at]), a, b)
        p[:, at] = grades[:, at]
        oracle.append(np.abs(p.mean(axis=1) - target.scores()).mean())
    mean = {name: np.mean(found) for name, found in errors.items()}
    assert mean["pirt"] < 1.25 * np.mean(oracle)
    for name in ("pirt", "gpirt", "ability_irt"):
        assert mean[name] < 0.85 * mean["direct"]


def test_clustered_anchors_and_their_weights_beat_random_ones():
    r = two_parameter(seed=2)
    source = r.pick(models=np.arange(120))
    clustered = np.mean([error(r, anchor_corr(source, 40, rng=s), "weighted_sum") for s in range(3)])
    random = np.mean([error(r, uniform(source, 40, rng=s), "direct") for s in range(5)])
    assert clustered < random


@pytest.mark.parametrize("graded", [False, True])
def test_pirt_is_the_formula(graded):
    r = population(30, 50, graded=graded)
    anchors = uniform(r, 10, rng=0)
    fitted = source_irt(r, 2).full
    estimate = predictor("pirt", n_dims=2).fit(r, anchors).predict(r.align(anchors.ids))
    a, b, at = fitted.discrimination, fitted.difficulty, set(anchors.positions.tolist())
    weight, total = r.items.weight, r.items.weight.sum()
    ability = fit_ability(r.grades()[:, anchors.positions], a[anchors.positions], b[anchors.positions])
    for m in range(30):
        slow = 0.0
        for i in range(50):
            expected = 1 / (1 + np.exp(-(sum(a[i] * ability[m]) - b[i])))
            slow += weight[i] / total * (r.correct[m, i] if i in at else expected)
        assert estimate[m] == pytest.approx(min(max(slow, 0), 1), abs=1e-9)


@pytest.mark.parametrize("select", ["stratified", "uniform"])
def test_gpirt_counts_anchors_drawn_by_what_items_count_for_once(select):
    """A tenth of the items count for half, so about half of the anchors are of them, and all anchors count alike."""
    r = population(60, 220, graded=True)
    weight = np.where(np.arange(220) < 20, 10.0, 1.0)
    r = Responses(r.models, r.items.having(weight=weight), r.correct)
    anchors = selector(select, **({"stratify": True} if select == "uniform" else {}))(r, 20, 0)
    model = predictor("gpirt", n_dims=1).fit(r, anchors)
    grades = r.grades(anchors.positions)
    part = model._mix * grades @ anchors.weights + (1 - model._mix) * predictor("pirt", n_dims=1).fit(
        r, anchors
    ).predict(r.align(anchors.ids))
    assert model.predict(r.align(anchors.ids)) == pytest.approx(np.clip(part, 0, 1))


def test_gpirt_lies_between_its_parts_by_its_own_mixture():
    r = population(30, 60)
    for anchors, quarter in ((uniform(r, 12, rng=0), 1), (anchor_corr(r, 12, rng=0), 4)):
        model = predictor("gpirt", n_dims=2).fit(r, anchors)
        answers = r.align(anchors.ids)
        part = predictor("pirt", n_dims=2).fit(r, anchors).predict(answers)
        name = "direct" if quarter == 1 else "weighted_sum"
        whole = predictor(name).fit(r, anchors).predict(answers)
        mix = model.state()["mix"][0]
        np.testing.assert_allclose(model.predict(answers), mix * whole + (1 - mix) * part, atol=1e-9)
        fitted = source_irt(r, 2)
        rest = fitted.rest
        at = anchors.positions
        held = r.grades()[fitted.held]
        share = r.items.weight / r.items.weight.sum()
        p = probability(
            fit_ability(held[:, at], rest.discrimination[at], rest.difficulty[at]), rest.discrimination, rest.difficulty
        )
        p[:, at] = held[:, at]
        b = np.abs(p @ share - r.scores()[fitted.held]).mean()
        v = np.mean([row.var() for row in r.grades()]) / (12 * quarter)
        assert mix == pytest.approx(b**2 / (v + b**2), rel=1e-4)


@pytest.mark.parametrize("options", [{}, {"cost_power": 0.5}])
def test_anchors_of_unequal_weight_that_chance_drew_are_not_taken_for_clustered_ones(options):
    """Their weighted mean varies as that of random items does: var / K, not a quarter of it."""
    r = population(30, 60)
    items = Items(r.items.ids, cost=1.0 + np.arange(60), n_choices=r.items.n_choices, label=r.items.label)
    r = Responses.from_probs(r.models, items, r.probs)
    anchors = selector("stratified" if options else "hybrid")(r, 12, rng=0, **options)
    if not options:
        assert 0 < np.isnan(anchors.chance).sum() < 12
    assert np.ptp(anchors.weights) > 1e-6
    mix = predictor("gpirt", n_dims=2).fit(r, anchors).state()["mix"][0]
    fitted, at = source_irt(r, 2), anchors.positions
    held, a, b = r.grades()[fitted.held], fitted.rest.discrimination, fitted.rest.difficulty
    p = probability(fit_ability(held[:, at], a[at], b[at]), a, b)
    p[:, at] = held[:, at]
    error = np.abs(p.mean(axis=1) - r.scores()[fitted.held]).mean()
    v = np.mean([row.var() for row in r.grades()]) / 12
    assert mix == pytest.approx(error**2 / (v + error**2), rel=1e-4)


def test_the_source_fit_does_not_depend_on_the_order_of_models_or_items():
    r = population(30, 50)
    rng = np.random.default_rng(0)
    models, items = rng.permutation(30), rng.permutation(50)
    one, two = source_irt(r, 2), source_irt(r.pick(models=models, items=items), 2)
    np.testing.assert_array_equal(one.full.difficulty[items], two.full.difficulty)
    np.testing.assert_array_equal(one.full.ability[models], two.full.ability)
    assert set(r.models.ids[one.held]) == set(r.models.ids[models][two.held])


def test_item_response_theory_needs_models():
    r = population(4, 20)
    with pytest.raises(ValidationError, match="at least 5 source models, there are 4"):
        predictor("pirt").fit(r, uniform(r, 5, rng=0))
    with pytest.raises(ValidationError, match="15 dimensions of ability need more source models than 12"):
        source_irt(population(12, 20), 15)


def test_lifelong_by_a_slow_loop():
    r = population(25, 70)
    source, target = r.pick(models=np.arange(20)), r.pick(models=np.arange(20, 25))
    anchors = every_kth(source, 9, rng=0)
    estimate = predictor("lifelong").fit(source, anchors).predict(target.align(anchors.ids))
    mean = source.grades().mean(axis=0)
    for m in range(5):
        right = [i for i in anchors.positions if target.correct[m, i] == 1]
        threshold = min((mean[i] for i in right), default=np.inf)
        share = sum(w for w, x in zip(r.items.weight, mean, strict=True) if x >= threshold - 1e-9)
        assert estimate[m] == pytest.approx(share / r.items.weight.sum())


def test_lifelong_with_fewest_errors_is_not_taken_in_by_one_lucky_guess():
    n = 40
    skill = np.linspace(0.2, 0.9, 30)
    y = (np.arange(n) < skill[:, None] * n).astype(float)  # everyone can do exactly the easiest ones
    source = Responses.from_correct([f"m{k}" for k in range(30)], [f"i{k:02d}" for k in range(n)], y)
    anchors = every_kth(source, 20, rng=0)
    lucky = y[[12]].copy()
    lucky[0, anchors.positions[-1]] = 1
    target = Responses.from_correct(["lucky"], source.items, lucky).align(anchors.ids)
    fewest = predictor("lifelong", threshold="fewest_errors").fit(source, anchors).predict(target)[0]
    hardest = predictor("lifelong").fit(source, anchors).predict(target)[0]
    assert fewest == pytest.approx(y[12].mean(), abs=1 / 20)
    assert hardest > 0.9
    with pytest.raises(ValidationError, match="threshold 'hard' is not known"):
        predictor("lifelong", threshold="hard")


def test_every_kth_by_a_slow_loop():
    r = Responses.from_correct(["a", "b", "c", "d"], [f"i{k}" for k in range(4)], np.tri(4))
    anchors = every_kth(r, 2, rng=0)
    np.testing.assert_array_equal(anchors.ids, ["i1", "i3"])  # easiest to hardest: i0 i1 i2 i3, middles of two halves
    np.testing.assert_allclose(anchors.criterion, [0.75, 0.25])


def test_mlp_slopes_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 5)), rng.random(12)
    for kind in (MLP2, MLP3):
        model = kind(epochs=1).fit(X, y, np.random.default_rng(1))
        slopes = model._slopes(X, y)

        def loss(model=model):
            return ((model.predict(X) - y) ** 2).mean()

        for layer, slope in zip(model._layers, slopes, strict=True):
            at = tuple(rng.integers(n) for n in layer.shape)
            before = layer[at]
            layer[at] = before + 1e-6
            up = loss()
            layer[at] = before - 1e-6
            down = loss()
            layer[at] = before
            assert slope[at] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_mlp_first_step_is_adamw_by_hand():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 3)), rng.random(8)
    one = MLP2(epochs=1).fit(X, y, np.random.default_rng(4))
    start = MLP2(epochs=1, learning_rate=1e-300).fit(X, y, np.random.default_rng(4))
    for after, before, slope in zip(one._layers, start._layers, start._slopes(X, y), strict=True):
        expected = before - 1e-3 * 0.01 * before - 1e-3 * slope / (np.abs(slope) + 1e-8)
        np.testing.assert_allclose(after, expected, atol=1e-12)


def test_mlps_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = 0.5 + 0.1 * np.abs(X[:, 0])
    for kind in (MLP2, MLP3):
        fitted = kind().fit(X, y, np.random.default_rng(0))
        assert np.abs(fitted.predict(X) - y).mean() < 0.6 * np.abs(y - y.mean()).mean()


def test_umap_without_the_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    r = population(30, 40)
    model = predictor("forest", reduction="umap", n_components=2)
    with pytest.raises(DiscoError, match=r"pip install 'disco-eval\[umap\]'"):
        model.fit(r, uniform(r, 10, rng=0), rng=0)
    with pytest.raises(DiscoError, match=r"reduction 'umapp' is not known\. Did you mean 'umap'"):
        predictor("forest", reduction="umapp")


def test_umap_where_it_is_installed():
    pytest.importorskip("umap")
    r = population(30, 40)
    anchors = uniform(r, 10, rng=0)
    model = predictor("knn", reduction="umap", n_components=2).fit(r, anchors, rng=0)
    estimate = model.predict(r.align(anchors.ids))
    assert ((estimate >= 0) & (estimate <= 1)).all()
    with pytest.raises(DiscoError, match="cannot be saved"):
        model.state()


def test_weights_of_a_benchmark_reach_the_clusters():
    """Items that do not count make no cluster heavy."""
    y = (np.random.default_rng(0).random((20, 40)) < 0.5).astype(float)
    weight = np.r_[np.ones(20), np.zeros(20)]
    r = Responses.from_correct(
        Models([f"m{k}" for k in range(20)]), Items([f"i{k}" for k in range(40)], weight=weight), y
    )
    anchors = anchor_corr(r, 20, rng=0)
    assert anchors.weights[anchors.positions < 20].sum() == pytest.approx(1, abs=0.2)
