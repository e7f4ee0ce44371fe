"""Answers that are allowed, but look like a mistake."""

import subprocess
import sys

import numpy as np
import pytest

from disco_eval import Items, Models, Responses, condense
from disco_eval.doubts import coarser, doubts
from disco_eval.errors import ValidationError


def disco(*args):
    command = [sys.executable, "-m", "disco_eval", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def answers(n_models=20, n_items=300, n_choices=4, strength=1.5, seed=0):
    """Models that know something: log-likelihoods (n_models, n_items, n_choices) and labels."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_choices, n_items)
    x = rng.normal(size=(n_models, n_items, n_choices)) - 5
    x[:, np.arange(n_items), label] += strength
    return x, label


def made(x, label, correct=None):
    items = Items([f"i{j}" for j in range(len(label))], label=label, n_choices=np.full(len(label), x.shape[2]))
    return Responses.from_loglikelihoods([f"m{i}" for i in range(len(x))], items, x, correct=correct)


def test_answers_that_fit_raise_no_doubts():
    x, label = answers()
    assert doubts(made(x, label)) == []
    normalised = x + 0.6 * np.random.default_rng(1).normal(size=x.shape)  # right by another metric than the plain one
    assert doubts(made(x, label, (normalised.argmax(2) == label).astype(float))) == []
    assert doubts(made(*answers(strength=0.0))) == []  # guessing is no mistake
    assert doubts(made(*answers(n_models=2, n_items=20, strength=-3.0))) == []  # too few to tell
    one = Items([f"i{j}" for j in range(300)], label=np.zeros(300, int), n_choices=np.ones(300, int))
    sure = np.zeros((5, 300, 1))
    wrong = np.random.default_rng(0).random((5, 300)) < 0.3
    assert doubts(Responses.from_loglikelihoods([f"m{i}" for i in range(5)], one, sure, correct=wrong)) == []
    right = Responses.from_correct(["a"], [f"i{j}" for j in range(300)], np.zeros((1, 300)))
    assert doubts(right) == []  # without choices there is nothing to mistake


def test_choices_in_another_order_are_doubted():
    x, label = answers()
    shifted = made(np.roll(x, 1, axis=2), label)
    (said,) = doubts(shifted)
    best = shifted.pick(models=[0, 5, 10, 14, 19]).scores().max()
    assert f"All of 5 models looked at get fewer right ({100 * best:.1f} % at best)" in said
    assert "than guessing would (25.0 %)" in said


@pytest.mark.parametrize(("right", "doubted"), [(15, False), (11, True)])
def test_bad_luck_is_not_doubted(right, doubted):
    """Of a hundred items guessed, 25 are right, give or take 4.3."""
    label = np.arange(100) % 4
    x = np.full((1, 100, 4), -2.0)
    x[0, np.arange(100), np.where(np.arange(100) < right, label, (label + 1) % 4)] = -1.0
    assert bool(doubts(made(x, label))) is doubted


def test_grades_that_have_nothing_to_do_with_choices_are_doubted():
    x, label = answers()
    correct = (x.argmax(2) == label).astype(float)
    (said,) = doubts(made(x[:, ::-1], label[::-1], correct))
    assert said.startswith("Answers graded right have the label as the most probable choice hardly more often")


def runs(n_models, times, seed=0):
    """Means of several runs of models that are right two times in three, on 50 items."""
    right = np.random.default_rng(seed).random((times, n_models, 50)) < 0.67
    return Responses.from_correct([f"m{i}" for i in range(n_models)], range(50), right.mean(axis=0))


def test_models_that_answered_once_are_told_from_sources_that_answered_often():
    sources = runs(30, 5)
    said = coarser(sources, runs(3, 1, seed=1))
    assert said.startswith("Answers of m0, m1, m2 are right or wrong alone, the sources' are graded in parts")
    assert coarser(sources, runs(3, 5, seed=1)) == ""
    assert coarser(runs(30, 1), runs(3, 1, seed=1)) == ""
    assert coarser(runs(30, 1), runs(3, 5, seed=1)) == ""
    some_once = Responses.from_correct(
        sources.models, sources.items, np.concatenate([sources.correct[:20], runs(30, 1).correct[20:]])
    )
    assert coarser(some_once, runs(3, 1, seed=1)) == ""  # it is usual here
    for all_alike in (0.0, 1.0):  # several runs would say the same
        assert coarser(sources, Responses.from_correct(["x"], range(50), np.full((1, 50), all_alike))) == ""


def test_probabilities_given_as_log_likelihoods_are_refused():
    x, label = answers()
    p = made(x, label).probs
    with pytest.raises(ValidationError, match="the log-likelihoods given are probabilities"):
        made(p, label)
    sparse = np.where(np.arange(4) == label[:, None], 1.0, 0.0)[None].repeat(3, 0)
    with pytest.raises(ValidationError, match="the log-likelihoods given are probabilities"):
        made(sparse, label)
    some_positive = np.where(x > -5, 0.5, x)  # log-densities, or scores of any kind, may be above 0
    assert made(some_positive, label).n_models == 20
    padded = Items([f"i{j}" for j in range(300)], label=np.minimum(label, 2), n_choices=np.full(300, 3))
    assert Responses.from_loglikelihoods(Models([f"m{i}" for i in range(20)]), padded, x).max_choices == 4


def test_import_and_condense_say_their_doubts_and_go_on(tmp_path):
    x, label = answers()
    np.savez(
        tmp_path / "a.npz",
        models=[f"m{i}" for i in range(20)],
        items=[f"i{j}" for j in range(300)],
        loglikelihoods=np.roll(x, 1, axis=2),
        labels=label,
    )
    done = disco("import", "npz", tmp_path / "a.npz", "--out", tmp_path / "a.zarr")
    assert "in another order?" in done.stderr
    done = disco("condense", tmp_path / "a.zarr", "--out", tmp_path / "c", "--anchors", "20")
    assert "in another order?" in done.stderr
    assert (tmp_path / "c").is_dir()


def test_estimate_says_that_models_answered_once(tmp_path):
    condense(runs(30, 5), 20, rng=0, curve=False).save(tmp_path / "c")
    runs(2, 1, seed=1).save(tmp_path / "once.zarr")
    assert "intervals are too narrow" in disco("estimate", tmp_path / "c", tmp_path / "once.zarr").stderr
    runs(2, 5, seed=1).save(tmp_path / "often.zarr")
    assert "narrow" not in disco("estimate", tmp_path / "c", tmp_path / "often.zarr").stderr
