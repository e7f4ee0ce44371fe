import numpy as np
import pytest

from disco_eval import Anchors, Items, Responses, ValidationError
from disco_eval.select import jsd, pds, uniform
from disco_eval.select.disagreement import disagreement
from tests import oracles
from tests.conftest import population


@pytest.mark.parametrize(("select", "oracle"), [(pds, oracles.pds), (jsd, oracles.jsd)])
def test_takes_the_highest_and_says_how_high(select, oracle):
    r = population(15, 40, ragged=True)
    value = oracle(r.probs)
    a = select(r, 10, rng=0)
    np.testing.assert_array_equal(a.positions, np.argsort(-value)[:10])
    np.testing.assert_allclose(a.criterion, value[a.positions], atol=1e-6)
    low = select(r, 10, rng=0, lowest=True)
    np.testing.assert_array_equal(np.sort(low.positions), np.sort(np.argsort(value)[:10]))


def test_grades_are_pairs():
    r = population(15, 40, graded=True)
    pairs = np.stack([r.correct, 1 - r.correct], axis=2)
    np.testing.assert_allclose(disagreement(r, "pds"), oracles.pds(pairs), atol=1e-6)
    np.testing.assert_allclose(disagreement(r, "jsd"), oracles.jsd(pairs), atol=1e-6)


def test_arrays_that_anchors_are_made_of_stay_their_callers():
    items = population(3, 6).items
    given = {name: np.array([0.5, 0.25, 0.25]) for name in ("weights", "criterion", "chance")}
    at = np.array([4, 0, 2])
    anchors = Anchors.of(items, at, "mine", **given)
    assert all(array.flags.writeable for array in (at, *given.values()))
    for name in ("positions", *given):
        with pytest.raises(ValueError, match="read-only"):
            getattr(anchors, name)[0] = 1


def test_ties_fall_by_chance():
    r = Responses.from_correct(range(10), range(50), np.zeros((10, 50)))
    picks = {tuple(sorted(jsd(r, 5, rng=s).positions.tolist())) for s in range(8)}
    assert len(picks) == 8


def test_a_committee_is_drawn_from_the_sources():
    r = population(30, 40)
    full, part = jsd(r, 10, rng=0), jsd(r, 10, rng=0, committee_size=4)
    assert set(full.ids) != set(part.ids)
    np.testing.assert_array_equal(jsd(r, 10, rng=0, committee_size=30).ids, full.ids)
    for size in (0, 31):
        with pytest.raises(ValidationError, match=f"committee of {size}"):
            jsd(r, 10, rng=0, committee_size=size)


@pytest.mark.parametrize("select", [uniform, pds, jsd])
def test_stratified_anchors_come_equally_from_subtasks(select):
    r = population(12, 60)
    counts = np.unique(r.items.subtask[select(r, 20, rng=0, stratify=True).positions], return_counts=True)[1]
    assert sorted(counts) == [6, 7, 7]
    assert len(select(r, 60, rng=0, stratify=True)) == 60


def test_stratified_by_disagreement_within_each_subtask():
    r = population(12, 60)
    value = oracles.jsd(r.probs)
    a = jsd(r, 15, rng=0, stratify=True)
    for name in r.items.subtasks:
        own = np.flatnonzero(r.items.subtask == name)
        best = own[np.argsort(-value[own])][:5]
        assert set(best) == set(a.positions[r.items.subtask[a.positions] == name])


def test_a_small_subtask_leaves_its_share_to_the_others():
    r = Responses.from_correct(["a", "b"], Items(range(30), subtask=["s"] * 2 + ["t"] * 28), np.zeros((2, 30)))
    of = r.items.subtask[pds(r, 20, rng=0, stratify=True).positions]
    assert ((of == "s").sum(), (of == "t").sum()) == (2, 18)


def unequal(weigh_subtasks):
    """Subtasks of 300, 60 and 6 items, which count as much as their items, or all alike."""
    size = np.array([300, 60, 6])
    of = np.repeat(np.arange(3), size)
    weight = 1 / size[of] if weigh_subtasks else None
    right = np.random.default_rng(0).random((20, 366)) < np.array([0.8, 0.5, 0.1])[of]
    items = Items([f"i{j}" for j in range(366)], subtask=[f"s{k}" for k in of], weight=weight)
    return Responses.from_correct([f"m{i}" for i in range(20)], items, right)


@pytest.mark.parametrize(("weigh_subtasks", "least"), [(False, [49, 9, 0]), (True, [26, 26, 6])])
def test_random_items_come_from_subtasks_as_these_count(weigh_subtasks, least):
    """Of 60: in proportion, within one; a subtask that counts a third but has six items gives all of them."""
    r = unequal(weigh_subtasks)
    counts, off = [], []
    for seed in range(300):
        a = uniform(r, 60, rng=seed, stratify=True)
        assert len(set(a.positions.tolist())) == 60
        counts.append(np.unique(r.items.subtask[a.positions], return_counts=True)[1].tolist())
        off.append((r.grades(a.positions) @ a.weights / a.weights.sum() - r.scores()).mean())
    counts = np.array([c + [0] * (3 - len(c)) for c in counts])
    assert (counts.min(axis=0) >= least).all()
    assert (counts.max(axis=0) <= np.array(least) + 2).all()
    assert abs(np.mean(off)) < 4 * np.std(off) / np.sqrt(300)
    if not weigh_subtasks:
        plain = [(r.grades(uniform(r, 60, rng=s).positions).mean(axis=1) - r.scores()).mean() for s in range(300)]
        assert np.std(off) < 0.95 * np.std(plain)


def test_random_items_of_subtasks_do_not_depend_on_order_and_are_refused_where_too_few_count():
    r = unequal(False)
    turned = r.pick(items=np.random.default_rng(1).permutation(366))
    one, two = (uniform(x, 40, rng=3, stratify=True) for x in (r, turned))
    assert sorted(one.ids) == sorted(two.ids)
    of = r.items.subtask
    items = Items(r.items.ids, subtask=of, weight=(of == "s2").astype(float))
    some = Responses.from_correct(r.models, items, r.correct)
    assert set(of[uniform(some, 6, rng=0, stratify=True).positions]) == {"s2"}
    with pytest.raises(ValidationError, match="only 6 items of the benchmark have a weight above 0"):
        uniform(some, 7, rng=0, stratify=True)


def test_random_items_are_drawn_by_what_they_count_for_without_subtasks_too():
    r = population(12, 200, graded=True)
    weight = np.where(np.arange(200) < 100, 3.0, 1.0)
    r = Responses(r.models, r.items.having(weight=weight, subtask=None), r.correct)
    drawn = [uniform(r, 40, rng=seed, stratify=True) for seed in range(20)]
    assert np.mean([(a.positions < 100).sum() for a in drawn]) == pytest.approx(30, abs=1)
    for a in drawn:
        np.testing.assert_allclose(a.weights, 1 / 40)  # so that the plain mean is without bias


def test_uniform_is_uniform():
    """Each of 20 items is drawn with probability 5/20; 2,000 draws put counts within 5 standard deviations of 500."""
    r = Responses.from_correct(["a"], range(20), np.zeros((1, 20)))
    counts = np.zeros(20)
    for s in range(2000):
        counts[uniform(r, 5, rng=s).positions] += 1
    assert (np.abs(counts - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75)).all()
