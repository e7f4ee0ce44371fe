"""The DISCO authors' ``model_outputs.pickle``, read without running anything that is in it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, ValidationError, some
from ..responses import Items, Models, Responses

Array = NDArray[Any]

BENCHMARKS = {
    "hendryckstest": "mmlu",
    "mmlu": "mmlu",
    "hellaswag": "hellaswag",
    "winogrande": "winogrande",
    "arc": "arc",
}
WEIGHTS = ("subtasks", "items")
_KINDS = frozenset("fiubUS")


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


def load_plain(path: str | Path) -> Any:
    """A pickle of plain values and numeric numpy arrays; anything else raises FormatError before it is called."""
    try:
        with open(path, "rb") as file:
            return _Plain(file).load()
    except OSError as e:
        raise FormatError(f"'{path}' cannot be read: {e.strerror}") from None
    except FormatError as e:
        raise FormatError(f"'{path}': {e}") from None
    except Exception as e:  # a damaged pickle can fail in any way; nothing of it was run
        raise FormatError(f"'{path}' is no pickle of plain data, or is damaged ({type(e).__name__}: {e})") from None


class _Plain(pickle.Unpickler):
    """Knows how to make arrays from their bytes and nothing else; every other name in the file is refused."""

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module.replace("numpy._core.", "numpy.core."), name))
        if known is None:
            raise FormatError(f"it asks for '{module}.{name}', which is not data; the file was not opened further")
        return known


class _ArrayType:
    """Stands for ``numpy.ndarray`` where a pickle names it; it cannot be called by one."""


def _empty(kind: Any, shape: Any, code: Any) -> Array:
    if kind is not _ArrayType:
        raise FormatError("it makes an array of a type that is no plain array")
    return np.empty((0,), np.uint8)


def _dtype(code: Any, *flags: Any) -> np.dtype[Any]:
    text = code.decode("ascii") if isinstance(code, bytes) else code
    if not isinstance(text, str) or not text.lstrip("<>|=") or text.lstrip("<>|=")[0] not in _KINDS:
        raise FormatError(f"it holds an array of type {code!r}; numbers and text alone are read")
    return np.dtype(text, False, True)  # a copy: the pickle sets the byte order of what it gets


def _from_buffer(buffer: Any, dtype: Any, shape: Any, order: str) -> Array:
    if not isinstance(dtype, np.dtype) or dtype.kind not in _KINDS:
        raise FormatError("it holds an array that is neither numbers nor text")
    return np.frombuffer(buffer, dtype).reshape(shape, order="F" if order == "F" else "C")


def _scalar(dtype: Any, data: bytes) -> Any:
    if not isinstance(dtype, np.dtype) or dtype.kind not in _KINDS:
        raise FormatError("it holds a scalar that is neither a number nor text")
    return np.frombuffer(data, dtype)[0]


def _latin(text: str, encoding: str) -> bytes:
    return text.encode("latin1")  # how old protocols write bytes


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _ArrayType,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _empty,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _latin,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "slice"): slice,
    ("builtins", "complex"): complex,
    ("collections", "OrderedDict"): dict,
}


def _parts(content: Any, path: str) -> tuple[list[str], dict[str, Any]]:
    if not isinstance(content, dict) or not {"models", "data"} <= set(content):
        raise FormatError(f"'{path}' is no model_outputs.pickle: it needs 'models' and 'data'")
    models = [str(m) for m in content["models"]]
    data = content["data"]
    if not isinstance(data, dict) or not data:
        raise FormatError(f"'{path}': 'data' is no dict of subtasks")
    for name, part in data.items():
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
        grades, values = np.asarray(part["correctness"]), np.asarray(part["predictions"])
        n_items = len(grades)
        if grades.shape != (n_items, len(models)) or values.shape[:2] != grades.shape or values.ndim != 3:
            raise FormatError(
                f"'{path}': subtask '{name}' has correctness {grades.shape} and predictions {values.shape}, expected "
                f"(items, {len(models)}) and (items, {len(models)}, choices)"
            )
        correct.append(grades.T.astype(np.float32))
        loglik.append(values.transpose(1, 0, 2))
        names += [f"{name}/{i}" for i in range(n_items)]
        subtask += [name] * n_items
        weight += [1 / n_items if weights == "subtasks" else 1.0] * n_items
    own = [_choices(values) for values in loglik]
    most = int(max(n.max() for n in own))
    every = np.concatenate([v[:, :, :most].astype(np.float32) for v in loglik], axis=1)
    n_choices = np.concatenate(own)
    if (n_choices < 1).any():
        empty = [names[i] for i in np.flatnonzero(n_choices < 1)]
        raise FormatError(f"'{path}': {len(empty)} items have no log-likelihood at all: {some(empty)}")
    items = Items(names, subtask=subtask, weight=np.array(weight), n_choices=n_choices)
    return Responses.from_loglikelihoods(Models(models), items, every, correct=np.concatenate(correct, axis=1))


def _choices(values: Array) -> Array:
    """How many choices each item has, (n_items,): up to the last for which any model has a log-likelihood."""
    there: Array = np.any(values > -np.inf, axis=0)
    return np.where(there.any(axis=1), there.shape[1] - there[:, ::-1].argmax(axis=1), 0)
