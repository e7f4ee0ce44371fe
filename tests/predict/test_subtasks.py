"""Estimates of subtasks."""

import numpy as np
import pytest

from disco_eval import Items, Models, Responses, condense, load
from disco_eval.predict.subtasks import SubtaskModel
from tests.conftest import population


def specialists(n_models: int = 60, n_items: int = 300, seed: int = 0) -> Responses:
    """Two kinds of models of like average: one is good at subtask a, the other at b."""
    rng = np.random.default_rng(seed)
    ability, kind = rng.normal(0.5, 0.8, n_models), rng.integers(0, 2, n_models) * 2 - 1
    half = np.repeat([1, -1], n_items // 2)
    chance = 1 / (1 + np.exp(-(ability[:, None] + 1.2 * kind[:, None] * half - rng.normal(0, 1, n_items))))
    items = Items([f"t/{i}" for i in range(n_items)], subtask=np.where(half > 0, "a", "b"))
    grades = (rng.random(chance.shape) < chance).astype(np.float32)
    return Responses(Models([f"m{i}" for i in range(n_models)]), items, grades)


def test_they_tell_what_the_overall_score_cannot():
    everyone = specialists()
    sources, new = everyone.pick(models=slice(0, 45)), everyone.pick(models=slice(45, 60))
    small = condense(sources, 60, rng=0)
    truth = new.subtask_scores()
    found = np.array([[s.score for s in e.subtasks] for e in small.estimate(new)])
    line = small.subtask_model.line
    scores = np.array([e.score for e in small.estimate(new)])
    alone = line[0] + scores[:, None] * line[1]
    assert np.abs(found - truth).mean() < 0.6 * np.abs(alone - truth).mean()
    held = [
        s.low <= t <= s.high
        for e, row in zip(small.estimate(new), truth, strict=True)
        for s, t in zip(e.subtasks, row, strict=True)
    ]
    assert np.mean(held) > 0.75  # 30 intervals at 90 %
    assert [s.name for s in small.estimate(new)[0].subtasks] == ["a", "b"]
    assert sum(s.n_anchors for s in small.estimate(new)[0].subtasks) == 60


def test_they_average_to_the_overall_estimate():
    r = population(40, 120, graded=True)
    small = condense(r, 30, rng=0)
    weight = r.items.weight / r.items.weight.sum()
    share = np.array([weight[r.items.subtask == name].sum() for name in small.subtask_names])
    model, part = small.subtask_model, r.align(small.anchors.ids)
    scores = np.array([e.score for e in small.estimate(r)])
    values = model.predict(part, scores)
    inside = ((values > 0) & (values < 1)).all(axis=1)
    assert inside.sum() > 20
    np.testing.assert_allclose((values @ share)[inside], scores[inside], atol=1e-9)


@pytest.mark.parametrize("graded", [False, True])
def test_saved_and_loaded_they_are_the_same(graded, tmp_path):
    r = population(30, 90, graded=graded)
    small = condense(r, 20, rng=0)
    small.save(tmp_path / "c")
    assert load(tmp_path / "c").estimate(r) == small.estimate(r)


def test_grades_alone_are_enough_where_probabilities_were_learned_from():
    r = population(30, 90)
    small = condense(r, 20, rng=0, predict="direct")
    graded = Responses(r.models, r.items, r.correct)
    off = [
        abs(a.score - b.score)
        for one, other in zip(small.estimate(r), small.estimate(graded), strict=True)
        for a, b in zip(one.subtasks, other.subtasks, strict=True)
    ]
    assert max(off) < 0.2  # 20 anchors: without the probabilities a subtask moves by a few answers' worth at most


def test_copies_of_a_model_do_not_make_noise_worth_learning():
    """Subtask scores of pure noise: whoever leaves out single models learns them by heart from their copies."""
    rng = np.random.default_rng(0)
    n, copies = 30, 4
    base = np.repeat(np.arange(n), copies)
    grades = (rng.random((n, 80)) < 0.5).astype(float)[base]
    known = Responses.from_correct([f"m{k}" for k in range(n * copies)], [f"i{j}" for j in range(80)], grades)
    scores = rng.uniform(0.4, 0.6, n)[base]
    noise = 0.5 + 0.1 * np.clip(rng.normal(size=(n, 3)), -2, 2)[base]
    learned = {}
    for name, groups in (("alone", np.arange(n * copies)), ("together", base)):
        model = SubtaskModel.fit(known, noise, scores, groups)
        learned[name] = np.var(noise - model.predict(known, scores)) / np.var(noise)
    assert learned["alone"] < 0.1
    assert learned["together"] > 0.7


def test_a_benchmark_without_subtasks_has_none():
    r = population(24, 40, graded=True)
    plain = Responses(r.models, Items(r.items.ids), r.correct)
    small = condense(plain, 10, rng=0)
    assert small.subtask_names == ()
    assert all(e.subtasks == () for e in small.estimate(plain))
