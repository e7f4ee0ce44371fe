import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_eval import DiscoError, Models, Responses, ValidationError, splits
from disco_eval.numerics.likeness import alike
from tests.conftest import population


def test_iid_takes_every_tenth():
    s = splits.iid(population(25, 10))
    assert s.target.tolist() == [0, 10, 20]
    assert len(s.source) == 22
    assert splits.iid(population(25, 10), every=10, start=3).target.tolist() == [3, 13, 23]


def test_chronological_by_cutoff_and_fraction():
    r = population(30, 10)  # released one a day from 2024-01-01
    s = splits.chronological(r, cutoff="2024-01-28")
    assert s.target.tolist() == [27, 28, 29]
    assert splits.chronological(r).target.tolist() == [27, 28, 29]
    with pytest.raises(ValidationError, match="not a date"):
        splits.chronological(r, cutoff="soon")
    with pytest.raises(ValidationError, match="no target models"):
        splits.chronological(r, cutoff="2030-01-01")


def test_chronological_says_how_many_have_no_date():
    dates = ["2024-01-01", "", "2024-01-03", "2024-01-02", ""]
    r = Responses.from_correct(Models(list("abcde"), released=dates), ["i"], np.zeros((5, 1)))
    s = splits.chronological(r, fraction=0.67)
    assert s.source.tolist() == [0, 3]
    assert s.target.tolist() == [2]
    assert s.note == "2 of 5 models have no date and are left out"
    undated = Responses.from_correct(list("ab"), ["i"], np.zeros((2, 1)))
    with pytest.raises(DiscoError, match="no model has one"):
        splits.chronological(undated)


def test_by_performance_with_and_without_gap():
    r = population(40, 30)
    s = splits.by_performance(r)
    assert len(s.target) == 4
    assert len(s.source) == 36
    assert r.scores()[s.target].min() >= r.scores()[s.source].max()
    gap = splits.by_performance(r, target=0.3, source=0.5)
    assert (len(gap.source), len(gap.target)) == (20, 12)
    with pytest.raises(ValidationError, match="overlap"):
        splits.by_performance(r, target=0.6, source=0.5)


def test_by_group_keeps_groups_together():
    r = population(24, 10)
    for by in ("family", "base"):
        s = splits.by_group(r, by, rng=3)
        groups = getattr(r.models, by)
        assert not set(groups[s.source]) & set(groups[s.target])
        assert 0.2 <= len(s.target) / 24 <= 0.35
    assert splits.by_group(r, held_out=["family-0"]).target.tolist() == [0, 1, 2]
    with pytest.raises(DiscoError, match="no model is of family acme"):
        splits.by_group(r, held_out=["acme"])
    with pytest.raises(DiscoError, match=r"'maker' is not known\. Choose from: family, base"):
        splits.by_group(r, "maker")
    unknown = Responses.from_correct(r.models.ids, r.items, r.correct)
    with pytest.raises(DiscoError, match="a split by base needs models whose base is known"):
        splits.by_group(unknown, "base")


def test_bootstrap_takes_a_part_of_each_side():
    s = splits.chronological(population(40, 10))
    b = splits.bootstrap(s, rng=0)
    assert (len(b.source), len(b.target)) == (32, 4)
    assert set(b.source) < set(s.source)
    assert set(b.target) <= set(s.target)


def test_a_split_never_overlaps_or_is_empty():
    with pytest.raises(ValidationError, match="both source and target"):
        splits.Split(np.array([0, 1]), np.array([1]), "mine")
    with pytest.raises(ValidationError, match="no target"):
        splits.Split(np.array([0, 1]), np.array([], int), "mine")
    for wrong in ([0, 0], [-1, 2], [0.0, 2.5]):
        with pytest.raises(ValidationError, match="target models of a split are distinct positions, 0 and up; got"):
            splits.Split(np.array([5]), np.array(wrong), "mine")


@pytest.mark.parametrize("cutoff", [2024, "", "NaT", "soon"])
def test_what_is_no_date_is_no_cutoff(cutoff):
    r = population()
    dated = Models(r.models.ids, released=np.full(r.n_models, "2024-05-01", "datetime64[D]"))
    with pytest.raises(ValidationError, match="is not a date; write it as 2024-01-13"):
        splits.chronological(Responses(dated, r.items, r.correct), cutoff=cutoff)


def test_every_so_manyth_is_a_whole_number():
    with pytest.raises(ValidationError, match=r"every must be a whole number, got 2\.5"):
        splits.iid(population(), every=2.5)


