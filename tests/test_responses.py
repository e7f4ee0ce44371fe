import numpy as np
import pytest

from disco_eval import AlignmentError, Items, Models, Responses, ValidationError
from tests import oracles
from tests.conftest import population


def small(probs, **items):
    p = np.asarray(probs, dtype=float)
    about = Items([f"i{k}" for k in range(p.shape[1])], n_choices=np.full(p.shape[1], p.shape[2]), **items)
    return Responses.from_probs([f"m{k}" for k in range(p.shape[0])], about, p)


def test_from_probs_grades_by_the_first_most_probable_choice():
    r = small([[[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]]], label=[1, 0, 1])
    assert r.correct.tolist() == [[1, 1, 0]]
    assert r.max_choices == 2


def test_correctness_can_be_given():
    items = Items(["a"], n_choices=[2], label=[0])
    r = Responses.from_probs(["m"], items, [[[0.9, 0.1]]], correct=[[0.0]])
    assert r.scores().tolist() == [0.0]


def test_from_loglikelihoods_is_a_softmax_over_own_choices():
    ll = np.array([[[-1.0, -2.0, 99.0], [-3.0, -1.0, -2.0]]])
    r = Responses.from_loglikelihoods(["m"], Items(["a", "b"], n_choices=[2, 3], label=[0, 1]), ll)
    assert r.probs[0, 0, 2] == 0
    assert r.probs[0, 0, 0] == pytest.approx(1 / (1 + np.exp(-1)))
    assert r.probs[0, 1].sum() == pytest.approx(1)
    assert r.correct.tolist() == [[1, 1]]


def test_minus_infinity_is_probability_zero_but_not_everywhere():
    items = Items(["a"], n_choices=[2], label=[0])
    r = Responses.from_loglikelihoods(["m"], items, [[[0.0, -np.inf]]])
    assert r.probs.tolist() == [[[1, 0]]]
    for bad in ([[[-np.inf, -np.inf]]], [[[np.nan, 0.0]]], [[[np.inf, 0.0]]]):
        with pytest.raises(ValidationError, match="model 'm', item 'a'"):
            Responses.from_loglikelihoods(["m"], items, bad)


def test_scores_are_weighted_means():
    r = population(5, 12)
    for m in range(5):
        expected = oracles.weighted_mean(r.correct[m].tolist(), r.items.weight.tolist())
        assert r.scores()[m] == pytest.approx(expected, abs=1e-12)


def test_scores_are_the_same_to_the_last_bit_in_any_order():
    rng = np.random.default_rng(0)
    r = population(100, 97)
    for _ in range(5):
        order = rng.permutation(97)
        np.testing.assert_array_equal(r.pick(items=order).scores(), r.scores())


def test_subtask_scores_are_weighted_means_within():
    r = population(4, 12)
    assert r.items.subtasks == ["sub0", "sub1", "sub2"]
    for s, name in enumerate(r.items.subtasks):
        own = np.flatnonzero(r.items.subtask == name)
        for m in range(4):
            expected = oracles.weighted_mean(r.correct[m, own].tolist(), r.items.weight[own].tolist())
            assert r.subtask_scores()[m, s] == pytest.approx(expected, abs=1e-12)


def test_a_subtask_that_counts_for_nothing_still_has_a_mean():
    items = Items(["a", "b"], subtask=["x", "y"], weight=[1, 0])
    r = Responses.from_correct(["m"], items, [[0.0, 1.0]])
    assert r.scores().tolist() == [0.0]
    assert r.subtask_scores().tolist() == [[0.0, 1.0]]


def test_pick_takes_positions_masks_and_slices_in_order():
    r = population(6, 10)
    part = r.pick(models=[4, 1], items=np.arange(10) >= 7)
    assert part.models.ids.tolist() == r.models.ids[[4, 1]].tolist()
    np.testing.assert_array_equal(part.probs, r.probs[[4, 1]][:, 7:])
    assert r.pick(models=[-1]).models.ids[0] == r.models.ids[-1]
    assert r.pick(items=slice(2, 4)).n_items == 2
    for bad in ([6], [-7], [0.5], [True]):
        with pytest.raises(ValidationError):
            r.pick(models=bad)


