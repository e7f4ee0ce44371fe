"""Items, Models and Responses: the one labelled container. Numbers below, ids above."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .axes import Array, Items, Models, Selection, positions_of, read_only
from .checks import SUM_TOLERANCE, check_grades, check_probabilities, check_provenance, graded, match, real, short
from .errors import ValidationError
from .resources import block_bytes, need

__all__ = ["Items", "Lazy", "Models", "Responses", "Selection"]

_COPIES = 3  # of an array that a method which cannot work in parts makes of it on its way


@runtime_checkable
class Lazy(Protocol):
    """An array (model, item[, choice]) that stays where it is until a part of it is taken."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def item_block(self) -> int:
        """How many neighbouring items are stored together."""
        ...

    def take(self, models: Array | slice, items: Array | slice) -> Array: ...
    def rows(self, models: Array) -> Lazy: ...


class Responses:
    """Every model's answer to every item of a benchmark: the input of everything else.

    Use a constructor that says what comes in: `from_probs`, `from_loglikelihoods`, `from_correct`; or
    `open_responses` for a store on disk.

    Attributes
    ----------
    models, items : Models, Items
    correct : (n_models, n_items) in [0, 1]; 0/1 where the answer is right or wrong, between for graded answers.
    probs : (n_models, n_items, max_choices) or None. Rows sum to 1; a choice that an item lacks has probability 0.
        None where only grades are known: a response then stands for the pair (correct, 1 - correct).
    provenance : where the answers come from, as JSON values; kept by stores and condensations, never used in numbers.

    Arrays in memory are read-only here and not copied: do not write to what you gave, since results are kept. Arrays of
    an opened store stay on disk until `pick(items=...)` or a pass over the models (`blocks`) reads a part.
    """

    models: Models
    items: Items
    correct: Array | Lazy
    probs: Array | Lazy | None
    provenance: dict[str, Any]

    def __init__(
        self,
        models: Models,
        items: Items,
        correct: Array | Lazy,
        probs: Array | Lazy | None = None,
        provenance: dict[str, Any] | None = None,
    ) -> None:
        self.models = models
        self.items = items
        self.provenance = dict(provenance or {})
        shape = (len(models), len(items))
        match(correct.shape, shape, "correct")
        if probs is not None:
            match(probs.shape[:2], shape, "probs")
            if len(probs.shape) != 3 or not probs.shape[2]:
                raise ValidationError(f"probs of shape {probs.shape}, expected (n_models, n_items, max_choices)")
            if len(items) and items.n_choices.max() > probs.shape[2]:
                most = items.ids[items.n_choices.argmax()]
                raise ValidationError(
                    f"item '{most}' has {items.n_choices.max()} choices, but probs holds {probs.shape[2]} per item"
                )
        if isinstance(correct, np.ndarray):
            check_grades(correct, self.models.ids, self.items.ids)
            correct = read_only(correct)
        if isinstance(probs, np.ndarray):
            check_probabilities(probs, self.models.ids, self.items)
            probs = read_only(probs)
        self.correct = correct
        self.probs = probs

    # ---- constructors that say what comes in -------------------------------------------------------------------

    @classmethod
    def from_probs(
        cls, models: Models | ArrayLike, items: Items | ArrayLike, probs: ArrayLike, *, correct: ArrayLike | None = None
    ) -> Responses:
        """Responses from probabilities of the answer choices, (n_models, n_items, max_choices), rows summing to 1.

        A model is right where its most probable choice (the first of several) is the item's label; give ``correct``
        where the benchmark grades otherwise. ``items`` without ``n_choices`` are taken to have ``max_choices`` each.
        """
        p = real(probs, "probs")
        if p.ndim != 3:
            raise ValidationError(f"probs of shape {p.shape}, expected (n_models, n_items, max_choices)")
        if p.dtype.kind != "f":
            p = p.astype(np.float64)
        items = items if isinstance(items, Items) else Items(items, n_choices=np.full(p.shape[1], p.shape[2]))
        models = models if isinstance(models, Models) else Models(models)
        return cls(models, items, graded(correct, p, items), p)

    @classmethod
    def from_loglikelihoods(
        cls,
        models: Models | ArrayLike,
        items: Items | ArrayLike,
        loglikelihoods: ArrayLike,
        *,
        correct: ArrayLike | None = None,
    ) -> Responses:
        """Responses from unnormalised log-likelihoods of the choices (what lm-evaluation-harness records).

        Probabilities are the softmax over the item's own choices; entries beyond ``items.n_choices`` are ignored,
        whatever pads them. ``-inf`` is a probability of 0; NaN, or an item with nothing but ``-inf``, is refused; so
        are numbers that are probabilities already.
        """
        x = np.array(loglikelihoods, dtype=np.float64)
        if x.ndim != 3:
            raise ValidationError(f"loglikelihoods of shape {x.shape}, expected (n_models, n_items, max_choices)")
        items = items if isinstance(items, Items) else Items(items, n_choices=np.full(x.shape[1], x.shape[2]))
        models = models if isinstance(models, Models) else Models(models)
        match(x.shape[:2], (len(models), len(items)), "loglikelihoods")
        x[:, np.arange(x.shape[2]) >= items.n_choices[:, None]] = -np.inf
        top = x.max(axis=2, keepdims=True)
        bad = ~np.isfinite(top[..., 0])  # NaN and +inf carry over to the maximum; all -inf leaves -inf
        if bad.any():
            m, i = np.argwhere(bad)[0]
            raise ValidationError(
                f"log-likelihoods of model '{models.ids[m]}', item '{items.ids[i]}' are {short(x[m, i])}, "
                f"expected numbers, at least one of them finite ({bad.sum()} such rows)"
            )
        if _are_probabilities(x):
            raise ValidationError(
                "the log-likelihoods given are probabilities: none is below 0 and those of every item sum to 1; give "
                "them as probs (a column 'prob', an array 'probs')"
            )
        np.exp(x - top, out=x)
        x /= x.sum(axis=2, keepdims=True)
        return cls(models, items, graded(correct, x, items), x.astype(np.float32))

    @classmethod
    def from_correct(cls, models: Models | ArrayLike, items: Items | ArrayLike, correct: ArrayLike) -> Responses:
        """Responses of which only the grade is known: (n_models, n_items) in [0, 1], 1 for right."""
        grades = real(correct, "correct")
        items = items if isinstance(items, Items) else Items(items)
        models = models if isinstance(models, Models) else Models(models)
        return cls(models, items, grades if grades.dtype.kind == "f" else grades.astype(np.float32))

    # ---- what one asks of them ---------------------------------------------------------------------------------

    @property
    def n_models(self) -> int:
        return len(self.models)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def max_choices(self) -> int:
        """Choices of the item that has most; 2, right and wrong, where only grades are known."""
        return 2 if self.probs is None else self.probs.shape[2]

    @property
    def is_lazy(self) -> bool:
        return not isinstance(self.correct, np.ndarray)

    def __repr__(self) -> str:
        kind = "grades" if self.probs is None else f"probabilities of up to {self.max_choices} choices"
        return f"Responses({self.n_models} models, {self.n_items} items, {kind}{', on disk' if self.is_lazy else ''})"

    def scores(self) -> Array:
        """The benchmark's score of every model in [0, 1], shape (n_models,): the weighted mean of ``correct``."""
        return self._scores

    @cached_property
    def _scores(self) -> Array:
        weight = self.items.weight / self.items.weight.sum()
        scores = np.empty(self.n_models)
        for rows in self._row_blocks(self.correct):
            scores[rows] = self._take(self.correct, rows, slice(None)) @ weight
        return read_only(np.clip(scores, 0.0, 1.0).round(12))  # the last bits depend on the order of the items

    def subtask_scores(self) -> Array:
        """Every model's score on every subtask, shape (n_models, n_subtasks), columns as in ``items.subtasks``."""
        names = {name: i for i, name in enumerate(self.items.subtasks)}
        of = np.array([names[s] for s in self.items.subtask.tolist()], dtype=np.int64)
        member = np.zeros((self.n_items, len(names)))
        member[np.arange(self.n_items), of] = self.items.weight
        empty = member.sum(axis=0) == 0
        member[:, empty] = of[:, None] == np.flatnonzero(empty)  # a subtask that counts for nothing still has a mean
        member /= member.sum(axis=0)
        scores = np.empty((self.n_models, len(names)))
        for rows in self._row_blocks(self.correct):
            scores[rows] = self._take(self.correct, rows, slice(None)) @ member
        return np.clip(scores, 0.0, 1.0)

    def pick(self, *, models: Selection | None = None, items: Selection | None = None) -> Responses:
        """Some models and some items, by position or mask, in the order asked for.

        Picking models of a store on disk reads nothing; picking items reads only the chunks that hold them.
        """
        some_models = self.models if models is None else self.models.pick(models)
        rows: Array | slice = slice(None) if models is None else positions_of(models, self.n_models)
        if items is None:
            if models is None:
                return self
            correct = (
                self.correct[rows] if isinstance(self.correct, np.ndarray) else self.correct.rows(cast(Array, rows))
            )
            probs = self.probs
            if probs is not None:
                probs = probs[rows] if isinstance(probs, np.ndarray) else probs.rows(cast(Array, rows))
            return self._part(some_models, self.items, correct, probs)
        columns = positions_of(items, self.n_items)
        if self.is_lazy:
            size = self.n_models if models is None else len(some_models)
            wide = 0 if self.probs is None else self.max_choices * self.probs.dtype.itemsize
            taken = size * len(columns) * (self.correct.dtype.itemsize + wide)
            need(2 * taken, f"the answers of {size:,} models to {len(columns):,} items", "take fewer items")
        return self._part(
            some_models,
            self.items.pick(columns),
            self._take(self.correct, rows, columns),
            None if self.probs is None else self._take(self.probs, rows, columns),
        )

    def align(self, item_ids: ArrayLike) -> Responses:
        """The items with these ids, in this order; an id that is not there raises AlignmentError."""
        return self.pick(items=self.items.positions(item_ids))

    def load(self) -> Responses:
        """The same responses with every array in memory."""
        return self if not self.is_lazy else self.pick(items=slice(None))

    def grades(self, items: Selection | None = None) -> Array:
        """``correct`` of all or some items in memory as float64; ValidationError where that would not fit."""
        columns: Array | slice = slice(None) if items is None else positions_of(items, self.n_items)
        n = self.n_items if isinstance(columns, slice) else len(columns)
        self._fits("the grades", 8 * n, "choose auto, stratified, uniform, pds or jsd, which work in parts")
        return self._take(self.correct, slice(None), columns).astype(np.float64)

    def item_means(self) -> Array:
        """Mean grade of every item over the models, shape (n_items,)."""
        return self._item_means

    @cached_property
    def _item_means(self) -> Array:
        mean = np.empty(self.n_items)
        for columns, grades in self.grade_blocks():
            mean[columns] = grades.mean(axis=0)
        return read_only(mean)

    def label_probs(self) -> Array:
        """The probability that every model gives to the right choice, shape (n_models, n_items), float64.

        Raises ValidationError where only grades are known, or the labels are not.
        """
        if self.probs is None or self.items.label is None:
            what = "their probabilities" if self.probs is None else "the labels"
            raise ValidationError(
                f"this needs the probability of the right choice, but {what} are not in the responses (grades only); "
                "choose a method that works on correctness"
            )
        self._fits("the probabilities of the right choices", 8 * self.n_items, "choose pds, which works in parts")
        out = np.empty((self.n_models, self.n_items))
        for rows, columns, block in self.blocks():
            label = self.items.label[columns]
            out[rows, columns] = block[:, np.arange(len(label)), label]
        return out

    def outcomes(self) -> Array:
        """What signatures and disagreement see, in memory: ``probs``, or the pair (correct, 1 - correct)."""
        cell = 2 * self.correct.dtype.itemsize if self.probs is None else self.max_choices * self.probs.dtype.itemsize
        self._fits("all answers", cell * self.n_items, "take fewer anchors")
        if self.probs is None:
            right = self._take(self.correct, slice(None), slice(None))
            return np.stack([right, 1 - right], axis=2)
        return self._take(self.probs, slice(None), slice(None))

    def blocks(self) -> Iterator[tuple[slice, slice, Array]]:
        """One pass over the outcomes, (models, items, array), in blocks of bounded memory that tile the whole.

        All models of some items come before the next items, so sums over models need memory for those items only.
        """
        for columns in self.stretches():
            for rows, part in self.block(slice(0, self.n_models), columns):
                yield rows, columns, part

    def block(self, models: slice, items: slice) -> Iterator[tuple[slice, Array]]:
        """The outcomes of neighbouring models on neighbouring items, a few models at a time, checked if from disk."""
        source = self.correct if self.probs is None else self.probs
        per_model = (items.stop - items.start) * self.max_choices * max(source.dtype.itemsize, 4)
        step = max(1, block_bytes() // max(1, per_model))
        own = None if self.probs is None or isinstance(source, np.ndarray) else self.items.pick(items)
        for first in range(models.start, models.stop, step):
            rows = slice(first, min(first + step, models.stop))
            part = self._take(source, rows, items)
            if self.probs is None:
                part = np.stack([part, 1 - part], axis=2)
            elif own is not None:
                check_probabilities(part, self.models.ids[rows], own)
            yield rows, part

    def stretches(self) -> Iterator[slice]:
        """Neighbouring items that are read together: those of one shard of a store; all of an array in memory."""
        source = self.correct if self.probs is None else self.probs
        step = self.n_items if isinstance(source, np.ndarray) else source.item_block
        return _steps(self.n_items, step)

    def grade_blocks(self) -> Iterator[tuple[slice, Array]]:
        """``correct`` of all models as float64, some neighbouring items at a time: (items, (n_models, n))."""
        step = max(1, block_bytes() // max(1, 8 * self.n_models))
        if not isinstance(self.correct, np.ndarray):
            step = max(1, min(step, self.n_items) // self.correct.item_block) * self.correct.item_block
        for columns in _steps(self.n_items, step):
            yield columns, self._take(self.correct, slice(None), columns).astype(np.float64)

    def save(self, path: str | Path, *, overwrite: bool = False, dtype: DTypeLike | None = None) -> None:
        """Write a Zarr store that `open_responses` opens lazily; the old one stays whole until the new one is.

        ``dtype="float16"`` keeps the probabilities in half the space, exact to about three digits.
        """
        from .store import write_store

        write_store(self, path, overwrite=overwrite, dtype=dtype)

    # ---- private -----------------------------------------------------------------------------------------------

    def _part(self, models: Models, items: Items, correct: Array | Lazy, probs: Array | Lazy | None) -> Responses:
        """A part of these responses. What was in memory was checked as a whole; what came from disk is checked now."""
        if self.is_lazy:
            return Responses(models, items, correct, probs, self.provenance)
        part = Responses.__new__(Responses)
        part.models, part.items, part.provenance = models, items, dict(self.provenance)
        part.correct = read_only(cast(Array, correct))
        part.probs = None if probs is None else read_only(cast(Array, probs))
        return part

    @staticmethod
    def _take(source: Array | Lazy, models: Array | slice, items: Array | slice) -> Array:
        if isinstance(source, np.ndarray):
            both = isinstance(models, np.ndarray) and isinstance(items, np.ndarray)
            picked: Array = source[models][:, items] if both else source[models, items]
            return picked
        return source.take(models, items)

    def _row_blocks(self, source: Array | Lazy) -> Iterator[slice]:
        return _steps(self.n_models, block_bytes() // max(1, self.n_items * max(source.dtype.itemsize, 4)))

    def _fits(self, what: str, bytes_per_model: int, instead: str) -> None:
        """Refuse to take from a store what would not fit into memory."""
        if self.is_lazy:
            size = f"{self.n_models:,} models on {self.n_items:,} items"
            need(_COPIES * self.n_models * bytes_per_model, f"{what} of {size}", instead)


def _steps(n: int, step: int) -> Iterator[slice]:
    for first in range(0, n, max(1, step)):
        yield slice(first, min(first + max(1, step), n))


def _are_probabilities(x: Array) -> bool:
    """Whether numbers (n_models, n_items, n_choices), -inf for absent choices, are probabilities, not their logs."""
    for one in x:
        p = np.where(np.isneginf(one), 0.0, one)
        if p.min(initial=0.0) < 0 or (np.abs(p.sum(axis=1) - 1) > SUM_TOLERANCE).any():
            return False
    return x.size > 0


def check_responses(given: object, who: str) -> None:
    """Refuse what are no responses, such as a path to them, and those whose provenance could not be kept."""
    if not isinstance(given, Responses):
        what = f"'{given}'" if isinstance(given, (str, Path)) else f"a {type(given).__name__}"
        raise ValidationError(f"{who} takes Responses, got {what}; disco_eval.open_responses opens a store")
    check_provenance(given.provenance)