@given(st.integers(2, 30), st.integers(2, 8), st.integers(0, 5))
def test_folds_leave_every_model_out_once(n_models, n_folds, seed):
    models = Models([f"m{i}" for i in range(n_models)], family=[f"f{i % 7}" for i in range(n_models)])
    for by in ("none", "family"):
        left_out = []
        for fit_on, out in splits.folds(models, n_folds, seed, by):
            assert not set(fit_on) & set(out)
            assert len(fit_on) + len(out) == n_models
            if by == "family":
                assert not set(models.family[fit_on]) & set(models.family[out])
            left_out += out.tolist()
        if by == "none" or min(n_models, 7) > 1:
            assert sorted(left_out) == list(range(n_models))


def test_folds_do_not_depend_on_the_order():
    r = population(24, 5)
    order = np.random.default_rng(0).permutation(24)
    for by in ("none", "family", "base"):
        a = {frozenset(r.models.ids[out]) for _, out in splits.folds(r.models, 4, 0, by)}
        other = r.models.pick(order)
        assert a == {frozenset(other.ids[out]) for _, out in splits.folds(other, 4, 0, by)}


def test_which_kinship_folds_keep():
    assert splits.fold_groups(population(24, 5).models, 5) == "family"
    ids, pairs = list("abcdefghijkl"), list("uuvvwwxxyyzz")
    assert splits.fold_groups(Models(ids, base=pairs), 5) == "base"
    assert splits.fold_groups(Models(ids, base=ids), 5) == "none"  # names that no two share
    assert splits.fold_groups(Models(ids, family=ids, base=pairs), 5) == "base"
    assert splits.fold_groups(Models(list("abcdef")), 5) == "none"
    assert splits.fold_groups(Models(list("abcdef"), family=["x"] * 6), 5) == "none"
    runs = Models([f"m{i}" for i in range(24)], family=["one", "two"] * 12)
    assert splits.fold_groups(runs, 10) == "family"  # of two runs, each says what to expect of another one
    assert [len(out) for _, out in splits.folds(runs, 10, 0)] == [12, 12]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([26, 1, 1, 1, 1], "none"),
        ([15, 9, 2, 2, 2], "family"),
        ([20, 4, 2, 2, 2], "family"),
        ([21, 3, 2, 2, 2], "none"),
        ([5, 2, 2, 1, 1], "none"),
    ],
)
def test_a_family_that_is_most_of_the_sources_is_not_left_out(sizes, kept):
    """Without it there would be too little to learn from, or nothing that says what all together teach."""
    family = np.repeat(list("abcde"), sizes)
    models = Models([f"m{i}" for i in range(len(family))], family=family)
    assert splits.fold_groups(models, 5) == kept
    own_base = Models(models.ids, family=family, base=[f"b{i // 2}" for i in range(len(family))])
    assert splits.fold_groups(own_base, 5) == ("base" if kept == "none" else "family")


def test_folds_keep_copies_of_a_model_together():
    """Ten models of four names each, kinship unknown; without copies nothing changes."""
    models = Models([f"m{k:02d}" for k in range(40)])
    rng = np.random.default_rng(0)
    original = np.arange(40) % 10
    answers = rng.integers(0, 2, (10, 50))[original]
    for fit, out in splits.folds(models, 4, 0, answers=answers):
        assert not set(original[fit]) & set(original[out])
    order = rng.permutation(40)
    shuffled = Models(models.ids[order])
    for (_, a), (_, b) in zip(
        splits.folds(models, 4, 0, answers=answers), splits.folds(shuffled, 4, 0, answers=answers[order]), strict=True
    ):
        assert set(models.ids[a]) == set(shuffled.ids[b])
    plain = list(splits.folds(models, 4, 0))
    for (_, a), (_, b) in zip(plain, splits.folds(models, 4, 0, answers=rng.random((40, 50))), strict=True):
        np.testing.assert_array_equal(a, b)


