"""The two axes of responses: items and models, with ids that every join goes by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import AlignmentError, ValidationError, some

Array = NDArray[Any]
Selection = Sequence[int] | Array | slice


_ITEM_COLUMNS = ("subtask", "weight", "n_choices", "digest")
_MAYBE_KNOWN = ("label", "cost")


class Items:
    """The axis "item": what each question is called and how it counts.

    Parameters
    ----------
    ids : (n_items,) unique, stable names, best qualified by the leaf task: ``"mmlu_astronomy/17"``.
    subtask : (n_items,) leaf task of each item; ``""`` for all where the benchmark has none.
    weight : (n_items,) >= 0, how the benchmark's score averages its items; 1 each by default.
    n_choices : (n_items,) the real answer choices (vision: classes); 2 where only right or wrong is known.
    label : (n_items,) index of the right choice, or None where only grades are known.
    digest : (n_items,) hash over prompt and choices, ``""`` if unknown. Two runs agree on an item or are refused.
    cost : (n_items,) tokens or seconds that it takes to answer the item, or None.

    Raises
    ------
    ValidationError
        Ids that repeat, are empty or hold control characters; lengths that differ; weights below 0; labels that no
        choice has.
    """

    ids: Array
    subtask: Array
    weight: Array
    n_choices: Array
    label: Array | None
    digest: Array
    cost: Array | None

    def __init__(
        self,
        ids: ArrayLike,
        *,
        subtask: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        n_choices: ArrayLike | None = None,
        label: ArrayLike | None = None,
        digest: ArrayLike | None = None,
        cost: ArrayLike | None = None,
    ) -> None:
        self.ids = _ids(ids, "item")
        n = len(self.ids)
        self.subtask = _texts(subtask, n, "subtask")
        self.weight = _numbers(np.ones(n) if weight is None else weight, n, "weight", np.float64)
        self.n_choices = _numbers(np.full(n, 2) if n_choices is None else n_choices, n, "n_choices", np.int64)
        self.label = None if label is None else _numbers(label, n, "label", np.int64)
        self.digest = _texts(digest, n, "digest")
        self.cost = None if cost is None else _numbers(cost, n, "cost", np.float64)
        self._check()

    def _check(self) -> None:
        self._refuse((self.weight < 0) | ~np.isfinite(self.weight), self.weight, "weight", "a finite number >= 0")
        with np.errstate(over="ignore"):
            total = self.weight.sum()
        if len(self.ids) and not total > 0:
            raise ValidationError("the weights of all items are 0; at least one item must count")
        if not np.isfinite(total):
            raise ValidationError("the weights of all items add up to more than a number can hold; make them smaller")
        self._refuse(self.n_choices < 1, self.n_choices, "n_choices", "at least 1")
        if self.label is not None:
            wrong = (self.label < 0) | (self.label >= self.n_choices)
            self._refuse(wrong, self.label, "label", "0 to n_choices - 1")
        if self.cost is not None:
            self._refuse((self.cost < 0) | ~np.isfinite(self.cost), self.cost, "cost", "a finite number >= 0")

    def _refuse(self, wrong: Array, values: Array, name: str, needed: str) -> None:
        if wrong.any():
            at = np.flatnonzero(wrong)
            raise ValidationError(
                f"{name} of item '{self.ids[at[0]]}' is {values[at[0]]}, expected {needed} ({len(at)} such items)"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Items({len(self)}, e.g. {some(self.ids)})"

    @cached_property
    def subtasks(self) -> list[str]:
        """The names of the subtasks, in order of their first item; ``[""]`` where there are none."""
        return list(dict.fromkeys(self.subtask.tolist()))

    def pick(self, items: Selection) -> Items:
        """The items at some positions, or where a mask is true."""
        at = positions_of(items, len(self))
        optional = {k: None if (v := getattr(self, k)) is None else v[at] for k in _MAYBE_KNOWN}
        kept = {k: getattr(self, k)[at] for k in _ITEM_COLUMNS}
        if len(at) and not kept["weight"].sum() > 0:
            kept["weight"] = None  # none of the picked items counts towards the score: their own mean is unweighted
        return Items(self.ids[at], **kept, **optional)

    def then(self, others: Items) -> Items:
        """These items and then others; labels and costs only where both know them."""
        both: dict[str, Array | None] = {
            k: np.concatenate([getattr(self, k), getattr(others, k)]) for k in _ITEM_COLUMNS
        }
        for k in _MAYBE_KNOWN:
            mine, theirs = getattr(self, k), getattr(others, k)
            both[k] = None if mine is None or theirs is None else np.concatenate([mine, theirs])
        return Items(np.concatenate([self.ids, others.ids]), **both)

    def having(self, ids: ArrayLike | None = None, **columns: ArrayLike | None) -> Items:
        """The same items with some columns, or their ids, changed."""
        return Items(self.ids if ids is None else ids, **{**self.columns(), **columns})

    def columns(self) -> dict[str, Array | None]:
        """Every column but the ids by its name, as `Items` takes them."""
        return {k: getattr(self, k) for k in (*_ITEM_COLUMNS, *_MAYBE_KNOWN)}

    def positions(self, ids: ArrayLike, whose: str = "the responses") -> Array:
        """Where some items are; strict, so an id that is not there raises AlignmentError and names it."""
        return _lookup(self.ids, np.asarray(ids, dtype=str), "item", whose)


class Models:
    """The axis "model": names and, where known, dates and kinship.

    Parameters
    ----------
    ids : (n_models,) unique names.
    released : (n_models,) dates (anything ``numpy.datetime64`` reads); NaT or ``""`` if unknown.
    family, base : (n_models,) maker, and the model it was tuned or prompted from; ``""`` if unknown. Near duplicates
        share a base; splits and folds can keep them together.
    revision : (n_models,) commit or version of the weights; ``""`` if unknown.
    """

    ids: Array
    released: Array
    family: Array
    base: Array
    revision: Array

    def __init__(
        self,
        ids: ArrayLike,
        *,
        released: ArrayLike | None = None,
        family: ArrayLike | None = None,
        base: ArrayLike | None = None,
        revision: ArrayLike | None = None,
    ) -> None:
        self.ids = _ids(ids, "model")
        n = len(self.ids)
        self.released = _dates(released, n)
        self.family = _texts(family, n, "family")
        self.base = _texts(base, n, "base")
        self.revision = _texts(revision, n, "revision")

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Models({len(self)}, e.g. {some(self.ids)})"

    def pick(self, models: Selection) -> Models:
        """The models at some positions, or where a mask is true."""
        at = positions_of(models, len(self))
        kept = {k: getattr(self, k)[at] for k in ("released", "family", "base", "revision")}
        return Models(self.ids[at], **kept)

    def groups(self) -> Array:
        """Which models are kin, (n_models,) names: the family, else the base model, else the model itself.

        Families count where there are four or more; no kinship counts of which one group is more than half of the
        models, since hardly anything is known without it.
        """
        for group, least in ((np.where(self.family != "", self.family, self.base), 4), (self.base, 1)):
            names, sizes = np.unique(group[group != ""], return_counts=True)
            if len(names) >= least and 2 * sizes.max() <= len(group):
                return np.where(group != "", group, self.ids)
        return self.ids

    def positions(self, ids: ArrayLike, whose: str = "the responses") -> Array:
        """Where some models are; strict, so a name that is not there raises AlignmentError and names it."""
        return _lookup(self.ids, np.asarray(ids, dtype=str), "model", whose)


# ---- checks and conversions ------------------------------------------------------------------------------------


def read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _ids(values: ArrayLike, kind: str) -> Array:
    ids = np.atleast_1d(np.array(values, dtype=str))
    if ids.ndim != 1:
        raise ValidationError(f"{kind} ids of shape {ids.shape}, expected one name each")
    bad = [i for i in ids.tolist() if not i or not i.isprintable()]
    if bad:
        raise ValidationError(f"{kind} ids must be printable and not empty, got {some(map(repr, bad))}")
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) != len(ids):
        raise ValidationError(f"{kind} ids must be unique, but these repeat: {some(unique[counts > 1])}")
    around = [i for i in ids.tolist() if i[0] == " " or i[-1] == " "]  # no other blank is printable
    known = set(ids.tolist()) if around else set[str]()
    alike = [i for i in around if i.strip() in known]
    if alike:
        raise ValidationError(
            f"{kind} ids must differ by more than blanks around them; without these, others are called the same as "
            f"{some(map(repr, alike))}"
        )
    return read_only(ids)


def _texts(values: ArrayLike | None, n: int, name: str) -> Array:
    texts = np.zeros(n, dtype="U1") if values is None else np.array(values, dtype=str)
    if texts.shape != (n,):
        raise ValidationError(f"{name} has shape {texts.shape}, expected ({n},)")
    return read_only(texts)


def _numbers(values: ArrayLike, n: int, name: str, dtype: type) -> Array:
    given = np.asarray(values)
    if given.shape != (n,) or given.dtype.kind not in "biuf":
        raise ValidationError(f"{name} has shape {given.shape} and type {given.dtype}, expected {n} numbers")
    if (
        dtype is np.int64
        and given.dtype.kind == "f"
        and not (np.isfinite(given).all() and (given == given.round()).all())
    ):
        raise ValidationError(f"{name} must be whole numbers")
    return read_only(given.astype(dtype))


def _dates(values: ArrayLike | None, n: int) -> Array:
    if values is None:
        return read_only(np.full(n, "NaT", dtype="datetime64[D]"))
    given = np.asarray(values)
    if given.dtype.kind not in "MU" and given.dtype != object:
        raise ValidationError(f"released has type {given.dtype}, expected dates such as 2024-01-13, or '' if unknown")
    try:
        dates = given.astype("datetime64[D]")  # '' becomes NaT
    except ValueError as e:
        raise ValidationError(
            f"released holds something that is no date: {e}; write 2024-01-13, or '' if unknown"
        ) from None
    if dates.shape != (n,):
        raise ValidationError(f"released has shape {dates.shape}, expected ({n},)")
    late = dates > np.datetime64("9999-12-31")  # 20240113 is taken for a year
    if late.any():
        raise ValidationError(f"released holds {given[late][0]}, which is no date; write 2024-01-13, or '' if unknown")
    return read_only(dates)


def positions_of(selection: Selection, n: int) -> Array:
    """Positions from positions, a mask or a slice, checked against the length of the axis."""
    if isinstance(selection, slice):
        return np.arange(n)[selection]
    at = np.asarray(selection)
    if at.dtype == bool:
        if at.shape != (n,):
            raise ValidationError(f"a mask of shape {at.shape} does not fit an axis of {n}")
        return np.flatnonzero(at)
    if at.size == 0:
        return np.zeros(0, dtype=np.int64)
    if at.ndim != 1 or at.dtype.kind not in "iu":
        raise ValidationError(f"positions must be whole numbers or a mask, got {at.dtype} of shape {at.shape}")
    if at.min() < -n or at.max() >= n:
        raise ValidationError(f"position {at.max() if at.max() >= n else at.min()} is outside an axis of {n}")
    return np.where(at < 0, at + n, at).astype(np.int64)


def _lookup(have: Array, wanted: Array, kind: str, whose: str) -> Array:
    wanted = np.atleast_1d(wanted)
    order = np.argsort(have, kind="stable")
    at = np.searchsorted(have, wanted, sorter=order)
    found = order[np.minimum(at, len(have) - 1)] if len(have) else np.zeros(len(wanted), dtype=np.int64)
    missing = have[found] != wanted if len(have) else np.ones(len(wanted), dtype=bool)
    if missing.any():
        raise AlignmentError(
            f"{missing.sum()} of {len(wanted)} {kind}s are not in {whose}: {some(wanted[missing])}. "
            f"It has {len(have)}, such as {some(have)}."
        )
    return found.astype(np.int64)
