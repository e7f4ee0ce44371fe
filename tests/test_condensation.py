from statistics import NormalDist

import numpy as np
import pytest

import disco_eval as de
from disco_eval import AlignmentError, DiscoError, Items, Models, Responses, ValidationError, condense, load
from disco_eval.numerics.intervals import rarely_exceeded, symmetric_quantile
from disco_eval.splits import folds
from tests.conftest import population


@pytest.fixture(scope="module")
def small():
    return condense(population(), 12, select="jsd", predict="ridge", rng=0, benchmark="toy", n_folds=4)


def test_estimates_come_with_names_intervals_and_neighbours(small):
    r = population()
    estimates = small.estimate(r, level=0.8)
    assert [e.model for e in estimates] == r.models.ids.tolist()
    half = small.validation.half_width(0.8)
    for e, score in zip(estimates, small.score_model.predict(r.align(small.anchors.ids)), strict=True):
        assert e.score == score
        assert 0 <= e.low <= e.score <= e.high <= 1
        assert e.low == pytest.approx(max(0, e.score - half))
        assert e.level == 0.8
        assert len(e.nearest) == 3
        assert e.nearest[0] == e.model  # a source is nearest to itself
        assert e.flags == ("source-model", *small.source_flags)
        assert e.model in str(e)


def test_a_source_is_known_by_its_name_and_its_answers(small):
    """Names such as checkpoint-1000 come again; a source run again may differ on an anchor."""
    r = population()
    at = r.items.positions(small.anchors.ids)
    names = r.models.ids
    swapped = Responses(Models([names[23], names[0]]), r.items, r.correct[[0, 23]], r.probs[[0, 23]])
    again = np.array(r.correct[[0]])
    again[0, at[0]] += 0.5
    again = Responses(Models([names[0]]), r.items, again, r.probs[[0]])
    assert np.abs(r.grades(at)[0] - r.grades(at)[23]).mean() > 0.05
    assert not any("source-model" in e.flags for e in small.estimate(swapped))
    assert "source-model" in small.estimate(again)[0].flags


def test_models_that_are_no_sources_are_not_flagged(small):
    r = population(6, 60, seed=0)
    other = Responses(Models([f"new-{i}" for i in range(6)]), r.items, r.correct, r.probs)
    other = Responses(
        other.models,
        Items(population().items.ids, label=population().items.label, n_choices=[4] * 60),
        r.correct,
        r.probs,
    )
    assert all(e.flags == small.source_flags for e in small.estimate(other))


def test_answers_to_the_anchors_alone_suffice_in_any_order(small):
    r = population()
    expected = [e.score for e in small.estimate(r)]
    part = r.align(small.anchors.ids[::-1])
    assert [e.score for e in small.estimate(part)] == expected


def test_missing_anchors_are_named(small):
    r = population()
    part = r.align(np.setdiff1d(r.items.ids, small.anchors.ids[:5]))
    with pytest.raises(
        AlignmentError, match=r"no answer for 5 of 12 anchors of 'toy' from 'model-\d+' and 23 more: task/.* and 2 more"
    ):
        small.estimate(part)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"digest": ["other"] * 60}, r"prompt \(digest\) of 12 of 12 anchors differs"),
        ({"label": (population().items.label + 1) % 4}, "the label of 12 of 12 anchors differs"),
    ],
)
def test_other_questions_are_refused(small, change, message):
    r = population()
    about = {k: getattr(r.items, k) for k in ("n_choices", "label", "digest")} | change
    other = Responses.from_probs(r.models, Items(r.items.ids, **about), r.probs)
    with pytest.raises(AlignmentError, match=message):
        small.estimate(other)


def test_other_choices_are_refused_and_wider_arrays_are_not(small):
    r = population()
    wide = np.pad(r.probs, ((0, 0), (0, 0), (0, 27)))
    other = Responses(r.models, r.items, r.correct, wide)
    assert [e.score for e in small.estimate(other)] == [e.score for e in small.estimate(r)]
    items = Items(r.items.ids, n_choices=np.full(60, 31), label=r.items.label)
    with pytest.raises(AlignmentError, match="number of choices of 12 of 12 anchors differs"):
        small.estimate(Responses(r.models, items, r.correct, wide))


def test_unknown_labels_and_digests_are_no_difference(small):
    r = population()
    items = Items(r.items.ids, n_choices=r.items.n_choices)
    other = Responses(r.models, items, r.correct, r.probs)
    assert [e.score for e in small.estimate(other)] == [e.score for e in small.estimate(r)]


def test_grades_are_refused_where_probabilities_are_needed(small):
    r = population()
    with pytest.raises(ValidationError, match="fitted on probabilities"):
        small.estimate(Responses.from_correct(r.models, r.items, r.correct))


def test_probabilities_serve_a_condensation_of_grades():
    r = population()
    graded = condense(population(graded=True), 12, select="jsd", predict="ridge", rng=0)
    assert [e.score for e in graded.estimate(r)] == [e.score for e in graded.estimate(population(graded=True))]


