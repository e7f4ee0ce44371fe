"""What tells of anchors that a target remembers: what is right, how sure it is, what is perfect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from ..errors import FormatError
from ..numerics.intervals import rarely_exceeded
from ..numerics.leakage import ODD, Leakage
from ..numerics.memory import MOST_EVIDENCE, Memory, graded, perfect
from ..responses import Responses
from .base import Array, Arrays, Config, has_part, named_arrays, need, need_part

_LEAST_OLD_UNIT = 0.5  # of the evidence of memory, formats 1 to 9
_MOST = 1e3  # that a saved number can be
_STILL_MISSED = 2 / 3  # of the leaks, that may be with perfect answers looked at: a second kind raises the threshold
_BESIDE = ("likely", "perfect")  # parts that not every condensation has


@dataclass(frozen=True, eq=False)
class Memories:
    """Evidence of remembered anchors by what it rests on; the largest counts, in units of what honest sources show.

    Attributes
    ----------
    grades : what is right.
    likely : how sure a model is of the label, where probabilities are known (from format 9 on).
    perfect : which answers have the best grade there is (from format 11 on): what is remembered is perfect. None where
        grades hardly lie between right and wrong, or where left-out sources that remember are found better without.
    """

    grades: Memory
    likely: Memory | None = None
    perfect: Memory | None = None

    @classmethod
    def fit(
        cls, known: Responses, scores: Array, kin: Array, soft: bool, guess: bool | None, by_perfect: bool | None
    ) -> Self:
        """Learn from the sources' answers to the anchors, their ``scores`` (n,) and who is ``kin`` (n,).

        ``soft`` says whether probabilities are used; ``guess`` and ``by_perfect`` are the options of `Auto`.
        """
        order = np.lexsort((known.models.ids, scores))  # the same whatever order the sources come in
        grades, scores, kin = known.grades()[order], scores[order], kin[order]
        partly = graded(grades)
        by_grades, told = Memory.learn(grades, scores, kin, guess, silent=partly)
        beside = partial(Memory.learn, scores=scores, kin=kin, guess=by_grades.guesses)
        likely = beside(known.label_probs()[order])[0] if soft else None
        if by_perfect is False or not (partly or by_perfect):
            return cls(by_grades, likely)
        of_perfect, also = beside(perfect(grades))
        helps = _missed(np.maximum(told, also)) <= _STILL_MISSED * _missed(told)
        return cls(by_grades, likely, of_perfect if helps or by_perfect else None)

    def evidence(self, answers: Responses) -> Array:
        """The evidence of every model, (n_models,), from its answers to the anchors."""
        grades = answers.grades()
        found = [self.grades.evidence(grades)]
        if self.likely is not None:
            found.append(self.likely.evidence(answers.label_probs()))
        if self.perfect is not None:
            found.append(self.perfect.evidence(perfect(grades)))
        return np.asarray(np.max(found, axis=0))

    def parts(self) -> Config:
        """Which parts there are, for `restore`."""
        there: Config = {name: getattr(self, name) is not None for name in _BESIDE}
        return {**there, "learned": bool(len(self.grades.direction)), "weights": self.knows_doubts}

    @property
    def knows_doubts(self) -> bool:
        """Whether it is known what the anchors' curves leave open (from format 7 on)."""
        return bool(self.grades.curves.doubt.size)

    def state(self) -> Arrays:
        arrays = _memory_arrays("leakage", self.grades)
        for name, part in self._beside().items():
            arrays |= _memory_arrays(name, part)
        if not len(self.grades.direction) and self.likely is not None:
            arrays["odd"] = np.concatenate([self.grades.units, self.likely.units])
        return arrays

    @classmethod
    def restore(cls, parts: Config, state: Arrays, n_anchors: int, guesses: bool, doubts: bool) -> Self:
        """From a saved model: formats 1 to 4 knew no guesses, 1 to 6 no doubts, 1 to 9 curves alone."""
        learned = has_part(parts, "learned")
        there = {name: has_part(parts, name) for name in _BESIDE}
        fits = all(there[name] == (f"{name}.slope" in state) for name in _BESIDE)
        if not fits or (there["likely"] and not has_part(parts, "soft")) or (there["perfect"] and not learned):
            raise FormatError("the saved score model 'auto' makes no sense: what tells of leaked anchors does not fit")
        odd = need(state, "odd", (2,)) if there["likely"] and not learned else np.ones(2)
        memory = partial(_restored, state, n_anchors=n_anchors, learned=learned)
        by_grades = memory("leakage", odd[:1], guesses=guesses, doubts=doubts)
        beside = {name: memory(name, odd[1:], guesses=True, doubts=True) for name in _BESIDE if there[name]}
        return cls(by_grades, **beside)

    def mismatch(self) -> str:
        """What makes no sense in a restored part; empty if all does."""
        return next(filter(None, map(_wrong, (self.grades, *self._beside().values()))), "")

    def _beside(self) -> dict[str, Memory]:
        both = {"likely": self.likely, "perfect": self.perfect}
        return {name: part for name, part in both.items() if part is not None}


def _missed(told: Array) -> float:
    """Share of left-out sources that would not be found where they remember anchors, from evidence (2, n)."""
    honest, leaked = told
    return float((leaked <= rarely_exceeded(honest, ODD)).mean())


def _restored(
    state: Arrays, prefix: str, unit: Array, *, n_anchors: int, guesses: bool, doubts: bool, learned: bool
) -> Memory:
    curves: dict[str, tuple[int | None, ...]] = {"slope": (n_anchors,), "intercept": (n_anchors,)}
    if guesses:
        curves["guess"] = (None,)
    if doubts:
        curves |= {"doubt": (3, n_anchors), "strong": (2 if len(state.get(f"{prefix}.strong", ())) else 0,)}
    ratio = Leakage(**need_part(state, prefix, curves))
    if not learned:
        return Memory(ratio, np.zeros(0), unit)
    return Memory(ratio, **need_part(state, prefix, {"direction": (n_anchors,), "units": (5,)}))


def _wrong(memory: Memory) -> str:
    curves, units = memory.curves, memory.units
    if len(curves.guess) > 1 or not ((curves.guess >= 0) & (curves.guess <= 1)).all():
        return "the chance of a guess is no probability"
    if not ((curves.doubt[:2] >= 0) & (curves.doubt[:2] <= _MOST)).all():
        return "what is not known of the anchors' curves is out of bounds"
    if len(curves.strong) and not 0 <= curves.strong[1] <= _MOST:
        return "what strong models may look like is out of bounds"
    if len(units) == 1:
        fits = _LEAST_OLD_UNIT <= float(units[0]) <= _MOST
    else:
        numbers = np.abs(np.concatenate([units, memory.direction]))
        fits = bool((units[[1, 3]] >= 0).all()) and float(numbers.max()) <= MOST_EVIDENCE
    return "" if fits else "what honest models may look like is out of bounds"


def _memory_arrays(prefix: str, memory: Memory) -> Arrays:
    arrays = named_arrays(prefix, memory.curves)
    if len(memory.direction):
        arrays |= {f"{prefix}.direction": memory.direction, f"{prefix}.units": memory.units}
    return arrays
