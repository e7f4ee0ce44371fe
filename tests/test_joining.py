"""Benchmarks put together: what each was graded by is compared by name, from Python as on the command line."""

import pytest

from disco_eval import AlignmentError, Responses, condense, update
from disco_eval.joining import beside, graded_alike, together
from tests.conftest import population


def graded(r, task, by, **more):
    return Responses(r.models, r.items, r.correct, r.probs, {"harness": "lm-eval", "graded": {task: by}, **more})


def benchmark(name, by, seed):
    r = population(16, 30, seed=seed)
    ids = [f"{name}/{k}" for k in range(r.n_items)]
    items = r.items.having(ids=ids, subtask=[name] * r.n_items)
    return graded(Responses(r.models, items, r.correct, r.probs), name, by)


@pytest.fixture(scope="module")
def parts():
    return {name: benchmark(name, by, seed) for seed, (name, by) in enumerate((("arc", "acc"), ("hella", "acc_norm")))}


@pytest.fixture(scope="module")
def both(parts):
    return condense(together(parts), n_anchors=10, benchmark="both", rng=0, curve=False)


def test_answers_to_several_benchmarks_are_graded_as_each_was(parts, both):
    assert len(both.estimate(together(parts))) == 16
    other = {**parts, "hella": graded(parts["hella"], "hella", "acc")}
    with pytest.raises(AlignmentError, match="'hella' has 'hella' graded by 'acc_norm', these answers by 'acc'"):
        both.estimate(together(other))
    one_run = beside(list(parts.values()))  # one run of both tasks
    for by in ("acc", "acc_norm"):
        run = Responses(
            one_run.models, one_run.items, one_run.correct, one_run.probs, {"graded": {"arc": "acc", "hella": by}}
        )
        if by == "acc_norm":
            assert both.estimate(run) == both.estimate(together(parts))
            continue
        with pytest.raises(AlignmentError, match="'hella' has 'hella' graded by 'acc_norm'"):
            both.estimate(run)


def test_an_update_takes_no_models_that_were_graded_otherwise(parts, both):
    more = {**parts, "arc": graded(parts["arc"], "arc", "acc_norm")}
    with pytest.raises(AlignmentError, match="'arc' has 'arc' graded by 'acc', these answers by 'acc_norm'"):
        update(both, together(more), rng=0, curve=False)
    small = condense(parts["arc"], n_anchors=10, benchmark="small", rng=0, curve=False)
    with pytest.raises(AlignmentError, match="'small' has 'arc' graded by 'acc', these answers by 'acc_norm'"):
        update(small, more["arc"], rng=0, curve=False)
    assert update(small, parts["arc"], rng=0, curve=False).sources.n_models == 16


def test_one_benchmarks_answers_are_compared_with_its_own_record_alone():
    old = {"benchmarks": {"a": {"metric": "acc"}, "b": {"metric": "f1"}, "c": {}}}
    graded_alike({"metric": "acc"}, old, "'both'", benchmarks=["a", "c"])
    with pytest.raises(AlignmentError, match="'b' was made with metric 'f1', 'x' with 'acc'"):
        graded_alike({"metric": "acc"}, old, "'both'", "'x'", benchmarks=["a", "b"])
    graded_alike({"metric": "acc"}, old, "'both'")  # which it is of is not known
    graded_alike({"benchmarks": {"a": {"metric": "acc"}}}, {"metric": "f1"}, "'one'")
    graded_alike({"metric": "acc"}, None, "'one'")


def test_what_is_told_of_answers_side_by_side_contradicts_none_of_them():
    arc, hella = benchmark("arc", "acc", 0), benchmark("hella", "acc_norm", 1)
    arc.provenance.update(length_normalised=False, models={"m": {"seed": 1, "date": "a"}})
    hella.provenance.update(length_normalised=True, models={"m": {"seed": 1, "date": "b"}, "n": {}})
    assert beside([arc, hella]).provenance == {
        "harness": "lm-eval",
        "graded": {"arc": "acc", "hella": "acc_norm"},
        "models": {"m": {"seed": 1}, "n": {}},
    }