def test_the_validation_is_what_it_says():
    """The out-of-fold estimates again, step by step: anchors and model made without the fold."""
    from disco_eval.recipe import Recipe

    r = population()
    c = condense(r, 12, select="jsd", predict="ridge", rng=7, n_folds=4)
    _, for_folds, *for_fold = np.random.default_rng(7).spawn(6)
    recipe = Recipe(12, "jsd", "ridge")
    seen = np.zeros(24, bool)
    for k, (fit_on, out) in enumerate(folds(r.models, 4, for_folds)):
        assert not set(r.models.family[fit_on]) & set(r.models.family[out])
        anchors, model = recipe.make(r.pick(models=fit_on), for_fold[k].spawn(2)[0])
        np.testing.assert_array_equal(c.validation.estimate[out], model.predict(r.pick(models=out).align(anchors.ids)))
        seen[out] = True
    assert seen.all()
    assert c.validation.grouped_by == "family"
    np.testing.assert_array_equal(c.validation.truth, r.scores())


def test_same_seed_same_condensation():
    r = population()
    a, b = (condense(r, 10, select="jsd", predict="forest", rng=3, n_folds=2) for _ in range(2))
    np.testing.assert_array_equal(a.anchors.ids, b.anchors.ids)
    assert [e.score for e in a.estimate(r)] == [e.score for e in b.estimate(r)]
    np.testing.assert_array_equal(a.validation.estimate, b.validation.estimate)


def test_from_disk_the_same(tmp_path):
    r = population()
    r.save(tmp_path / "s.zarr")
    a = condense(r, 10, select="jsd", predict="ridge", rng=3)
    b = condense(de.open_responses(tmp_path / "s.zarr"), 10, select="jsd", predict="ridge", rng=3)
    np.testing.assert_array_equal(a.anchors.ids, b.anchors.ids)
    np.testing.assert_allclose(a.validation.estimate, b.validation.estimate, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: condense(population(9), 5), "9 source models are too few"),
        (lambda: condense(population(), 61), "61 anchors were asked for, but the benchmark has 60 items"),
        (lambda: condense(population(), 5, select="pda"), "selection 'pda' is not known"),
        (lambda: condense(population(), 5, predict="forests"), "Did you mean 'forest'"),
        (
            lambda: condense(population(), 5, select_options={"size": 3}),
            "options: {'size': 3}; it takes cost_power, budget",
        ),
        (
            lambda: condense(population(), 5, select_options={"cost_power": "x"}),
            "option 'cost_power' of selection 'auto' is a number, got 'x'",
        ),
        (
            lambda: condense(population(), 5, select="pds", select_options={"committee_size": True}),
            "option 'committee_size' of selection 'pds' is a whole number, got True",
        ),
        (
            lambda: condense(population(), 5, select="stratified", select_options={"draws": 0}),
            "draws must be at least 1, got 0",
        ),
        (
            lambda: condense(population(), 5, select="anchor_corr", select_options={"restarts": 0}),
            "restarts must be at least 1, got 0",
        ),
        (
            lambda: condense(population(), 5, select="best_for_validation", select_options={"n_folds": 1}),
            "needs at least 2 folds, got 1",
        ),
        (
            lambda: condense(population(), 5, predict_options={"guess": [print]}),
            "option guess must be a number, a word",
        ),
        (lambda: condense(population(), 2.5), "n_anchors must be a whole number, got 2.5"),
        (lambda: condense(population(), True), "n_anchors must be a whole number, got True"),
        (lambda: condense(population(), 5, benchmark=5), "benchmark must be a text, got 5"),
        (lambda: condense(population(), 5, n_folds=1), "needs at least 2 folds, got 1"),
        (lambda: condense(population(), 5, n_folds=-9), "needs at least 2 folds, got -9"),
        (lambda: condense(population(), 5, predict_options={"trees": 3}), "prediction 'auto' does not take"),
    ],
)
def test_bad_requests_are_refused(call, message):
    with pytest.raises(DiscoError, match=message):
        call()


def test_level_must_be_a_share(small):
    for level in (0, 1, 90):
        with pytest.raises(ValidationError, match="level must lie between 0 and 1"):
            small.estimate(population(), level=level)


def test_intervals_cover_exchangeable_errors_as_often_as_they_say():
    """Split conformal coverage: at least the level, and at most 1/(n+1) more; 4,000 draws leave 0.5 points of noise."""
    rng = np.random.default_rng(0)
    for level in (0.8, 0.9, 0.95):
        hits = 0
        for _ in range(4000):
            errors = rng.standard_t(3, 40)
            hits += abs(errors[-1]) <= symmetric_quantile(errors[:-1], level)
        assert level - 0.02 <= hits / 4000 <= level + 1 / 40 + 0.02