def test_align_is_by_id_and_strict():
    r = population(3, 10)
    wanted = r.items.ids[[7, 2, 5]]
    np.testing.assert_array_equal(r.align(wanted).correct, r.correct[:, [7, 2, 5]])
    with pytest.raises(AlignmentError, match="1 of 2 items are not in the responses: nowhere/1"):
        r.align([wanted[0], "nowhere/1"])


def test_arrays_are_read_only_and_inputs_untouched():
    p = np.full((2, 3, 2), 0.5)
    before = p.copy()
    r = small(p, label=[0, 0, 0])
    for array in (r.probs, r.correct, r.items.ids, r.items.weight, r.models.ids, r.scores()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
    np.testing.assert_array_equal(p, before)
    assert p.flags.writeable  # the caller's own array stays so


def test_grades_stand_for_pairs():
    r = Responses.from_correct(["m"], ["a", "b"], [[1.0, 0.25]])
    np.testing.assert_array_equal(r.outcomes(), [[[1, 0], [0.25, 0.75]]])
    assert r.max_choices == 2
    with pytest.raises(ValidationError, match="grades only"):
        r.label_probs()


def test_label_probs():
    r = population(3, 8, ragged=True)
    for m in range(3):
        for i in range(8):
            assert r.label_probs()[m, i] == r.probs[m, i, r.items.label[i]]


def test_float16_rounding_is_accepted():
    p = np.random.default_rng(0).dirichlet(np.ones(6), (4, 50)).astype(np.float16)
    r = Responses.from_probs(list("abcd"), Items(range(50), n_choices=np.full(50, 6), label=np.zeros(50, int)), p)
    assert r.probs.dtype == np.float16


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Models(["a", "b", "a"]), "model ids must be unique, but these repeat: a"),
        (lambda: Models(["a", "b", "a "]), "must differ by more than blanks around them; .* the same as 'a '"),
        (lambda: Items(["a", ""]), "printable and not empty"),
        (lambda: Items(["a\n"]), "printable"),
        (lambda: Items(["a"], weight=[-1]), "weight of item 'a' is -1"),
        (lambda: Items(["a"], weight=[np.nan]), "weight of item 'a' is nan"),
        (lambda: Items(["a", "b"], weight=[0, 0]), "weights of all items are 0"),
        (lambda: Items(["a", "b"], weight=[1e308, 1e308]), "add up to more than a number can hold"),
        (lambda: Items(["a"], n_choices=[3], label=[3]), "label of item 'a' is 3, expected 0 to n_choices - 1"),
        (lambda: Items(["a"], n_choices=[2.5]), "whole numbers"),
        (lambda: Items(["a"], label=["x"]), "expected 1 numbers"),
        (lambda: Items(["a"], subtask=["x", "y"]), "subtask has shape"),
        (lambda: Models(["a"], released=["soon"]), "no date"),
        (lambda: small([[[0.5, 0.6]]], label=[0]), "model 'm0', item 'i0' sum to 1.1, expected 1"),
        (lambda: small([[[np.nan, 1]]], label=[0]), "item 'i0' hold nan, expected finite"),
        (lambda: small([[[-0.5, 1.5]]], label=[0]), "choice 0 is -0.5"),
        (lambda: small([[[-1.2, -3.4]]], label=[0]), "Responses.from_loglikelihoods"),
        (lambda: small([[[0.5, 0.5]]]), "need the items' labels"),
        (lambda: Responses.from_probs(["m"], ["i"], [[0.5, 0.5]]), "expected .n_models, n_items, max_choices."),
        (lambda: Responses.from_correct(["m"], ["i"], [[2.0]]), "model 'm', item 'i' is 2.0"),
        (lambda: Responses.from_correct(["m"], ["i"], [[np.nan]]), "is nan"),
        (lambda: Responses.from_correct(["m", "n"], ["i"], [[1.0]]), r"correct of shape \(1, 1\), expected \(2, 1\)"),
        (
            lambda: Responses.from_probs(["m"], Items(["i"], n_choices=[2], label=[0]), [[[0.4, 0.3, 0.3]]]),
            "beyond its 2 choices",
        ),
        (
            lambda: Responses.from_probs(["m"], Items(["i"], n_choices=[4], label=[0]), [[[0.4, 0.6]]]),
            "item 'i' has 4 choices, but probs holds 2",
        ),
    ],
)
def test_bad_input_says_what_and_where(make, message):
    with pytest.raises(ValidationError, match=message):
        make()
