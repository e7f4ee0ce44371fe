"""Clusters and their medoids against slow loops."""

import numpy as np
import pytest

from disco_eval.numerics.clusters import clusters_1d, medoids, nearest_distinct


def test_separate_clumps_each_get_their_medoid_and_mass():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 3)) * 20
    of = np.repeat(np.arange(6), 15)
    X = centres[of] + rng.normal(size=(90, 3))
    weight = rng.random(90)
    at, mass = medoids(X, weight, 6, np.random.default_rng(1))
    assert sorted(of[at]) == list(range(6))
    for k in range(6):
        member = of == of[at[k]]
        assert mass[k] == pytest.approx(weight[member].sum())
        mean = np.average(X[member], axis=0, weights=weight[member])
        assert at[k] == np.flatnonzero(member)[((X[member] - mean) ** 2).sum(axis=1).argmin()]


def test_more_clusters_than_different_points_still_gives_distinct_ones():
    X = np.repeat(np.eye(3), 5, axis=0)
    at, mass = medoids(X, np.ones(15), 10, np.random.default_rng(0))
    assert len(set(at.tolist())) == 10
    assert mass.sum() == 15


def test_nearest_distinct_by_a_slow_loop():
    distance = np.random.default_rng(2).random((30, 12))
    free, out = set(range(30)), {}
    for column in sorted(range(12), key=lambda c: distance[:, c].min()):
        out[column] = min(free, key=lambda r: distance[r, column])
        free.remove(out[column])
    np.testing.assert_array_equal(nearest_distinct(distance), [out[c] for c in range(12)])


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_clusters_of_numbers_are_a_fixed_point_of_k_means(k):
    values = np.random.default_rng(k).normal(size=200) ** 3
    labels, centres = clusters_1d(values, k, rounds=1000)
    assert set(labels.tolist()) == set(range(k))
    for j in range(k):
        assert centres[j] == pytest.approx(values[labels == j].mean())
    nearest = np.abs(values[:, None] - centres).argmin(axis=1)
    np.testing.assert_array_equal(labels, nearest)


def test_clusters_of_repeated_numbers():
    labels, centres = clusters_1d(np.array([1.0] * 5 + [2.0] * 5), 5)
    assert len(labels) == 10
    np.testing.assert_allclose(centres[labels], [1.0] * 5 + [2.0] * 5)
