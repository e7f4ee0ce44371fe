"""Intervals know whether a model's relatives are among the sources."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disco_eval import FormatError, Models, Responses, condense, load
from disco_eval.audit import relatives
from disco_eval.calibration import OUTSIDE
from disco_eval.numerics.intervals import symmetric_quantile
from disco_eval.predict.guard import START
from disco_eval.recipe import assess
from disco_eval.relatives import Relatives

N_FAMILIES, EACH, N_ITEMS = 40, 4, 400


def families(seed=0):
    """Families of models: its own ability and its own taste in items, from which members differ on one item in 25."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(size=N_ITEMS)
    right = []
    for ability in rng.normal(size=N_FAMILIES):
        taste = rng.normal(size=N_ITEMS)
        base = rng.random(N_ITEMS) < 1 / (1 + np.exp(-(ability + taste - hard)))
        again = rng.random((EACH, N_ITEMS)) < 1 / (1 + np.exp(-(ability + taste - hard)))
        right.append(np.where(rng.random((EACH, N_ITEMS)) < 0.04, again, base))
    names = [f"f{f}/m{m}" for f in range(N_FAMILIES) for m in range(EACH)]
    models = Models(names, family=[name.split("/")[0] for name in names])
    return Responses.from_correct(models, [f"i{j}" for j in range(N_ITEMS)], np.concatenate(right))


def coverage(parts, seed):
    """Of the second and third part, at 80 and 90 %, by a condensation of the first."""
    source, *asked = parts
    c = condense(source, 60, rng=seed, curve=False)
    return [
        np.mean([e.low <= t <= e.high for e, t in zip(c.estimate(answers, level), answers.scores(), strict=True)])
        for answers in asked
        for level in (0.8, 0.9)
    ]


def split(r):
    """Three members of 30 families as sources, the fourth of each, all of 10 other families."""
    family, member = np.arange(N_FAMILIES * EACH) // EACH, np.arange(N_FAMILIES * EACH) % EACH
    known = family < 30
    return [r.pick(models=at) for at in (known & (member < 3), known & (member == 3), ~known)]


@pytest.fixture(scope="module")
def parts():
    return split(families())


@pytest.fixture(scope="module")
def condensed(parts):
    return condense(parts[0], 60, rng=0, curve=False)


def half_widths(c, answers, level=0.9):
    return np.array([e.high - e.low for e in c.estimate(answers, level)]) / 2


def test_siblings_of_sources_get_narrow_intervals_and_new_families_wide_ones(parts, condensed):
    _, siblings, strangers = parts
    blind = replace(condensed, validation=replace(condensed.validation, relatives=None))
    assert half_widths(condensed, siblings).mean() < 0.9 * half_widths(blind, siblings).mean()
    assert half_widths(condensed, strangers).mean() > 0.95 * half_widths(blind, strangers).mean()
    assert half_widths(condensed, strangers).mean() > 1.5 * half_widths(condensed, siblings).mean()


def test_intervals_of_siblings_widen_from_the_edge_on_those_of_strangers_before():
    r = families()
    c = condense(r, 60, rng=0, curve=False)
    found = assess(c.score_model, c.answers(r))

    def widths(nearest, outside):
        n = len(found.score)
        placed = replace(found, nearest=np.full(n, nearest), outside=np.full(n, outside))
        return c.validation.half_widths(placed, 0.9)

    halfway, far = (OUTSIDE - START) / 2, np.array(1.6448536 * found.survey_se)
    for nearest, kin in ((0.0, True), (9.0, False)):  # as near as no stranger is; farther than any
        own = widths(nearest, -1.0)
        np.testing.assert_allclose(widths(nearest, halfway), own if kin else (own + far) / 2, rtol=1e-2)
        np.testing.assert_allclose(widths(nearest, OUTSIDE), far, rtol=1e-6)


def test_kin_that_nobody_names_is_found_in_the_answers(parts, condensed):
    """Without families: errors are those of models left out with all like them, and siblings still known."""
    source, siblings, strangers = (Responses.from_correct(p.models.ids, p.items, p.correct) for p in parts)
    c = condense(source, 60, rng=0, curve=False)
    assert c.validation.grouped_by == "answers"
    assert half_widths(c, strangers).mean() > 1.5 * half_widths(c, siblings).mean()
    apart = condensed.validation.half_width(0.9)
    assert c.validation.half_width(0.9) == pytest.approx(apart, rel=0.2)


def test_both_are_covered():
    """Families share errors and models share anchors, so coverage is a mean over draws, with the error of that mean."""
    inside = [coverage(split(families(seed)), seed) for seed in range(10)]
    mean, error = np.mean(inside, axis=0), np.std(inside, axis=0, ddof=1) / np.sqrt(10)
    assert (np.abs(mean - [0.8, 0.9, 0.8, 0.9]) < np.maximum(3 * error, 0.05)).all(), (mean, error)


def half_with_siblings(source):
    """Three members of 15 families, one of 15 others; and which of them have siblings."""
    first = np.array([name.endswith("m0") for name in source.models.ids])
    half = np.array([int(name[1:].split("/")[0]) < 15 for name in source.models.ids])
    return source.pick(models=first | half), half[first | half]


