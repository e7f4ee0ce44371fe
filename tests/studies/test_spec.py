"""What methods hold as text: long things within others are told apart, and what cannot be is shared with nothing."""

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import polars as pl
import pytest

from disco_eval import Anchors, DiscoError
from disco_eval.studies import Pair, method, study
from disco_eval.studies.methods import describe
from disco_eval.studies.spec import lasting, spec
from tests.conftest import population


class Holder:
    def __init__(self, held):
        self.held = held


@dataclass
class Fields:
    held: object


class Slots:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


def test_what_is_held_within_tells_functions_apart():
    def of(held):
        return lambda x, n, rng: held

    long = np.arange(10_000.0)
    middle = np.where(long == 5000, 0, long)
    both = population(20, 3000), population(20, 3000, seed=1)
    of_places = (Anchors.of(both[0].items, np.arange(a, 2000 + a), "x") for a in (0, 1))
    within = [
        lambda v: [v], lambda v: {"a": v}, lambda v: (v,), lambda v: {"a": [{"b": (v,)}]}, Fields, Slots, Holder,
        lambda v: [Holder([v])], lambda v: [of(v)], lambda v: pl.DataFrame({"a": v}), lambda v: v.astype(object),
        lambda v: set(v.tolist()), lambda v: lru_cache(of(v)), lambda v: np.ma.array(v, mask=v == 0),
    ]  # fmt: skip
    pairs = [(held(long), held(long.copy()), held(middle)) for held in within]
    pairs += [(a, a, b) for a, b in (both, of_places)]
    for a, again, b in pairs:
        assert spec(of(a)) == spec(of(again)) != spec(of(b)), type(a)
        assert len(spec(Slots(a))) < 1200


def test_what_cannot_be_told_apart_is_shared_with_nothing():
    def of(held):
        return lambda x, n, rng: held

    def early():
        made = Pair("x", lambda x, n, rng: later(x), "direct")

        def later(x):
            return x

        return made

    one, other = threading.Lock(), threading.Lock()
    assert spec(of([one])) == spec(of([one])) != spec(of([other]))
    assert spec(of(c for c in "a")) != spec(of(c for c in "a"))
    assert "<locals>.<lambda>#" in describe(early())
    ring, deep = [], []
    ring.append(ring)
    for _ in range(5000):
        deep = [deep]
    assert spec(of(ring)) == spec(of(ring))
    assert spec(of(deep))
    both = [1]
    for _ in range(100):
        both = [both, both]
    assert spec(of(both))


def test_arrays_among_options_tell_methods_apart():
    value = np.arange(2000.0)
    other = np.where(value == 1000, -1, value)
    made = [Pair("x", "pds", "direct", o, o) for o in ({"a": [v]} for v in (value, value.copy(), other))]
    assert describe(made[0]) == describe(made[1]) != describe(made[2])
    assert made[0].selection == made[1].selection != made[2].selection
    plain = Pair("x", "pds", "knn", {"stratify": True, "committee_size": 6}, {"parts": ("probs",), "k": 3}, n_sources=4)
    assert (
        describe(plain) == "pds[('committee_size', 6), ('stratify', True)]/4/1.0|knn[('k', 3), ('parts', ('probs',))]"
    )

    assert describe(Fields(value)) == describe(Fields(value.copy())) != describe(Fields(other))
    assert lasting(describe(Fields([1, "a"]))) == "Fields(held=[1, 'a'])"


class Plain:
    """A method as the docs teach it: a class with a name and an estimate."""

    def __init__(self, x: object, name: str = "mine") -> None:
        self.x, self.name = np.asarray(x), name

    def estimate(self, source, target, n_anchors, rng):
        return np.clip(self.moved(target.scores()), 0, 1)

    def moved(self, scores):
        return scores + self.x.sum()


class Edited(Plain):
    def moved(self, scores):
        return scores - self.x.sum()


def test_a_plain_method_is_known_by_what_it_holds_and_does(tmp_path):
    assert describe(Plain([0, 1])) == describe(Plain([0, 1]))
    assert lasting(describe(Plain([0, 1]))) != lasting(describe(Plain([0, 2])))
    assert describe(Plain([0, 1])) != describe(Edited([0, 1]))
    assert "#" not in describe(method("ssepy"))  # our own stay what they are

    def error(of, **asked):
        done = study([of], population(40, 60), "iid", [10], 1, 0, out=tmp_path / "s", **asked)
        return done.summary()["mae_pp"][0]

    assert error(Plain([0.0, 0.01])) == error(Plain([0.0, 0.01])) == pytest.approx(1, abs=0.2)
    with pytest.raises(DiscoError, match="mine had other options"):
        error(Plain([0.0, 0.05]))
    assert error(Plain([0.0, 0.05]), overwrite=True) > 4


def test_private_and_cached_parts_of_a_class_are_parts_of_it():
    def of(bias, shift):
        class Kind(ABC):
            name = "kind"
            _bias = bias

            @cached_property
            def moved(self):
                return shift

            @abstractmethod
            def estimate(self, source, target, n_anchors, rng): ...

        class Own(Kind):
            def estimate(self, source, target, n_anchors, rng):
                return np.full(target.n_models, self._bias + self.moved)

        return Own()

    assert describe(of(0.1, 0)) == describe(of(0.1, 0))
    used = of(0.1, 0)
    assert used.moved == 0
    assert describe(used) == describe(of(0.1, 0))  # what it has computed and kept is no change
    assert " at 0x" not in describe(of(0.1, 0))  # which no other process has
    assert describe(of(0.1, 0)) != describe(of(0.2, 0))
    assert describe(of(0.1, 0)) != describe(of(0.1, 1))


def test_a_method_that_was_edited_is_made_again(tmp_path, monkeypatch):
    def error():
        return study([Plain([0.0])], population(40, 60), "iid", [10], 1, 0, out=tmp_path / "s").summary()["mae_pp"][0]

    assert error() == 0
    monkeypatch.setattr(Plain, "moved", lambda self, scores: scores * 0)
    assert error() > 10