def near_duplicates(n_kinds=12, each=3, n_items=200, seed=0):
    """Models of unknown kin: copies of a few kinds that differ from each other on an eighth of the items."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(np.arange(n_kinds), each)
    answers = rng.integers(0, 2, (n_kinds, n_items))[kind]
    return Models([f"m{k:02d}" for k in rng.permutation(len(kind))]), kind, answers ^ (rng.random(answers.shape) < 0.06)


def test_models_that_answer_nearly_the_same_are_kin_where_nobody_says_who_is():
    models, kind, answers = near_duplicates()
    assert splits.fold_groups(models, 5, answers) == "answers"
    assert splits.fold_groups(models, 5) == "none"
    for fit, out in splits.folds(models, 5, 0, answers=answers):
        assert not set(kind[fit]) & set(kind[out])
    named = Models(models.ids, family=[f"f{k % 6}" for k in kind])
    assert splits.fold_groups(named, 5, answers) == "family"  # what is said counts


def test_kin_by_answers_does_not_depend_on_the_order():
    models, _, answers = near_duplicates()
    order = np.random.default_rng(1).permutation(len(answers))
    names = alike(models.ids, answers, 7)
    np.testing.assert_array_equal(alike(models.ids[order], answers[order], 7), names[order])


def test_the_score_model_takes_for_kin_what_folds_do():
    models, kind, answers = near_duplicates()
    few = Models(models.ids, base=["llama"] * 2 + [""] * (len(kind) - 2))
    for known in (models, few):  # two that say so are not enough
        groups = splits.kin(known, answers)
        assert [len(set(groups[kind == k])) for k in range(12)] == [1] * 12
    named = Models(models.ids, family=[f"f{k % 6}" for k in kind])
    np.testing.assert_array_equal(splits.kin(named, answers), named.family)


def test_what_is_no_kin_by_answers():
    rng = np.random.default_rng(0)
    ids = np.array([f"m{k:02d}" for k in range(40)])
    strangers = rng.integers(0, 2, (40, 200))
    np.testing.assert_array_equal(alike(ids, strangers, 8), ids)
    chain = np.tri(40, 200, -1) + np.tri(40, 200, 80)  # each like the next, the ends unlike
    assert len(set(alike(ids, chain, 40))) > 1
    models, _, answers = near_duplicates(8, 10)
    assert splits.fold_groups(models, 5, answers) == "answers"
    assert len(list(splits.folds(models, 10, 0, answers=answers))) == 8  # a group each, where there are more folds
    np.testing.assert_array_equal(alike(ids, np.zeros((40, 200)), 40), ids)
    constant = strangers.copy()
    constant[:4], constant[4:8] = 0, 1
    np.testing.assert_array_equal(alike(ids, constant, 8), ids)
    few = rng.integers(0, 2, (40, 12))
    np.testing.assert_array_equal(alike(ids, few, 40), ids)  # so few items tell nothing


def test_more_folds_than_families_leave_out_a_family_each():
    models = population(44, 40).models  # 15 families
    parts = list(splits.folds(models, 100, 0))
    assert splits.fold_groups(models, 100) == "family"
    assert [len(set(models.family[out])) for _, out in parts] == [1] * 15
    assert sorted(np.concatenate([out for _, out in parts]).tolist()) == list(range(44))


def test_copies_stay_together_however_many_folds():
    models, _, answers = near_duplicates(40, 1)
    ids = np.append(models.ids, "copy")
    both = np.concatenate([answers, answers[[7]]])
    for _, out in splits.folds(Models(ids), 100, 0, "none", both):
        assert (7 in out) == (40 in out)


def test_what_is_no_sign_of_a_copy():
    """Models that fail everywhere, and answers that more than a fold of the models gave."""
    models = Models([f"m{k:02d}" for k in range(40)])
    plain = list(splits.folds(models, 5, 0))
    rng = np.random.default_rng(0)
    failing = rng.integers(0, 2, (40, 50))
    failing[:30] = 0
    common = rng.integers(0, 2, (40, 50))
    common[:9] = common[0]
    for answers in (failing, common):
        for (_, a), (_, b) in zip(plain, splits.folds(models, 5, 0, answers=answers), strict=True):
            np.testing.assert_array_equal(a, b)


def test_copies_do_not_join_families():
    """Models of nine families gave the answers of a model of the next, and one without family those of f0."""
    family = [*np.repeat([f"f{k}" for k in range(10)], 4).tolist(), ""]
    models = Models([f"m{k:02d}" for k in range(41)], family=family)
    answers = np.random.default_rng(0).integers(0, 2, (41, 50))
    for k in range(9):
        answers[4 * k + 5] = answers[4 * k]
    answers[40] = answers[2]
    for fit, out in splits.folds(models, 10, 0, answers=answers):
        assert not set(models.family[fit]) & set(models.family[out]) - {""}
        assert len(out) == 4 + (40 in out)
        assert (40 in out) == (2 in out)