def test_new_families_are_covered_where_only_some_sources_have_siblings():
    """Those without make a new family look like one of them, whose errors left out alone include no relative's."""
    inside = []
    for seed in range(12):
        source, *asked = split(families(seed))
        inside.append(coverage([half_with_siblings(source)[0], *asked], seed)[2:])
    mean, error = np.mean(inside, axis=0), np.std(inside, axis=0, ddof=1) / np.sqrt(12)
    assert (mean > np.array([0.8, 0.9]) - np.maximum(2 * error, 0.03)).all(), (mean, error)


def test_each_source_has_its_own_distance(parts):
    source, has_siblings = half_with_siblings(parts[0])
    nearest = condense(source, 60, rng=0, curve=False).validation.relatives.nearest
    assert np.quantile(nearest[has_siblings], 0.9) < np.quantile(nearest[~has_siblings], 0.1)


def test_the_sources_left_out_alone_leave_their_siblings_behind(condensed):
    v = condensed.validation
    assert v.relatives is not None
    assert np.median(v.relatives.nearest) < 0.7 * np.median(v.nearest)
    assert v.relatives.likely(np.median(v.relatives.nearest), v.nearest) > 0.8
    assert v.relatives.likely(np.median(v.nearest), v.nearest) < 0.2


def test_twice_as_many_folds_leave_them_out_alone(parts):
    seen = []
    condense(parts[0], 20, rng=0, curve=False, n_folds=3, progress=lambda *now: seen.append(now[1:]))
    assert seen == [(0, 10), *((k, 10) for k in range(2, 11))]  # 1 for all sources, 3 folds of families, 6 of models
    seen.clear()
    condense(parts[0], 20, rng=0, curve=False, n_folds=3, relatives=False, progress=lambda *now: seen.append(now[1:]))
    assert seen == [(0, 4), (2, 4), (3, 4), (4, 4)]


def test_they_are_saved(condensed, parts, tmp_path):
    condensed.save(tmp_path / "c")
    there = load(tmp_path / "c")
    np.testing.assert_array_equal(half_widths(there, parts[1]), half_widths(condensed, parts[1]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("relatives.error", 2.0),
        ("relatives.scale", -1.0),
        ("relatives.nearest", -1.0),
        ("relatives.nearest", np.nan),
        ("relatives.scale", None),
        ("relatives.subtask_error", None),
        ("relatives.subtask_left", 0.0),
        ("validation.nearest", np.nan),
        ("validation.nearest", -1.0),
    ],
)
def test_numbers_that_make_no_sense_are_refused(condensed, name, value):
    arrays = {f"relatives.{key}": np.array(a) for key, a in vars(condensed.validation.relatives).items()}
    arrays["validation.nearest"] = np.array(condensed.validation.nearest)
    arrays |= {"relatives.subtask_error": np.zeros((90, 2)), "relatives.subtask_left": np.ones((90, 2))}
    assert relatives(arrays, 90, 2) is not None
    if value is None:
        del arrays[name]
    else:
        arrays[name][3] = value
    with pytest.raises(FormatError):
        relatives(arrays, 90, 2)


def test_nothing_to_tell_without_families_or_without_a_process(parts):
    source = parts[0]
    one_of_each = source.pick(models=np.arange(0, source.n_models, 3))
    nameless = Responses.from_correct(one_of_each.models.ids, source.items.ids, one_of_each.correct)
    assert condense(nameless, 20, rng=0, curve=False, n_folds=2).validation.relatives is None
    assert condense(source, 20, predict="ridge", rng=0, curve=False, n_folds=2).validation.relatives is None


NOTHING_MORE = np.zeros((4, 0, 0))  # errors of subtasks, how many items are left, and the same with further items
distances = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)


@given(alone=distances, away=distances, asked=distances)
def test_the_nearer_the_likelier(alone, away, asked):
    known = Relatives(np.zeros(len(alone)), np.ones(len(alone)), alone, *NOTHING_MORE, np.ones(len(alone)))
    likely = known.likely(np.sort(asked), away)
    assert ((likely > 0) & (likely < 1)).all()
    assert (np.diff(likely) <= 1e-12).all()


def test_counts_are_squared():
    """Eight left out alone stand as far or farther, two left out with their family as near or nearer; one is added."""
    known = Relatives(np.zeros(10), np.ones(10), np.array([0.1] * 2 + [0.5] * 8), *NOTHING_MORE, np.ones(10))
    away = np.array([0.3] * 2 + [0.9] * 8)
    assert known.likely(np.array([0.4]), away) == pytest.approx(9**2 / (9**2 + 3**2))


def test_the_quantile_is_in_claimed_errors():
    rng = np.random.default_rng(0)
    error, scale = rng.normal(size=50), rng.uniform(0.5, 2, 50)
    assert Relatives(error, scale, scale, *NOTHING_MORE, scale).quantile(0.9) == symmetric_quantile(error / scale, 0.9)


def test_distances_that_rounding_moves_are_equal():
    """Copies are 0 apart, or what the root of a last bit is: which of both is chance."""
    none = np.zeros(0)
    known = np.repeat([0.0, 1e-8, 0.5], 10)
    relatives = Relatives(np.zeros(30), np.ones(30), known, *[none] * 4, np.ones(30))
    away = np.repeat([2e-8, 0.5], 15)
    likely = relatives.likely(np.array([0.0, 3e-8, 1e-3]), away)
    assert likely[0] == likely[1]
    assert likely[2] != likely[1]
