"""What every score model must do, whatever it predicts."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

from disco_eval import AlignmentError, DiscoError, FormatError, Responses, ValidationError
from disco_eval.errors import options_of
from disco_eval.predict import PREDICTORS, REGRESSORS, predictor, restore
from disco_eval.select import uniform
from tests.conftest import population

NEEDS_PROBABILITIES: set[str] = set()


@pytest.fixture(params=sorted(PREDICTORS))
def name(request):
    return request.param


def fitted(name, r=None, **options):
    r = population(24, 60) if r is None else r
    anchors = uniform(r, 12, rng=0)
    return r, anchors, predictor(name, **options).fit(r, anchors, rng=0)


def kinds(name):
    yield population(24, 60)
    yield population(24, 60, ragged=True)
    if name not in NEEDS_PROBABILITIES:
        yield population(24, 60, graded=True)


def test_scores_lie_in_the_unit_interval(name):
    for r in kinds(name):
        _, anchors, model = fitted(name, r)
        estimate = model.predict(r.align(anchors.ids))
        assert estimate.shape == (24,)
        assert ((estimate >= 0) & (estimate <= 1)).all()


def test_restored_from_plain_arrays_it_predicts_the_same(name):
    for r in kinds(name):
        _, anchors, model = fitted(name, r)
        config = json.loads(json.dumps(model.config()))
        state = {k: v.copy() for k, v in model.state().items()}
        again = restore(model.name, config, state, anchors.ids)
        answers = r.align(anchors.ids)
        np.testing.assert_array_equal(again.predict(answers), model.predict(answers))


def test_needs_the_anchors_alone_and_in_order(name):
    r, anchors, model = fitted(name)
    with pytest.raises(AlignmentError, match="not to the 12 anchors"):
        model.predict(r)
    with pytest.raises(AlignmentError, match="another order"):
        model.predict(r.align(anchors.ids[::-1]))
    with pytest.raises(AlignmentError, match="1 are missing"):
        model.predict(r.align(anchors.ids[1:]))


def test_same_rng_same_model(name):
    r, anchors, model = fitted(name)
    again = predictor(name).fit(r, anchors, rng=0)
    answers = r.align(anchors.ids)
    np.testing.assert_array_equal(model.predict(answers), again.predict(answers))


def test_permuting_targets_permutes_estimates(name):
    r, anchors, model = fitted(name)
    answers = r.align(anchors.ids)
    order = np.random.default_rng(0).permutation(24)
    np.testing.assert_allclose(model.predict(answers.pick(models=order)), model.predict(answers)[order], atol=1e-9)


def test_arguments_stay_as_they_were(name):
    r = population()
    before = r.probs.copy()
    fitted(name, r)
    np.testing.assert_array_equal(r.probs, before)


def test_missing_or_broken_arrays_are_refused(name):
    _, anchors, model = fitted(name)
    state = model.state()
    for key in state:
        with pytest.raises(FormatError):
            restore(model.name, model.config(), {k: v for k, v in state.items() if k != key}, anchors.ids)
        if state[key].dtype.kind == "f" and state[key].size:
            broken = state[key].copy()
            broken.flat[0] = np.nan
            with pytest.raises(FormatError):
                restore(model.name, model.config(), {**state, key: broken}, anchors.ids)


def test_unknown_names_and_options_say_so(name):
    with pytest.raises(DiscoError, match=r"does not take these options: \{'colour': 'blue'\}; it takes [a-z]"):
        predictor(name, colour="blue")
    with pytest.raises(DiscoError, match="is not known"):
        predictor(name + "x")
    with pytest.raises(DiscoError, match="it takes parts, n_components, reduction, k, metric"):
        predictor("knn", colour="blue")


def test_loading_and_predicting_needs_numpy_alone(name, tmp_path):
    """In a fresh interpreter that refuses scikit-learn, scipy, polars and zarr."""
    from disco_eval import condense, io

    r = population(24, 60)
    condense(r, 12, select="uniform", predict=name, rng=0, n_folds=2).save(tmp_path / "c")
    io.write_npz(r, tmp_path / "r.npz")
    script = (
        "import sys\n"
        "for name in ('sklearn', 'scipy', 'polars', 'zarr', 'matplotlib', 'torch'): sys.modules[name] = None\n"
        "import disco_eval as de\n"
        f"from disco_eval.io.npz import read_npz\n"
        f"e = de.load({str(tmp_path / 'c')!r}).estimate(read_npz({str(tmp_path / 'r.npz')!r}))\n"
        "print(repr([x.score for x in e]))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    from disco_eval import load

    assert json.loads(out) == [e.score for e in load(tmp_path / "c").estimate(r)]


def test_answers_of_another_kind_are_refused_or_right(name):
    """Grades cannot stand in for the probabilities a signature was made of; methods on correctness do not care."""
    r, anchors, model = fitted(name)
    grades = Responses.from_correct(r.models, r.items, r.correct).align(anchors.ids)
    if name in ("direct", "weighted_sum", "pirt", "gpirt", "ability_irt", "lifelong"):
        np.testing.assert_array_equal(model.predict(grades), model.predict(r.align(anchors.ids)))
    else:
        with pytest.raises(DiscoError):
            model.predict(grades)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pirt", {"n_dims": "a"}, "option 'n_dims' of prediction 'pirt' is a whole number, got 'a'"),
        ("knn", {"k": "a"}, "option 'k' of prediction 'knn' is a whole number, got 'a'"),
        ("mlp2", {"epochs": 2.5}, "option 'epochs' of prediction 'mlp2' is a whole number, got 2.5"),
        ("mlp2", {"learning_rate": True}, "option 'learning_rate' of prediction 'mlp2' is a number, got True"),
        ("ridge", {"n_components": "few"}, "option 'n_components' of prediction 'ridge' is a whole number, got 'few'"),
        ("ridge", {"alpha": np.inf}, "option 'alpha' of prediction 'ridge' is a finite number, got inf"),
        ("forest", {"n_trees": 10**9}, "'n_trees' of prediction 'forest' is a whole number up to 1,000,000, got 10000"),
        ("gp", {"grades": "maybe"}, "option 'grades' of prediction 'gp' is true or false, got 'maybe'"),
    ],
)
def test_options_that_are_no_numbers_say_so(name, options, message):
    with pytest.raises(ValidationError, match=message):
        predictor(name, **options)
    predictor("knn", n_components=None)
    predictor("mlp2", learning_rate=np.float32(0.1))
    predictor("mlp2", learning_rate=1)
    predictor("knn", k=np.int64(5))
    predictor("gp", grades=np.True_, guess=None)


BAD = [0, -1, np.nan, np.inf, 10**9, 10**400, True, "maybe", [1], 1e-300, -0.5]  # or hardly ever good


def test_every_option_is_heard_or_refused_in_words(name):
    r = population(24, 40)
    source, targets = r.pick(models=np.arange(20)), r.pick(models=np.arange(20, 24))
    anchors = uniform(source, 10, 0)
    methods = [PREDICTORS[name], *([REGRESSORS[name]] if name in REGRESSORS else [])]
    options = [o for m in methods for o in options_of(m).split(", ") if o != "none"]
    for option, value in itertools.product(options, BAD):
        try:
            model = predictor(name, **{option: value}).fit(source, anchors, np.random.default_rng(0))
        except DiscoError:
            continue
        assert np.isfinite(model.predict(targets.align(anchors.ids))).all(), (option, value)
