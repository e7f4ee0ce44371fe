"""The default anchors: spread over difficulty, telling, balanced, and careful where sources are few or alike."""

import numpy as np
import pytest

from disco_eval import Items, Models, Responses
from disco_eval.select import auto, default, stratified


def world(n_models=200, n_items=600, seed=0):
    """0/1 answers by ability; items differ in difficulty and in how much they tell about the ability."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(0, 1, (n_models, 1)), rng.normal(0, 1.5, n_items)
    p = 1 / (1 + np.exp(-(rng.uniform(0, 3, n_items) * ability - difficulty)))
    right = rng.random(p.shape) < p
    return Responses.from_correct([f"m{i}" for i in range(n_models)], [f"i{j}" for j in range(n_items)], right)


def left(known, new, a):
    """Part of the variance of new models' scores that a ridge regression on the known ones' anchors leaves."""
    X, score = known.grades(a.positions), known.scores()
    Z = X - X.mean(axis=0)
    slope = np.linalg.solve(Z.T @ Z + 0.1 * len(Z) * np.eye(Z.shape[1]), Z.T @ (score - score.mean()))
    off = new.scores() - score.mean() - (new.grades(a.positions) - X.mean(axis=0)) @ slope
    return float((off**2).mean() / new.scores().var())


def test_every_step_of_difficulty_has_its_anchor():
    r = world()
    rank = np.argsort(np.argsort(r.item_means(), kind="stable"))[auto(r, 50, rng=0).positions]
    assert np.abs(np.sort(rank) - (np.arange(50) + 0.5) * 12).max() <= 25  # one step, and half a step of shuffling


def test_anchors_tell_more_than_those_drawn_blindly_to_models_not_seen():
    r = world()
    known, new = r.pick(models=np.arange(0, 200, 2)), r.pick(models=np.arange(1, 200, 2))
    ours = [left(known, new, auto(known, 40, rng=s)) for s in range(10)]
    blind = [left(known, new, stratified(known, 40, rng=s, draws=30)) for s in range(10)]
    assert np.mean(ours) < 0.9 * np.mean(blind)


def test_the_weighted_mean_follows_the_score():
    """With a slope near 1 over the sources, although telling items alone would make it steeper."""
    r = world()

    def steepness(a):
        return np.polyfit(r.scores(), r.grades(a.positions) @ a.weights, 1)[0]

    balanced = np.mean([steepness(auto(r, 40, rng=s)) for s in range(10)])
    with pytest.MonkeyPatch.context() as m:
        m.setattr(default, "BALANCING", 0.0)
        telling = np.mean([steepness(auto(r, 40, rng=s)) for s in range(10)])
    assert 0.95 < balanced < 1 + 0.5 * (telling - 1)


def test_few_or_alike_sources_have_fewer_candidates():
    many = world()
    copies = Responses(Models([f"c{i}" for i in range(200)]), many.items, np.repeat(many.grades()[:10], 20, axis=0))
    counts = [default._n_candidates(r) for r in (many, many.pick(models=np.arange(60)), copies)]
    assert counts[0] > counts[1] > counts[2] == 2


def test_items_that_must_come_do_and_none_comes_twice():
    r = world(40, 60)
    weight = np.ones(60)
    weight[[3, 30]] = 50.0
    heavy = Responses(r.models, Items(r.items.ids, weight=weight), r.correct)
    for n in (5, 20, 58, 60):
        a = auto(heavy, n, rng=n)
        assert len(set(a.positions.tolist())) == n
        assert {3, 30} <= set(a.positions.tolist())
        assert a.chance[np.isin(a.positions, [3, 30])] == pytest.approx(1)


def test_dear_items_are_taken_for_what_they_tell_beside_what_they_cost():
    r = world(100, 400)
    cost = np.exp(np.random.default_rng(1).normal(0, 1.5, 400))
    priced = Responses(r.models, Items(r.items.ids, cost=cost), r.correct)
    budget = 0.1 * cost.sum()
    counts, spent, apart = [], [], []
    for seed in range(10):
        ours = auto(priced, 100, seed, cost_power=0.5, budget=budget)
        blind = stratified(priced, 100, seed, draws=30, cost_power=0.5, budget=budget)
        counts.append(len(ours) / len(blind))
        spent.append(cost[ours.positions].sum() / budget)
        apart.append([np.abs(r.grades(a.positions) @ a.weights - r.scores()).mean() for a in (ours, blind)])
    assert max(spent) <= 1
    assert np.mean(counts) > 0.85
    off, off_blind = np.mean(apart, axis=0)
    assert off < 1.2 * off_blind


def test_more_anchors_than_a_design_holds_have_fewer_candidates(monkeypatch):
    r = world(40, 200)
    monkeypatch.setattr(default, "MOST_NUMBERS", 100 * 100 * 1)
    blind = auto(r, 100, rng=0)
    monkeypatch.setattr(default, "MOST_NUMBERS", 100 * 100 * 3)
    assert set(auto(r, 100, rng=0).positions.tolist()) != set(blind.positions.tolist())
    assert len(set(blind.positions.tolist())) == 100
