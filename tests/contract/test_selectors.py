"""What every selection must do, whatever it chooses."""

import contextlib
import inspect
import itertools

import numpy as np
import pytest

from disco_eval import DiscoError, Items, Responses, ValidationError
from disco_eval.errors import options_of
from disco_eval.select import SELECTORS, selector
from tests.conftest import population

NEEDS_PROBABILITIES = {"anchor_conf"}
BY_WEIGHT = {"auto", "stratified", "hybrid", "sharp"}  # take no items that count for nothing


@pytest.fixture(params=sorted(SELECTORS))
def name(request):
    return request.param


def kinds(name):
    yield population(24, 60)
    yield population(24, 60, ragged=True)
    if name not in NEEDS_PROBABILITIES:
        yield population(24, 60, graded=True)


BAD = [0, -1, np.nan, np.inf, 10**9, 10**400, True, "maybe", [1], 1e-300, -0.5]  # or hardly ever good


def reordered(r: Responses, models, items) -> Responses:
    return r.pick(models=models, items=items)


def test_anchors_are_distinct_and_weighted(name):
    for r in kinds(name):
        for k in (1, 7, 60):
            a = selector(name)(r, k, rng=0)
            assert len(a) == k == len(set(a.ids.tolist()))
            np.testing.assert_array_equal(r.items.ids[a.positions], a.ids)
            assert a.weights.sum() == pytest.approx(1)
            assert (a.weights >= 0).all()
            assert a.criterion.shape == (k,)
            assert a.method == name


def test_same_rng_same_anchors(name):
    r = population()
    first = selector(name)(r, 9, rng=5)
    np.testing.assert_array_equal(first.ids, selector(name)(r, 9, rng=5).ids)
    np.testing.assert_array_equal(first.ids, selector(name)(r, 9, rng=np.random.default_rng(5)).ids)


def test_the_order_of_models_and_items_does_not_matter(name):
    for r in kinds(name):
        rng = np.random.default_rng(1)
        other = reordered(r, rng.permutation(r.n_models), rng.permutation(r.n_items))
        a, b = selector(name)(r, 8, rng=0), selector(name)(other, 8, rng=0)
        assert set(a.ids.tolist()) == set(b.ids.tolist())


def test_arguments_stay_as_they_were(name):
    r = population()
    before = (r.probs.copy(), r.correct.copy(), r.items.weight.copy())
    selector(name)(r, 8, rng=0)
    for array, old in zip((r.probs, r.correct, r.items.weight), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_more_anchors_than_items_are_refused(name):
    r = population(12, 20)
    for k in (21, 0, -1):
        with pytest.raises(ValidationError, match=f"{k} anchors were asked for, but the benchmark has 20 items"):
            selector(name)(r, k, rng=0)


def test_a_number_of_anchors_that_is_none_is_refused(name):
    for value in (10.0, "10", True):
        with pytest.raises(ValidationError, match=f"n_anchors must be a whole number, got {value!r}"):
            selector(name)(population(), value, 0)


def test_items_without_weight_are_taken_in_no_harm_or_refused(name):
    """Ten of 60 items count: five anchors can be had by any method; 20 only where some may count for nothing."""
    r = population()
    weight = np.where(np.arange(60) % 6 == 0, 1.0, 0.0)
    items = Items(r.items.ids, weight=weight, n_choices=r.items.n_choices, label=r.items.label)
    r = Responses.from_probs(r.models, items, r.probs)
    for k in (5, 20):
        if k == 20 and name in BY_WEIGHT:
            with pytest.raises(ValidationError, match=r"10 items .*weight|0 items with a weight are left"):
                selector(name)(r, k, rng=0)
            continue
        a = selector(name)(r, k, rng=0)
        assert len(a) == k == len(set(a.ids.tolist()))
        assert np.isfinite(a.weights).all()
        assert a.weights.sum() == pytest.approx(1)


def test_works_from_disk(name, tmp_path):
    from disco_eval import open_responses

    r = population()
    r.save(tmp_path / "s.zarr")
    a = selector(name)(open_responses(tmp_path / "s.zarr"), 8, rng=0)
    assert set(a.ids.tolist()) == set(selector(name)(r, 8, rng=0).ids.tolist())


def test_is_documented(name):
    doc = inspect.getdoc(SELECTORS[name])
    assert doc
    assert len(doc) > 80


def test_every_option_is_heard_or_refused_in_words(name):
    r = population(24, 40)
    about = {k: getattr(r.items, k) for k in ("weight", "n_choices", "label")}
    r = Responses(r.models, Items(r.items.ids, cost=np.arange(1.0, 41.0), **about), r.correct, r.probs)
    options = [o for o in options_of(SELECTORS[name]).split(", ") if o != "none"]
    for option, value in itertools.product(options, BAD):
        with contextlib.suppress(DiscoError):
            assert len(selector(name, **{option: value})(r, 10, np.random.default_rng(0))) <= 10


@pytest.mark.parametrize("value", ["maybe", 2, 0.5, np.nan, None, [1]])
def test_what_is_neither_true_nor_false_is_refused(value):
    with pytest.raises(ValidationError, match="option 'stratify' of selection 'uniform' is true or false, got"):
        selector("uniform", stratify=value)
    selector("uniform", stratify=1)


def test_an_unknown_name_says_which_there_are():
    with pytest.raises(DiscoError, match=r"'jsdd' is not known\. Did you mean 'jsd'\? Choose from: .*uniform"):
        selector("jsdd")
