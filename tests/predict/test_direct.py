import numpy as np
import pytest

from disco_eval import Items, Responses
from disco_eval.predict import predictor
from disco_eval.select import selector
from tests.conftest import population


def by_subtask(weigh_subtasks: bool) -> Responses:
    """A large easy subtask and four small hard ones, which count as much or as little as their items."""
    size = np.array([400, 20, 20, 20, 20])
    subtask = np.repeat(np.arange(5), size)
    rng = np.random.default_rng(0)
    right = rng.random((40, len(subtask))) < np.where(subtask == 0, 0.8, 0.3)
    weight = 1 / size[subtask] if weigh_subtasks else np.ones(len(subtask))
    items = Items([f"i{j}" for j in range(len(subtask))], subtask=[f"s{k}" for k in subtask], weight=weight)
    return Responses.from_correct([f"m{i}" for i in range(40)], items, right.astype(float))


@pytest.mark.parametrize("options", [{}, {"stratify": True}])
def test_means_over_random_items_are_right_where_subtasks_count_alike(options):
    """Twenty anchors of every subtask count alike; a fifth of them once counted for nine tenths of the score."""
    r = by_subtask(weigh_subtasks=True)
    found = []
    for seed in range(40):
        anchors = selector("uniform")(r, 100, seed, **options)
        found.append(predictor("direct").fit(r, anchors).predict(r.pick(items=anchors.positions)) - r.scores())
    assert np.abs(np.mean(found)) < 0.03


def test_random_items_of_any_weight_are_unbiased_by_both_means():
    """Small subtasks of few heavy items: counted alike, random items would say what the large one is."""
    r = by_subtask(weigh_subtasks=True)
    found = []
    for seed in range(300):
        anchors = selector("uniform")(r, 100, seed)
        answers = r.pick(items=anchors.positions)
        by_weight = predictor("weighted_sum").fit(r, anchors).predict(answers)
        np.testing.assert_allclose(by_weight, predictor("direct").fit(r, anchors).predict(answers), atol=1e-12)
        found.append(by_weight.mean())
    spread = np.std(found) / np.sqrt(len(found))
    assert spread < 0.005
    assert abs(np.mean(found) - r.scores().mean()) < 4 * spread
    assert abs(r.grades().mean() - r.scores().mean()) > 0.2


def test_random_items_without_weight_count_alike():
    r = population(20, 60)
    weight = np.r_[np.zeros(59), 1.0]
    items = Items(r.items.ids, weight=weight, n_choices=r.items.n_choices, label=r.items.label)
    none = Responses.from_probs(r.models, items, r.probs)
    seed = next(s for s in range(20) if 59 not in selector("uniform")(none, 9, s).positions)
    np.testing.assert_allclose(selector("uniform")(none, 9, seed).weights, 1 / 9)


def test_anchors_drawn_with_known_chances_count_by_them():
    r = by_subtask(weigh_subtasks=True)
    anchors = selector("auto")(r, 50, 0)
    model = predictor("direct").fit(r, anchors)
    expected = r.items.weight[anchors.positions] / anchors.chance
    np.testing.assert_allclose(model.state()["weights"], expected / expected.sum())


def test_anchors_chosen_otherwise_count_alike():
    r = by_subtask(weigh_subtasks=True)
    anchors = selector("anchor_corr")(r, 50, 0)
    np.testing.assert_allclose(predictor("direct").fit(r, anchors).state()["weights"], 1 / 50)
