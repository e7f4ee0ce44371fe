"""Work that several methods need, done once for each set of responses.

Responses never change, so what was computed from them stays true; it is kept as long as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..errors import ValidationError
from ..numerics.irt import IRT, fit_2pl, held_out_likelihood, simplest
from ..responses import Responses
from ..splits import folds
from .anchors import by_id

Array = NDArray[Any]
T = TypeVar("T")

DIMS = (2, 5, 10, 15)
_DONE: WeakKeyDictionary[Responses, dict[Hashable, Any]] = WeakKeyDictionary()


def once(responses: Responses, key: Hashable, make: Callable[[], T]) -> T:
    """``make()``, or what it gave the last time for these responses and this key."""
    kept = _DONE.setdefault(responses, {})
    if key not in kept:
        kept[key] = make()
    value: T = kept[key]
    return value


def keep(responses: Responses, entries: dict[Hashable, Any]) -> None:
    """Take in what was computed for the same responses elsewhere, under the keys of `once`."""
    _DONE.setdefault(responses, {}).update(entries)


@dataclass(frozen=True, eq=False)
class SourceIRT:
    """The source models' item response theory, and the same without some of them.

    Attributes
    ----------
    full : fitted to all source models.
    rest, held : fitted without the models at positions ``held``, to learn how well it predicts models it has not seen.
    likelihood : held-out log-likelihood (nats per answer) for each number of dimensions that was tried.
    """

    full: IRT
    rest: IRT
    held: Array
    likelihood: dict[int, float]


def source_irt(responses: Responses, n_dims: int | None = None) -> SourceIRT:
    """The two-parameter model of the source models' correctness, fitted once; see `numerics.irt` for its signs.

    ``n_dims`` None chooses among 2, 5, 10 and 15: the fewest within 0.0025 nats of the best held-out log-likelihood, on
    a fifth of the source models whose families (or base models, where known) the fit has not seen. The result does not
    depend on the order of models or items.

    Raises ValidationError for fewer than 5 source models, no dimensions, or more than they can carry.
    """
    if n_dims is not None and n_dims < 1:
        raise ValidationError(f"n_dims must be at least 1, or None to choose it, got {n_dims}")
    return once(responses, ("irt", n_dims), lambda: _fit(responses, n_dims))


def correctness(responses: Responses) -> Array:
    """``correct`` in memory as float32, shape (n_models, n_items), read once."""

    def make() -> Array:
        grades = responses.grades().astype(np.float32)
        grades.flags.writeable = False
        return grades

    return once(responses, "correctness", make)


def _fit(responses: Responses, n_dims: int | None) -> SourceIRT:
    if responses.n_models < 5:
        raise ValidationError(f"item response theory needs at least 5 source models, there are {responses.n_models}")
    if responses.n_items < 2:
        raise ValidationError("item response theory needs at least 2 items, there is 1")
    models, items = by_id(responses.models.ids), by_id(responses.items.ids)
    y = correctness(responses)[models][:, items]
    _, held = next(iter(folds(responses.models.pick(models), 5, 0)))
    rest = np.setdiff1d(np.arange(len(y)), held)
    most = len(rest) - 1
    dims = tuple(d for d in DIMS if d <= most) if n_dims is None else (n_dims,)
    if not dims or max(dims) > most:
        raise ValidationError(f"{n_dims or min(DIMS)} dimensions of ability need more source models than {len(y)}")
    fits = {d: fit_2pl(y[rest], d) for d in dims}
    likelihood = {d: held_out_likelihood(y, held, fits[d]) for d in dims}
    chosen = simplest(dims, [likelihood[d] for d in dims])
    full = fit_2pl(y, chosen)
    return SourceIRT(_unsort(full, models, items), _unsort(fits[chosen], None, items), models[held], likelihood)


def _unsort(fitted: IRT, models: Array | None, items: Array) -> IRT:
    """Parameters in the order of the responses again; ``models`` None leaves the abilities of a partial fit out."""
    back = np.argsort(items)
    ability = np.zeros((0, fitted.n_dims)) if models is None else fitted.ability[np.argsort(models)]
    return IRT(fitted.discrimination[back], fitted.difficulty[back], ability, fitted.rounds)
