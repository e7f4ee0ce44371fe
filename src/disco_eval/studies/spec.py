"""What a function does as text, by which studies tell methods apart: the same in every process where that can be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import partial
from types import CodeType
from typing import Any

import numpy as np


def spec(value: Any) -> str:
    """A selection or prediction as text: its name, or where the function lives and what it does.

    Functions of one name (lambdas, a function that was edited, a method of another object) are told apart by their
    code, defaults and what they hold: of the scope that made them, or of their object.
    """
    return value if isinstance(value, str) else _text(value, ())


def _text(value: Any, around: tuple[int, ...]) -> str:
    """Anything as text, the same in every process where that can be; ``around`` is the ids of what it is a part of."""
    if id(value) in around:  # a function that calls itself
        return "itself"
    around = (*around, id(value))
    if isinstance(value, np.ndarray):  # repr leaves out the middle of a long one
        return f"{value.dtype}{value.shape}: {_digest(value.tolist())}"
    if isinstance(value, partial):
        return f"partial({_text(value.func, around)}, {_all(value.args, around)}, {_named(value.keywords, around)})"
    where = value if hasattr(value, "__qualname__") else type(value)
    name = f"{where.__module__}.{where.__qualname__}"
    code = getattr(value, "__code__", None)
    if code is not None:
        of = _text(value.__self__, around) if hasattr(value, "__self__") else ""
        held = _all([cell.cell_contents for cell in value.__closure__ or ()], around)
        defaults = _all(value.__defaults__ or (), around), _named(value.__kwdefaults__ or {}, around)
        return f"{name}#{_digest((*_does(code), defaults, held, of))}"
    if where is value:
        return name
    shown: Any = type(value).__repr__
    if shown is object.__repr__ and hasattr(value, "__dict__"):  # which would say where it lies in memory
        return f"{name}: {_named(vars(value), around)}"
    return f"{name}: {value!r}"


def _all(values: Iterable[Any], around: tuple[int, ...]) -> list[str]:
    return [_text(v, around) for v in values]


def _named(values: Mapping[str, Any], around: tuple[int, ...]) -> list[tuple[str, str]]:
    return [(name, _text(values[name], around)) for name in sorted(values)]


def _does(code: CodeType) -> tuple[Any, ...]:
    """What a function's code does, without where it stands: its own text in bytes, names and constants."""
    constants = [_does(c) if isinstance(c, CodeType) else _sorted(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def _sorted(constant: Any) -> Any:
    """A set of constants in an order that is the same in every process."""
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant


def _digest(record: Any) -> str:
    return hashlib.sha256(repr(record).encode()).hexdigest()[:16]
