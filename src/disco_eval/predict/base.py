"""What every score model is: fit on source models, predict from answers on the anchors, be saved as plain arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import AlignmentError, FormatError, some
from ..numerics.rng import Seed
from ..responses import Responses
from ..select.anchors import Anchors

Array = NDArray[Any]
Arrays = dict[str, Array]
Config = dict[str, Any]


class ScoreModel(Protocol):
    """Maps a model's answers on the anchors to its score on the whole benchmark.

    ``fit`` sees the source models' answers to all items; ``predict`` sees answers to the anchors alone, in the
    anchors' order. What ``predict`` needs is held in ``config`` (JSON) and ``state`` (arrays), so a fitted model is
    saved and restored without pickles and predicts the same bit for bit.
    """

    name: ClassVar[str]

    def fit(self, source: Responses, anchors: Anchors, rng: Seed = None) -> Self:
        """Learn from source models; returns self."""
        ...

    def predict(self, answers: Responses) -> Array:
        """Estimated score of every model, shape (n_models,), in [0, 1] (clipped)."""
        ...

    def config(self) -> Config:
        """The options, as JSON values."""
        ...

    def state(self) -> Arrays:
        """What was learned, as arrays."""
        ...

    @classmethod
    def restore(cls, config: Config, state: Arrays, ids: Array) -> Self:
        """The fitted model again, for the anchors of these ids; FormatError where the arrays do not make one."""
        ...


def check_answers(answers: Responses, ids: Array) -> None:
    """Refuse answers that are not to exactly the anchors, in their order."""
    if not np.array_equal(answers.items.ids, ids):
        missing = np.setdiff1d(ids, answers.items.ids)
        what = f"{len(missing)} are missing: {some(missing)}" if len(missing) else "they stand in another order"
        raise AlignmentError(
            f"answers are to {answers.n_items} items, not to the {len(ids)} anchors ({what}); use align()"
        )


def need(state: Arrays, name: str, shape: tuple[int | None, ...], kind: str = "f") -> Array:
    """An array of a saved state after checking that it is there, of the right kind and shape, and finite."""
    if name not in state:
        raise FormatError(f"the saved score model lacks the array '{name}'")
    array = state[name]
    fits = len(shape) == array.ndim and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits or array.dtype.kind not in kind or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise FormatError(f"the saved array '{name}' has type {array.dtype} and shape {array.shape}, expected {shape}")
    return array


def has_part(parts: Any, name: str) -> bool:
    """Whether a saved model has a part; False where its format did not know it, FormatError for no yes or no."""
    if not isinstance(parts, dict):
        raise FormatError(f"the saved score model makes no sense: its parts are {parts!r}, not a table")
    there = parts.get(name, False)
    if not isinstance(there, bool):
        raise FormatError(f"the saved score model makes no sense: '{name}' is {there!r}, not true or false")
    return there


def need_part(state: Arrays, prefix: str, shapes: dict[str, tuple[int | None, ...]]) -> Arrays:
    """The arrays of one part of a saved model, by field name, each checked by `need`."""
    kinds = {"drawn": "i"}
    return {name: need(state, f"{prefix}.{name}", shape, kinds.get(name, "f")) for name, shape in shapes.items()}


def named_arrays(prefix: str, part: Any) -> Arrays:
    """The fields of a part of a model, which are arrays, under the names that `need_part` looks for."""
    return {f"{prefix}.{f.name}": getattr(part, f.name) for f in fields(part)}


def clip(scores: Array) -> Array:
    """Scores outside [0, 1] do not exist; every estimate is clipped (the authors' code leaves MLPs unclipped)."""
    return np.clip(scores, 0.0, 1.0)
