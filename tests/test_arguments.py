"""Arguments that make no sense are refused in one line that says which, before any work."""

import numpy as np
import pytest

from disco_eval import Models, Responses, condense, study, update
from disco_eval.errors import AlignmentError, DiscoError, ValidationError
from tests.conftest import population

R = population(40, 60)
QUICK = {"rng": 0, "curve": False, "relatives": False}


@pytest.fixture(scope="module")
def small():
    return condense(R, 12, **QUICK)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_folds": 2.5}, "n_folds must be a whole number, got 2.5"),
        ({"n_folds": "5"}, "n_folds must be a whole number, got '5'"),
        ({"n_folds": 1}, "needs at least 2 folds"),
        ({"rng": -1}, "rng must be a whole number from 0 on"),
        ({"rng": 1.5}, "rng must be a whole number from 0 on"),
        ({"select_options": 5}, "names with values"),
        ({"predict_options": ["a"]}, "names with values"),
        ({"mixed": "yes"}, "mixed must be true or false, got 'yes'"),
        ({"curve": "no"}, "curve must be true or false, got 'no'"),
        ({"relatives": 3}, "relatives must be true or false, got 3"),
        ({"progress": 3}, "progress must be a function of .what, done, total., got 3"),
    ],
)
def test_condense_refuses_arguments(given, message):
    with pytest.raises(ValidationError, match=message):
        condense(R, 12, **given)


def test_items_of_no_subtask_among_others_are_refused(small):
    subtask = np.where(np.arange(60) < 58, "x", "")
    some = Responses(R.models, R.items.having(subtask=subtask), R.correct, R.probs)
    with pytest.raises(ValidationError, match=r"2 of 60 items are of no subtask, such as .*: give all items a subtask"):
        condense(some, 12, **QUICK)
    assert small.estimate(some)  # what is asked of sources alone


def test_there_is_no_most_of_anchors_but_the_items():
    with pytest.raises(ValidationError, match="10000000 anchors were asked for, but"):
        condense(R, 10_000_000)


def test_what_are_no_responses_is_said_to_be_none(small):
    for call in (
        lambda: condense("mmlu.zarr", 12),
        lambda: small.estimate("mmlu.zarr"),
        lambda: small.compare("mmlu.zarr", R.pick(models=[0])),
        lambda: update(small, "mmlu.zarr"),
        lambda: study(["random+direct"], "mmlu.zarr", "iid", 10),
    ):
        with pytest.raises(ValidationError, match=r"takes Responses, got 'mmlu.zarr'; disco_eval.open_responses"):
            call()
    with pytest.raises(ValidationError, match="takes Responses, got a dict"):
        small.estimate({})
    with pytest.raises(ValidationError, match="takes a Condensation, got a Responses"):
        update(R, R)


def test_further_items_and_margins_are_numbers(small):
    one, other = R.pick(models=[0]), R.pick(models=[1])
    for more in (5.5, "5", True, False, None):
        for call in (lambda m: small.estimate(one, more=m), lambda m: small.compare(one, other, more=m), small.asked):
            with pytest.raises(ValidationError, match="more must be a whole number"):
                call(more)
    for margin in ("x", True, float("nan"), 0, -0.1, [0.1]):
        with pytest.raises(ValidationError, match="a margin must lie between 0 and 1"):
            small.compare(one, other, margin=margin)
    for level in ("0.9", None, 2):
        with pytest.raises(ValidationError, match="level must lie between 0 and 1"):
            small.compare(one, other, level=level)
    assert small.compare(one, other, more=np.int64(8), margin=np.float64(0.1)).more == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"runs": 1.5}, "runs must be a whole number, got 1.5"),
        ({"jobs": "2"}, "jobs must be a whole number, got '2'"),
        ({"rng": -1}, "rng must be a whole number from 0 on"),
        ({"split": 5}, "split '5' is not known"),
        ({"split": [5]}, "split '5' is not known"),
    ],
)
def test_a_study_refuses_arguments(given, message):
    with pytest.raises(DiscoError, match=message):
        study(["random+direct"], R, **{"split": "iid", "n_anchors": 10, "runs": 1, **given})


def test_what_is_too_little_only_where_sources_are_left_out_says_so():
    few = population(11, 60)
    with pytest.raises(ValidationError, match=r"^a committee of 9 .* 3 of 11 source models are left out .* more folds"):
        condense(few, 8, select="pds", select_options={"committee_size": 9}, **QUICK)


@pytest.mark.parametrize("level", [0, 1, 1e-300, 1 - 1e-16, "0.9", np.nan])
def test_levels_that_no_interval_has_are_refused(small, level):
    with pytest.raises(ValidationError, match="level must lie between 0 and 1"):
        small.estimate(R, level)


def test_answers_of_nobody_are_said_to_be(small):
    with pytest.raises(AlignmentError, match="from no model"):
        small.estimate(R.pick(models=[], items=[0, 1]))


def test_a_provenance_that_could_not_be_kept_is_refused_before_the_work(tmp_path):
    odd = Responses(R.models, R.items, R.correct, R.probs, {"seed": np.int64(1)})
    for call in (lambda: condense(odd, 12, **QUICK), lambda: odd.save(tmp_path / "odd.zarr")):
        with pytest.raises(ValidationError, match="provenance holds JSON values, but 'seed' is"):
            call()
    assert not list(tmp_path.iterdir())


def test_a_part_has_a_provenance_of_its_own():
    whole = Responses(R.models, R.items, R.correct, R.probs, {"harness": "mine"})
    whole.pick(models=[0]).provenance["note"] = "changed"
    assert whole.provenance == {"harness": "mine"}


def test_a_generator_in_another_state_draws_anew():
    seed, same = (condense(R, 12, **QUICK | {"rng": rng}).anchors.ids.tolist() for rng in (5, np.random.default_rng(5)))
    assert seed == same
    rng = np.random.default_rng(5)
    first, second = (condense(R, 12, **QUICK | {"rng": rng}).anchors.ids.tolist() for _ in range(2))
    assert first == seed != second


def test_a_source_is_not_outside_its_own_range(small):
    best = R.pick(models=[int(R.scores().argmax())])
    (known,), (new,) = (
        small.estimate(best),
        small.estimate(Responses(Models(["new"]), R.items, best.correct, best.probs)),
    )
    assert known.flags[0] == "source-model"
    assert "outside-range" in new.flags
    assert not {"outside-range", "lines-disagree"} & set(known.flags)
