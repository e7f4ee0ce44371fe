"""What the default anchors promise beyond the contract of every selection."""

import numpy as np
import pytest

from disco_eval import Items, Responses, ValidationError
from disco_eval.select import auto, hybrid, selector, sharp, stratified
from tests.conftest import population


def with_items(r, **more):
    items = Items(r.items.ids, label=r.items.label, n_choices=r.items.n_choices, **more)
    return Responses(r.models, items, r.correct, r.probs)


@pytest.mark.parametrize("name", ["auto", "stratified", "hybrid"])
def test_weights_are_shares_divided_by_chances(name):
    r = population(40, 120)
    a = selector(name)(r, 20, rng=0)
    known = np.isfinite(a.chance)
    assert known.sum() >= 10
    raw = r.items.weight[a.positions] * np.where(known, 1 / np.where(known, a.chance, 1), 1)
    np.testing.assert_allclose(a.weights, raw / raw.sum())


def test_stratified_holds_easy_and_hard_items_in_proportion():
    r = population(40, 200)
    a = stratified(r, 20, rng=0)
    rank = np.argsort(np.argsort(r.grades().mean(axis=0)))[a.positions]
    assert np.abs(np.sort(rank) - (np.arange(20) + 0.5) * 10).max() <= 21  # one step, and half a step of shuffling


def test_heavy_items_come_more_often_and_weightless_ones_never():
    r = population(30, 60)
    weight = np.where(np.arange(60) < 20, 0.0, np.where(np.arange(60) < 40, 1.0, 3.0))
    heavy = with_items(r, weight=weight)
    hits = np.zeros(60)
    for seed in range(200):
        hits[stratified(heavy, 10, rng=seed).positions] += 1
    assert hits[:20].sum() == 0
    assert hits[40:].sum() / hits[20:40].sum() == pytest.approx(3, rel=0.2)
    with pytest.raises(ValidationError, match="only 40 items"):
        auto(heavy, 41, rng=0)


def test_sharp_explains_more_than_chance():
    r = population(60, 200)
    score, grades = r.scores(), r.grades()

    def left(a):
        mean = grades[:, a.positions].mean(axis=1)
        return 1 - np.corrcoef(mean, score)[0, 1] ** 2

    assert left(sharp(r, 10, rng=0)) < np.mean([left(stratified(r, 10, rng=s)) for s in range(20)])


def test_a_budget_is_kept_and_cheap_items_are_preferred():
    r = population(40, 100)
    cost = np.where(np.arange(100) % 2 == 0, 1.0, 9.0)
    priced = with_items(r, cost=cost)
    a = sharp(priced, 50, rng=0, cost_power=1.0, budget=60.0)
    assert cost[a.positions].sum() <= 60
    assert (cost[a.positions] == 1).mean() > 0.8
    with pytest.raises(ValidationError, match="have none"):
        sharp(r, 10, rng=0, cost_power=1.0)
    with pytest.raises(ValidationError, match="budget of 2"):
        sharp(priced, 10, rng=0, budget=2.0)
    with pytest.raises(ValidationError, match="cost_power"):
        sharp(priced, 10, rng=0, cost_power=2.0)


def test_options_out_of_range_are_refused():
    r = population()
    with pytest.raises(ValidationError, match="by_chance"):
        hybrid(r, 5, rng=0, by_chance=0.0)
