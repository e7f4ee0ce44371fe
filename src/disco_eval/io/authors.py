"""The DISCO authors' ``model_outputs.pickle``, read without running anything that is in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, ValidationError, some
from ..responses import Items, Models, Responses
from .plain import load_plain
from .records import single

Array = NDArray[Any]

BENCHMARKS = {
    "hendryckstest": "mmlu",
    "mmlu": "mmlu",
    "hellaswag": "hellaswag",
    "winogrande": "winogrande",
    "arc": "arc",
}
WEIGHTS = ("subtasks", "items")


def read_authors(path: str | Path, weights: str = "subtasks") -> dict[str, Responses]:
    """Responses of each benchmark in the authors' file: MMLU, HellaSwag, WinoGrande, ARC.

    The file is a dict: ``models``, names, newest first; and ``data``, for each subtask ``correctness`` (items x models)
    and ``predictions`` (items x models x 31), log-likelihoods padded with -inf. The padding is dropped: an item has the
    choices for which any model has a log-likelihood. Subtasks whose name holds ``hendrycksTest`` (or mmlu, hellaswag,
    winogrande, arc) make one benchmark; any other is its own. The file holds no labels and no dates: grades are its
    own, models stay in its order (the split ``first10`` makes the newest tenth the targets), and what needs the
    probability of the right choice is not possible.

    Only numpy arrays of numbers and text and Python's plain values are admitted; anything else in the pickle is refused
    before it is called.

    Parameters
    ----------
    path : the file.
    weights : ``"subtasks"``, a benchmark's score is the mean over subtasks' means, as the authors take it for MMLU; or
        ``"items"``, every item counts the same.

    Raises FormatError where the file is no such pickle, or holds anything but data.
    """
    if weights not in WEIGHTS:
        raise ValidationError(f"weights is 'subtasks' or 'items', not '{weights}'")
    content = load_plain(path)
    models, data = _parts(content, str(path))
    groups: dict[str, list[str]] = {}
    for name in data:
        groups.setdefault(_benchmark(name), []).append(name)
    out = {}
    for benchmark, names in groups.items():
        out[benchmark] = _join(models, {name: data.pop(name) for name in names}, weights, str(path))
    return out


def _parts(content: Any, path: str) -> tuple[list[str], dict[str, Any]]:
    if not isinstance(content, dict) or not {"models", "data"} <= set(content):
        raise FormatError(f"'{path}' is no model_outputs.pickle: it needs 'models' and 'data'")
    names, data = content["models"], content["data"]
    models = names.tolist() if isinstance(names, np.ndarray) and names.ndim == 1 else names
    if not isinstance(models, (list, tuple)) or not all(isinstance(m, str) for m in models):
        raise FormatError(f"'{path}': 'models' is no list of names")
    models = list(models)
    if not isinstance(data, dict) or not data:
        raise FormatError(f"'{path}': 'data' is no dict of subtasks")
    for name, part in data.items():
        if not isinstance(name, str):
            raise FormatError(f"'{path}': a subtask's name is of type {type(name).__name__}, expected text")
        if not isinstance(part, Mapping) or not {"correctness", "predictions"} <= set(part):
            raise FormatError(f"'{path}': subtask '{name}' lacks 'correctness' or 'predictions'")
    return models, dict(data)


def _benchmark(subtask: str) -> str:
    low = subtask.lower()
    return next((name for key, name in BENCHMARKS.items() if key in low), subtask)


def _join(models: list[str], data: dict[str, Any], weights: str, path: str) -> Responses:
    """One benchmark from its subtasks, without the padding."""
    correct, loglik, names, subtask, weight = [], [], [], [], []
    for name, part in data.items():
        grades, values = _numbers(part["correctness"], name, path), _numbers(part["predictions"], name, path)
        n_items = len(grades)
        if grades.shape != (n_items, len(models)) or values.shape[:2] != grades.shape or values.ndim != 3:
            raise FormatError(
                f"'{path}': subtask '{name}' has correctness {grades.shape} and predictions {values.shape}, expected "
                f"(items, {len(models)}) and (items, {len(models)}, choices)"
            )
        correct.append(single(grades.T))
        loglik.append(values.transpose(1, 0, 2))
        names += [f"{name}/{i}" for i in range(n_items)]
        subtask += [name] * n_items
        weight += [1 / n_items if weights == "subtasks" else 1.0] * n_items
    own = [_choices(values) for values in loglik]
    most = int(max(n.max() for n in own))
    every = np.concatenate([single(v[:, :, :most]) for v in loglik], axis=1)
    n_choices = np.concatenate(own)
    if (n_choices < 1).any():
        empty = [names[i] for i in np.flatnonzero(n_choices < 1)]
        raise FormatError(f"'{path}': {len(empty)} items have no log-likelihood at all: {some(empty)}")
    items = Items(names, subtask=subtask, weight=np.array(weight), n_choices=n_choices)
    return Responses.from_loglikelihoods(Models(models), items, every, correct=np.concatenate(correct, axis=1))


def _numbers(value: Any, subtask: str, path: str) -> Array:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub" or not value.size:
        raise FormatError(f"'{path}': subtask '{subtask}' holds something else than arrays of numbers")
    return value


def _choices(values: Array) -> Array:
    """How many choices each item has, (n_items,): up to the last for which any model has a log-likelihood."""
    there: Array = np.any(values > -np.inf, axis=0)
    return np.where(there.any(axis=1), there.shape[1] - there[:, ::-1].argmax(axis=1), 0)