def test_too_few_residuals_reach_beyond_the_largest_as_a_normal_distribution_does():
    assert symmetric_quantile(np.array([0.1, -0.3]), 0.6) == 0.3
    normal = NormalDist()
    reach = normal.inv_cdf(0.995) / normal.inv_cdf(0.5 + 1 / 3)
    assert symmetric_quantile(np.array([0.1, -0.3]), 0.99) == pytest.approx(0.3 * reach)
    rng, hits = np.random.default_rng(0), 0
    for _ in range(2000):
        errors = rng.normal(size=13)
        hits += abs(errors[-1]) <= symmetric_quantile(errors[:-1], 0.99)
    assert hits / 2000 > 0.955  # the largest of 12 alone covers 92 %


@pytest.mark.parametrize("n", [19, 82, 300])
def test_what_is_rarely_exceeded_is_by_no_more_than_was_said(n):
    rng = np.random.default_rng(n)
    values = rng.normal(size=(4000, n + 1))
    over = np.mean([row[-1] > rarely_exceeded(row[:-1], 0.05) for row in values])
    assert 0.05 - 1 / (n + 1) - 0.012 < over < 0.05 + 0.012  # 0.012: three and a half standard errors
    assert rarely_exceeded(np.array([3.0, 1.0, 2.0]), 0.05) == 3.0  # so few cannot tell


@pytest.mark.parametrize(("select", "predict"), [("auto", "auto"), ("pds", "forest"), ("sharp", "gp"), ("jsd", "knn")])
@pytest.mark.parametrize("kind", ["all right", "identical models", "one item"])
def test_degenerate_benchmarks_are_condensed_without_a_warning(select, predict, kind):
    names, rng = [f"m{i}" for i in range(20)], np.random.default_rng(0)
    if kind == "identical models":
        items = Items(range(60), n_choices=np.full(60, 4), label=rng.integers(0, 4, 60))
        r = Responses.from_probs(names, items, np.repeat(rng.dirichlet(np.ones(4), (1, 60)), 20, axis=0))
    elif kind == "all right":
        r = Responses.from_correct(names, range(60), np.ones((20, 60)))
    else:
        r = Responses.from_correct(names, ["only"], (np.arange(20) % 2)[:, None])
    c = condense(r, min(10, r.n_items), select=select, predict=predict, rng=0)
    scores = [e.score for e in c.estimate(r)]
    np.testing.assert_allclose(scores, r.scores(), atol=1e-3)  # auto is a mixture of processes, not a mean


def test_grades_suffice_where_the_score_model_needs_no_probabilities():
    r = population()
    c = condense(r, 12, select="uniform", predict="direct", rng=0)
    grades = Responses.from_correct(r.models, Items(r.items.ids, label=None), r.correct)
    assert [e.score for e in c.estimate(grades)] == [e.score for e in c.estimate(r)]


@pytest.mark.parametrize("predict", ["forest", "boosting", "auto", "ridge"])
def test_the_order_of_the_sources_does_not_matter(predict):
    r = population(60, 80)
    other = r.pick(models=np.random.default_rng(0).permutation(60))
    a, b = (condense(x, 12, select="jsd", predict=predict, rng=0, n_folds=2) for x in (r, other))
    np.testing.assert_allclose([e.score for e in a.estimate(r)], [e.score for e in b.estimate(r)], atol=1e-9)


def test_the_order_does_not_matter_where_scores_are_equal():
    """Of models that are right or wrong several have one score, which sums in another order miss by a last bit."""
    rng = np.random.default_rng(3)
    right = (rng.random((60, 300)) < rng.uniform(0.2, 0.9, (60, 1)).round(1)).astype(float)
    items = Items([f"i{j:03d}" for j in range(300)], subtask=[f"s{j % 3}" for j in range(300)])
    r = Responses.from_correct([f"m{i:02d}" for i in range(60)], items, right)
    other = r.pick(models=rng.permutation(60), items=rng.permutation(300))
    one, two = (condense(x, 30, rng=0, curve=False) for x in (r, other))
    assert set(one.anchors.ids) == set(two.anchors.ids)
    assert two.validation.mae == pytest.approx(one.validation.mae, abs=1e-9)
    for a, b in zip(one.estimate(r), two.estimate(r), strict=True):
        subtasks = {s.name: s for s in b.subtasks}
        for x, y in ((a, b), *((s, subtasks[s.name]) for s in a.subtasks)):
            assert (y.score, y.low, y.high) == pytest.approx((x.score, x.low, x.high), abs=1e-6)


def test_nearest_sources_do_not_depend_on_the_last_bits(tmp_path):
    """Of grades in thirds many distances are equal; those of single precision are so up to rounding only."""
    r = population()
    thirds = np.round(3 * r.label_probs()) / 3
    exact, single = (Responses.from_correct(r.models, r.items, thirds.astype(kind)) for kind in ("f8", "f4"))
    c = condense(exact, 12, rng=0, curve=False)
    c.save(tmp_path / "c")
    expected = [e.nearest for e in c.estimate(exact)]
    assert [e.nearest for e in c.estimate(single)] == expected
    assert [e.nearest for e in load(tmp_path / "c").estimate(single)] == expected
