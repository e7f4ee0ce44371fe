"""How much a committee of models disagrees about each item: PDS and JSD in one pass over the models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_MODELS = 16  # models read together; with _WIDTH they keep the working set inside a core's cache
_WIDTH = 8192  # probabilities of one model read together


class Disagreement:
    """Running sums from which PDS and JSD of every item follow; built up model by model, in any order.

    Memory is that of one model's probabilities three times over, however many models pass by. Two accumulators over
    different models merge into the one that would have seen both, so the pass can be split over processes.

    Parameters
    ----------
    n_items, n_choices
        The shape of one model's probabilities. A choice that an item lacks has probability 0 and counts for nothing.
    measures
        ``"both"``, or ``"pds"`` or ``"jsd"`` alone, which costs about a quarter and three quarters as much.
    """

    def __init__(self, n_items: int, n_choices: int, measures: str = "both") -> None:
        if measures not in ("both", "pds", "jsd"):
            raise ValueError(f"measures is 'both', 'pds' or 'jsd', not {measures!r}")
        self.shape = (n_items, n_choices)
        self.measures = measures
        self.n_models = 0
        size = n_items * n_choices
        self._max = np.zeros(size if measures != "jsd" else 0)
        self._sum = np.zeros(size if measures != "pds" else 0)
        self._plogp = np.zeros(size if measures != "pds" else 0)

    def update(self, probs: Array) -> Disagreement:
        """Take in some models' probabilities, shape (n_models, n_items, n_choices); returns self."""
        if probs.ndim != 3 or probs.shape[1:] != self.shape:
            raise ValueError(f"probs of shape {probs.shape}, expected (n_models, {self.shape[0]}, {self.shape[1]})")
        flat = probs.reshape(len(probs), -1)
        dtype = np.float64 if flat.dtype == np.float64 else np.float32
        work = np.empty((_MODELS, _WIDTH), dtype)
        for low in range(0, flat.shape[1], _WIDTH):
            at = slice(low, min(low + _WIDTH, flat.shape[1]))
            for first in range(0, len(flat), _MODELS):
                p = flat[first : first + _MODELS, at].astype(dtype, copy=False)
                self._add(p, at, work[: len(p), : at.stop - low])
        self.n_models += len(flat)
        return self

    def _add(self, p: Array, at: slice, work: Array) -> None:
        """One cache-sized block. Adding the smallest normal number keeps log(0) finite and changes nothing else."""
        if self.measures != "jsd":
            np.maximum(self._max[at], p.max(axis=0), out=self._max[at])
        if self.measures != "pds":
            np.add(p, np.finfo(p.dtype).tiny, out=work)
            np.log(work, out=work)
            np.multiply(work, p, out=work)
            ones = np.ones(len(p), p.dtype)
            self._sum[at] += ones @ p
            self._plogp[at] += ones @ work

    def merge(self, other: Disagreement) -> Disagreement:
        """What an accumulator that had seen both committees would hold, as a new one; neither is changed."""
        if (other.shape, other.measures) != (self.shape, self.measures):
            raise ValueError(
                f"cannot merge accumulators of {self.shape}, {self.measures!r} and {other.shape}, {other.measures!r}"
            )
        both = Disagreement.__new__(Disagreement)
        both.shape, both.measures, both.n_models = self.shape, self.measures, self.n_models + other.n_models
        both._max = np.maximum(self._max, other._max)
        both._sum, both._plogp = self._sum + other._sum, self._plogp + other._plogp
        return both

    def state(self) -> dict[str, Array]:
        """The running sums by name, ``max``, ``sum`` and ``plogp``, each (n_items, n_choices), to be saved."""
        kept = {"max": self._max, "sum": self._sum, "plogp": self._plogp}
        return {name: array.reshape(self.shape) for name, array in kept.items() if array.size}

    @classmethod
    def restore(cls, n_models: int, state: dict[str, Array]) -> Disagreement:
        """An accumulator from the `state` of one that had seen ``n_models`` models."""
        measures = "both" if len(state) == 3 else "pds" if "max" in state else "jsd"
        n_items, n_choices = next(iter(state.values())).shape
        made = cls(n_items, n_choices, measures)
        made.n_models = n_models
        for name, array in state.items():
            setattr(made, f"_{name}", np.ascontiguousarray(array, dtype=np.float64).ravel())
        return made

    def pds(self) -> Array:
        """Predictive diversity score of every item, shape (n_items,), in [1, min(n_models, n_choices)].

        ``sum_c max_m p[m, c]``: a soft count of the different answers that the models give (paper, Section 3.1.2,
        equation 1). Not divided by the number of choices, as in the appendix and in Proposition 2: dividing would
        rank items with few choices higher.
        """
        self._ready("pds")
        total: Array = self._max.reshape(self.shape).sum(axis=1)
        return total

    def jsd(self) -> Array:
        """Generalised Jensen-Shannon divergence of every item in nats, shape (n_items,), in [0, log min(M, C)].

        ``H(mean_m p[m]) - mean_m H(p[m])``: the mutual information between the model's index and its answer (paper,
        Proposition 1).
        """
        self._ready("jsd")
        mean = self._sum / self.n_models
        spread = self._plogp / self.n_models - mean * np.log(np.where(mean > 0, mean, 1.0))
        total: Array = spread.reshape(self.shape).sum(axis=1)
        return np.maximum(total, 0.0)  # rounding can leave -1e-17

    def _ready(self, measure: str) -> None:
        if self.measures not in ("both", measure):
            raise ValueError(f"this accumulator measures {self.measures!r} alone, not {measure!r}")
        if not self.n_models:
            raise ValueError("disagreement needs at least one model; update() was never called")
