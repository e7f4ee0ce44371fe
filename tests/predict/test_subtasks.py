"""Estimates of subtasks."""

from pathlib import Path

import numpy as np
import pytest

from disco_eval import Items, Models, Responses, condense, load
from disco_eval.predict.subtasks import SubtaskModel, informed
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
    scores = np.array([e.score for e in small.estimate(r)])
    values = np.array([[s.score for s in e.subtasks] for e in small.estimate(r)])
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
    """Anchors and the rest are noise of their own: whoever leaves out single models learns it from their copies."""
    rng = np.random.default_rng(0)
    base = np.repeat(np.arange(30), 4)
    grades = (rng.random((30, 110)) < 0.5).astype(float)[base]
    items = Items([f"i{j}" for j in range(110)], subtask=[f"s{j % 3}" for j in range(110)])
    source = Responses.from_correct([f"m{k}" for k in range(120)], items, grades)
    alone, together = (SubtaskModel.fit(source, np.arange(80), groups) for groups in (np.arange(120), base))
    assert np.linalg.norm(together.weights) < 0.3 * np.linalg.norm(alone.weights)


def test_a_benchmark_without_subtasks_has_none():
    r = population(24, 40, graded=True)
    plain = Responses(r.models, Items(r.items.ids), r.correct)
    small = condense(plain, 10, rng=0)
    assert small.subtask_names == ()
    assert all(e.subtasks == () for e in small.estimate(plain))


def leaderboard(n_models: int = 70, seed: int = 0) -> Responses:
    """Twenty subtasks of 3 to 84 items, each as much of the score as any other."""
    rng = np.random.default_rng(seed)
    sizes = [3] * 8 + [20] * 7 + [56] * 3 + [84] * 2
    names = np.repeat([f"s{k:02d}" for k in range(len(sizes))], sizes)
    own = rng.normal(0, 0.7, (n_models, len(sizes)))[:, np.repeat(np.arange(len(sizes)), sizes)]
    logit = rng.normal(0, 1, (n_models, 1)) + own - rng.normal(0, 1.2, len(names))
    items = Items([f"i{i}" for i in range(len(names))], subtask=names, weight=1 / np.repeat(sizes, sizes))
    grades = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)
    return Responses.from_correct([f"m{i}" for i in range(n_models)], items, grades)


def by_subtask(small, answers: Responses, more: int = 0):
    """(estimate, truth, n_anchors) of every model and subtask, each (n_models, n_subtasks); intervals (…, 2)."""
    found = [e.subtasks for e in small.estimate(answers, more=more)]
    scores = np.array([[s.score for s in row] for row in found])
    asked = np.array([[s.n_anchors for s in row] for row in found])
    spans = np.array([[(s.low, s.high) for s in row] for row in found])
    at = [answers.items.subtasks.index(name) for name in small.subtask_names]
    return scores, answers.subtask_scores()[:, at], asked, spans


def test_what_was_answered_of_a_subtask_is_known_and_only_the_rest_estimated():
    r = leaderboard()
    small = condense(r.pick(models=slice(0, 50)), 100, rng=0, curve=False)
    new = r.pick(models=slice(50, 70))
    sizes = np.array([(r.items.subtask == name).sum() for name in small.subtask_names])
    for more in (0, 60, 200):
        scores, truth, asked, spans = by_subtask(small, new, more)
        assert asked.sum(axis=1).tolist() == [100 + more] * 20
        whole = asked[0] == sizes
        assert whole.sum() >= 8
        np.testing.assert_allclose(scores[:, whole], truth[:, whole], atol=1e-9)
        np.testing.assert_allclose(spans[:, whole, 1], spans[:, whole, 0], atol=1e-9)
        held = (spans[..., 0] <= truth + 1e-9) & (truth <= spans[..., 1] + 1e-9)
        assert held[:, ~whole].mean() > 0.8
    assert (small.subtask_mae == 0).sum() >= 8  # as `condense` prints


def test_further_items_tell_of_the_subtasks_that_they_are_of():
    r = leaderboard()
    small = condense(r.pick(models=slice(0, 50)), 60, rng=0, curve=False)
    new = r.pick(models=slice(50, 70))
    errors, widths = [], []
    for more in (0, 60, 240):
        scores, truth, _, spans = by_subtask(small, new, more)
        errors.append(np.abs(scores - truth).mean())
        widths.append(np.ptp(spans, axis=2).mean())
    assert errors[1] < 0.95 * errors[0]
    assert errors[2] < 0.6 * errors[0]
    assert widths[2] < 0.7 * widths[0]


def test_where_all_items_are_anchors_nothing_is_estimated():
    r = leaderboard()
    small = condense(r.pick(models=slice(0, 50)), r.n_items, rng=0, curve=False)
    scores, truth, _, spans = by_subtask(small, r.pick(models=slice(50, 70)))
    np.testing.assert_allclose(scores, truth, atol=1e-9)
    np.testing.assert_allclose(spans[..., 1], spans[..., 0], atol=1e-9)
    assert not small.subtask_mae.any()


def test_a_prediction_counts_by_how_much_of_its_error_is_its_own():
    """Normal means: the best weight of m observations is m d / (m d + v), and that is what is left of the error."""
    rng = np.random.default_rng(0)
    n, size, seen = 4000, 200, 20
    level, sd = rng.normal(0.5, 0.05, n), 0.1
    items = level[:, None] + rng.normal(0, sd, (n, size))
    parts = np.full((seen, 1), 1 / size)
    error = np.sqrt(0.05**2 + sd**2 / size)
    sources = rng.normal(0.5, sd, (500, seen))  # the sources' items differ by chance alone
    rest, ratio = informed(
        np.full((n, 1), 0.5), np.array([0.5]), np.full((n, 1), error), parts, items[:, :seen], sources
    )
    left = items[:, seen:].mean(axis=1)
    best = np.polyfit(items[:, :seen].mean(axis=1), left, 1)
    assert np.std(rest[:, 0] - left) == pytest.approx(
        np.std(np.polyval(best, items[:, :seen].mean(axis=1)) - left), rel=0.02
    )
    assert np.sqrt(np.mean((rest[:, 0] - left) ** 2)) == pytest.approx(ratio[0, 0] * error, rel=0.05)


def test_condensations_of_older_formats_predict_subtasks_whole():
    old = load(Path(__file__).parents[1] / "formats" / "condensation-11" / "toy")
    model, part = old.subtask_model, old.sources
    scores = np.array([e.score for e in old.estimate(part)])
    X = np.concatenate([part.label_probs(), part.grades()], axis=1)
    whole = np.clip(model.line[0] + scores[:, None] * model.line[1] + (X - model.centre) @ model.weights, 0, 1)
    found = np.array([[s.score for s in e.subtasks] for e in old.estimate(part)])
    np.testing.assert_allclose(found, whole, atol=1e-12)


def test_what_is_known_of_a_subtask_bounds_its_estimate():
    """Answered in part, a subtask lies between all and none of the rest right, whatever the overall estimate says."""
    r = leaderboard()
    small = condense(r.pick(models=slice(0, 50)), 100, rng=0, curve=False)
    new = r.pick(models=slice(50, 70))
    for more in (0, 300):
        asked = small.asked(more)
        grades = new.align(asked.ids).grades()
        found = small.estimate(new, more=more)
        for k, name in enumerate(small.subtask_names):
            of, size = asked.subtask == name, (r.items.subtask == name).sum()
            right = grades[:, of].sum(axis=1)
            values = np.array([e.subtasks[k].score for e in found])
            assert (values >= right / size - 1e-9).all()
            assert (values <= (right + size - of.sum()) / size + 1e-9).all()
